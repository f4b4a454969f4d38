"""A plan written back as SQL, for tests: read again, the text must make the same plan.

It is written from the plan alone, so case, white space, comments, aliases of tables, parentheses, the order
of OPTIONS, and defaults that OPTIONS repeats leave no trace.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlglot import exp

from sfumato.queries.plan.nodes import (
    Distinct,
    Filter,
    InPublic,
    JoinOnUnit,
    JoinPublic,
    PerUnit,
    Project,
    PublicRows,
    PublicScan,
    Relation,
    Scan,
    Union,
    UnitAggregate,
    UnitFunction,
    UnitWindow,
    UnitWindows,
    Unnest,
)
from sfumato.queries.plan.query import (
    Aggregate,
    AggregateKind,
    Expression,
    Named,
    Options,
    OrderItem,
    PublicGroups,
    PublicTable,
    PublicValues,
    Query,
    Schema,
)
from sfumato.queries.plan.sql_text import quoted


def canonical_text(query: Query) -> str:
    """Write a query as one line of SQL."""
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
    part = aggregate.interval_epsilon
    named += [] if part is None else [f"interval_epsilon => {part}"]
    return f"{function}({', '.join([argument, *named])})"


def _groups(groups: PublicGroups, keys: Sequence[Named]) -> str:
    names = [f"g{index}" for index in range(len(keys))]
    if isinstance(groups, PublicTable):
        pairs = zip(groups.columns, names, strict=True)
        columns = ", ".join(f"{quoted(column)} AS {name}" for column, name in pairs)
        listed = f"(SELECT DISTINCT {columns} FROM {quoted(groups.table)})"
    else:
        assert isinstance(groups, PublicValues)
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


def relation_text(relation: Relation) -> str:
    """Write a relation as it may stand in FROM."""
    return _TEXTS[type(relation)](relation)


def _items(columns: Iterable[Named]) -> str:
    return ", ".join(f"{named.expression.sql} AS {quoted(named.name)}" for named in columns)


def _filter(node: Filter) -> str:
    return f"(SELECT * FROM {relation_text(node.child)} WHERE {node.predicate.sql})"


def _project(node: Project) -> str:
    return f"(SELECT {_items(node.columns)} FROM {relation_text(node.child)})"


def _sides(left: Schema, names: Iterable[str], right: Schema) -> dict[str, str]:
    """Return what each column of a join is called before it, by its name in the join."""
    found = {known.name: f"l.{quoted(known.name)}" for known in left.usable.columns}
    pairs = zip(names, right.usable.columns, strict=True)
    return found | {name: f"r.{quoted(known.name)}" for name, known in pairs}


def _join(sides: Mapping[str, str], left: Relation, right: Relation, on: str | None, *, keep: bool) -> str:
    items = ", ".join(f"{source} AS {quoted(name)}" for name, source in sides.items())
    word = "CROSS JOIN" if on is None and not keep else "LEFT JOIN" if keep else "INNER JOIN"
    condition = "" if word == "CROSS JOIN" else f" ON {on or 'TRUE'}"
    both = f"{relation_text(left)} AS l {word} {relation_text(right)} AS r{condition}"
    return f"(SELECT {items} FROM {both})"


def _placed(expression: Expression | None, sides: Mapping[str, str]) -> str | None:
    if expression is None:
        return None
    tree = expression.tree.transform(
        lambda node: exp.Var(this=sides[node.name]) if isinstance(node, exp.Column) else node
    )
    return tree.sql(dialect="bigquery")


def _listed(node: PublicRows) -> str:
    rows = ", ".join(f"({', '.join(value.sql for value in row)})" for row in node.rows)
    names = ", ".join(quoted(known.name) for known in node.schema.columns)
    return f"(SELECT * FROM (VALUES {rows}) AS v({names}))"


def _join_public(node: JoinPublic) -> str:
    if node.single == ():
        own = ", ".join(quoted(known.name) for known in node.child.schema.usable.columns)
        value = f"(SELECT * FROM {relation_text(node.public)}) AS {quoted(node.names[0])}"
        return f"(SELECT {own}, {value} FROM {relation_text(node.child)})"
    sides = _sides(node.child.schema, node.names, node.public.schema)
    return _join(sides, node.child, node.public, _placed(node.on, sides), keep=node.keep)


def _join_on_unit(node: JoinOnUnit) -> str:
    sides = _sides(node.left.schema, node.names, node.right_columns)
    same = f"l.{quoted(str(node.left.unit))} = r.{quoted(str(node.right.unit))}"
    on = _placed(node.on, sides)
    return _join(sides, node.left, node.right, same if on is None else f"{same} AND ({on})", keep=node.keep)


def _in_public(node: InPublic) -> str:
    word = "NOT IN" if node.negated else "IN"
    listed = f"(SELECT * FROM {relation_text(node.public)})"
    test = f"({node.subject.sql}) {word} {listed}"
    return f"(SELECT * FROM {relation_text(node.child)} WHERE {test})"


def _union(node: Union) -> str:
    return "(" + " UNION ALL ".join(f"SELECT * FROM {relation_text(part)}" for part in node.parts) + ")"


def _distinct(node: Distinct) -> str:
    return f"(SELECT DISTINCT * FROM {relation_text(node.child)})"


def _call(made: UnitAggregate) -> str:
    argument = "" if made.expression is None else made.expression.sql
    if made.function is UnitFunction.COUNT_ROWS:
        return "COUNT(*)"
    if made.function is UnitFunction.COUNT_DISTINCT:
        return f"COUNT(DISTINCT {argument})"
    return f"{made.function.value}({argument})"


def _per_unit(node: PerUnit) -> str:
    made = [f"{_call(aggregate)} AS {quoted(aggregate.name)}" for aggregate in node.aggregates]
    keys = ", ".join(key.expression.sql for key in node.keys)
    items = ", ".join((_items(node.keys), *made))
    grouped = f" GROUP BY {keys}" if keys else ""
    return f"(SELECT {items} FROM {relation_text(node.child)}{grouped})"


def _window(window: UnitWindow, unit: str | None) -> str:
    parts = ", ".join((quoted(str(unit)), *(part.sql for part in window.partition)))
    order = ", ".join(
        f"{term.expression.sql} {'DESC' if term.descending else 'ASC'} "
        f"NULLS {'FIRST' if term.nulls_first else 'LAST'}"
        for term in window.order
    )
    over = f"PARTITION BY {parts}" + (f" ORDER BY {order}" if order else "")
    return f"{_call(window.aggregate)} OVER ({over}) AS {quoted(window.aggregate.name)}"


def _windows(node: UnitWindows) -> str:
    made = ", ".join(_window(window, node.unit) for window in node.windows)
    return f"(SELECT *, {made} FROM {relation_text(node.child)})"


def _elements(node: Unnest) -> str:
    word = "LEFT JOIN" if node.keep else "CROSS JOIN"
    array = f"UNNEST(l.{quoted(node.array)}) AS {quoted(node.name)}"
    return f"(SELECT * FROM {relation_text(node.child)} AS l {word} {array})"


_TEXTS: Final[dict[type[Any], Callable[[Any], str]]] = {
    Scan: lambda node: quoted(node.table),
    PublicRows: _listed,
    PublicScan: lambda node: quoted(node.table),
    Filter: _filter,
    Project: _project,
    JoinPublic: _join_public,
    JoinOnUnit: _join_on_unit,
    InPublic: _in_public,
    Union: _union,
    Distinct: _distinct,
    PerUnit: _per_unit,
    UnitWindows: _windows,
    Unnest: _elements,
}
