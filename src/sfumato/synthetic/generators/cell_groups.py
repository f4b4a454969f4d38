"""Cells that are rare in a released table, merged into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.graphical_model.calibration import Array
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["CellGroups", "merged_below"]

_Number = TypeVar("_Number", np.int64, np.float64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellGroups:
    """For each column the group that each of its cells is in.

    Parameters
    ----------
    groups : sequence of int64 array
        Numbers from 0; each group has a cell.

    Examples
    --------
    >>> groups = CellGroups([np.array([0, 1, 2, 2])])
    >>> groups.sizes, groups.merged(np.array([5, 6, 1, 3]), (0,)).tolist()
    ((3,), [5, 6, 4])
    >>> groups.expanded(np.array([0.5, 0.25, 0.25]), (0,)).tolist()
    [0.5, 0.25, 0.125, 0.125]
    """

    groups: Sequence[NDArray[np.int64]]

    @classmethod
    def single(cls, sizes: Sequence[int]) -> CellGroups:
        """Return groups of one cell each.

        Parameters
        ----------
        sizes : sequence of int

        Returns
        -------
        CellGroups
        """
        return cls([np.arange(size) for size in sizes])

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many groups each column has."""
        return tuple(int(group.max()) + 1 for group in self.groups)

    def merged(self, table: NDArray[_Number], columns: Clique) -> NDArray[_Number]:
        """Return a table of cells as a table of groups, by adding.

        Parameters
        ----------
        table : array, an axis for each column
        columns : tuple of int

        Returns
        -------
        array of the same type
        """
        for axis, column in enumerate(columns):
            if not self._trivial(column):
                order, starts = self._order(column)
                table = np.add.reduceat(table.take(order, axis), starts, axis)
        return table

    def expanded(self, table: Array, columns: Clique) -> Array:
        """Return a table of groups as a table of cells, those of a group alike.

        Parameters
        ----------
        table : array, an axis for each column
        columns : tuple of int

        Returns
        -------
        array
        """
        for axis, column in enumerate(columns):
            if not self._trivial(column):
                group = self.groups[column]
                counts = np.bincount(group)
                shape = [-1 if each == axis else 1 for each in range(table.ndim)]
                table = (table / counts.reshape(shape)).take(group, axis)
        return table

    def decoded(
        self, rows: NDArray[np.int32], rng: np.random.Generator, allowed: Mapping[int, NDArray[np.bool_]]
    ) -> NDArray[np.int64]:
        """Return rows of groups as rows of cells, each a uniform one of its group.

        Parameters
        ----------
        rows : int32 array of shape (rows, columns)
        rng : numpy Generator
        allowed : mapping of int to bool array
            By column, which cells may be drawn; all unless given.

        Returns
        -------
        int64 array of shape (rows, columns)
        """
        cells = np.empty(rows.shape, np.int64, order="F")
        for column in range(rows.shape[1]):
            order, _ = self._order(column)
            if column in allowed:
                order = order[allowed[column][order]]
            counts = np.bincount(self.groups[column][order], minlength=self.sizes[column])
            starts, drawn = np.cumsum(counts) - counts, rows[:, column]
            if counts.max() <= 1:
                cells[:, column] = order[starts[drawn]]
            else:
                within = (rng.random(len(drawn)) * counts[drawn]).astype(np.int64)
                cells[:, column] = order[starts[drawn] + within]
        return cells

    def _trivial(self, column: int) -> bool:
        """Whether each cell is its own group, of the same number."""
        return np.array_equal(self.groups[column], np.arange(len(self.groups[column])))

    def _order(self, column: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return a column's cells by group, and where each group begins."""
        group = self.groups[column]
        counts = np.bincount(group)
        return np.argsort(group, kind="stable"), np.cumsum(counts) - counts


def merged_below(counts: Array, least: float, classes: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return groups in which all cells with a smaller released count are one.

    Parameters
    ----------
    counts : array of shape (cells,)
    least : float
    classes : int64 array of shape (cells,), optional
        Only cells of the same class are merged.

    Returns
    -------
    int64 array of shape (cells,)

    Examples
    --------
    >>> merged_below(np.array([50.0, -3.0, 40.0, 2.0]), 5.0).tolist()
    [0, 2, 1, 2]
    >>> merged_below(np.array([2.0, 50.0]), 5.0).tolist()
    [0, 1]
    >>> merged_below(np.array([2.0, 3.0, 4.0]), 5.0, np.array([1, 0, 1])).tolist()
    [0, 1, 0]
    """
    large = counts >= least
    if classes is None:
        if large.sum() >= len(large) - 1:
            return np.arange(len(counts))
        return np.where(large, np.cumsum(large) - 1, int(large.sum()))
    cells = np.arange(len(counts))
    _, first = np.unique(classes[~large], return_index=True)
    leaders = dict(zip(classes[~large][first].tolist(), cells[~large][first].tolist(), strict=True))
    joined = np.array([cell if large[cell] else leaders[int(classes[cell])] for cell in cells])
    return np.asarray(np.unique(joined, return_inverse=True)[1]).reshape(-1)
