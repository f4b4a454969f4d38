"""The grid: exact rounding, one rule for every float, and rounding that the sensitivity counts."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.mechanisms import Grid
from sfumato.mechanisms.base.grid import LIMIT, whole
from sfumato.mechanisms.base.rational import (
    ceil_log2,
    floor_log2,
    plain,
    power_of_two,
    simplest_between,
    sqrt_up,
)
from tests.cases import cases

floats = st.floats(allow_nan=True, allow_infinity=True, width=64)
positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)


@given(floats, st.integers(-1074, 960))
def test_float_rounding_is_exact(value: float, exponent: int) -> None:
    grid = Grid(exponent=exponent)
    if math.isnan(value):
        expected = 0
    elif math.isinf(value):
        expected = LIMIT if value > 0 else -LIMIT
    else:
        expected = max(-LIMIT, min(LIMIT, round(Fraction(value) / grid.step)))
    assert grid.round(value) == expected
    assert grid.round(np.array([value])).tolist() == [expected]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-80, 80))
def test_integer_rounding_is_exact(value: int, exponent: int) -> None:
    grid = Grid(exponent=exponent)
    # Beyond 2**62 integer arrays are clamped before they are rounded.
    clamped = max(-LIMIT, min(LIMIT, value))
    expected = max(-LIMIT, min(LIMIT, round(Fraction(clamped) / grid.step)))
    assert grid.round(np.array([value])).tolist() == [expected]
    assert grid.round(value) == max(-LIMIT, min(LIMIT, round(Fraction(value) / grid.step)))


@given(
    st.fractions(min_value=-20, max_value=20, max_denominator=64),
    st.fractions(min_value=0, max_value=9, max_denominator=64),
    st.integers(-3, 3),
)
def test_shift_bounds_every_move(a: Fraction, sensitivity: Fraction, exponent: int) -> None:
    grid = Grid(exponent=exponent)
    if sensitivity > 0:
        for part in (Fraction(1), Fraction(1, 2), Fraction(99, 100)):
            move: int = abs(grid.round(a + part * sensitivity) - grid.round(a))
            assert move <= grid.shift(sensitivity)


@cases("sensitivity", [Fraction(n, 8) for n in range(1, 49)])
def test_shift_is_attained(sensitivity: Fraction) -> None:
    grid = Grid(exponent=0)
    starts = [Fraction(n, 32) for n in range(-64, 65)]
    moves: set[int] = {
        abs(grid.round(start + part * sensitivity) - grid.round(start))
        for start, part in itertools.product(starts, (Fraction(1), Fraction(31, 32)))
    }
    assert max(moves) == grid.shift(sensitivity)


@settings(max_examples=40)
@given(
    st.lists(st.fractions(min_value=0, max_value=5, max_denominator=16), min_size=1, max_size=4), st.data()
)
def test_norm_shifts_bound_every_move(moves: list[Fraction], data: st.DataObject) -> None:
    grid = Grid(exponent=-1)
    starts = [data.draw(st.fractions(min_value=-5, max_value=5, max_denominator=16)) for _ in moves]
    steps = [grid.round(s + m) - grid.round(s) for s, m in zip(starts, moves, strict=True)]
    l1, l2_squared = sum(moves), sum(m * m for m in moves)
    assert sum(map(abs, steps)) <= grid.l1_shift(Fraction(l1), len(moves))
    assert sum(s * s for s in steps) <= grid.l2_squared_shift(sqrt_up(Fraction(l2_squared)), len(moves))


def test_choice_follows_public_parameters() -> None:
    fine = Grid.choose(sensitivity=Fraction(0.1), noise=Fraction(1))
    assert Fraction(0.1) * Fraction(1, 2**21) < fine.step <= Fraction(0.1) * Fraction(1, 2**20)
    coarse = Grid.choose(sensitivity=Fraction(1), noise=Fraction(10**9))
    assert Fraction(10**9) / coarse.step <= 2**40


@cases("value", ["1", None, True, [1.0, 2.0], np.array(["a"]), np.array([True]), 1j, (1, 2)])
def test_what_is_not_a_number_is_refused(value: object) -> None:
    with pytest.raises(ParameterError, match="value must be a real number"):
        Grid(exponent=0).round(value)


@pytest.mark.parametrize("exponent", [-1075, 961, 0.5, True])
def test_exponents_out_of_range_are_refused(exponent: object) -> None:
    with pytest.raises(ParameterError, match="exponent must"):
        Grid(exponent=exponent)  # type: ignore[arg-type]


def test_whole_clamps_every_integer_type() -> None:
    assert whole(2**80) == LIMIT
    assert whole(np.array([2**64 - 1, 5], dtype=np.uint64)).tolist() == [LIMIT, 5]
    assert whole(np.array([-(2**63), 2**63 - 1])).tolist() == [-LIMIT, LIMIT]
    assert whole(np.array([-128, 127], dtype=np.int8)).dtype == np.int64
    assert whole(np.int16(3)) == 3
    with pytest.raises(ParameterError, match="value must be an int"):
        whole(np.array([1.0]))


@given(positive, positive)
def test_simplest_fraction(a: Fraction, b: Fraction) -> None:
    low, high = min(a, b), max(a, b)
    found = simplest_between(low, high)
    assert low <= found <= high
    assert found.denominator <= min(low.denominator, high.denominator)
    for denominator in range(1, min(found.denominator, 50)):
        assert math.ceil(low * denominator) > high * denominator


@given(positive)
def test_logarithms_and_roots(value: Fraction) -> None:
    assert power_of_two(floor_log2(value)) <= value < power_of_two(floor_log2(value) + 1)
    assert power_of_two(ceil_log2(value) - 1) < value <= power_of_two(ceil_log2(value))
    root = sqrt_up(value)
    assert value <= root**2 <= value * (1 + Fraction(1, 2**60))
    assert sqrt_up(value**2) == value
    assert Fraction(plain(value)) == value


def test_an_error_tells_the_type_of_an_array() -> None:
    for dtype in (np.longdouble, np.bool_, np.complex128):
        with pytest.raises(ParameterError, match=f"but it is an array of {np.dtype(dtype)};"):
            Grid(exponent=0).round(np.zeros(2, dtype))
    with pytest.raises(ParameterError, match="but it is an array of float64"):
        whole(np.zeros(2))
