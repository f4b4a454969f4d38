"""What is measured of one column's cells beside their sum, and the noise that this leaves in answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.optimal_strategy import optimal_strategy
from sfumato.numerics.blas_threads import one_thread
from sfumato.synthetic.domain.attributes import Ordered
from sfumato.synthetic.marginals.ordered_queries import MOST_ORDERED_CELLS, OrderedQueries

__all__ = ["CellStrategy", "ColumnStrategy", "RangeStrategy", "along", "ordered_strategy", "squared_shift"]

Array: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_BITS: Final = 5


class ColumnStrategy(ABC):
    """Whole-numbered linear queries on the cells of a column, which determine all but one direction.

    Notes
    -----
    Let S be its matrix and u the vector with :math:`S u = 0` and :math:`1^T u = 1`. Counts x are the sum of
    :math:`(1^T x) u` and of :math:`r = x - (1^T x) u`, which adds up to 0; S x is S r, and r follows from it
    as :math:`(I - u 1^T) S^+ (S r)`.
    """

    @property
    @abstractmethod
    def unit(self) -> int:
        """What noise is a multiple of, so that strategies with other whole numbers compare."""

    @property
    @abstractmethod
    def largest(self) -> int:
        """The largest square of a cell's column of the matrix in L2 norm."""

    @property
    @abstractmethod
    def smallest(self) -> int:
        """The smallest inner product of two cells' columns of the matrix."""

    @property
    @abstractmethod
    def base(self) -> Array:
        """How rows are divided over the cells where only their number is known: u, or its one value."""

    @property
    @abstractmethod
    def covariance(self) -> Array | None:
        """That of the cells where the noise of a measurement is one unit; None for ``I - J/n``."""

    @abstractmethod
    def measured(self, table: Integers, axis: int) -> Integers:
        """Return the matrix times an axis of a table, modulo 2**64."""

    @abstractmethod
    def estimated(self, measured: Array, axis: int) -> Array:
        """Return what measurements, in units, say of the cells along an axis, beside the number of rows."""

    @abstractmethod
    def variances(self, weights: Array | None = None) -> Array:
        """Return the variance of weighted sums of cells, of the cells themselves unless weights are given.

        The noise of each measurement has the variance of one unit squared.
        """

    @abstractmethod
    def magnitudes(self, weights: Array | None = None) -> Array:
        """Return the sums of magnitudes by which measurements, in units, are in weighted sums of cells."""

    def bases(self, weights: Array | None = None) -> Array:
        """Return what the number of rows alone says of weighted sums of cells."""
        return self.base if weights is None else weights @ np.broadcast_to(self.base, weights.shape[1])


@final
@dataclass(frozen=True, slots=True)
class CellStrategy(ColumnStrategy):
    """All cells alike: the matrix is ``n I - J``, J being the matrix of ones.

    Parameters
    ----------
    cells : int
    """

    cells: int

    @property
    def unit(self) -> int:
        """The number of cells."""
        return self.cells

    @property
    def largest(self) -> int:
        """N (n - 1)."""
        return self.cells * (self.cells - 1)

    @property
    def smallest(self) -> int:
        """-n, of any two columns."""
        return -self.cells

    @property
    def base(self) -> Array:
        """The same in all cells."""
        return np.array([1 / self.cells])

    @property
    def covariance(self) -> None:
        """None: it follows from the number of cells."""
        return

    def measured(self, table: Integers, axis: int) -> Integers:
        """Return n times each count less the sum along the axis."""
        return np.asarray(table * self.cells - table.sum(axis=axis, keepdims=True))

    def estimated(self, measured: Array, axis: int) -> Array:
        """Return measurements less their mean along the axis."""
        return np.asarray(measured - measured.mean(axis=axis, keepdims=True))

    def variances(self, weights: Array | None = None) -> Array:
        """Return those of the projection that takes the mean off."""
        if weights is None:
            return np.array([(self.cells - 1) / self.cells])
        return np.asarray(np.square(weights).sum(axis=1) - np.square(weights.sum(axis=1)) / self.cells)

    def magnitudes(self, weights: Array | None = None) -> Array:
        """Return the sums of magnitudes of weights, each less their mean."""
        if weights is None:
            return np.array([2 * (self.cells - 1) / self.cells])
        return np.asarray(np.abs(weights - weights.mean(axis=1, keepdims=True)).sum(axis=1))


