"""Exact counts of rows by cell, and what is left of them that fewer columns do not explain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["centred", "contingency_table", "integer_residual"]


def contingency_table(codes: Codes, sizes: Sequence[int], clique: Clique) -> NDArray[np.int64]:
    """Return how many rows are in each cell of some columns.

    Parameters
    ----------
    codes : int64 array of shape (rows, columns)
    sizes : sequence of int
        Cells of each column.
    clique : tuple of int
        The columns.

    Returns
    -------
    int64 array, an axis for each column

    Examples
    --------
    >>> contingency_table(np.array([[0, 1], [0, 1], [1, 0]]), (2, 2), (0, 1)).tolist()
    [[0, 2], [1, 0]]
    """
    shape = tuple(sizes[place] for place in clique)
    if not clique:
        return np.array(len(codes), np.int64)
    flat = np.ravel_multi_index(tuple(codes[:, place] for place in clique), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.int64)


def integer_residual(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a table times ``n I - J`` along each axis: whole numbers that sum to 0 along it.

    Parameters
    ----------
    table : int64 array
        Of n entries along an axis, J being the matrix of ones.

    Returns
    -------
    int64 array of the same shape

    Examples
    --------
    >>> integer_residual(np.array([3, 0, 1])).tolist()
    [5, -4, -1]
    """
    for axis, size in enumerate(table.shape):
        table = table * size - table.sum(axis=axis, keepdims=True)
    return table


def centred(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a table less its mean along each axis.

    Parameters
    ----------
    table : float64 array

    Returns
    -------
    float64 array of the same shape
    """
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
