"""The normal tail: certified bounds against many digits, coins against it, open coins."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.sampling import normal_tail
from sfumato.numerics.sampling.normal_tail import flip_normal, tail_bounds
from tests.cases import cases
from tests.numerics.enumeration import enumerated, pieces
from tests.numerics.sources import ListedSource


def tail(x: Fraction) -> mpmath.mpf:
    return mpmath.erfc(mpmath.mpf(x.numerator) / x.denominator / mpmath.sqrt(2)) / 2


@cases("bits", [1, 20, 64, 128, 300])
def test_bounds_hold_the_truth(bits: int) -> None:
    with mpmath.workdps(200):
        for x in (0, 1, -1, Fraction(1, 3), 5, -7, 10, Fraction(40, 3), 20, -20, 40, Fraction(-1, 10**9)):
            low, high = tail_bounds(Fraction(x), bits)
            assert low <= tail(Fraction(x)) * mpmath.mpf(2) ** bits <= high <= low + 2


def test_the_float_tail_is_within_the_margin() -> None:
    with mpmath.workdps(40):
        for x in np.concatenate([np.linspace(-12, 12, 2401), np.random.default_rng(0).normal(0, 3, 2000)]):
            assert abs(mpmath.mpf(float(ndtr(-x))) - tail(Fraction(float(x)))) < normal_tail._MARGIN / 64


@pytest.mark.parametrize("margin", [2.0**-40, 2.0])
def test_coins_show_the_tail(margin: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # With the wide margin every coin is open; its distance is known to a quarter at first.
    monkeypatch.setattr(normal_tail, "_MARGIN", margin)
    for x in (Fraction(-2), Fraction(-1, 7), Fraction(0), Fraction(3, 2)):

        def heads(word: int, x: Fraction = x) -> bool:
            known = [Fraction(1, 4)]

            def exact(at: int) -> tuple[Fraction, Fraction]:
                return x - known[0], x + known[0]

            def extend() -> None:
                known[0] /= 1 << 20

            # A word next to the border is decided by further ones.
            source = ListedSource([word, *[1 << 63] * 4])
            return bool(flip_normal(np.array([float(x)]), exact, extend, source)[0])

        distribution = enumerated(heads, pieces(heads))
        with mpmath.workdps(40):
            assert abs(distribution[True] - Fraction(int(tail(x) * 2**80), 2**80)) <= Fraction(1, 2**63)
        assert distribution[True] + distribution[False] == 1


def test_open_coins_agree_with_the_float_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).normal(0, 2, 500)

    def exact(at: int) -> tuple[Fraction, Fraction]:
        return Fraction(x[at]), Fraction(x[at])

    one = flip_normal(x, exact, lambda: None, SimulatedSource(9))
    monkeypatch.setattr(normal_tail, "_MARGIN", 2.0)
    assert (flip_normal(x, exact, lambda: None, SimulatedSource(9)) == one).all()
