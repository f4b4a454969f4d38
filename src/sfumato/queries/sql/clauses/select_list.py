"""The SELECT list, GROUP BY and ORDER BY of a private SELECT: keys, aggregates and their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import QueryError, SchemaError, UnsupportedSql
from sfumato.queries.plan.query import ColumnType, Expression, Named, OrderItem
from sfumato.queries.plan.typed_expressions import from_decimal, only
from sfumato.queries.sql.aggregates.rewritten_aggregates import call_of_days
from sfumato.queries.sql.catalog import free_name, listed_position, named_item, output_name
from sfumato.queries.sql.clauses.answer_expressions import AnswerColumns, aggregate_name, require_number
from sfumato.queries.sql.clauses.from_clause import FromClause
from sfumato.queries.sql.expressions.other_forms import WINDOW_REFUSAL
from sfumato.queries.sql.expressions.scalar import is_aggregate, read_expression

__all__ = ["Item", "read_having", "read_items", "read_keys", "read_order", "read_outputs"]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the SELECT list.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        Its tree, without the alias.
    alias : str or None
    aggregates : bool
        Whether it is a call of an aggregate.
    computes : bool
        Whether there is an aggregate in it.
    """

    node: exp.Expr
    alias: str | None
    aggregates: bool
    computes: bool


def read_items(select: exp.Select) -> list[Item]:
    """Read the SELECT list; rows as they are are refused."""
    items = []
    for written in select.expressions:
        node, alias = named_item(written)
        aggregates = is_aggregate(node)
        if node.is_star and not aggregates:
            raise UnsupportedSql("SELECT * would show raw rows; name GROUP BY items and aggregates")
        if isinstance(node, exp.Window):
            raise UnsupportedSql(WINDOW_REFUSAL)
        items.append(Item(node, alias, aggregates, any(map(is_aggregate, node.walk()))))
    return items


def read_keys(select: exp.Select, items: Sequence[Item], source: FromClause) -> list[Expression]:
    """Read GROUP BY: columns, aliases and positions of the SELECT list, or expressions."""
    group = select.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        nodes = [item.node for item in items if not item.computes]
    else:
        nodes = [_group_node(node.unnest(), items, source) for node in group.expressions]
    for slot in ("rollup", "cube", "grouping_sets", "totals"):
        if group.args.get(slot):
            raise UnsupportedSql(_several_groupings(slot.upper().replace("_", " ")))
    only(group, "expressions", "all", what="GROUP BY")
    keys: list[Expression] = []
    for node in nodes:
        key = read_expression(node, source, "a GROUP BY item")
        if not key.tree.find(exp.Column):
            raise UnsupportedSql(
                "a GROUP BY item must name a column, a constant makes one group; leave it out"
            )
        if source.rows.is_unit(key):
            raise UnsupportedSql(
                "GROUP BY the privacy unit would show groups of one unit each; group by something several "
                "units share, and count units with COUNT(DISTINCT unit)"
            )
        if key.type is ColumnType.DECIMAL:
            raise SchemaError(
                f"a GROUP BY item must have a type of answers, got NUMERIC; {from_decimal(key)}"
            )
        if key not in keys:
            keys.append(key)
    return keys


def _several_groupings(name: str) -> str:
    return (
        f"{name} makes several groupings at once, which session.sql writes out as one SELECT each; ask it, "
        "or send one query for each grouping"
    )


def _group_node(node: exp.Expr, items: Sequence[Item], source: FromClause) -> exp.Expr:
    if isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets)):
        name = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else node.key.upper()
        raise UnsupportedSql(_several_groupings(name))
    chosen = _chosen_item(node, items)
    if chosen is None:
        return node
    if not chosen.computes:
        return chosen.node
    if isinstance(node, exp.Column) and source.rows.relation.schema.find(node.name) is not None:
        return node  # COUNT(x) AS state ... GROUP BY state can only mean the column
    raise UnsupportedSql("GROUP BY must not name an aggregate; group by columns, and ORDER BY the aggregate")


def _chosen_item(node: exp.Expr, items: Sequence[Item]) -> Item | None:
    """Return the item of the SELECT list that a GROUP BY item names by position or by alias."""
    position = listed_position(node, len(items))
    if position is not None:
        return items[position]
    if isinstance(node, exp.Column) and not node.table:
        for item in items:
            if item.alias is not None and item.alias.casefold() == node.name.casefold():
                return item
    return None


def read_outputs(
    items: Sequence[Item], keys: Sequence[Expression], source: FromClause, *, max_rows: int | None
) -> AnswerColumns:
    """Name the keys, the aggregates and what is computed from them.

    Raises
    ------
    UnsupportedSql
        If an item reads rows outside of an aggregate.
    SchemaError
        If two columns of the answer would have the same name.
    """
    indices = [None if item.computes else _key_index(item, keys, source) for item in items]
    names = _names(items, indices, keys, source)
    shown = {index: name for index, name in zip(indices, names, strict=True) if index is not None}
    rest = [(item, name) for item, index, name in zip(items, indices, names, strict=True) if index is None]
    if len(shown) + len(rest) < len(items):
        raise UnsupportedSql("the SELECT list shows a GROUP BY item twice; leave one out")
    taken = {name.casefold() for name in names}
    named = tuple(
        Named(shown.get(index) or free_name(_key_name(key, index), taken), key)
        for index, key in enumerate(keys)
    )
    answer = AnswerColumns(source, named, max_rows, tuple(names), taken)
    rest = [(_dated(item, source), name) for item, name in rest]
    for item, name in rest:
        _check_interval(name, names)
        if item.aggregates:
            answer.aggregate(item.node, name)
    for item, name in rest:
        if not item.aggregates:
            read = answer.expression(item.node, "an item of the SELECT list", aliases=False)
            answer.computed.append(Named(name, read))
    return answer


