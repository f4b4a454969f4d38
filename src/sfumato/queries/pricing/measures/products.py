"""Sums of centred values and of their products, which variances, covariances and correlations come from.

They are estimated from ``sum(x - c)``, ``sum((x - c) * (y - d))`` and the number of rows, c and d being the
middles of the bounds. A square is between 0 and h**2 where the bounds are h from their middle; half of that
is subtracted for each row, so that a row moves the sum by half as much. All sums of a column are on one grid:
what is computed from them is then exact for the rounded values.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, MutableMapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, final

from sfumato import _check
from sfumato.mechanisms.base.rational import ceil_log2
from sfumato.queries.plan.expression_words import in_words
from sfumato.queries.plan.measure import GridColumn, Measure, RowSum
from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.measures.measure_request import (
    HALF_DISTANCE,
    EstimateNoise,
    ExpectedError,
    Found,
    Grids,
    MeasureRequest,
    even_steps,
)

__all__ = ["Bounded", "SumOfProducts"]

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

    def on_grid(self, exponent: int) -> GridColumn:
        """Return the values on a grid, less the middle of the bounds."""
        step = Fraction(2) ** exponent
        lower, upper = (round(Fraction(bound) / step) for bound in self.bounds)
        return GridColumn(self.expression, exponent, lower, upper, (lower + upper) // 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumOfProducts(MeasureRequest):
    """The sum of one column's centred values, or of the products of two, for variances and covariances.

    Parameters
    ----------
    columns : tuple of Bounded
        One factor, or two, which may be the same.
    max_rows : int
        The most rows of one unit in one group.
    """

    noun: ClassVar[str] = "sum"
    columns: tuple[Bounded, ...]
    max_rows: int = 1

    @property
    def found(self) -> bool:
        """Whether the bounds are placeholders."""
        return self.columns[0].found

    @property
    def searches(self) -> tuple[BoundSearch, ...]:
        """A search for each column without bounds."""
        return tuple(dict.fromkeys(BoundSearch(c.expression) for c in self.columns if c.found))

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all groups by together, over the sensitivity."""
        # all rows in one group is the most that they can add to all groups
        return Fraction(groups) if self.all_rows is None else Fraction(1)

    def bits(self, noise_multiplier: Fraction) -> int:
        """Return how many bits a value may have, so that neither sum nor noise leaves the range."""
        noise = max(0, ceil_log2(noise_multiplier))
        room = min(_SCALE_BITS - noise, _UNIT_BITS) - math.ceil(math.log2(self.max_rows))
        middles = [column.farthest_bits() + math.ceil(math.log2(self.max_rows)) for column in self.columns]
        bits = min(_GRID_BITS, room // len(self.columns), *(_MIDDLE_BITS - taken for taken in middles))
        if bits < 1:
            _check.refuse("max_rows_per_group", "leave room for the noise", self.max_rows, "use fewer rows")
        return bits

    def propose_grids(self, noise_multiplier: Fraction, grids: MutableMapping[Hashable, int]) -> None:
        """Choose for each column the coarsest grid that one of its sums needs."""
        bits = self.bits(noise_multiplier)
        for column in self.columns:
            exponent = column.exponent(bits)
            grids[column] = max(grids.get(column, exponent), exponent)

    def with_bounds(self, measure: Measure, found: Found) -> Measure:
        """Return the sum of the products of values within the found bounds."""
        factors = []
        for factor in measure.value.columns:
            lower, upper, exponent = even_steps(found[BoundSearch(factor.expression)], factor.upper)
            middle = (lower + upper) // 2
            factors.append(GridColumn(factor.expression, factor.exponent + exponent, lower, upper, middle))
        exponent = sum(factor.exponent for factor in factors)
        return replace(measure, value=_centred(tuple(factors)), exponent=exponent)

    def published(self, measure: Measure) -> tuple[int, int | None, int | None]:
        """Return what is subtracted for each row, and the range of a row's product without that."""
        low, high = RowSum(measure.value.columns).terms
        return (low + high) // 2, low, high

    @property
    def title(self) -> str:
        """What noise is added to: what is summed over rows."""
        words = [in_words(column.expression) for column in self.columns]
        if len(words) == 1:
            return f"the sum of {words[0]}, less the middle of its bounds, over rows"
        if self.columns[0] == self.columns[1]:
            return f"the sum of the squares of {words[0]}, less the middle of its bounds, over rows"
        return (
            f"the sum of the products of {' and '.join(words)}, less the middles of their bounds, over rows"
        )

    def meaning(self, function: str, measure: Measure) -> str:
        """Say within which bounds rows are."""
        shown = " and ".join(
            f"[{factor.lower * 2.0**factor.exponent:g}, {factor.upper * 2.0**factor.exponent:g}]"
            for factor in dict.fromkeys(measure.value.columns)
        )
        return f"{function}, of rows clamped to {shown}"

    def expected_error(self, noise: EstimateNoise) -> ExpectedError:
        """Return the error of a variance or a covariance times the number of rows, at its largest."""
        sums, counted = noise.further, noise.count_stddev
        halves = [(factor.upper - factor.lower) / 2 for factor in noise.measure.value.columns]
        if len(sums) == 1:
            parts = noise.stddev, 2 * halves[0] * sums[0], 1.5 * halves[0] ** 2 * counted
        else:
            crossed = math.hypot(halves[1] * sums[0], halves[0] * sums[1])
            parts = noise.stddev, crossed, halves[0] * halves[1] * counted
        unit = f"{HALF_DISTANCE}, squared" if len(sums) == 1 else f"{HALF_DISTANCE} of either column"
        deviation = math.hypot(*parts) * noise.step
        return ExpectedError(deviation, over=noise.over, unit=unit if noise.pending else "")

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        """Return the sum on the grids of its columns.

        Notes
        -----
        Guarantee: one unit adds to a group the sum of at most ``max_rows`` terms, each within `RowSum.terms`;
        where all its rows are bounded, their number times the greatest to all groups.
        """
        del noise_multiplier
        factors = tuple(column.on_grid(grids[column]) for column in self.columns)
        value = _centred(factors)
        low, high = value.terms
        exponent = sum(factor.exponent for factor in factors)
        l1 = None if self.all_rows is None else self.all_rows * max(abs(low), abs(high))
        bounds = min(0, low * self.max_rows), max(0, high * self.max_rows)
        return Measure(value, exponent, *bounds, l1=l1)


def _centred(factors: tuple[GridColumn, ...]) -> RowSum:
    """Return the sum of what rows' products are from the middle of their range."""
    return RowSum(factors, sum(RowSum(factors).terms) // 2)
