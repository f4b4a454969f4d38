"""Integer residuals, by their definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["integer_residual"]


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
