"""Counts of records: of all of them, and of each public cell (a category, or an interval between edges)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.columns import read_column
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.records import as_column, as_numbers, record_count
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Count", "Histogram"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Query):
    """The number of records.

    Notes
    -----
    Sensitivity 1 in every norm and under each relation. Under replace-one the number of all records is public
    and would not move at all; the 1 is for the records that passed a filter, which a replacement may leave.

    Examples
    --------
    >>> import numpy as np
    >>> Count()(np.array([3.0, 1.0, 2.0]))
    3
    """

    @property
    def step(self) -> int:
        """One."""
        return 1

    @property
    def entries(self) -> int:
        """One number."""
        return 1

    @property
    def counts_records(self) -> bool:
        """It is a number of records."""
        return True

    def steps(self, data: Any) -> int:
        """Return the number of records.

        Parameters
        ----------
        data : array
            One record in each entry of the first axis.

        Returns
        -------
        int
            In steps of `step`; private.
        """
        return record_count(data)

    def shift(self, neighboring: Neighboring) -> Shift:
        """One record moves a count by one.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        return Shift.entries(1, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(Query):
    """How many records fall into each of the given cells; a record in none counts nowhere.

    Parameters
    ----------
    categories : sequence, optional
        One cell for each value; public, never taken from the data.
    edges : sequence of numbers, optional
        Instead: increasing ends of intervals, closed below and open above, the last closed at both ends;
        infinities are allowed.

    Raises
    ------
    ParameterError
        If not exactly one is given, a category repeats, or the edges do not increase.

    Notes
    -----
    Cells are disjoint, so one record is in at most one: adding, removing or zeroing it moves one entry by one
    (L1 1, L2 1); replacing it moves two (L1 2, L2 sqrt(2)).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Norm
    >>> histogram = Histogram(categories=("red", "green"))
    >>> histogram(np.array(["red", "blue", "red"])).tolist()
    [2, 0]
    >>> histogram.sensitivity(Neighboring.REPLACE_ONE, Norm.L1)
    2.0
    """

    categories: Sequence[Hashable] | None = None
    edges: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if (self.categories is None) == (self.edges is None):
            _check.refuse(
                "categories", "be given, or else edges", self.categories, "pass exactly one of them"
            )
        if self.categories is not None:
            categories = tuple(self.categories)
            if not categories or len(set(categories)) < len(categories):
                _check.refuse(
                    "categories", "be distinct, and one at least", categories, "pass each category once"
                )
            object.__setattr__(self, "categories", categories)
        if self.edges is not None:
            edges = tuple(float(edge) for edge in self.edges)
            if len(edges) < 2 or not all(below < above for below, above in pairwise(edges)):
                remedy = "sort them, and leave out repeated ones"
                _check.refuse("edges", "be at least two increasing numbers", edges, remedy)
            object.__setattr__(self, "edges", edges)

    @property
    def step(self) -> int:
        """One."""
        return 1

    @property
    def entries(self) -> int:
        """The number of cells."""
        return len(self.categories) if self.categories is not None else len(self.edges or ()) - 1

    @property
    def counts_records(self) -> bool:
        """They are numbers of records."""
        return True

    @property
    def labels(self) -> dict[str, tuple[Any, ...]]:
        """What each count is of: a category, or the edges of a cell."""
        if self.categories is not None:
            return {"category": tuple(self.categories)}
        edges = tuple(self.edges or ())
        return {"lower_edge": edges[:-1], "upper_edge": edges[1:]}

    def steps(self, data: Any) -> NDArray[np.int64]:
        """Return the count of each cell.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private.
        """
        cells = self.cells(data)
        return np.bincount(cells[cells >= 0], minlength=self.entries).astype(np.int64)

    def cells(self, data: Any) -> NDArray[np.int64]:
        """Return each record's cell, -1 for none; private.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.

        Returns
        -------
        array of int64, shape (n,)
            Index of the cell of each record; private.
        """
        if self.edges is not None:
            given = read_column(data)
            cells = _between(as_numbers(data, integral=False), self.edges)
            return cells if given is None or given.nulls is None else np.where(given.nulls, -1, cells)
        records, nulls = as_column(data)
        categories = self.categories or ()
        cell_of = {category: cell for cell, category in enumerate(categories)}
        numerals = [category for category in categories if isinstance(category, int)]
        if records.dtype.kind in "iu" and len(numerals) == len(categories):
            cells = _integer_cells(records, numerals)
        else:
            found = (_cell(cell_of, record) for record in records.tolist())
            cells = np.fromiter(found, np.int64, len(records))
        return cells if nulls is None else np.where(nulls, cell_of.get(None, -1), cells)

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return one entry by one, or two under replace-one.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        return Shift.entries(min(2, self.entries) if neighboring is Neighboring.REPLACE_ONE else 1, 1)


def _between(array: NDArray[Any], edges: Sequence[float]) -> NDArray[np.int64]:
    values = array.astype(np.float64)
    cells = np.searchsorted(np.asarray(edges), values, side="right").astype(np.int64) - 1
    cells[values == edges[-1]] = len(edges) - 2
    cells[np.isnan(values) | (values > edges[-1])] = -1
    return cells


def _integer_cells(records: NDArray[Any], categories: list[int]) -> NDArray[np.int64]:
    # A category beyond the records' type matches nothing.
    info = np.iinfo(records.dtype)
    order = sorted((value, cell) for cell, value in enumerate(categories) if info.min <= value <= info.max)
    if not order:
        return np.full(len(records), -1, dtype=np.int64)
    values = np.array([value for value, _ in order], dtype=records.dtype)
    cells = np.array([cell for _, cell in order], dtype=np.int64)
    at = np.minimum(np.searchsorted(values, records), len(values) - 1)
    return np.where(values[at] == records, cells[at], -1).astype(np.int64)


def _cell(cell_of: dict[Hashable, int], record: Any) -> int:
    if not isinstance(record, Hashable) or (isinstance(record, float) and math.isnan(record)):
        return -1
    try:
        return cell_of.get(record, -1)
    except TypeError:  # a tuple that holds a list
        return -1
