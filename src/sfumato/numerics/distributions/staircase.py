"""The staircase distribution on the integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato._check import integer, refuse
from sfumato.numerics.distributions.discrete import SymmetricDistribution, exp_minus
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.numerics.rounding import (
    add_down,
    add_up,
    div_down,
    div_up,
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
from sfumato.numerics.sampling.choice import choose
from sfumato.numerics.sampling.integer_noise import collect, exact_scale, geometric

__all__ = ["StaircaseDistribution"]

_Integers = NDArray[np.int64]
_MAXIMUM: Final = 1 << 54


@final
@dataclass(frozen=True, slots=True)
class StaircaseDistribution(SymmetricDistribution):
    r"""Integers whose probability falls by :math:`e^{-\epsilon}` at ``first`` and at every ``width`` beyond.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Positive, from 2**-40 to 2**40.
    width : int
        Length of a step, from 1 to 2**60, and at most 2**54 times ``epsilon``.
    first : int
        Where the first step ends, from 1 to ``width``.

    Notes
    -----
    With :math:`b = e^{-\epsilon}` the weight of k is :math:`b^n`, n the number of borders at or below
    :math:`|k|`. A magnitude is drawn as ``width`` times a geometric number, and a position before or after
    the border; a negative zero is refused.

    References
    ----------
    Geng, Viswanath (2014), "The optimal mechanism in differential privacy".
    """

    epsilon: int | float | Fraction
    width: int
    first: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_scale("epsilon", self.epsilon))
        if integer("width", self.width, minimum=1, remedy="pass the length of a stair") > 1 << 60:
            refuse("width", "be at most 2**60", self.width, "use a coarser grid")
        if integer("first", self.first, minimum=1, remedy="pass the end of the first step") > self.width:
            refuse("first", "be at most width", self.first, "pass the width of the first stair")
        if self.width > self._exact * _MAXIMUM:  # draws are then far from the end of an int64
            refuse("width", "be at most 2**54 times epsilon", self.width, "measure in larger steps")

    @property
    def stddev(self) -> float:
        """Standard deviation, to float accuracy."""
        b, gap = math.exp(-float(self.epsilon)), -math.expm1(-float(self.epsilon))
        width, first = float(self.width), float(self.first)
        # Moments of the geometric number, up to the factor 1 / gap of its mass.
        mean, square = b / gap, b * (1 + b) / gap**2
        total = 0.0
        for weight, start, end in ((1.0, 0.0, first), (b, first, width)):
            count, ones = end - start, (end * (end - 1) - start * (start - 1)) / 2
            twos = (end * (end - 1) * (2 * end - 1) - start * (start - 1) * (2 * start - 1)) / 6
            total += weight * (width**2 * square * count + 2 * width * mean * ones + twos)
        mass = first + (width - first) * b
        return math.sqrt(2 * total / (2 * mass - gap))

    def pmf(self, k: int) -> Interval:
        """Bound ``P(X = k)``."""
        return ratio_bounds(exp_minus(self._fallen(abs(k)) * self._exact), self._whole())

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Rng = None) -> _Integers | int:
        """Draw from the distribution, exactly."""
        source = random_source(rng)
        rest = self.width - self.first

        def propose(count: int) -> _Integers:
            drawn = self.width * np.asarray(geometric(1 / self._exact, count, source))
            inner = uniform_integers(self.first, count, source)
            if rest:
                sizes = np.array([self.first, rest], np.int64)
                beyond = choose(np.arange(2), self._exact, multiplicity=sizes, size=count, rng=source)
                outer = self.first + uniform_integers(rest, count, source)
                inner = np.where(beyond == 1, outer, inner)
            drawn += inner
            negative = uniform_integers(2, count, source) == 1
            return np.asarray(np.where(negative, -drawn, drawn)[~(negative & (drawn == 0))])

        return collect(size, propose, 0.5)

    @property
    def _exact(self) -> Fraction:
        return Fraction(self.epsilon)

    def _fallen(self, k: int) -> int:
        return 0 if k < self.first else 1 + (k - self.first) // self.width

    def _after(self) -> Interval:
        """Bound ``width / (exp(epsilon) - 1)``, all weight beyond a border over that before it."""
        epsilon = self._exact
        if epsilon > 700:
            return Interval(0.0, float(self.width) * 1e-300)
        return Interval(
            div_down(float(self.width), expm1_up(fraction_up(epsilon))) * (1 - 2.0**-50),
            div_up(float(self.width), expm1_down(fraction_down(epsilon))) * (1 + 2.0**-50),
        )

    def _from(self, k: int) -> Interval:
        """Bound the weight of all integers from k >= 0 on."""
        fallen = self._fallen(k)
        left = self.first + fallen * self.width - k
        start, after = exp_minus(fallen * self._exact), self._after()
        return Interval(
            mul_down(start.lower, add_down(fraction_down(Fraction(left)), after.lower)),
            mul_up(start.upper, add_up(fraction_up(Fraction(left)), after.upper)),
        )

    def _whole(self) -> Interval:
        side = self._from(0)
        return Interval(sub_down(2 * side.lower, 1.0), sub_up(2 * side.upper, 1.0))

    def _positive_tail(self, k: int) -> Interval:
        return ratio_bounds(self._from(k), self._whole())

    def _guess(self, p: float) -> int:
        blocks = max(0.0, -math.log(max(p, 1e-300)) / float(self._exact))
        return math.ceil(self.width * min(blocks, 2.0**40)) if p < 0.5 else 0
