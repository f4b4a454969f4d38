"""The probabilities of integer noise for many integers at once, and exact draws of a count below noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)

__all__ = ["draw_counts", "noise_log_density"]

_Array = NDArray[np.float64]
_NEGLIGIBLE: Final = 40.0
"""Less than exp(-40) of the largest probability is left out: 4e-18 of it."""
_SMALLEST: Final = 5e-324


def noise_log_density(noise: SymmetricDistribution) -> Callable[[Any], _Array]:
    """Return the log of the probability of each integer, but for a constant.

    Parameters
    ----------
    noise : SymmetricDistribution

    Returns
    -------
    callable
        From arrays of integers to floats, to float accuracy. They are at least the log of the smallest
        float, also where noise has no probability: counts that do not fit are improbable, not impossible.

    Examples
    --------
    >>> density = noise_log_density(DiscreteLaplaceDistribution(2))
    >>> density(np.array([0, -3])).tolist()
    [0.0, -1.5]
    """
    if isinstance(noise, DiscreteLaplaceDistribution):
        scale = float(noise.scale)
        return lambda k: np.asarray(-np.abs(k) / scale)
    if isinstance(noise, DiscreteGaussianDistribution):
        sigma = float(noise.sigma)
        return lambda k: np.asarray(-((np.asarray(k) / sigma) ** 2) / 2)
    found: dict[int, float] = {}

    def each(k: Any) -> float:
        size = abs(int(k))
        if size not in found:
            found[size] = math.log(max(noise.pmf(size).upper, _SMALLEST))
        return found[size]

    return lambda k: np.array([each(one) for one in np.ravel(k)]).reshape(np.shape(k))


def draw_counts(
    log_density: Callable[[NDArray[np.int64]], _Array],
    ends: tuple[int, int],
    limits: tuple[int, int],
    size: int,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw integers from a distribution that is known but for a constant and falls off on both sides.

    Parameters
    ----------
    log_density : callable
        From an array of integers to the logs of their probabilities.
    ends : tuple of two ints
        Between them most of it is to be expected; they are moved outward until it is.
    limits : tuple of two ints
        The smallest and the largest integer that there may be.
    size : int
        How many, independent.
    generator : numpy.random.Generator

    Returns
    -------
    int64 array

    Examples
    --------
    >>> found = draw_counts(lambda k: -((k - 90.0) ** 2), (0, 2), (0, 100), 5, np.random.default_rng(0))
    >>> bool(found.min() >= 85)
    True
    """
    first, last = (min(max(end, limits[0]), limits[1]) for end in ends)
    while True:
        places = np.arange(first, last + 1)
        logs = log_density(places)
        top = float(logs.max())
        reach = last - first + 1
        low = first > limits[0] and not logs[0] < top - _NEGLIGIBLE
        high = last < limits[1] and not logs[-1] < top - _NEGLIGIBLE
        if not low and not high:
            break
        first = max(limits[0], first - reach) if low else first
        last = min(limits[1], last + reach) if high else last
    weights = np.cumsum(np.exp(logs - top))
    found = np.searchsorted(weights, generator.random(size) * weights[-1], side="right")
    return np.asarray(places[np.minimum(found, len(places) - 1)])
