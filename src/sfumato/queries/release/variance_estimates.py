"""Variances, covariances and correlations, and their intervals, read off noisy sums of products.

The noisy sums are in grid steps, with half the range of a square subtracted for each row (see
`sfumato.queries.pricing.measures.products`); ``terms`` are the ranges that a single row's products lie in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.queries.plan.query import AggregateKind

__all__ = ["SAMPLED", "MomentSum", "moment_ends", "moment_values"]

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[Floats, Floats]

_STDDEV = (AggregateKind.STDDEV_POP, AggregateKind.STDDEV_SAMP)
_VARIANCES = (AggregateKind.VAR_POP, AggregateKind.VAR_SAMP, *_STDDEV)


SAMPLED = frozenset({AggregateKind.VAR_SAMP, AggregateKind.STDDEV_SAMP, AggregateKind.COVAR_SAMP})
"""What divides by the number of rows less one."""


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


def moment_values(kind: AggregateKind, sums: Sequence[MomentSum], counts: Floats) -> Floats:
    """Return the values, in the steps of their grid: NaN where a correlation has no variance to divide by.

    Parameters
    ----------
    kind : AggregateKind
    sums : sequence of MomentSum
        VAR, STDDEV: of squares, of values. COVAR: of products, of each column. CORR: these, and of the
        squares of each column.
    counts : float64 array of shape (groups,)
        Noisy numbers of rows.

    Notes
    -----
    Guarantee: post-processing. A variance lies from 0 to a quarter of the squared range of its bounds (times
    n / (n - 1) for a sample), a correlation from -1 to 1, whatever the noise.
    """
    many = np.maximum(counts, 2.0 if kind in SAMPLED else 1.0)
    low, high = _moments(kind, sums, (many, many))
    if kind is not AggregateKind.CORR:
        return low
    (first, _), (second, _) = (_variance(sums[i], sums[j], (many, many)) for i, j in ((3, 1), (4, 2)))
    return np.where((first > 0) & (second > 0), (low + high) / 2, np.nan)


def moment_ends(kind: AggregateKind, sums: Sequence[MomentSum], counts: Ends) -> Ends:
    """Return intervals that hold the exact values wherever all sums and the count lie within their own.

    Each is what interval arithmetic gives, so it is wider than it need be, never narrower.
    """
    minimum = 2.0 if kind in SAMPLED else 1.0
    return _moments(kind, sums, (np.maximum(counts[0], minimum), np.maximum(counts[1], minimum)))


def _moments(kind: AggregateKind, sums: Sequence[MomentSum], counts: Ends) -> Ends:
    ends = _variance(sums[0], sums[1], counts) if kind in _VARIANCES else _covariance(sums, counts)
    if kind is AggregateKind.CORR:
        return _correlation(ends, _variance(sums[3], sums[1], counts), _variance(sums[4], sums[2], counts))
    if kind in SAMPLED:
        small, large = (count / (count - 1) for count in reversed(counts))
        ends = (
            np.where(ends[0] < 0, ends[0] * large, ends[0] * small),
            np.where(ends[1] < 0, ends[1] * small, ends[1] * large),
        )
    return (np.sqrt(ends[0]), np.sqrt(ends[1])) if kind in _STDDEV else ends


def _variance(squares: MomentSum, values: MomentSum, counts: Ends) -> Ends:
    (low, high), (left, right) = squares.mean(counts), values.mean(counts)
    far = np.maximum(left**2, right**2)
    near = np.where((left <= 0) & (right >= 0), 0.0, np.minimum(left**2, right**2))
    largest = values.max_variance
    return np.clip(low - far, 0, largest), np.clip(high - near, 0, largest)


def _covariance(sums: Sequence[MomentSum], counts: Ends) -> Ends:
    low, high = sums[0].mean(counts)
    corners = [one * other for one in sums[1].mean(counts) for other in sums[2].mean(counts)]
    largest = (sums[1].max_variance * sums[2].max_variance) ** 0.5
    return (
        np.clip(low - np.max(corners, axis=0), -largest, largest),
        np.clip(high - np.min(corners, axis=0), -largest, largest),
    )


def _correlation(covariance: Ends, first: Ends, second: Ends) -> Ends:
    small, large = (np.sqrt(one * other) for one, other in zip(first, second, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        near, far = ([end / scale for end in covariance] for scale in (small, large))
    low = np.where(covariance[0] < 0, near[0], far[0])
    high = np.where(covariance[1] < 0, far[1], near[1])
    # without a variance to divide by, nothing is known
    return (
        np.where(small > 0, np.clip(low, -1, 1), -1.0),
        np.where(small > 0, np.clip(high, -1, 1), 1.0),
    )
