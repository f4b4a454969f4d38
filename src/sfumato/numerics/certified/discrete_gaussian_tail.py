"""Certified sums of ``f(j) = exp(-j^2 / (2 s^2))`` over integers j: the discrete Gaussian's tail and whole.

`tail` is relative to its first term, so that its relative accuracy does not depend on where it starts.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import fraction_down, fraction_up

__all__ = ["mills_ratio", "normaliser", "tail"]

DIRECT = 128
"""Standard deviations up to this are summed term by term, larger ones by Euler and Maclaurin's formula."""

_ORDER = 5
_TINY = 2.0**-53
_STEEP = Fraction(2**1000)
"""A rate at which the second term counts for nothing."""
_FAR = 1e20
"""Standard deviations beyond which powers of them may leave the range of floats."""
# B_2k / (2k)! for k = 1..5.
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)


@cache
def _hermite(order: int) -> tuple[int, ...]:
    """Coefficients of the probabilists' Hermite polynomial, lowest power first."""
    before, now = [1], [0, 1]
    if order == 0:
        return (1,)
    for n in range(1, order):
        step = [0, *now]
        for i, c in enumerate(before):
            step[i] -= n * c
        before, now = now, step
    return tuple(now)


def mills_ratio(z: float) -> Interval:
    """Bound Mills' ratio, the integral of ``exp((z^2 - y^2) / 2)`` over y from z to infinity.

    Parameters
    ----------
    z : float
        Where the tail starts, at least 0.

    Returns
    -------
    Interval
        Relative width below 1e-11, and below 1e-13 from z = 2 on.

    Notes
    -----
    From z = 2 on: Laplace's continued fraction ``1 / (z + 1 / (z + 2 / (z + ...)))``; cut after any level it
    is below the ratio or above it, alternately, so two neighbouring cuts enclose it (Abramowitz and Stegun
    1964, 26.2.14). Every step adds and divides positive numbers, so n levels lose at most 2 n roundings.
    Below 2: ``sqrt(pi / 2) exp(z^2 / 2)`` minus the series of ``z^(2n+1) / (2n+1)!!``, whose terms are
    positive and, after the 40th, fall by more than half each, so the rest is below the last term.
    """
    if z < 2:
        term = total = z
        for n in range(1, 41):
            term *= z * z / (2 * n + 1)
            total += term
        whole = math.sqrt(math.pi / 2) * math.exp(z * z / 2)
        slack = 128 * _TINY * whole + term
        return Interval(whole - total - slack, whole - total + slack)
    levels = 20 + math.ceil((16 / z) ** 2)
    bounds = []
    for depth in (levels, levels + 1):
        value = z
        for n in range(depth, 0, -1):
            value = z + n / value
        bounds.append(1 / value)
    return Interval(
        min(bounds) * (1 - 2 * (levels + 4) * _TINY), max(bounds) * (1 + 2 * (levels + 4) * _TINY)
    )


def _direct(start: int, stddev: Fraction) -> Interval:
    """Sum f(j) / f(start) over j >= start >= 0 term by term."""
    variance = stddev * stddev
    inverse, rate = (float(min(top / variance, _STEEP)) for top in (Fraction(1), Fraction(start)))
    # The exponent is convex and 46 at term `count`, so from there on terms fall like exp(-46 i / count).
    count = 1 + math.ceil(46 / max(rate, math.sqrt(46 * inverse / 2)))
    i = np.arange(count, dtype=np.float64)
    total = float(np.exp(-(rate * i + i * i * (inverse / 2))).sum())
    slack = total * (count + 128) * _TINY
    return Interval(max(1.0, total - slack), total + slack + math.exp(-45.9) * (1 + count / 46))


