"""Gaussian: the loss against the exact distribution, calibration on the discrete distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import gammaincc

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Gaussian, Grid
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import FALSE_ALARM, accepts_only

Pmf = dict[int, mpmath.mpf]
GaussianPmf = Callable[[Fraction, int], Pmf]
HockeyStick = Callable[[Pmf, tuple[int, ...], float], float]


@cases("stddev", [Fraction(1, 2), Fraction(1), Fraction(7, 2)])
@cases("sensitivity", [1, 3])
@cases("epsilon", [0.1, 1.0, 3.0])
def test_loss_covers_the_exact_profile(
    stddev: Fraction, sensitivity: int, epsilon: float, gaussian_pmf: GaussianPmf, hockey_stick: HockeyStick
) -> None:
    pmf = gaussian_pmf(stddev, 60)
    truth = max(hockey_stick(pmf, (shift,), epsilon) for shift in range(1, sensitivity + 1))
    assert truth <= Gaussian(sensitivity=sensitivity, stddev=stddev).privacy_loss.delta(epsilon)


@cases("shifts", [(1, 1), (2, 1), (2, 2), (-2, 2), (0, 2)])
@cases("epsilon", [0.1, 1.0, 2.0])
def test_loss_covers_every_shift_of_two_entries(
    shifts: tuple[int, int], epsilon: float, gaussian_pmf: GaussianPmf, hockey_stick: HockeyStick
) -> None:
    truth = hockey_stick(gaussian_pmf(Fraction(3), 25), shifts, epsilon)
    assert truth <= Gaussian(sensitivity=2, stddev=3, l0=2).privacy_loss.delta(epsilon)
    assert truth <= Gaussian(l2=Fraction(283, 100), stddev=3, integral=True).privacy_loss.delta(epsilon)


@cases("epsilon", [0.3, 1.0, 4.0])
@cases("delta", [1e-3, 1e-8])
@cases("sensitivity", [1, 2])
def test_calibration_is_tight_on_the_discrete_distribution(
    epsilon: float, delta: float, sensitivity: int, gaussian_pmf: GaussianPmf, hockey_stick: HockeyStick
) -> None:
    mechanism = Gaussian.calibrated(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    stddev = Fraction(mechanism.stddev)

    def truth(noise: Fraction) -> float:
        reach = math.ceil(9 * noise) + 2
        pmf = gaussian_pmf(noise, reach)
        return max(hockey_stick(pmf, (shift,), epsilon) for shift in range(1, sensitivity + 1))

    assert mechanism.privacy_loss.epsilon(delta) <= epsilon
    assert truth(stddev) <= delta
    assert truth(stddev * Fraction(999, 1000)) > delta


@pytest.mark.parametrize("l0", [1, 2, 10])
def test_calibration_is_tight_on_the_loss(l0: int) -> None:
    mechanism = Gaussian.calibrated(sensitivity=3, epsilon=0.8, delta=1e-7, l0=l0)
    assert mechanism.privacy_loss.epsilon(1e-7) <= 0.8
    less = Gaussian(sensitivity=3, stddev=Fraction(mechanism.stddev) * Fraction(999_998, 10**6), l0=l0)
    assert less.privacy_loss.quick_epsilon(1e-7) > 0.8


def test_on_a_fine_grid_it_meets_the_analytic_calibration() -> None:
    """There discrete noise is nearly continuous; the classical formula takes 13 % more."""
    analytic = analytic_gaussian_stddev(sensitivity=0.1, epsilon=1.0, delta=1e-6)
    mechanism = Gaussian.calibrated(sensitivity=0.1, epsilon=1.0, delta=1e-6)
    assert analytic * (1 - 1e-6) <= float(mechanism.stddev) <= analytic * (1 + 3e-6)
    classical = 0.1 * math.sqrt(2 * math.log(1.25e6))
    assert classical > 1.13 * float(mechanism.stddev)


def test_coarse_grids_are_priced_as_drawn(gaussian_pmf: GaussianPmf, hockey_stick: HockeyStick) -> None:
    """A discrete Gaussian at sigma 1 has delta 1.65e-5 where the continuous one has 1e-5 (SOUNDNESS)."""
    epsilon = 4.3776
    continuous = 1e-5
    truth = hockey_stick(gaussian_pmf(Fraction(1), 20), (1,), epsilon)
    assert truth > 1.2 * continuous
    assert Gaussian(sensitivity=1, stddev=1).privacy_loss.delta(epsilon) >= truth


def test_norm_over_all_entries() -> None:
    mechanism = Gaussian.calibrated(l2=2, epsilon=1.0, delta=1e-6)
    assert mechanism.privacy_loss.epsilon(1e-6) <= 1.0
    assert mechanism.privacy_loss.zcdp().rho == pytest.approx(2 / float(mechanism.stddev) ** 2, rel=1e-12)
    real = Gaussian(l2=3.0, l0=4, stddev=10.0, grid=Grid(exponent=0))
    # The triangle inequality: 3 + sqrt(4) steps.
    assert real.privacy_loss.zcdp().rho == pytest.approx(25 / 200, rel=1e-12)
    fine = Gaussian(l2=3.0, l0=400, stddev=10.0)
    assert 9 / 200 < fine.privacy_loss.zcdp().rho < 9 / 200 * (1 + 1e-5)
    root = Gaussian(l2=1.5, stddev=10, integral=True)
    assert root.privacy_loss.zcdp().rho == pytest.approx(2 / 200, rel=1e-12)  # whole squares up to 2.25


@pytest.mark.parametrize("stddev", [Fraction(1, 2), Fraction(10, 3), Fraction(200)])
def test_draws_follow_the_distribution(stddev: Fraction, gaussian_pmf: GaussianPmf) -> None:
    draws = Gaussian(sensitivity=1, stddev=stddev).release(np.full(100_000, -5), rng=20261121).value + 5
    reach = math.ceil(Fraction(7, 2) * stddev)
    inside = np.abs(draws) <= reach
    observed = np.append(np.bincount(draws[inside] + reach, minlength=2 * reach + 1), (~inside).sum())

    def check(stddev: Fraction) -> None:
        pmf = np.array([float(p) for p in gaussian_pmf(stddev, reach).values()])
        expected = np.append(pmf, 1 - pmf.sum()) * draws.size
        chi_square = float(((observed - expected) ** 2 / expected).sum())
        assert gammaincc((expected.size - 1) / 2, chi_square / 2) > FALSE_ALARM

    accepts_only(check, stddev, wider=stddev * Fraction(11, 10), narrower=stddev * Fraction(9, 10))


def test_real_values_land_on_the_grid() -> None:
    mechanism = Gaussian.calibrated(sensitivity=0.1, epsilon=1.0, delta=1e-6)
    values = mechanism.release(np.array([0.0, 0.1, 1 / 3, math.nan, math.inf]), rng=4).value
    assert all((Fraction(value) / mechanism.grid.step).denominator == 1 for value in values.tolist())


@pytest.mark.parametrize("neighboring", list(Neighboring))
def test_relation_is_carried(neighboring: Neighboring) -> None:
    mechanism = Gaussian.calibrated(sensitivity=2, epsilon=1.0, delta=1e-5, neighboring=neighboring)
    assert mechanism.neighboring is mechanism.privacy_loss.neighboring is neighboring
    assert mechanism.release(1, rng=1).neighboring is neighboring
    assert Gaussian(l2=2, stddev=1, neighboring=neighboring).privacy_loss.neighboring is neighboring


@cases(
    ("make", "message"),
    [
        (lambda: Gaussian(stddev=1), "sensitivity must be given, or else l2"),
        (lambda: Gaussian(sensitivity=1, stddev=0), "stddev must be positive .* pass epsilon= and delta="),
        (lambda: Gaussian(sensitivity=1, stddev=2**41), r"stddev must be from 2\*\*-40 to 2\*\*40 steps"),
        (lambda: Gaussian(sensitivity=1, stddev=1e-300), r"stddev must be from 2\*\*-40"),
        (lambda: Gaussian(l2=1.0, stddev=1), "l0 must be given"),
        (lambda: Gaussian(sensitivity=1.0, stddev=1, grid=-3), "grid must be a Grid"),  # type: ignore[arg-type]
        (
            lambda: Gaussian.calibrated(sensitivity=1, epsilon=1, delta=0),
            "delta must be strictly .* use Laplace",
        ),
        (lambda: Gaussian.calibrated(sensitivity=1, epsilon=-1, delta=0.1), "epsilon must be positive"),
        (
            lambda: Gaussian.calibrated(sensitivity=1, epsilon=1, delta=0.1, l0=-1),
            "l0 must be an integer of at least 1",
        ),
        (lambda: Gaussian(sensitivity=1, stddev=1).release(np.ones(2)), "value must be an int"),
    ],
)
def test_bad_parameters_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize("name", ["sensitivity", "l2"])
def test_infinite_sensitivity_is_refused(name: str) -> None:
    with pytest.raises(UnboundedSensitivity, match=f"{name} must be finite"):
        Gaussian.calibrated(epsilon=1.0, delta=1e-6, **{name: math.inf})  # type: ignore[arg-type]


def test_a_norm_over_all_entries_costs_hardly_more_than_continuous_noise() -> None:
    mechanism = Gaussian.calibrated(l2=1000, integral=True, epsilon=1.0, delta=1e-6)
    analytic = analytic_gaussian_stddev(sensitivity=1000, epsilon=1.0, delta=1e-6)
    assert analytic * (1 - 1e-6) <= float(mechanism.stddev) <= analytic * (1 + 2e-5)
