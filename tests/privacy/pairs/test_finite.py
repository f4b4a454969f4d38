"""Logarithms of rationals that no float holds."""

from __future__ import annotations

from fractions import Fraction

import mpmath

from sfumato.privacy.pairs.finite import log_of


def test_logs_of_rationals_beyond_all_floats_keep_their_digits() -> None:
    """The integers may be far longer than their ratio is large: a difference of their logs loses digits."""
    long = 3**200_000
    values = [
        Fraction(long, long * 2**1100 + 1),
        Fraction(long, long * 2**1101 + 1),
        Fraction(long, long * 3**720 + 1),
        Fraction(long * 5**600 + 1, long),
        Fraction(long, 7 * long + 2),
        Fraction(1, 3**700),
        Fraction(10**9 + 1, 10**9),
    ]
    with mpmath.workdps(40):
        for value in values:
            power = value.numerator.bit_length() - value.denominator.bit_length()
            rest = value / Fraction(2) ** power
            digits = Fraction(round(rest * 2**130), 2**130)
            exact = power * mpmath.log(2) + mpmath.log(mpmath.mpf(digits.numerator) / digits.denominator)
            assert abs((mpmath.mpf(log_of(value)) - exact) / exact) <= 16 * 2.0**-53
