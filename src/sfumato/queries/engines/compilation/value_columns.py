"""A row's values as integers: on a grid, as themselves, or only whether there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.queries.engines.dialects.base import REACH, Dialect
from sfumato.queries.plan.query import ColumnType, Expression

__all__ = ["ValueColumn"]


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
            # nearly all values are within: what is asked first costs most
            below = dialect.real(-_at_most(-self.lower, self.exponent))
            above = dialect.real(_at_most(self.upper, self.exponent))
            return (
                f"CASE WHEN {value} >= {below} AND {value} <= {above} "
                f"THEN {dialect.gridded(value, self.exponent)} WHEN {dialect.isnan(value)} THEN NULL "
                f"WHEN {value} > {above} THEN {upper} WHEN {value} < {below} THEN {lower} END"
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
