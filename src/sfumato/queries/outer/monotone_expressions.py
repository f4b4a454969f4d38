"""The smallest and the largest value of an expression while a column in it moves in its interval.

Floats round monotonically, so the ends hold the value as DuckDB computes it, too. Where nothing follows from
the column's interval there are no ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from sqlglot import exp

__all__ = ["Trees", "moved"]

Trees: TypeAlias = tuple[exp.Expr, exp.Expr]
"""Expressions of the lower and the upper end."""


def moved(tree: exp.Expr, ends: Callable[[exp.Column], Trees | None]) -> Trees | None:
    """Return the ends of an expression, in the terms of DuckDB; None where nothing follows.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        Of nodes on the whitelist.
    ends : callable
        The ends of a column; None for one that stays as it is.

    Examples
    --------
    >>> from sqlglot import column, parse_one
    >>> low, high = moved(parse_one("3 - n"), lambda node: (column("low"), column("high")))
    >>> low.sql(), high.sql()
    ('(3) - (high)', '(3) - (low)')
    """
    if not any(ends(node) is not None for node in tree.find_all(exp.Column)):
        return tree.copy(), tree.copy()
    if isinstance(tree, exp.Column):
        found = ends(tree)
        return None if found is None else (found[0].copy(), found[1].copy())
    rule = _RULES.get(type(tree))
    return None if rule is None else rule(tree, lambda part: moved(part, ends))


_Move: TypeAlias = Callable[[exp.Expr], Trees | None]


def _sum(tree: exp.Expr, move: _Move) -> Trees | None:
    left, right = move(tree.this), move(tree.expression)
    if left is None or right is None:
        return None
    right = right[::-1] if isinstance(tree, exp.Sub) else right
    low, high = (type(tree)(this=_closed(a), expression=_closed(b)) for a, b in zip(left, right, strict=True))
    return low, high


def _product(tree: exp.Expr, move: _Move) -> Trees | None:
    """Return the ends of a product, or of a quotient whose divisor has no noise: they are at the corners."""
    left, right = move(tree.this), move(tree.expression)
    if left is None or right is None or (isinstance(tree, exp.Div) and right[0] != right[1]):
        return None
    made = []
    for a in left:
        for b in right:
            corner = tree.copy()
            corner.set("this", _closed(a))
            corner.set("expression", _closed(b) if isinstance(tree, exp.Mul) else b.copy())
            made.append(corner)
    low, high = (
        kind(this=made[0].copy(), expressions=[each.copy() for each in made[1:]], ignore_nulls=True)
        for kind in (exp.Least, exp.Greatest)
    )
    return low, high


def _negated(tree: exp.Expr, move: _Move) -> Trees | None:
    inner = move(tree.this)
    return None if inner is None else (exp.Neg(this=_closed(inner[1])), exp.Neg(this=_closed(inner[0])))


def _growing(tree: exp.Expr, move: _Move) -> Trees | None:
    inner = move(tree.this)
    numbers = (exp.DataType.Type.BIGINT, exp.DataType.Type.DOUBLE)
    if inner is None or (isinstance(tree, exp.TryCast) and tree.args["to"].this not in numbers):
        return None
    low, high = tree.copy(), tree.copy()
    low.set("this", inner[0])
    high.set("this", inner[1])
    return low, high


def _closed(tree: exp.Expr) -> exp.Expr:
    return exp.Paren(this=tree.copy())


_RULES: Final[Mapping[type[exp.Expr], Callable[[Any, _Move], Trees | None]]] = {
    exp.Add: _sum,
    exp.Ceil: _growing,
    exp.Div: _product,
    exp.Floor: _growing,
    exp.Mul: _product,
    exp.Neg: _negated,
    exp.Paren: lambda tree, move: move(tree.this),
    exp.Round: _growing,
    exp.Sub: _sum,
    exp.TryCast: _growing,
}
