"""Numbers of rows by bin, which quantiles are estimated from."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, Self, final

from sfumato import _check
from sfumato.mechanisms.base.rational import sqrt_up
from sfumato.mechanisms.statistics.quantile.binned_quantile_interval import BinnedQuantileInterval
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism, BinnedQuantiles
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
from sfumato.queries.pricing.quantile_bins import chosen_by_rank, interval_chosen_by_rank, quantile_bins

__all__ = ["CountBins", "QuantileInterval", "RowsByBin"]

_MOST_BINS: Final = 1 << 16
_RANGE_GRID: Final = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByBin(MeasureRequest):
    """The numbers of rows by bin, for what is chosen by rank or read off a noisy tree.

    A row is in one node of each level of a tree, and counts in every choice, or in one on each level of them.

    Parameters
    ----------
    row_bounds : tuple of two floats
    max_rows : int or None
        The most rows of one unit in one group.
    levels : int
        Of the tree over the bins.
    found : bool
        Whether the bounds are placeholders.
    orders : tuple of float
        Of the quantiles, rising.
    """

    noun: ClassVar[str] = "rows by bin"
    expression: Expression
    row_bounds: Bounds
    max_rows: int | None = None
    levels: int
    found: bool = False
    orders: tuple[float, ...] = ()

    @property
    def entries(self) -> int:
        """One number of each level of the tree."""
        return self.levels

    @property
    def chooses(self) -> bool:
        """Whether few enough quantiles are asked for."""
        return self._chooses(gaussian=False)

    def moved(self, groups: int) -> Fraction:
        """Return what one unit moves all entries by together, over the sensitivity; or how many choices."""
        if self.chooses:
            return Fraction(self._choices(groups))
        whole = Fraction(groups * self.levels)
        if self.all_rows is None:
            return whole
        return min(whole, Fraction(self.all_rows * self.levels) / Fraction(self._max_rows))

    def chooser(self, groups: int, unit: Fraction, *, gaussian: bool) -> BinMechanism | None:
        """Return the exponential mechanism over the bins, where few enough quantiles are asked for."""
        if not self._chooses(gaussian=gaussian):
            return None
        range_ = self._range(unit, self._choices(groups), gaussian=gaussian)
        return self._chooser(range_, self._of_a_unit(groups))

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

    def _measure(self, noise_multiplier: Fraction, grids: Grids) -> Measure:
        del noise_multiplier, grids
        whole = self.typed(ColumnType.INTEGER) and not self.found
        grid = quantile_bins(self.row_bounds, whole=whole)
        column = GridColumn(self.expression, grid.exponent, grid.lower, grid.upper)
        l1 = None if self.all_rows is None else self.all_rows * self.entries
        return Measure(BinCounts(column), grid.exponent, 0, self._max_rows, l1=l1)

    def _range(self, unit: Fraction, many: int, *, gaussian: bool) -> Fraction:
        """Return the range of each of many choices that cost together what noise of a unit does.

        Notes
        -----
        Noise with a ``unit`` u costs 1/u: of epsilon (Laplace), or of mu in Gaussian DP. So n choices have
        the range 1/(u n) each, or 2/(u sqrt(n)): that has the zCDP of the noise, n range**2 / 8, and the
        plan's whole loss is met with whatever both then cost.
        """
        range_ = 2 / (unit * sqrt_up(Fraction(many))) if gaussian else 1 / (unit * many)
        return Fraction(math.floor(range_ * _RANGE_GRID), _RANGE_GRID)

    def _of_a_unit(self, groups: int) -> int:
        """Return in how many groups a unit may have all the rows that it may have in one."""
        return groups if self.all_rows is None else 1

    @property
    def _bins(self) -> int:
        """How many bins there are; before bounds are found, as many as there may be."""
        grid = quantile_bins(self.row_bounds, whole=self.typed(ColumnType.INTEGER) and not self.found)
        return grid.upper - grid.lower + 1

    @abstractmethod
    def _chooses(self, *, gaussian: bool) -> bool:
        """Return whether a choice errs less than a tree."""

    @abstractmethod
    def _choices(self, groups: int) -> int:
        """Return how many choices a unit takes part in."""

    @abstractmethod
    def _chooser(self, range_: Fraction, groups: int) -> BinMechanism:
        """Return the choices of such a range, where a unit may have all its rows in so many groups."""

    @property
    def _max_rows(self) -> int:
        """The most rows of one unit in one group."""
        return int(cut(None, None if self.max_rows is None else (0, self.max_rows))[1])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountBins(RowsByBin):
    """The numbers of rows by bin, for quantiles: few are chosen by rank, many are read off a noisy tree.

    Which of the two follows from the quantiles, the number of bins, and whether the query's noise is Gaussian
    (`sfumato.queries.pricing.quantile_bins.chosen_by_rank`).
    """

    def with_orders(self, orders: Sequence[float]) -> Self:
        """Return the counts for these quantiles."""
        return replace(self, orders=tuple(orders))

    def choice_error(
        self, chooser: BinMechanism, measure: Measure, orders: Sequence[float], *, pending: bool
    ) -> ExpectedError:
        """Return the error in ranks."""
        if not isinstance(chooser, BinnedQuantiles):
            _check.refuse("chooser", "choose quantiles", chooser, "ask for the error of these")
        (column,) = measure.value.columns
        bins = _MOST_BINS if pending else column.upper - column.lower + 1
        return ExpectedError(chooser.rank_stddev(bins), unit="ranks", typical=chooser.typical_stddev(orders))

    def _chooses(self, *, gaussian: bool) -> bool:
        return chosen_by_rank(self._bins, self.orders, gaussian=gaussian)

    def _choices(self, groups: int) -> int:
        """Return how many choices a unit takes part in: one on each level, in each of its groups."""
        return len(self.orders).bit_length() * self._of_a_unit(groups)

    def _chooser(self, range_: Fraction, groups: int) -> BinnedQuantiles:
        return BinnedQuantiles(quantiles=self.orders, epsilon=range_, rows=self._max_rows, groups=groups)

    def meaning(self, function: str, measure: Measure) -> str:
        """Say what quantiles are of."""
        (column,) = measure.value.columns
        step = 2.0**column.exponent
        low, high = (bound * step for bound in (column.lower, column.upper))
        return f"{function} of rows clamped to [{low:g}, {high:g}] in steps of {step:g}"

    def expected_error(self, noise: EstimateNoise) -> ExpectedError:
        """Return the error in ranks; before bounds are found, of the largest tree there may be."""
        (column,) = noise.measure.value.columns
        shape = TreeShape.of(_MOST_BINS if noise.pending else column.upper - column.lower + 1)
        farthest = max(max(order, 1 - order) for order in noise.quantiles)
        weight = shape.branching * (farthest**2 + (shape.height - 1) / 4)
        return ExpectedError(noise.stddev * math.sqrt(weight), unit="ranks")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileInterval(RowsByBin):
    """The numbers of rows by bin, for the intervals of quantiles.

    That of one may be chosen by rank, those of more are read off a tree of their own
    (`sfumato.queries.pricing.quantile_bins.interval_chosen_by_rank`).
    """

    noun: ClassVar[str] = "rows by bin for the intervals"

    def _chooses(self, *, gaussian: bool) -> bool:
        return interval_chosen_by_rank(self._bins, self.orders, gaussian=gaussian)

    def _choices(self, groups: int) -> int:
        """Return how many choices a unit takes part in: one, in each of its groups."""
        return self._of_a_unit(groups)

    def _chooser(self, range_: Fraction, groups: int) -> BinnedQuantileInterval:
        (order,), rows = self.orders, self._max_rows
        return BinnedQuantileInterval(quantile=order, epsilon=range_, rows=rows, groups=groups)
