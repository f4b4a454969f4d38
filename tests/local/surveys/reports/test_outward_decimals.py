"""Decimals that are at or beyond a value, at every scale."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sfumato.local.surveys.reports.outward_decimals import decimal_above, decimal_below


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 6))
def test_they_are_the_nearest_ones_on_their_side(value: float, places: int) -> None:
    lower, upper = (Fraction(text(value, places)) for text in (decimal_below, decimal_above))
    assert lower <= Fraction(value) <= upper
    assert upper - lower <= Fraction(1, 10**places)
    assert len(decimal_below(value, places).partition(".")[2]) == places


def test_what_is_not_finite_is_named() -> None:
    texts = decimal_below(-math.inf), decimal_above(math.inf), decimal_above(math.nan)
    assert texts == ("-inf", "inf", "nan")