def _euler_maclaurin(start: int, stddev: Fraction) -> Interval:
    """Sum f(j) / f(start) over j >= start >= 0 for a large standard deviation.

    With z = start / s, Mills' ratio R and the derivatives ``f^(n) = (-1)^n s^-n He_n(z) f`` the sum is
    ``s R(z) + 1/2 + sum_k B_2k / (2k)! s^(1-2k) He_(2k-1)(z)`` plus a remainder of at most ``|B_2m| / (2m)!``
    times the integral of ``|f^(2m)|`` (Euler-Maclaurin with remainder, m = 5). The integral is bounded by
    that of the polynomial with absolute coefficients, integrated by parts:
    ``J_n = z^(n-1) + (n-1) J_(n-2)``, from ``J_0 = R(z)`` and ``J_1 = 1``.
    """
    scale = float(stddev)
    z = float(Fraction(start) / stddev)
    ratio = mills_ratio(z)
    if z > _FAR:
        # Between the integral from the first term on and the same with the first term added.
        return Interval(scale * ratio.lower * (1 - 8 * _TINY), (scale * ratio.upper + 1) * (1 + 8 * _TINY))
    total = magnitude = 0.5
    for k, weight in enumerate(_BERNOULLI, start=1):
        powers = [abs(weight) * scale ** (1 - 2 * k) * z**n for n in range(2 * k)]
        coefficients = _hermite(2 * k - 1)
        term = sum(c * p for c, p in zip(coefficients, powers, strict=True))
        total += math.copysign(1, weight) * term
        magnitude += sum(abs(c) * p for c, p in zip(coefficients, powers, strict=True))
    moments = [ratio.upper, 1.0]
    for n in range(2, 2 * _ORDER + 1):
        moments.append(z ** (n - 1) + (n - 1) * moments[n - 2])
    curve = sum(abs(c) * m for c, m in zip(_hermite(2 * _ORDER), moments, strict=True))
    slack = 1.01 * abs(_BERNOULLI[-1]) * scale ** (1 - 2 * _ORDER) * curve + 64 * _TINY * magnitude
    # z is off by one rounding, and R(z) by no more: z |R'| / R = z / R - z^2 < 1, as R > z / (1 + z^2).
    wide = 8 * _TINY
    return Interval(
        scale * ratio.lower * (1 - wide) + total - slack, scale * ratio.upper * (1 + wide) + total + slack
    )


def tail(start: int, stddev: Fraction) -> Interval:
    """Bound the sum of ``f(j) / f(start)`` over all integers ``j >= start``.

    Parameters
    ----------
    start : int
        First term, at least 0.
    stddev : Fraction
        Scale s of the Gaussian, positive.

    Returns
    -------
    Interval
        Relative width below 1e-11; below 1/50 where the first term is beyond 1e20 standard deviations, and
        its logarithm below -1e39.

    Notes
    -----
    Terms fall by ``exp(-start / s^2)`` or faster: from ``s^2 / 64`` on, at most 3,000 of them matter.
    """
    if stddev <= DIRECT or 64 * start > stddev**2:
        return _direct(start, stddev)
    return _euler_maclaurin(start, stddev)


def normaliser(stddev: Fraction) -> Interval:
    """Bound the sum of f(j) over all integers.

    Notes
    -----
    From s = 1 on, by Poisson summation, it is ``s sqrt(2 pi) (1 + 2 sum_n exp(-2 pi^2 n^2 s^2))``, whose
    terms after the first are below 1e-25 of it (beyond s = 8 those of 8 bound them, below 1e-500); below 1,
    it is summed directly.
    """
    if stddev >= 1:
        width = Interval(fraction_down(stddev), fraction_up(stddev))
        factor = math.sqrt(2 * math.pi) * (1 + 2 * math.exp(-2 * (math.pi * min(width.lower, 8.0)) ** 2))
        return Interval(width.lower * factor * (1 - 16 * _TINY), width.upper * factor * (1 + 16 * _TINY))
    half = _direct(0, stddev)
    return Interval(max(1.0, (2 * half.lower - 1) * (1 - 4 * _TINY)), (2 * half.upper - 1) * (1 + 4 * _TINY))
