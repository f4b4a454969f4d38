"""Common base of pairs with a bounded loss, binned by loss."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import below
from sfumato.privacy.pairs.pair import Pair

__all__ = ["BoundedPair"]

_Array = NDArray[np.float64]

_COARSE: Final = 96


class BoundedPair(Pair):
    """A pair with losses from minus ``bound`` to ``bound``, whose masses between any two are exact.

    Parameters
    ----------
    bound : float
        The largest loss, positive and finite.
    """

    __slots__ = ("_bound",)

    def __init__(self, bound: float) -> None:
        self._bound = bound

    @property
    def supremum(self) -> float:
        """The largest loss."""
        return below(self._bound)

    def cuts(self, reach: float) -> _Array:
        """Return cuts of all losses."""
        del reach
        return np.linspace(-self._bound, self._bound, _COARSE + 1)

    def rate(self, cuts: _Array) -> _Array:
        """Return a few bins in all: every cut is exact."""
        return np.full(len(cuts) - 1, 8 / self._bound)
