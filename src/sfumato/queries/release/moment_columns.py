"""Variances, standard deviations, covariances and correlations of an answer, and their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato.queries.release.estimated_column import EstimatedColumn
from sfumato.queries.release.intervals import central_interval, hull
from sfumato.queries.release.percentile_intervals import noise_points, percentile_interval
from sfumato.queries.release.ratio_intervals import NoiseTerm, sum_interval
from sfumato.queries.release.tails.noise_tails import noise_tail
from sfumato.queries.release.variance_estimates import (
    SAMPLED,
    Ends,
    MomentSum,
    PlainSum,
    correlation_ends,
    correlation_line,
    covariance_ends,
    covariance_line,
    possible_covariances,
    possible_variances,
    sample_ends,
    variance_ends,
)

__all__ = ["MEANS_SPARE", "CorrelationColumn", "CovarianceColumn", "DeviationColumn", "VarianceColumn"]

_Ends: TypeAlias = tuple[NDArray[Any], NDArray[Any]]

_GROUPS: Final = 256  # at once: what memory is for
MEANS_SPARE: Final = 1 / 50
"""The part of an error probability that pays for intervals of the means, which limit what is possible."""


@dataclass(frozen=True, slots=True)
class VarianceColumn(EstimatedColumn):
    """A variance: the sums of squares and of values, and the number of rows."""

    def values(self) -> NDArray[Any]:
        """Return the values of the noisy sums."""
        counts = self.counts(self.noisy(self.column.count or 0))
        return self.in_units(self.value(self.sums(None), (counts, counts)))

    def interval(self, level: float) -> _Ends:
        """Return percentiles at the noisy sums; where the count may be small, what its parts allow, too."""
        shown = self.shown(self.column.count or 0, level)
        miss = np.full(len(self.noisy(self.column.total)), 1 - level) if shown is None else shown.miss
        found = self.likely(miss)
        if shown is not None and shown.small.any():
            each = 1 - (1 - shown.level) / (1 + len(self.column.more))
            few = self.counts(shown.low), self.counts(shown.high)
            found = hull(found, self.value_ends(self.sums(each), few), shown.small)
        value = self.value(self.sums(None), (self.counts(self.noisy(self.column.count or 0)),) * 2)
        return self.in_units(np.fmin(found[0], value)), self.in_units(np.fmax(found[1], value))

    def likely(self, miss: NDArray[np.float64]) -> Ends:
        """Return the central percentiles, within the range that is possible with means such as these.

        The means are in their intervals but for a fiftieth of ``miss``, which the percentiles go without.
        """
        ends, possible = self.percentiles(miss * (1 - MEANS_SPARE)), self.possible_values(miss * MEANS_SPARE)
        low, high = (np.clip(end, *possible) for end in ends)
        return low, high

    def possible_values(self, miss: NDArray[np.float64]) -> Ends:
        """Return the range that the sums of values, and the number of rows, leave to the exact values."""
        indices = [self.column.count or 0, *self.sums_of_values]
        counted, *ends = (self.sum_ends(index, miss / len(indices)) for index in indices)
        low, high = (np.maximum(end, self.fewest) for end in counted)
        means = [
            MomentSum(*each, self.record.measures[index].center, self.terms(index))
            for index, each in zip(indices[1:], ends, strict=True)
        ]
        found = self.possible_population(means, (low, high))
        return sample_ends(found, (low, high)) if self.column.kind in SAMPLED else found

    def sum_ends(self, index: int, miss: NDArray[np.float64]) -> Ends:
        """Return intervals of the exact sums of a measure, each of which misses with some probability."""
        noise = NoiseTerm(noise_tail(self.record.measures[index].noise), 1.0, 0.0)
        return sum_interval(self.noisy(index).astype(np.float64), [noise], miss)

    @property
    def sums_of_values(self) -> tuple[int, ...]:
        """The measures that are sums of values of one column."""
        return self.column.more[:1]

    def possible_population(self, means: list[MomentSum], counts: Ends) -> Ends:
        """Return what is possible of what divides by the number of rows."""
        return possible_variances(means[0], counts)

    def percentiles(self, miss: NDArray[np.float64]) -> Ends:
        """Return the central percentiles of the values at the noisy sums, in the steps of their grid."""
        first, *others = (self.column.total, self.column.count or 0, *self.column.more)
        points = noise_points([noise_tail(self.record.measures[index].noise) for index in others])
        parts = []
        for start in range(0, max(1, len(miss)), _GROUPS):
            rows = slice(start, start + _GROUPS)
            total, *noisy = (self.noisy(index)[rows, None].astype(np.float64) for index in (first, *others))
            counts, *more = (one + noise for one, noise in zip(noisy, points, strict=True))
            plain = [
                PlainSum(each, self.record.measures[index].center)
                for each, index in zip((total, *more), (first, *others[1:]), strict=True)
            ]
            tail, lines = noise_tail(self.total.noise), self.line(plain, counts)
            parts.append(percentile_interval(tail, lines, miss[rows], self.range))
        low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
        return low, high

    @property
    def range(self) -> tuple[float, float]:
        """What no value leaves, in the steps of its grid."""
        return 0.0, self.sums(None)[1].max_variance * self.of_sample

    @property
    def of_sample(self) -> float:
        """The most that a sample's value is of that of all rows."""
        return 2.0 if self.column.kind in SAMPLED else 1.0

    def line(self, sums: list[PlainSum], counts: NDArray[np.float64]) -> Ends:
        """Return where values are at most x, as a line in x that the noise of the first sum is below."""
        squares, column = sums
        return covariance_line(squares, column, column, counts, sample=self.column.kind in SAMPLED)

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
        return np.maximum(noisy.astype(np.float64), self.fewest)

    @property
    def fewest(self) -> float:
        """The smallest number of rows that values exist for."""
        return 2.0 if self.column.kind in SAMPLED else 1.0

    def terms(self, index: int) -> tuple[int, int]:
        """Return the range of what a row adds to a measure."""
        measure = self.record.measures[index]
        return measure.row_lower or 0, measure.row_upper or 0

    def sums(self, level: float | None) -> list[MomentSum]:
        """Return the sums of products: intervals of them, or without a level the noisy ones."""
        found = []
        for index in (self.column.total, *self.column.more):
            measure, noisy = self.record.measures[index], self.noisy(index)
            low, high = (noisy, noisy) if level is None else central_interval(measure, noisy, level)
            ends = low.astype(np.float64), high.astype(np.float64)
            found.append(MomentSum(*ends, measure.center, self.terms(index)))
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

    @property
    def sums_of_values(self) -> tuple[int, ...]:
        """The measures that are sums of values of one column."""
        return self.column.more[:2]

    def possible_population(self, means: list[MomentSum], counts: Ends) -> Ends:
        """Return what is possible of what divides by the number of rows."""
        return possible_covariances(means[0], means[1], counts)

    @property
    def range(self) -> tuple[float, float]:
        """What no value leaves: the root of the product of the largest variances."""
        _, one, other, *_ = self.sums(None)
        largest = (one.max_variance * other.max_variance) ** 0.5 * self.of_sample
        return -largest, largest

    def line(self, sums: list[PlainSum], counts: NDArray[np.float64]) -> Ends:
        """Return where values are at most x, as a line in x that the noise of the first sum is below."""
        products, one, other = sums
        return covariance_line(products, one, other, counts, sample=self.column.kind in SAMPLED)


@final
@dataclass(frozen=True, slots=True)
class DeviationColumn(VarianceColumn):
    """A standard deviation: the root of a variance."""

    def value_ends(self, sums: list[MomentSum], counts: Ends) -> Ends:
        """Return the roots of the ends of the variance."""
        low, high = VarianceColumn.value_ends(self, sums, counts)
        return np.sqrt(low), np.sqrt(high)

    def likely(self, miss: NDArray[np.float64]) -> Ends:
        """Return the roots of the ends of the variance."""
        low, high = VarianceColumn.likely(self, miss)
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

    def likely(self, miss: NDArray[np.float64]) -> Ends:
        """Return the central percentiles: means alone do not limit a correlation."""
        return self.percentiles(miss)

    @property
    def range(self) -> tuple[float, float]:
        """What no correlation leaves."""
        return -1.0, 1.0

    def line(self, sums: list[PlainSum], counts: NDArray[np.float64]) -> Ends:
        """Return where values are at most x, as a line in x that the noise of the first sum is below."""
        products, one, other, *squares = sums
        return correlation_line(products, (one, other), (squares[0], squares[1]), counts)

    def in_units(self, steps: NDArray[np.float64]) -> NDArray[Any]:
        """Return the numbers as they are."""
        return steps
