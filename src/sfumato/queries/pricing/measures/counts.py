"""Numbers of units, rows and distinct values, and what a search for bounds counts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from sfumato.queries.plan.measure import AtLeast, DistinctCount, Measure, One, RowCount, UnitValue, ValueCount
from sfumato.queries.plan.query import Expression
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.measures.measure_request import Bounds, Grids, MeasureRequest, Number, cut

__all__ = ["CountBounds", "CountDistinct", "CountRows", "CountUnits", "CountUnitsWithValue", "CountValues"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _OneEach(MeasureRequest):
    """A number that each unit adds one to, or nothing."""

    counts: ClassVar[str] = "units"

    def meaning(self, function: str, measure: Measure) -> str:
        """Say that a unit counts once."""
        del measure
        return f"{function}, at most one row per unit and group (the number of units)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountUnits(_OneEach):
    """The number of units."""

    noun: ClassVar[str] = "units"

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        del noise_multiplier, grids
        return Measure(One())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountUnitsWithValue(_OneEach):
    """The number of units with a value of the expression."""

    noun: ClassVar[str] = "units with a value"
    expression: Expression

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        del noise_multiplier, grids
        return Measure(AtLeast(ValueCount(self.expression), 1))


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

    @property
    @abstractmethod
    def value(self) -> UnitValue:
        """What one unit adds."""

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        del noise_multiplier, grids
        lower, upper = (int(bound) for bound in self.range)
        return Measure(self.value, lower=lower, upper=upper)

    def _each(self, rows: tuple[Number, Number] | None, bounds: tuple[Number, Number]) -> Number | None:
        del rows
        return max(type(bounds[0])(1), bounds[0])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountRows(_CountWithBounds):
    """The number of rows."""

    noun: ClassVar[str] = "rows"

    @property
    def value(self) -> UnitValue:
        """A unit's rows."""
        return RowCount()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountValues(_CountWithBounds):
    """The number of rows with a value."""

    noun: ClassVar[str] = "values"
    expression: Expression

    @property
    def value(self) -> UnitValue:
        """Its rows with a value."""
        return ValueCount(self.expression)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountDistinct(_CountWithBounds):
    """The number of distinct values, of which each unit brings so many."""

    noun: ClassVar[str] = "distinct values"
    expression: Expression

    @property
    def value(self) -> UnitValue:
        """Its distinct values."""
        return DistinctCount(self.expression)

    def meaning(self, function: str, measure: Measure) -> str:
        """Say how many values one unit may bring."""
        del function
        many = f"{measure.upper} of them" if measure.upper > 1 else "one of them"
        return f"the number of distinct values, one unit brings at most {many} to a group"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountBounds(MeasureRequest):
    """The numbers that a search for bounds counts: of one group, in which a unit moves one number by one."""

    noun: ClassVar[str] = "units"
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

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        del noise_multiplier, grids
        return self.searched.counted(self.searched.expression)
