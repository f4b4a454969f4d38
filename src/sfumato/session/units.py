"""Who is protected: a column that names units, rows of their own, or components of several columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, final

from sfumato.errors import ParameterError, SchemaError
from sfumato.ledger.budget.renewal import Renewal
from sfumato.queries.engines.duckdb.components import UNIT
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.query import ColumnType
from sfumato.queries.plan.schema import Schema

__all__ = ["ROW", "Row", "Unit", "Units", "in_words", "require_one_dataset", "require_unit", "unit_columns"]


@final
class Row(Enum):
    """The type of :data:`ROW`."""

    ROW = "ROW"

    def __repr__(self) -> str:
        return "ROW"


ROW: Final = Row.ROW
"""As ``privacy_unit``: each row is a unit of its own.

Examples
--------
>>> ROW
ROW
"""

Unit: TypeAlias = str | Row | tuple[str, ...]
"""What names the unit of a table's rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The unit's column by private table, None where rows are units; and the unit in words."""

    columns: Mapping[str, str | None]
    words: str


_ROW_IN_WORDS = "row"
_FEW = (
    "privacy_unit must be two or more different columns in each table if it is in one, got {!r}; name them, "
    "or one column for each table"
)
_MARKS = (ColumnType.INTEGER, ColumnType.TEXT, ColumnType.DATE)


def require_one_dataset(
    privacy_unit: Unit | Mapping[str, Unit], renewal: Renewal | None, *, new_version: bool
) -> None:
    """Refuse components where rows of several times would have to agree on them.

    Rows of another period, or of another version, may connect what is apart in this one. Removing a component
    of the one would then split or change units of the other, which share its budget.

    Raises
    ------
    ParameterError
        If several columns make the unit, with a renewal or a new version.
    """
    if not _several(privacy_unit):
        return
    for name, given in (("renewal", renewal is not None), ("new_version", new_version)):
        if given:
            raise ParameterError(
                f"{name} must be left out where several columns make the privacy unit: other rows connect "
                "them in another way; name one column"
            )


def _several(privacy_unit: Unit | Mapping[str, Unit]) -> bool:
    given = privacy_unit.values() if isinstance(privacy_unit, Mapping) else [privacy_unit]
    return any(isinstance(unit, tuple) for unit in given)


def unit_columns(privacy_unit: Unit | Mapping[str, Unit], engine: Engine, tables: list[str]) -> Units:
    """Return the unit of each private table; several columns become one, which the engine makes.

    Raises
    ------
    ParameterError
        If a table has no unit, or one that is none.
    SchemaError
        If a table has no such column, or one of a type that names no unit.
    SourceError
        If the components cannot be computed.
    """
    given = privacy_unit if isinstance(privacy_unit, Mapping) else dict.fromkeys(tables, privacy_unit)
    if set(given) != set(tables):
        raise ParameterError(
            f"privacy_unit must name the unit of each private table {tables}, got {sorted(given)}; "
            "add or drop tables"
        )
    for unit in given.values():
        if unit is not ROW and not isinstance(unit, (str, tuple)):
            raise ParameterError(_no_unit(unit))
    if _several(given):
        marks = _unite(given, engine)
        return Units(columns=dict.fromkeys(marks, UNIT), words=in_words(marks))
    columns = {
        table: None if unit is ROW else require_unit(engine.schemas[table], table, str(unit))
        for table, unit in given.items()
    }
    return Units(columns=columns, words=in_words(columns))


def _unite(given: Mapping[str, Unit], engine: Engine) -> dict[str, tuple[str, ...]]:
    """Make the column of the components in every table; return the columns that it is made of."""
    columns: dict[str, tuple[str, ...]] = {}
    for table, unit in given.items():
        names = unit if isinstance(unit, tuple) else ()
        if len(names) < 2 or not all(isinstance(name, str) for name in names):
            raise ParameterError(_FEW.format(unit))
        columns[table] = tuple(require_unit(engine.schemas[table], table, name) for name in names)
        if len(set(columns[table])) < len(names):
            raise ParameterError(_FEW.format(unit))
        if engine.schemas[table].find(UNIT) is not None:
            raise SchemaError(
                f"table {table!r} must have no column {UNIT!r} beside a unit of several, for this will "
                "name the unit; rename it"
            )
    kinds = {tuple(_kind(engine, table, name) for name in names) for table, names in columns.items()}
    if len(kinds) > 1:
        raise SchemaError(
            "privacy_unit must have columns of the same types in each table, in one order; cast or sort them"
        )
    engine.unite(columns)
    return columns


def _kind(engine: Engine, table: str, name: str) -> ColumnType:
    column = engine.schemas[table].find(name)
    if column is not None and column.type is ColumnType.DECIMAL:
        return ColumnType.INTEGER  # both by their digits
    if column is None or column.type not in _MARKS:
        raise SchemaError(
            f"privacy_unit must be integers, texts or dates where it is several columns, got {name!r} of "
            f"table {table!r}; cast it"
        )
    return column.type


def _no_unit(unit: object) -> str:
    """Say why a value is no privacy unit."""
    if isinstance(unit, (list, set, frozenset)):
        return "privacy_unit must be a tuple where it is several columns; write ('user', 'device')"
    return f"privacy_unit must be a column name or sfumato.ROW, got {unit!r}; name the column of the person"


def in_words(units: Mapping[str, str | tuple[str, ...] | None]) -> str:
    """Name the unit in words that differ wherever units do: a ledger knows its unit by them.

    >>> in_words({"people": None}), in_words({"people": "row"})
    ('row', '"row"')
    >>> in_words({"a": "id", "b": None}), in_words({"a: x, b": "id", "b": None})
    ('a: id, b: row', '"a: x, b": id, b: row')
    >>> in_words({"visits": ("user", "device")})
    'connected component of "user" and "device"'
    """
    words = {table: _words(unit) for table, unit in units.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{_quoted(table)}: {words[table]}" for table in sorted(words))


def _words(unit: str | tuple[str, ...] | None) -> str:
    if isinstance(unit, tuple):
        return "connected component of " + " and ".join(f'"{_doubled(name)}"' for name in unit)
    return _ROW_IN_WORDS if unit is None else _quoted(unit, _ROW_IN_WORDS)


def _quoted(name: str, *reserved: str) -> str:
    """Return a name, in quotes where it could be taken for something else."""
    if name in reserved or any(mark in name for mark in '",:'):
        return f'"{_doubled(name)}"'
    return name


def _doubled(name: str) -> str:
    return name.replace('"', '""')


def require_unit(schema: Schema, table: str, unit: str) -> str:
    """Return the privacy-unit column as the table spells it.

    Raises
    ------
    SchemaError
        If the table has no such column, or its type cannot identify a unit.
    """
    column = schema.find(unit)
    if column is None:
        names = ", ".join(repr(c.name) for c in schema.columns[:20])
        raise SchemaError(
            f"privacy_unit must be a column of table {table!r}, got {unit!r}; name one of {names}, or pass "
            "ROW (in Python sfumato.ROW) where each row is a person of its own"
        )
    if column.type is None:
        raise SchemaError(
            f"privacy_unit must be a plain column, got {unit!r}; use an integer, text or date column"
        )
    return column.name
