r"""The upper triangle of symmetric matrices as a vector, with the same norm: for noisy sums of :math:`zz^T`.

Entries off the diagonal are multiplied by the square root of 2, so that the L2 norm of the vector is the
Frobenius norm of the matrix, which of :math:`zz^T` is :math:`|z|^2`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.query.records import exact_sum

__all__ = ["entries_of", "product_sums", "symmetric_matrix", "triangle", "without_negative_eigenvalues"]

_Array = NDArray[np.float64]
_Places = NDArray[np.intp]


def triangle(size: int) -> tuple[_Places, _Places, _Array]:
    """Return rows, columns and weights of the entries.

    Examples
    --------
    >>> rows, columns, weights = triangle(2)
    >>> rows.tolist(), columns.tolist(), weights.round(2).tolist()
    ([0, 0, 1], [0, 1, 1], [1.0, 1.41, 1.0])
    """
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


def entries_of(matrix: _Array) -> _Array:
    """Return the weighted entries of a symmetric matrix."""
    rows, columns, weights = triangle(len(matrix))
    return np.asarray(matrix[rows, columns] * weights)


def symmetric_matrix(entries: NDArray[Any], size: int) -> _Array:
    """Return the symmetric matrix that weighted entries are of.

    Examples
    --------
    >>> symmetric_matrix(entries_of(np.array([[1.0, 2.0], [2.0, 5.0]])), 2).tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    rows, columns, weights = triangle(size)
    found = np.zeros((size, size))
    found[rows, columns] = found[columns, rows] = entries / weights
    return found


def product_sums(z: _Array, one: int) -> NDArray[np.int64]:
    """Return the weighted entries of the sum of :math:`zz^T`, each record's rounded to steps by itself.

    Parameters
    ----------
    z : float64 array of shape (n, size)
    one : int
        How many steps 1 is.

    Returns
    -------
    int64 array of shape (size * (size + 1) / 2,)
    """
    sums = [
        exact_sum(np.rint(z[:, i] * z[:, j] * (one * weight)).astype(np.int64))
        for i, j, weight in zip(*triangle(z.shape[1]), strict=True)
    ]
    return np.array(sums, np.int64)


def without_negative_eigenvalues(matrix: _Array) -> _Array:
    """Return the nearest matrix that data can have as its moments."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)
