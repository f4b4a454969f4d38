"""Integer columns of rows, values on a grid: what measures are computed from.

Rows carry ``v0, v1, ...``, the values on the grid. A unit's part of a group carries ``n`` (rows), and for
column i ``ci`` (rows with a value) and ``si`` (their exact sum), and ``t...`` for sums of products of two
columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from sfumato.queries.engines.dialects.base import REACH, Dialect
from sfumato.queries.plan.query import ColumnType, Expression

__all__ = ["ValueColumn", "ValueColumns"]

_FLOAT_INTEGERS: Final = 2**53  # every integer up to here is a float, so float sums of integers are exact

_Centred: TypeAlias = tuple[int, int]
"""A column, by number, and what is subtracted from it."""


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """One integer per row: the value of ``expression`` on the grid, NULL where there is none.

    ``exponent`` None marks a column that only says whether there is a value; ``whole`` one that has the value
    itself, in its canonical form.
    """

    expression: Expression
    exponent: int | None
    lower: int = -REACH
    upper: int = REACH
    whole: bool = False

    def sql(self, value: str, dialect: Dialect) -> str:
        """Return the integer of a column ``value`` of the expression's type."""
        if self.whole:
            return dialect.canonical(value, self.expression.type)
        real = self.expression.type is ColumnType.FLOAT
        if self.exponent is None:
            present = f"{value} IS NOT NULL" + (f" AND NOT {dialect.isnan(value)}" if real else "")
            return f"CASE WHEN {present} THEN {dialect.integer(1)} END"
        lower, upper = dialect.integer(self.lower), dialect.integer(self.upper)
        if real:
            below = dialect.real(-_at_most(-self.lower, self.exponent))
            above = dialect.real(_at_most(self.upper, self.exponent))
            return (
                f"CASE WHEN {dialect.isnan(value)} THEN NULL WHEN {value} > {above} THEN {upper} "
                f"WHEN {value} < {below} THEN {lower} ELSE {dialect.gridded(value, self.exponent)} END"
            )
        scale = Fraction(2) ** self.exponent
        above = dialect.limit(math.floor(self.upper * scale))
        below = dialect.limit(math.ceil(self.lower * scale))
        nearest = _shifted(value, self.exponent, dialect)
        return (
            f"CASE WHEN {value} > {above} THEN {upper} WHEN {value} < {below} THEN {lower} ELSE {nearest} END"
        )


def _at_most(bound: int, exponent: int) -> float:
    """Return the largest float that is at most ``bound * 2**exponent``."""
    exact = Fraction(bound) * Fraction(2) ** exponent
    try:
        near = float(exact)
    except OverflowError:
        near = math.copysign(math.inf, bound)
    if math.isinf(near) or Fraction(near) > exact:
        return math.nextafter(near, -math.inf) if near > 0 or math.isfinite(near) else near
    return near


def _shifted(value: str, exponent: int, dialect: Dialect) -> str:
    """Return the integer nearest to ``value / 2**exponent``; halves round up."""
    if exponent <= 0:
        return value if exponent == 0 else f"{value} * {dialect.integer(2 ** min(-exponent, 62))}"
    return f"{value} * 0" if exponent >= 64 else dialect.shifted(value, exponent)


class ValueColumns:
    """The columns that a job's measures need, each once.

    Parameters
    ----------
    max_rows : int or None
        Most rows of one unit in one group, None for any number; it says where a sum fits in 64 bits.
    dialect : Dialect
        What the texts are written in.
    known : sequence of ValueColumn
        Columns that are there already and come first, used or not.
    """

    def __init__(self, max_rows: int | None, dialect: Dialect, known: Sequence[ValueColumn]) -> None:
        self.max_rows = max_rows
        self.dialect = dialect
        self.items: list[ValueColumn] = list(known)
        self.products: list[tuple[_Centred, _Centred]] = []

    def place(self, column: ValueColumn) -> int:
        """Return the number of a column, which is added if it is new."""
        if column not in self.items:
            self.items.append(column)
        return self.items.index(column)

    def place_count(self, expression: Expression) -> int:
        """Return the number of a column that has a value where the expression has: any of it will do."""
        same = (index for index, column in enumerate(self.items) if column.expression == expression)
        found = next(same, None)
        return self.place(ValueColumn(expression, None)) if found is None else found

    def place_product(self, first: _Centred, second: _Centred) -> int:
        """Return the number of a product of two columns less their centers."""
        if (first, second) not in self.products:
            self.products.append((first, second))
        return self.products.index((first, second))

    def product_name(self, index: int) -> str:
        """Return a name that says what is multiplied, in any job with the same columns."""
        return "t" + "_".join(f"{i}x{c}" for i, c in self.products[index]).replace("-", "m")

    def product(self, index: int) -> str:
        """Return a row's product of two values less their centers; it fits in 64 bits."""
        one, other = (f"(v{i} - {self.dialect.integer(c)})" for i, c in self.products[index])
        return f"({one} * {other})"

    def total(self, index: int) -> str:
        """Return a part's exact sum; any of one with too many rows, which is computed again from fewer."""
        name, rows, item = f"v{index}", self.max_rows, self.items[index]
        if rows is not None and max(abs(item.lower), abs(item.upper)) * rows <= _FLOAT_INTEGERS:
            return self.dialect.small_total(name)
        return self.dialect.total(name, narrow=rows is not None and self.fits(index, rows))

    def fits(self, index: int, rows: int) -> bool:
        """Return whether the sum of so many rows, and what a mean computes from it, fits in 64 bits."""
        bound = max(abs(self.items[index].lower), abs(self.items[index].upper))
        return 4 * (bound + 1) * rows < REACH

    def sum_range(self, index: int, rows: int) -> tuple[int, int]:
        """Return the range of the sum of at most so many rows."""
        item = self.items[index]
        return min(item.lower, item.lower * rows), max(item.upper, item.upper * rows)
