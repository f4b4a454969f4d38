"""One measure that a query needs, before its grid is chosen: what every kind of measure can be asked.

A new measure is a class in this folder: its bounds in the data's units, the power-of-two grid that it is put
on, how far one unit moves it, and which bounds are still to be found. An aggregate names its measures
(`sfumato.queries.pricing.measures`), and noise is calibrated for all of them together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

from sfumato.queries.plan.query import ColumnType, Expression, FoundBounds, Measure
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.grid_steps import Number
from sfumato.queries.pricing.moment_grids import Moment

__all__ = ["PLACEHOLDER_BOUNDS", "Bounds", "Found", "MeasureRequest"]

PLACEHOLDER_BOUNDS: Final = (-1.0, 1.0)
"""The bounds that a measure is priced within whose own are to be found: noise is in their units."""

Bounds: TypeAlias = tuple[float, float]
Found: TypeAlias = Mapping[BoundSearch, FoundBounds]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest(ABC):
    """One measure that a query needs, with its bounds in the data's units.

    Parameters
    ----------
    expression : Expression or None
        None where rows or units are counted.
    all_rows : int or None
        The rows that a unit may have in all groups together, where these are bounded instead of its groups.
    """

    expression: Expression | None = None
    all_rows: int | None = None

    @property
    def found(self) -> bool:
        """Whether its bounds are placeholders for those that a search finds."""
        return False

    @property
    def searches(self) -> tuple[BoundSearch, ...]:
        """What finds the bounds: one search for each column without any."""
        return ()

    @property
    def search(self) -> BoundSearch | None:
        """The search that this is the measure of, if it is of one."""
        return None

    @property
    def moment(self) -> Moment | None:
        """The sum of values or of products that this is, if it is one: such sums share grids."""
        return None

    @property
    def entries(self) -> int:
        """The numbers of a group that one unit moves, each by at most the sensitivity."""
        return 1

    def numbers(self, groups: int) -> int:
        """Return how many numbers of so many groups one unit moves."""
        return groups * self.entries

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all entries by together, over the sensitivity.

        That is the number of entries, or less where its rows in all groups together are bounded.
        """
        return Fraction(groups * self.entries)

    def on_grid(self, noise_multiplier: Fraction, *, shared: int | None = None) -> Measure:
        """Choose the power-of-two grid, or take the ``shared`` one, and express the bounds in grid steps."""
        measure = self._measure(noise_multiplier, shared)
        return measure if self.all_rows is None else self._within(measure, self.all_rows)

    def with_bounds(self, measure: Measure, found: Found) -> Measure:
        """Return the measure with the bounds that were found in the place of the placeholders."""
        del found
        return measure

    def typed(self, type_: ColumnType) -> bool:
        """Return whether the expression has that type."""
        return self.expression is not None and self.expression.type is type_

    @abstractmethod
    def _measure(self, noise_multiplier: Fraction, shared: int | None) -> Measure:
        """Return the measure on its grid."""

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

    def _each(self, rows: tuple[Number, Number] | None, bounds: tuple[Number, Number]) -> Number | None:
        """Return a number so that n rows add at most n times it to all groups, if there is one."""
        del rows, bounds
        return None
