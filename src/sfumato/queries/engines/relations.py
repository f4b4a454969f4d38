"""Relations as SQL: every column in one of six types, and the privacy unit carried beside them.

The unit travels in its own column ``u`` from the scan upwards, in the type the source has. No expression of
a query can reach it, so nothing an analyst writes can merge two units or split one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.errors import SchemaError
from sfumato.queries.engines.dialect import Dialect, StoredTable
from sfumato.queries.engines.rendering import Rendered, render
from sfumato.queries.plan import Filter, Relation, Scan

__all__ = ["Layer", "relation_layer", "scan_columns"]


@dataclass(frozen=True, slots=True)
class Layer:
    """A SELECT: its text, and where its columns are found by case-folded name; the unit is in ``u``."""

    sql: str
    columns: Mapping[str, Rendered]
    unit: bool


def scan_columns(table: StoredTable, dialect: Dialect) -> tuple[list[str], dict[str, Rendered]]:
    """Return the usable columns of a table in standard types, as select items and by name."""
    items: list[str] = []
    columns: dict[str, Rendered] = {}
    for column in table.columns:
        if column.type is None:
            continue
        columns[column.name.casefold()] = Rendered(f"c{len(items)}", column.type)
        items.append(f"{dialect.standard(column)} AS c{len(items)}")
    return items, columns


def _scan(scan: Scan, table: StoredTable, dialect: Dialect) -> Layer:
    items, columns = scan_columns(table, dialect)
    if scan.unit is not None:
        folded = scan.unit.casefold()
        found = next((column for column in table.columns if column.name.casefold() == folded), None)
        if found is None:
            raise SchemaError(f"privacy_unit must be a column of {scan.table!r}, got {scan.unit!r}; name one")
        items.insert(0, f"{dialect.identity(found)} AS u")
    return Layer(f"SELECT {', '.join(items)} FROM {table.name}", columns, scan.unit is not None)


def relation_layer(relation: Relation, tables: Mapping[str, StoredTable], dialect: Dialect) -> Layer:
    """Return the SELECT of a relation.

    Notes
    -----
    Guarantee: stability 1. Each row comes from exactly one row of the scan, is a function of that row
    alone, and carries that row's unit.
    """
    if isinstance(relation, Scan):
        return _scan(relation, tables[relation.table], dialect)
    below = relation_layer(relation.child, tables, dialect)
    if isinstance(relation, Filter):
        predicate = render(relation.predicate, below.columns, dialect)
        return Layer(
            f"SELECT * FROM ({below.sql}{dialect.fence}) AS r WHERE {predicate}", below.columns, below.unit
        )
    items = ["u"] if below.unit else []
    columns: dict[str, Rendered] = {}
    for position, named in enumerate(relation.columns):
        items.append(f"{render(named.expression, below.columns, dialect)} AS c{position}")
        columns[named.name.casefold()] = Rendered(f"c{position}", named.expression.type)
    return Layer(f"SELECT {', '.join(items)} FROM ({below.sql}{dialect.fence}) AS r", columns, below.unit)
