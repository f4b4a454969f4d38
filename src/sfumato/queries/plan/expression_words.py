"""Expressions for people: what other functions are written with is said in words, the rest is SQL."""

from __future__ import annotations

from sqlglot import exp

from sfumato.queries.plan.schema import Expression

__all__ = ["in_words"]


def in_words(expression: Expression) -> str:
    """Return an expression as an explanation shows it.

    Parameters
    ----------
    expression : Expression

    Returns
    -------
    str

    Examples
    --------
    >>> from sfumato.queries.plan.schema import ColumnType
    >>> from sqlglot import parse_one
    >>> tree = parse_one("CASE WHEN NOT (y IS NULL) THEN x ELSE NULL END")
    >>> in_words(Expression(tree, ColumnType.FLOAT))
    'x where y has a value'
    """
    return _words(expression.tree)


def _words(tree: exp.Expr) -> str:
    tree = tree.unnest()
    if isinstance(tree, exp.Case) and tree.args.get("this") is None and len(tree.args["ifs"]) == 1:
        branch, default = tree.args["ifs"][0], tree.args.get("default")
        if default is None or isinstance(default, exp.Null):
            value = branch.args["true"]
            rows = "rows" if isinstance(value, exp.Literal) else _words(value)
            return f"{rows} where {_condition(branch.this)}"
    if isinstance(tree, exp.DateDiff) and isinstance(tree.expression, exp.TryCast):
        return f"the days of {_words(tree.this)} since {tree.expression.this.name}"
    return tree.sql(dialect="bigquery")


def _condition(tree: exp.Expr) -> str:
    inner = tree.this.unnest() if isinstance(tree, exp.Not) else None
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"{_words(inner.this)} has a value"
    return _words(tree)
