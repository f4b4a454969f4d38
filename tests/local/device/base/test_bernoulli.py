"""Chances are exact, on the private side of what was asked for, and drawn as they are stated."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.local.device.base.bernoulli import Coin, checked_epsilon, odds_below
from sfumato.numerics.randomness.source import SimulatedSource
from tests.cases import cases
from tests.chance import accepts_only, rate


@given(st.floats(1e-9, 40.0))
def test_least_odds_are_below_the_exponential_and_close(epsilon: float) -> None:
    with mpmath.workprec(400):
        odds = odds_below(epsilon)
        found, exact = mpmath.mpf(odds.numerator) / odds.denominator, mpmath.exp(epsilon)
        assert exact * (1 - mpmath.mpf(2) ** -100) < found <= exact


@given(st.fractions(Fraction(1, 1000), Fraction(999, 1000)), st.integers(10, 64))
def test_coins_are_rounded_to_the_side_that_is_asked(chance: Fraction, bits: int) -> None:
    low, high = Coin.below(chance, bits), Coin.above(chance, bits)
    assert low.chance <= chance <= high.chance
    assert high.chance - low.chance in (0, Fraction(1, 1 << bits))


@cases(("threshold", "bits"), [(1, 1), (3, 5), (1 << 63, 64), ((1 << 64) - 1, 64), (1, 64)])
def test_a_coin_falls_as_it_says(threshold: int, bits: int) -> None:
    class Counting(SimulatedSource):
        def words(self, count: int) -> np.ndarray:
            edge = threshold << (64 - bits)
            return np.array([0, edge - 1, min(edge, 2**64 - 1), 2**64 - 1], np.uint64)[:count]

    assert Coin(threshold, bits).flip(4, Counting(0)).tolist()[:3] == [True, True, False]
    coin, n = Coin(threshold, bits), 40_000
    hits, chance = int(coin.flip(n, SimulatedSource(1)).sum()), coin.chance
    off = chance - Fraction(1, 50)
    accepts_only(rate(hits, n), chance, a_fiftieth_off=off if off > 0 else Fraction(1, 50))


@cases(("threshold", "bits"), [(0, 8), (256, 8), (1, 0), (1, 65), (-1, 4)])
def test_refuses_coins_that_never_fall(threshold: int, bits: int) -> None:
    with pytest.raises(ParameterError, match="chance must be strictly between"):
        Coin(threshold, bits)


@cases("epsilon", [0, -1.0, float("nan"), float("inf"), 40.5, "1", None, True])
def test_refuses_an_epsilon(epsilon: object) -> None:
    with pytest.raises(ParameterError, match="epsilon must be"):
        checked_epsilon(epsilon)
