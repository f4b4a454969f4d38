"""ROLLUP, CUBE and GROUPING SETS: one private SELECT for each set of keys, and a union of their answers.

``GROUP BY ROLLUP(state, sex)`` becomes three private SELECTs, by state and sex, by state, and over all rows.
Each has an equal part of epsilon and of delta, bounds of its own and, where groups are unknown, its own
threshold. So a unit counts once in each set, and a missing group is missing in its own set only: nothing is
filled in, and no set is made to add up to another.

Notes
-----
Guarantee: with m sets each answer is (epsilon / m, delta / m)-differentially private, so by basic composition
(Dwork and Roth 2014, theorem 3.16) all of them together are (epsilon, delta)-differentially private. What the
ledger is charged is the sum of their losses, which is at most that.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.catalog import named_item
from sfumato.queries.sql.expanded_select import (
    Expanded,
    aggregate_column,
    grouped_node,
    ordered,
    place_of,
)
from sfumato.queries.sql.expressions.scalar import is_aggregate

__all__ = ["expanded"]

_MAX_SETS: Final = 16
_SEVERAL: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of the SELECT list: its tree, and its name in the answer.

    ``key`` is the place of the GROUP BY item that it is, ``grouping`` that of the one GROUPING asks for.
    """

    node: exp.Expr
    name: str
    key: int | None = None
    grouping: int | None = None


def expanded(select: exp.Select) -> Expanded | None:
    """Return a private SELECT with several groupings as a union; None for one that has a single grouping.

    Raises
    ------
    UnsupportedSql
        If the sets repeat or are too many, or another clause has no meaning for all of them.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> made = expanded(parse_one("SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP(g)", dialect="bigquery"))
    >>> [each.sql() for each in made.private]
    ['SELECT g AS "g", COUNT(*) AS "n" FROM t GROUP BY g', 'SELECT COUNT(*) AS "n" FROM t']
    """
    group = select.args.get("group")
    if group is None or not any(isinstance(node.unnest(), _SEVERAL) for node in group.expressions):
        if any(select.find_all(exp.Grouping)):
            raise UnsupportedSql("GROUPING needs ROLLUP, CUBE or GROUPING SETS; leave it out, it is always 0")
        return None
    only(group, "expressions", what="GROUP BY")
    keys: list[exp.Expr] = []
    sets = _sets(group.expressions, keys, select.expressions)
    if len(set(sets)) < len(sets):
        raise UnsupportedSql("GROUPING SETS, ROLLUP and CUBE must make each set of keys once; leave one out")
    if len(sets) > _MAX_SETS:
        raise UnsupportedSql(
            f"GROUP BY must make at most {_MAX_SETS} sets of keys, got {len(sets)}; ask for fewer"
        )
    items = _items(select.expressions, keys)
    having = select.args.get("having")
    if having is not None and (any(having.find_all(exp.Grouping)) or _names_key(having, items, keys)):
        raise UnsupportedSql(
            "HAVING beside several groupings must be on aggregates; put other conditions around this SELECT"
        )
    private = [_private(select, items, keys, chosen) for chosen in sets]
    return Expanded(_around(select, items, private, sets), tuple(private))


def _sets(
    nodes: Sequence[exp.Expr], keys: list[exp.Expr], items: Sequence[exp.Expr]
) -> list[tuple[int, ...]]:
    """Return the sets of keys that GROUP BY makes: every combination of what its items make."""
    parts = [_of_item(node.unnest(), keys, items) for node in nodes]
    return [tuple(sorted(set(itertools.chain(*each)))) for each in itertools.product(*parts)]


def _of_item(node: exp.Expr, keys: list[exp.Expr], items: Sequence[exp.Expr]) -> list[tuple[int, ...]]:
    if not isinstance(node, _SEVERAL):
        return [_columns(node, keys, items)]
    written = list(node.expressions)
    if len(written) > _MAX_SETS:
        raise UnsupportedSql(f"GROUP BY must make at most {_MAX_SETS} sets of keys; ask for fewer")
    if isinstance(node, exp.GroupingSets):
        return [each for part in written for each in _of_item(_bare(part), keys, items)]
    columns = [_columns(_bare(part), keys, items) for part in written]
    if isinstance(node, exp.Rollup):
        return [tuple(itertools.chain(*columns[:count])) for count in range(len(columns), -1, -1)]
    return [
        tuple(itertools.chain(*chosen))
        for count in range(len(columns), -1, -1)
        for chosen in itertools.combinations(columns, count)
    ]


def _bare(node: exp.Expr) -> exp.Expr:
    return node.unnest() if isinstance(node, exp.Paren) else node


