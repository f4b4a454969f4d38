"""Estimates: the columns of an answer, and their intervals, from the noisy integers of its measures.

Each aggregate has a class here, in `ESTIMATED_COLUMNS`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.mechanisms.statistics.quantile.tree_estimates import LEVELS
from sfumato.queries.plan.query import AggregateKind
from sfumato.queries.release.intervals import central_interval, mean_interval, thresholded_interval
from sfumato.queries.release.record import NoisyMeasure, ReleasedColumn, ReleaseRecord
from sfumato.queries.release.variance_estimates import (
    SAMPLED,
    Ends,
    MomentSum,
    correlation_ends,
    covariance_ends,
    sample_ends,
    variance_ends,
)

__all__ = ["as_arrow_array", "interval", "quantile_ends", "reports", "values"]

_Ends: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class EstimatedColumn(ABC):
    """A column of an answer, estimated from a record's noisy integers.

    Parameters
    ----------
    record : ReleaseRecord
    column : ReleasedColumn
    """

    record: ReleaseRecord
    column: ReleasedColumn

    @abstractmethod
    def values(self) -> NDArray[Any]:
        """Return the values, one for each group of the record."""

    @abstractmethod
    def interval(self, level: float) -> _Ends:
        """Return the ends of intervals around the values, with coverage at least ``level`` each."""

    @property
    def total(self) -> NoisyMeasure:
        """The first measure."""
        return self.record.measures[self.column.total]

    def noisy(self, index: int) -> NDArray[np.int64]:
        """Return the noisy integers of a measure."""
        noisy: NDArray[np.int64] = self.record.table[f"m{index}"].to_numpy()
        return noisy

    def ends(self, index: int, level: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return an interval of the exact value of a measure, given that its group is shown."""
        record, measure, noisy = self.record, self.record.measures[index], self.noisy(index)
        if index == 0 and record.threshold is not None:
            minimum = record.minimum_units
            return thresholded_interval(measure.noise, noisy, record.threshold, level, minimum=minimum)
        return central_interval(measure, noisy, level)


@dataclass(frozen=True, slots=True)
class SumColumn(EstimatedColumn):
    """A sum: one measure."""

    def values(self) -> NDArray[Any]:
        """Return the noisy sums, in the unit of the values."""
        return _scaled(self.noisy(self.column.total), self.total.exponent, real=self.total.found)

    def interval(self, level: float) -> _Ends:
        """Return the intervals of the measure."""
        low, high = self.bounds(level)
        exponent, real = self.total.exponent, self.total.found
        return _scaled(low, exponent, real=real), _scaled(high, exponent, real=real)

    def bounds(self, level: float) -> _Ends:
        """Return the ends in steps of the grid."""
        return self.ends(self.column.total, level)


@final
@dataclass(frozen=True, slots=True)
class CountColumn(SumColumn):
    """A count: one measure, which is not negative."""

    def bounds(self, level: float) -> _Ends:
        """Return the ends, from zero on."""
        low, high = self.ends(self.column.total, level)
        return np.maximum(0, low), np.maximum(0, high)


@final
@dataclass(frozen=True, slots=True)
class MeanColumn(EstimatedColumn):
    """A mean: a sum of centred means over the number of units with a value."""

    def values(self) -> NDArray[Any]:
        """Return the quotients, within the bounds."""
        total, counts = self.total, np.maximum(1, self.noisy(self.column.count or 0))
        steps = np.clip(total.center + self.noisy(self.column.total) / counts, total.lower, total.upper)
        return _scaled(steps, total.exponent)

    def interval(self, level: float) -> _Ends:
        """Return intervals from those of sum and number that hold at once, by a union bound."""
        each, total = (1 + level) / 2, self.total
        ends = self.ends(self.column.total, each), self.ends(self.column.count or 0, each)
        low, high = mean_interval(total, *ends)
        return _scaled(low, total.exponent, real=total.found), _scaled(high, total.exponent, real=total.found)


