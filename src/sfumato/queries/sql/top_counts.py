"""APPROX_TOP_COUNT: the most frequent values of each group, taken from the noisy counts of all values.

``SELECT g, APPROX_TOP_COUNT(x, 3) AS top ... GROUP BY g`` becomes the private SELECT
``g, x AS value, COUNT(*) AS count ... GROUP BY g, x`` under the same OPTIONS, and SQL around it that lists
the largest counts of each g. So a group of OPTIONS (of ``max_groups_contributed``, of thresholds, of a public
list) is a pair of a group and a value, and its count is that of COUNT(*): of units, or of rows up to bounds.

Notes
-----
Guarantee: that of the private SELECT of pairs. The lists are computed from its answer and from the literal
number alone, so they cost nothing (post-processing; Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, NoReturn

from sqlglot import exp

from sfumato.errors import OptionError, QueryError, UnsupportedSql
from sfumato.queries.plan.constants import python_value
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.aggregates.arguments import PER_GROUP
from sfumato.queries.sql.catalog import free_name, named_item
from sfumato.queries.sql.expanded_select import (
    Expanded,
    aggregate_column,
    grouped_node,
    ordered,
    place_of,
)
from sfumato.queries.sql.expressions.scalar import function_name, is_aggregate, read_constant

__all__ = ["TopList", "with_top_counts"]

_NAME: Final = "APPROX_TOP_COUNT"
_MOST: Final = 10_000
_FORM: Final = f"write {_NAME}(x, 10)"
_WRITTEN_OUT: Final = ("with_", "expressions", "group", "having", "order", "limit", "offset")


class TopList(exp.Expression, exp.AggFunc):
    """``ARRAY_AGG(STRUCT(...) ORDER BY ... LIMIT k)`` around a private SELECT, which no text parses to.

    ``this`` is a Limit of an Order of a Struct of the value and its count.
    """

    arg_types: ClassVar[dict[str, Any]] = {"this": True}
    _sql_names: ClassVar[list[str]] = ["ARRAY_AGG"]


def with_top_counts(select: exp.Select) -> Expanded | None:
    """Return a private SELECT with APPROX_TOP_COUNT as SQL around the counts; None for one without.

    Parameters
    ----------
    select : sqlglot.exp.Select
        As it was parsed, without its privacy clause.

    Raises
    ------
    UnsupportedSql
        If the call has company that would need a part of epsilon, or stands elsewhere than in the list.
    OptionError
        If its second argument is no whole number, or it has named arguments.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> from sfumato.queries.sql.parser import PrivateSql
    >>> made = with_top_counts(parse_one("SELECT APPROX_TOP_COUNT(x, 2) AS top FROM t", dialect=PrivateSql()))
    >>> made.private[0].sql()
    'SELECT x AS "value", COUNT(*) AS "count" FROM t GROUP BY 1'
    """
    calls = [node for node in _own_nodes(select) if function_name(node) == _NAME]
    if not calls:
        return None
    call = _checked(select, calls)
    size = _size(call)
    written = [(node, alias) for node, alias in map(named_item, select.expressions)]
    keys = _keys(select, call)
    shown = [None if node is call else _key(node, keys) for node, _ in written]
    names = _names(written, shown)
    taken = {name.casefold() for name in names}
    inside = [
        next((name for place, name in zip(shown, names, strict=True) if place == index), None)
        or free_name(key.name if isinstance(key, exp.Column) else f"key_{index + 1}", taken)
        for index, key in enumerate(keys)
    ]
    taken |= {name.removesuffix("_lower").removesuffix("_upper") for name in taken}  # ends of intervals
    value, count = free_name("value", taken), free_name("count", taken)
    inner = _counts(select, call, list(zip(keys, inside, strict=True)), (value, count))
    listed = _list(size, value, count)
    columns = [listed if place is None else exp.column(inside[place], quoted=True) for place in shown]
    tree = exp.Select(
        expressions=[
            exp.alias_(column, name, quoted=True) for column, name in zip(columns, names, strict=True)
        ]
    ).from_(exp.Subquery(this=inner), copy=False)
    tree.set("with_", select.args.get("with_"))
    if keys:
        tree.set("group", exp.Group(expressions=[exp.column(name, quoted=True) for name in inside]))
    if keys and not isinstance(select.parent, exp.SetOperation):  # whose parts have no order
        items = [(node, name) for (node, _), name in zip(written, names, strict=True)]
        tree.set("order", exp.Order(expressions=list(_order(select, call, items, inside))))
    if not keys and select.args.get("order") is not None:
        _refuse_order()
    for slot in ("limit", "offset"):
        tree.set(slot, select.args.get(slot))
    return Expanded(tree, (inner,))


def _own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the nodes of a SELECT without those of queries inside of it."""
    return select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query))


