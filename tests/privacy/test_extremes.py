"""Parameters at the ends of the range of floats: a number on the safe side, never a crash."""

from __future__ import annotations

import math

import mpmath
import pytest
from mpmath import mp, mpf

from sfumato.privacy import Exponential, RandomizedResponse, Staircase
from tests.cases import cases

LEAST = 5e-324
EPSILONS = [LEAST, 1e-310, 1e-300, 1e-17, 1.0, 36.0, 750.0, 1600.0, 1e5]


def _response(epsilon: float, categories: int) -> tuple[mpf, mpf]:
    """The P-masses of the greatest loss and of its opposite."""
    whole = mpmath.exp(epsilon) + categories - 1
    return mpmath.exp(epsilon) / whole, 1 / whole


def _staircase(epsilon: float, gamma: float) -> tuple[mpf, mpf]:
    step, first = mpmath.exp(-mpf(epsilon)), mpf(gamma)
    height = (1 - step) / (2 * (first + step * (1 - first)))
    top = mpf(1) / 2 + height * min(first, 1 - first)
    return top, top * step


@cases("epsilon", EPSILONS)
@cases("categories", [2, 10, 2**53])
def test_randomized_response_has_its_profile_at_every_epsilon(epsilon: float, categories: int) -> None:
    with mp.workdps(400):
        top, bottom = _response(epsilon, categories)
        loss = RandomizedResponse(epsilon, categories)
        for x in (0.0, epsilon / 3):
            truth = top - mpmath.exp(x) * bottom
            assert truth <= loss.delta(x) <= truth * (1 + mpf(10) ** -9) + 4 * LEAST


@cases("epsilon", EPSILONS)
@cases("gamma", [None, 0.0, LEAST, 0.3, 0.5, 1.0])
def test_the_staircase_has_its_profile_at_every_epsilon(epsilon: float, gamma: float | None) -> None:
    with mp.workdps(400):
        loss = Staircase(epsilon, gamma)
        top, bottom = _staircase(epsilon, loss.gamma)
        for x in (0.0, epsilon / 3):
            truth = top - mpmath.exp(x) * bottom
            assert truth <= loss.delta(x) <= truth * (1 + mpf(10) ** -9) + 4 * LEAST
        assert min(loss.zcdp().rho, loss.gdp().mu, loss.rdp(2.0)) > 0


@pytest.mark.parametrize("loss", [RandomizedResponse(1e300, 3), Staircase(1e300), Staircase(1e300, 0.0)])
def test_a_loss_beyond_all_use_tells_everything(loss: RandomizedResponse | Staircase) -> None:
    assert loss.delta(5.0) >= 0.5
    assert 0 < loss.epsilon(1e-5) <= 1e300
    assert loss.zcdp().rho >= 1e299


def test_half_of_the_least_range_is_not_nothing() -> None:
    loss = Exponential(LEAST)
    assert min(loss.gdp().mu, loss.delta(0.0)) > 0
    assert math.isfinite(loss.epsilon(0.0))
