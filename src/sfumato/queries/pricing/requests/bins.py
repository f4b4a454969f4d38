"""Numbers of rows by bin, which quantiles are estimated from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.queries.plan.query import ColumnType, Measure, MeasureKind
from sfumato.queries.pricing.bound_search import BoundSearch
from sfumato.queries.pricing.grid_steps import cut
from sfumato.queries.pricing.quantile_bins import quantile_bins
from sfumato.queries.pricing.requests.measure_request import Bounds, Found, MeasureRequest

__all__ = ["CountBins"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountBins(MeasureRequest):
    """The numbers of rows by bin, for quantiles: a row is in one node of each level of the tree over them.

    Parameters
    ----------
    row_bounds : tuple of two floats
    max_rows : int or None
        The most rows of one unit in one group.
    levels : int
        Of the tree: the numbers that a row moves.
    found : bool
        Whether the bounds are placeholders.
    """

    row_bounds: Bounds
    max_rows: int | None = None
    levels: int
    found: bool = False

    @property
    def searches(self) -> tuple[BoundSearch, ...]:
        """A search among values."""
        return (BoundSearch(self.expression),) if self.found and self.expression is not None else ()

    @property
    def entries(self) -> int:
        """One number of each level."""
        return self.levels

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all entries by together, over the sensitivity."""
        whole = Fraction(groups * self.levels)
        if self.all_rows is None:
            return whole
        return min(whole, Fraction(self.all_rows * self.levels) / Fraction(self._most))

    def with_bounds(self, measure: Measure, found: Found) -> Measure:
        """Return the counts of the bins within the found bounds, of which no tree has more levels."""
        bounds = found[self.searches[0]]
        grid = quantile_bins((bounds.lower, bounds.upper), whole=self.typed(ColumnType.INTEGER))
        if grid.shape.height > self.levels:
            _check.refuse(
                "bounds",
                "make no more levels than were priced",
                (bounds.lower, bounds.upper),
                "price the query again",
            )
        return replace(measure, exponent=grid.exponent, row_lower=grid.lower, row_upper=grid.upper)

    def _measure(self, noise_multiplier: Fraction, shared: int | None) -> Measure:
        del noise_multiplier, shared
        whole = self.typed(ColumnType.INTEGER) and not self.found
        grid = quantile_bins(self.row_bounds, whole=whole)
        l1 = None if self.all_rows is None else self.all_rows * self.levels
        return Measure(
            MeasureKind.LEAVES, self.expression, grid.exponent, 0, self._most, grid.lower, grid.upper, l1=l1
        )

    @property
    def _most(self) -> int:
        """The most rows of one unit in one group."""
        return int(cut(None, None if self.max_rows is None else (0, self.max_rows))[1])
