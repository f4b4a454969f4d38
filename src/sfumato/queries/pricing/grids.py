"""Drafts of measures: their bounds in the data's units, and the power-of-two grid that each is put on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from sfumato import _check
from sfumato.errors import OptionError
from sfumato.queries.plan.query import ColumnType, Expression, Measure, MeasureKind
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.moment_grids import Bounded, Moment, moment_grids
from sfumato.queries.pricing.quantile_bins import quantile_bins

__all__ = ["PLACEHOLDER_BOUNDS", "MeasureRequest", "on_grids", "require_rows_on_grid"]

PLACEHOLDER_BOUNDS = (-1.0, 1.0)
"""The bounds that a measure is priced within whose own are to be found: noise is in their units."""

_Number = TypeVar("_Number", int, float)

_LARGEST_SCALE_BITS = 39  # a scale of 2**40 is the sampler's end; one bit of room
_GRID_BITS = 24  # a bound is about 2**24 grid steps: rounding is 1e-7 of it, far below any noise
_SPARE_GRID_BITS = 8  # a mean may give up this much of its grid to share a sum's
_EXACT_INTEGER_BITS = 32  # integer bounds up to here keep the grid at 1, so integer sums stay exact
_ROW_REACH = 2**62  # the engine's integers
_ROWWISE = (MeasureKind.ROWS, MeasureKind.VALUES, MeasureKind.DISTINCT, MeasureKind.SUM)
_LEAST_ROW_STEPS = 256  # a row's bound in steps; rounding a row is then at most 1/512 of it


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """A measure before its grid is chosen: bounds still in the data's units.

    ``entries`` are the numbers of a group that one unit moves, each by at most the sensitivity; ``all_rows``
    are the rows that it may have in all groups together, where these are bounded instead of its groups.
    ``found`` bounds are stand-ins for those that a search finds. A ``search`` is a measure of its own: of one
    group, in which a unit moves one number by one.
    """

    kind: MeasureKind
    expression: Expression | None = None
    group_bounds: tuple[float, float] | None = None
    row_bounds: tuple[float, float] | None = None
    max_rows: int | None = None
    entries: int = 1
    all_rows: int | None = None
    second: Bounded | None = None
    found: bool = False
    search: BoundSearch | None = None

    @property
    def searches(self) -> tuple[BoundSearch, ...]:
        """What finds the bounds: one search for each column without any."""
        if self.moment is not None:
            return tuple(dict.fromkeys(BoundSearch(c.expression) for c in self.moment.columns if c.found))
        if not self.found or self.expression is None:
            return ()
        if self.kind is not MeasureKind.SUM or self.max_rows == 1:
            return (BoundSearch(self.expression),)
        return (BoundSearch(self.expression, totals=True, max_rows=self.max_rows),)

    @property
    def moment(self) -> Moment | None:
        """The sum of values or of products that this is, if it is one; ``second`` is the other column."""
        if self.kind is not MeasureKind.MOMENT or self.expression is None or self.row_bounds is None:
            return None
        first = Bounded(self.expression, self.row_bounds, self.found)
        columns = (first, *((self.second,) if self.second else ()))
        return Moment(columns, self.max_rows or 1)

    @property
    def range(self) -> tuple[float, float]:
        """The least range, in the data's units, that what one unit adds to one group cannot leave."""
        return _cut(self.group_bounds, self._attained(self.row_bounds))

    def numbers(self, groups: int) -> int:
        """Return how many numbers of so many groups one unit moves."""
        return 1 if self.search is not None else groups * self.entries

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all entries by together, over the sensitivity.

        That is the number of entries, or less where its rows in all groups together are bounded.
        """
        if self.search is not None:
            return Fraction(1)
        if self.kind is MeasureKind.MOMENT and self.all_rows is not None:
            return Fraction(1)  # all rows in one group is the most that they can add to all groups
        whole = Fraction(groups * self.entries)
        if self.kind is MeasureKind.LEAVES and self.all_rows is not None:
            return min(whole, Fraction(self.all_rows * self.entries) / Fraction(self.range[1]))
        if self.all_rows is None or self.kind not in _ROWWISE:
            return whole
        lower, upper = self.range
        each, reach = self._each(self.row_bounds, (lower, upper)), Fraction(max(abs(lower), abs(upper)))
        return whole if each is None or not reach else min(whole, Fraction(each) * self.all_rows / reach)

    def on_grid(self, noise_multiplier: Fraction, *, shared: int | None = None) -> Measure:
        """Choose the power-of-two grid, or take the ``shared`` one, and express the bounds in grid steps."""
        if self.search is not None:
            return self.search.counted(self.search.expression)
        match self.kind:
            case MeasureKind.LEAVES:
                return self._leaves()
            case MeasureKind.UNITS | MeasureKind.VALUE_UNITS:
                return Measure(self.kind, self.expression)
            case MeasureKind.ROWS | MeasureKind.VALUES | MeasureKind.DISTINCT:
                lower, upper = (int(bound) for bound in self.range)
                found = Measure(self.kind, self.expression, lower=lower, upper=upper)
            case MeasureKind.MEAN:
                return self._mean(self.exponent(noise_multiplier), shared)
            case MeasureKind.SUM:
                found = self._sum(self.exponent(noise_multiplier))
            case MeasureKind.MOMENT:
                _check.refuse("kind", "be put on the grid with the sums it is read with", self.kind)
        return found if self.all_rows is None else self._within(found, self.all_rows)

    def _within(self, measure: Measure, all_rows: int) -> Measure:
        """Bound what a unit of so many rows adds to all groups together."""
        rows = (
            None
            if measure.row_lower is None or measure.row_upper is None
            else (measure.row_lower, measure.row_upper)
        )
        each = self._each(rows, (measure.lower, measure.upper))
        return (
            measure if each is None else replace(measure, l1=all_rows * min(int(each), measure.sensitivity))
        )

    def _leaves(self) -> Measure:
        """Count rows by bin; a row is in one node of each level of the tree."""
        whole = self.typed(ColumnType.INTEGER) and not self.found
        grid = quantile_bins(self.row_bounds or (0.0, 0.0), whole=whole)
        l1 = None if self.all_rows is None else self.all_rows * self.entries
        most = int(self.range[1])
        return Measure(self.kind, self.expression, grid.exponent, 0, most, grid.lower, grid.upper, l1=l1)

    def typed(self, type_: ColumnType) -> bool:
        """Return whether the expression has that type."""
        return self.expression is not None and self.expression.type is type_

    def _each(self, rows: tuple[_Number, _Number] | None, bounds: tuple[_Number, _Number]) -> _Number | None:
        """Return a number so that n rows add at most n times it to all groups; None where rows do not count.

        A group's total of rows within ``rows`` is clamped to ``bounds``, which enlarges it only where they
        leave out zero, to at most the bound nearer to zero; and a group that a unit is in has a row of it.
        """
        if self.kind is not MeasureKind.SUM:
            return max(type(bounds[0])(1), bounds[0])
        return None if rows is None else max(abs(rows[0]), abs(rows[1]), bounds[0], -bounds[1])

    def exponent(self, noise_multiplier: Fraction) -> int:
        """Return the exponent of the grid: fine beside the bounds, coarse enough for the noise."""
        lower, upper = self.range
        if self.kind is MeasureKind.MEAN:
            return _exact(lower) if lower == upper else self._finest(noise_multiplier, (upper - lower) / 2)
        return self._finest(noise_multiplier, max(abs(lower), abs(upper)))

    def _mean(self, exponent: int, shared: int | None) -> Measure:
        """Round the bounds inwards, so that the mean that is read off lies within them as they were given."""
        lower, upper = self.range
        if lower < upper and shared is not None and exponent <= shared <= exponent + _SPARE_GRID_BITS:
            exponent = shared
        step = Fraction(2) ** exponent
        low, high = math.ceil(Fraction(lower) / step), math.floor(Fraction(upper) / step)
        if low > high:
            _check.refuse("bounds", "hold a step of the grid", (lower, upper), "use less noise")
        return Measure(self.kind, self.expression, exponent, low, high, center=(low + high) // 2)

    def _sum(self, exponent: int) -> Measure:
        rows = None if self.row_bounds is None else _row_steps(self.row_bounds, exponent)
        group = None if self.group_bounds is None else _steps(self.group_bounds, exponent)
        lower, upper = _cut(group, self._attained(rows))
        return Measure(self.kind, self.expression, exponent, lower, upper, *(rows or (None, None)))

    def _attained(self, rows: tuple[_Number, _Number] | None) -> tuple[_Number, _Number] | None:
        """Return what the rows that a unit may have in a group come to; None where that has no limit."""
        if self.max_rows is None:
            return None
        if self.kind is not MeasureKind.SUM:
            return 0, self.max_rows
        return (
            None
            if rows is None
            else (min(rows[0], rows[0] * self.max_rows), max(rows[1], rows[1] * self.max_rows))
        )

    def _finest(self, noise_multiplier: Fraction, reach: float) -> int:
        if reach == 0.0:
            return 0
        bits = _bits(reach)
        noise_bits = max(0, math.ceil(math.log2(float(noise_multiplier))))
        coarsest = bits - min(_LARGEST_SCALE_BITS - noise_bits, _EXACT_INTEGER_BITS)
        # Rows may be far smaller than what many of them come to.
        row_reach = max(map(abs, self.row_bounds or (reach,)))
        fine = min(bits, _bits(row_reach)) if row_reach else bits
        if self.kind is MeasureKind.SUM and self._whole and fine <= _EXACT_INTEGER_BITS:
            return max(0, coarsest)
        return max(fine - _GRID_BITS, coarsest)

    @property
    def _whole(self) -> bool:
        """Whether values and bounds are whole numbers, which a grid of ones holds exactly."""
        bounds = (self.group_bounds or ()) + (self.row_bounds or ())
        whole = self.typed(ColumnType.INTEGER) and not self.found
        return whole and all(float(bound).is_integer() for bound in bounds)


def on_grids(requests: tuple[MeasureRequest, ...], multipliers: tuple[Fraction, ...]) -> tuple[Measure, ...]:
    """Choose every measure's grid; a mean shares that of a sum of the same rows: they are added up once.

    Parameters
    ----------
    requests : tuple of Draft
    multipliers : tuple of Fraction
        Of the noise of each: its parameter over the sensitivity.
    """
    sums = {
        request.expression: request.exponent(multiplier)
        for request, multiplier in zip(requests, multipliers, strict=True)
        if request.kind is MeasureKind.SUM and request.row_bounds is None
        if request.expression is not None and not request.found
    }
    pairs = list(zip(requests, multipliers, strict=True))
    exponents = moment_grids((request.moment, multiplier) for request, multiplier in pairs if request.moment)
    return tuple(
        request.moment.on_grid(exponents, request.all_rows)
        if request.moment
        else request.on_grid(multiplier, shared=_shared(request, sums))
        for request, multiplier in pairs
    )


def _shared(request: MeasureRequest, sums: Mapping[Expression, int]) -> int | None:
    """Return the grid of a sum of the same rows; bounds that are to be found are on no grid yet."""
    return None if request.found or request.expression is None else sums.get(request.expression)


def require_rows_on_grid(requests: tuple[MeasureRequest, ...], measures: tuple[Measure, ...]) -> None:
    """Refuse a sum over so many rows that its grid would round the single rows away.

    Raises
    ------
    OptionError
        If the bound of a row is fewer than 256 grid steps, although a unit's is more, and rows are not whole
        numbers on a grid of ones.
    """
    for request, measure in zip(requests, measures, strict=True):
        skipped = request.moment or request.kind is MeasureKind.LEAVES  # searches, too
        if skipped or not (any(request.row_bounds or ()) and any(request.range)):
            continue
        whole = request.typed(ColumnType.INTEGER)
        reach = max(abs(measure.row_lower or 0), abs(measure.row_upper or 0))
        alone = reach >= max(abs(measure.lower), abs(measure.upper)) > 0  # no coarser for being many
        if reach < _LEAST_ROW_STEPS and not alone and not (whole and measure.exponent <= 0):
            raise OptionError(
                "SUM must have bounds within which no single row is rounded away, got values in steps of "
                f"{2.0**measure.exponent:g}; use a smaller max_rows_per_group, or "
                "contribution_bounds_per_group nearer to those per row"
            )


def _cut(
    bounds: tuple[_Number, _Number] | None, attained: tuple[_Number, _Number] | None
) -> tuple[_Number, _Number]:
    """Return the bounds without what cannot be attained: clamping to them changes no attained number less.

    Where the two do not meet, every attained number is clamped to the same bound, which is returned twice.
    """
    if bounds is None or attained is None:
        found = attained if bounds is None else bounds
        if found is None:
            _check.refuse("bounds", "limit what a unit adds to a group", None, "give max_rows_per_group")
        return found
    (lower, upper), (least, most) = bounds, attained
    return min(max(lower, least), upper), max(min(upper, most), lower)


def _bits(reach: float) -> int:
    return math.frexp(reach)[1]


def _exact(value: float) -> int:
    """Return the exponent of the coarsest grid that holds a number exactly, in at most 53 bits.

    >>> _exact(0.5), _exact(5.0), _exact(-12.0), _exact(0.0)
    (-1, 0, 2, 0)
    """
    numerator, denominator = value.as_integer_ratio()
    if denominator > 1 or numerator == 0:
        return 1 - denominator.bit_length()
    return (numerator & -numerator).bit_length() - 1


def _steps(bounds: tuple[float, float], exponent: int) -> tuple[int, int]:
    lower, upper = (round(Fraction(bound) / Fraction(2) ** exponent) for bound in bounds)
    return lower, upper


def _row_steps(bounds: tuple[float, float], exponent: int) -> tuple[int, int]:
    """Return a row's bounds in steps, kept in the engine's range.

    That is at least 2**30 times the group's bounds, and what rows without bounds are kept in, too.
    """
    lower, upper = (max(-_ROW_REACH, min(_ROW_REACH, bound)) for bound in _steps(bounds, exponent))
    return lower, upper
