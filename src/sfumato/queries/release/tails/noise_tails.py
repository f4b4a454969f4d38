"""Tails of noise for many arguments at once: what tests of sums, ratios and counts are made from.

A `NoiseTail` bounds the tail of one noise, or of a fixed sum of several, from above by a continuous, falling
function of a real number. So a test that uses it rejects no more often than its level says.

>>> tail = noise_tail(DiscreteLaplaceDistribution(2))
>>> float(tail.upper(np.array([3.0]))[0]) >= DiscreteLaplaceDistribution(2).upper_tail(3).lower
True
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.special import ndtr

from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution

__all__ = ["NoiseTail", "combined_tail", "noise_tail", "sum_tail", "tabulated_tail"]

Floats: TypeAlias = NDArray[np.float64]

_WIDE: Final = 100.0  # from this standard deviation on a Gaussian is summed as an integral
_BEYOND: Final = 1e-7
_NOTHING: Final = 1e-20
_FAR: Final = 13.0  # standard deviations that a table reaches; more than 1 - 1e-7 of a Laplace
_BLOCKS: Final = 16.0  # parts of a standard deviation that nodes are apart, at least
_STEPS: Final = 256.0  # parts of a standard deviation that a sum is rounded to


class NoiseTail(ABC):
    """The tail of symmetric noise on the multiples of ``step``, with its bounds."""

    __slots__ = ()

    slack: ClassVar[float] = 1 + 1e-10
    """How much larger or smaller, relatively, a tail may be than what is computed."""

    @property
    @abstractmethod
    def stddev(self) -> float:
        """The standard deviation."""

    @property
    def step(self) -> float:
        """The distance of the numbers that the noise may be."""
        return 1.0

    @property
    def gap(self) -> float:
        """How much farther out a tail is surely no more than the probability of lying beyond a number."""
        return self.step

    @abstractmethod
    def from_zero(self, x: Floats) -> Floats:
        """Return ``P(Z >= x)`` for x >= 0 that the noise may be, and no less for others."""

    def upper(self, x: Floats) -> Floats:
        """Return at least ``P(Z >= x)`` for each real x: a falling function."""
        side = self.from_zero(np.where(x >= 0, x, self.gap - x))
        return np.minimum(1.0, np.where(x >= 0, side * self.slack, 1 - side / self.slack))

    def lower(self, x: Floats) -> Floats:
        """Return at most ``P(Z >= x)`` for each x that the noise may be, where it is a single one."""
        side = self.from_zero(np.where(x > 0, x, self.step - x))
        return np.maximum(0.0, np.where(x > 0, side / self.slack, 1 - side * self.slack))

    def nodes(self) -> tuple[Floats, Floats]:
        """Return magnitudes and their probabilities, which stand for ``|Z|``, or for something larger.

        What is between two of them counts at the farther one, and what is beyond the last, a ten-millionth or
        less, at infinity: the mean of a function that grows with ``|Z|`` is bounded from above.
        """
        apart = self.step * max(1, math.ceil(self.stddev / _BLOCKS / self.step))
        ends = np.arange(0.0, _FAR * self.stddev + apart, apart)
        beyond = np.minimum(1.0, 2 * self.upper(ends + self.step))  # of |Z| > end, one for each end
        many = 1 + min(int(np.searchsorted(-beyond, -_BEYOND)), beyond.size - 1)
        ends, beyond = ends[:many], beyond[:many]
        inside = np.append(beyond[:-1] - beyond[1:], beyond[-1])
        return np.append(ends, np.inf), np.concatenate(([1 - beyond[0]], inside))


@final
@dataclass(frozen=True, slots=True)
class _Laplace(NoiseTail):
    """Discrete Laplace noise: its closed form, read at real numbers."""

    noise: DiscreteLaplaceDistribution

    @property
    def stddev(self) -> float:
        return self.noise.stddev

    def from_zero(self, x: Floats) -> Floats:
        rate = 1 / float(self.noise.scale)
        return np.asarray(np.exp(-x * rate) / (1 + math.exp(-rate)))


@final
@dataclass(frozen=True, slots=True)
class _Truncated(NoiseTail):
    """Truncated discrete Laplace noise: its closed form, read at real numbers."""

    noise: TruncatedLaplaceDistribution

    @property
    def stddev(self) -> float:
        return self.noise.stddev

    def from_zero(self, x: Floats) -> Floats:
        share, limit = float(self.noise.weight), self.noise.limit
        longer = self._within(limit, x)
        return share * self._within(limit - 1, x) + (1 - share) * longer if share else longer

    def _within(self, limit: int, x: Floats) -> Floats:
        rate, beyond = 1 / float(self.noise.scale), limit + 1
        # 1 + 2 (q + ... + q^limit), times 1 - q
        whole = (math.exp(-rate) - math.exp(-beyond * rate)) * 2 - math.expm1(-rate)
        near = np.minimum(x, beyond)
        # q^x - q^(limit + 1), without cancellation
        return np.asarray(np.exp(-near * rate) * -np.expm1((near - beyond) * rate) / whole)


@final
@dataclass(frozen=True, slots=True)
class _WideGaussian(NoiseTail):
    """Wide discrete Gaussian noise: the integral that its sum is the midpoint rule of."""

    slack = 1 + 5e-4  # the rule is off by a relative 3.4e-4 at 9 standard deviations
    noise: DiscreteGaussianDistribution

    @property
    def stddev(self) -> float:
        return self.noise.stddev

    def from_zero(self, x: Floats) -> Floats:
        return np.asarray(ndtr((0.5 - x) / self.noise.stddev))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Table(NoiseTail):
    """The tail at the multiples of a step from 0 on, and straight lines between them."""

    tails: Floats
    deviation: float
    apart: float
    farther: float

    @property
    def stddev(self) -> float:
        return self.deviation

    @property
    def step(self) -> float:
        return self.apart

    @property
    def gap(self) -> float:
        return self.farther

    def lower(self, x: Floats) -> Floats:
        return np.where(x > self.apart * (self.tails.size - 1), 0.0, NoiseTail.lower(self, x))

    def from_zero(self, x: Floats) -> Floats:
        return np.asarray(np.interp(x / self.apart, np.arange(self.tails.size), self.tails))


@lru_cache(maxsize=256)
def noise_tail(noise: SymmetricDistribution) -> NoiseTail:
    """Return the tail of noise on the integers.

    Parameters
    ----------
    noise : SymmetricDistribution

    Returns
    -------
    NoiseTail
        The closed form of Laplace noise, the integral for a wide Gaussian (both exact but for a relative
        1e-10 and 5e-4, which are added), else the certified tails of the distribution itself.
    """
    if isinstance(noise, DiscreteLaplaceDistribution):
        return _Laplace(noise)
    if isinstance(noise, TruncatedLaplaceDistribution):
        return _Truncated(noise)
    if isinstance(noise, DiscreteGaussianDistribution) and noise.stddev > _WIDE:
        return _WideGaussian(noise)
    last, tails = max(2, math.ceil(_FAR * noise.stddev)), [0.5]
    while len(tails) <= last and tails[-1] > _NOTHING:
        tails.append(noise.upper_tail(len(tails)).upper)
    tails[0] = noise.upper_tail(0).upper
    return _Table(np.array(tails), noise.stddev, 1.0, 1.0)


def tabulated_tail(tails: Floats, stddev: float, apart: float, farther: float) -> NoiseTail:
    """Return a tail from bounds on the probabilities of being at least each multiple of a number.

    Parameters
    ----------
    tails : array
        For the multiples from 0 on; the last holds for all that is farther out.
    stddev, apart : float
        The standard deviation, and how far the multiples are apart.
    farther : float
        How much farther out a bound is surely no more than the probability of lying beyond a number.
    """
    return _Table(tails, stddev, apart, farther)


def sum_tail(noises: Sequence[SymmetricDistribution], weights: Sequence[float]) -> NoiseTail:
    """Return the tail of a weighted sum of independent noises.

    Each is rounded to a grid of a 256th of the sum's standard deviation; the sum is then off by at most one
    step for each, by which the tail is moved outward. What of a noise lies beyond 13 standard deviations of
    the sum counts there.

    Parameters
    ----------
    noises : sequence of SymmetricDistribution
    weights : sequence of float
        None of them zero.

    Returns
    -------
    NoiseTail
    """
    return combined_tail([noise_tail(noise) for noise in noises], weights)


def combined_tail(tails: Sequence[NoiseTail], weights: Sequence[float]) -> NoiseTail:
    """Return the tail of a weighted sum of independent noises, from their tails.

    Parameters
    ----------
    tails : sequence of NoiseTail
    weights : sequence of float
        None of them zero.

    Returns
    -------
    NoiseTail
        As `sum_tail` describes it.
    """
    return _combined_tail(tuple((tail, abs(weight)) for tail, weight in zip(tails, weights, strict=True)))


@lru_cache(maxsize=64)
def _combined_tail(tails: tuple[tuple[NoiseTail, float], ...]) -> NoiseTail:
    stddev = math.hypot(*(tail.stddev * weight for tail, weight in tails))
    step, reach = stddev / _STEPS, math.ceil(_FAR * _STEPS)
    size = next_fast_len(2 * len(tails) * reach + 1, real=True)
    # the numbers from one multiple of the step to the next count as the farther one, on either side
    transform = np.ones(size // 2 + 1, dtype=np.complex128)
    for tail, weight in tails:
        ends: Floats = np.arange(reach + 1, dtype=np.float64) * float(
            step / weight
        )  # of |Z| > end of the block
        if tail.gap == tail.step:  # noise on a grid
            ends = (np.floor(ends / tail.step) + 1) * tail.step
        beyond = np.minimum(1.0, 2 * tail.upper(ends))
        beyond[-1] = 0.0
        masses = np.zeros(size)
        side = (beyond[:-1] - beyond[1:]) / 2
        masses[0] = 1 - beyond[0]
        masses[1 : reach + 1] = side
        masses[-reach:] = side[::-1]
        transform *= np.fft.rfft(masses)
    found = np.maximum(0.0, np.fft.irfft(transform, size))
    most = len(tails) * reach
    upper = np.cumsum(found[most::-1])[::-1] + 1e-13  # P(sum >= j steps) for j from 0 to most
    # moved outward by a step for each noise
    shifted = np.concatenate((np.full(len(tails), max(0.5, upper[0])), upper))[: most + 1]
    return _Table(np.minimum(shifted, 1.0), stddev, step, (2 * len(tails) + 1) * step)
