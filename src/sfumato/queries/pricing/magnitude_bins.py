"""Bins of magnitude: zero, and for either sign the numbers from one power of two to the next.

A number's bin is read off by comparisons with powers of two, which floats and integers hold exactly: at once
for whole numbers; for floats first a block of powers, then the position in it of the number over the block's
least, a quotient that is exact, too. So every engine gives every number the same bin, and no row can fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from sqlglot import exp

from sfumato.queries.plan.constants import number
from sfumato.queries.plan.schema import ColumnType, Expression
from sfumato.queries.plan.typed_expressions import TypedTree, operand

__all__ = ["BLOCK", "REAL", "WHOLE", "MagnitudeBins", "real"]

BLOCK: Final = 10
"""Powers of two of a block: a tree of comparisons over all bins would take an engine longer to plan."""


@final
@dataclass(frozen=True, slots=True)
class MagnitudeBins:
    """The bins 0, 1, ... from the most negative numbers to the most positive ones.

    Parameters
    ----------
    low, high : int
        ``[2**e, 2**(e + 1))`` is a bin for ``low <= e < high``; what is smaller in magnitude counts as zero,
        what is larger is in the outermost bins.
    type : ColumnType
        Of the numbers: INT64 or FLOAT64.

    Examples
    --------
    >>> bins = MagnitudeBins(0, 2, ColumnType.INTEGER)
    >>> [bins.index(x) for x in (-9, -2, -1, 0, 1, 2, 3, 4)]
    [0, 0, 1, 2, 3, 4, 4, 4]
    >>> bins.bounds(2, 4), bins.bounds(0, 4), bins.bounds(2, 2)
    ((0.0, 4.0), (-4.0, 4.0), (-1.0, 1.0))
    """

    low: int
    high: int
    type: ColumnType

    @property
    def zero(self) -> int:
        """The bin of zero."""
        return self.high - self.low

    @property
    def many(self) -> int:
        """How many bins there are."""
        return 2 * self.zero + 1

    def index(self, value: float) -> int:
        """Return the bin of a number."""
        if abs(value) < math.ldexp(1.0, self.low):
            return self.zero
        away = min(max(math.frexp(value)[1] - self.low, 1), self.zero)
        return self.zero + (away if value > 0 else -away)

    def bounds(self, first: int, last: int) -> tuple[float, float]:
        """Return the borders of the bins from ``first`` to ``last``, each zero or a power of two with a sign.

        A border at the bin of zero is zero itself, unless that is the only bin.
        """
        if first == last == self.zero:
            smallest = math.ldexp(1.0, self.low)
            return -smallest, smallest
        return self._start(first - self.zero), 0.0 - self._start(self.zero - last)

    def _start(self, away: int) -> float:
        """Return where the bin begins that is so far above the zero's, or if negative so far below it."""
        if away == 0:
            return 0.0
        return math.ldexp(1.0, self.low + away - 1) if away > 0 else -math.ldexp(1.0, self.low - away)

    def expression(self, value: TypedTree) -> Expression:
        """Return the bin of a column without NULLs, as a tree of comparisons."""
        return Expression(_tree(0, self.many - 1, lambda p: self._from(value, p), _whole), ColumnType.INTEGER)

    def _from(self, value: TypedTree, index: int) -> exp.Expression:
        """Return the condition that a number is in this bin or a later one."""
        positive = index > self.zero
        power = self.low + (index - self.zero - 1 if positive else self.zero - index)
        digits = str(1 << power) if self.type is ColumnType.INTEGER else repr(math.ldexp(1.0, power))
        border = number(digits, negative=not positive).tree
        compare = exp.GTE if positive else exp.GT
        return compare(this=operand(value), expression=border)

    @property
    def blocks(self) -> int:
        """How many blocks of ``BLOCK`` powers of two there are."""
        return -(-self.zero // BLOCK)

    def block(self, size: TypedTree) -> Expression:
        """Return the block of powers of two that a magnitude is in, from 0."""
        return Expression(self._by_block(size, _whole), ColumnType.INTEGER)

    def reduced(self, size: TypedTree) -> Expression:
        """Return a magnitude over the smallest power of two of its block, exactly."""
        factor = self._by_block(size, lambda index: real(math.ldexp(1.0, -self.low - BLOCK * index)))
        return Expression(exp.Mul(this=operand(size), expression=factor), ColumnType.FLOAT)

    def _by_block(self, size: TypedTree, leaf: Callable[[int], exp.Expression]) -> exp.Expression:
        def from_(index: int) -> exp.Expression:
            return _at_least(size, math.ldexp(1.0, self.low + BLOCK * index))

        return _tree(0, self.blocks - 1, from_, leaf)

    def step(self, reduced: TypedTree) -> Expression:
        """Return which power of two of its block a reduced magnitude is in, from 0."""
        tree = _tree(0, BLOCK - 1, lambda index: _at_least(reduced, math.ldexp(1.0, index)), _whole)
        return Expression(tree, ColumnType.INTEGER)

    def joined(self, value: TypedTree, block: TypedTree, step: TypedTree) -> Expression:
        """Return the bin of a number from its block and the step there."""
        smallest = number(repr(math.ldexp(1.0, self.low)))
        before = exp.Mul(this=operand(block), expression=_whole(BLOCK))
        away = exp.Add(this=exp.Paren(this=before), expression=operand(step))
        over = exp.Add(this=exp.Paren(this=away), expression=_whole(self.zero + 1))
        under = exp.Sub(this=_whole(self.zero - 1), expression=exp.Paren(this=away.copy()))
        negative = exp.LTE(this=operand(value), expression=exp.Neg(this=smallest.tree.copy()))
        tree = exp.Case(
            ifs=[
                exp.If(this=exp.GTE(this=operand(value), expression=smallest.tree), true=over),
                exp.If(this=negative, true=under),
            ],
            default=_whole(self.zero),
        )
        return Expression(tree, ColumnType.INTEGER)


def _whole(value: int) -> exp.Expression:
    return number(str(value)).tree


def real(value: float) -> exp.Expression:
    """Return a float as it stands in an expression, exactly."""
    return number(repr(value)).tree


def _at_least(value: TypedTree, border: float) -> exp.Expression:
    return exp.GTE(this=operand(value), expression=real(border))


def _tree(
    first: int, last: int, from_: Callable[[int], exp.Expression], leaf: Callable[[int], exp.Expression]
) -> exp.Expression:
    """Return a tree of comparisons that finds a position from ``first`` to ``last``."""
    if first == last:
        return leaf(first)
    middle = (first + last + 1) // 2
    higher, lower = _tree(middle, last, from_, leaf), _tree(first, middle - 1, from_, leaf)
    return exp.Case(ifs=[exp.If(this=from_(middle), true=higher)], default=lower)


WHOLE: Final = MagnitudeBins(0, 63, ColumnType.INTEGER)
"""All whole numbers of 64 bits."""

REAL: Final = MagnitudeBins(-64, 96, ColumnType.FLOAT)
"""Numbers from some 5e-20 to 8e28 in magnitude."""
