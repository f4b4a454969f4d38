"""Laplace: the loss against the exact distribution, tight calibration, rounding that is counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Grid, Laplace
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import FALSE_ALARM, accepts_only

Pmf = dict[int, mpmath.mpf]
LaplacePmf = Callable[[Fraction, int], Pmf]
HockeyStick = Callable[[Pmf, tuple[int, ...], float], float]


def worst_log_ratio(pmf: Pmf, shift: int) -> float:
    return max(float(abs(mpmath.log(pmf[k] / pmf[k - shift]))) for k in pmf if k - shift in pmf)


@cases("scale", [Fraction(1, 2), Fraction(5, 3), Fraction(7)])
@cases("sensitivity", [1, 2, 5])
def test_pure_loss_is_the_worst_ratio(scale: Fraction, sensitivity: int, laplace_pmf: LaplacePmf) -> None:
    mechanism = Laplace(sensitivity=sensitivity, scale=scale)
    worst = max(worst_log_ratio(laplace_pmf(scale, 30), shift) for shift in range(1, sensitivity + 1))
    assert worst * (1 - 1e-12) <= mechanism.privacy_loss.epsilon(0.0) <= worst * (1 + 1e-12)


@cases("scale", [Fraction(1, 2), Fraction(5, 3), Fraction(4)])
@cases("sensitivity", [1, 3])
@cases("share", [0.0, 0.3, 0.8, 1.0])
def test_loss_is_the_exact_profile(
    scale: Fraction, sensitivity: int, share: float, laplace_pmf: LaplacePmf, hockey_stick: HockeyStick
) -> None:
    loss = Laplace(sensitivity=sensitivity, scale=scale).privacy_loss
    epsilon = share * loss.epsilon(0.0)
    pmf = laplace_pmf(scale, 200)
    truths = [hockey_stick(pmf, (shift,), epsilon) for shift in range(1, sensitivity + 1)]
    # The enumeration has 40 digits.
    assert max(truths) * (1 - 1e-30) - 1e-30 <= loss.delta(epsilon) <= max(truths) * (1 + 1e-9) + 1e-15


@cases("shifts", [(1, 1), (2, 1), (2, 2), (-2, 2)])
@cases("epsilon", [0.0, 0.4, 1.0])
def test_loss_covers_every_shift_of_two_entries(
    shifts: tuple[int, int], epsilon: float, laplace_pmf: LaplacePmf, hockey_stick: HockeyStick
) -> None:
    pmf = laplace_pmf(Fraction(3), 40)
    truth = hockey_stick(pmf, shifts, epsilon)
    assert truth <= Laplace(sensitivity=2, scale=3, l0=2).privacy_loss.delta(epsilon)
    assert truth <= Laplace(l1=4, scale=3).privacy_loss.delta(epsilon)


@settings(max_examples=40)
@given(
    st.floats(1e-4, 50.0),
    st.one_of(
        st.integers(1, 10**6), st.floats(1e-6, 1e6), st.fractions(Fraction(1, 9), 9, max_denominator=50)
    ),
    st.integers(1, 50),
)
def test_pure_calibration_is_tight(epsilon: float, sensitivity: Any, l0: int) -> None:
    mechanism = Laplace.calibrated(sensitivity=sensitivity, epsilon=epsilon, l0=l0)
    assert mechanism.privacy_loss.epsilon(0.0) <= epsilon
    tighter = Laplace(
        sensitivity=sensitivity,
        scale=Fraction(mechanism.scale) * Fraction(999, 1000),
        l0=l0,
        grid=None if mechanism.integral else mechanism.grid,  # type: ignore[arg-type]
    )
    assert tighter.privacy_loss.epsilon(0.0) > epsilon
    # The rounding to the grid costs at most two millionths.
    least = Fraction(sensitivity) * l0 / Fraction(epsilon)
    assert least <= Fraction(mechanism.scale) <= least * (1 + Fraction(2, 10**6))
    steps = Fraction(mechanism.scale) / mechanism.grid.step
    assert steps.denominator < 2**32 or steps.denominator.bit_count() == 1


def test_round_numbers_stay_round() -> None:
    assert Laplace.calibrated(sensitivity=1, epsilon=0.1).scale == 10
    assert Laplace.calibrated(sensitivity=2, epsilon=0.5, l0=4).scale == 16
    assert Laplace.calibrated(sensitivity=1.0, epsilon=0.25).scale == 4


def test_delta_is_used_only_where_it_helps() -> None:
    many = Laplace.calibrated(sensitivity=1, epsilon=1.0, delta=1e-6, l0=100)
    assert many.privacy_loss.epsilon(1e-6) <= 1.0 < many.privacy_loss.epsilon(0.0)
    assert many.scale < 60
    tighter = Laplace(sensitivity=1, scale=Fraction(many.scale) * Fraction(999, 1000), l0=100)
    assert tighter.privacy_loss.quick_epsilon(1e-6) > 1.0
    assert Laplace.calibrated(sensitivity=1, epsilon=1.0, delta=1e-6).scale == 1


@cases(("sensitivity", "shift"), [(0.7, 1), (1.0, 2), (1.5, 2), (2.0, 2), (2.25, 3)])
def test_rounding_is_in_the_loss(sensitivity: float, shift: int, laplace_pmf: LaplacePmf) -> None:
    mechanism = Laplace(sensitivity=sensitivity, scale=4.0, grid=Grid(exponent=0))
    starts = np.arange(-4, 4, 0.125)
    worst = max(abs(round(float(a + sensitivity)) - round(float(a))) for a in starts)
    assert worst == shift
    ratio = worst_log_ratio(laplace_pmf(Fraction(4), 30), worst)
    assert ratio * (1 - 1e-12) <= mechanism.privacy_loss.epsilon(0.0) <= ratio * (1 + 1e-12)


def test_norm_over_all_entries_counts_every_rounding() -> None:
    assert Laplace(l1=3, scale=6).privacy_loss.epsilon(0.0) == 0.5
    assert Laplace(l1=3.0, l0=5, scale=16.0, grid=Grid(exponent=0)).privacy_loss.epsilon(0.0) == 0.5
    fine = Laplace(l1=3.0, l0=1000, scale=6.0)
    assert 0.5 < fine.privacy_loss.epsilon(0.0) < 0.5 * (1 + 2e-6)


@given(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(0, 2**32),
    st.sampled_from([0.1, 1 / 3, 1.0, 1e-9, 7e8]),
)
def test_outputs_are_grid_multiples_whatever_the_value(value: float, seed: int, sensitivity: float) -> None:
    mechanism = Laplace(sensitivity=sensitivity, scale=sensitivity * 3)
    release = mechanism.release(value, rng=seed)
    assert (Fraction(release.value) / mechanism.grid.step).denominator == 1
    assert type(release.value) is float


def test_no_output_gives_the_low_bits_away() -> None:
    """The attack of Mironov (2012): float noise makes most outputs possible for one neighbor only."""
    mechanism = Laplace(sensitivity=1.0, scale=1.0, grid=Grid(exponent=-3))
    inputs = [0.0, 0.1, 1 / 3, math.pi / 4, 1.0, math.nextafter(1.0, 0)]
    seen = [set((mechanism.release(np.full(20_000, x), rng=9).value * 8).tolist()) for x in inputs]
    assert all(step == int(step) for steps in seen for step in steps)
    # Within five scales of both neighbors every multiple occurs: missing one has probability < 1e-9.
    common = {float(step) for step in range(-20, 29)}
    assert all(common <= steps for steps in seen)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(10, 3), Fraction(200)])
def test_draws_follow_the_distribution(scale: Fraction, laplace_pmf: LaplacePmf) -> None:
    draws = Laplace(sensitivity=1, scale=scale).release(np.full(100_000, 17), rng=20261121).value - 17
    reach = math.ceil(6 * scale) + 1
    inside = np.abs(draws) <= reach
    observed = np.append(np.bincount(draws[inside] + reach, minlength=2 * reach + 1), (~inside).sum())

    def check(scale: Fraction) -> None:
        pmf = np.array([float(p) for p in laplace_pmf(scale, reach).values()])
        expected = np.append(pmf, 1 - pmf.sum()) * draws.size
        chi_square = float(((observed - expected) ** 2 / expected).sum())
        assert gammaincc((expected.size - 1) / 2, chi_square / 2) > FALSE_ALARM

    accepts_only(check, scale, wider=scale * Fraction(5, 4), narrower=scale * Fraction(9, 10))


def test_scalars_arrays_and_types() -> None:
    mechanism = Laplace(sensitivity=1, scale=1)
    assert type(mechanism.release(3, rng=1).value) is int
    assert type(mechanism.release(np.int32(3), rng=1).value) is int
    assert mechanism.release(np.zeros((2, 3), dtype=np.uint8), rng=1).value.shape == (2, 3)
    assert mechanism.release(np.zeros(0, dtype=int), rng=1).value.shape == (0,)
    real = Laplace(sensitivity=1.0, scale=1)
    assert type(real.release(3, rng=1).value) is float
    assert real.release(np.float32(3), rng=1).value == real.release(Fraction(3), rng=1).value
    assert real.release(np.zeros((2, 0)), rng=1).value.shape == (2, 0)
    assert real.release(np.zeros(2, dtype=np.float16), rng=1).value.dtype == np.float64


def test_extreme_values_are_answered() -> None:
    mechanism = Laplace(sensitivity=1, scale=2**40)
    assert abs(mechanism.release(2**200, rng=1).value - 2**62) < 2**50
    assert abs(mechanism.release(-(2**200), rng=1).value + 2**62) < 2**50
    real = Laplace(sensitivity=1.0, scale=1.0)
    far = real.release(np.array([math.inf, -math.inf, math.nan]), rng=1).value
    assert far == pytest.approx([2.0**42, -(2.0**42), 0], abs=50)


def test_randomness_is_declared() -> None:
    mechanism = Laplace(sensitivity=1, scale=2.0**30)
    assert mechanism.release(0, rng=3).value == mechanism.release(0, rng=3).value
    assert mechanism.release(0, rng=3).simulated
    assert mechanism.release(0, rng=np.random.default_rng(3)).simulated
    real = mechanism.release(0)
    assert not real.simulated
    assert real.value != mechanism.release(0).value  # equal with probability 2**-32


@pytest.mark.parametrize("neighboring", list(Neighboring))
def test_relation_is_carried(neighboring: Neighboring) -> None:
    mechanism = Laplace.calibrated(sensitivity=2, epsilon=1.0, neighboring=neighboring)
    assert mechanism.neighboring is mechanism.privacy_loss.neighboring is neighboring
    assert mechanism.release(1, rng=1).neighboring is neighboring
    assert Laplace(l1=2, scale=1, neighboring=neighboring).privacy_loss.neighboring is neighboring


def test_stddev_is_that_of_the_noise(laplace_pmf: LaplacePmf) -> None:
    exact = math.sqrt(sum(float(p) * k * k for k, p in laplace_pmf(Fraction(3, 2), 100).items()))
    assert Laplace(sensitivity=1, scale=1.5).stddev == pytest.approx(exact, rel=1e-12)
    assert Laplace(sensitivity=1.0, scale=1.5, grid=Grid(exponent=-10)).stddev == pytest.approx(
        1.5 * 2**0.5, rel=1e-6
    )


@cases(
    ("make", "message"),
    [
        (lambda: Laplace(scale=1), "sensitivity must be given, or else l1"),
        (lambda: Laplace(scale=1, sensitivity=1, l1=1), "sensitivity must be given, or else l1"),
        (lambda: Laplace(sensitivity=0, scale=1), "sensitivity must be positive"),
        (lambda: Laplace(sensitivity=-1.0, scale=1), "sensitivity must be positive"),
        (lambda: Laplace(sensitivity=math.nan, scale=1), "sensitivity must be positive"),
        (lambda: Laplace(sensitivity=True, scale=1), "sensitivity must be positive"),
        (lambda: Laplace(sensitivity=1, scale=0), "scale must be positive .* pass epsilon="),
        (lambda: Laplace(sensitivity=1, scale=math.inf), "scale must be positive"),
        (lambda: Laplace(sensitivity=1, scale="1"), "scale must be positive"),  # type: ignore[arg-type]
        (lambda: Laplace(sensitivity=1, scale=2**41), r"scale must be from 2\*\*-40 to 2\*\*40 steps"),
        (lambda: Laplace(sensitivity=1, scale=Fraction(1, 10**400)), r"scale must be from 2\*\*-40"),
        (lambda: Laplace(sensitivity=10**400, scale=1), r"sensitivity must be at most 2\*\*62 steps"),
        (lambda: Laplace(l1=10**400, scale=1), r"l1 must be at most 2\*\*62 steps"),
        (lambda: Laplace(sensitivity=1, scale=1, l0=0), "l0 must be an integer"),
        (lambda: Laplace(l1=1.0, scale=1), "l0 must be given"),
        (
            lambda: Laplace(sensitivity=1, scale=1, grid=Grid(exponent=1), integral=True),
            "grid must be left out",
        ),
        (lambda: Laplace(sensitivity=1, scale=1, neighboring="add"), "neighboring must"),  # type: ignore[arg-type]
        (lambda: Laplace.calibrated(sensitivity=1, epsilon=0), "epsilon must be positive"),
        (lambda: Laplace.calibrated(sensitivity=1, epsilon=math.inf), "epsilon must be positive"),
        (lambda: Laplace.calibrated(sensitivity=1, epsilon=1, delta=1), "delta must be in"),
        (lambda: Laplace.calibrated(sensitivity=1, epsilon=1e-13), "scale must be from"),
        (lambda: Laplace.calibrated(sensitivity=1, epsilon=1, l0=-1), "l0 must be an integer"),
        (lambda: Laplace.calibrated(epsilon=1), "sensitivity must be positive"),
        (lambda: Laplace(sensitivity=1, scale=1).release(1.5), "value must be an int .* float sensitivity"),
        (lambda: Laplace(sensitivity=1, scale=1).release([1]), "value must be an int"),
        (lambda: Laplace(sensitivity=1.0, scale=1).release("secret"), "value must be a real number"),
        (lambda: Laplace(sensitivity=1, scale=1).release(1, rng="seed"), "rng must"),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        make()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["sensitivity", "l1"])
def test_infinite_sensitivity_is_refused(name: str) -> None:
    with pytest.raises(UnboundedSensitivity, match=f"{name} must be finite"):
        Laplace(scale=1.0, **{name: math.inf})  # type: ignore[arg-type]
    with pytest.raises(UnboundedSensitivity, match=f"{name} must be finite"):
        Laplace.calibrated(epsilon=1.0, **{name: math.inf})  # type: ignore[arg-type]


def test_a_mechanism_shows_what_was_given_and_chosen() -> None:
    shown = repr(Laplace(sensitivity=1, scale=3))
    assert shown.startswith("Laplace(sensitivity=1, scale=3, l0=")
    assert "grid=Grid(exponent=0)" in shown
    assert "integral" not in shown
