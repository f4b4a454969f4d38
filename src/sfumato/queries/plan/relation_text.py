"""Relations as canonical text: one text for one tree, and another tree has another text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    PublicScan,
    Relation,
    Scan,
    Union,
    UnitAggregate,
    UnitFunction,
    UnitWindow,
    UnitWindows,
)
from sfumato.queries.plan.schema import Expression, Named, Schema
from sfumato.queries.plan.sql_text import quoted

__all__ = ["relation_text", "relation_words"]


def relation_text(relation: Relation) -> str:
    """Return a relation as it may stand in FROM.

    Examples
    --------
    >>> relation_text(Filter(Scan("data", Schema(()), "id"), Expression(exp.true(), None)))
    '(SELECT * FROM `data` WHERE TRUE)'
    """
    return _TEXTS[type(relation)](relation)


def relation_words(relation: Relation) -> str:
    """Return where rows come from, in words."""
    return _WORDS[type(relation)](relation)


def _items(columns: Iterable[Named]) -> str:
    return ", ".join(f"{named.expression.sql} AS {quoted(named.name)}" for named in columns)


def _filter(node: Filter) -> str:
    return f"(SELECT * FROM {relation_text(node.child)} WHERE {node.predicate.sql})"  # noqa: S608


def _project(node: Project) -> str:
    return f"(SELECT {_items(node.columns)} FROM {relation_text(node.child)})"  # noqa: S608


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
    return f"(SELECT {items} FROM {both})"  # noqa: S608


def _placed(expression: Expression | None, sides: Mapping[str, str]) -> str | None:
    if expression is None:
        return None
    tree = expression.tree.transform(
        lambda node: exp.Var(this=sides[node.name]) if isinstance(node, exp.Column) else node
    )
    return tree.sql(dialect="bigquery")


def _join_public(node: JoinPublic) -> str:
    sides = _sides(node.child.schema, node.names, node.public.schema)
    return _join(sides, node.child, node.public, _placed(node.on, sides), keep=node.keep)


def _join_on_unit(node: JoinOnUnit) -> str:
    sides = _sides(node.left.schema, node.names, node.right_columns)
    same = f"l.{quoted(str(node.left.unit))} = r.{quoted(str(node.right.unit))}"
    on = _placed(node.on, sides)
    return _join(sides, node.left, node.right, same if on is None else f"{same} AND ({on})", keep=node.keep)


def _in_public(node: InPublic) -> str:
    word = "NOT IN" if node.negated else "IN"
    listed = f"(SELECT * FROM {relation_text(node.public)})"  # noqa: S608
    test = f"({node.subject.sql}) {word} {listed}"
    return f"(SELECT * FROM {relation_text(node.child)} WHERE {test})"  # noqa: S608


def _union(node: Union) -> str:
    return "(" + " UNION ALL ".join(f"SELECT * FROM {relation_text(part)}" for part in node.parts) + ")"  # noqa: S608


def _distinct(node: Distinct) -> str:
    return f"(SELECT DISTINCT * FROM {relation_text(node.child)})"  # noqa: S608


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
    return f"(SELECT {items} FROM {relation_text(node.child)} GROUP BY {keys})"  # noqa: S608


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
    return f"(SELECT *, {made} FROM {relation_text(node.child)})"  # noqa: S608


_TEXTS: Final[dict[type[Any], Callable[[Any], str]]] = {
    Scan: lambda node: quoted(node.table),
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
}


def _joined_words(node: JoinPublic) -> str:
    once = "" if node.single is None else ", each row once at most"
    return f"{relation_words(node.child)} joined with the public {relation_words(node.public)}{once}"


def _member_words(node: InPublic) -> str:
    word = "not in" if node.negated else "in"
    subject, listed = node.subject.sql, relation_words(node.public)
    return f"{relation_words(node.child)} where {subject} is {word} the public {listed}"


def _unit_words(node: PerUnit) -> str:
    names = ", ".join(key.name for key in node.keys)
    return f"one row for each {names} of {relation_words(node.child)}"


_WORDS: Final[dict[type[Any], Callable[[Any], str]]] = {
    Scan: lambda node: f"table {node.table}",
    PublicScan: lambda node: f"table {node.table}",
    Filter: lambda node: f"{relation_words(node.child)} where {node.predicate.sql}",
    Project: lambda node: f"({relation_words(node.child)})",
    JoinPublic: _joined_words,
    JoinOnUnit: lambda node: (
        f"{relation_words(node.left)} joined on the unit with {relation_words(node.right)}"
    ),
    InPublic: _member_words,
    Union: lambda node: "(" + " and ".join(relation_words(part) for part in node.parts) + ")",
    Distinct: lambda node: f"the distinct rows of each unit in {relation_words(node.child)}",
    PerUnit: _unit_words,
    UnitWindows: lambda node: f"{relation_words(node.child)} with windows over the rows of each unit",
}
