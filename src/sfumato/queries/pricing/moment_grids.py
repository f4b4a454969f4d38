"""Sums of centred values and of their products as integers: grids and ranges.

Variances, covariances and correlations are read off ``sum(x - c)``, ``sum((x - c) * (y - d))`` and the number
of rows, c and d being the middles of the bounds. A square is between 0 and h**2 where the bounds are h from
their middle; half of that is subtracted for each row, so that a row moves the sum by half as much. All sums
of a column are on one grid: what is computed from them is then exact for the rounded values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato import _check
from sfumato.queries.plan.query import ColumnType, Expression, Factor, Measure, MeasureKind

__all__ = ["Bounded", "Moment", "moment_grids"]

_SCALE_BITS = 39  # a scale of 2**40 is the sampler's end; one bit of room
_UNIT_BITS = 34  # what one unit adds: the sum of 2**28 units is within the engine's integers
_GRID_BITS = 24
_MIDDLE_BITS = 61  # the middle of the bounds times the rows of a unit: within the engine's integers


@dataclass(frozen=True, slots=True)
class Bounded:
    """A column and the bounds of one row's value of it; ``found`` ones stand in for those of a search."""

    expression: Expression
    bounds: tuple[float, float]
    found: bool = False

    def farthest_bits(self) -> int:
        """Return how many times the bounds are farther from zero than from their middle, in bits."""
        reach, farthest = (self.bounds[1] - self.bounds[0]) / 2, max(map(abs, self.bounds))
        if farthest == 0:
            return 0
        return math.ceil(math.log2(farthest) - (math.log2(reach) if reach else 0.0))

    def exponent(self, bits: int) -> int:
        """Return the exponent of the grid where the bounds are some ``2**bits`` steps from their middle."""
        reach = (self.bounds[1] - self.bounds[0]) / 2
        if reach == 0:
            return 0
        finest = math.frexp(reach)[1] - bits
        whole = self.expression.type is ColumnType.INTEGER and all(map(float.is_integer, self.bounds))
        return max(0, finest) if whole and not self.found else finest


@dataclass(frozen=True, slots=True)
class Moment:
    """One sum before its grid is chosen: of one or two columns, over so many rows of a unit at most."""

    columns: tuple[Bounded, ...]
    max_rows: int

    def bits(self, multiplier: Fraction) -> int:
        """Return how many bits a value may have, so that neither sum nor noise leaves the range."""
        noise = max(0, math.ceil(math.log2(float(multiplier))))
        room = min(_SCALE_BITS - noise, _UNIT_BITS) - math.ceil(math.log2(self.max_rows))
        middles = [column.farthest_bits() + math.ceil(math.log2(self.max_rows)) for column in self.columns]
        bits = min(_GRID_BITS, room // len(self.columns), *(_MIDDLE_BITS - taken for taken in middles))
        if bits < 1:
            _check.refuse("max_rows_per_group", "leave room for the noise", self.max_rows, "use fewer rows")
        return bits

    def on_grid(self, exponents: Mapping[Bounded, int], all_rows: int | None) -> Measure:
        """Return the measure on the grids of its columns.

        Notes
        -----
        Guarantee: one unit adds to a group the sum of at most ``max_rows`` terms, each within
        ``Measure.terms``; where all its rows are bounded, their number times the greatest to all groups.
        """
        factors = tuple(_factor(column, exponents[column]) for column in self.columns)
        made = Measure(
            MeasureKind.MOMENT,
            self.columns[0].expression,
            sum(factor.exponent for factor in factors),
            factors=factors,
        )
        made = replace(made, offset=sum(made.terms) // 2)
        least, most = made.terms
        made = replace(made, lower=min(0, least * self.max_rows), upper=max(0, most * self.max_rows))
        return made if all_rows is None else replace(made, l1=all_rows * max(abs(least), abs(most)))


def _factor(column: Bounded, exponent: int) -> Factor:
    step = Fraction(2) ** exponent
    lower, upper = (round(Fraction(bound) / step) for bound in column.bounds)
    return Factor(column.expression, exponent, lower, upper, (lower + upper) // 2)


def moment_grids(wanted: Iterable[tuple[Moment, Fraction]]) -> dict[Bounded, int]:
    """Return each column's exponent: the coarsest that one of its sums needs under its noise multiplier."""
    found: dict[Bounded, int] = {}
    for moment, multiplier in wanted:
        bits = moment.bits(multiplier)
        for column in moment.columns:
            exponent = column.exponent(bits)
            found[column] = max(found.get(column, exponent), exponent)
    return found
