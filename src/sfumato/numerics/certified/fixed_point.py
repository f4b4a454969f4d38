"""Exponentials and tail probabilities as certified fixed-point integers, to any number of bits.

Everything is Python's integers: a lower and an upper bound are carried, products are floored or ceiled
accordingly, and a result is used only where both bounds agree. Nothing here rests on floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias

__all__ = [
    "Tail",
    "exp_bounds",
    "gaussian_magnitude",
    "laplace_magnitude",
    "log_bounds",
    "poisson_magnitude",
    "polya_magnitude",
    "thresholds",
]

Bounds: TypeAlias = tuple[int, int]
Tail: TypeAlias = Callable[[int], Iterator[Bounds]]
"""From a number of bits p, bounds on ``2^p P(K >= k)`` for k = 1, 2, ... without end."""


def exp_bounds(x: Fraction, bits: int) -> Bounds:
    """Bound ``2^bits exp(-x)`` by integers that differ by at most 2.

    Parameters
    ----------
    x : Fraction
        At least 0.
    bits : int
        Fixed-point position, at least 1.

    Returns
    -------
    tuple of int
        Lower and upper bound.

    Notes
    -----
    ``exp(-x) = exp(-y)^(2^h)`` with ``y = x / 2^h < 2^-7``. Each of the n terms of the series of exp(-y) and
    the floor of y are off by less than 3 units of the working precision, and the terms after the last
    nonzero one by less than 4 together. Squaring h times makes ``3 n + 8`` units at most 2^h times
    as many, and h + 16 extra bits hold them.

    Examples
    --------
    >>> exp_bounds(Fraction(1), 20)
    (385749, 385750)
    """
    if not x:
        return 1 << bits, 1 << bits
    if x > bits:
        return 0, 1
    halvings = int(x).bit_length() + 7
    work = bits + halvings + 16
    y = (x.numerator << (work - halvings)) // x.denominator
    term = total = 1 << work
    n = 0
    while term:
        n += 1
        term = (term * y >> work) // n
        total += -term if n % 2 else term
    slack = 3 * n + 8
    low, high = total - slack, total + slack
    for _ in range(halvings):
        low, high = low * low >> work, -(-high * high >> work)
    return low >> (work - bits), -(-high >> (work - bits))


def log_bounds(x: Fraction, bits: int) -> Bounds:
    """Bound ``2^bits log(x)`` by integers that differ by at most 2.

    Parameters
    ----------
    x : Fraction
        At least 1.
    bits : int
        Fixed-point position, at least 1.

    Returns
    -------
    tuple of int
        Lower and upper bound.

    Notes
    -----
    ``log(2^e m) = 2 e artanh(1/3) + 2 artanh((m - 1) / (m + 1))`` with m in [1, 2); `_artanh` bounds both
    from below by a known number of units.

    Examples
    --------
    >>> log_bounds(Fraction(10), 20)
    (2414435, 2414436)
    """
    power = x.numerator.bit_length() - x.denominator.bit_length()
    power -= x < Fraction(2) ** power
    mantissa = x / 2**power
    work = bits + 32 + power.bit_length()
    third, slack = _artanh(Fraction(1, 3), work)
    rest, more = _artanh((mantissa - 1) / (mantissa + 1), work)
    low = 2 * (power * third + rest)
    return low >> (work - bits), -(-(low + 2 * (power * slack + more)) >> (work - bits))


def _artanh(z: Fraction, bits: int) -> Bounds:
    """Return a lower bound on ``2^bits artanh(z)`` for z in [0, 1/3], and by how much it may be too low."""
    term = (z.numerator << bits) // z.denominator
    square = term * term >> bits
    total, n = 0, 1
    # Odd powers of z are too low by at most e/9 + 4 where the one before is by e: by less than 5.
    while term:
        total += term // n
        term, n = term * square >> bits, n + 2
    return total, 3 * n + 12


def laplace_magnitude(scale: Fraction, *, folded: bool) -> Tail:
    """Return the tail of the discrete Laplace distribution's magnitude.

    Parameters
    ----------
    scale : Fraction
        Of the distribution.
    folded : bool
        True for ``|X|``, whose tail is ``2 q^k / (1 + q)`` with ``q = exp(-1 / scale)``; False for the
        geometric distribution on k >= 0 with the same ratio, whose tail is ``q^k``.
    """

    def tail(bits: int) -> Iterator[Bounds]:
        one = 1 << bits
        ratio_low, ratio_high = exp_bounds(1 / scale, bits)
        low, high = ratio_low, ratio_high
        if folded:
            # 2 q / (1 + q) grows with q.
            low = (ratio_low << (bits + 1)) // (one + ratio_low)
            high = -(-(ratio_high << (bits + 1)) // (one + ratio_high))
        while True:
            yield low, high
            low, high = low * ratio_low >> bits, -(-high * ratio_high >> bits)

    return tail


def _gaussian_weights(stddev: Fraction, bits: int) -> tuple[list[int], list[int], int]:
    """Bounds on ``exp(-j^2 / (2 s^2))``, j = 0, 1, ..., until they vanish, and one on the rest's sum."""
    one = 1 << bits
    rate = 1 / (stddev * stddev)
    step_low, step_high = exp_bounds(rate, bits)
    ratio_low, ratio_high = exp_bounds(rate / 2, bits)
    lows, highs = [one], [one]
    low = high = one
    # Quotients fall, so from the last retained weight on, the rest is at most a geometric series.
    while low:
        low, high = low * ratio_low >> bits, -(-high * ratio_high >> bits)
        lows.append(low)
        highs.append(high)
        ratio_low, ratio_high = ratio_low * step_low >> bits, -(-ratio_high * step_high >> bits)
    return lows, highs, -(-high * ratio_high // (one - ratio_high))


def gaussian_magnitude(stddev: Fraction, *, folded: bool) -> Tail:
    """Return the tail of the discrete Gaussian distribution's magnitude.

    Parameters
    ----------
    stddev : Fraction
        The distribution's parameter.
    folded : bool
        True for ``|X|``; False for the distribution on k >= 0 with weights ``exp(-k^2 / (2 stddev^2))``, zero
        included at its full weight.
    """

    def tail(bits: int) -> Iterator[Bounds]:
        lows, highs, rest = _gaussian_weights(stddev, bits)
        sums, low, high = [], 0, rest
        for j in range(len(lows) - 1, 0, -1):
            low, high = low + lows[j], high + highs[j]
            sums.append((low, high))
        zero = lows[0] // 2 if folded else lows[0]
        smallest, largest = zero + low, zero + high
        for low, high in reversed(sums):
            yield (low << bits) // largest, -(-(high << bits) // smallest)
        while True:
            yield 0, -(-(rest << bits) // smallest)

    return tail


def polya_magnitude(scale: Fraction, parts: int) -> Tail:
    r"""Return the tail of the distribution of which so many independent draws add up to a geometric number.

    Parameters
    ----------
    scale : Fraction
        The sum k has mass proportional to ``exp(-k / scale)``, k >= 0.
    parts : int
        How many draws, n; at least 1.

    Notes
    -----
    It is Pólya's distribution (negative binomial with a real number of successes) of :math:`r = 1/n` and
    :math:`q = e^{-1/s}`: :math:`f(0) = (1-q)^r` and :math:`f(k+1) = f(k)\, q\, (r+k)/(k+1)`. Its generating
    function is the n-th root of the geometric one, :math:`((1-q)/(1-qz))^{1/n}`. Every product below is
    rounded down in the lower bounds and up in the upper ones; the tail is 1 less the masses before it.
    """

    def tail(bits: int) -> Iterator[Bounds]:
        work = bits + 64
        one = 1 << work
        ratio_low, ratio_high = exp_bounds(1 / scale, work)
        smallest = log_bounds(Fraction(one, one - ratio_low), work)[0]
        largest = log_bounds(Fraction(one, one - ratio_high), work)[1]
        low = exp_bounds(Fraction(largest, parts << work), work)[0]
        high = exp_bounds(Fraction(smallest, parts << work), work)[1]
        tail_low, tail_high, k = one - high, one - low, 0
        while True:
            yield max(tail_low >> 64, 0), -(-tail_high >> 64)
            up, down = 1 + k * parts, (k + 1) * parts << work
            low, high = low * ratio_low * up // down, -(-high * ratio_high * up // down)
            tail_low, tail_high, k = tail_low - high, tail_high - low, k + 1

    return tail


def poisson_magnitude(mean: Fraction) -> Tail:
    """Return the tail of the Poisson distribution.

    Parameters
    ----------
    mean : Fraction
        Positive.

    Notes
    -----
    The first mass is ``exp(-mean)``, above ``2^(-3 mean / 2)``: so many more bits are carried. Each later one
    is rounded down in the lower bounds and up in the upper ones; the tail is 1 less the masses before it.
    """

    def tail(bits: int) -> Iterator[Bounds]:
        spare = 64 + int(mean * 3 / 2) + 1
        one = 1 << (bits + spare)
        low, high = exp_bounds(mean, bits + spare)
        tail_low, tail_high, k = one - high, one - low, 0
        while True:
            yield max(tail_low >> spare, 0), -(-tail_high >> spare)
            k += 1
            up, down = mean.numerator, mean.denominator * k
            low, high = low * up // down, -(-high * up // down)
            tail_low, tail_high = tail_low - high, tail_high - low

    return tail


def thresholds(tail: Tail, bits: int) -> list[int]:
    """Return ``floor(2^bits P(K >= k))`` for k = 1, 2, ..., up to the last that is not 0.

    Parameters
    ----------
    tail : callable
        One of this module's tails.
    bits : int
        At least 1.

    Returns
    -------
    list of int
        Not increasing.

    Notes
    -----
    Both bounds must agree on every entry; else all are computed again with more guard bits. That ends as long
    as no ``2^bits P(K >= k)`` is an integer. For the Laplace distribution none is, since q is transcendental
    (Lindemann); for the others none is known, and were there one, no wrong table would be returned.

    Examples
    --------
    >>> thresholds(laplace_magnitude(Fraction(1), folded=True), 4)
    [8, 3, 1]
    """
    guard = 96
    while True:
        found: list[int] = []
        for low, high in tail(bits + guard):
            floor = low >> guard
            if high >> guard != floor:
                break
            if not floor:
                return found
            found.append(floor)
        guard *= 2
