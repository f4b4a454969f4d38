"""Subqueries in expressions over rows: one value of constants or of public tables.

``WHERE age > (SELECT MAX(limit_age) FROM limits)`` becomes a join of each row with that one value.

Notes
-----
Guarantee: the value is a function of public tables and of the text, and each row is joined with one row at
most (`sfumato.queries.plan.nodes.JoinPublic`), so a row stays a function of one row. Without a row the value
is NULL; several are refused by the engine before the charge, which reads public tables only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.nodes import JoinPublic
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.catalog import Rows, ScopeColumn, ScopeTable, Tables, free_name, named_item
from sfumato.queries.sql.clauses.from_items import reads_private
from sfumato.queries.sql.expressions.scalar import is_aggregate

__all__ = ["with_values"]

_SLOTS: Final = ("where", "expressions", "group", "qualify")
_PRIVATE: Final = (
    "a subquery in an expression must not read a private table, for that mixes units; join on the privacy "
    "unit, or compute with both answers in SQL around private SELECTs"
)
_BESIDE: Final = (
    "a subquery must not stand beside an aggregate, only inside of it; write it in SQL around the SELECT"
)
Read: TypeAlias = Callable[[exp.Expr, Tables], Rows]


def with_values(select: exp.Select, rows: Rows, tables: Tables, read: Read) -> tuple[exp.Select, Rows]:
    """Join rows with the values of the subqueries in a SELECT, which then names their columns.

    Parameters
    ----------
    select : sqlglot.exp.Select
    rows : Rows
        What its FROM reads.
    tables : Tables
    read : callable
        Reads a subquery.

    Raises
    ------
    UnsupportedSql
        If one reads a private table, or stands beside an aggregate.
    SchemaError
        If one has several columns.
    """
    if not any(True for _ in _subqueries(select)):
        return select, rows
    select = select.copy()
    joined: dict[exp.Expr, exp.Column] = {}
    for node in list(_subqueries(select)):
        constant = _constant(node)
        if constant is not None:
            node.replace(exp.Paren(this=constant.copy()))
            continue
        _require_inside(node, select)
        if node not in joined:
            rows, joined[node.copy()] = _with_value(rows, node, tables, read)
        node.replace(joined[node].copy())
    return select, rows


def _subqueries(select: exp.Select) -> Iterator[exp.Subquery]:
    """Yield the outermost subqueries that stand for a value; those of IN and EXISTS are conditions."""
    for slot in _SLOTS:
        value = select.args.get(slot)
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, exp.Expr):
                yield from _among(node)


def _among(node: exp.Expr) -> Iterator[exp.Subquery]:
    if isinstance(node, exp.Subquery):
        yield node
    elif not isinstance(node, (exp.Query, exp.Any, exp.All)):
        for child in node.iter_expressions():
            if not (isinstance(node, exp.In) and child is node.args.get("query")):
                yield from _among(child)


def _constant(node: exp.Subquery) -> exp.Expr | None:
    """Return the expression of ``(SELECT 3)``."""
    query: exp.Expr = node
    while isinstance(query, exp.Subquery) and query.is_wrapper:
        query = query.this
    if not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return None
    if any(value for slot, value in query.args.items() if slot != "expressions"):
        return None
    item = named_item(query.expressions[0])[0]
    plain = not any(isinstance(part, (exp.Column, exp.Query, exp.Star)) for part in item.walk())
    return item if plain and not any(is_aggregate(part) for part in item.walk()) else None


def _require_inside(node: exp.Expr, select: exp.Select) -> None:
    """Refuse a subquery in an item that has an aggregate, unless it is inside of that."""
    above = node
    while above.parent is not None and above.parent is not select:
        above = above.parent
        if is_aggregate(above):
            return
    listed = any(above is item for item in select.expressions)
    if listed and any(is_aggregate(part) for part in above.walk(prune=lambda part: part is node)):
        raise UnsupportedSql(_BESIDE)


def _with_value(rows: Rows, node: exp.Subquery, tables: Tables, read: Read) -> tuple[Rows, exp.Column]:
    only(node, "this", what="a subquery in an expression")
    if reads_private(node.this, tables):
        raise UnsupportedSql(_PRIVATE)
    listed = read(node.this, tables.deeper())
    if listed.private:
        raise UnsupportedSql(_PRIVATE)
    columns = listed.schema.usable.columns
    if len(columns) != 1 or len(listed.schema.columns) != 1:
        raise SchemaError(
            f"a subquery in an expression must have one column, got {len(listed.schema.columns)}; select one"
        )
    taken = {known.name.casefold() for known in rows.schema.usable.columns}
    name = free_name("value", taken)
    relation = JoinPublic(rows.relation, listed.relation, (name,), None, keep=True, single=())
    members = [
        ScopeTable(member.qualifier, tuple(c for c in member.columns if _usable(c, rows)))
        for member in rows.members
    ]
    qualifier = f"(subquery {name})"
    members.append(ScopeTable(qualifier, (ScopeColumn(name, name, merged=True),)))
    return Rows(relation, tuple(members), rows.private), exp.column(name, table=qualifier, quoted=True)


def _usable(known: ScopeColumn, rows: Rows) -> bool:
    found = rows.schema.find(known.column)
    return found is not None and found.type is not None
