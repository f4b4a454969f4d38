"""The discrete Laplace and Gaussian distributions, with certified probabilities, tails and quantiles.

Both are symmetric distributions on the integers whose parameter is an exact rational, so a bound here is a
bound on what the samplers of this package draw, not on a continuous analogue.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from statistics import NormalDist
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato._check import refuse, unit_interval
from sfumato.numerics.certified.discrete_gaussian_tail import normaliser, tail
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng
from sfumato.numerics.rounding import (
    add_down,
    add_up,
    exp_down,
    exp_up,
    expm1_down,
    expm1_up,
    fraction_down,
    fraction_up,
    mul_down,
    mul_up,
    ratio_bounds,
    sub_down,
    sub_up,
)
from sfumato.numerics.sampling.integer_noise import discrete_gaussian, discrete_laplace, exact_scale

__all__ = ["DiscreteGaussianDistribution", "DiscreteLaplaceDistribution", "SymmetricDistribution"]

_NORMAL = NormalDist()
_MINIMUM = 5e-324
# exp(-_FAR) is below the smallest positive float.
_FAR = 800


def exp_minus(x: Fraction) -> Interval:
    """Bound ``exp(-x)`` for an exact rational ``x >= 0``, to a few units in the last place at any size."""
    if x > _FAR:
        return Interval(0.0, _MINIMUM)
    # exp(-x) = exp(-head) exp(-rest) with |rest| < 2^-43: rounding x first would cost |x| ulp.
    head = float(x)
    rest = x - Fraction(head)
    return Interval(
        mul_down(exp_down(-head), sub_down(1.0, fraction_up(rest))),
        mul_up(exp_up(-head), exp_up(-fraction_down(rest))),
    )


def _whole(k: object) -> int:
    if isinstance(k, bool) or not isinstance(k, Integral):
        refuse("k", "be an integer", k, "the noise is integer; pass steps of its grid")
    return int(k)


def _complement(inner: Interval) -> Interval:
    return Interval(max(0.0, sub_down(1.0, inner.upper)), min(1.0, sub_up(1.0, inner.lower)))


class SymmetricDistribution(ABC):
    """A symmetric distribution on the integers, known through its certified tail.

    A distribution states `upper_tail` from 1 on and its standard deviation; quantiles and coverage follow.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def stddev(self) -> float:
        """Standard deviation, to float accuracy."""

    @abstractmethod
    def pmf(self, k: int) -> Interval:
        """Bound ``P(X = k)``.

        Parameters
        ----------
        k : int
            Any integer.

        Returns
        -------
        Interval
            Encloses the probability.
        """

    @abstractmethod
    def _positive_tail(self, k: int) -> Interval:
        """Bound ``P(X >= k)`` for k >= 1."""

    @abstractmethod
    def _guess(self, p: float) -> int:
        """Return a k near the quantile for 0 < p < 1; only speed depends on it."""

    @abstractmethod
    def sample(self, size: int | tuple[int, ...] | None = None, rng: Rng = None) -> NDArray[np.int64] | int:
        """Draw from the distribution, exactly; an int where ``size`` is None, else an array of that shape.

        Parameters
        ----------
        size : int, tuple of int or None
            Shape of the result; None for one int.
        rng : int, numpy.random.Generator, RandomSource or None
            None for noise that protects; anything else simulates.

        Returns
        -------
        int or ndarray of int64
            Independent draws.
        """

    @property
    def variance(self) -> float:
        """Variance, to float accuracy."""
        return self.stddev**2

    def upper_tail(self, k: int) -> Interval:
        """Bound ``P(X >= k)``.

        Parameters
        ----------
        k : int
            Any integer.

        Returns
        -------
        Interval
            Encloses the probability; relative width below 1e-10 as long as the probability is above 1e-300.
        """
        k = _whole(k)
        if k >= 1:
            bounds = self._positive_tail(k)
            return Interval(bounds.lower, min(0.5, bounds.upper))
        return _complement(self._positive_tail(1 - k))

    def quantile_above(self, p: float) -> int:
        """Return the smallest integer k that is certified to have ``P(X >= k) <= p``.

        Parameters
        ----------
        p : float
            Strictly between 0 and 1; at least 1e-300 to be reached in floats.

        Returns
        -------
        int
            Where two neighbouring integers cannot be distinguished by the certified bounds, the larger.
        """
        p = unit_interval("p", p, "pass a probability such as 0.05")
        k, step = self._guess(p), 1
        if self.upper_tail(k).upper <= p:
            inside = k
            while self.upper_tail(inside - step).upper <= p:
                inside, step = inside - step, 2 * step
            outside = inside - step
        else:
            outside = k
            while self.upper_tail(outside + step).upper > p:
                outside, step = outside + step, 2 * step
            inside = outside + step
        while inside - outside > 1:
            middle = (inside + outside) // 2
            if self.upper_tail(middle).upper <= p:
                inside = middle
            else:
                outside = middle
        return inside

    def half_width(self, level: float) -> tuple[int, float]:
        """Return the smallest central interval that holds the noise with a given probability.

        Parameters
        ----------
        level : float
            Coverage, strictly between 0 and 1.

        Returns
        -------
        tuple of int and float
            The smallest h certified to have ``P(|X| <= h) >= level``, and a lower bound on that probability.
        """
        level = unit_interval("level", level, "pass a probability such as 0.95")
        return _half_width(self, level)


