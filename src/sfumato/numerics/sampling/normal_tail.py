"""The tail of the normal distribution as certified fixed-point integers, and coins with that probability."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sfumato.numerics.certified.fixed_point import exp_bounds
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import UniformBits

__all__ = ["flip_normal", "tail_bounds"]

Bounds: TypeAlias = tuple[int, int]
_GUARD: Final = 40
_MARGIN: Final = 2.0**-40
"""More than the error of scipy's ndtr (a few 2^-53), of its argument and of a uniform's float together."""


def tail_bounds(x: Fraction, bits: int) -> Bounds:
    r"""Bound ``2^bits P(Z >= x)`` for a standard normal Z by integers.

    Parameters
    ----------
    x : Fraction
    bits : int
        Fixed-point position, at least 1.

    Returns
    -------
    tuple of int
        Lower and upper bound; they differ by at most 2.

    Notes
    -----
    For :math:`x \ge 0` it is :math:`\frac12 - \varphi(x) \sum_n x^{2n+1}/(2n+1)!!`, whose terms are carried
    rounded down and rounded up; from where they fall by half each, the rest is below the last. The sum is
    below :math:`2 e^{x^2/2}`, for which there are extra bits. Beyond :math:`x^2/2 = \text{bits}` the tail is
    below :math:`2^{-\text{bits}}`.

    Examples
    --------
    >>> tail_bounds(Fraction(1), 20)
    (166362, 166363)
    """
    if x < 0:
        low, high = tail_bounds(-x, bits)
        return (1 << bits) - high, (1 << bits) - low
    exponent = x * x / 2
    if exponent > bits:
        return 0, 1
    work = bits + _GUARD + 2 * int(exponent)
    sum_low, sum_high = _series(x, work)
    exp_low, exp_high = exp_bounds(exponent, work)
    root_low, root_high = _root_of_two_pi(work)
    half = 1 << (work - 1)
    low = half + (-(sum_high * exp_high) // root_low)
    high = half - sum_low * exp_low // root_high
    return max(0, low >> (work - bits)), -(-high >> (work - bits))


def _series(x: Fraction, bits: int) -> Bounds:
    """Bound ``2^bits`` times the sum of ``x^(2n+1) / (2n+1)!!``."""
    square = x * x
    low = (x.numerator << bits) // x.denominator
    high = low + 1
    sum_low, sum_high, n = low, high, 0
    while low or 2 * square > 2 * n + 3:
        n += 1
        down, up = square.numerator, square.denominator * (2 * n + 1)
        low, high = low * down // up, -(-high * down // up)
        sum_low, sum_high = sum_low + low, sum_high + high
    return sum_low, sum_high + high + 1


@lru_cache(maxsize=8)
def _root_of_two_pi(bits: int) -> Bounds:
    """Bound ``2^bits sqrt(2 pi)``, with pi by Machin's formula."""
    work = bits + 16
    low_5, high_5 = _arctan(5, work)
    low_239, high_239 = _arctan(239, work)
    low, high = 16 * low_5 - 4 * high_239, 16 * high_5 - 4 * low_239
    return isqrt(2 * low << work) >> 16, (isqrt(2 * high << work) >> 16) + 1


def _arctan(m: int, bits: int) -> Bounds:
    """Bound ``2^bits arctan(1 / m)``: each of n terms is off by less than one, the rest by less than one."""
    power, total, n = (1 << bits) // m, 0, 0
    while power:
        total += (-1) ** n * (power // (2 * n + 1))
        power, n = power // (m * m), n + 1
    return total - 2 * n - 2, total + 2 * n + 2


def flip_normal(
    distances: NDArray[np.float64],
    exact: Callable[[int], tuple[Fraction, Fraction]],
    extend: Callable[[], None],
    source: RandomSource,
) -> NDArray[np.bool_]:
    """Flip one coin for each distance x, heads with probability ``P(Z >= x)``, exactly.

    Parameters
    ----------
    distances : float64 array of shape (n,)
        Each right to a relative 2^-50 and an absolute 2^-50 together.
    exact : callable
        From an index to rational bounds on that distance.
    extend : callable
        Makes these bounds narrower.
    source : RandomSource

    Returns
    -------
    bool array of shape (n,)

    Notes
    -----
    About one coin in ``2^39`` is left open by floats, and is decided with certified integers.
    """
    words = source.words(distances.size)
    gap = words.astype(np.float64) * 2.0**-64 - ndtr(-distances)
    heads = gap < 0
    for at in np.flatnonzero(np.abs(gap) <= _MARGIN):
        heads[at] = _below(UniformBits(int(words[at]), 64, source), int(at), exact, extend)
    return np.asarray(heads)


def _below(
    uniform: UniformBits,
    at: int,
    exact: Callable[[int], tuple[Fraction, Fraction]],
    extend: Callable[[], None],
) -> bool:
    while True:
        smallest, largest = exact(at)
        bits = uniform.width + _GUARD
        if (uniform.value + 1) << _GUARD <= tail_bounds(largest, bits)[0]:
            return True
        if uniform.value << _GUARD >= tail_bounds(smallest, bits)[1]:
            return False
        uniform.extend()
        extend()
