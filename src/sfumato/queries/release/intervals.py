"""Intervals of a release, from public parameters and released values only.

Every interval is for the bounded answer: the exact answer after contribution bounding and rounding to the
grid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.queries.release.record import NoisyMeasure

__all__ = ["central_interval", "mean_interval", "thresholded_interval"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def central_interval(measure: NoisyMeasure, noisy: Integers, level: float) -> tuple[Integers, Integers]:
    """Interval of the exact sum, in grid steps: the smallest central one with coverage at least ``level``."""
    half = measure.noise.half_width(level)[0]
    return noisy - half, noisy + half


def thresholded_interval(
    noise: SymmetricDistribution, noisy: Integers, threshold: int, level: float, *, minimum: int = 1
) -> tuple[Integers, Integers]:
    """Interval of a count of at least ``minimum`` units, given that its noisy value passed ``threshold``.

    Notes
    -----
    Guarantee: for every true count n >= ``minimum`` the interval holds n with probability at least ``level``,
    given that the group is shown. It inverts the two one-sided tests at (1 - level) / 2 on the distribution
    of n + Z given n + Z >= threshold; both of its tails are monotone in n because a log-concave Z has a
    monotone likelihood ratio. A count that is shown just above the threshold may be any small number that was
    lucky.
    """
    pairs = {int(value): _invert(noise, int(value), threshold, level, minimum) for value in np.unique(noisy)}
    lower = np.array([pairs[int(value)][0] for value in noisy], dtype=np.int64)
    upper = np.array([pairs[int(value)][1] for value in noisy], dtype=np.int64)
    return lower, upper


def _invert(
    noise: SymmetricDistribution, value: int, threshold: int, level: float, minimum: int
) -> tuple[int, int]:
    tail = (1 - level) / 2

    def not_too_small(count: int) -> bool:
        return noise.upper_tail(value - count).upper >= tail * noise.upper_tail(threshold - count).lower

    def not_too_large(count: int) -> bool:
        return (
            noise.upper_tail(value - count + 1).lower
            <= (1 - tail) * noise.upper_tail(threshold - count).upper
        )

    half = noise.half_width(level)[0]
    far = value + half + 1
    # not_too_small turns from false to true as the count grows, not_too_large from true to false.
    lower = _first(not_too_small, minimum, max(minimum, far))
    upper = _first(lambda count: not not_too_large(count), minimum, max(minimum, far)) - 1
    return lower, max(lower, upper)


def _first(true_from: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest integer of [low, high] from which a monotone condition holds; ``high`` if none."""
    while low < high:
        middle = (low + high) // 2
        if true_from(middle):
            high = middle
        else:
            low = middle + 1
    return low


def mean_interval(
    total: NoisyMeasure, sums: tuple[Integers, Integers], counts: tuple[Integers, Integers]
) -> tuple[Floats, Floats]:
    """Interval of a mean of per-unit means, in grid steps, from those of its sum and its count.

    Where these have coverage (1 + level) / 2 each, both hold at once with probability at least ``level`` (a
    union bound); the quotient is then at an end of the two intervals. A count is at least one.
    """
    (low_sum, high_sum), (low_count, high_count) = sums, (np.maximum(1, end) for end in counts)
    lower = np.where(low_sum < 0, low_sum / low_count, low_sum / high_count)
    upper = np.where(high_sum < 0, high_sum / high_count, high_sum / low_count)
    return (
        np.clip(total.center + lower, total.lower, total.upper),
        np.clip(total.center + upper, total.lower, total.upper),
    )
