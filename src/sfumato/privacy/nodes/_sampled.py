"""Common base of sampling a fixed number of units, and sampling a unit several times."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import NeighboringMismatch, UnsupportedView
from sfumato.privacy._outward import times_above
from sfumato.privacy.accountant.renyi import renyi
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring, Relation
from sfumato.privacy.pairs.derived import fine_bins, one_run
from sfumato.privacy.pairs.group_privacy import MAX_STEPS
from sfumato.privacy.pairs.mixture import MixturePair
from sfumato.privacy.pairs.pair import Pair, two_points

__all__ = ["SampledNode", "drawn_several", "tells_all"]

_NEAR: Final = 12.0
_NEGLIGIBLE: Final = 1e-25
_MAXIMUM: Final = MAX_STEPS
"""More occurrences of one unit in a sample are counted as a total loss."""


class SampledNode(Node):
    """A mechanism that ran on a sample of a public number of units, of a public number: replace-one."""

    __slots__ = ()

    loss: PrivacyLoss

    @property
    def neighboring(self) -> Relation:
        """Replace-one."""
        return Neighboring.REPLACE_ONE

    def log_profile(self, epsilon: float) -> float:
        """Return that of the pair."""
        return max(distribution.log_profile(epsilon) for distribution in one_run(self))

    numeric = True
    """Always."""

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return bounds on the divergences of the pair, where no loss of it is infinite."""
        pair = self.dominating_pair()
        return self._missing("rdp", orders) if tells_all(pair) else renyi(pair, orders)

    def _check_loss(self) -> None:
        self._set_part("loss", self.loss)
        if self.loss.neighboring is not Neighboring.REPLACE_ONE:
            raise NeighboringMismatch(
                f"loss must be under replace-one, got {self.loss.neighboring}; a sample of fixed size is "
                "priced under that relation only: state the loss of the mechanism under it"
            )


def tells_all(pair: Pair) -> bool:
    """Whether a loss of the pair is infinite; filters part that mass off, a curve of divergences cannot."""
    return any(fine_bins(pair, _NEAR, swapped=order).only_p > 0 for order in (False, True))


def drawn_several(loss: PrivacyLoss, trials: int, odds: float) -> tuple[Pair, float]:
    """Return the pair of a unit that is in a sample J times, J revealed, and the chance that it is at all.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the mechanism on its sample; its group losses bound what J occurrences make.
    trials : int
        J is binomial of so many trials.
    odds : float
        The chance that a trial succeeds, divided by the chance that it fails.

    Notes
    -----
    The divergences are at most the means of the groups' (joint convexity). More than 100 occurrences, or what
    has a probability of less than 1e-25, is counted as a total loss, or as that of a pure loss all times.
    """
    log_none = -trials * math.log1p(odds)
    drawn = -math.expm1(log_none)
    log_chance, rest, last = log_none - math.log(drawn), 0.0, min(trials, _MAXIMUM)
    pairs: list[Pair] = []
    weights: list[float] = []
    for times in range(1, last + 1):
        log_chance += math.log((trials - times + 1) / times) + math.log(odds)
        chance = math.exp(log_chance)
        if chance < _NEGLIGIBLE:
            rest += chance + 1e-300
            continue
        pairs.append(loss.group(times).dominating_pair())
        weights.append(chance)
    if last < trials:
        # From here on each number of times has at most this ratio to the chance of the one before.
        step = (trials - last) / (last + 1) * odds
        later = math.exp(log_chance) * step / (1 - step) if step < 1 else 1 - math.fsum(weights) + 1e-12
        rest += max(later, 1e-300)
    if rest:
        pairs.append(_of_all(loss, trials))
        weights.append(rest)
    return MixturePair(pairs, weights), drawn


def _of_all(loss: PrivacyLoss, times: int) -> Pair:
    """Return a pair for so many steps from neighbor to neighbor: of a pure loss, or the worst of all."""
    try:
        epsilon, delta = loss.pure()
    except UnsupportedView:
        epsilon, delta = math.inf, 0.0
    return two_points(math.inf if delta else times_above(times, epsilon))