def _checked(select: exp.Select, calls: Sequence[exp.Expr]) -> exp.Expr:
    """Return the call, an item of the SELECT list and the only aggregate; refuse all else."""
    call = next(
        (node for node, _ in map(named_item, select.expressions) if function_name(node) == _NAME), None
    )
    if call is None or (len(calls) == 1 and calls[0] is not call):
        raise UnsupportedSql(
            f"{_NAME} must be an item of the SELECT list, without FILTER, OVER or an expression around it; "
            "put conditions into WHERE, and compute in the SQL around this SELECT"
        )
    aggregates = (node for node in _own_nodes(select) if is_aggregate(node) and node is not call)
    other = next((node for node in aggregates if not isinstance(node, exp.Filter)), None)
    if other is not None:
        raise UnsupportedSql(
            f"{_NAME} must be the only aggregate of its SELECT, got {function_name(other)} too; write a "
            "private SELECT for each in WITH, and join their answers on the GROUP BY items"
        )
    for slot in ("having", "qualify"):
        if select.args.get(slot) is not None:
            raise UnsupportedSql(
                f"{slot.upper()} beside {_NAME} is not answered; put conditions into WHERE, or into the SQL "
                "around this SELECT"
            )
    limit = select.args.get("limit")
    count = limit.expression if isinstance(limit, exp.Limit) else None
    if isinstance(count, exp.Expr) and not count.name.strip("0").isdigit():
        raise UnsupportedSql("LIMIT must be a whole number from 1, or an empty answer is paid for; write 10")
    return call


def _size(call: exp.Expr) -> int:
    """Return how many values are listed; refuse other arguments than the value and COUNT's bounds."""
    arguments = [each for each in call.expressions if not isinstance(each, exp.Kwarg)]
    for named in call.expressions:
        if isinstance(named, exp.Kwarg) and named.this.name.lower() != PER_GROUP:
            raise OptionError(
                f"{_NAME} has no argument {named.this.name.lower()!r}; it takes {PER_GROUP} => (0, 5), as "
                "COUNT(*) does"
            )
        if isinstance(named, exp.Distinct):
            raise UnsupportedSql(f"{_NAME} lists distinct values anyway; leave DISTINCT out")
    if len(arguments) != 2:
        raise UnsupportedSql(
            f"{_NAME} must have two arguments, a value and a whole number, got {len(arguments)}; {_FORM}"
        )
    if arguments[0].is_star or not any(arguments[0].find_all(exp.Column)):
        raise UnsupportedSql(f"the first argument of {_NAME} must name a column; {_FORM}")
    size: object = None
    with suppress(QueryError):
        size = python_value(read_constant(arguments[1], "a number"))
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _MOST:
        got = repr(size) if isinstance(size, bool | int | float | str) else "no literal"
        raise OptionError(
            f"the second argument of {_NAME} must be a whole number from 1 to {_MOST}, got {got[:60]}; "
            f"{_FORM}"
        )
    return size


def _value(call: exp.Expr) -> exp.Expr:
    value: exp.Expr = next(each for each in call.expressions if not isinstance(each, exp.Kwarg))
    return value


