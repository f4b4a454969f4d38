"""The truncated uniform-Laplace distribution, times a whole number and rounded to the nearest integer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato._check import integer, refuse
from sfumato.numerics.distributions.discrete import SymmetricDistribution, exp_minus
from sfumato.numerics.distributions.truncated_laplace import power_sum
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
)
from sfumato.numerics.sampling.choice import flip
from sfumato.numerics.sampling.integer_noise import collect, discrete_laplace, exact_scale

__all__ = ["TulapDistribution", "finest_cells"]

_Integers = NDArray[np.int64]
_BITS: Final = 61
_HALF: Final = Fraction(1, 2)
_MAXIMUM: Final = 1 << 54


def finest_cells(width: int) -> int:
    """Return into how many equal parts an interval of length 1 is cut by the sampler: a multiple of 2 width.

    Examples
    --------
    >>> finest_cells(1) == 2**61, finest_cells(3) % 6
    (True, 0)
    """
    return 2 * width << (_BITS - (2 * width).bit_length() + 1)


@final
@dataclass(frozen=True, slots=True)
class TulapDistribution(SymmetricDistribution):
    r"""The nearest integer to ``width`` times a Tulap number.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Positive, from 2**-40 to 2**40.
    width : int
        From 1 to 2**50, and at most 2**54 times ``epsilon``.
    limit : Fraction, optional
        The largest magnitude before the multiplication, at least 1; a multiple of
        ``1 / finest_cells(width)``. Not truncated unless given.

    Notes
    -----
    With :math:`b = e^{-\epsilon}` the density of a Tulap number N is proportional to :math:`b^{[|x|]}`, with
    :math:`[\cdot]` the nearest integer, up to the limit: a discrete Laplace number plus a uniform number from
    -1/2 to 1/2, given that the sum is within the limit. The unit interval around an integer is drawn first,
    then one of ``finest_cells`` parts of it, which the limit and all borders of rounding are borders of.

    References
    ----------
    Awan, Slavkovic, "Differentially private uniformly most powerful tests for binomial data" (NeurIPS 2018);
    Awan, Vadhan, "Canonical noise distributions and private hypothesis tests" (Annals of Statistics 2023).

    Examples
    --------
    >>> noise = TulapDistribution(1, 1000, Fraction(3, 2))
    >>> noise.upper_tail(1501).upper, noise.half_width(0.9)[0]
    (0.0, 1264)
    """

    epsilon: int | float | Fraction
    width: int
    limit: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_scale("epsilon", self.epsilon))
        if self._exact * (1 << 40) < 1:
            refuse("epsilon", "be at least 2**-40", self.epsilon, "pass a larger one")
        if integer("width", self.width, minimum=1, remedy="pass a whole number of steps") > 1 << 50:
            refuse("width", "be at most 2**50", self.width, "use a coarser grid")
        if self.width > self._exact * _MAXIMUM:  # draws are then far from the end of an int64
            refuse("width", "be at most 2**54 times epsilon", self.width, "measure in larger steps")
        if self.limit is not None:
            limit = Fraction(self.limit)
            if limit < 1 or limit * self.width > 1 << 60 or finest_cells(self.width) % limit.denominator:
                rule = "be at least 1 and a multiple of 1 / finest_cells(width), 2**60 / width at most"
                refuse("limit", rule, self.limit, "pass a rounded one")
            object.__setattr__(self, "limit", limit)

    @property
    def stddev(self) -> float:
        """Standard deviation, to about a millionth."""
        width, b = float(self.width), math.exp(-float(self.epsilon))
        # Of the rounded uniform part: of that many integers, or of one more of which the last have half.
        inner = (self.width**2 + (2 if self.width % 2 == 0 else -1)) / 12
        if self.limit is None:
            return math.sqrt(width**2 * 2 * b / math.expm1(-float(self.epsilon)) ** 2 + inner)
        whole, share = self._split(self.limit)
        cells = np.arange(1, min(whole, 1 << 20))
        weights = b**cells
        mass = 1 + 2 * float(weights.sum())
        squares = inner + 2 * float((weights * (width**2 * cells.astype(float) ** 2 + inner)).sum())
        end, moment = self._end(whole, share)
        return math.sqrt((squares + 2 * b**whole * moment) / (mass + 2 * b**whole * end))

    def _end(self, whole: int, share: Fraction) -> tuple[float, float]:
        """Return length and second moment, once rounded, of the start of the unit interval at ``whole``."""
        width = self.width
        if width > 4096:  # as good as continuous
            start, length = whole - 0.5, float(share)
            return length, ((start + length) ** 3 - start**3) / 3 * float(width) ** 2
        halves = np.arange(math.ceil(share * 2 * width))
        weights = np.minimum(1.0, float(share * 2 * width) - halves) / (2 * width)
        values = whole * width + (halves + (width + 1) % 2) // 2 - width // 2
        return float(share), float((weights * values.astype(float) ** 2).sum())

    @property
    def beyond_one(self) -> Interval:
        """Bound the probability that the number is within 1 of the limit on one side: 0 without a limit.

        That is the delta of the noise for a move by ``width``.
        """
        if self.limit is None:
            return Interval(0.0, 0.0)
        return ratio_bounds(self._mass(self.limit - 1, self.limit), self._whole())

    def pmf(self, k: int) -> Interval:
        """Bound ``P(X = k)``."""
        k = abs(integer("k", abs(k), remedy="pass an outcome"))
        below, above = Fraction(2 * k - 1, 2 * self.width), Fraction(2 * k + 1, 2 * self.width)
        mass = self._mass(max(below, Fraction(0)), above)
        if not k:
            mass = Interval(2 * mass.lower, 2 * mass.upper)
        return ratio_bounds(mass, self._whole())

    def sample(self, size: int | tuple[int, ...] | None = None, rng: Rng = None) -> _Integers | int:
        """Draw from the distribution, exactly: numbers beyond the limit are refused."""
        source = random_source(rng)
        count_of_cells = finest_cells(self.width)
        per_half = count_of_cells // (2 * self.width)
        whole, share = (0, Fraction(0)) if self.limit is None else self._split(self.limit)
        inside = int(share * count_of_cells)
        few = self.limit is not None and whole < 1 / self._exact

        def propose(count: int) -> _Integers:
            if few:  # nearly even: each unit interval is proposed as often as any other
                units = uniform_integers(2 * whole + 1, count, source) - whole
                units = units[flip(np.abs(units), self._exact, source)]
            else:
                units = np.asarray(discrete_laplace(1 / self._exact, count, source))
            cells = uniform_integers(count_of_cells, units.size, source)
            if self.limit is not None:
                outwards = np.where(units < 0, count_of_cells - 1 - cells, cells)
                good = (np.abs(units) < whole) | ((np.abs(units) == whole) & (outwards < inside))
                units, cells = units[good], cells[good]
            # Half steps from the left end of the unit interval; borders of rounding are at odd halves.
            halves = cells // per_half
            return np.asarray(
                units * self.width + (halves + (self.width + 1) % 2) // 2 - self.width // 2, np.int64
            )

        return collect(size, propose, 0.3)

    @property
    def _exact(self) -> Fraction:
        return Fraction(self.epsilon)

    @staticmethod
    def _split(x: Fraction) -> tuple[int, Fraction]:
        """Return the nearest integer, and how far x is from the left end of the unit interval around it."""
        whole = math.floor(x + _HALF)
        return whole, x - whole + _HALF

    def _mass(self, x: Fraction, y: Fraction | None) -> Interval:
        """Bound the integral of ``b**[u]`` for u from x to y, within the limit; 0 <= x <= y."""
        if self.limit is not None:
            y = self.limit if y is None else min(y, self.limit)
            if x >= y:
                return Interval(0.0, 0.0)
        first, into = self._split(x)
        start = exp_minus(first * self._exact)
        if y is None:
            # What is left of the first unit interval, and b / (1 - b) for those beyond.
            rest = _inverse_expm1(self._exact)
            parts = [Interval(fraction_down(1 - into), fraction_up(1 - into)), rest]
        else:
            last, over = self._split(y)
            if last == first:
                parts = [Interval(fraction_down(y - x), fraction_up(y - x))]
            else:
                end = exp_minus((last - first) * self._exact)
                parts = [
                    Interval(fraction_down(1 - into), fraction_up(1 - into)),
                    power_sum(1 / self._exact, 1, last - first - 1),
                    Interval(mul_down(end.lower, fraction_down(over)), mul_up(end.upper, fraction_up(over))),
                ]
        lower = upper = 0.0
        for part in parts:
            lower, upper = add_down(lower, part.lower), add_up(upper, part.upper)
        return Interval(mul_down(start.lower, max(0.0, lower)), mul_up(start.upper, upper))

    def _whole(self) -> Interval:
        side = self._mass(Fraction(0), self.limit)
        return Interval(2 * side.lower, 2 * side.upper)

    def _positive_tail(self, k: int) -> Interval:
        return ratio_bounds(self._mass(Fraction(2 * k - 1, 2 * self.width), self.limit), self._whole())

    def _guess(self, p: float) -> int:
        units = max(0.0, -math.log(max(p, 1e-300)) / float(self._exact))
        if self.limit is not None:
            units = min(units, float(self.limit))
        return math.ceil(self.width * min(units, 2.0**40)) if p < 0.5 else 0


def _inverse_expm1(epsilon: Fraction) -> Interval:
    """Bound ``1 / (exp(epsilon) - 1)``."""
    if epsilon > 700:
        return Interval(0.0, 1e-300)
    return Interval(
        div_down(1.0, expm1_up(fraction_up(epsilon))), div_up(1.0, expm1_down(fraction_down(epsilon)))
    )
