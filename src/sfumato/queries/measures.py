"""From aggregates to measures: which exact integers a query needs, and how its columns are read off them.

Aggregates share measures: COUNT(*) without bounds, COUNT(DISTINCT unit) and the threshold for unknown groups
all read the one count of units, and AVG(x) shares its denominator with COUNT(x). Each measure costs privacy
once, so sharing is free accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from sfumato.queries.plan import Aggregate, AggregateKind, ColumnType, Expression, Measure, MeasureKind, Query

__all__ = ["Draft", "Reading", "drafts_and_readings", "on_grids"]

_Number = TypeVar("_Number", int, float)

_LARGEST_SCALE_BITS = 39  # a scale of 2**40 is the sampler's end; one bit of room
_GRID_BITS = 24  # a bound is about 2**24 grid steps: rounding is 1e-7 of it, far below any noise
_SPARE_GRID_BITS = 8  # a mean may give up this much of its grid to share a sum's
_EXACT_INTEGER_BITS = 32  # integer bounds up to here keep the grid at 1, so integer sums stay exact


@dataclass(frozen=True, slots=True)
class Draft:
    """A measure before its grid is chosen: bounds still in the data's units."""

    kind: MeasureKind
    expression: Expression | None = None
    group_bounds: tuple[float, float] | None = None
    row_bounds: tuple[float, float] | None = None
    max_rows: int | None = None

    def on_grid(self, noise_multiplier: Fraction, *, shared: int | None = None) -> Measure:
        """Choose the power-of-two grid, or take the ``shared`` one, and express the bounds in grid steps."""
        if self.kind in (MeasureKind.UNITS, MeasureKind.VALUE_UNITS):
            return Measure(self.kind, self.expression)
        if self.kind in (MeasureKind.ROWS, MeasureKind.VALUES):
            lower, upper = (int(bound) for bound in self._range())
            return Measure(self.kind, self.expression, lower=lower, upper=upper)
        exponent = self._exponent(noise_multiplier)
        if shared is not None and exponent <= shared <= exponent + _SPARE_GRID_BITS:
            exponent = shared
        lower, upper = (_steps(bound, exponent) for bound in self._range())
        row_lower, row_upper = (
            (None, None)
            if self.row_bounds is None
            else (_steps(bound, exponent) for bound in self.row_bounds)
        )
        if (
            self.kind is MeasureKind.SUM
            and self.group_bounds is None
            and row_lower is not None
            and row_upper is not None
        ):
            lower, upper = _sum_range(row_lower, row_upper, self.max_rows)
        center = (lower + upper) // 2 if self.kind is MeasureKind.MEAN else 0
        if self.kind is MeasureKind.MEAN and lower == upper:
            upper += 1  # a public constant; one step of width keeps the sensitivity positive
        return Measure(self.kind, self.expression, exponent, lower, upper, row_lower, row_upper, center)

    def _range(self) -> tuple[float, float]:
        """Return what one unit may add to one group, in the data's units."""
        if self.group_bounds is None:
            return _sum_range(*(self.row_bounds or (0.0, 0.0)), self.max_rows)
        lower, upper = self.group_bounds
        if self.kind in (MeasureKind.ROWS, MeasureKind.VALUES) and self.max_rows is not None:
            upper = max(lower, min(upper, self.max_rows))
        return lower, upper

    def _exponent(self, noise_multiplier: Fraction) -> int:
        lower, upper = self._range()
        reach = (upper - lower) / 2 if self.kind is MeasureKind.MEAN else max(abs(lower), abs(upper))
        if reach == 0.0:
            return 0
        bits = math.frexp(reach)[1]
        noise_bits = max(0, math.ceil(math.log2(float(noise_multiplier))))
        coarsest = bits + noise_bits - _LARGEST_SCALE_BITS
        whole = self.expression is not None and self.expression.type is ColumnType.INTEGER
        if self.kind is MeasureKind.SUM and whole and bits <= _EXACT_INTEGER_BITS and self._integral_bounds():
            return max(0, coarsest)
        return max(bits - _GRID_BITS, coarsest)

    def _integral_bounds(self) -> bool:
        bounds = (self.group_bounds or ()) + (self.row_bounds or ())
        return all(float(bound).is_integer() for bound in bounds)


@dataclass(frozen=True, slots=True)
class Reading:
    """How one released column is computed from noisy measures: ``total``, over ``count`` for an average."""

    name: str
    kind: AggregateKind
    total: int
    count: int | None = None


def drafts_and_readings(query: Query) -> tuple[tuple[Draft, ...], tuple[Reading, ...]]:
    """List the measures a query needs, each once, and how every aggregate reads them.

    Where groups are unknown the first measure is the count of units that the threshold is applied to.
    """
    drafts: list[Draft] = []

    def index(draft: Draft) -> int:
        if draft not in drafts:
            drafts.append(draft)
        return drafts.index(draft)

    if query.keys and query.public_groups is None:
        index(Draft(MeasureKind.UNITS))
    readings = []
    max_rows = 1 if query.relation.unit is None else query.options.max_rows_per_group
    for aggregate in query.aggregates:
        total, *count = (index(draft) for draft in _drafts_of(aggregate, max_rows))
        readings.append(Reading(aggregate.name, aggregate.kind, total, count[0] if count else None))
    return tuple(drafts), tuple(readings)


def on_grids(drafts: tuple[Draft, ...], noise_multiplier: Fraction) -> tuple[Measure, ...]:
    """Choose every measure's grid; a mean shares that of a sum of the same rows: they are added up once."""
    sums = {
        draft.expression.sql: draft.on_grid(noise_multiplier).exponent
        for draft in drafts
        if draft.kind is MeasureKind.SUM and draft.expression is not None and draft.row_bounds is None
    }
    return tuple(
        draft.on_grid(
            noise_multiplier,
            shared=sums.get(draft.expression.sql)
            if draft.kind is MeasureKind.MEAN and draft.expression is not None
            else None,
        )
        for draft in drafts
    )


def _drafts_of(aggregate: Aggregate, max_rows: int | None) -> tuple[Draft, ...]:
    expression, bounds = aggregate.expression, aggregate.group_bounds
    one_row = bounds in (None, (0, 1)) or (max_rows == 1 and bounds[0] == 0)
    units = Draft(MeasureKind.VALUE_UNITS, expression)
    match aggregate.kind:
        case AggregateKind.SUM:
            return (Draft(MeasureKind.SUM, expression, bounds, aggregate.row_bounds, max_rows),)
        case AggregateKind.AVG:
            return Draft(MeasureKind.MEAN, expression, bounds), units
        case AggregateKind.COUNT_VALUES:
            return (units if one_row else Draft(MeasureKind.VALUES, expression, bounds, max_rows=max_rows),)
        case AggregateKind.COUNT_ROWS if not one_row:
            return (Draft(MeasureKind.ROWS, None, bounds, max_rows=max_rows),)
        case _:
            return (Draft(MeasureKind.UNITS),)


def _sum_range(lower: _Number, upper: _Number, max_rows: int | None) -> tuple[_Number, _Number]:
    """Range of a sum of 1 to ``max_rows`` values of [lower, upper]."""
    rows = 1 if max_rows is None else max_rows
    return min(lower, lower * rows), max(upper, upper * rows)


def _steps(bound: float, exponent: int) -> int:
    return round(Fraction(bound) / Fraction(2) ** exponent)
