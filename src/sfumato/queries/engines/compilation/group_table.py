"""Public groups as a table that rows are matched with, before anything is bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from sfumato.errors import OptionError, SchemaError
from sfumato.queries.engines.compilation.relations import relation_layer, scan_columns
from sfumato.queries.engines.compilation.select import selected
from sfumato.queries.engines.dialects.base import Dialect, StoredTable
from sfumato.queries.plan.constants import stored_value
from sfumato.queries.plan.query import ColumnType, PublicRelation, PublicTable, PublicValues
from sfumato.queries.plan.schema import ARROW_TYPES

__all__ = ["listed_groups", "numbered_groups", "relation_groups", "table_groups"]


def listed_groups(groups: PublicValues, types: Sequence[ColumnType]) -> pa.Table:
    """Return listed keys as columns ``k0, k1, ...``.

    Raises
    ------
    OptionError
        If a row has not one value for each key, or a value is not of its key's type.
    """
    for row in groups.rows:
        if len(row) != len(types):
            raise OptionError(
                f"public groups must have {len(types)} values each, got {len(row)}; list one for each key"
            )
    columns = {}
    for i, type_ in enumerate(types):
        values = [stored_value(row[i], type_, "public groups") for row in groups.rows]
        columns[f"k{i}"] = pa.array(values, ARROW_TYPES[type_])
    return pa.table(columns)


def table_groups(
    groups: PublicTable, tables: Mapping[str, StoredTable], types: Sequence[ColumnType], dialect: Dialect
) -> str:
    """Return the SELECT of the keys in a public table, as columns ``k0, k1, ...``.

    Raises
    ------
    SchemaError
        If a table or column is missing, or its type is not the key's.
    """
    table = tables.get(groups.table)
    if table is None or len(groups.columns) != len(types):
        raise SchemaError(f"public groups must name a table and a column for each key, got {groups.table!r}")
    items, columns = scan_columns(table, dialect)
    keys = []
    for i, (name, type_) in enumerate(zip(groups.columns, types, strict=True)):
        column = columns.get(name.casefold())
        if column is None:
            raise SchemaError(f"public groups must name a usable column of {groups.table!r}, got {name!r}")
        widens = column.type is ColumnType.INTEGER and type_ is ColumnType.FLOAT
        if column.type is not type_ and not widens:
            got = "no type" if column.type is None else column.type.value
            raise SchemaError(
                f"public column {name!r} must be {type_.value} like the key, got {got}; cast one"
            )
        keys.append(f"{dialect.converted(column.sql, type_) if widens else column.sql} AS k{i}")
    return f"SELECT {', '.join(keys)} FROM (SELECT {', '.join(items)} FROM {table.name}) AS r"


def relation_groups(
    groups: PublicRelation, tables: Mapping[str, StoredTable], types: Sequence[ColumnType], dialect: Dialect
) -> str:
    """Return the SELECT of the keys in a relation over public tables, as columns ``k0, k1, ...``.

    Raises
    ------
    QueryError
        If the engine cannot express it.
    """
    layer = relation_layer(groups.relation, tables, dialect)
    keys = []
    for i, (name, type_) in enumerate(zip(groups.columns, types, strict=True)):
        column = layer.columns[name.casefold()]
        sql = column.sql if column.type is type_ else dialect.converted(column.sql, type_)
        keys.append(f"{sql} AS k{i}")
    return selected(keys, layer.sql, dialect)


def numbered_groups(source: str, types: Sequence[ColumnType], dialect: Dialect) -> str:
    """Return the SELECT of each key in ``source`` once, numbered ``g`` in the order of the keys."""
    keys = [f"k{i}" for i in range(len(types))]
    forms = (f"{dialect.canonical(key, type_)} AS {key}" for key, type_ in zip(keys, types, strict=True))
    order = ", ".join(f"{key} NULLS LAST" for key in keys)
    names = ", ".join(keys)
    number = f"CAST(row_number() OVER (ORDER BY {order}) AS {dialect.types[ColumnType.INTEGER]}) AS g"
    distinct = f"SELECT DISTINCT {names} FROM (SELECT {', '.join(forms)} FROM {source} AS r) AS r"
    return f"SELECT {number}, {names} FROM ({distinct}) AS r"
