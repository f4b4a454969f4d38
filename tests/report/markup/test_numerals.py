"""Numerals: what is read is on the safe side of what was computed."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sfumato.report.markup.numerals import Numerals
from tests.cases import cases

MINUS = "\N{MINUS SIGN}"
ENGLISH, GERMAN = Numerals("en"), Numerals("de")
finite = st.floats(allow_nan=False, allow_infinity=False)


def read(text: str) -> Fraction:
    mantissa, _, power = text.replace(MINUS, "-").replace(",", "").partition("·10^")
    return Fraction(mantissa) * Fraction(10) ** int(power or 0)


@given(finite, finite, finite)
def test_an_interval_holds_its_number_when_it_is_read(one: float, other: float, third: float) -> None:
    low, value, high = sorted((one, other, third))
    assert read(ENGLISH.down(low)) <= Fraction(repr(low))
    assert read(ENGLISH.up(high)) >= Fraction(repr(high))
    assert read(ENGLISH.down(low)) <= read(ENGLISH.nearest(value)) <= read(ENGLISH.up(high))
    width = abs(Fraction(repr(value))) / 1000
    assert abs(read(ENGLISH.nearest(value)) - Fraction(repr(value))) <= width


@given(st.floats(0, 1))
def test_chances_are_on_the_safe_side(chance: float) -> None:
    up, down = read(ENGLISH.chance_up(chance)), read(ENGLISH.chance_down(chance))
    assert down <= 100 * Fraction(repr(chance)) <= up <= 100
    assert (up == 100) == (chance == 1)
    assert up - down <= Fraction(1, 5)


@cases(
    "value, english, german",
    [
        (1234567, "1,234,567", "1.234.567"),
        (-81, f"{MINUS}81", f"{MINUS}81"),
        (0.1, "0.1", "0,1"),
        (1e-7, f"1·10^{MINUS}7", f"1·10^{MINUS}7"),
        (5e-324, f"5·10^{MINUS}324", f"5·10^{MINUS}324"),
        (1.7976931348623157e308, "1.798·10^308", "1,798·10^308"),
        (-0.0, "0", "0"),
        (math.inf, "∞", "∞"),
        (-math.inf, f"{MINUS}∞", f"{MINUS}∞"),
        (math.nan, "NaN", "NaN"),
    ],
)
def test_numbers_of_all_sizes(value: float, english: str, german: str) -> None:
    assert (ENGLISH.nearest(value), GERMAN.nearest(value)) == (english, german)
    if value != 1.7976931348623157e308:  # of more digits than are written
        assert ENGLISH.up(value) == ENGLISH.down(value) == english
