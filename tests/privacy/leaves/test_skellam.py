"""Skellam noise: the Rényi bound against exact divergences, in one dimension and in more."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest

from sfumato.errors import ParameterError, UnsupportedView
from sfumato.privacy import Gaussian, Neighboring, Skellam
from tests.cases import cases


def masses(variance: Fraction, reach: int) -> dict[int, mpmath.mpf]:
    v = mpmath.mpf(variance.numerator) / variance.denominator
    half = [mpmath.exp(-v) * mpmath.besseli(k, v) for k in range(reach + 1)]
    return {k: half[abs(k)] for k in range(-reach, reach + 1)}


def divergence(pmf: dict[int, mpmath.mpf], shift: int, order: float) -> float:
    moment = mpmath.fsum(p**order * pmf[x - shift] ** (1 - order) for x, p in pmf.items() if x - shift in pmf)
    return float(mpmath.log(moment)) / (order - 1)


@cases("variance", [Fraction(1, 2), Fraction(4), Fraction(60)])
@cases("order", [1.3, 2.0, 3.5, 8.0, 40.0])
def test_it_covers_every_shift_of_one_integer(variance: Fraction, order: float) -> None:
    pmf = masses(variance, 60 + math.ceil(20 * math.sqrt(variance)))
    for shift in (1, 2, 5):
        truth = divergence(pmf, shift, order)
        claimed = Skellam(variance, shift, shift * shift).rdp(order)
        assert truth <= claimed
        assert not 2 <= order <= 8 or variance < 60 or claimed <= 1.1 * truth


def test_it_covers_every_shift_of_several_integers() -> None:
    """Divergences of independent integers add up; every split of the two norms is covered."""
    variance, squares, order = Fraction(6), 9, 4.0
    pmf = masses(variance, 100)
    each = [0.0, *(divergence(pmf, shift, order) for shift in range(1, 4))]
    for moves in itertools.product(range(4), repeat=3):
        if 0 < sum(d * d for d in moves) <= squares:
            claimed = Skellam(variance, sum(moves), sum(d * d for d in moves)).rdp(order)
            assert sum(each[d] for d in moves) <= claimed
            assert claimed <= Skellam(variance, 9, squares).rdp(order)


def test_the_formula_and_its_chords() -> None:
    loss = Skellam(Fraction(7, 2), 3, 5, neighboring=Neighboring.ZERO_OUT)
    v, s, length = 3.5, 5, 3

    def whole(a: float) -> float:
        return a * s / (2 * v) + min(((2 * a - 1) * s + 6 * length) / (4 * v * v), 3 * length / (2 * v))

    for order in (2.0, 3.0, 50.0):
        assert loss.rdp(order) == pytest.approx(whole(order), rel=1e-12)
        assert loss.rdp(order) >= whole(order)
    assert loss.rdp(1.25) == pytest.approx(whole(2), rel=1e-12)
    assert loss.rdp(2.5) == pytest.approx((0.5 * whole(2) + 0.5 * 2 * whole(3)) / 1.5, rel=1e-12)
    # Whole numbers are at most their squares.
    assert Skellam(4, 100, 5).rdp(2.0) == Skellam(4, 5, 5).rdp(2.0)


def test_fine_noise_costs_what_gaussian_noise_costs() -> None:
    fine = Skellam(10**12, l1=10**9, l2_squared=10**12)
    assert fine.epsilon(1e-6) == pytest.approx(5.2215, abs=0.01)  # as 1/2-zCDP
    assert fine.epsilon(1e-6) >= Gaussian(1.0).epsilon(1e-6)
    assert Skellam(0, 1, 1).epsilon(1e-6) == math.inf


def test_groups_and_missing_views() -> None:
    loss = Skellam(8, 3, 5)
    assert loss.group(3) == Skellam(8, 9, 45)
    for view in (loss.zcdp, loss.gdp, loss.pure, loss.dominating_pair):
        with pytest.raises(UnsupportedView, match="Skellam"):
            view()


def test_parameters_are_checked() -> None:
    for change in ({"variance": -1}, {"l1": 0}, {"l2_squared": 0}, {"l2_squared": 1.5}):
        with pytest.raises(ParameterError, match=f"^{next(iter(change))} must be"):
            Skellam(**({"variance": 1, "l1": 2, "l2_squared": 3} | change))
