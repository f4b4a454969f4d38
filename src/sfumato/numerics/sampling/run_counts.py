"""Exact draws of the number of runs in private selection, from its distributions.

Each distribution's probabilities follow from the first one by exact rational quotients. They are added up in
fixed point, with a lower and an upper bound, until the sum exceeds a uniform; where the bounds leave that
open, everything is done again with more bits of both. The time is proportional to the number drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from sfumato._check import finite, fraction, refuse, unit_interval
from sfumato.numerics.certified.fixed_point import Bounds, exp_bounds, log_bounds
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.randomness.uniform import UniformBits

__all__ = ["poisson", "truncated_negative_binomial"]

_SPARE = 64


def truncated_negative_binomial(
    shape: int | float | Fraction, stopping_probability: float | Fraction, rng: Rng = None
) -> int:
    r"""Draw how many times to run: the negative binomial distribution on k >= 1, exactly.

    Parameters
    ----------
    shape : int, float or Fraction
        Eta, above -1 and at most 1000; a float means the rational it is.
    stopping_probability : float or Fraction
        Gamma, strictly between 0 and 1.
    rng : None, int, numpy Generator or RandomSource
        None for draws that protect; anything else simulates.

    Returns
    -------
    int

    Notes
    -----
    The weight of k is :math:`(1-\gamma)^k \prod_{l<k} (l+\eta)/(l+1)`, or :math:`(1-\gamma)^k/k` for
    :math:`\eta = 0`; at 1 the distribution is geometric. The weights sum to :math:`\gamma^{-\eta} - 1`, so
    with :math:`t = \gamma^{|\eta|}` the first probability is :math:`(1-\gamma)|\eta|/(1-t)`, times t for
    positive eta; at 0 it is :math:`(1-\gamma)/\log(1/\gamma)`.

    Examples
    --------
    >>> [truncated_negative_binomial(1, 0.5, rng=seed) for seed in range(5)]
    [2, 2, 1, 1, 5]
    """
    if isinstance(shape, float):
        finite("shape", shape, "0 is logarithmic, 1 geometric")
    eta = Fraction(shape)
    if not -1 < eta <= 1000:
        refuse("shape", "be above -1 and at most 1000", shape, "0 is logarithmic, 1 geometric")
    unit_interval("stopping_probability", stopping_probability, "pass a probability such as 0.1")
    gamma = fraction("stopping_probability", stopping_probability, "pass a probability such as 0.1")

    def first(bits: int) -> tuple[int, int, int]:
        return _first_negative_binomial(eta, gamma, bits)

    return _draw(first, lambda k: (1 - gamma) * (k + eta) / (k + 1), 1, rng)


def poisson(mean: int | float | Fraction, rng: Rng = None) -> int:
    """Draw k >= 0 with probability ``exp(-mean) mean^k / k!``, exactly.

    Parameters
    ----------
    mean : int, float or Fraction
        Positive, at most 10^6; a float means the rational it is.
    rng : None, int, numpy Generator or RandomSource
        None for draws that protect; anything else simulates.

    Returns
    -------
    int

    Examples
    --------
    >>> [poisson(3, rng=seed) for seed in range(5)]
    [3, 3, 2, 1, 6]
    """
    exact = fraction("mean", mean, "pass how many runs are expected")
    if exact > 10**6:
        refuse("mean", "be at most 10**6", mean, "so many runs take too long")

    def first(bits: int) -> tuple[int, int, int]:
        work = bits + math.ceil(exact * Fraction(3, 2))  # 2^(3/2) > e: so many bits survive
        return *exp_bounds(exact, work), work

    return _draw(first, lambda k: exact / (k + 1), 0, rng)


def _first_negative_binomial(eta: Fraction, gamma: Fraction, bits: int) -> tuple[int, int, int]:
    """Bound the first probability, with about so many significant bits; also return where the point is."""
    hazard = -math.log(gamma) if gamma <= Fraction(1, 2) else -math.log1p(-float(1 - gamma))
    exponent = abs(eta) * Fraction(hazard)  # t is exp(-exponent): 1 - t loses bits if it is small, t if large
    lost = max(0, exponent.denominator.bit_length() - exponent.numerator.bit_length())
    work = bits + lost + math.ceil(3 * exponent) + 64
    one = 1 << work
    low, high = log_bounds(1 / gamma, work)
    if not eta:
        top = (1 - gamma) * one * one
        return math.floor(top / high), math.ceil(top / low), work
    smallest = exp_bounds(abs(eta) * Fraction(high, one), work)[0]
    largest = exp_bounds(abs(eta) * Fraction(low, one), work)[1]
    top = (1 - gamma) * abs(eta) * one
    if eta > 0:
        return math.floor(top * smallest / (one - smallest)), math.ceil(top * largest / (one - largest)), work
    return math.floor(top * one / (one - smallest)), math.ceil(top * one / (one - largest)), work


def _sums(start: tuple[int, int, int], quotient: Callable[[int], Fraction], k: int) -> Iterator[Bounds]:
    """Yield bounds on the sums of the probabilities, in units of two to the minus ``start[2]``."""
    low, high, _ = start
    smallest = largest = 0
    while True:
        smallest, largest = smallest + low, largest + high
        yield smallest, largest
        ratio = quotient(k)
        low = low * ratio.numerator // ratio.denominator
        high = -(-high * ratio.numerator // ratio.denominator)
        k += 1


def _draw(
    first: Callable[[int], tuple[int, int, int]], quotient: Callable[[int], Fraction], start: int, rng: Rng
) -> int:
    source = random_source(rng)
    uniform = UniformBits(int(source.words(1)[0]), 64, source)
    while True:
        bounds = first(uniform.width + _SPARE)
        unit = bounds[2] - uniform.width  # of the uniform's last bit
        for k, (low, high) in enumerate(_sums(bounds, quotient, start), start):
            if (uniform.value + 1) << unit <= low:
                return k
            if uniform.value << unit < high:
                break
        uniform.extend()
