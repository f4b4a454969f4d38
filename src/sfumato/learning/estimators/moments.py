"""Noisy first and second moments of rows whose positions in their bounds are from -1 to 1."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.estimators.vector_sums import SumSpecification, VectorSum
from sfumato.mechanisms.statistics.upper_triangle import (
    symmetric_matrix,
    triangle,
    without_negative_eigenvalues,
)
from sfumato.numerics.randomness.source import RandomSource

__all__ = [
    "MeanAndVariance",
    "MomentSums",
    "mean_and_variance_part",
    "mean_and_variance_rows",
    "moments_part",
    "noisy_mean_and_variance",
    "noisy_moment_sums",
    "noisy_moments",
]

_Array = NDArray[np.float64]

_CHUNK: Final = 1 << 10


class MomentSums(NamedTuple):
    """Noisy sums of rows by group, and how large their noise is.

    Attributes
    ----------
    rows : float64 array of shape (groups,)
        The number of rows plus noise of standard deviation ``rows_deviation``: it may be negative.
    first, second : float64 array of shape (groups, columns)
        Sums of the positions ``x`` and of ``2 * x**2 - 1``, plus noise of standard deviation ``deviation``.
    rows_deviation, deviation : float
    """

    rows: _Array
    first: _Array
    second: _Array
    rows_deviation: float
    deviation: float


class MeanAndVariance(NamedTuple):
    """Noisy number, mean and variance of the columns, by group.

    Attributes
    ----------
    rows : float64 array of shape (groups,)
        At least 1.
    mean, variance : float64 array of shape (groups, columns)
        Of positions; means from -1 to 1, variances from 0 to 1.
    """

    rows: _Array
    mean: _Array
    variance: _Array


def mean_and_variance_part(columns: int, weight: float = 1.0) -> SumSpecification:
    """Return the sum of a one, of positions ``x``, and of ``2 * x**2 - 1``.

    ``x**2 + (2 * x**2 - 1)**2`` is convex in ``x**2`` and at most 2, at its ends, as ``x**2 + x**4`` is; but
    the noise in a mean of squares is half of what it would be with that. The one is made as large as the
    fourth root of twice the columns, at which count and sums together make the means the least noisy.
    """
    norm = math.sqrt(2 * columns + _one(columns) ** 2)
    return SumSpecification(norm=norm, entries=2 * columns + 1, weight=weight)


def mean_and_variance_rows(positions: _Array) -> _Array:
    """Return what each row adds to that sum."""
    one = np.full((len(positions), 1), _one(positions.shape[1]))
    return np.concatenate([one, positions, 2 * positions**2 - 1], axis=1)


def _one(columns: int) -> float:
    return float((2 * columns) ** 0.25)


def noisy_moment_sums(
    total: VectorSum,
    positions: _Array,
    source: RandomSource,
    groups: NDArray[np.int64] | None = None,
    count: int = 1,
) -> MomentSums:
    """Release the sums of `mean_and_variance_part`, by group."""
    columns = positions.shape[1]
    found = total.release(mean_and_variance_rows(positions), source, groups, count)
    one, deviation = _one(columns), total.deviation()
    return MomentSums(
        rows=found[:, 0] / one,
        first=found[:, 1 : columns + 1],
        second=found[:, columns + 1 :],
        rows_deviation=deviation / one,
        deviation=deviation,
    )


def noisy_mean_and_variance(total: VectorSum, positions: _Array, source: RandomSource) -> MeanAndVariance:
    """Release number, mean and variance of the columns, of all rows as one group."""
    sums = noisy_moment_sums(total, positions, source)
    number = np.maximum(1.0, sums.rows)
    mean = np.clip(sums.first / number[:, None], -1.0, 1.0)
    square = np.clip((sums.second / number[:, None] + 1) / 2, 0.0, 1.0)
    return MeanAndVariance(number, mean, np.clip(square - mean**2, 0.0, 1.0))


def moments_part(columns: int) -> SumSpecification:
    """Return the sum of the upper triangle of each row's products, with a one before its positions.

    With the entries off the diagonal times the square root of 2 the L2 norm is the row's squared norm.
    """
    size = columns + 1
    return SumSpecification(norm=float(size), entries=size * (size + 1) // 2)


def noisy_moments(total: VectorSum, positions: _Array, source: RandomSource) -> _Array:
    """Release the matrix of products of a one and the positions, shape (columns + 1, columns + 1).

    It is projected to what data can have: no negative eigenvalue.
    """
    size = positions.shape[1] + 1
    i, j, weight = triangle(size)
    steps = np.zeros((1, len(i)), np.int64)
    for start in range(0, len(positions), _CHUNK):
        part = positions[start : start + _CHUNK]
        rows = np.concatenate([np.ones((len(part), 1)), part], axis=1)
        steps += total.total(rows[:, i] * rows[:, j] * weight)
    return without_negative_eigenvalues(symmetric_matrix(total.noisy(steps, source)[0], size))
