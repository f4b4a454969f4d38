"""A private SELECT written out as SQL around others: what is common to several groupings and to top counts.

Items of the SELECT list, of GROUP BY and of ORDER BY are compared as they are written: nothing is known of
tables here. What is written out is read, and refused, as if it had been written so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan.typed_expressions import only
from sfumato.queries.sql.catalog import listed_position, named_item

__all__ = ["Expanded", "aggregate_column", "grouped_node", "ordered", "place_of"]


@dataclass(frozen=True, slots=True)
class Expanded:
    """A private SELECT, written out as SQL around one or more.

    Parameters
    ----------
    tree : sqlglot.exp.Select
        What is computed from the answers; the private SELECTs are nodes of it.
    private : tuple of sqlglot.exp.Select
        Each has an equal part of epsilon and delta.
    """

    tree: exp.Select
    private: tuple[exp.Select, ...]


def grouped_node(node: exp.Expr, items: Sequence[exp.Expr]) -> exp.Expr:
    """Return what an item of GROUP BY names by position or by alias, else itself.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        The item, without parentheses.
    items : sequence of sqlglot.exp.Expr
        The SELECT list.
    """
    position = listed_position(node, len(items))
    if position is not None:
        return named_item(items[position])[0]
    if isinstance(node, exp.Column) and not node.table:
        for item in items:
            if isinstance(item, exp.Alias) and item.alias.casefold() == node.name.casefold():
                return named_item(item)[0]
    return node


def _same_item(one: exp.Expr, other: exp.Expr) -> bool:
    """Return whether two items are written alike; a column may name its table in one of them only."""
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        tables = {one.table.casefold(), other.table.casefold()}
        return one.name.casefold() == other.name.casefold() and (len(tables) == 1 or "" in tables)
    return one == other


def place_of(node: exp.Expr, items: Sequence[exp.Expr]) -> int | None:
    """Return where the first item is that is written as an expression is; None without one."""
    return next((place for place, item in enumerate(items) if _same_item(item, node)), None)


def aggregate_column(node: exp.Expr, number: int) -> str:
    """Return the name of an aggregate's column that has no alias; ``number`` is its place, from 1."""
    call = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(call, exp.Anonymous):
        return f"column_{number}"
    first = next((each for each in call.expressions if isinstance(each, exp.Column)), None)
    return call.name.lower() + (f"_{first.name}" if first is not None else "")


def ordered(order: exp.Expr, items: Sequence[tuple[exp.Expr, str]], what: str) -> Iterator[exp.Expr]:
    """Yield the terms of ORDER BY over columns of the answer.

    Parameters
    ----------
    order : sqlglot.exp.Expr
        The clause.
    items : sequence of pairs
        Of the SELECT list: an expression, and the name of its column.
    what : str
        What the SELECT has, for the error.

    Raises
    ------
    UnsupportedSql
        If a term is none of the items.
    """
    only(order, "expressions", what="ORDER BY")
    for term in order.expressions:
        node = term.this.unnest()
        position = listed_position(node, len(items)) if isinstance(node, exp.Literal) else None
        found = items[position] if position is not None else None
        if found is None:
            named = isinstance(node, exp.Column) and not node.table
            by_name = (item for item in items if named and item[1].casefold() == node.name.casefold())
            found = next(by_name, None) or next((item for item in items if _same_item(item[0], node)), None)
        if found is None:
            raise UnsupportedSql(
                f"ORDER BY beside {what} must name columns of the answer; add it to the SELECT list"
            )
        made = term.copy()
        made.set("this", exp.column(found[1], quoted=True))
        yield made
