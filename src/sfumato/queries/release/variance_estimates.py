"""Variances, covariances and correlations as intervals, from noisy sums of products.

The noisy sums are in grid steps, with half the range of a square subtracted for each row (see
`sfumato.queries.pricing.measures.products`); ``terms`` are the ranges that a single row's products lie in.
Each interval is what interval arithmetic gives: it holds the exact value wherever all sums and the count lie
in their own, and is wider than it need be, never narrower. Where sums and count are numbers, with equal ends,
so is the result, but that of a correlation.

Notes
-----
Guarantee: post-processing. A variance lies from 0 to a quarter of the squared range of its bounds (times
n / (n - 1) for a sample), a correlation from -1 to 1, whatever the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.queries.plan.query import AggregateKind

__all__ = [
    "SAMPLED",
    "Ends",
    "MomentSum",
    "PlainSum",
    "correlation_ends",
    "correlation_line",
    "covariance_ends",
    "covariance_line",
    "possible_covariances",
    "possible_variances",
    "sample_ends",
    "variance_ends",
]

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[Floats, Floats]

SAMPLED = frozenset({AggregateKind.VAR_SAMP, AggregateKind.STDDEV_SAMP, AggregateKind.COVAR_SAMP})
"""What divides by the number of rows less one."""

_ROUNDED = 1e-15
"""More than what floats lose of a covariance of columns within (0, 1)."""


@dataclass(frozen=True, slots=True)
class MomentSum:
    """A noisy sum: smallest and largest total in grid steps, what was subtracted per row, a term's range.

    A value that is no interval has equal ends.
    """

    low: Floats
    high: Floats
    offset: int
    terms: tuple[int, int]

    def mean(self, counts: Ends) -> Ends:
        """Return the smallest and the largest mean of the terms, which they cannot leave."""
        minimum, maximum = counts
        low = np.where(self.low < 0, self.low / minimum, self.low / maximum) + self.offset
        high = np.where(self.high < 0, self.high / maximum, self.high / minimum) + self.offset
        return np.clip(low, *self.terms), np.clip(high, *self.terms)

    @property
    def max_variance(self) -> float:
        """The largest variance of terms in their range: a quarter of its square (Popoviciu)."""
        return ((self.terms[1] - self.terms[0]) / 2) ** 2


@dataclass(frozen=True, slots=True)
class PlainSum:
    """A sum of terms, from each of which ``offset`` was subtracted; its mean may leave their range."""

    total: Floats
    offset: int

    def mean(self, counts: Floats) -> Floats:
        """Return the mean of the terms."""
        return self.total / counts + self.offset


def covariance_line(
    products: PlainSum, first: PlainSum, second: PlainSum, counts: Floats, *, sample: bool
) -> Ends:
    """Return slopes and heights: a covariance is at most x if Z <= slope x + height, Z added to products.

    A variance is a covariance of a column with itself. Without a row, or for a sample with fewer than two, it
    is undefined: NaN.
    """
    known = counts >= (2 if sample else 1)
    rows = np.where(known, counts, np.nan)
    slope = rows - 1 if sample else rows
    return slope, (first.mean(rows) * second.mean(rows) - products.offset) * rows - products.total


def correlation_line(
    products: PlainSum,
    columns: tuple[PlainSum, PlainSum],
    squares: tuple[PlainSum, PlainSum],
    counts: Floats,
) -> Ends:
    """Return slopes and heights as for a covariance; NaN where a variance is not positive."""
    slope, height = covariance_line(products, *columns, counts, sample=False)
    variances = [
        square.mean(slope) - column.mean(slope) ** 2 for square, column in zip(squares, columns, strict=True)
    ]
    positive = (variances[0] > 0) & (variances[1] > 0)
    scale = np.sqrt(np.where(positive, variances[0] * variances[1], np.nan))
    return slope * scale, height


def sample_ends(ends: Ends, counts: Ends) -> Ends:
    """Return the ends of what divides by the number of rows less one, from those of what divides by it."""
    small, large = (count / (count - 1) for count in reversed(counts))
    return (
        np.where(ends[0] < 0, ends[0] * large, ends[0] * small),
        np.where(ends[1] < 0, ends[1] * small, ends[1] * large),
    )


def variance_ends(squares: MomentSum, values: MomentSum, counts: Ends) -> Ends:
    """Return the ends of a variance: from 0 to a quarter of the squared range of its bounds."""
    (low, high), (left, right) = squares.mean(counts), values.mean(counts)
    far = np.maximum(left**2, right**2)
    near = np.where((left <= 0) & (right >= 0), 0.0, np.minimum(left**2, right**2))
    largest = values.max_variance
    return np.clip(low - far, 0, largest), np.clip(high - near, 0, largest)


def covariance_ends(sums: Sequence[MomentSum], counts: Ends) -> Ends:
    """Return the ends of a covariance: of the sums of products, and of each column."""
    low, high = sums[0].mean(counts)
    corners = [one * other for one in sums[1].mean(counts) for other in sums[2].mean(counts)]
    largest = (sums[1].max_variance * sums[2].max_variance) ** 0.5
    return (
        np.clip(low - np.max(corners, axis=0), -largest, largest),
        np.clip(high - np.min(corners, axis=0), -largest, largest),
    )


def correlation_ends(together: Ends, first: Ends, second: Ends) -> Ends:
    """Return the ends of a correlation, from those of the covariance and of either variance."""
    small, large = (np.sqrt(one * other) for one, other in zip(first, second, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        near, far = ([end / scale for end in together] for scale in (small, large))
    low = np.where(together[0] < 0, near[0], far[0])
    high = np.where(together[1] < 0, far[1], near[1])
    # without a variance to divide by, nothing is known
    return (
        np.where(small > 0, np.clip(low, -1, 1), -1.0),
        np.where(small > 0, np.clip(high, -1, 1), 1.0),
    )


def possible_variances(values: MomentSum, counts: Ends) -> Ends:
    """Return the range of the variances that columns with these means may have.

    Terms x within (0, 1) whose mean is p have a variance of at most p (1 - p), for no x**2 is above x (Bhatia
    and Davis, "A better bound on the variance", Amer. Math. Monthly 107, 2000).
    """
    means = _shares(values, counts)
    largest = _largest_product(means, means) * 4 * values.max_variance
    return np.zeros_like(largest), largest


def possible_covariances(first: MomentSum, second: MomentSum, counts: Ends) -> Ends:
    """Return the range of the covariances that columns with these means may have.

    Terms x and y within (0, 1) whose means are p and q have a mean product of at most min(p, q), for no x y
    is above either, so a covariance of at most min(p (1 - q), q (1 - p)); and with 1 - y for y, one of at
    least -min(p q, (1 - p) (1 - q)): the bounds of Frechet and Hoeffding.
    """
    one, (low, high) = _shares(first, counts), _shares(second, counts)
    scale = 4 * (first.max_variance * second.max_variance) ** 0.5
    return -scale * _largest_product(one, (1 - high, 1 - low)), scale * _largest_product(one, (low, high))


def _shares(values: MomentSum, counts: Ends) -> Ends:
    """Return the smallest and the largest mean, as shares of the way from the lowest term to the highest."""
    smallest, largest = values.terms
    low, high = ((mean - smallest) / max(1, largest - smallest) for mean in values.mean(counts))
    return low, high


def _largest_product(one: Ends, other: Ends) -> Floats:
    """Return the largest min(p (1 - q), q (1 - p)), p and q being from their intervals.

    For a given q it grows with p up to q, and falls beyond it. So where the intervals overlap it is largest
    for p = q, as near to a half as they allow, and else at the ends that face one another.
    """
    low, high = np.maximum(one[0], other[0]), np.minimum(one[1], other[1])
    equal = np.clip(0.5, low, np.maximum(low, high))
    return np.asarray(np.where(low <= high, equal * (1 - equal), high * (1 - low)) + _ROUNDED)