@lru_cache(maxsize=256)
def _half_width(distribution: SymmetricDistribution, level: float) -> tuple[int, float]:
    """Return a distribution's `half_width`, which the intervals of all releases of a mechanism share."""
    outside = fraction_down((1 - Fraction(level)) / 2)
    h = max(0, distribution.quantile_above(outside) - 1)
    return h, max(0.0, sub_down(1.0, 2 * distribution.upper_tail(h + 1).upper))


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceDistribution(SymmetricDistribution):
    """The discrete Laplace distribution, ``P(X = k) = tanh(1 / (2 scale)) exp(-|k| / scale)``.

    Parameters
    ----------
    scale : int, float or Fraction
        Positive, at most 2**40; a float means the rational it is.

    Notes
    -----
    With ``q = exp(-1 / scale)`` the tail from k >= 1 is ``q^k / (1 + q)``, evaluated with ``k / scale`` as an
    exact rational.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan, Universally utility-maximizing privacy mechanisms, STOC 2009: the
    two-sided geometric distribution.

    Examples
    --------
    >>> noise = DiscreteLaplaceDistribution(10)
    >>> noise.quantile_above(0.025)
    31
    >>> noise.half_width(0.95)[0]
    30
    """

    scale: int | float | Fraction
    _exact: Fraction = field(init=False, repr=False, compare=False)
    _sides: Interval = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact = exact_scale("scale", self.scale)
        ratio = exp_minus(1 / exact)
        object.__setattr__(self, "_exact", exact)
        object.__setattr__(self, "_sides", Interval(add_down(1.0, ratio.lower), add_up(1.0, ratio.upper)))

    @property
    def stddev(self) -> float:
        """Standard deviation ``1 / (sqrt(2) sinh(1 / (2 scale)))``, to float accuracy."""
        rate = fraction_up(1 / self._exact)
        return math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)

    def pmf(self, k: int) -> Interval:
        """Bound ``P(X = k)``.

        Parameters
        ----------
        k : int
            Any integer.

        Returns
        -------
        Interval
            Encloses the probability.
        """
        ratio = exp_minus(abs(_whole(k)) / self._exact)
        rate = 1 / self._exact
        lower = mul_down(-expm1_up(-fraction_down(rate)), ratio.lower)
        upper = mul_up(-expm1_down(-fraction_up(rate)), ratio.upper)
        return ratio_bounds(Interval(lower, upper), self._sides)

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Rng = None) -> NDArray[np.int64] | int:
        """Draw from the distribution, exactly: `discrete_laplace`.

        Parameters
        ----------
        size : int, tuple of int or None
            Shape of the result; None for one int.
        rng : int, numpy.random.Generator, RandomSource or None
            None for noise that protects; anything else simulates.

        Returns
        -------
        int or ndarray of int64
            Independent draws.
        """
        return discrete_laplace(self._exact, size, rng)

    def _positive_tail(self, k: int) -> Interval:
        return ratio_bounds(exp_minus(k / self._exact), self._sides)

    def _guess(self, p: float) -> int:
        if p > 0.5:
            return 1 - self._guess(1 - p)
        return math.ceil(-math.log(p * self._sides.lower) * fraction_down(self._exact))


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussianDistribution(SymmetricDistribution):
    """The discrete Gaussian distribution, ``P(X = k)`` proportional to ``exp(-k^2 / (2 sigma^2))``.

    Parameters
    ----------
    sigma : int, float or Fraction
        Positive, at most 2**40; a float means the rational it is. From about 2 on it is the standard
        deviation to many digits; below, `stddev`, that of the integers drawn, is smaller.

    Notes
    -----
    Tails are summed term by term up to sigma = 128, beyond by Euler and Maclaurin's formula with its
    proven remainder (`sfumato.numerics.certified.discrete_gaussian_tail`).

    References
    ----------
    Canonne, Kamath, Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020.

    Examples
    --------
    >>> noise = DiscreteGaussianDistribution(10)
    >>> noise.quantile_above(0.025)
    21
    >>> noise.half_width(0.95)[0]
    20
    """

    sigma: int | float | Fraction
    _exact: Fraction = field(init=False, repr=False, compare=False)
    _sum: Interval = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact = exact_scale("stddev", self.sigma)
        object.__setattr__(self, "_exact", exact)
        object.__setattr__(self, "_sum", normaliser(exact))

    @property
    def stddev(self) -> float:
        """Standard deviation of the integers drawn, to float accuracy."""
        sigma = fraction_up(self._exact)
        # By Poisson summation the variance is sigma^2 (1 - 8 pi^2 sigma^2 exp(-2 pi^2 sigma^2) ...).
        if sigma > 2:
            return sigma
        squares = (np.arange(1, 32) / sigma) ** 2 if sigma > 2.0**-500 else np.full(1, np.inf)
        weights = np.exp(-squares / 2)
        return math.sqrt(2 * float((weights * np.arange(1, 1 + weights.size) ** 2).sum()) / self._sum.lower)

    def pmf(self, k: int) -> Interval:
        """Bound ``P(X = k)``.

        Parameters
        ----------
        k : int
            Any integer.

        Returns
        -------
        Interval
            Encloses the probability.
        """
        return ratio_bounds(exp_minus((_whole(k) / self._exact) ** 2 / 2), self._sum)

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Rng = None) -> NDArray[np.int64] | int:
        """Draw from the distribution, exactly: `discrete_gaussian`.

        Parameters
        ----------
        size : int, tuple of int or None
            Shape of the result; None for one int.
        rng : int, numpy.random.Generator, RandomSource or None
            None for noise that protects; anything else simulates.

        Returns
        -------
        int or ndarray of int64
            Independent draws.
        """
        return discrete_gaussian(self._exact, size, rng)

    def _positive_tail(self, k: int) -> Interval:
        first = exp_minus((k / self._exact) ** 2 / 2)
        if not first.lower:
            return Interval(0.0, max(_MINIMUM, first.upper))
        terms = tail(k, self._exact)
        rest = Interval(mul_down(first.lower, terms.lower), mul_up(first.upper, terms.upper))
        return ratio_bounds(rest, self._sum)

    def _guess(self, p: float) -> int:
        return math.ceil(0.5 - fraction_down(self._exact) * _NORMAL.inv_cdf(p))