@dataclass(frozen=True, slots=True)
class QuantilesColumn(EstimatedColumn):
    """Quantiles: bins of a noisy tree, and the ends of their intervals, which the record holds."""

    def values(self) -> NDArray[Any]:
        """Return the quantiles, a row of them for each group."""
        return np.asarray(self.chosen("m", 1)[..., 0])

    def interval(self, level: float) -> _Ends:
        """Return the intervals of the smallest level of the record that is high enough."""
        lower, upper = (self.chosen(letter, len(LEVELS)) for letter in "lu")
        step = 2.0**self.total.exponent
        bounds = float(self.total.row_lower or 0) * step, float(self.total.row_upper or 0) * step
        return quantile_ends(lower, upper, bounds, level)

    def chosen(self, letter: str, each: int) -> NDArray[np.float64]:
        """Return the quantiles of this column, or ends: a row of ``each`` of them for each group."""
        lists = self.record.table[f"{letter}{self.column.total}"].combine_chunks()
        many = lists.type.list_size // each
        steps = lists.flatten().to_numpy().reshape(len(lists), many, each)[:, self.column.quantile_indices]
        return np.asarray(steps, dtype=np.float64) * float(Fraction(2) ** self.total.exponent)


@final
@dataclass(frozen=True, slots=True)
class QuantileColumn(QuantilesColumn):
    """A single quantile, which has no axis of its own."""

    def chosen(self, letter: str, each: int) -> NDArray[np.float64]:
        """Return the one quantile."""
        return QuantilesColumn.chosen(self, letter, each)[:, 0]


