"""APPROX_TOP_COUNT: the most frequent values of each group, taken from the noisy counts of all values.

``SELECT g, APPROX_TOP_COUNT(x, 3) AS top ... GROUP BY g`` becomes the private SELECT
``g, x AS value, COUNT(*) AS count ... GROUP BY g, x`` under the same OPTIONS, and SQL around it that lists
the largest counts of each g. So a group of OPTIONS (of ``max_groups_contributed``, of thresholds, of a public
list) is a pair of a group and a value, and its count is that of COUNT(*): of units, or of rows up to bounds.
Other aggregates beside it, and further lists, are private SELECTs of their own, each with an equal part of
epsilon and delta; the answers are joined on the GROUP BY items.

Notes
-----
Guarantee: that of the private SELECT of pairs; with m SELECTs each is (epsilon / m, delta / m)-differentially
private, so all together are (epsilon, delta)-differentially private (basic composition; Dwork and Roth 2014,
theorem 3.16). The lists and the join are computed from the answers and from the literal numbers alone: they
cost nothing (post-processing; proposition 2.1 there).
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
        If a call stands elsewhere than in the list, or another clause has no meaning beside it.
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
    written = [(node, alias) for node, alias in map(named_item, select.expressions)]
    _check(select, calls, [node for node, _ in written])
    sizes = [_size(call) for call in calls]
    keys = _keys(select, calls)
    company = [node for node, _ in written if not _is_one(node, calls) and _aggregates(node)]
    shown = [None if _is_one(node, [*calls, *company]) else _key(node, keys) for node, _ in written]
    names = _names(written, shown)
    taken = {name.casefold() for name in names}
    inside = [
        next((name for place, name in zip(shown, names, strict=True) if place == index), None)
        or free_name(key.name if isinstance(key, exp.Column) else f"key_{index + 1}", taken)
        for index, key in enumerate(keys)
    ]
    taken |= {name.removesuffix("_lower").removesuffix("_upper") for name in taken}  # ends of intervals
    value, count = free_name("value", taken), free_name("count", taken)
    keyed = list(zip(keys, inside, strict=True))
    called = {id(node): name for (node, _), name in zip(written, names, strict=True)}
    private = [_counts(select, call, keyed, (value, count)) for call in calls]
    lists = [
        _of_groups(inner, [exp.alias_(_list(size, value, count), called[id(call)], quoted=True)], inside)
        for inner, size, call in zip(private, sizes, calls, strict=True)
    ]
    if company:
        private.append(_private(select, [*keyed, *((node, called[id(node)]) for node in company)], len(keys)))
        lists.append(exp.select("*").from_(exp.Subquery(this=private[-1]), copy=False))
    columns = [name if place is None else inside[place] for place, name in zip(shown, names, strict=True)]
    tree = exp.Select(
        expressions=[
            exp.alias_(exp.column(column, quoted=True), name, quoted=True)
            for column, name in zip(columns, names, strict=True)
        ]
    ).from_(
        exp.Subquery(
            this=lists[0]
            if len(lists) == 1
            else _joined(lists, inside, [called[id(node)] for node in (*calls, *company)])
        ),
        copy=False,
    )
    _finish(
        select, tree, [(node, name) for (node, _), name in zip(written, names, strict=True)], calls, inside
    )
    return Expanded(tree, tuple(private))


def _finish(
    select: exp.Select,
    tree: exp.Select,
    items: Sequence[tuple[exp.Expr, str]],
    calls: Sequence[exp.Expr],
    keys: Sequence[str],
) -> None:
    """Give the whole what was written for all of it: WITH, ORDER BY, LIMIT and OFFSET."""
    tree.set("with_", select.args.get("with_"))
    if keys and not isinstance(select.parent, exp.SetOperation):  # whose parts have no order
        tree.set("order", exp.Order(expressions=list(_order(select, calls, items, keys))))
    if not keys and select.args.get("order") is not None:
        _refuse_order()
    for slot in ("limit", "offset"):
        tree.set(slot, select.args.get(slot))


def _of_groups(private: exp.Select, columns: Sequence[exp.Expr], keys: Sequence[str]) -> exp.Select:
    """Return the SELECT of what is computed from the answer of a private one, for each group."""
    grouped = [exp.column(name, quoted=True) for name in keys]
    made = exp.Select(expressions=[*grouped, *columns]).from_(exp.Subquery(this=private), copy=False)
    if keys:
        made.set("group", exp.Group(expressions=[each.copy() for each in grouped]))
    return made


def _joined(parts: Sequence[exp.Select], keys: Sequence[str], names: Sequence[str]) -> exp.Select:
    """Return the SELECT of all columns of several by the same keys: of every group that one of them shows."""
    taken = {name.casefold() for name in (*keys, *names)}
    tables = [free_name(f"part_{index}", taken) for index in range(1, len(parts) + 1)]
    made = exp.Select()
    known: list[exp.Expr] = [exp.column(key, tables[0], quoted=True) for key in keys]
    for part, table in zip(parts, tables, strict=True):
        source = exp.Subquery(this=part, alias=exp.TableAlias(this=exp.to_identifier(table)))
        if table == tables[0]:
            made = made.from_(source, copy=False)
            continue
        mine = [exp.column(key, table, quoted=True) for key in keys]
        same = [
            exp.NullSafeEQ(this=one.copy(), expression=other.copy())
            for one, other in zip(known, mine, strict=True)
        ]
        kind = "FULL" if keys else "CROSS"
        made = made.join(source, on=exp.and_(*same) if same else None, join_type=kind, copy=False)
        known = [exp.Coalesce(this=one, expressions=[other]) for one, other in zip(known, mine, strict=True)]
    columns = [exp.alias_(tree, key, quoted=True) for tree, key in zip(known, keys, strict=True)]
    made.set("expressions", [*columns, *(exp.column(name, quoted=True) for name in names)])
    return made


def _is_one(node: exp.Expr, nodes: Sequence[exp.Expr]) -> bool:
    return any(node is each for each in nodes)


def _aggregates(node: exp.Expr) -> bool:
    return any(map(is_aggregate, node.walk(prune=lambda each: isinstance(each, exp.Query))))


def _own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the nodes of a SELECT without those of queries inside of it."""
    return select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query))


