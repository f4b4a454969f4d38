"""Fixed-point exponentials and tables against mpmath."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.numerics.certified.fixed_point import (
    exp_bounds,
    gaussian_magnitude,
    laplace_magnitude,
    thresholds,
)
from tests.cases import cases
from tests.numerics import reference

MAGNITUDES = {"laplace": laplace_magnitude, "gaussian": gaussian_magnitude}


@given(x=st.fractions(0, 400), bits=st.integers(1, 300))
@example(x=Fraction(0), bits=64)
@example(x=Fraction(1, 2**1000), bits=64)
@example(x=Fraction(64), bits=64)
@example(x=Fraction(10**400), bits=64)
def test_exp_is_enclosed(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    with mp.workprec(bits + 800):
        truth = mp.exp(-reference.number(x)) * mp.mpf(2) ** bits
        assert low <= truth <= high
    assert high - low <= 2


@cases("distribution", MAGNITUDES)
@cases("folded", [True, False])
@cases("scale", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(60)])
@cases("bits", [8, 63, 127])
def test_every_threshold_is_the_floor(distribution: str, folded: bool, scale: Fraction, bits: int) -> None:
    found = thresholds(MAGNITUDES[distribution](scale, folded=folded), bits)
    with mp.workdps(reference.DIGITS):
        for k in range(1, len(found) + 3):
            truth = mp.floor(reference.magnitude_tail(distribution, scale, k, folded) * mp.mpf(2) ** bits)
            assert truth == (found[k - 1] if k <= len(found) else 0)


@given(
    distribution=st.sampled_from(sorted(MAGNITUDES)),
    folded=st.booleans(),
    scale=st.fractions(Fraction(1, 50), 300),
)
@settings(max_examples=15)
def test_thresholds_of_any_scale(distribution: str, folded: bool, scale: Fraction) -> None:
    found = thresholds(MAGNITUDES[distribution](scale, folded=folded), 63)
    with mp.workdps(reference.DIGITS):
        for k in {1, 2, len(found) // 2 + 1, len(found) + 1}:
            truth = mp.floor(reference.magnitude_tail(distribution, scale, k, folded) * mp.mpf(2) ** 63)
            assert truth == (found[k - 1] if k <= len(found) else 0)


def test_ambiguous_floors_are_computed_again() -> None:
    asked = []

    def tail(bits: int):  # type: ignore[no-untyped-def]
        asked.append(bits)
        middle = (5 << (bits - 4)) + (1 << (bits - 150 if bits > 150 else 0))
        yield middle - (1 << (bits // 2)), middle + (1 << (bits // 2))
        yield 0, 1

    assert thresholds(tail, 4) == [5]
    assert asked[0] < asked[-1]
