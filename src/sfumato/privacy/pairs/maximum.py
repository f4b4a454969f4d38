r"""The pair whose divergences are the largest among several pairs', at every epsilon.

For a pair (P, Q) let :math:`H(s) = \int (dP - s\,dQ)_+`. A convex falling function with :math:`H(0) = 1` and
:math:`H(s) \ge (1 - s)_+` is that of some pair (Zhu, Dong, Wang 2022), and the pointwise maximum of such
functions is one. Between points where it is known, its chord bounds it from above, and what the chords say
is the function of a discrete distribution: a kink at :math:`s = e^l` by which the slope rises by k is a loss
l of Q-mass k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.pairs.bins import NO_ATOMS, Bins, Points
from sfumato.privacy.pairs.derived import DerivedPair, fine_bins
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss
from sfumato.privacy.pairs.pair import Pair

__all__ = ["MaximumPair", "maximum", "only_atoms"]

_Array = NDArray[np.float64]

_FLOOR: Final = -1e4
"""Log of masses that are zero as floats."""
_MIN_CHANGE: Final = 1e-7


class MaximumPair(DerivedPair):
    """A pair that dominates each of several pairs, with the largest of their divergences.

    Parameters
    ----------
    pairs : sequence of Pair
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = pairs

    @property
    def symmetric(self) -> bool:
        """Whether all pairs are."""
        return all(pair.symmetric for pair in self._pairs)

    @property
    def supremum(self) -> float:
        """The largest of the pairs."""
        return max(pair.supremum for pair in self._pairs)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return a discrete distribution that dominates."""
        distributions = [fine_bins(pair, float(cuts[0]), swapped=swapped).split() for pair in self._pairs]
        return only_atoms(maximum(distributions))


def only_atoms(distribution: DiscreteLoss) -> Bins:
    """Return a discrete pair, given the distribution of its loss; what Q has beside it, P has not."""
    nothing = np.zeros(0)
    nowhere, error = np.zeros(len(distribution.loss)), 8 * UNIT * (1 + np.abs(distribution.log_mass))
    known = float(np.exp(distribution.log_mass - distribution.loss).sum())
    only_q = max(0.0, 1 - known + UNIT * (len(distribution.loss) + 64))
    points = (
        Points(distribution.log_mass, distribution.loss, error, nowhere)
        if len(distribution.loss)
        else NO_ATOMS
    )
    return Bins(
        NO_ATOMS, nothing, nothing, atoms=points, only_p=min(1.0, distribution.infinite), only_q=only_q
    )


def maximum(distributions: Sequence[DiscreteLoss]) -> DiscreteLoss:
    """Return a distribution with divergences at least those of each given one, and about the largest of them.

    Notes
    -----
    The masses come from second differences, which lose digits; so in the end the distribution's own
    divergences are computed, and all its masses raised by what they lack anywhere. Both sides are linear
    between the losses of the distribution, constant above, and begin at 1 or more at s = 0, so comparing them
    at the losses is enough.
    """
    losses = np.unique(
        np.concatenate(
            [distribution.loss[np.isfinite(distribution.log_mass)] for distribution in distributions]
        )
    )
    infinite = max(distribution.infinite for distribution in distributions)
    if not len(losses):
        return DiscreteLoss(losses, losses, infinite)
    wanted = np.max([_log_divergences(distribution, losses) for distribution in distributions], axis=0)
    selected = _apart(wanted)
    losses, wanted = losses[selected], wanted[selected]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Slopes with the sign changed: between two losses, and below the first, where s = 0 has 1.
        falls = wanted[:-1] + _log1mexp(wanted[1:] - wanted[:-1])
        first = min(0.0, float(_log1mexp(wanted[:1])[0] - losses[0]))
        slopes = np.concatenate([[first], falls - losses[:-1] - _log_expm1(np.diff(losses)), [-np.inf]])
        slopes = np.maximum(slopes, np.maximum.accumulate(slopes[::-1])[::-1])
        log_mass = slopes[:-1] + _log1mexp(slopes[1:] - slopes[:-1]) + losses
    log_mass = np.maximum(np.nan_to_num(log_mass, nan=_FLOOR, neginf=_FLOOR), _FLOOR)
    distribution = DiscreteLoss(losses, log_mass, infinite)
    lack = wanted - _log_divergences(distribution, losses)
    missing = max(0.0, float(np.max(lack, where=np.isfinite(lack), initial=0.0)))
    missing += _roundings(wanted) + _roundings(log_mass)
    mass = float(np.exp(log_mass).sum()) + infinite
    missing = max(missing, -math.log(mass) + UNIT * (len(losses) + 64))
    return DiscreteLoss(
        losses, log_mass + missing, above(min(1.0, infinite * math.exp(missing)), 4.0) if infinite else 0.0
    )


def _apart(logs: _Array) -> list[int]:
    """Choose points between which falling values change by much more than round-off; the last one too."""
    values, selected = logs.tolist(), [0]
    for i, value in enumerate(values):
        if value < values[selected[-1]] - _MIN_CHANGE:
            selected.append(i)
    return selected if selected[-1] == len(values) - 1 else [*selected, len(values) - 1]


def _roundings(logs: _Array) -> float:
    """Bound the error of running sums of so many terms, by their logarithms."""
    largest = float(np.max(np.abs(logs), where=np.isfinite(logs), initial=1.0))
    return 16 * UNIT * (len(logs) + 64) * min(largest, 1e4)


def _log_divergences(distribution: DiscreteLoss, losses: _Array) -> _Array:
    """Return log H at the exponentials of rising losses, among which are all of the distribution's."""
    log_q = np.full(len(losses), -np.inf)
    selected = np.isfinite(distribution.log_mass)
    np.logaddexp.at(
        log_q,
        np.searchsorted(losses, distribution.loss[selected]),
        (distribution.log_mass - distribution.loss)[selected],
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        # From the top: H rises by the Q-mass above times the step in s.
        above_it = np.logaddexp.accumulate(log_q[:0:-1])[::-1]
        rises = above_it + losses[:-1] + _log_expm1(np.diff(losses))
        last = math.log(distribution.infinite) if distribution.infinite > 0 else -math.inf
        return np.asarray(np.logaddexp.accumulate(np.concatenate([[last], rises[::-1]]))[::-1])


def _log_expm1(x: _Array) -> _Array:
    """Return log(exp(x) - 1) for positive x."""
    return np.asarray(np.where(x > 30, x, np.log(np.expm1(np.minimum(x, 30.0)))))


def _log1mexp(x: _Array) -> _Array:
    """Return log(1 - exp(x)) for negative x."""
    return np.asarray(np.log(-np.expm1(np.minimum(x, 0.0))))