def _check(select: exp.Select, calls: Sequence[exp.Expr], items: Sequence[exp.Expr]) -> None:
    """Refuse calls that are no items of the SELECT list, and clauses that have no meaning beside one."""
    if not all(_is_one(call, items) for call in calls):
        raise UnsupportedSql(
            f"{_NAME} must be an item of the SELECT list, without FILTER, OVER or an expression around it; "
            "put conditions into WHERE, and compute in the SQL around this SELECT"
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
    if _aggregates(arguments[0]):
        raise UnsupportedSql(f"the first argument of {_NAME} must be of one row, got an aggregate; {_FORM}")
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


def _keys(select: exp.Select, calls: Sequence[exp.Expr]) -> list[exp.Expr]:
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
        items = (node for node, _ in map(named_item, select.expressions))
        nodes = [node for node in items if not _is_one(node, calls) and not _aggregates(node)]
    else:
        nodes = [_meant(node.unnest(), select.expressions, calls) for node in group.expressions]
    keys: list[exp.Expr] = []
    for node in nodes:
        if node not in keys:  # what only looks alike is compared by whoever reads the SELECT
            keys.append(node)
    if any(place_of(_value(call).unnest(), keys) is not None for call in calls):
        raise UnsupportedSql(
            f"{_NAME} must be of a value that is no GROUP BY item, of which each group has one; name another"
        )
    return keys


def _meant(node: exp.Expr, items: Sequence[exp.Expr], calls: Sequence[exp.Expr]) -> exp.Expr:
    found = grouped_node(node, items)
    if not _is_one(found, calls) and not _aggregates(found):
        return found
    if isinstance(node, exp.Column):
        return node  # of the rows: an alias of an aggregate cannot be meant
    raise UnsupportedSql("GROUP BY must not name an aggregate; group by columns")


def _key(node: exp.Expr, keys: Sequence[exp.Expr]) -> int:
    place = keys.index(node) if node in keys else None
    if place is None:
        place = place_of(node, keys)
    if place is None:
        raise UnsupportedSql(
            f"an item beside {_NAME} must be a GROUP BY item or an aggregate; compute with it in SQL around "
            "this SELECT"
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
    bounds = [each.copy() for each in call.expressions if isinstance(each, exp.Kwarg)]
    rows = exp.Anonymous(this="COUNT", expressions=[exp.Star(), *bounds])
    columns = [*keys, (_value(call), names[0]), (rows, names[1])]
    return _private(select, columns, len(columns) - 1)


def _private(select: exp.Select, columns: Sequence[tuple[exp.Expr, str]], keys: int) -> exp.Select:
    """Return the private SELECT of some columns, of which the first are its keys."""
    made = select.copy()
    for slot in _WRITTEN_OUT:
        made.set(slot, None)
    made.set("expressions", [exp.alias_(node.copy(), name, quoted=True) for node, name in columns])
    if keys:
        made.set("group", exp.Group(expressions=[exp.Literal.number(place + 1) for place in range(keys)]))
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
    select: exp.Select,
    calls: Sequence[exp.Expr],
    items: Sequence[tuple[exp.Expr, str]],
    keys: Sequence[str],
) -> Iterator[exp.Expr]:
    """Yield the terms of ORDER BY, and after them the other keys, in whose order any answer is."""
    order = select.args.get("order")
    terms = [] if order is None else list(ordered(order, items, _NAME))
    lists = {name for node, name in items if _is_one(node, calls)}
    if any(term.this.name in lists for term in terms):
        _refuse_order()
    yield from terms
    for key in sorted(set(keys) - {term.this.name for term in terms}, key=keys.index):
        yield exp.Ordered(this=exp.column(key, quoted=True), nulls_first=False)


def _refuse_order() -> NoReturn:
    raise UnsupportedSql(
        f"ORDER BY beside {_NAME} must name GROUP BY items or other aggregates, got none; leave it out"
    )
