"""Sums of reported vectors, and of their squares or of all products of two parts, in whole numbers."""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.vector.random_vectors import PIECE
from sfumato.local.frequency.variance import Array

__all__ = ["VectorMoments"]

_WIDEST: Final = 1 << 10
"""Products of pairs are stored for up to so many dimensions: four megabytes."""


@final
class VectorMoments:
    """Which sums are stored of vectors of some dimension.

    Parameters
    ----------
    dimension : int
    pairs : bool
        Whether products of all pairs of parts are summed up, instead of the squares alone.
    """

    __slots__ = ("dimension", "pairs")

    def __init__(self, dimension: int, pairs: bool) -> None:
        if not isinstance(pairs, bool):
            _check.refuse("pairs", "be True or False", pairs, "pass pairs=True")
        if pairs and dimension > _WIDEST:
            rule = f"be False for more than {_WIDEST} dimensions"
            _check.refuse("pairs", rule, pairs, "leave it out: variances need no pairs")
        self.dimension, self.pairs = dimension, pairs

    @property
    def size(self) -> int:
        """How many sums are stored."""
        d = self.dimension
        return d + (d * (d + 1) // 2 if self.pairs else d)

    @property
    def rows(self) -> int:
        """How many vectors to add up at a time: few enough for the cache, and for products to be exact."""
        return max(1, PIECE // self.dimension)

    def of(self, reported: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums of at most `rows` vectors.

        Notes
        -----
        In units of 2^-12 squares of parts are at most 2^24 times the dimension on a sphere and below 2^31 of
        a normal vector: as many of them as there are rows add up to less than 2^53, where floats are exact.
        """
        sums = reported.sum(axis=0)
        if not self.pairs:
            return np.concatenate([sums, (reported * reported).sum(axis=0)])
        parts = reported.astype(np.float64)
        products = (parts.T @ parts).astype(np.int64)
        return np.concatenate([sums, products[np.triu_indices(self.dimension)]])

    def squares(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums of squares."""
        retained = sums[self.dimension :]
        if not self.pairs:
            return retained
        first, second = np.triu_indices(self.dimension)
        return np.asarray(retained[first == second])

    def products(self, sums: NDArray[np.int64]) -> Array:
        """Return the matrix of the sums of products."""
        found = np.zeros((self.dimension, self.dimension))
        upper = np.triu_indices(self.dimension)
        found[upper] = sums[self.dimension :]
        return np.asarray(found + np.triu(found, 1).T)