@dataclass(frozen=True, slots=True)
class VarianceColumn(EstimatedColumn):
    """A variance: the sums of squares and of values, and the number of rows."""

    def values(self) -> NDArray[Any]:
        """Return the values of the noisy sums."""
        counts = self.counts(self.noisy(self.column.count or 0))
        return self.in_units(self.value(self.sums(None), (counts, counts)))

    def interval(self, level: float) -> _Ends:
        """Return intervals from those of all sums and the number that hold at once, by a union bound."""
        each = 1 - (1 - level) / (2 + len(self.column.more))
        minimum, maximum = self.ends(self.column.count or 0, each)
        low, high = self.value_ends(self.sums(each), (self.counts(minimum), self.counts(maximum)))
        return self.in_units(low), self.in_units(high)

    def value(self, sums: list[MomentSum], counts: Ends) -> NDArray[np.float64]:
        """Return the values in the steps of their grid."""
        return self.value_ends(sums, counts)[0]

    def value_ends(self, sums: list[MomentSum], counts: Ends) -> Ends:
        """Return the ends of the values, of a sample if these are."""
        ends = self.population(sums, counts)
        return sample_ends(ends, counts) if self.column.kind in SAMPLED else ends

    def population(self, sums: list[MomentSum], counts: Ends) -> Ends:
        """Return the ends of what divides by the number of rows."""
        return variance_ends(sums[0], sums[1], counts)

    def counts(self, noisy: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return numbers of rows that the values exist for."""
        return np.maximum(noisy.astype(np.float64), 2.0 if self.column.kind in SAMPLED else 1.0)

    def sums(self, level: float | None) -> list[MomentSum]:
        """Return the sums of products: intervals of them, or without a level the noisy ones."""
        found = []
        for index in (self.column.total, *self.column.more):
            measure, noisy = self.record.measures[index], self.noisy(index)
            low, high = (noisy, noisy) if level is None else central_interval(measure, noisy, level)
            terms = measure.row_lower or 0, measure.row_upper or 0
            found.append(MomentSum(low.astype(np.float64), high.astype(np.float64), measure.center, terms))
        return found

    def in_units(self, steps: NDArray[np.float64]) -> NDArray[Any]:
        """Return what is in steps of the grid of products in the unit of the answer."""
        return steps * 2.0**self.total.exponent


@dataclass(frozen=True, slots=True)
class CovarianceColumn(VarianceColumn):
    """A covariance: the sums of products and of each column, and the number of rows."""

    def population(self, sums: list[MomentSum], counts: Ends) -> Ends:
        """Return the ends of what divides by the number of rows."""
        return covariance_ends(sums, counts)


@final
@dataclass(frozen=True, slots=True)
class DeviationColumn(VarianceColumn):
    """A standard deviation: the root of a variance."""

    def value_ends(self, sums: list[MomentSum], counts: Ends) -> Ends:
        """Return the roots of the ends of the variance."""
        low, high = VarianceColumn.value_ends(self, sums, counts)
        return np.sqrt(low), np.sqrt(high)

    def in_units(self, steps: NDArray[np.float64]) -> NDArray[Any]:
        """Return steps of the root's grid in the unit of the values."""
        return steps * 2.0 ** (self.total.exponent // 2)


@final
@dataclass(frozen=True, slots=True)
class CorrelationColumn(CovarianceColumn):
    """A correlation, which has no unit: a covariance, and the squares of each column."""

    def value(self, sums: list[MomentSum], counts: Ends) -> NDArray[np.float64]:
        """Return the values: NaN where there is no variance to divide by."""
        low, high = self.value_ends(sums, counts)
        (first, _), (second, _) = self.variances(sums, counts)
        return np.where((first > 0) & (second > 0), (low + high) / 2, np.nan)

    def value_ends(self, sums: list[MomentSum], counts: Ends) -> Ends:
        """Return the ends of the correlation."""
        return correlation_ends(self.population(sums, counts), *self.variances(sums, counts))

    def variances(self, sums: list[MomentSum], counts: Ends) -> tuple[Ends, Ends]:
        """Return the ends of either column's variance."""
        return variance_ends(sums[3], sums[1], counts), variance_ends(sums[4], sums[2], counts)

    def in_units(self, steps: NDArray[np.float64]) -> NDArray[Any]:
        """Return the numbers as they are."""
        return steps


ESTIMATED_COLUMNS: Final[dict[AggregateKind, type[EstimatedColumn]]] = {
    AggregateKind.AVG: MeanColumn,
    AggregateKind.CORR: CorrelationColumn,
    AggregateKind.COUNT_DISTINCT: CountColumn,
    AggregateKind.COUNT_ROWS: CountColumn,
    AggregateKind.COUNT_UNITS: CountColumn,
    AggregateKind.COUNT_VALUES: CountColumn,
    AggregateKind.COVAR_POP: CovarianceColumn,
    AggregateKind.COVAR_SAMP: CovarianceColumn,
    AggregateKind.QUANTILE: QuantileColumn,
    AggregateKind.QUANTILES: QuantilesColumn,
    AggregateKind.STDDEV_POP: DeviationColumn,
    AggregateKind.STDDEV_SAMP: DeviationColumn,
    AggregateKind.SUM: SumColumn,
    AggregateKind.VAR_POP: VarianceColumn,
    AggregateKind.VAR_SAMP: VarianceColumn,
}
"""The class of each aggregate."""


def values(record: ReleaseRecord, column: ReleasedColumn) -> NDArray[Any]:
    """Return a column's values, one for each group of the record."""
    return ESTIMATED_COLUMNS[column.kind](record, column).values()


def interval(record: ReleaseRecord, column: ReleasedColumn, level: float) -> _Ends:
    """Return the ends of intervals around a column's values, with coverage at least ``level`` each.

    They are for the bounded answer. What is estimated from several noisy integers has intervals of these that
    hold all at once, by a union bound.
    """
    return ESTIMATED_COLUMNS[column.kind](record, column).interval(level)


def reports(record: ReleaseRecord, column: ReleasedColumn, level: float) -> list[str]:
    """Return a column's values with their intervals as JSON, in the shape that ZetaSQL reports them.

    There is no report on bounding: counts of rows beyond the bounds would cost privacy of their own.
    """
    found = values(record, column), *interval(record, column, level)
    return [
        json.dumps(
            {
                "result": {
                    "value": value,
                    "noise_confidence_interval": {
                        "lower_bound": lower,
                        "upper_bound": upper,
                        "confidence_level": level,
                    },
                }
            }
        )
        for value, lower, upper in zip(*(as_arrow_array(each).to_pylist() for each in found), strict=True)
    ]


def as_arrow_array(column: NDArray[Any]) -> pa.Array:
    """Return a column as Arrow; what has no value, NaN here, is NULL."""
    return pa.array(column, from_pandas=True)


def _scaled(steps: NDArray[Any], exponent: int, *, real: bool = False) -> NDArray[Any]:
    """Return steps in the unit of the values: whole numbers where a step is one, unless ``real``."""
    if exponent == 0 and not real:
        return steps
    return np.asarray(steps, dtype=np.float64) * float(Fraction(2) ** exponent)


def quantile_ends(
    lower: NDArray[Any], upper: NDArray[Any], bounds: tuple[float, float], level: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the ends of intervals: those of the lowest level that is high enough, or else the bounds.

    Parameters
    ----------
    lower, upper : arrays whose last axis is that of the levels
    bounds : tuple of two numbers
    level : float
    """
    index = next((index for index, found in enumerate(LEVELS) if found >= level), None)
    if index is None:
        return np.full_like(lower[..., 0], bounds[0]), np.full_like(upper[..., 0], bounds[1])
    return lower[..., index], upper[..., index]
