"""Outward rounding against exact rationals and mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sfumato.numerics import rounding as r
from sfumato.numerics.interval import Interval

REALS = st.floats(allow_nan=False, allow_infinity=False)
EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
}
ELEMENTARY = {"exp": mp.exp, "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p}


def encloses(low: float, exact: Fraction, high: float) -> bool:
    return (low == -math.inf or Fraction(low) <= exact) and (high == math.inf or exact <= Fraction(high))


@pytest.mark.parametrize("name", EXACT)
@given(x=REALS, y=REALS)
@example(x=1.7e308, y=1.7e308)
@example(x=-1.7e308, y=1.7e308)
@example(x=5e-324, y=5e-324)
@example(x=0.1, y=0.2)
@example(x=1e308, y=-1e-308)
def test_arithmetic_is_the_closest_enclosure(name: str, x: float, y: float) -> None:
    assume(name != "div" or y)
    low, high = getattr(r, name + "_down")(x, y), getattr(r, name + "_up")(x, y)
    exact = EXACT[name](Fraction(x), Fraction(y))
    assert encloses(low, exact, high)
    if math.isinf(low) or math.isinf(high):
        return
    # Nothing closer would do, and what is a float stays as it is.
    assert high in (low, math.nextafter(low, math.inf))
    assert (low == high) == (exact == Fraction(low))


@given(x=st.floats(0, allow_infinity=False, allow_nan=False))
def test_square_root(x: float) -> None:
    low, high = r.sqrt_down(x), r.sqrt_up(x)
    assert Fraction(low) ** 2 <= Fraction(x) <= Fraction(high) ** 2
    assert high in (low, math.nextafter(low, math.inf))


@given(x=st.fractions())
@example(x=Fraction(10**400))
@example(x=Fraction(1, 10**400))
def test_fractions(x: Fraction) -> None:
    low, high = r.fraction_down(x), r.fraction_up(x)
    assert encloses(low, x, high)
    assert high == math.inf or high in (low, math.nextafter(low, math.inf))


@pytest.mark.parametrize("name", ELEMENTARY)
@given(x=st.one_of(REALS, st.floats(-50, 50), st.floats(-1e-6, 1e-6)))
@example(x=0.0)
@example(x=1.0)
@example(x=709.9)
@example(x=-745.2)
@example(x=5e-324)
def test_elementary_functions(name: str, x: float) -> None:
    assume(name != "log" or x >= 0)
    assume(name != "log1p" or x >= -1)
    low, high = getattr(r, name + "_down")(x), getattr(r, name + "_up")(x)
    with mp.workdps(60):
        truth = mp.ninf if (name, x) in (("log", 0), ("log1p", -1)) else ELEMENTARY[name](mp.mpf(x))
        assert mp.mpf(low) <= truth <= mp.mpf(high)
    if math.isfinite(low) and math.isfinite(high):
        assert high - low <= 24 * math.ulp(max(abs(low), abs(high)))


def test_exact_values_stay_exact() -> None:
    assert r.exp_up(0) == r.exp_down(0) == 1
    assert r.log_up(1) == r.log_down(1) == 0
    assert r.expm1_up(0) == r.log1p_down(0) == 0
    assert r.add_up(r.add_up(0.5, 0.5), r.add_up(0.5, 0.5)) == 2.0


def test_ends_of_the_line() -> None:
    for zero in (
        r.sub_down(1, 1),
        r.add_down(1, -1),
        r.mul_down(0.0, 5),
        r.div_down(0.0, 5),
        r.fraction_down(0),
    ):
        assert math.copysign(1, zero) == 1
    assert r.exp_up(-math.inf) == r.exp_down(-math.inf) == 0
    assert r.exp_up(800) == math.inf
    assert r.exp_down(800) == r.down(math.inf)
    assert r.exp_down(-800) == 0
    assert 0 < r.exp_up(-800) < 1e-300
    assert r.add_up(math.inf, 1) == math.inf
    assert r.add_down(-1.7e308, -1.7e308) == -math.inf
    assert r.mul_down(1.7e308, 10) == r.down(math.inf)
    assert math.isnan(r.add_up(math.nan, 1))
    assert math.isnan(r.mul_up(math.inf, 0))
    with pytest.raises(ZeroDivisionError):
        r.div_up(1, 0)


def test_an_interval_is_a_triple() -> None:
    assert Interval(0.0, 1.0) == (0.0, 1.0, True)
    assert not Interval(lower=0.0, upper=1.0, tight=False).tight


def test_a_ratio_of_enclosures_is_bounded_by_the_closest_floats() -> None:
    least = 5e-324
    for top, bottom in (
        (Interval(1.0, 1.0), Interval(3.0, 3.0)),
        (Interval(1.0, 2.0), Interval(3.0, 7.0)),
        (Interval(0.0, 0.1), Interval(0.3, 0.7)),
        (Interval(least, 3 * least), Interval(1.5, 2.0)),
    ):
        low, high, tight = r.ratio_bounds(top, bottom)
        smallest, greatest = (
            Fraction(top.lower) / Fraction(bottom.upper),
            Fraction(top.upper) / Fraction(bottom.lower),
        )
        assert Fraction(low) <= smallest < Fraction(r.up(low))
        assert Fraction(r.down(high)) < greatest <= Fraction(high)
        assert tight
    # What a float holds stays exact.
    assert r.ratio_bounds(Interval(3.0, 5.0), Interval(2.0, 4.0)) == (0.75, 2.5, True)


def test_the_lower_bound_of_expm1_is_never_below_minus_one() -> None:
    for x in (-1e300, -800.0, -50.0, -37.5):
        assert r.expm1_down(x) == -1.0
