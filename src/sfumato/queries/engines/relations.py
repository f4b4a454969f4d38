"""Relations as DuckDB SQL: every column in one of six types, and the privacy unit carried beside them.

The unit travels in its own column ``u`` from the scan upwards, in the type the source has. No expression of
a query can reach it, so nothing an analyst writes can merge two units or split one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.errors import SchemaError
from sfumato.queries.engines.rendering import SQL_TYPES, Rendered, render
from sfumato.queries.plan import Column, ColumnType, Filter, Relation, Scan, Schema

__all__ = [
    "Layer",
    "StoredTable",
    "canonical",
    "column_type",
    "quoted_name",
    "relation_layer",
    "scan_columns",
]

_SMALL_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"})
_LARGE_INTEGERS = frozenset({"UBIGINT", "HUGEINT", "UHUGEINT"})
_ZONED_NANOSECONDS = frozenset({"TIMESTAMPTZ_NS", "TIMESTAMP_NS WITH TIME ZONE"})
_MOMENTS = _ZONED_NANOSECONDS | {
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
}
_FIRST, _LAST = "0001-01-01", "9999-12-31"


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table as the engine holds it: its name inside the engine, and its columns with DuckDB's types."""

    name: str
    types: tuple[tuple[str, str], ...]

    @property
    def schema(self) -> Schema:
        """The columns with the types a query computes in."""
        return Schema(tuple(Column(name, column_type(type_)) for name, type_ in self.types))


@dataclass(frozen=True, slots=True)
class Layer:
    """A SELECT: its text, and where its columns are found by case-folded name; the unit is in ``u``."""

    sql: str
    columns: Mapping[str, Rendered]
    unit: bool


def column_type(duckdb_type: str) -> ColumnType | None:
    """Return the type a DuckDB type is computed in; None if a query cannot use it."""
    if duckdb_type == "BIGINT" or duckdb_type in _SMALL_INTEGERS | _LARGE_INTEGERS:
        return ColumnType.INTEGER
    if duckdb_type in ("DOUBLE", "FLOAT") or _is_decimal(duckdb_type):
        return ColumnType.FLOAT
    if duckdb_type in ("VARCHAR", "UUID") or _is_enum(duckdb_type):
        return ColumnType.TEXT
    if duckdb_type in _MOMENTS:
        return ColumnType.TIMESTAMP
    return {"BOOLEAN": ColumnType.BOOLEAN, "DATE": ColumnType.DATE}.get(duckdb_type)


def _is_decimal(duckdb_type: str) -> bool:
    return duckdb_type.startswith("DECIMAL(") and duckdb_type.endswith(")")


def _is_enum(duckdb_type: str) -> bool:
    return duckdb_type.startswith("ENUM(") and duckdb_type.endswith(")")


def quoted_name(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def _standard(name: str, duckdb_type: str) -> str:
    """Return a column in its standard type: NaN, and what is out of range or infinite in time, are NULL."""
    column = quoted_name(name)
    if duckdb_type in ("DOUBLE", "FLOAT"):
        return f"CASE WHEN isnan({column}) THEN NULL ELSE CAST({column} AS DOUBLE) END"
    if duckdb_type in ("DATE", "TIMESTAMP"):
        return _in_calendar(column, ColumnType[duckdb_type])
    if duckdb_type in _ZONED_NANOSECONDS:
        # to UTC without its zone, bit for bit; then to the nearest microsecond, like a TIMESTAMP_NS
        column = f"CAST({column} AS TIMESTAMP_NS)"
    if duckdb_type in _MOMENTS:
        return _in_calendar(f"TRY(CAST({column} AS TIMESTAMP))", ColumnType.TIMESTAMP)
    type_ = column_type(duckdb_type)
    # a cast to the type a column has already costs nothing; only large integers can fail
    return column if type_ is None else f"TRY_CAST({column} AS {SQL_TYPES[type_]})"


def _in_calendar(sql: str, type_: ColumnType) -> str:
    """Return a moment, NULL outside of the years 1 to 9999, which every consumer can hold."""
    last = _LAST if type_ is ColumnType.DATE else f"{_LAST} 23:59:59.999999"
    return f"CASE WHEN {sql} BETWEEN {type_.value} '{_FIRST}' AND {type_.value} '{last}' THEN {sql} END"


def canonical(column: str, type_: ColumnType) -> str:
    """Return a key in its one form: NaN is NULL, -0.0 is 0.0, moments are in the calendar's range."""
    if type_ is ColumnType.FLOAT:
        zero = "CAST('0.0' AS DOUBLE)"
        return f"CASE WHEN isnan({column}) THEN NULL WHEN {column} = 0 THEN {zero} ELSE {column} END"
    if type_ in (ColumnType.DATE, ColumnType.TIMESTAMP):
        return _in_calendar(column, type_)
    return column


def _identity(name: str, duckdb_type: str) -> str:
    """Return the unit as it is stored: no conversion that could make two units one; a NaN is nobody."""
    column = quoted_name(name)
    if duckdb_type in ("DOUBLE", "FLOAT"):
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
    return column


def scan_columns(table: StoredTable) -> tuple[list[str], dict[str, Rendered]]:
    """Return the usable columns of a table in standard types, as select items and by name."""
    items: list[str] = []
    columns: dict[str, Rendered] = {}
    for name, duckdb_type in table.types:
        type_ = column_type(duckdb_type)
        if type_ is None:
            continue
        columns[name.casefold()] = Rendered(f"c{len(items)}", type_)
        items.append(f"{_standard(name, duckdb_type)} AS c{len(items)}")
    return items, columns


def _scan(scan: Scan, table: StoredTable) -> Layer:
    items, columns = scan_columns(table)
    if scan.unit is not None:
        folded = scan.unit.casefold()
        found = next(((name, type_) for name, type_ in table.types if name.casefold() == folded), None)
        if found is None:
            raise SchemaError(f"privacy_unit must be a column of {scan.table!r}, got {scan.unit!r}; name one")
        items.insert(0, f"{_identity(*found)} AS u")
    return Layer(f"SELECT {', '.join(items)} FROM {table.name}", columns, scan.unit is not None)


def relation_layer(relation: Relation, tables: Mapping[str, StoredTable]) -> Layer:
    """Return the SELECT of a relation.

    Notes
    -----
    Guarantee: stability 1. Each row comes from exactly one row of the scan, is a function of that row
    alone, and carries that row's unit.
    """
    if isinstance(relation, Scan):
        return _scan(relation, tables[relation.table])
    below = relation_layer(relation.child, tables)
    if isinstance(relation, Filter):
        predicate = render(relation.predicate, below.columns)
        return Layer(f"SELECT * FROM ({below.sql}) WHERE {predicate}", below.columns, below.unit)
    items = ["u"] if below.unit else []
    columns: dict[str, Rendered] = {}
    for position, named in enumerate(relation.columns):
        items.append(f"{render(named.expression, below.columns)} AS c{position}")
        columns[named.name.casefold()] = Rendered(f"c{position}", named.expression.type)
    return Layer(f"SELECT {', '.join(items)} FROM ({below.sql})", columns, below.unit)
