"""UNNEST of an array of a row: ``FROM data, UNNEST(tags) AS tag``, each element a row of the same unit."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.nodes import Filter, PublicScan, Relation, Scan, Unnest
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.catalog import Rows, ScopeColumn, ScopeTable, free_name, output_name

__all__ = ["is_row_array", "with_elements"]


def is_row_array(item: exp.Expr) -> bool:
    """Return whether an item of FROM is UNNEST of a column."""
    return isinstance(item, exp.Unnest) and any(isinstance(each, exp.Column) for each in item.expressions)


def with_elements(rows: Rows, join: exp.Join) -> Rows:
    """Return rows once for each element of an array of theirs.

    Raises
    ------
    UnsupportedSql
        If the array is not one of the table that UNNEST stands behind, or the join has a condition.
    SchemaError
        If the column is unknown, or no array of values that a query can use.
    """
    item = join.this
    kind, side = (str(join.args.get(slot) or "").upper() for slot in ("kind", "side"))
    if kind not in ("", "INNER", "CROSS", "OUTER") or side not in ("", "LEFT"):
        raise UnsupportedSql(
            "UNNEST of an array of a row must be joined by a comma, CROSS JOIN or LEFT JOIN; write one"
        )
    if item.args.get("offset"):
        raise UnsupportedSql("UNNEST of an array of a row must not have WITH OFFSET; leave it out")
    only(join, "this", "kind", "side", "on", what="a join with UNNEST")
    condition = join.args.get("on")
    if condition is not None and not (isinstance(condition, exp.Boolean) and condition.this):
        raise UnsupportedSql("a join with UNNEST of an array of a row must have no condition; write WHERE")
    only(item, "expressions", "alias", "explode_array", what="UNNEST")
    alias = item.args.get("alias")
    named = [] if alias is None else [p.name for p in (alias.this, *alias.args.get("columns", ())) if p]
    if len(named) != 1 or len(item.expressions) != 1:
        raise UnsupportedSql("UNNEST must read one array under one name; write UNNEST(tags) AS tag")
    table = _table_of(rows)
    written = output_name(named[0])
    array = rows.column(item.expressions[0])
    if array.element is None:
        raise SchemaError(
            f"UNNEST must read an array of single values, got {array.name!r}; arrays in arrays, structs and "
            "maps are not supported, bring them into columns before connecting"
        )
    name = free_name(written, {known.name.casefold() for known in rows.schema.columns})
    member = ScopeTable(written, (ScopeColumn(written, name),))
    made = Unnest(table, array.name, name, array.element, keep=side == "LEFT")
    return Rows(_placed(rows.relation, made), (*rows.members, member), rows.private)


def _table_of(rows: Rows) -> Scan | PublicScan | Unnest:
    """Return the table whose arrays are in reach, below conditions on its rows."""
    table = rows.relation
    while isinstance(table, Filter):
        table = table.child
    if not isinstance(table, (Scan, PublicScan, Unnest)):
        raise UnsupportedSql(
            "UNNEST of an array of a row must stand behind the row's table itself; write FROM data, "
            "UNNEST(tags) AS tag JOIN ..."
        )
    if rows.private and table.unit is None:
        raise UnsupportedSql(
            "where each row is a unit, UNNEST would make several rows of one; name the unit's column"
        )
    return table


def _placed(relation: Relation, made: Unnest) -> Relation:
    """Return the relation with its table taken apart; conditions on the table's rows hold as before."""
    if isinstance(relation, Filter):
        return replace(relation, child=_placed(relation.child, made))
    return made
