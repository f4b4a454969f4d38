"""Intervals of a release, from public parameters and released values only.

Every interval is for the bounded answer: the exact answer after contribution bounding and rounding to the
grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.queries.release.ratio_intervals import NoiseTerm, ratio_interval
from sfumato.queries.release.record import NoisyMeasure
from sfumato.queries.release.tails.noise_tails import noise_tail

__all__ = [
    "ShownCounts",
    "central_interval",
    "hull",
    "mean_interval",
    "quotient_ends",
    "shown_counts",
    "thresholded_interval",
]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]

_SPARE: Final = 1 / 50
"""The part of an error probability that pays for not knowing how small a shown count may be."""


def central_interval(measure: NoisyMeasure, noisy: Integers, level: float) -> tuple[Integers, Integers]:
    """Interval of the exact sum, in grid steps: the smallest central one with coverage at least ``level``."""
    half = measure.noise.half_width(level)[0]
    return noisy - half, noisy + half


def thresholded_interval(
    noise: SymmetricDistribution,
    noisy: Integers,
    threshold: RandomizedThreshold,
    level: float,
    *,
    minimum: int = 1,
) -> tuple[Integers, Integers]:
    """Interval of a count of at least ``minimum`` units, given that its noisy value passed ``threshold``.

    Notes
    -----
    Guarantee: for every true count n >= ``minimum`` the interval holds n with probability at least ``level``,
    given that the group is shown. It inverts the two one-sided tests at (1 - level) / 2 on the distribution
    of n + Z given that it is shown; both of its tails are monotone in n because a log-concave Z has a
    monotone likelihood ratio, and the coin at the threshold takes the same part of the likelihood of any n. A
    count that is shown just above the threshold may be any small number that was lucky. Tails are bounded
    outward by a relative 1e-10 (5e-4 for a wide Gaussian); nothing is asymptotic.
    """
    tail, miss = noise_tail(noise), (1 - level) / 2
    values, back = np.unique(noisy, return_inverse=True)

    def not_too_small(count: Integers) -> NDArray[np.bool_]:
        seen = tail.upper((values - count).astype(np.float64))
        return np.asarray(seen >= miss * _shown(noise, threshold, count)[0])

    def too_large(count: Integers) -> NDArray[np.bool_]:
        seen = tail.lower((values - count + 1).astype(np.float64))
        return np.asarray(seen > (1 - miss) * _shown(noise, threshold, count)[1])

    # both turn from false to true as the count grows
    low = np.full_like(values, minimum)
    far = np.maximum(minimum, values + noise.half_width(level)[0] + 1)
    lower = _first(not_too_small, low, far)
    upper = np.maximum(lower, _first(too_large, low, far) - 1)
    return lower[back], upper[back]


def _shown(noise: SymmetricDistribution, threshold: RandomizedThreshold, count: Integers) -> Ends:
    """Bound the probability that groups of so many units are shown, with the coin of the lowest noise."""
    tail, apart = noise_tail(noise), threshold.units - count.astype(np.float64)
    coin: Floats = np.full_like(apart, float(threshold.probability))
    if isinstance(noise, TruncatedLaplaceDistribution) and noise.weight and threshold.probability < 1:
        other = float(min(Fraction(1), threshold.probability / (1 - threshold.probability)))
        coin[apart == -noise.limit] = other
    lower = coin * tail.lower(apart) + (1 - coin) * tail.lower(apart + 1)
    return lower, np.minimum(1.0, coin * tail.upper(apart) + (1 - coin) * tail.upper(apart + 1))


def _first(true_from: Callable[[Integers], NDArray[np.bool_]], low: Integers, high: Integers) -> Integers:
    """Return the smallest integers of [low, high] from which a monotone condition holds; ``high`` if none."""
    while np.any(low < high):
        middle = (low + high) // 2
        found = true_from(middle) | (low == high)
        low, high = np.where(found, low, middle + 1), np.where(found, middle, high)
    return low


@final
@dataclass(frozen=True, slots=True)
class ShownCounts:
    """What is known of counts that passed a threshold, for tests of anything that they are a part of.

    Parameters
    ----------
    miss : array
        The error probability that such a test of a group may have without the condition.
    level : float
        The coverage, given n, of intervals for the counts below the threshold.
    low, high : array
        The counts below the threshold that the group may have.
    small : array of bool
        Where there are any.

    Notes
    -----
    Guarantee: an interval that holds its target with probability at least 1 - ``miss``, whatever is shown,
    and, where the group is ``small``, also what another one holds that has ``level`` for every count from
    ``low`` to ``high``, holds it with probability at least the level that was asked for, given that the
    group is shown. For the count is at least ``low`` but for a fiftieth of the error. Where it is at least
    the threshold, a probability given that the group is shown is at most the probability without this
    condition over that of being shown. Where it is less, only the second interval is needed.
    """

    miss: Floats
    level: float
    low: Integers
    high: Integers
    small: NDArray[np.bool_]


def shown_counts(
    noise: SymmetricDistribution, noisy: Integers, threshold: RandomizedThreshold, level: float, minimum: int
) -> ShownCounts:
    """Return what counts that were shown may be, and what tests of them may miss."""
    spare = (1 - level) * _SPARE
    low, _ = thresholded_interval(noise, noisy, threshold, 1 - 2 * spare, minimum=minimum)
    shown, _ = _shown(noise, threshold, np.maximum(low, threshold.units))
    left = 1 - level - spare
    small = low < threshold.units
    below = np.full_like(low, threshold.units - 1)
    return ShownCounts(left * shown, 1 - left, np.minimum(low, below), below, small)


def hull(first: Ends, second: Ends, where: NDArray[np.bool_]) -> Ends:
    """Return the first intervals, enlarged by the second ones in some places."""
    return (
        np.where(where, np.minimum(first[0], second[0]), first[0]),
        np.where(where, np.maximum(first[1], second[1]), first[1]),
    )


def mean_interval(
    total: NoisyMeasure,
    count: NoisyMeasure,
    noisy: tuple[Integers, Integers],
    level: float,
    shown: ShownCounts | None = None,
) -> Ends:
    """Interval of a mean of per-unit means, in grid steps: Fieller's, within the public bounds.

    Parameters
    ----------
    total, count : NoisyMeasure
        The sum of centred means, and the number of units with a value.
    noisy : pair of arrays
        Their noisy integers.
    level : float
    shown : ShownCounts or None
        Where groups were shown by this very count.

    Notes
    -----
    Guarantee: each interval holds the mean of a group of at least one unit with probability at least
    ``level`` (`ratio_interval`), given that the group is shown. Nothing is asymptotic.
    """
    sums, counts = noisy
    bounds = float(total.lower - total.center), float(total.upper - total.center)
    terms = [NoiseTerm(noise_tail(total.noise), 1.0, 0.0), NoiseTerm(noise_tail(count.noise), 0.0, 1.0)]
    miss = np.full(len(sums), 1 - level) if shown is None else shown.miss
    ends = ratio_interval(sums.astype(np.float64), counts.astype(np.float64), terms, miss, bounds)
    if shown is not None and shown.small.any():
        few = quotient_ends(central_interval(total, sums, shown.level), (shown.low, shown.high))
        low, high = (np.clip(end, *bounds) for end in few)
        ends = hull(ends, (low, high), shown.small)
    return total.center + ends[0], total.center + ends[1]


def quotient_ends(sums: tuple[Integers, Integers], counts: tuple[Integers, Integers]) -> Ends:
    """Return the ends of quotients of what lies in intervals; a count is at least one."""
    (low_sum, high_sum), (low_count, high_count) = sums, (np.maximum(1, end) for end in counts)
    return (
        np.where(low_sum < 0, low_sum / low_count, low_sum / high_count),
        np.where(high_sum < 0, high_sum / high_count, high_sum / low_count),
    )
