"""Distributions of counts and their noise on the integers, to float accuracy."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDING", "IntegerDistribution", "binomial", "discrete_laplace"]

_Array = NDArray[np.float64]

ROUNDING: Final = 1e-11
"""More than floats and cut tails move a probability here."""


class IntegerDistribution(NamedTuple):
    """Probabilities of consecutive integers; those outside have less than 1e-16 together.

    Attributes
    ----------
    first : int
        The integer of the first probability.
    masses : float64 array
    """

    first: int
    masses: _Array

    def plus(self, other: IntegerDistribution) -> IntegerDistribution:
        """Return the distribution of the sum of two independent integers."""
        size = len(self.masses) + len(other.masses) - 1
        length = 1 << (size - 1).bit_length()
        product = np.fft.rfft(self.masses, length) * np.fft.rfft(other.masses, length)
        masses = np.maximum(np.fft.irfft(product, length)[:size], 0.0)
        return IntegerDistribution(self.first + other.first, masses)

    def negated(self) -> IntegerDistribution:
        """Return the distribution of the negative."""
        return IntegerDistribution(1 - self.first - len(self.masses), self.masses[::-1])

    def cumulated(self) -> _Array:
        """Return the probabilities that the integer is at most each of them."""
        return np.cumsum(self.masses)

    def at_least(self, threshold: int) -> float:
        """Return the probability of integers at or above a threshold."""
        return float(self.masses[max(0, threshold - self.first) :].sum())

    def first_rarer(self, probability: float) -> int:
        """Return the smallest threshold that is reached with at most a probability."""
        above = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)
        return self.first + int((above <= probability).argmax())


def discrete_laplace(scale: float) -> IntegerDistribution:
    """Return the discrete Laplace distribution."""
    reach = math.ceil(42 * scale) + 1
    masses = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return IntegerDistribution(-reach, masses / masses.sum())


def binomial(size: int, probability: float) -> IntegerDistribution:
    """Return the binomial distribution, from the ratios of neighbouring probabilities."""
    variance = size * probability * (1 - probability)
    reach, mode = math.ceil(10 * math.sqrt(variance)) + 60, math.floor((size + 1) * probability)
    first, last = max(0, mode - reach), min(size, mode + reach)
    if not 0 < probability < 1:
        return IntegerDistribution(round(size * probability), np.ones(1))
    k = np.arange(first + 1, last + 1, dtype=np.float64)
    odds = math.log(probability) - math.log1p(-probability)
    logs = np.append(0.0, np.cumsum(np.log((size + 1 - k) / k) + odds))
    masses = np.exp(logs - logs.max())
    return IntegerDistribution(first, masses / masses.sum())
