"""The key of a query: equal for queries that ask the same, however they are spelled.

A committed release is found again by the key of its query. The key is one JSON text of the format
``sfumato.query``, written from the plan alone: each node of the relation and of each expression under its
wire name, with its operands. So case, white space, comments, aliases of tables, parentheses, the order of
OPTIONS, and defaults that OPTIONS repeats leave no trace. Neither do names in this code, nor the way
in which a library prints SQL.

Notes
-----
Guarantee: two queries with one key ask the same of the same tables under the same options. What a key leaves
out follows from the rest or from the dataset: the schemas of tables, types of expressions, and the SQL text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from sqlglot import exp

from sfumato._wire import NUMBER, Format, canonical, optional
from sfumato.queries.plan import nodes
from sfumato.queries.plan.nodes import Relation
from sfumato.queries.plan.query import (
    Aggregate,
    Expression,
    Named,
    Options,
    PublicGroups,
    PublicRelation,
    PublicTable,
    Query,
)
from sfumato.queries.plan.typed_expressions import DATA_TYPES, UNSIGNED
from sfumato.queries.plan.wire_names import (
    AGGREGATE,
    COLUMN_TYPE,
    EXPRESSION_NODES,
    GROUP_SELECTION,
    UNIT_FUNCTION,
)

__all__ = ["query_document", "query_key"]

_FORMAT: Final = Format("sfumato.query", 1)
_TYPE_NAMES: Final = {
    **{data_type.this: COLUMN_TYPE.encode(type_) for type_, data_type in DATA_TYPES.items()},
    UNSIGNED.this: "unsigned",
}

Document: TypeAlias = dict[str, object]
_Names: TypeAlias = Mapping[str, object]


def query_key(query: Query) -> str:
    """Return the key of a query: one line of JSON.

    Parameters
    ----------
    query : Query
        Checked.

    Examples
    --------
    >>> from sfumato.queries.sql.catalog import Catalog
    >>> from sfumato.queries.sql.analysis import read
    >>> from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
    >>> catalog = Catalog({"data": Scan("data", Schema((Column("age", ColumnType.INTEGER),)), None)})
    >>> asked = "SELECT COUNT(*) AS n FROM data WHERE age < 5"
    >>> again = "select count(*) as n from data as d where (d.age < 5)"
    >>> first, second = (read(text, catalog, defaults={"epsilon": 1}) for text in (asked, again))
    >>> query_key(first) == query_key(second)
    True
    """
    return canonical(query_document(query))


def query_document(query: Query) -> Document:
    """Return what `query_key` writes, as a part of a larger document."""
    keys = {key.name: {"key": _expression(key.expression)} for key in query.keys}
    aggregates = {aggregate.name: {"aggregate": _aggregate(aggregate)} for aggregate in query.aggregates}
    # an expression over the answer names keys and aggregates by what they are: hidden ones have no name
    known: dict[str, object] = {**keys, **aggregates}
    computed = {named.name: {"computed": _tree(named.expression.tree, known)} for named in query.computed}
    columns: dict[str, object] = known | computed
    return _FORMAT.wrap(
        {
            "rows": _relation(query.relation),
            "keys": [_expression(key.expression) for key in query.keys],
            "columns": [{"name": name, "value": columns[name]} for name in query.output],
            "options": _options(query.options),
            "public_groups": None if query.public_groups is None else _groups(query.public_groups),
            "having": None if query.having is None else columns[query.having],
            "order": [
                {
                    "by": item.name if item.name in query.output else columns[item.name],
                    "descending": item.descending,
                    "nulls_first": item.nulls_first,
                }
                for item in query.order_by
            ],
            "limit": query.limit,
            "offset": query.offset,
        }
    )


def _options(options: Options) -> Document:
    part = options.truncation_epsilon  # named where it is stated: keys of older queries stay
    report = {} if part is None else {"truncation_epsilon": NUMBER.encode(part)}
    return {
        **report,
        "epsilon": NUMBER.encode(options.epsilon),
        "delta": NUMBER.encode(options.delta),
        "max_groups_contributed": options.max_groups_contributed,
        "max_rows_per_group": options.max_rows_per_group,
        "max_rows_contributed": options.max_rows_contributed,
        "group_selection": optional(GROUP_SELECTION).encode(options.group_selection),
        "group_selection_epsilon": optional(NUMBER).encode(options.group_selection_epsilon),
        "min_privacy_units_per_group": options.min_privacy_units,
    }


def _aggregate(aggregate: Aggregate) -> Document:
    part = aggregate.interval_epsilon  # named where it is stated: keys of older queries stay
    interval = {} if part is None else {"interval_epsilon": NUMBER.encode(part)}
    return {
        **interval,
        "function": AGGREGATE.encode(aggregate.kind),
        "argument": _expression(aggregate.expression),
        "bounds_per_group": _bounds(aggregate.group_bounds),
        "bounds_per_row": _bounds(aggregate.row_bounds),
        "epsilon": optional(NUMBER).encode(aggregate.epsilon),
        "quantiles": [NUMBER.encode(order) for order in aggregate.quantiles],
        "second_argument": _expression(aggregate.second),
        "second_bounds_per_row": _bounds(aggregate.second_bounds),
        "as_report": aggregate.report,
    }


def _bounds(bounds: tuple[float, float] | None) -> object:
    return None if bounds is None else [NUMBER.encode(end) for end in bounds]


def _groups(groups: PublicGroups) -> Document:
    if isinstance(groups, PublicTable):
        return {"table": groups.table, "columns": list(groups.columns)}
    if isinstance(groups, PublicRelation):
        return {"relation": _relation(groups.relation), "columns": list(groups.columns)}
    return {"values": [[_constant(value) for value in row] for row in groups.rows]}


def _constant(value: object) -> object:
    if isinstance(value, dt.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    if isinstance(value, float):
        return {"float": NUMBER.encode(value)}
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError("a public group of a type that has no wire name")


def _expression(expression: Expression | None) -> object:
    return None if expression is None else _tree(expression.tree, {})


def _tree(node: exp.Expr, names: _Names) -> object:
    """Return a checked expression as a list: the wire name of its node, then its operands."""
    if isinstance(node, exp.Paren):
        return _tree(node.this, names)
    if isinstance(node, exp.Column):
        return names.get(node.name) or ["column", node.name]
    if type(node) in _CONSTANTS:
        return _CONSTANTS[type(node)](node)
    name, slots = EXPRESSION_NODES[type(node)]
    return [name, *(_operand(slot, node.args.get(slot), names) for slot in slots)]


_CONSTANTS: Final[dict[type[exp.Expr], Callable[[Any], object]]] = {
    exp.Boolean: lambda node: ["true" if node.this else "false"],
    exp.DataType: lambda node: _TYPE_NAMES[node.this],
    exp.Literal: lambda node: ["text" if node.is_string else "number", node.name],
    exp.Null: lambda _: ["null"],
    exp.Var: lambda node: node.name.lower(),
}


def _operand(slot: str, value: Any, names: _Names) -> object:
    if slot == "unit":
        return value.name.lower()
    if isinstance(value, list):
        return [_tree(each, names) for each in value]
    return None if value is None else _tree(value, names)


def _relation(relation: Relation) -> list[object]:
    return _RELATIONS[type(relation)](relation)


def _items(columns: tuple[Named, ...]) -> list[object]:
    return [[named.name, _expression(named.expression)] for named in columns]


def _call(made: nodes.UnitAggregate) -> Document:
    return {
        "name": made.name,
        "function": UNIT_FUNCTION.encode(made.function),
        "argument": _expression(made.expression),
    }


def _window(window: nodes.UnitWindow) -> Document:
    return {
        "call": _call(window.aggregate),
        "partition": [_expression(part) for part in window.partition],
        "order": [
            {
                "by": _expression(term.expression),
                "descending": term.descending,
                "nulls_first": term.nulls_first,
            }
            for term in window.order
        ],
    }


def _join_public(node: nodes.JoinPublic) -> list[object]:
    single = None if node.single is None else [_expression(each) for each in node.single]
    sides: list[object] = [_relation(node.child), _relation(node.public)]
    return ["join-public", *sides, list(node.names), _expression(node.on), node.keep, single]


def _join_on_unit(node: nodes.JoinOnUnit) -> list[object]:
    sides: list[object] = [_relation(node.left), _relation(node.right)]
    return ["join-on-unit", *sides, list(node.names), _expression(node.on), node.keep]


_RELATIONS: Final[dict[type[Any], Callable[[Any], list[object]]]] = {
    nodes.Scan: lambda node: ["table", node.table],
    nodes.PublicScan: lambda node: ["public-table", node.table],
    nodes.PublicRows: lambda node: [
        "public-rows",
        [[known.name, optional(COLUMN_TYPE).encode(known.type)] for known in node.schema.columns],
        [[_expression(value) for value in row] for row in node.rows],
    ],
    nodes.Filter: lambda node: ["filter", _relation(node.child), _expression(node.predicate)],
    nodes.Project: lambda node: ["project", _relation(node.child), _items(node.columns)],
    nodes.JoinPublic: _join_public,
    nodes.JoinOnUnit: _join_on_unit,
    nodes.InPublic: lambda node: [
        "not-in-public" if node.negated else "in-public",
        _relation(node.child),
        _expression(node.subject),
        _relation(node.public),
    ],
    nodes.Union: lambda node: ["union", *map(_relation, node.parts)],
    nodes.Distinct: lambda node: ["distinct", _relation(node.child)],
    nodes.PerUnit: lambda node: [
        "per-unit",
        _relation(node.child),
        _items(node.keys),
        [_call(made) for made in node.aggregates],
    ],
    nodes.Unnest: lambda node: ["unnest", _relation(node.child), node.array, node.name, node.keep],
    nodes.UnitWindows: lambda node: [
        "windows",
        _relation(node.child),
        [_window(each) for each in node.windows],
    ],
}
