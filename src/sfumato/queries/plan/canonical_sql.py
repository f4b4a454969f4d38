"""The canonical text of a checked query: equal for queries that differ only in spelling.

It is written from the plan alone, so case, white space, comments, aliases of tables, parentheses, the order
of OPTIONS, and defaults that OPTIONS repeats leave no trace. It is for people and for identity: no engine
runs it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from sqlglot import exp

from sfumato.queries.plan.query import (
    Aggregate,
    AggregateKind,
    Expression,
    Named,
    Options,
    OrderItem,
    PublicGroups,
    PublicTable,
    Query,
)
from sfumato.queries.plan.relation_text import relation_text
from sfumato.queries.plan.sql_text import quoted

__all__ = ["canonical_text"]


def canonical_text(query: Query) -> str:
    """Write a query as one line of SQL; its own ``text`` is not looked at."""
    columns = {key.name: f"{key.expression.sql} AS {quoted(key.name)}" for key in query.keys}
    calls = {aggregate.name: _aggregate(aggregate, query.relation.unit) for aggregate in query.aggregates}
    columns |= {name: f"{call} AS {quoted(name)}" for name, call in calls.items()}
    # what is computed names aggregates and keys by what they are: hidden ones have no name to call them by
    names = {key.name: key.expression.sql for key in query.keys} | calls
    computed = {named.name: _inlined(named.expression, names) for named in query.computed}
    columns |= {name: f"{sql} AS {quoted(name)}" for name, sql in computed.items()}
    parts = [
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({_options(query.options)})",
        ", ".join(columns[name] for name in query.output),
        f"FROM {relation_text(query.relation)}",
    ]
    if query.public_groups is not None:
        parts.append(_groups(query.public_groups, query.keys))
    if query.keys:
        parts.append("GROUP BY " + ", ".join(key.expression.sql for key in query.keys))
    if query.having is not None:
        parts.append(f"HAVING {computed[query.having]}")
    if query.order_by:
        hidden = {name: sql for name, sql in (names | computed).items() if name not in query.output}
        parts.append("ORDER BY " + ", ".join(_order(item, hidden) for item in query.order_by))
    if query.limit is not None:
        parts.append(f"LIMIT {query.limit}")
    if query.offset:
        parts.append(f"OFFSET {query.offset}")
    return " ".join(parts)


def _inlined(expression: Expression, names: Mapping[str, str]) -> str:
    tree = expression.tree.transform(
        lambda node: exp.Var(this=f"({names[node.name]})") if isinstance(node, exp.Column) else node
    )
    return tree.sql(dialect="bigquery")


def _options(options: Options) -> str:
    entries = {
        "epsilon": options.epsilon,
        "delta": options.delta,
        "max_groups_contributed": options.max_groups_contributed,
        "max_rows_per_group": options.max_rows_per_group,
        "group_selection_strategy": None
        if options.group_selection is None
        else options.group_selection.value,
        "group_selection_epsilon": options.group_selection_epsilon,
        "max_rows_contributed": options.max_rows_contributed,
        "min_privacy_units_per_group": None if options.min_privacy_units == 1 else options.min_privacy_units,
    }
    return ", ".join(f"{name}={value}" for name, value in entries.items() if value is not None)


def _aggregate(aggregate: Aggregate, unit: str | None) -> str:
    function, argument = aggregate.kind.value, ""
    if aggregate.expression is not None:
        function, argument = function.partition("(")[0], aggregate.expression.sql
        argument = f"DISTINCT {argument}" if aggregate.kind is AggregateKind.COUNT_DISTINCT else argument
        argument += "" if aggregate.second is None else f", {aggregate.second.sql}"
    elif aggregate.kind is AggregateKind.COUNT_ROWS:
        function, argument = "COUNT", "*"
    elif unit is not None:
        function, argument = "COUNT", f"DISTINCT {quoted(unit)}"
    bounds = {
        "contribution_bounds_per_group": aggregate.group_bounds,
        "contribution_bounds_per_row": aggregate.row_bounds,
    }
    named = [f"{name} => ({pair[0]}, {pair[1]})" for name, pair in bounds.items() if pair is not None]
    if aggregate.quantiles:
        several = aggregate.kind is AggregateKind.QUANTILES
        argument += f", {len(aggregate.quantiles) - 1 if several else aggregate.quantiles[0]}"
    named += [] if aggregate.second_bounds is None else [f"second => {aggregate.second_bounds}"]
    named += ["report_format => 'JSON'"] if aggregate.report else []
    named += [] if aggregate.epsilon is None else [f"epsilon => {aggregate.epsilon}"]
    return f"{function}({', '.join([argument, *named])})"


def _groups(groups: PublicGroups, keys: Sequence[Named]) -> str:
    names = [f"g{index}" for index in range(len(keys))]
    if isinstance(groups, PublicTable):
        pairs = zip(groups.columns, names, strict=True)
        columns = ", ".join(f"{quoted(column)} AS {name}" for column, name in pairs)
        listed = f"(SELECT DISTINCT {columns} FROM {quoted(groups.table)})"  # noqa: S608
    else:
        rows = ", ".join(f"({', '.join(_constant(value) for value in row)})" for row in groups.rows)
        listed = f"(VALUES {rows})"
    tests = " AND ".join(f"{key.expression.sql} = p.{name}" for key, name in zip(keys, names, strict=True))
    return f"RIGHT JOIN {listed} AS p ON {tests}"


def _constant(value: object) -> str:
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return exp.Literal.string(value).sql(dialect="bigquery")
    return "NULL" if value is None else repr(value)


def _order(item: OrderItem, hidden: Mapping[str, str]) -> str:
    direction = "DESC" if item.descending else "ASC"
    column = f"({hidden[item.name]})" if item.name in hidden else quoted(item.name)
    return f"{column} {direction} NULLS {'FIRST' if item.nulls_first else 'LAST'}"
