"""Numbers of rows by bin, which quantiles are estimated from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, final

from sfumato import _check
from sfumato.mechanisms.statistics.quantile.count_tree import TreeShape
from sfumato.queries.plan.measure import BinCounts, GridColumn, Measure
from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.pricing.measures.measure_request import (
    Bounds,
    EstimateNoise,
    ExpectedError,
    Found,
    Grids,
    MeasureRequest,
    cut,
)
from sfumato.queries.pricing.quantile_bins import quantile_bins

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

    noun: ClassVar[str] = "rows by bin"
    expression: Expression
    row_bounds: Bounds
    max_rows: int | None = None
    levels: int
    found: bool = False

    @property
    def entries(self) -> int:
        """One number of each level."""
        return self.levels

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all entries by together, over the sensitivity."""
        whole = Fraction(groups * self.levels)
        if self.all_rows is None:
            return whole
        return min(whole, Fraction(self.all_rows * self.levels) / Fraction(self._max_rows))

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
        column = GridColumn(self.expression, grid.exponent, grid.lower, grid.upper)
        return replace(measure, value=BinCounts(column), exponent=grid.exponent)

    def published(self, measure: Measure) -> tuple[int, int | None, int | None]:
        """Return the range of the bins."""
        (column,) = measure.value.columns
        return 0, column.lower, column.upper

    def noise_exponent(self, measure: Measure) -> int:
        """Return that noise is on counts."""
        del measure
        return 0

    def meaning(self, function: str, measure: Measure) -> str:
        """Say what tree quantiles are read off."""
        (column,) = measure.value.columns
        step = 2.0**column.exponent
        low, high = (bound * step for bound in (column.lower, column.upper))
        height = TreeShape.of(column.upper - column.lower + 1).height
        return (
            f"{function}, read off a tree of {height} levels over rows clamped to [{low:g}, {high:g}] in "
            f"steps of {step:g}"
        )

    def expected_error(self, noise: EstimateNoise) -> ExpectedError:
        """Return the error in ranks; before bounds are found, of the largest tree there may be."""
        (column,) = noise.measure.value.columns
        shape = TreeShape.of(1 << 16 if noise.pending else column.upper - column.lower + 1)
        farthest = max(max(order, 1 - order) for order in noise.quantiles)
        weight = shape.branching * (farthest**2 + (shape.height - 1) / 4)
        return ExpectedError(noise.stddev * math.sqrt(weight), unit="ranks")

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        del noise_multiplier, grids
        whole = self.typed(ColumnType.INTEGER) and not self.found
        grid = quantile_bins(self.row_bounds, whole=whole)
        column = GridColumn(self.expression, grid.exponent, grid.lower, grid.upper)
        l1 = None if self.all_rows is None else self.all_rows * self.levels
        return Measure(BinCounts(column), grid.exponent, 0, self._max_rows, l1=l1)

    @property
    def _max_rows(self) -> int:
        """The most rows of one unit in one group."""
        return int(cut(None, None if self.max_rows is None else (0, self.max_rows))[1])
