"""Rows that are made up from what is public: declared values, stated bounds, public tables, and types.

Each value is drawn on its own, evenly over what its column may hold: the cells that the curator declared, the
values that a public table has in a column of the same name and type, or a few values of the type. Nothing of
private rows is in it, and so nothing of how often a value occurs or what goes with what.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato.queries.plan.nodes import Scan
from sfumato.queries.plan.schema import Column, ColumnType
from sfumato.server.console.asking.planning_tables import column_type
from sfumato.synthetic.domain.domain import TableDomain

__all__ = ["RowMaker", "Size"]

_MOST: Final = 100_000
_TEXTS: Final = ("a", "b", "c", "d", "e")
_YEAR: Final = 2000
_DAYS: Final = 365
_NOON: Final = dt.time(12)
_NUMBERS: Final = (0.0, 100.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many rows are made up: public figures.

    Parameters
    ----------
    units : int
        People, or what the unit is; where each row is one, rows.
    rows_per_unit : int
        Of each private table.
    """

    units: int = 1000
    rows_per_unit: int = 1

    def __post_init__(self) -> None:
        _check.integer("units", self.units, minimum=1)
        rows = self.units * _check.integer("rows_per_unit", self.rows_per_unit, minimum=1)
        if rows > _MOST:
            _check.refuse("units", f"make at most {_MOST} rows", rows, "make up fewer")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowMaker:
    """Makes up the rows of private tables.

    Parameters
    ----------
    rng : numpy Generator
    size : Size
    public : mapping of str to Table
        The public tables.
    domains : mapping of str to TableDomain
        What was declared, by table.
    bounds : mapping of str to pair of float
        Of columns of numbers for which nothing was declared, as the question states them.
    days : pair of date, optional
        The first day of the period that is asked about, and the first one after it.
    """

    rng: np.random.Generator
    size: Size = field(default_factory=Size)
    public: Mapping[str, pa.Table] = field(default_factory=dict)
    domains: Mapping[str, TableDomain] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    days: tuple[dt.date, dt.date] | None = None

    def table(self, scan: Scan) -> pa.Table:
        """Return made-up rows of a private table, with all of its columns.

        Parameters
        ----------
        scan : Scan
        """
        per_unit = 1 if scan.unit is None else self.size.rows_per_unit
        units = np.repeat(np.arange(self.size.units), per_unit)
        declared = self._declared(scan, len(units))
        columns: dict[str, Any] = {}
        for column in scan.schema.columns:
            if column.name == scan.unit:
                made = pa.array(_unit_values(column, units), column_type(column))
            else:
                made = declared.get(column.name.casefold())
            columns[column.name] = self._values(column, len(units)) if made is None else made
        return pa.table(columns)

    def _declared(self, scan: Scan, rows: int) -> dict[str, pa.Array]:
        """Return the columns whose values were declared, in the types of the table."""
        domain = self.domains.get(scan.table)
        if domain is None:
            return {}
        codes = np.stack([self.rng.integers(0, size, rows) for size in domain.sizes], axis=1)
        made, found = domain.decode(codes, rng=self.rng), {}
        for name in domain:
            column = scan.schema.find(name)
            if column is not None and column.type is not None:
                found[name.casefold()] = _as_type(made[name], column)
        return found

    def _values(self, column: Column, rows: int) -> pa.Array:
        """Return values of a column of which nothing was declared."""
        kind = column_type(column)
        if column.type is None:
            return pa.nulls(rows, kind)
        for table in self.public.values():
            if (
                column.name in table.column_names
                and table.schema.field(column.name).type == kind
                and len(table)
            ):
                return (
                    table[column.name].combine_chunks().take(pa.array(self.rng.integers(0, len(table), rows)))
                )
        return pa.array(self._typed(column, rows), kind)

    def _typed(self, column: Column, rows: int) -> list[Any]:
        even = self._even(*self.bounds.get(column.name.casefold(), _NUMBERS), rows)
        makers: dict[ColumnType | None, Callable[[], list[Any]]] = {
            ColumnType.BOOLEAN: lambda: [bool(value) for value in self.rng.integers(0, 2, rows)],
            ColumnType.FLOAT: lambda: [float(value) for value in even],
            ColumnType.TEXT: lambda: [_TEXTS[place] for place in self.rng.integers(0, len(_TEXTS), rows)],
            ColumnType.DATE: lambda: self._dates(rows),
            ColumnType.TIMESTAMP: lambda: [dt.datetime.combine(day, _NOON) for day in self._dates(rows)],
        }
        return makers.get(column.type, lambda: [round(value) for value in even])()

    def _even(self, lower: float, upper: float, rows: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return numbers that are even over bounds, within what 64 bits hold."""
        lower, upper = (min(max(end, -1e15), 1e15) for end in (lower, upper))
        return lower + (upper - lower) * self.rng.random(rows)

    def _dates(self, rows: int) -> list[dt.date]:
        first, after = self.days or (dt.date(_YEAR, 1, 1), dt.date(_YEAR, 1, 1) + dt.timedelta(days=_DAYS))
        return [first + dt.timedelta(days=int(n)) for n in self.rng.integers(0, (after - first).days, rows)]


def _unit_values(column: Column, units: np.ndarray[Any, np.dtype[np.int64]]) -> list[Any]:
    """Return one name for each unit, of the column's type."""
    match column.type:
        case ColumnType.TEXT:
            return [f"unit {number}" for number in units]
        case ColumnType.DATE:
            return [dt.date(_YEAR, 1, 1) + dt.timedelta(days=int(number)) for number in units]
        case ColumnType.TIMESTAMP:
            return [dt.datetime(_YEAR, 1, 1) + dt.timedelta(days=int(number)) for number in units]
        case ColumnType.BOOLEAN:
            return [bool(number % 2) for number in units]
        case _:
            return [int(number) for number in units]


def _as_type(made: Any, column: Column) -> pa.Array | None:
    """Return declared values in a column's type; None where they are of another kind."""
    try:
        return pa.chunked_array(made).cast(column_type(column), safe=False).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
        return None
