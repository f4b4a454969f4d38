"""The Walsh-Hadamard transform of whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["walsh"]


def walsh(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Transform each row, in place, and return the array.

    Parameters
    ----------
    rows : contiguous int64 array, shape (rows, a power of two)
        Entry x of a row becomes the sum of all its entries, those at indices that share an odd number of bits
        with x negative.

    Examples
    --------
    >>> walsh(np.array([[3, 1, 0, 2]])).tolist()
    [[6, 0, 2, 4]]
    """
    half = 1
    while half < rows.shape[1]:
        pairs = rows.reshape(-1, 2, half)
        first, second = pairs[:, 0], pairs[:, 1]
        first += second
        second *= -2
        second += first
        half *= 2
    return rows
