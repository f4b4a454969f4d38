"""Non-negative regressions on a sparse design matrix: with a penalty, to choose, and without, to fit."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.sparse import csr_matrix

from sfumato.local.frequency.variance import Array

__all__ = ["DesignMatrix", "lasso", "nonnegative"]

_ROUNDS: Final = 400
_CLOSE: Final = 1e-5
_POWER_ROUNDS: Final = 30
_RANK: Final = 1e-10


class DesignMatrix:
    """A sparse design whose columns are taken free of one dense column, without writing that out.

    Parameters
    ----------
    matrix : scipy.sparse.csr_matrix, shape (rows, columns)
    free : array, shape (rows,)
        The column whose coefficient is not restricted.
    """

    __slots__ = ("_back", "_columns", "_part", "_unit", "matrix", "norms")

    def __init__(self, matrix: csr_matrix, free: Array) -> None:
        self.matrix = matrix
        self._unit = free / np.linalg.norm(free)
        self._columns: Any = matrix.tocsc()
        self._back = matrix.T.tocsr()
        self._part = self._back @ self._unit
        squares = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
        self.norms = np.sqrt(np.maximum(squares - self._part**2, 0.0))

    def apart(self, rows: Array) -> Array:
        """Return a vector of rows without its part along the free column."""
        return np.asarray(rows - self._unit * (self._unit @ rows))

    def times(self, coefficients: Array) -> Array:
        """Return the design times coefficients."""
        return np.asarray(self.matrix @ coefficients - self._unit * (self._part @ coefficients))

    def back(self, rows: Array) -> Array:
        """Return the transposed design times a vector of rows that is free of the free column."""
        return np.asarray(self._back @ rows)

    def gram(self, chosen: NDArray[np.int64]) -> Array:
        """Return the inner products of some columns."""
        part: Any = self._columns[:, chosen]
        return np.asarray((part.T @ part).toarray() - np.outer(self._part[chosen], self._part[chosen]))

    def greatest(self) -> float:
        """Return about the largest eigenvalue of the Gram matrix, from below (power iteration)."""
        vector = np.random.default_rng(1).normal(size=self.matrix.shape[1])
        value = 0.0
        for _ in range(_POWER_ROUNDS):
            vector /= np.linalg.norm(vector)
            vector = self.back(self.times(vector))
            value = float(np.linalg.norm(vector))
        return value


def lasso(design: DesignMatrix, target: Array, penalties: Array) -> Array:
    r"""Return the :math:`b \ge 0` that nearly minimize :math:`\frac12 |y - Xb|^2 + \sum_j \lambda_j b_j`.

    Parameters
    ----------
    design : DesignMatrix
        X.
    target : array
        y, free of the free column.
    penalties : array
        The lambdas.

    Notes
    -----
    Accelerated proximal gradient steps (Beck, Teboulle 2009), begun anew when they lead uphill (O'Donoghue,
    Candès 2015), until no coefficient moves by more than 1e-5 of the largest; at most 400.
    """
    step = 1 / (1.05 * design.greatest())
    found = np.zeros(len(penalties))
    ahead, pace = found, 1.0
    start = design.back(target)
    for _ in range(_ROUNDS):
        slope = design.back(design.times(ahead)) - start
        new = np.maximum(ahead - step * (slope + penalties), 0.0)
        moved = new - found
        if (ahead - new) @ moved > 0:
            pace = 1.0
        faster = (1 + np.sqrt(1 + 4 * pace * pace)) / 2
        ahead = new + (pace - 1) / faster * moved
        found, pace = new, faster
        if abs(moved).max() <= _CLOSE * max(found.max(), 1e-300):
            break
    return found


def nonnegative(gram: Array, products: Array) -> Array:
    """Return non-negative least squares from inner products (Lawson, Hanson 1974).

    Parameters
    ----------
    gram : array, shape (columns, columns)
        Inner products of the columns.
    products : array, shape (columns,)
        Those with the target.
    """
    values, vectors = np.linalg.eigh(gram)
    retained = values > _RANK * max(values.max(), 1e-300)
    roots = np.sqrt(values[retained])
    root = vectors[:, retained] * roots
    found, _ = nnls(root.T, (vectors[:, retained].T @ products) / roots, maxiter=30 * len(products) + 30)
    return np.asarray(found)
