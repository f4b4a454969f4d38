"""Sums of values and of units' means, on grids fine beside their bounds and coarse enough for their noise."""

from __future__ import annotations

import math
from collections.abc import Hashable, MutableMapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, final

from sfumato import _check
from sfumato.errors import OptionError
from sfumato.mechanisms.base.rational import ceil_log2
from sfumato.queries.plan.measure import GridColumn, Measure, RowMean, RowSum
from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.measures.measure_request import (
    HALF_DISTANCE,
    Bounds,
    EstimateNoise,
    ExpectedError,
    Found,
    Grids,
    MeasureRequest,
    Number,
    cut,
    even_steps,
    power,
)

__all__ = ["MeanOfUnits", "SumOfRows"]

_LARGEST_SCALE_BITS = 39  # a scale of 2**40 is the sampler's end; one bit of room
_GRID_BITS = 24  # a bound is about 2**24 grid steps: rounding is 1e-7 of it, far below any noise
_SPARE_GRID_BITS = 8  # a mean may give up this much of its grid to share a sum's
_EXACT_INTEGER_BITS = 32  # integer bounds up to here keep the grid at 1, so integer sums stay exact
_ROW_REACH = 2**62  # the engine's integers
_MINIMUM_ROW_STEPS = 256  # a row's bound in steps; rounding a row is then at most 1/512 of it


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumOfRows(MeasureRequest):
    """The sum of values: of rows within ``row_bounds``, of units within ``bounds``.

    Parameters
    ----------
    bounds, row_bounds : tuple of two floats, or None
        Of what one unit adds to a group, and of one row's value.
    max_rows : int or None
        The most rows of one unit in one group.
    found : bool
        Whether the bounds are placeholders.
    """

    noun: ClassVar[str] = "sum"
    expression: Expression
    bounds: Bounds | None = None
    row_bounds: Bounds | None = None
    max_rows: int | None = None
    found: bool = False

    @property
    def searches(self) -> tuple[BoundSearch, ...]:
        """A search among units' totals, or among values where a total is one."""
        if not self.found:
            return ()
        if self.max_rows == 1:
            return (BoundSearch(self.expression),)
        return (BoundSearch(self.expression, totals=True, max_rows=self.max_rows),)

    @property
    def range(self) -> Bounds:
        """The bounds that what one unit adds to one group cannot leave."""
        return cut(self.bounds, self._attained(self.row_bounds))

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all groups by together, over the sensitivity."""
        whole = Fraction(groups)
        if self.all_rows is None:
            return whole
        lower, upper = self.range
        each, reach = self._each(self.row_bounds, (lower, upper)), Fraction(max(abs(lower), abs(upper)))
        return whole if each is None or not reach else min(whole, Fraction(each) * self.all_rows / reach)

    def exponent(self, noise_multiplier: Fraction) -> int:
        """Return the exponent of the grid: fine beside the bounds, coarse enough for the noise."""
        reach = max(map(abs, self.range))
        fine = _fine_bits(self.row_bounds, reach)
        if self._whole and reach != 0.0 and fine <= _EXACT_INTEGER_BITS:
            return max(0, _coarsest(noise_multiplier, reach))
        return _finest(noise_multiplier, reach, fine)

    def with_bounds(self, measure: Measure, found: Found) -> Measure:
        """Return the sum in steps that take the placeholders to bounds around the found ones."""
        bounds = found[self.searches[0]]
        exponent = measure.exponent + power(max(-bounds.lower, bounds.upper))
        (column,) = measure.value.columns
        return replace(measure, value=RowSum((replace(column, exponent=exponent),)), exponent=exponent)

    def propose_grids(self, noise_multiplier: Fraction, grids: MutableMapping[Hashable, int]) -> None:
        """Share the grid with a mean of the same rows; bounds that are to be found are on no grid yet."""
        if self.row_bounds is None and not self.found:
            grids[self.expression] = self.exponent(noise_multiplier)

    def require_rows_on_grid(self, measure: Measure) -> None:
        """Refuse a sum over so many rows that its grid would round the single rows away.

        Raises
        ------
        OptionError
            If the bound of a row is fewer than 256 grid steps, although a unit's is more, and rows are not
            whole numbers on a grid of ones.
        """
        if not (any(self.row_bounds or ()) and any(self.range)):
            return
        whole = self.typed(ColumnType.INTEGER)
        reach = max(map(abs, self._row_range(measure) or (0,)))
        alone = reach >= max(abs(measure.lower), abs(measure.upper)) > 0  # no coarser for being many
        if reach < _MINIMUM_ROW_STEPS and not alone and not (whole and measure.exponent <= 0):
            raise OptionError(
                "SUM must have bounds within which no single row is rounded away, got values in steps of "
                f"{2.0**measure.exponent:g}; use a smaller max_rows_per_group, or "
                "contribution_bounds_per_group nearer to those per row"
            )

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        del grids
        exponent = self.exponent(noise_multiplier)
        rows = None if self.row_bounds is None else _row_steps(self.row_bounds, exponent)
        group = None if self.bounds is None else _steps(self.bounds, exponent)
        bounds = cut(group, self._attained(rows))
        column = (
            GridColumn.wide(self.expression, exponent, bounds)
            if rows is None
            else GridColumn(self.expression, exponent, *rows)
        )
        return Measure(RowSum((column,)), exponent, *bounds)

    def _row_range(self, measure: Measure) -> tuple[int, int] | None:
        (column,) = measure.value.columns
        return None if self.row_bounds is None else (column.lower, column.upper)

    def _attained(self, rows: tuple[Number, Number] | None) -> tuple[Number, Number] | None:
        """Return what the rows that a unit may have in a group come to; None where that has no limit."""
        if self.max_rows is None or rows is None:
            return None
        return min(rows[0], rows[0] * self.max_rows), max(rows[1], rows[1] * self.max_rows)

    def _each(self, rows: tuple[Number, Number] | None, bounds: tuple[Number, Number]) -> Number | None:
        """Return a number so that n rows add at most n times it to all groups; None where rows do not count.

        A group's total of rows within ``rows`` is clamped to ``bounds``, which enlarges it only where they
        leave out zero, to at most the bound nearer to zero; and a group that a unit is in has a row of it.
        """
        return None if rows is None else max(abs(rows[0]), abs(rows[1]), bounds[0], -bounds[1])

    @property
    def _whole(self) -> bool:
        """Whether values and bounds are whole numbers, which a grid of ones holds exactly."""
        bounds = (self.bounds or ()) + (self.row_bounds or ())
        whole = self.typed(ColumnType.INTEGER) and not self.found
        return whole and all(float(bound).is_integer() for bound in bounds)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOfUnits(MeasureRequest):
    """The sum of units' means, each within ``bounds``; ``found`` ones are placeholders."""

    noun: ClassVar[str] = "mean"
    expression: Expression
    bounds: Bounds
    found: bool = False

    def exponent(self, noise_multiplier: Fraction) -> int:
        """Return the exponent of the grid: fine beside the bounds, coarse enough for the noise."""
        lower, upper = self.bounds
        reach = (upper - lower) / 2
        if lower == upper:
            return _exact_exponent(lower)
        return _finest(noise_multiplier, reach, _bits(reach))

    def with_bounds(self, measure: Measure, found: Found) -> Measure:
        """Return the mean within the found bounds, widened to a power of two."""
        lower, upper, exponent = even_steps(found[self.searches[0]], measure.upper)
        return self._mean(exponent + measure.exponent, lower, upper)

    def expected_error(self, noise: EstimateNoise) -> ExpectedError:
        """Return the error times the number of units, where a mean is at its bound."""
        deviation = math.hypot(noise.stddev, noise.measure.sensitivity * noise.count_stddev) * noise.step
        return ExpectedError(deviation, over=noise.over, unit=HALF_DISTANCE if noise.pending else "")

    def meaning(self, function: str, measure: Measure) -> str:
        """Say that it is the mean of units' means."""
        low, high = (bound * 2.0**measure.exponent for bound in (measure.lower, measure.upper))
        return f"{function}, the mean of per-unit means, each clamped to [{low:g}, {high:g}]"

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        """Round the bounds inwards, so that the mean that is read off lies within them as they were given."""
        exponent, (lower, upper) = self.exponent(noise_multiplier), self.bounds
        shared = None if self.found else grids.get(self.expression)
        if lower < upper and shared is not None and exponent <= shared <= exponent + _SPARE_GRID_BITS:
            exponent = shared
        step = Fraction(2) ** exponent
        low, high = math.ceil(Fraction(lower) / step), math.floor(Fraction(upper) / step)
        if low > high:
            _check.refuse("bounds", "hold a step of the grid", (lower, upper), "use less noise")
        return self._mean(exponent, low, high)

    def _mean(self, exponent: int, lower: int, upper: int) -> Measure:
        column = GridColumn.wide(self.expression, exponent, (lower, upper))
        return Measure(RowMean(column), exponent, lower, upper, center=(lower + upper) // 2)


def _fine_bits(row_bounds: Bounds | None, reach: float) -> int:
    """Return the bits of the smaller of a row's and a unit's bound: rows may be far the smaller."""
    row_reach = max(map(abs, row_bounds or (reach,)))
    return min(_bits(reach), _bits(row_reach)) if row_reach else _bits(reach)


def _coarsest(noise_multiplier: Fraction, reach: float) -> int:
    """Return the exponent below which the noise would leave the sampler's range."""
    noise_bits = max(0, ceil_log2(noise_multiplier))
    return _bits(reach) - min(_LARGEST_SCALE_BITS - noise_bits, _EXACT_INTEGER_BITS)


def _finest(noise_multiplier: Fraction, reach: float, fine: int) -> int:
    """Return the exponent of the finest grid for bounds of so many bits."""
    return 0 if reach == 0.0 else max(fine - _GRID_BITS, _coarsest(noise_multiplier, reach))


def _bits(reach: float) -> int:
    """Return how many bits a number has before its point."""
    return math.frexp(reach)[1]


def _exact_exponent(value: float) -> int:
    """Return the exponent of the coarsest grid that holds a number exactly, in at most 53 bits.

    >>> _exact_exponent(0.5), _exact_exponent(5.0), _exact_exponent(-12.0), _exact_exponent(0.0)
    (-1, 0, 2, 0)
    """
    numerator, denominator = value.as_integer_ratio()
    if denominator > 1 or numerator == 0:
        return 1 - denominator.bit_length()
    return (numerator & -numerator).bit_length() - 1


def _steps(bounds: tuple[float, float], exponent: int) -> tuple[int, int]:
    """Return bounds in steps of a grid."""
    lower, upper = (round(Fraction(bound) / Fraction(2) ** exponent) for bound in bounds)
    return lower, upper


def _row_steps(bounds: tuple[float, float], exponent: int) -> tuple[int, int]:
    """Return a row's bounds in steps, within the engine's range.

    That is at least 2**30 times the group's bounds, and what rows without bounds are clamped to, too.
    """
    lower, upper = (max(-_ROW_REACH, min(_ROW_REACH, bound)) for bound in _steps(bounds, exponent))
    return lower, upper
