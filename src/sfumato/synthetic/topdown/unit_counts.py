"""Exact counts of people by lowest unit and cell: sparse, as most cells of most units are empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.frames.arrow import as_arrow
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.topdown.hierarchy import Hierarchy, Nodes

__all__ = ["LevelCounts", "UnitCounts", "unit_counts"]

_PEOPLE: Final = 1 << 30
_SUM: Final = 1 << 52


@final
@dataclass(frozen=True, slots=True, eq=False)
class LevelCounts:
    """Counts of a level's places by cell; cells that are left out are 0.

    Parameters
    ----------
    starts : int64 array
        Where each place's entries begin, and where the last one's end.
    cells : int32 array
        Of each entry, rising within a place.
    counts : int64 array
        Of each entry.
    """

    starts: Nodes
    cells: NDArray[np.int32]
    counts: Nodes

    def grouped(self, first: int, last: int, group_of: NDArray[np.int64], groups: int) -> Nodes:
        """Return some places' counts by groups of cells.

        Parameters
        ----------
        first, last : int
            The places: from the first to before the last.
        group_of : int64 array
            The group of each cell.
        groups : int

        Returns
        -------
        int64 array of shape (last - first, groups)
        """
        begin, end = self.starts[first], self.starts[last]
        place = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
        key = place * groups + group_of[self.cells[begin:end]]
        # exact: whole numbers whose sum is below 2**53, by the cap on each entry
        found = np.bincount(key, weights=self.counts[begin:end], minlength=(last - first) * groups)
        return found.astype(np.int64).reshape(last - first, groups)

    def summed(self, parents: Nodes, size: int, cells: int) -> LevelCounts:
        """Return the counts of the level above.

        Parameters
        ----------
        parents : int64 array
            The parent of each place, rising.
        size : int
            How many parents there are.
        cells : int
            How many cells the histogram has.

        Returns
        -------
        LevelCounts
        """
        place = np.repeat(parents, np.diff(self.starts))
        return _gathered(place, self.cells, self.counts, size, cells)


def _gathered(place: Nodes, cell: Any, count: Any, size: int, cells: int) -> LevelCounts:
    """Return entries in order, those of one cell of one place added."""
    keys = place * cells + cell
    order = np.argsort(keys, kind="stable")
    keys, count = keys[order], count[order]
    first = np.flatnonzero(np.r_[True, np.diff(keys) != 0]) if len(keys) else np.zeros(0, np.int64)
    keys, counts = keys[first], np.add.reduceat(count, first) if len(keys) else np.zeros(0, np.int64)
    starts = np.searchsorted(keys, np.arange(size + 1) * cells)
    return LevelCounts(starts, (keys % cells).astype(np.int32), counts)


@final
@dataclass(frozen=True, slots=True, eq=False)
class UnitCounts:
    """Private counts of a table by lowest unit of a hierarchy and by cell of a domain.

    Parameters
    ----------
    units : int64 array
        Indices of lowest units, one for each entry; entries beyond the hierarchy's are not counted.
    cells : int64 array
        Indices of cells, in row-major order of the domain's columns.
    counts : int64 array
        How many people, taken within 0 and 2**30; of one unit and cell there may be several entries. Their
        sum counts up to 2**30, or to 2**52 over units times cells where these are over 2**22.

    Examples
    --------
    >>> UnitCounts(np.array([0, 2]), np.array([1, 1]), np.array([5, 7])).counts.tolist()
    [5, 7]
    """

    units: Nodes
    cells: Nodes
    counts: Nodes

    def __post_init__(self) -> None:
        for name in ("units", "cells", "counts"):
            array = np.asarray(getattr(self, name))
            if array.ndim != 1 or array.dtype.kind not in "iu":
                _check.refuse_type(name, "be an array of whole numbers", array, "pass one for each entry")
            object.__setattr__(self, name, array.astype(np.int64, copy=False))
        if not len(self.units) == len(self.cells) == len(self.counts):
            _check.refuse_state(
                "counts", "be as many as units and cells", "they are not", "pass equal lengths"
            )

    @classmethod
    def from_table(
        cls, hierarchy: Hierarchy, domain: TableDomain, table: Any, *, count: str | None = None
    ) -> Self:
        """Return the counts of a table's rows.

        Parameters
        ----------
        hierarchy : Hierarchy
        domain : TableDomain
        table : frame
            Private; with a column of the lowest level's places, and the domain's columns. A row whose place
            or value is not declared is not counted; one in a structural zero is left out by `TopDown`.
        count : str, optional
            The column that says how many people a row stands for, where rows are counted already.

        Returns
        -------
        UnitCounts

        Raises
        ------
        ParameterError
            If a column is not there once, or is of another type, whatever is in it.
        """
        arrow = as_arrow("table", table)
        units = hierarchy.encode(arrow)
        cells, counted = np.zeros(len(units), np.int64), units >= 0
        for name, attribute in domain.items():
            codes = attribute.encode(name, _column(arrow, name))
            counted &= codes >= 0
            cells = cells * attribute.size + codes
        if count is None:
            counts = np.ones(len(units), np.int64)
        else:
            column = _column(arrow, count)
            if not pa.types.is_integer(column.type):
                found = f"it is of {column.type}"
                _check.refuse_state(f"column {count!r}", "be of whole numbers", found, "cast it")
            counts = column.cast(pa.int64(), safe=False).fill_null(0).to_numpy()
        return cls(units[counted], cells[counted], counts[counted])

    def lowest(self, units: int, cells: int, possible: Nodes | None = None) -> LevelCounts:
        """Return the counts of the lowest level.

        Parameters
        ----------
        units, cells : int
            How many there are.
        possible : int64 array, optional
            The cells that may hold people; entries of others are not counted. All unless given.

        Returns
        -------
        LevelCounts
        """
        inside = (self.units >= 0) & (self.units < units) & (self.cells >= 0) & (self.cells < cells)
        if possible is not None:
            allowed = np.zeros(cells, np.bool_)
            allowed[possible] = True
            inside[inside] = allowed[self.cells[inside]]
        counts = np.clip(self.counts[inside], 0, _PEOPLE)
        found = _gathered(self.units[inside], self.cells[inside], counts, units, cells)
        return LevelCounts(
            found.starts, found.cells, np.minimum(found.counts, _SUM // max(1 << 22, units * cells))
        )


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    if table.schema.names.count(name) != 1:
        found = f"{name!r} is there {table.schema.names.count(name)} times"
        _check.refuse_state("table", "have each declared column once", found, "rename its columns")
    return pa.chunked_array(table[name])


def unit_counts(hierarchy: Hierarchy, domain: TableDomain, value: Any) -> UnitCounts:
    """Return a private table as counts.

    Parameters
    ----------
    hierarchy : Hierarchy
    domain : TableDomain
    value : frame or UnitCounts

    Returns
    -------
    UnitCounts
    """
    return value if isinstance(value, UnitCounts) else UnitCounts.from_table(hierarchy, domain, value)
