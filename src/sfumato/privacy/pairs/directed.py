"""One order of a pair: P against Q without Q against P."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.pairs.bins import Bins
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.wrapped import WrappedPair

__all__ = ["DirectedPair", "directed"]

_Array = NDArray[np.float64]


class DirectedPair(WrappedPair):
    """A pair of which one order is accounted for; it calls itself symmetric, so that the other is not.

    Parameters
    ----------
    base : Pair
    """

    __slots__ = ()

    symmetric = True
    """Said, not proven: whoever asks wants one order."""

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the base's bins."""
        del swapped
        return self._base.bins(cuts, swapped=False)

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        """Return the base's bounds."""
        del swapped
        return self._base.log_tail(tilts, cuts, swapped=False)


class _ReversedPair(DirectedPair):
    """The other order; its outcomes are those of the base with their signs changed, so that losses rise."""

    __slots__ = ()

    def cuts(self, reach: float) -> _Array:
        return _mirrored(self._base.cuts(reach))

    def snapped(self, cuts: _Array) -> _Array:
        return _mirrored(self._base.snapped(_mirrored(cuts)))

    def rate(self, cuts: _Array) -> _Array:
        return self._base.rate(_mirrored(cuts))[::-1]

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        del swapped
        bins = self._base.bins(_mirrored(cuts), swapped=True)
        return replace(bins, against=not bins.against)  # against these cuts, not the base's

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        del swapped
        return self._base.log_tail(tilts, _mirrored(cuts), swapped=True)


def directed(pair: Pair, *, swapped: bool) -> DirectedPair:
    """Return one order of a pair."""
    return _ReversedPair(pair) if swapped and not pair.symmetric else DirectedPair(pair)


def _mirrored(cuts: _Array) -> _Array:
    return np.asarray(-cuts[::-1])
