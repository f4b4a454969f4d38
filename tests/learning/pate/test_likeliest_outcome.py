"""The divergence of a known likeliest outcome is its formula's largest value; chances of noise are exact."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from sfumato.learning.pate.likeliest_outcome import (
    PROBABILITY_SLACK,
    divergence,
    log_probabilities,
    log_tails,
)
from tests.cases import cases


def formula(lacks: np.ndarray, rho: float, order: float) -> np.ndarray:
    """The divergence of the notes at each chance of a miss itself, by numpy and written down anew."""
    q = np.exp(-lacks)
    other = np.exp(-((np.sqrt(lacks) - math.sqrt(rho)) ** 2))
    u = np.maximum(np.sqrt(lacks / rho), order - 1)
    with np.errstate(divide="ignore"):
        hit = order * np.log1p(-q) - (order - 1) * np.log1p(-other)
    missed = -lacks + (order - 1) * (lacks / u + rho * (u + 1))
    return np.asarray(np.logaddexp(hit, missed) / (order - 1))


@cases(
    ("rho", "order"),
    [
        (1 / 1600, 7.5),
        (1 / 1600, 1.5),
        (1 / 1600, 20.0),
        (1 / 9, 4.0),
        (2.0, 3.0),
        (1e-4, 300.0),
        (30.0, 2.0),
    ],
)
def test_it_is_the_largest_value_from_a_chance_down(rho: float, order: float) -> None:
    dense = np.linspace(rho * (1 + 1e-9), max(60.0, 3 * rho), 400_001)
    largest = np.minimum(np.maximum.accumulate(formula(dense, rho, order)[::-1])[::-1], order * rho)
    places = np.arange(1000, 400_000, 7919)
    places = places[(dense[places] < 12) | (rho > 1)]  # beyond, the formula loses its digits in floats
    found = divergence(dense[places], rho, order)
    assert len(places) > 5
    assert (found >= largest[places] * (1 - 1e-9)).all()
    assert (found <= largest[places] * 1.03).all()


def test_a_formula_that_falls_with_the_chance_is_not_taken_there() -> None:
    """Near a coin's toss the first term falls with q: the bound does not follow it."""
    lacks = np.linspace(0.001, 0.7, 200)
    assert (np.diff(divergence(lacks, 1e-4, 1.5)) <= 1e-15).all()
    assert (np.diff(formula(lacks[lacks > 0.01], 1e-4, 1.5)) > 0).any()


def test_nothing_is_known_of_an_outcome_that_is_missed_as_often_as_not() -> None:
    assert divergence(np.array([-3.0, 0.0, 1e-7]), 1 / 1600, 20.0).tolist() == [20 / 1600] * 3


def test_tails_of_a_difference_are_close_bounds() -> None:
    """Of two discrete Gaussians with variance 1/2 each, by their convolution."""
    weights = np.exp(-(np.arange(-20, 21) ** 2.0))
    masses = np.convolve(weights, weights) / weights.sum() ** 2
    exact = np.log(np.cumsum(masses[::-1])[::-1][40:47])
    found = log_tails(1.0, 6)
    assert (found >= exact - 1e-12).all()
    assert (found <= exact + 0.03).all()


def test_far_off_it_is_the_formula_in_50_digits() -> None:
    with mpmath.workdps(50):
        for lack, rho, order in ((45.0, 1 / 1600, 20.0), (200.0, 0.01, 8.0), (12.0, 1 / 1600, 7.5)):
            u = max(mpmath.sqrt(lack / mpmath.mpf(rho)), order - 1)
            hit = (1 - mpmath.exp(-lack)) ** order * (
                1 - mpmath.exp(-((mpmath.sqrt(lack) - mpmath.sqrt(rho)) ** 2))
            ) ** (1 - order)
            missed = mpmath.exp(-lack + (order - 1) * (lack / u + rho * (u + 1)))
            exact = mpmath.log(hit + missed) / (order - 1)
            assert divergence(np.array([lack]), rho, order)[0] == pytest.approx(float(exact), rel=1e-8)


@cases("stddev", [0.7, 3.0, 150.0])
def test_chances_are_those_of_the_discrete_gaussian(stddev: float) -> None:
    places = np.array([-9, -1, 0, 1, 2, 7, 20])
    above, below = log_probabilities(stddev**2, places)
    with mpmath.workdps(40):
        reach = math.ceil(14 * stddev) + 40
        weights = [
            mpmath.exp(-mpmath.mpf(k * k) / (2 * mpmath.mpf(stddev) ** 2)) for k in range(-reach, reach + 1)
        ]
        total = mpmath.fsum(weights)
        for place, here, there in zip(places.tolist(), above, below, strict=True):
            exact = mpmath.log(mpmath.fsum(weights[place + reach :]) / total)
            if exact < -600:
                assert math.isnan(here)
                continue
            assert abs(here - exact) <= PROBABILITY_SLACK
            if place >= -9 * stddev:
                assert (
                    abs(there - mpmath.log(mpmath.fsum(weights[: place + reach]) / total))
                    <= PROBABILITY_SLACK
                )
            if place >= 0:
                assert exact <= log_tails(stddev**2, 20)[place] + 1e-12
