"""Exact rational arithmetic: logarithms to base two, square roots rounded up, simplest fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from sfumato.numerics.decimals import decimal_of

__all__ = [
    "Number",
    "ceil_log2",
    "drawn_epsilon",
    "floor_log2",
    "plain",
    "power_of_two",
    "simplest_between",
    "sqrt_up",
]

Number: TypeAlias = int | float | Fraction
"""A parameter; floats are taken as the exact rationals that they are."""


def drawn_epsilon(epsilon: Number) -> Fraction:
    """Return the epsilon that a choice is drawn with: no more than the float, nor than its decimal.

    Examples
    --------
    >>> drawn_epsilon(0.1), drawn_epsilon(0.3) == Fraction(0.3)
    (Fraction(1, 10), True)
    """
    return min(Fraction(epsilon), decimal_of(epsilon)) if isinstance(epsilon, float) else Fraction(epsilon)


def floor_log2(value: Fraction) -> int:
    """Return the largest k with ``2**k <= value``, for a positive value.

    Examples
    --------
    >>> floor_log2(Fraction(9, 2)), floor_log2(Fraction(1, 3))
    (2, -2)
    """
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if power_of_two(exponent) <= value else exponent - 1


def ceil_log2(value: Fraction) -> int:
    """Return the smallest k with ``2**k >= value``, for a positive value.

    Examples
    --------
    >>> ceil_log2(Fraction(4)), ceil_log2(Fraction(9, 2))
    (2, 3)
    """
    exponent = floor_log2(value)
    return exponent if power_of_two(exponent) == value else exponent + 1


def power_of_two(exponent: int) -> Fraction:
    """Return ``2**exponent`` exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def sqrt_up(value: Fraction) -> Fraction:
    """Return a rational at or above the square root, by at most 2**-64 relative; exact for perfect squares.

    Examples
    --------
    >>> sqrt_up(Fraction(9, 4)), float(sqrt_up(Fraction(2)) ** 2) >= 2
    (Fraction(3, 2), True)
    """
    # sqrt(n/d) = sqrt(n*d)/d; the shift leaves at least 64 bits after the leading one.
    shift = 64
    product = (value.numerator * value.denominator) << (2 * shift)
    root = math.isqrt(product)
    root += root * root < product
    return Fraction(root, value.denominator << shift)


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of smallest denominator in ``[low, high]``, for ``0 < low <= high``.

    Examples
    --------
    >>> simplest_between(Fraction(3, 10), Fraction(2, 5))
    Fraction(1, 3)
    """
    # The continued fractions of low and high agree up to the term where a whole number fits in between.
    terms: list[int] = []
    while True:
        whole = math.ceil(low)
        if whole <= high:
            answer = Fraction(whole)
            break
        terms.append(whole - 1)
        low, high = 1 / (high - terms[-1]), 1 / (low - terms[-1])
    for term in reversed(terms):
        answer = term + 1 / answer
    return answer


def plain(value: Fraction) -> Number:
    """Return the same number as an int or a float where one is equal to it, for a readable ``repr``.

    Examples
    --------
    >>> plain(Fraction(4, 2)), plain(Fraction(5, 2)), plain(Fraction(1, 3))
    (2, 2.5, Fraction(1, 3))
    """
    if value.denominator == 1:
        return value.numerator
    try:
        nearest = float(value)
    except OverflowError:
        return value
    return nearest if Fraction(nearest) == value else value
