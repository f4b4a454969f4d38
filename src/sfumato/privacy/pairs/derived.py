"""Pairs that are computed from other pairs through a fine discretisation."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.pairs.bins import Bins
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss
from sfumato.privacy.pairs.pair import Pair, UncutPair

__all__ = ["DerivedPair", "fine_bins", "fine_cuts", "one_run"]

_Array = NDArray[np.float64]

_BINS: Final = 2000
_NEAR: Final = 12.0
_FAR: Final = 30.0
"""Standard deviations: beyond, there is less than 1e-195."""


class Paired(Protocol):
    """A loss with a dominating pair."""

    def dominating_pair(self) -> Pair:
        """Return two distributions that dominate the outputs on any two neighbors."""

    def __hash__(self) -> int:
        """Return the hash of what was run."""


def fine_bins(pair: Pair, reach: float, *, swapped: bool) -> Bins:
    """Cut a pair into some thousand bins, all in one go."""
    return pair.bins(fine_cuts(pair, reach), swapped=swapped)


@lru_cache(maxsize=64)
def one_run(loss: Paired) -> tuple[DiscreteLoss, ...]:
    """Return upper distributions of one run's loss, in each order that differs."""
    pair = loss.dominating_pair()
    cuts = fine_cuts(pair, _FAR)
    with np.errstate(all="ignore"):
        orders = (False,) if pair.symmetric else (False, True)
        return tuple(pair.bins(cuts, swapped=swapped).split() for swapped in orders)


def fine_cuts(pair: Pair, reach: float, bins: int = _BINS) -> _Array:
    """Return the coarse cuts of a pair and some more between each two, the more the farther one looks."""
    cuts = pair.cuts(reach)
    if not pair.continuous or len(cuts) < 2:
        return cuts
    steps = np.diff(cuts)
    pieces = math.ceil(bins * max(1.0, reach / _NEAR) / len(steps))
    return pair.finer(cuts, np.maximum(np.ceil(pair.rate(cuts) * steps), pieces))


class DerivedPair(UncutPair):
    """A pair whose outcomes are cut where it chooses; the first of its cuts only says how far to look."""

    __slots__ = ()

    @property
    def tight(self) -> bool:
        """Whether the pair is that of two neighbors; not, unless a subclass knows it."""
        return False

    def cuts(self, reach: float) -> _Array:
        """Return how far to look."""
        return np.array([reach])
