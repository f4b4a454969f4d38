r"""Intervals of functions of several noisy sums: percentiles of the function at these sums, noised once more.

A variance, a covariance or a correlation is at most x where the first of its sums, P, is at most a straight
line in x, whose slope and height follow from the other sums. So of the noise of P the closed form is used,
and only the others' is distributed over a fixed set of points.

>>> from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
>>> from sfumato.queries.release.tails.noise_tails import noise_tail
>>> tail = noise_tail(DiscreteLaplaceDistribution(100))
>>> slope, height = np.full((1, 1), 50.0), np.full((1, 1), -1000.0)  # P is 1000; P / 50 is at most x
>>> low, high = percentile_interval(tail, (slope, height), np.array([0.05]), (0.0, 99.0))
>>> bool(13 < low[0] < 15 < 25 < high[0] < 27)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.queries.release.inversion import first_rejected
from sfumato.queries.release.tails.noise_tails import NoiseTail

__all__ = ["noise_points", "percentile_interval"]

Floats: TypeAlias = NDArray[np.float64]
Groups: TypeAlias = NDArray[np.intp]

_POINTS: Final = 251
_GENERATOR: Final = 70  # of a Korobov lattice: good in two, three and five dimensions, by the P_2 criterion
_REACH: Final = 13.0  # standard deviations
_FINE: Final = 256.0  # parts of a standard deviation that wide noise is rounded to
_LATTICE_ERROR: Final = 1 / 20  # of the error probability: more than the points are measured to be off by
_TINY: Final = 1e-300


def noise_points(tails: Sequence[NoiseTail]) -> list[Floats]:
    """Return points that stand for independent noises: one array for each, of 502 values of equal weight.

    They are the same for every release: those of a rank-1 lattice, and their opposites, turned and scaled a
    little so that their variances are the noises' and their covariances zero.

    Parameters
    ----------
    tails : sequence of NoiseTail
        At most five.
    """
    index, factor, found = np.arange(_POINTS), 1, []
    for tail in tails:
        even = ((index * factor) % _POINTS + 0.5) / _POINTS
        half = _quantile(tail, even)
        found.append(np.concatenate((half, -half)))
        factor = factor * _GENERATOR % _POINTS
    points, scales = np.array(found), np.array([tail.stddev for tail in tails])
    some = points.var(axis=1) > scales**2 / 2  # all but noise that is hardly ever anything but zero
    if some.any():
        scaled = points[some] / scales[some, None]
        values, vectors = np.linalg.eigh(scaled @ scaled.T / scaled.shape[1])
        points[some] = scales[some, None] * ((vectors / np.sqrt(values)) @ vectors.T @ scaled)
    return list(points)


def _quantile(tail: NoiseTail, share: Floats) -> Floats:
    """Return values of the noise that are below by such shares of the probability."""
    apart = max(1.0, np.floor(tail.stddev / _FINE))
    last = np.ceil(_REACH * tail.stddev / apart)
    values = np.arange(-last, last + 1) * apart
    at_most = 1 - tail.upper(values + 1)
    return np.asarray(values[np.minimum(np.searchsorted(at_most, share), values.size - 1)])


def percentile_interval(
    tail: NoiseTail, lines: tuple[Floats, Floats], miss: Floats, bounds: tuple[float, float]
) -> tuple[Floats, Floats]:
    r"""Return the central percentiles of a function, within its bounds.

    Parameters
    ----------
    tail : NoiseTail
        Of the noise Z of the first sum.
    lines : pair of arrays
        For each group and point a slope :math:`s > 0` and a height h: the function is at most x where
        :math:`Z \le s x + h`; NaN where it is undefined.
    miss : array
        For each group the probability of what lies outside, half of it on either side.
    bounds : tuple of two floats
        What the function cannot leave.

    Notes
    -----
    Guarantee: the coverage is asymptotic. It tends to the level where the noise is small beside the sums that
    the function is made from, so that it is nearly linear there. At the level 0.95 the worst coverage of
    VAR_POP and CORR over six shapes of rows, 20 to 3,000 units and three noises at epsilon 1 (4,000 draws:
    a standard error is 0.0034) was 0.946, for a variance of 20 units at both bounds; a part of that grid is
    ``tests/queries/release/test_percentile_intervals.py``. A twentieth of ``miss`` is left for the points:
    for linear functions in which the first sum has as much noise as the others, an end has a tail
    probability of 0.0210 to 0.0275 where 0.025 is meant. Where a function is undefined at a point, this
    counts as beyond either end.
    """
    slope, height = lines
    undefined = ~(np.isfinite(slope) & np.isfinite(height) & (slope > 0))
    slope, height = np.where(undefined, 1.0, slope), np.where(undefined, 0.0, height)
    # where the function is, and how far it spreads: only for the search
    centers = -height / slope
    middle = np.median(centers, axis=1)
    around = np.median(np.abs(centers - middle[:, None]), axis=1)
    deviation = np.hypot(1.5 * around, np.median(tail.stddev / slope, axis=1))
    middle = np.clip(middle, *bounds)
    ends = []
    for side, bound in zip((-1.0, 1.0), bounds, strict=True):

        def beyond(distance: Floats, groups: Groups, side: float = side) -> Floats:
            at = (side * middle[groups] + distance)[:, None] * slope[groups] + side * height[groups]
            return np.asarray(np.where(undefined[groups], 1.0, tail.upper(at)).mean(axis=1))

        far = np.maximum(np.abs(bound - middle), _TINY)
        distance = first_rejected(
            beyond, miss / 2 * (1 - _LATTICE_ERROR), np.minimum(2 * deviation, far), far
        )
        ends.append(np.clip(middle + side * distance, *bounds))
    return ends[0], ends[1]
