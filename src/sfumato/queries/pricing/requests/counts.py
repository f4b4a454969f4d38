"""Numbers of units, rows and distinct values, and what a search for bounds counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from sfumato.queries.plan.query import Measure, MeasureKind
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.grid_steps import (
    Number,
    cut,
)
from sfumato.queries.pricing.requests.measure_request import Bounds, MeasureRequest

__all__ = ["CountBounds", "CountDistinct", "CountRows", "CountUnits", "CountUnitsWithValue", "CountValues"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountUnits(MeasureRequest):
    """The number of units."""

    def _measure(self, noise_multiplier: Fraction, shared: int | None) -> Measure:
        del noise_multiplier, shared
        return Measure(MeasureKind.UNITS)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountUnitsWithValue(MeasureRequest):
    """The number of units with a value of the expression."""

    def _measure(self, noise_multiplier: Fraction, shared: int | None) -> Measure:
        del noise_multiplier, shared
        return Measure(MeasureKind.VALUE_UNITS, self.expression)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountWithBounds(MeasureRequest):
    """A number that each unit adds a whole number to, within bounds.

    Parameters
    ----------
    bounds : tuple of two floats, or None
        Of what one unit adds to a group.
    max_rows : int or None
        The most rows of one unit in one group.
    """

    kind: ClassVar[MeasureKind]
    bounds: Bounds | None = None
    max_rows: int | None = None

    @property
    def range(self) -> Bounds:
        """The bounds that what one unit adds to one group cannot leave."""
        return cut(self.bounds, None if self.max_rows is None else (0, self.max_rows))

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all groups by together, over the sensitivity."""
        if self.all_rows is None:
            return Fraction(groups)
        lower, upper = self.range
        each, reach = self._each(None, (lower, upper)), Fraction(max(abs(lower), abs(upper)))
        whole = Fraction(groups)
        return whole if each is None or not reach else min(whole, Fraction(each) * self.all_rows / reach)

    def _measure(self, noise_multiplier: Fraction, shared: int | None) -> Measure:
        del noise_multiplier, shared
        lower, upper = (int(bound) for bound in self.range)
        return Measure(self.kind, self.expression, lower=lower, upper=upper)

    def _each(self, rows: tuple[Number, Number] | None, bounds: tuple[Number, Number]) -> Number | None:
        del rows
        return max(type(bounds[0])(1), bounds[0])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountRows(_CountWithBounds):
    """The number of rows."""

    kind: ClassVar[MeasureKind] = MeasureKind.ROWS


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountValues(_CountWithBounds):
    """The number of rows with a value."""

    kind: ClassVar[MeasureKind] = MeasureKind.VALUES


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountDistinct(_CountWithBounds):
    """The number of distinct values, of which each unit brings so many."""

    kind: ClassVar[MeasureKind] = MeasureKind.DISTINCT


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountBounds(MeasureRequest):
    """The numbers that a search for bounds counts: of one group, in which a unit moves one number by one."""

    searched: BoundSearch

    @property
    def search(self) -> BoundSearch:
        """The search."""
        return self.searched

    def numbers(self, groups: int) -> int:
        """Return that one unit moves one number."""
        del groups
        return 1

    def moved(self, groups: int) -> Fraction:
        """Return that one unit moves one number by one."""
        del groups
        return Fraction(1)

    def _measure(self, noise_multiplier: Fraction, shared: int | None) -> Measure:
        del noise_multiplier, shared
        return self.searched.counted(self.searched.expression)
