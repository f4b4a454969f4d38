"""Exact counts of rows by cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["contingency_table"]


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
