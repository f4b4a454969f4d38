"""Pairs made from other pairs, which are cut finely once and for all."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.pairs.atoms import Atoms
from sfumato.privacy.pairs.bins import Bins
from sfumato.privacy.pairs.pair import Pair

__all__ = ["DerivedPair", "LoosePair", "fine_bins", "fine_cuts", "one_run"]

_Array = NDArray[np.float64]

_BINS: Final = 2000
_NEAR: Final = 12.0
_FAR: Final = 30.0
"""Standard deviations: beyond, there is less than 1e-195."""


class Paired(Protocol):
    """A loss with a dominating pair."""

    def dominating_pair(self) -> Pair:
        """Return two laws that dominate the outputs on any two neighbors."""

    def __hash__(self) -> int:
        """Return the hash of what was run."""


def fine_bins(pair: Pair, reach: float, *, swapped: bool) -> Bins:
    """Cut a pair into some thousand bins, all in one go."""
    return pair.bins(fine_cuts(pair, reach), swapped=swapped)


@lru_cache(maxsize=64)
def one_run(loss: Paired) -> tuple[Atoms, ...]:
    """Return laws from above of one run's loss, in each order that differs; see `profile.log_profile`."""
    pair = loss.dominating_pair()
    cuts = fine_cuts(pair, _FAR)
    with np.errstate(all="ignore"):
        orders = (False,) if pair.symmetric else (False, True)
        return tuple(pair.bins(cuts, swapped=swapped).split() for swapped in orders)


def fine_cuts(pair: Pair, reach: float) -> _Array:
    """Return the coarse cuts of a pair and some more between each two, the more the farther one looks."""
    cuts = pair.cuts(reach)
    if not pair.continuous or len(cuts) < 2:
        return cuts
    steps = np.diff(cuts)
    pieces = np.maximum(
        np.ceil(pair.rate(cuts) * steps), math.ceil(_BINS * max(1.0, reach / _NEAR) / len(steps))
    )
    ends = np.concatenate([[0.0], np.cumsum(pieces)])
    return pair.snapped(np.interp(np.arange(ends[-1] + 1), ends, cuts))


class DerivedPair(Pair):
    """A pair whose outcomes are cut where it chooses; the first of its cuts only tells how far to look."""

    __slots__ = ()

    @property
    def continuous(self) -> bool:
        """The cuts are fixed."""
        return False

    @property
    def tight(self) -> bool:
        """Whether the pair is that of two neighbors; not, unless a subclass knows it."""
        return False

    def cuts(self, reach: float) -> _Array:
        """Return how far to look."""
        return np.array([reach])

    def rate(self, cuts: _Array) -> _Array:
        """Return nothing: there is no other cut."""
        return np.zeros(len(cuts) - 1)


class LoosePair(Pair):
    """The same pair, known only to dominate.

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
        """Never."""
        return False

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
