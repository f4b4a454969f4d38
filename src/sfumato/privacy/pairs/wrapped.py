"""Pairs that wrap another pair: one that only dominates, and one with an additional mass of total failure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.pairs.bins import Bins, Mass, Points
from sfumato.privacy.pairs.pair import Pair

__all__ = ["FailureMassPair", "LoosePair", "WrappedPair"]

_Array = NDArray[np.float64]


class WrappedPair(Pair):
    """A pair with the outcomes of its base.

    Parameters
    ----------
    base : Pair
    """

    __slots__ = ("_base",)

    def __init__(self, base: Pair) -> None:
        self._base = base

    @property
    def variance(self) -> float:
        """That of the base."""
        return self._base.variance

    @property
    def symmetric(self) -> bool:
        """Whether the base is."""
        return self._base.symmetric

    @property
    def tight(self) -> bool:
        """Whether the base is."""
        return self._base.tight

    @property
    def supremum(self) -> float:
        """That of the base."""
        return self._base.supremum

    @property
    def continuous(self) -> bool:
        """Whether the base is."""
        return self._base.continuous

    def cuts(self, reach: float) -> _Array:
        """Return the base's cuts."""
        return self._base.cuts(reach)

    def snapped(self, cuts: _Array) -> _Array:
        """Return what the base makes of them."""
        return self._base.snapped(cuts)

    def rate(self, cuts: _Array) -> _Array:
        """Return the base's rate."""
        return self._base.rate(cuts)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the base's bins."""
        return self._base.bins(cuts, swapped=swapped)

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        """Return the base's bounds."""
        return self._base.log_tail(tilts, cuts, swapped=swapped)


class LoosePair(WrappedPair):
    """The same pair, known only to dominate.

    Parameters
    ----------
    base : Pair
    """

    __slots__ = ()

    tight = False
    """Never."""


class FailureMassPair(LoosePair):
    r"""With probability ``mass`` everything is revealed, otherwise the base pair holds; an upper bound.

    Parameters
    ----------
    base : Pair
    mass : float
        In [0, 1), already rounded up; 0 gives the base as a pair that only dominates.

    Notes
    -----
    :math:`H(s) = m + (1 - m) H_0(s)` for the hockey-stick divergences. It is at least :math:`H_0`, and at
    least :math:`m + (1 - m)(1 - s)_+`, the largest of two distributions that are equal but for a mass
    :math:`m`: so it dominates two neighbors if they are dominated by the base, and also if with probability
    :math:`1 - m` they give the same answers.
    """

    __slots__ = ("_mass",)

    def __init__(self, base: Pair, mass: float = 0.0) -> None:
        super().__init__(base)
        self._mass = mass

    variance = 0.0
    """None: what reveals everything is not normal."""

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the base's bins with less mass."""
        bins = self._base.bins(cuts, swapped=swapped)
        if self._mass == 0:
            return bins
        log_rest = float(np.log1p(-self._mass))
        return replace(
            bins,
            points=_scaled(bins.points, log_rest),
            atoms=_scaled(bins.atoms, log_rest),
            low=Mass(bins.low.log_p + log_rest, bins.low.log_q + log_rest),
            high=Mass(bins.high.log_p + log_rest, bins.high.log_q + log_rest),
            only_p=above(self._mass + (1 - self._mass) * bins.only_p, 4.0),
            only_q=above(self._mass + (1 - self._mass) * bins.only_q, 4.0),
        )


def _scaled(points: Points, log_factor: float) -> Points:
    log_p = points.log_p + log_factor
    error = points.mass_error + UNIT * (4 * abs(log_factor) + np.abs(log_p))
    return Points(log_p, points.loss, error, points.loss_error)
