"""Expressions over released columns that are a ratio of two weighted sums: their interval is known exactly.

>>> from sqlglot import parse_one
>>> tree = parse_one("100 * (a - 2 * b) / c", dialect="bigquery")
>>> found = linear_ratio(tree, {"a", "b", "c"})
>>> found.numerator.weights, found.denominator.weights
({'a': 100.0, 'b': -200.0}, {'c': 1.0})
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from sqlglot import exp

__all__ = ["LinearForm", "LinearRatio", "linear_ratio"]

_Tree: TypeAlias = exp.Expr


@final
@dataclass(frozen=True, slots=True)
class LinearForm:
    """A weighted sum of columns, and a constant."""

    constant: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: LinearForm) -> LinearForm:
        names = {**self.weights, **other.weights}
        weights = {name: self.weights.get(name, 0.0) + other.weights.get(name, 0.0) for name in names}
        remaining = {name: weight for name, weight in weights.items() if weight}
        return LinearForm(self.constant + other.constant, remaining)

    def times(self, factor: float) -> LinearForm:
        """Return the form times a number."""
        weights = {name: factor * weight for name, weight in self.weights.items()} if factor else {}
        return LinearForm(factor * self.constant, weights)


@final
@dataclass(frozen=True, slots=True)
class LinearRatio:
    """A ratio of two weighted sums of columns; a denominator without columns is 1."""

    numerator: LinearForm
    denominator: LinearForm = LinearForm(1.0)

    @property
    def number(self) -> float | None:
        """The number that it is, if there are no columns in it."""
        both = self.numerator.weights or self.denominator.weights
        return None if both else self.numerator.constant

    @property
    def names(self) -> set[str]:
        """The columns in it."""
        return {*self.numerator.weights, *self.denominator.weights}

    def times(self, factor: float) -> LinearRatio:
        """Return the ratio times a number."""
        return LinearRatio(self.numerator.times(factor), self.denominator)


def linear_ratio(tree: _Tree, columns: Collection[str]) -> LinearRatio | None:
    """Return an expression as a ratio of two weighted sums of columns; None where it is none.

    Parameters
    ----------
    tree : sqlglot expression
    columns : collection of str
        Those that may be in it; their names as they stand there.
    """
    if isinstance(tree, exp.Column):
        return LinearRatio(LinearForm(0.0, {tree.name: 1.0})) if tree.name in columns else None
    if isinstance(tree, exp.Literal):
        return None if tree.is_string else LinearRatio(LinearForm(float(tree.name)))
    if isinstance(tree, exp.Paren | exp.Neg):
        inner = linear_ratio(tree.this, columns)
        return inner.times(-1.0) if inner and isinstance(tree, exp.Neg) else inner
    if isinstance(tree, exp.Nullif):
        nothing = isinstance(tree.expression, exp.Literal) and not tree.expression.is_string
        return linear_ratio(tree.this, columns) if nothing and float(tree.expression.name) == 0 else None
    rule = _RULES.get(type(tree))
    if rule is None:
        return None
    left, right = (linear_ratio(part, columns) for part in (tree.this, tree.expression))
    return None if left is None or right is None else rule(left, right)


def _sum(left: LinearRatio, right: LinearRatio) -> LinearRatio | None:
    if left.denominator == right.denominator:
        return LinearRatio(left.numerator + right.numerator, left.denominator)
    for one, other in ((left, right), (right, left)):
        if other.number is not None:
            return LinearRatio(one.numerator + one.denominator.times(other.number), one.denominator)
    return None


def _product(left: LinearRatio, right: LinearRatio) -> LinearRatio | None:
    for one, other in ((left, right), (right, left)):
        if other.number is not None:
            return one.times(other.number)
    return None


def _quotient(left: LinearRatio, right: LinearRatio) -> LinearRatio | None:
    if right.number is not None:
        return left.times(1 / right.number) if right.number else None
    if left.number is not None:
        return _over(right.denominator.times(left.number), right.numerator)
    if left.denominator == right.denominator:
        return _over(left.numerator, right.numerator)
    return None


def _over(numerator: LinearForm, denominator: LinearForm) -> LinearRatio | None:
    """Return a ratio whose denominator is 1 where it is a number."""
    if denominator.weights:
        return LinearRatio(numerator, denominator)
    return LinearRatio(numerator.times(1 / denominator.constant)) if denominator.constant else None


_RULES: Final[dict[type[exp.Expr], Callable[[LinearRatio, LinearRatio], LinearRatio | None]]] = {
    exp.Add: _sum,
    exp.Sub: lambda left, right: _sum(left, right.times(-1.0)),
    exp.Mul: _product,
    exp.Div: _quotient,
}
