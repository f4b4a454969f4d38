"""Decision thresholds for attack scores: chosen on one half of the scores, evaluated on the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.base.attack_curve import counts_above
from sfumato.audit.lower_bounds import certified_epsilon, forced_epsilon
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from sfumato.numerics.interval import Interval

__all__ = [
    "BestEvent",
    "best_event",
    "maximum_advantage_threshold",
    "rates_at_threshold",
    "split_halves",
    "threshold_at_rate",
]

Scores = NDArray[np.float64]
_CUTS = 400


def split_halves(scores: Scores, rng: np.random.Generator) -> tuple[Scores, Scores]:
    """Cut scores in two at random: to choose by, and, no fewer, to count in."""
    mixed = rng.permutation(scores)
    return mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]


def threshold_at_rate(others: Scores, rate: float) -> float:
    """Return the smallest threshold that at most so large a part of the others exceeds."""
    retained = math.floor(rate * len(others))
    return float(np.sort(others)[len(others) - 1 - retained])


def maximum_advantage_threshold(members: Scores, others: Scores) -> float:
    """Return the threshold with the greatest true minus false positive rate."""
    cuts = np.unique(np.concatenate([members, others]))
    gains = counts_above(members, cuts) / len(members) - counts_above(others, cuts) / len(others)
    return float(cuts[np.argmax(gains)])


def rates_at_threshold(
    members: Scores, others: Scores, threshold: float, risk: float
) -> tuple[Interval, Interval]:
    """Return false and true positive rates at a threshold; each end fails with a chance of at most risk."""
    false, true = (_rate(int((side > threshold).sum()), len(side), risk) for side in (others, members))
    return false, true


def _rate(hits: int, trials: int, risk: float) -> Interval:
    minimum, maximum = lower_confidence_bound(hits, trials, risk), upper_confidence_bound(hits, trials, risk)
    return Interval(float(minimum), float(maximum))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BestEvent:
    """The event that seemed to prove most: scores above a threshold, or not above it.

    Parameters
    ----------
    threshold : float
        Of the scores.
    above : bool
        Whether the event is to exceed it: likely for members. Else: not to, likely for others.
    """

    threshold: float
    above: bool

    def proved(self, members: Scores, others: Scores, delta: float, risk: float) -> float:
        """Return the epsilon that fresh scores prove by this event; too large with twice the risk at most."""
        likely, rare = (members, others) if self.above else (others, members)
        hits = [int(((side > self.threshold) == self.above).sum()) for side in (likely, rare)]
        minimum = float(lower_confidence_bound(hits[0], len(likely), risk))
        maximum = float(upper_confidence_bound(hits[1], len(rare), risk))
        return certified_epsilon(minimum, maximum, delta)


def best_event(
    members: Scores, others: Scores, delta: float, risk: float, sizes: tuple[int, int]
) -> BestEvent:
    """Choose the event that would prove most of fresh scores (so many of each) if they were as these."""
    cuts = _few(np.unique(np.concatenate([members, others])))
    parts = counts_above(members, cuts) / len(members), counts_above(others, cuts) / len(others)
    found = []
    for above in (True, False):
        (likely, rare), (many, few) = (parts, sizes) if above else ((1 - parts[1], 1 - parts[0]), sizes[::-1])
        minimum = lower_confidence_bound(np.floor(likely * many), many, risk)
        maximum = upper_confidence_bound(np.ceil(rare * few), few, risk)
        worth = forced_epsilon(minimum, maximum, delta)
        best = int(np.argmax(worth))
        found.append((float(worth[best]), BestEvent(threshold=float(cuts[best]), above=above)))
    return max(found, key=lambda entry: entry[0])[1]


def _few(cuts: Scores) -> Scores:
    """Return some hundreds of ordered numbers, more of them near the ends."""
    last = len(cuts) - 1
    ends = np.unique(np.geomspace(1, len(cuts), _CUTS).astype(np.int64)) - 1
    return np.asarray(cuts[np.unique(np.concatenate([ends, last - ends]))], dtype=np.float64)