@final
@dataclass(frozen=True, slots=True, eq=False)
class RangeStrategy(ColumnStrategy):
    """Whole-numbered queries for prefixes or ranges of a column.

    Parameters
    ----------
    matrix : int64 array of shape (cells - 1, cells)
        Of full row rank; at most 1,024 cells, and magnitudes below 2**21.

    Raises
    ------
    ParameterError
        If it is no such matrix, or says nothing of some sums of cells.
    """

    matrix: Integers
    _gram: Array = field(init=False, repr=False)
    _base: Array = field(init=False, repr=False)
    _decoder: Array = field(init=False, repr=False)

    @one_thread()
    def __post_init__(self) -> None:
        rows, cells = self.matrix.shape
        floats = self.matrix.astype(np.float64)
        fits = 1 <= rows == cells - 1 < MOST_ORDERED_CELLS and float(np.abs(floats).max()) < 1 << 21
        sizes, directions = (np.zeros(1), floats) if not fits else np.linalg.svd(floats)[1:]
        base = directions[-1]
        if sizes[-1] * 1e7 <= sizes[0] or abs(float(base.sum())) < 1e-6:
            rule, remedy = "determine sums of cells but for their number", "pass what sfumato wrote"
            _check.refuse_state("matrix", rule, "it does not", remedy)
        base = base / base.sum()
        decoder = np.linalg.pinv(floats)
        decoder -= np.outer(base, decoder.sum(axis=0))
        # Partial sums are whole numbers below 2**53, so that floats hold the products in any order.
        object.__setattr__(self, "_gram", floats.T @ floats)
        object.__setattr__(self, "_base", base)
        object.__setattr__(self, "_decoder", decoder * self.unit)

    @property
    def unit(self) -> int:
        """As many as there are cells, with bits to spare."""
        return _unit(self.matrix.shape[1])

    @property
    def largest(self) -> int:
        """The largest entry of its Gram matrix's diagonal."""
        return int(self._gram.diagonal().max())

    @property
    def smallest(self) -> int:
        """The smallest entry of its Gram matrix."""
        return int(self._gram.min())

    @property
    def base(self) -> Array:
        """The vector that the matrix takes to 0, with the sum 1."""
        return self._base

    @property
    def covariance(self) -> Array:
        """That of the least squares estimate."""
        return np.asarray(self._decoder @ self._decoder.T)

    def measured(self, table: Integers, axis: int) -> Integers:
        """Return the matrix times the axis, modulo 2**64."""
        return np.asarray(along(self.matrix, table, axis))

    def estimated(self, measured: Array, axis: int) -> Array:
        """Return the least squares estimate, which adds up to 0 along the axis."""
        return np.asarray(along(self._decoder, measured, axis))

    def variances(self, weights: Array | None = None) -> Array:
        """Return those of sums of the decoder's rows."""
        return np.asarray(np.square(self._rows(weights)).sum(axis=1))

    def magnitudes(self, weights: Array | None = None) -> Array:
        """Return those of sums of the decoder's rows."""
        return np.asarray(np.abs(self._rows(weights)).sum(axis=1))

    def _rows(self, weights: Array | None) -> Array:
        return self._decoder if weights is None else weights @ self._decoder


def along(matrix: NDArray[Any], table: NDArray[Any], axis: int) -> NDArray[Any]:
    """Multiply one axis of a table by a matrix.

    Examples
    --------
    >>> along(np.array([[1, 1]]), np.array([[1, 2], [3, 4]]), 1).tolist()
    [[3], [7]]
    """
    return np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)


def squared_shift(strategies: Sequence[ColumnStrategy], *, two: bool) -> int:
    r"""Return the square of the L2 norm by which one row moves a product of strategies.

    Parameters
    ----------
    strategies : sequence of ColumnStrategy
        One for each column.
    two : bool
        Whether a row is replaced, so that two cells move; else it is added or removed.

    Returns
    -------
    int

    Notes
    -----
    A row moves what is measured by the product of the columns of its cells, whose squared norms are at most
    :math:`m_i`; call their product P. The inner product of those of two rows is a product of inner products,
    each between its smallest one :math:`s_i` and :math:`m_i`, and of magnitude at most :math:`m_i`. If it is
    negative, so is one of its factors, and it is at least :math:`P s_i/m_i`. The squared norm of the
    difference is at most :math:`2P - 2 P s_i/m_i`, for the column with the smallest ratio. Of a row that is
    replaced by one that is not counted it is at most P.

    Examples
    --------
    >>> both = [CellStrategy(2), CellStrategy(3)]
    >>> squared_shift(both, two=False), squared_shift(both, two=True)
    (12, 48)
    """
    alone = prod(each.largest for each in strategies)
    if not two or not strategies:  # the number of counted rows moves by 1 at most
        return alone
    return 2 * alone - 2 * min(0, *(alone // each.largest * each.smallest for each in strategies))


def _unit(cells: int) -> int:
    return 1 << (cells.bit_length() + _BITS)


def ordered_strategy(attribute: Ordered, queries: OrderedQueries) -> RangeStrategy:
    r"""Return the strategy whose answers to all prefixes or ranges have the least squared error.

    Parameters
    ----------
    attribute : Ordered
        Of at least two cells.
    queries : OrderedQueries

    Returns
    -------
    RangeStrategy

    Notes
    -----
    `optimal_strategy` finds the Gram matrix X, with a diagonal of 1, of nearly the best linear measurement
    for the column alone. With :math:`u = X^{-1} 1/v` and :math:`v = 1^T X^{-1} 1`, X is
    :math:`1 1^T/v + Y`, where :math:`Y u = 0`: it measures the number of rows, with variance v, and by the
    rest of it Y what is independent of that. A root of Y is rounded to whole numbers.
    """
    return _ordered_strategy(queries, attribute.size, attribute.missing)


@lru_cache(maxsize=32)
@one_thread()
def _ordered_strategy(queries: OrderedQueries, cells: int, missing: bool) -> RangeStrategy:
    gram = queries.gram(Ordered.integers(0, cells - 1 - missing, missing=missing))
    sizes, directions = np.linalg.eigh(gram)
    found = optimal_strategy(np.sqrt(np.maximum(sizes, 0))[:, None] * directions.T).strategy
    product = found.T @ found
    rest = np.linalg.solve(product, np.ones(cells))
    sizes, directions = np.linalg.eigh(product - 1 / rest.sum())
    root = np.sqrt(np.maximum(sizes[1:], 0))[:, None] * directions[:, 1:].T
    return RangeStrategy(np.rint(root * _unit(cells)).astype(np.int64))
