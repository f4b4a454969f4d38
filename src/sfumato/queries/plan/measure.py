"""What an engine computes for a measure: an integer for each unit and group, in words that every engine has.

A measure states what one unit adds to a group as a value over the unit's rows there: their number, a sum or a
mean of a column on a grid, or a test of such a number. Engines compile these values, so they ask no measure
what it is for; a measure that combines them in a new way needs no change in any engine.

>>> at_least_three_rows = Measure(AtLeast(RowCount(), 3))
>>> at_least_three_rows.sensitivity
1
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

from sfumato.queries.plan.schema import Expression

__all__ = [
    "AtLeast",
    "BinCounts",
    "DistinctCount",
    "GridColumn",
    "Measure",
    "One",
    "RowCount",
    "RowMean",
    "RowSum",
    "UnitValue",
    "ValueCount",
]


@final
@dataclass(frozen=True, slots=True)
class GridColumn:
    """A row's value of an expression on the grid ``2**exponent``, clamped, less ``center``.

    A value x counts as the integer nearest to ``x / 2**exponent``; the bounds and the center are in steps.
    """

    expression: Expression
    exponent: int
    lower: int
    upper: int
    center: int = 0

    @classmethod
    def wide(cls, expression: Expression, exponent: int, bounds: tuple[int, int]) -> GridColumn:
        """Return the column where no bounds of a row are stated, but those of a unit.

        Rows are clamped to 2**48 steps, or to 2**62 under wide bounds. A grid has about 2**24 steps up to a
        bound, so this is 2**24 bounds away; it keeps sums in 64 bits.
        """
        reach = 2**48 if max(map(abs, bounds)) <= 2**44 else 2**62
        return cls(expression, exponent, -reach, reach)


class UnitValue:
    """A value over the rows that one unit has in a group."""

    __slots__ = ()

    @property
    def columns(self) -> tuple[GridColumn, ...]:
        """The columns on a grid that it is computed from."""
        return ()


@final
@dataclass(frozen=True, slots=True)
class One(UnitValue):
    """One, whatever the rows are."""


@final
@dataclass(frozen=True, slots=True)
class RowCount(UnitValue):
    """The number of rows."""


@final
@dataclass(frozen=True, slots=True)
class ValueCount(UnitValue):
    """The number of rows with a value of ``expression``."""

    expression: Expression


@final
@dataclass(frozen=True, slots=True)
class AtLeast(UnitValue):
    """One where ``value``, a count or a sum, is at least ``minimum``; else zero."""

    value: One | RowCount | ValueCount | RowSum
    minimum: int

    @property
    def columns(self) -> tuple[GridColumn, ...]:
        """The columns of what is compared."""
        return self.value.columns


@final
@dataclass(frozen=True, slots=True)
class RowSum(UnitValue):
    """The sum over rows of one factor, or of the product of two, each row's less ``offset``.

    Rows without a value are left out, and where all are there is no sum; two factors must have a value in
    the same rows.
    """

    factors: tuple[GridColumn, ...]
    offset: int = 0

    @property
    def columns(self) -> tuple[GridColumn, ...]:
        """The column, or the two."""
        return self.factors

    @property
    def terms(self) -> tuple[int, int]:
        """The range of what one row adds."""
        ends = [(column.lower - column.center, column.upper - column.center) for column in self.factors]
        if len(ends) == 2 and self.factors[0] == self.factors[1]:
            (low, high) = ends[0]
            minimum = 0 if low <= 0 <= high else min(low * low, high * high)
            return minimum - self.offset, max(low * low, high * high) - self.offset
        products = [math.prod(corner) for corner in itertools.product(*ends)]
        return min(products) - self.offset, max(products) - self.offset


@final
@dataclass(frozen=True, slots=True)
class RowMean(UnitValue):
    """The mean of a column over the rows with a value, rounded to a step; nothing where no row has one."""

    column: GridColumn

    @property
    def columns(self) -> tuple[GridColumn, ...]:
        """The column."""
        return (self.column,)


@final
@dataclass(frozen=True, slots=True)
class BinCounts(UnitValue):
    """The number of rows in each bin, which is a step of the column.

    A measure's ``upper`` bounds the rows of a unit in all bins together.
    """

    column: GridColumn

    @property
    def columns(self) -> tuple[GridColumn, ...]:
        """The column."""
        return (self.column,)


@final
@dataclass(frozen=True, slots=True)
class DistinctCount(UnitValue):
    """The distinct values of a group, counted once for all units.

    Each unit brings at most a measure's ``upper`` of them.
    """

    expression: Expression


@dataclass(frozen=True, slots=True)
class Measure:
    """One integer per unit and group, clamped to [lower, upper], then summed exactly over a group's units.

    Parameters
    ----------
    value : UnitValue
        What the integer is. Counts by bin and of distinct values are no sums over units.
    exponent : int
        The grid of the result is ``2**exponent``.
    lower, upper : int
        Clamp of one unit's contribution to one group, in grid steps.
    center : int
        Subtracted after the clamp, so that the range of a mean is symmetric around zero.
    l1 : int or None
        The most that one unit adds to all groups together, in magnitude, where its rows over all groups are
        bounded; None where that follows from its groups.
    """

    value: UnitValue
    exponent: int = 0
    lower: int = 0
    upper: int = 1
    center: int = 0
    l1: int | None = None

    @property
    def sensitivity(self) -> int:
        """The most that one unit can add to one group, in grid steps: the worst case under add/remove."""
        return max(abs(self.lower - self.center), abs(self.upper - self.center))