def _keys(select: exp.Select, call: exp.Expr) -> list[exp.Expr]:
    """Return the GROUP BY items, each once."""
    group = select.args.get("group")
    if group is None:
        return []
    if any(isinstance(node.unnest(), exp.Rollup | exp.Cube | exp.GroupingSets) for node in group.expressions):
        raise UnsupportedSql(
            f"{_NAME} must have one grouping, got ROLLUP, CUBE or GROUPING SETS; write a private SELECT for "
            "each set of keys"
        )
    only(group, "expressions", "all", what="GROUP BY")
    if group.args.get("all"):
        nodes = [node for node, _ in map(named_item, select.expressions) if node is not call]
    else:
        nodes = [_meant(node.unnest(), select.expressions, call) for node in group.expressions]
    keys: list[exp.Expr] = []
    for node in nodes:
        if node not in keys:  # what only looks alike is compared by whoever reads the SELECT
            keys.append(node)
    if place_of(_value(call).unnest(), keys) is not None:
        raise UnsupportedSql(
            f"{_NAME} must be of a value that is no GROUP BY item, of which each group has one; name another"
        )
    return keys


def _meant(node: exp.Expr, items: Sequence[exp.Expr], call: exp.Expr) -> exp.Expr:
    found = grouped_node(node, items)
    if found is not call:
        return found
    if isinstance(node, exp.Column):
        return node  # of the rows: an alias of an aggregate cannot be meant
    raise UnsupportedSql(f"GROUP BY must not name {_NAME}; group by columns")


def _key(node: exp.Expr, keys: Sequence[exp.Expr]) -> int:
    place = keys.index(node) if node in keys else None
    if place is None:
        place = place_of(node, keys)
    if place is None:
        raise UnsupportedSql(
            f"an item beside {_NAME} must be a GROUP BY item; compute with it in SQL around this SELECT"
        )
    return place


def _names(written: Sequence[tuple[exp.Expr, str | None]], shown: Sequence[int | None]) -> list[str]:
    """Return the names of the answer's columns, as another private SELECT would have them."""
    names: list[str] = []
    for number, ((node, alias), place) in enumerate(zip(written, shown, strict=True), 1):
        unnamed = aggregate_column(node, number) if place is None else f"key_{place + 1}"
        names.append(alias or (node.name if isinstance(node, exp.Column) else unnamed))
    if len({name.casefold() for name in names}) < len(names):
        raise UnsupportedSql("two columns of the answer have one name; rename one with AS")
    return names


def _counts(
    select: exp.Select, call: exp.Expr, keys: Sequence[tuple[exp.Expr, str]], names: tuple[str, str]
) -> exp.Select:
    """Return the private SELECT: the number of rows of each pair of a group and a value."""
    made = select.copy()
    for slot in _WRITTEN_OUT:
        made.set(slot, None)
    bounds = [each.copy() for each in call.expressions if isinstance(each, exp.Kwarg)]
    rows = exp.Anonymous(this="COUNT", expressions=[exp.Star(), *bounds])
    columns = [*keys, (_value(call), names[0]), (rows, names[1])]
    made.set("expressions", [exp.alias_(node.copy(), name, quoted=True) for node, name in columns])
    places = range(1, len(columns))
    made.set("group", exp.Group(expressions=[exp.Literal.number(place) for place in places]))
    return made


def _list(size: int, value: str, count: str) -> TopList:
    """Return the list of the largest counts; ties are in the order of values, NULL first."""
    struct = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(field), expression=exp.column(name, quoted=True))
            for field, name in (("value", value), ("count", count))
        ]
    )
    order = exp.Order(
        this=struct,
        expressions=[
            exp.Ordered(this=exp.column(count, quoted=True), desc=True, nulls_first=False),
            exp.Ordered(this=exp.column(value, quoted=True), nulls_first=True),
        ],
    )
    return TopList(this=exp.Limit(this=order, expression=exp.Literal.number(size)))


def _order(
    select: exp.Select, call: exp.Expr, items: Sequence[tuple[exp.Expr, str]], keys: Sequence[str]
) -> Iterator[exp.Expr]:
    """Yield the terms of ORDER BY, and after them the other keys, in whose order any answer is."""
    order = select.args.get("order")
    terms = [] if order is None else list(ordered(order, items, _NAME))
    lists = {name for node, name in items if node is call}
    if any(term.this.name in lists for term in terms):
        _refuse_order()
    yield from terms
    for key in sorted(set(keys) - {term.this.name for term in terms}, key=keys.index):
        yield exp.Ordered(this=exp.column(key, quoted=True), nulls_first=False)


def _refuse_order() -> NoReturn:
    raise UnsupportedSql(f"ORDER BY beside {_NAME} must name GROUP BY items, got none; leave it out")