def _columns(node: exp.Expr, keys: list[exp.Expr], items: Sequence[exp.Expr]) -> tuple[int, ...]:
    """Return the places of the keys that an item names: one, or several in parentheses."""
    parts = node.expressions if isinstance(node, exp.Tuple) else [node]
    places = []
    for part in parts:
        meant = grouped_node(part.unnest(), items)
        found = place_of(meant, keys)
        if found is None:
            keys.append(meant)
            found = len(keys) - 1
        places.append(found)
    return tuple(places)


def _items(written: Sequence[exp.Expr], keys: Sequence[exp.Expr]) -> list[_Item]:
    items: list[_Item] = []
    for number, each in enumerate(written, 1):
        node, alias = named_item(each)
        place = place_of(node, keys)
        name = alias or (node.name if isinstance(node, exp.Column) else f"column_{number}")
        if place is not None:
            items.append(_Item(node, name, key=place))
        elif isinstance(node, exp.Grouping):
            items.append(_Item(node, alias or f"grouping_{number}", grouping=_grouping(node, keys, written)))
        elif any(map(is_aggregate, node.walk())) and not any(node.find_all(exp.Grouping)):
            items.append(_Item(node, alias or aggregate_column(node, number)))
        else:
            raise UnsupportedSql(
                "an item beside several groupings must be a GROUP BY item, an aggregate or GROUPING(key); "
                "compute with it in SQL around this SELECT"
            )
    names = [item.name.casefold() for item in items]
    if len(set(names)) < len(names):
        raise UnsupportedSql("two columns of the answer have one name; rename one with AS")
    return items


def _grouping(node: exp.Expr, keys: Sequence[exp.Expr], items: Sequence[exp.Expr]) -> int:
    meant = grouped_node(node.expressions[0].unnest(), items) if len(node.expressions) == 1 else node
    place = place_of(meant, keys)
    if place is None:
        raise UnsupportedSql("GROUPING must name one GROUP BY item; write GROUPING(state)")
    return place


def _names_key(clause: exp.Expr, items: Sequence[_Item], keys: Sequence[exp.Expr]) -> bool:
    """Return whether a clause names a key outside of an aggregate."""
    names = {item.name.casefold() for item in items if item.key is not None}

    def found(node: exp.Expr) -> bool:
        if is_aggregate(node):
            return False
        if place_of(node, keys) is not None:
            return True
        if isinstance(node, exp.Column) and node.name.casefold() in names:
            return True
        return any(found(child) for child in node.iter_expressions())

    return found(clause)


def _private(
    select: exp.Select, items: Sequence[_Item], keys: Sequence[exp.Expr], chosen: tuple[int, ...]
) -> exp.Select:
    """Return the SELECT of one set of keys, without what is done to the whole answer."""
    made = select.copy()
    for slot in ("with_", "order", "limit", "offset", "group"):
        made.set(slot, None)
    shown = [item for item in items if item.grouping is None and (item.key is None or item.key in chosen)]
    if not shown:
        raise UnsupportedSql(
            "the set of no keys must have an aggregate to show; add COUNT(*), or leave () out of the sets"
        )
    made.set("expressions", [exp.alias_(item.node.copy(), item.name, quoted=True) for item in shown])
    if chosen:
        made.set("group", exp.Group(expressions=[keys[place].copy() for place in chosen]))
    return made


def _around(
    select: exp.Select, items: Sequence[_Item], private: Sequence[exp.Select], sets: Sequence[tuple[int, ...]]
) -> exp.Select:
    parts = []
    for inner, chosen in zip(private, sets, strict=True):
        columns = [_column(item, chosen) for item in items]
        parts.append(exp.Select(expressions=columns).from_(exp.Subquery(this=inner), copy=False))
    whole: exp.Expr = parts[0]
    for part in parts[1:]:
        whole = exp.Union(this=whole, expression=part, distinct=False)
    names = [exp.column(item.name, quoted=True) for item in items]
    tree = exp.Select(expressions=names).from_(exp.Subquery(this=whole), copy=False)
    tree.set("with_", select.args.get("with_"))
    order = select.args.get("order")
    if order is not None:
        terms = ordered(order, [(item.node, item.name) for item in items], "several groupings")
        tree.set("order", exp.Order(expressions=list(terms)))
    for slot in ("limit", "offset"):
        tree.set(slot, select.args.get(slot))
    return tree


def _column(item: _Item, chosen: tuple[int, ...]) -> exp.Expr:
    if item.grouping is not None:
        return exp.alias_(exp.Literal.number("0" if item.grouping in chosen else "1"), item.name, quoted=True)
    if item.key is not None and item.key not in chosen:
        return exp.alias_(exp.Null(), item.name, quoted=True)
    return exp.column(item.name, quoted=True)
