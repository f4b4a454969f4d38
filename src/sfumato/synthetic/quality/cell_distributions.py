"""Tables of one domain side by side: how the rows of each are distributed over cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["CellDistributions", "cell_distributions", "total_variation"]

_DENSE: Final = 1 << 16
_CELLS: Final = 1 << 62


class CellDistributions(NamedTuple):
    """Proportions of rows by cells of some columns, for several tables.

    Parameters
    ----------
    proportions : tuple of float64 array of shape (cells,)
        Of each table, over the cells that some row is in; NaN for a table without rows.
    cells : int64 array of shape (columns, cells)
        Each column's part of a cell.
    """

    proportions: tuple[NDArray[np.float64], ...]
    cells: NDArray[np.int64]


def cell_distributions(
    tables: Sequence[Codes],
    sizes: Sequence[int],
    clique: Clique,
    weights: Sequence[NDArray[np.int64] | None] | None = None,
) -> CellDistributions:
    """Return how the rows of tables are distributed over the cells of some columns.

    Parameters
    ----------
    tables : sequence of int64 array of shape (rows, columns)
    sizes : sequence of int
        Cells of each column.
    clique : tuple of int
        The columns, by number.
    weights : sequence of int64 array or None, optional
        How often each row of a table counts; once unless given.

    Returns
    -------
    CellDistributions

    Raises
    ------
    ParameterError
        If the cells are 2**62 or more.

    Examples
    --------
    >>> found = cell_distributions([np.array([[0, 1], [0, 0]]), np.array([[1, 1]])], (2, 2), (0, 1))
    >>> [each.tolist() for each in found.proportions]
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """
    shape = tuple(sizes[place] for place in clique)
    if math.prod(shape) >= _CELLS:
        _check.refuse_state(
            "workload", "be of tables of less than 2**62 cells", "one is larger", "take fewer columns"
        )
    flat = [
        np.ravel_multi_index(tuple(codes[:, place] for place in clique), shape)
        if clique
        else np.zeros(len(codes), np.int64)
        for codes in tables
    ]
    cells = np.arange(math.prod(shape)) if math.prod(shape) <= _DENSE else np.unique(np.concatenate(flat))
    proportions = []
    for index, weight in zip(flat, weights or [None] * len(flat), strict=True):
        place = index if math.prod(shape) <= _DENSE else np.searchsorted(cells, index)
        counts = np.bincount(place, weight, len(cells)).astype(np.float64)
        total = counts.sum()
        proportions.append(counts / total if total else np.full(len(cells), math.nan))
    coordinates = np.array(np.unravel_index(cells, shape)) if clique else np.zeros((0, 1), np.int64)
    return CellDistributions(tuple(proportions), coordinates.astype(np.int64))


def total_variation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the total variation distance of two distributions on the same cells.

    What either lacks to a sum of 1 is taken to be in cells where the other has nothing.

    Parameters
    ----------
    first, second : float64 array

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> total_variation(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    0.5
    """
    elsewhere = sum(max(0.0, 1 - float(each.sum())) for each in (first, second))
    return float(np.clip((np.abs(first - second).sum() + elsewhere) / 2, 0, 1))
