"""The normal distribution, rounded to the nearest integer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato._check import integer
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.rounding import fraction_down, fraction_up
from sfumato.numerics.sampling.integer_noise import exact_scale
from sfumato.numerics.sampling.normal_tail import tail_bounds
from sfumato.numerics.sampling.rounded_noise import normal, rounded

__all__ = ["RoundedNormalDistribution"]

_FAR: Final = 38
"""Standard deviations beyond which the tail is below the smallest normal float."""
_GUARD: Final = 70
_LIMIT: Final = 1 << 60


@final
@dataclass(frozen=True, slots=True)
class RoundedNormalDistribution(SymmetricDistribution):
    """The nearest integer to a normal number of mean 0.

    Parameters
    ----------
    stddev_before : int, float or Fraction
        Standard deviation of the normal number, positive, at most 2**40; a float means the rational it is.

    Notes
    -----
    Drawn exactly, one by one: as many bits of a normal number as decide how it rounds
    (`sfumato.numerics.sampling.rounded_noise`).

    Examples
    --------
    >>> noise = RoundedNormalDistribution(10)
    >>> noise.quantile_above(0.025), noise.half_width(0.95)[0]
    (21, 20)
    """

    stddev_before: int | float | Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "stddev_before", exact_scale("stddev", self.stddev_before))

    @property
    def stddev(self) -> float:
        """Standard deviation of the integers drawn, to about a millionth."""
        sigma = float(self.stddev_before)
        if sigma > 1:  # Sheppard's correction: what is left is below exp(-2 pi^2 sigma^2)
            return math.sqrt(sigma**2 + 1 / 12)
        tails = [self._positive_tail(k).upper for k in range(1, 48)]
        return math.sqrt(2 * sum((2 * k - 1) * tail for k, tail in enumerate(tails, 1)))

    def pmf(self, k: int) -> Interval:
        """Bound ``P(X = k)``."""
        k = integer("k", abs(k), remedy="pass an outcome")
        if not k:
            beyond = self._tail(Fraction(1, 2))
            return Interval(fraction_down(1 - 2 * beyond[1]), fraction_up(1 - 2 * beyond[0]))
        near, far = self._tail(Fraction(2 * k - 1, 2)), self._tail(Fraction(2 * k + 1, 2))
        return Interval(fraction_down(max(Fraction(0), near[0] - far[1])), fraction_up(near[1] - far[0]))

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Rng = None) -> NDArray[np.int64] | int:
        """Draw from the distribution, exactly."""
        source, scale = random_source(rng), Fraction(self.stddev_before)
        if size is None:
            return rounded(normal, scale, _LIMIT, source)
        shape = size if isinstance(size, tuple) else (size,)
        count = math.prod(shape)
        drawn = np.fromiter((rounded(normal, scale, _LIMIT, source) for _ in range(count)), np.int64, count)
        return drawn.reshape(shape)

    def _tail(self, x: Fraction) -> tuple[Fraction, Fraction]:
        """Bound ``P(Z >= x)`` for the normal number, by 70 bits relative to it."""
        at = x / Fraction(self.stddev_before)
        if at > _FAR:
            return Fraction(0), Fraction(2.0**-1022)
        bits = _GUARD + math.ceil(at * at * Fraction(3, 4)) + 8
        low = tail_bounds(Fraction(math.floor(at * 2**80) + 1, 2**80), bits)
        high = tail_bounds(Fraction(math.floor(at * 2**80), 2**80), bits)
        return Fraction(low[0], 1 << bits), Fraction(high[1], 1 << bits)

    def _positive_tail(self, k: int) -> Interval:
        low, high = self._tail(Fraction(2 * k - 1, 2))
        return Interval(fraction_down(low), fraction_up(high))

    def _guess(self, p: float) -> int:
        return math.ceil(0.5 - float(self.stddev_before) * NormalDist().inv_cdf(p))
