"""Calibration meets its target and does not overshoot it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from scipy.special import ndtri

from sfumato.errors import ParameterError
from sfumato.privacy import (
    Gaussian,
    Laplace,
    PoissonSubsampled,
    PrivacyLoss,
    PureDP,
    SeparatedPoisson,
    analytic_gaussian_stddev,
    calibrate,
    classical_gaussian_stddev,
)
from tests.cases import cases


def sgd(noise: float) -> PrivacyLoss:
    return PoissonSubsampled(Gaussian(noise), sampling_probability=0.01) * 10_000


# From inverting the characteristic function on a fine grid; seven digits.
@pytest.mark.parametrize(("epsilon", "noise"), [(1.0, 3.8128168), (8.0, 0.8825285)])
def test_dp_sgd_needs_the_published_noise(epsilon: float, noise: float) -> None:
    found = calibrate(sgd, epsilon=epsilon, delta=1e-5)
    assert noise * (1 - 1e-7) <= found <= noise * (1 + 1e-4)
    assert sgd(found).epsilon(1e-5) <= epsilon


@pytest.mark.parametrize(("target", "steps"), [(1.0, 1), (0.01, 3), (40.0, 7)])
def test_pure_noise_is_the_sum(target: float, steps: int) -> None:
    found = calibrate(lambda z: Laplace(z) * steps, epsilon=target)
    assert steps / target <= found <= steps / target * (1 + 1e-4)


def test_other_targets_have_closed_forms_for_gaussians() -> None:
    by_advantage = calibrate(Gaussian, advantage=0.1)
    truth = 1 / (2 * ndtri(0.55))
    assert truth * (1 - 1e-12) <= by_advantage <= truth * (1 + 1e-4)
    by_rate = calibrate(Gaussian, true_positive_rate=0.2, false_positive_rate=0.01)
    truth = 1 / (ndtri(0.99) - ndtri(0.8))
    assert truth * (1 - 1e-12) <= by_rate <= truth * (1 + 1e-4)


@cases(
    ("make", "message"),
    [
        (3, "make must be a function"),
        (lambda _: 3, "make must return a PrivacyLoss"),
        (lambda z: Gaussian(1 / z), "make must return a loss whose epsilon falls as the noise grows"),
        (lambda z: Gaussian(1.0) + Gaussian(z), "epsilon must be met by some noise"),
        (lambda _: PureDP(0.5), "every noise meets it"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(make: Callable[[float], PrivacyLoss], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        calibrate(make, epsilon=1.0, delta=1e-6)


def test_targets_are_checked() -> None:
    for target in ({}, {"epsilon": 1.0, "advantage": 0.1}):
        with pytest.raises(ParameterError, match="name one target"):
            calibrate(Gaussian, **target)
    with pytest.raises(ParameterError, match="guessing alone"):
        calibrate(Gaussian, true_positive_rate=0.1, false_positive_rate=0.2)
    with pytest.raises(ParameterError, match="tolerance must"):
        calibrate(Gaussian, epsilon=1.0, delta=1e-5, tolerance=1e-9)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-20, 1e-8])
def test_an_epsilon_next_to_0_is_reached_where_delta_alone_is_enough(epsilon: float) -> None:
    noise = calibrate(Gaussian, epsilon=epsilon, delta=1e-5)
    assert Gaussian(noise).epsilon(1e-5) <= epsilon < Gaussian(noise / 1.0001).epsilon(1e-5)


@pytest.mark.parametrize("advantage", [1e-8, 0.999999])
def test_an_advantage_next_to_an_end_is_reached(advantage: float) -> None:
    noise = calibrate(Gaussian, advantage=advantage)
    assert Gaussian(noise).delta(0.0) <= advantage < Gaussian(noise / 1.001).delta(0.0)


def test_a_rate_barely_above_guessing_is_reached() -> None:
    noise = calibrate(Gaussian, true_positive_rate=0.5000001, false_positive_rate=0.5)
    # The normal curve is flat there: its gain is the density times the distance.
    assert noise == pytest.approx(1 / (1e-7 * math.sqrt(2 * math.pi)), rel=2e-4)


@cases("delta", [1e-3, 1e-6, 1e-12])
@cases("epsilon", [0.01, 0.3, 1.0])
def test_the_textbook_formula_is_private_up_to_one_and_wasteful(epsilon: float, delta: float) -> None:
    classical = classical_gaussian_stddev(sensitivity=2.0, epsilon=epsilon, delta=delta)
    analytic = analytic_gaussian_stddev(sensitivity=2.0, epsilon=epsilon, delta=delta)
    assert 1.05 * analytic < classical < 5 * analytic
    assert Gaussian(classical / 2).epsilon(delta) <= epsilon


def test_the_textbook_formula_is_refused_where_it_fails() -> None:
    # At epsilon 10 it gives less noise than (10, delta)-DP needs.
    fails = math.sqrt(2 * math.log(1.25 / 1e-3)) / 10
    assert Gaussian(fails).epsilon(1e-3) > 10
    with pytest.raises(ParameterError, match="epsilon must be at most 1, got 10"):
        classical_gaussian_stddev(sensitivity=1.0, epsilon=10, delta=1e-3)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
def test_a_bound_that_is_not_tight_is_met_whatever_its_readings_are_rounded_to(epsilon: float) -> None:
    """A coarse reading with more noise may lie above a fine one with less: that is no rise."""

    def separated(noise: float) -> PrivacyLoss:
        return SeparatedPoisson(Gaussian(noise), 0.2, 2, steps=4)

    noise = calibrate(separated, epsilon=epsilon, delta=1e-3)
    assert separated(noise).epsilon(1e-3) <= epsilon
    assert separated(noise * 0.998).epsilon(1e-3) > epsilon
    with pytest.raises(ParameterError, match="epsilon falls as the noise grows"):
        calibrate(lambda noise: separated(1 / noise), epsilon=epsilon, delta=1e-3)


def test_a_few_readings_suffice_where_the_loss_falls_evenly() -> None:
    """What is read below the target tells as much of the way as what is read above it."""
    noises = []

    def three(noise: float) -> PrivacyLoss:
        noises.append(noise)
        return Gaussian(noise) * 3

    found = calibrate(three, epsilon=0.7, delta=1e-5)
    exact = math.sqrt(3) * analytic_gaussian_stddev(sensitivity=1.0, epsilon=0.7, delta=1e-5)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-4)
    assert min(noises) < found * (1 - 1e-3)
    assert len(noises) <= 8


def test_a_loss_that_is_nothing_to_its_target_is_below_it() -> None:
    """5e-324 over 10 is no float."""
    found = calibrate(lambda noise: PureDP(5e-324 if noise >= 1 else 20.0), epsilon=10.0)
    assert 1 <= found <= 1 + 1e-4