def _dated(item: Item, source: FromClause) -> Item:
    """Return an aggregate of dates as what is computed from an aggregate of days."""
    days = call_of_days(item.node, source) if item.aggregates else None
    return item if days is None else Item(days, item.alias, aggregates=False, computes=True)


def _check_interval(name: str, names: Sequence[str]) -> None:
    """Refuse a column that is called like an end of the interval of another one in the released table."""
    for end in (f"{name}_lower", f"{name}_upper"):
        if end in names:
            raise SchemaError(
                f"no column may be called like the interval of {name!r}, got {end!r}; rename one with AS"
            )


def _key_index(item: Item, keys: Sequence[Expression], source: FromClause) -> int | None:
    """Return the GROUP BY item that an item is; None if it is to be computed from them."""
    try:
        expression = read_expression(item.node, source, "an item of the SELECT list")
    except QueryError:
        if keys:
            return None  # a part of it may be a key that cannot be read in pieces
        raise
    if expression in keys:
        return keys.index(expression)
    if not keys and expression.tree.find(exp.Column):
        shown = item.alias or expression.sql.replace("`", "")
        raise UnsupportedSql(f"{shown!r} would show raw rows; aggregate it, or add it to GROUP BY")
    return None


def _names(
    items: Sequence[Item], indices: Sequence[int | None], keys: Sequence[Expression], source: FromClause
) -> list[str]:
    """Name the columns: aliases and columns keep their names, others get free ones."""
    names: list[str | None] = []
    taken: set[str] = set()
    for item, index in zip(items, indices, strict=True):
        name = item.alias
        if name is None and index is not None and isinstance(item.node, exp.Column):
            tree, name = keys[index].tree, item.node.name
            # as the source spells it; a column of a public list keeps the name it has there
            as_source = isinstance(tree, exp.Column) and tree.name.casefold() == name.casefold()
            name = tree.name if as_source else output_name(name)
        if name is not None and name.casefold() in taken:
            raise SchemaError(f"two columns of the answer are named {name!r}; rename one with AS")
        taken.add("" if name is None else name.casefold())
        names.append(name)
    for number, (name, item, index) in enumerate(zip(names, items, indices, strict=True)):
        if name is None:
            usual = f"column_{number + 1}" if index is None else _key_name(keys[index], index)
            usual = aggregate_name(item.node, source) if item.aggregates else usual
            names[number] = free_name(usual, taken)
    return [name for name in names if name is not None]


def _key_name(key: Expression, index: int) -> str:
    return key.tree.name if isinstance(key.tree, exp.Column) else f"key_{index + 1}"


def read_having(select: exp.Select, answer: AnswerColumns) -> str | None:
    """Read HAVING, a condition on released columns; return the name of the column that holds it."""
    having = select.args.get("having")
    if having is None:
        return None
    answer.shadowed()
    return answer.hidden(answer.condition(having.this, "the condition of HAVING"), "having")


def read_order(select: exp.Select, answer: AnswerColumns) -> tuple[OrderItem, ...]:
    """Read ORDER BY: released columns by name or position, or expressions over keys and aggregates."""
    order = select.args.get("order")
    if order is None:
        return ()
    only(order, "expressions", what="ORDER BY")
    items = []
    for ordered in order.expressions:
        only(ordered, "this", "desc", "nulls_first", what="ORDER BY")
        name = _released_name(ordered.this.unnest(), answer)
        for aggregate in answer.aggregates:
            if aggregate.name == name:
                require_number(aggregate)
        items.append(OrderItem(name, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))))
    return tuple(items)


def _released_name(node: exp.Expr, answer: AnswerColumns) -> str:
    if isinstance(node, exp.Literal) and node.is_int and len(node.name) < 9:
        if 1 <= int(node.name) <= len(answer.output):
            return answer.output[int(node.name) - 1]
        raise SchemaError(
            f"a position in ORDER BY must be from 1 to {len(answer.output)}, got {node.name}; correct it"
        )
    if isinstance(node, exp.Column) and not node.table:
        for name in answer.output:
            if name.casefold() == node.name.casefold():
                return name
    if not any(isinstance(part, exp.Column) or is_aggregate(part) for part in node.walk()):
        raise UnsupportedSql("ORDER BY a constant has no effect; order by a column of the answer")
    answer.shadowed()
    read = answer.expression(node, "an item of ORDER BY", aliases=True)
    if isinstance(read.tree, exp.Column):
        return str(read.tree.name)
    same = (named.name for named in answer.computed if named.expression == read)
    return next(same, None) or answer.hidden(read, "order")
