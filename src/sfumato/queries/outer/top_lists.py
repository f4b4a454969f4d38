"""Lists of the largest counts in outer SQL: how DuckDB makes them, and which numbers of a row they hold."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sfumato.queries.sql.top_counts import TopList

__all__ = ["in_list", "listed_count", "sliced", "with_listed"]


def sliced(node: Any) -> exp.Expr:
    """Return a list as DuckDB makes it: all that is in the group in its order, and of this the first.

    Parameters
    ----------
    node : TopList
        Its parts are in the terms of DuckDB.

    Examples
    --------
    >>> from sfumato.queries.sql.parser import parse_statement
    >>> from sfumato.queries.sql.top_counts import with_top_counts
    >>> select = parse_statement("SELECT APPROX_TOP_COUNT(x, 2) AS top FROM t").select
    >>> print(sliced(with_top_counts(select).tree.find(TopList)).sql("duckdb")[57:])
    ORDER BY "count" DESC, "value" NULLS FIRST), 1, 2)
    """
    limit = node.this
    first = exp.Literal.number("1")
    return exp.Anonymous(
        this="LIST_SLICE", expressions=[exp.ArrayAgg(this=limit.this), first, limit.expression]
    )


def in_list(node: exp.Expr) -> bool:
    """Return whether a node is a part of a list."""
    return node.find_ancestor(TopList) is not None


def listed_count(tree: exp.Expr) -> exp.Column | None:
    """Return the column of the counts in a list that `sliced` made; None of another expression."""
    struct = tree.find(exp.Struct) if isinstance(tree, exp.Anonymous) else None
    count = None if struct is None else struct.expressions[-1].expression
    return count if isinstance(count, exp.Column) else None


def with_listed(tree: exp.Expr, column: exp.Expr) -> exp.Expr:
    """Return the list of another column of the same rows, in the same order.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        Of `sliced`.
    column : sqlglot.exp.Expr
    """
    made = tree.copy()
    struct = made.find(exp.Struct)
    if struct is not None:
        struct.replace(column)
    return made
