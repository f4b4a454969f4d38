"""Common base of pairs that wrap another pair and delegate to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.pairs.bins import Bins
from sfumato.privacy.pairs.pair import Pair

__all__ = ["LoosePair", "WrappedPair"]

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
