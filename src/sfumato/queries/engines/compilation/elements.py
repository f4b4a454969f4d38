"""Arrays of a table as SQL: each row once for every element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.errors import SchemaError
from sfumato.queries.engines.compilation.select import SelectLayer, selected
from sfumato.queries.engines.compilation.terms import TypedSql
from sfumato.queries.engines.dialects.base import Dialect, StoredColumn, StoredTable
from sfumato.queries.plan.nodes import PublicScan, Scan, Unnest

__all__ = ["arrays_of", "elements_layer"]


def arrays_of(nodes: Sequence[Unnest], dialect: Dialect) -> list[str]:
    """Return the arrays that nodes over one table read, as columns ``a0, a1, ...`` of it."""
    return [f"{dialect.identifier(node.array)} AS a{i}" for i, node in enumerate(nodes)]


def elements_layer(
    nodes: Sequence[Unnest], layer: SelectLayer, tables: Mapping[str, StoredTable], dialect: Dialect
) -> SelectLayer:
    """Return rows for each element of their arrays ``a0, a1, ...``, which `arrays_of` names.

    Elements are taken as they are stored, and brought to their standard type behind all of them.

    Raises
    ------
    SchemaError
        If a column is no array with elements of a type that a query can use.
    """
    head, own = ["u"] if layer.unit else [], [column.sql for column in layer.columns.values()]
    names = [dialect.identifier(f"e{i}") for i in range(len(nodes))]
    sql = layer.sql
    for i, node in enumerate(nodes):
        others = [*names[:i], *(f"a{j}" for j in range(i + 1, len(nodes)))]
        sql = dialect.unnested([*head, *own, *others], sql, f"a{i}", names[i], keep=node.keep)
    columns = dict(layer.columns)
    made = []
    for i, node in enumerate(nodes):
        place = f"c{len(columns)}"
        made.append(f"{dialect.standard(_element(node, f'e{i}', tables, dialect))} AS {place}")
        columns[node.name.casefold()] = TypedSql(place, node.type)
    return SelectLayer(selected([*head, *own, *made], sql, dialect), columns, layer.unit, layer.stored)


def _element(node: Unnest, name: str, tables: Mapping[str, StoredTable], dialect: Dialect) -> StoredColumn:
    """Return the elements of an array as a column of their stored type."""
    table = node.child
    while isinstance(table, Unnest):
        table = table.child
    known = tables[table.table].columns if isinstance(table, (Scan, PublicScan)) else ()
    found = next((column for column in known if column.name == node.array), None)
    element = "" if found is None else dialect.element_of(found.stored)
    if not element or dialect.column_type(element) is not node.type:
        raise SchemaError(
            f"UNNEST must read an array of {node.type.value}, got {node.array!r}; connect again"
        )
    return StoredColumn(name, element, node.type)
