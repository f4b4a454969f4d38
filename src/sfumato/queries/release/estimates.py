"""Estimates: the columns of an answer, and their intervals, from the noisy integers of its measures.

Each aggregate has a class here, in `ESTIMATED_COLUMNS`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.mechanisms.statistics.quantile.binned_quantile_interval import INTERVAL_LEVEL
from sfumato.mechanisms.statistics.quantile.tree_estimates import LEVELS
from sfumato.queries.plan.query import AggregateKind
from sfumato.queries.pricing.calibration import NoiseDistribution
from sfumato.queries.release.estimated_column import EstimatedColumn
from sfumato.queries.release.intervals import ShownCounts, mean_interval
from sfumato.queries.release.moment_columns import (
    CorrelationColumn,
    CovarianceColumn,
    DeviationColumn,
    VarianceColumn,
)
from sfumato.queries.release.record import ReleasedColumn, ReleaseRecord

__all__ = [
    "as_arrow_array",
    "clamped",
    "interval",
    "possible",
    "quantile_ends",
    "reports",
    "shown_of",
    "values",
]

_Ends: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


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

    @property
    def possible(self) -> tuple[float, float]:
        """At least zero, where no unit adds less; at most zero, where none adds more."""
        lower, upper = self.total.lower, self.total.upper
        return 0.0 if lower >= 0 else -math.inf, 0.0 if upper <= 0 else math.inf


@final
@dataclass(frozen=True, slots=True)
class CountColumn(SumColumn):
    """A count: one measure, which is not negative where no unit adds less than nothing."""

    def bounds(self, level: float) -> _Ends:
        """Return the ends, of what is possible."""
        low, high = (clamped(end, self.possible) for end in self.ends(self.column.total, level))
        return low, high


@final
@dataclass(frozen=True, slots=True)
class MeanColumn(EstimatedColumn):
    """A mean: a sum of centred means over the number of units with a value."""

    def values(self) -> NDArray[Any]:
        """Return the quotients, within the bounds."""
        return _scaled(self.steps(), self.total.exponent)

    def interval(self, level: float) -> _Ends:
        """Return Fieller's intervals of the quotient."""
        total, index = self.total, self.column.count or 0
        noisy, shown = (self.noisy(self.column.total), self.noisy(index)), self.shown(index, level)
        low, high = mean_interval(total, self.record.measures[index], noisy, level, shown)
        # a count of none or less is taken for one in the value, but not in the test
        steps = self.steps()
        low, high = np.minimum(low, steps), np.maximum(high, steps)
        return _scaled(low, total.exponent, real=total.found), _scaled(high, total.exponent, real=total.found)

    def steps(self) -> NDArray[np.float64]:
        """Return the values in steps of the grid."""
        total, counts = self.total, np.maximum(1, self.noisy(self.column.count or 0))
        return np.clip(total.center + self.noisy(self.column.total) / counts, total.lower, total.upper)


@dataclass(frozen=True, slots=True)
class QuantilesColumn(EstimatedColumn):
    """Quantiles: bins that were chosen, or read off a noisy tree with the ends of intervals for them."""

    def values(self) -> NDArray[Any]:
        """Return the quantiles, a row of them for each group."""
        return np.asarray(self.chosen("m", 1)[..., 0])

    def interval(self, level: float) -> _Ends:
        """Return the intervals of the smallest level of the record that is high enough.

        What was chosen has the bounds of its values: a choice states by how many ranks it may be off, and no
        more follows for values whatever the data. Ends that were paid for were chosen, and hold up to their
        own level, or are of a tree; quantiles outside of them widen them.
        """
        step, found = 2.0**self.total.exponent, self.values()
        bounds = float(self.total.row_lower or 0) * step, float(self.total.row_upper or 0) * step
        paid = bool(self.column.more)
        measure = self.record.measures[self.column.more[0]] if paid else self.total
        if measure.distribution is not NoiseDistribution.EXPONENTIAL:
            lower, upper = (self.chosen(letter, len(LEVELS), paid) for letter in "lu")
            ends = quantile_ends(lower, upper, bounds, level)
        elif paid and level <= INTERVAL_LEVEL:
            pair = self.chosen("m", 2, paid)
            ends = pair[..., 0], pair[..., 1]
        else:
            ends = np.full_like(found, bounds[0]), np.full_like(found, bounds[1])
        return np.minimum(ends[0], found), np.maximum(ends[1], found)

    def chosen(self, letter: str, each: int, paid: bool = False) -> NDArray[np.float64]:
        """Return the quantiles of this column, or ends: a row of ``each`` of them for each group.

        Ends that are ``paid`` for are of a measure of their own, which is of no quantiles but this column's.
        """
        index = self.column.more[0] if paid else self.column.total
        lists = self.record.table[f"{letter}{index}"].combine_chunks()
        many = lists.type.list_size // each
        steps = lists.flatten().to_numpy().reshape(len(lists), many, each)
        steps = steps if paid else steps[:, self.column.quantile_indices]
        return np.asarray(steps, dtype=np.float64) * float(Fraction(2) ** self.total.exponent)


@final
@dataclass(frozen=True, slots=True)
class QuantileColumn(QuantilesColumn):
    """A single quantile, which has no axis of its own."""

    def chosen(self, letter: str, each: int, paid: bool = False) -> NDArray[np.float64]:
        """Return the one quantile."""
        return QuantilesColumn.chosen(self, letter, each, paid)[:, 0]


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


def values(record: ReleaseRecord, column: ReleasedColumn, *, clamp: bool = False) -> NDArray[Any]:
    """Return a column's values, one for each group of the record; if asked for, clamped to the possible."""
    found = ESTIMATED_COLUMNS[column.kind](record, column)
    return clamped(found.values(), found.possible) if clamp else found.values()


def interval(record: ReleaseRecord, column: ReleasedColumn, level: float, *, clamp: bool = False) -> _Ends:
    """Return the ends of intervals around a column's values, with coverage at least ``level`` each.

    They are for the bounded answer. That of a variance, covariance or correlation is asymptotic
    (`percentile_interval`). Clamped, they hold it as often.
    """
    found = ESTIMATED_COLUMNS[column.kind](record, column)
    low, high = found.interval(level)
    return (clamped(low, found.possible), clamped(high, found.possible)) if clamp else (low, high)


def possible(record: ReleaseRecord, column: ReleasedColumn) -> tuple[float, float]:
    """Return what the exact values of a column cannot leave, by public parameters."""
    return ESTIMATED_COLUMNS[column.kind](record, column).possible


def clamped(found: NDArray[Any], bounds: tuple[float, float]) -> NDArray[Any]:
    """Return numbers within bounds of zero or infinity; whole numbers stay whole."""
    lower, upper = bounds
    found = np.maximum(found, 0) if lower == 0 else found
    return np.minimum(found, 0) if upper == 0 else found


def shown_of(record: ReleaseRecord, column: ReleasedColumn, level: float) -> ShownCounts | None:
    """Return what is known of a column's total by being shown; None where no threshold was applied to it."""
    return ESTIMATED_COLUMNS[column.kind](record, column).shown(column.total, level)


def reports(record: ReleaseRecord, column: ReleasedColumn, level: float, *, clamp: bool = False) -> list[str]:
    """Return a column's values with their intervals as JSON, in the shape that ZetaSQL reports them.

    There is no report on bounding: counts of rows beyond the bounds would cost privacy of their own.
    """
    found = values(record, column, clamp=clamp), *interval(record, column, level, clamp=clamp)
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
