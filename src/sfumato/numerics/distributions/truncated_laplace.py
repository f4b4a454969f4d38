"""The discrete Laplace distribution within bounds: of the noise, or of what the noise is added to."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato._check import fraction, integer, refuse
from sfumato.numerics.distributions.discrete import SymmetricDistribution, exp_minus
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.rounding import (
    add_down,
    add_up,
    expm1_down,
    expm1_up,
    fraction_down,
    fraction_up,
    mixture_bounds,
    mul_down,
    mul_up,
    ratio_bounds,
)
from sfumato.numerics.sampling.choice import flip
from sfumato.numerics.sampling.integer_noise import collect, discrete_laplace, exact_scale

__all__ = ["TruncatedLaplaceDistribution", "as_weight", "bounded_laplace", "power_sum"]

_Integers = NDArray[np.int64]
_FEW: Final = 1 << 16
_PROPOSALS: Final = 64
_FINEST: Final = 1 << 62


@final
@dataclass(frozen=True, slots=True)
class TruncatedLaplaceDistribution(SymmetricDistribution):
    """The discrete Laplace distribution, given that it is at most a limit in magnitude.

    Parameters
    ----------
    scale : int, float or Fraction
        Positive, at most 2**40; a float means the rational it is.
    limit : int
        The largest magnitude, from 1 to 2**60.
    weight : Fraction, optional
        The probability that the limit is one less, drawn anew for each outcome; 0 unless given. Its
        denominator is at most 2**62.

    Notes
    -----
    With a weight the distribution is a mixture of those of both limits: proportional to ``exp(-|k| / scale)``
    but for the two outcomes at the limit, which are less likely than that. It is log-concave like each.

    Examples
    --------
    >>> noise = TruncatedLaplaceDistribution(10, 20)
    >>> noise.upper_tail(21).upper, noise.half_width(0.99)[0]
    (0.0, 20)
    >>> rarer = TruncatedLaplaceDistribution(10, 20, Fraction(3, 4))
    >>> round(noise.pmf(20).lower / rarer.pmf(20).lower, 9)
    4.0
    """

    scale: int | float | Fraction
    limit: int
    weight: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", exact_scale("scale", self.scale))
        if integer("limit", self.limit, minimum=1, remedy="pass the largest magnitude") > 1 << 60:
            refuse("limit", "be at most 2**60", self.limit, "use DiscreteLaplaceDistribution")
        object.__setattr__(self, "weight", as_weight(self.weight, self.limit))

    @property
    def stddev(self) -> float:
        """Standard deviation, to about a millionth."""
        if self.weight:
            share = float(self.weight)
            parts = zip((share, 1 - share), self._parts, strict=True)
            return math.sqrt(sum(part * each.stddev**2 for part, each in parts))
        q, rate, n = math.exp(-1 / float(self.scale)), 1 / float(self.scale), self.limit
        if n <= _FEW:
            k = np.arange(1, n + 1)
            weights = np.exp(-k * rate)
            return math.sqrt(
                2 * float((weights * k.astype(float) ** 2).sum()) / (1 + 2 * float(weights.sum()))
            )
        if n * rate < 1e-2:  # nearly even: a series in n * rate
            t = n * rate
            return math.sqrt(n * (n + 1) * (1 / 3 - t / 4 + t**2 / 10) / (1 - t / 2 + t**2 / 6))
        # Sums of q^k, and of k^2 q^k, for k = 1 to n, by their closed forms.
        gap, last = -math.expm1(-rate), math.exp(-n * rate)
        mass = q * -math.expm1(-n * rate) / gap
        squares = q * ((1 + q) - last * ((n * gap + 1) ** 2 + q)) / gap**3
        return math.sqrt(max(0.0, 2 * squares / (1 + 2 * mass)))

    def pmf(self, k: int) -> Interval:
        """Bound ``P(X = k)``."""
        if abs(integer("k", abs(k), remedy="pass an outcome")) > self.limit:
            return Interval(0.0, 0.0)
        if self.weight:
            shorter, longer = self._parts
            return mixture_bounds(self.weight, shorter.pmf(k), longer.pmf(k))
        return ratio_bounds(exp_minus(abs(k) / self._exact), self._whole())

    @property
    def at_limit(self) -> Interval:
        """Bound the probability of the largest outcome for the limit that was drawn."""
        shorter, longer = self._parts if self.weight else (self, self)
        return mixture_bounds(self.weight, shorter.pmf(shorter.limit), longer.pmf(longer.limit))

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Rng = None) -> _Integers | int:
        """Draw exactly: draws of the whole distribution, or uniform ones, are rejected as needed."""
        source = random_source(rng)
        if self.weight:
            return self._sample_mixture(size, source)
        exact, limit = self._exact, self.limit
        if limit >= exact:

            def propose(count: int) -> _Integers:
                drawn = np.asarray(discrete_laplace(exact, count, source))
                return drawn[np.abs(drawn) <= limit]

        else:

            def propose(count: int) -> _Integers:
                drawn = uniform_integers(2 * limit + 1, count, source) - limit
                return drawn[flip(np.abs(drawn), 1 / exact, source)]

        return collect(size, propose, 0.5)

    def _sample_mixture(self, size: int | tuple[int, ...] | None, source: RandomSource) -> _Integers | int:
        """Draw a limit for each outcome: outcomes at the longer one, where it is not, are drawn again."""
        shorter, longer = self._parts
        drawn = np.asarray(longer.sample(1 if size is None else size, source))
        flat = drawn.ravel()
        bound = self.weight.denominator
        short = uniform_integers(bound, flat.size, source) < self.weight.numerator
        again = np.flatnonzero(short & (np.abs(flat) == self.limit))
        flat[again] = shorter.sample(again.size, source)
        return int(flat[0]) if size is None else flat.reshape(drawn.shape)

    @property
    def _parts(self) -> tuple[TruncatedLaplaceDistribution, TruncatedLaplaceDistribution]:
        """The distributions that a mixture is of: with the limit one less, and with the limit."""
        return (
            TruncatedLaplaceDistribution(self.scale, self.limit - 1),
            TruncatedLaplaceDistribution(self.scale, self.limit),
        )

    @property
    def _exact(self) -> Fraction:
        return Fraction(self.scale)

    def _whole(self) -> Interval:
        side = power_sum(self._exact, 1, self.limit)
        return Interval(add_down(1.0, 2 * side.lower), add_up(1.0, 2 * side.upper))

    def _positive_tail(self, k: int) -> Interval:
        if self.weight:
            shorter, longer = self._parts
            return mixture_bounds(self.weight, shorter.upper_tail(k), longer.upper_tail(k))
        return ratio_bounds(power_sum(self._exact, k, self.limit), self._whole())

    def _guess(self, p: float) -> int:
        return 0 if p >= 0.5 else self.limit // 2


def as_weight(weight: object, limit: int) -> Fraction:
    """Return the weight of the distribution whose limit is one less, or refuse what is none."""
    if weight == 0:
        return Fraction(0)
    exact = fraction("weight", weight, "pass the probability of a limit that is one less")
    if exact >= 1 or exact.denominator > _FINEST:
        refuse("weight", "be below 1, over a denominator of at most 2**62", weight, "pass such a Fraction")
    if limit < 2:
        refuse("limit", "be at least 2 where it may be one less", limit, "leave weight out")
    return exact


@functools.lru_cache(maxsize=1024)
def power_sum(scale: Fraction, first: int, last: int) -> Interval:
    """Bound the sum of ``exp(-k / scale)`` for k from ``first`` to ``last``, to a few ulp."""
    if first > last:
        return Interval(0.0, 0.0)
    start = exp_minus(first / scale)
    rate, length = 1 / scale, (last - first + 1) / scale
    fallen = Interval(-expm1_up(-fraction_down(length)), -expm1_down(-fraction_up(length)))
    step = Interval(-expm1_up(-fraction_down(rate)), -expm1_down(-fraction_up(rate)))
    terms = ratio_bounds(fallen, step)
    return Interval(mul_down(start.lower, terms.lower), mul_up(start.upper, terms.upper))


def bounded_laplace(scale: Fraction, centres: Any, lower: int, upper: int, source: RandomSource) -> _Integers:
    """Draw integers from ``lower`` to ``upper``, ``P(k) ~ exp(-|k - centre| / scale)``, exactly.

    Parameters
    ----------
    scale : Fraction
        Positive, at most 2**40.
    centres : int64 array of shape (n,)
        Within the bounds.
    lower, upper : int
        Their difference is below 2**60.
    source : RandomSource

    Returns
    -------
    int64 array of shape (n,)
        Independent draws.

    Notes
    -----
    Where the bounds are further apart than the scale, Laplace noise is added and what falls outside is
    refused; else a number is drawn evenly and accepted with ``exp(-|k - centre| / scale)``. Either is
    accepted with a probability above 0.3, which follows the centre. So that the time does not, each draw
    makes the same number of proposals and takes the first that is accepted; fewer than one in 10^9 has none
    and makes as many again.
    """
    drawn = np.empty(len(centres), np.int64)
    open_rows = np.arange(len(centres))
    while open_rows.size:
        shape = (open_rows.size, _PROPOSALS)
        around = np.asarray(centres)[open_rows, None]
        if upper - lower >= scale:
            found = around + np.asarray(discrete_laplace(scale, shape, source))
            good = (found >= lower) & (found <= upper)
        else:
            found = lower + uniform_integers(upper - lower + 1, shape[0] * shape[1], source).reshape(shape)
            good = flip(np.abs(found - around).ravel(), 1 / scale, source).reshape(shape)
        first = good.argmax(axis=1)
        drawn[open_rows] = found[np.arange(len(first)), first]
        open_rows = open_rows[~good.any(axis=1)]
    return np.asarray(drawn)
