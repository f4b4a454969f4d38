"""Floats as the decimals that people write, against exact rational arithmetic."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sfumato.numerics.decimals import (
    DecimalSum,
    at_most_decimal,
    decimal_add_up,
    decimal_down,
    decimal_of,
    decimal_part,
    decimal_sub_down,
    decimal_sum_up,
    decimal_up,
    outward,
)

FLOATS = st.floats(0.0, 1e300)
EXACT = st.fractions(0, 10**9) | FLOATS.map(Fraction)


def next_up(x: float) -> Fraction:
    return decimal_of(math.nextafter(x, math.inf))


def next_down(x: float) -> Fraction:
    return decimal_of(math.nextafter(x, -math.inf))


@given(EXACT)
def test_rounding_is_outward_and_to_the_next_decimal(exact: Fraction) -> None:
    upper, lower = decimal_up(exact), decimal_down(exact)
    assert next_down(upper) < exact <= decimal_of(upper)
    assert decimal_of(lower) <= exact < next_up(lower)
    assert min(decimal_of(outward(exact)), Fraction(outward(exact))) >= exact
    assert outward(exact) <= math.nextafter(upper, math.inf)


@given(FLOATS, FLOATS)
def test_sums_and_differences_are_those_of_decimals(x: float, y: float) -> None:
    total, exact = decimal_add_up(x, y), decimal_of(x) + decimal_of(y)
    assert exact <= decimal_of(total) <= exact * (1 + Fraction(1, 10**39))
    assert next_down(float(total)) < decimal_of(total) <= decimal_of(float(total))
    assert decimal_of(decimal_sum_up([x, y])) >= exact
    low, high = sorted((x, y))
    left = decimal_sub_down(high, low)
    assert decimal_of(left) <= decimal_of(high) - decimal_of(low) < next_up(left)
    assert (x < y) == (decimal_of(x) < decimal_of(y))


@given(FLOATS, st.integers(1, 9))
def test_parts_and_neighbors_are_at_most_the_decimal(x: float, parts: int) -> None:
    assert decimal_of(decimal_part(x, parts)) * parts <= decimal_of(x)
    below = at_most_decimal(x)
    assert Fraction(below) <= decimal_of(x) < Fraction(math.nextafter(below, math.inf))


@given(st.integers(1, 10**15 - 1), st.integers(-30, 30))
def test_a_number_of_fifteen_digits_is_itself(digits: int, exponent: int) -> None:
    exact = Fraction(digits) * Fraction(10) ** exponent
    assert decimal_of(float(exact)) == exact
    assert decimal_up(exact) == decimal_down(exact) == float(exact)


def test_ten_thousand_parts_of_many_digits_are_exactly_the_whole() -> None:
    part, total = 2.0**-20, 0.0
    for _ in range(10_000):
        total = decimal_add_up(total, part)
    assert total == 10_000 * part
    more = decimal_add_up(total, 1e-30)
    assert isinstance(more, DecimalSum)
    assert more > total == decimal_sub_down(more, 1e-30)
    assert pickle.loads(pickle.dumps(more)) == more != decimal_add_up(more, 1e-40)
    assert more != float(more)


def test_what_is_beyond_all_floats_is_infinite() -> None:
    huge = Fraction(10) ** 400
    assert decimal_up(huge) == decimal_up(math.inf) == decimal_add_up(1.0, math.inf) == math.inf
    assert decimal_down(huge) < math.inf == decimal_sum_up([1.0, math.inf])
    assert outward(math.inf) == decimal_sub_down(math.inf, 1.0) == decimal_down(math.inf) == math.inf
