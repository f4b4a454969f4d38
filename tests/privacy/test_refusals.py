"""What is wrong with an argument is said by its name, with a remedy; nothing raw escapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import (
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonStopping,
    PoissonSubsampled,
    Profile,
    PureDP,
    RandomStopping,
    RDPCurve,
    ReportNoisyMax,
    SmoothSensitivity,
    SparseVector,
    Staircase,
    basic_composition,
    gdp_clt_approximation,
    heterogeneous_composition,
    matrix_mechanism,
    optimal_composition,
    participation_sensitivity,
)
from tests.cases import cases

LOSS: Any = Gaussian(1.0)


@cases(
    ("name", "make"),
    [
        ("noise_multiplier", Gaussian),
        ("noise_multiplier", Laplace),
        ("noise_multiplier", ReportNoisyMax),
        ("noise_multiplier", lambda z: SmoothSensitivity(z, smoothness=0.1)),
        ("threshold_noise", lambda z: SparseVector(z, 1.0)),
        ("stddev", DiscreteGaussian),
        ("scale", DiscreteLaplace),
        ("epsilon", PureDP),
        ("epsilon", Staircase),
        ("gamma", lambda z: Staircase(1.0, z)),
        ("delta", lambda z: ApproximateDP(1.0, z)),
        ("sampling_probability", lambda z: PoissonSubsampled(LOSS, z)),
        ("stopping_probability", lambda z: RandomStopping(PureDP(0.1), 1.0, z)),
        ("epsilons", lambda z: Profile(z, [0.1])),
        ("orders", lambda z: RDPCurve([z], [0.1])),
        ("delta", LOSS.epsilon),
        ("epsilon", LOSS.delta),
        ("order", LOSS.rdp),
        ("false_positive_rate", LOSS.trade_off),
        ("false_positive_rates", lambda z: LOSS.risk(false_positive_rates=z)),
        ("prior", lambda z: LOSS.risk(prior=z)),
        ("precision", lambda z: LOSS.delta_interval(1.0, z)),
        ("guarantees", basic_composition),
        ("guarantees", lambda z: heterogeneous_composition([z], target_delta=0.1)),
        ("strategy", lambda z: participation_sensitivity([[z], [1.0, 2.0]], separation=1)),
    ],
)
@cases("value", [-1.0, math.nan, -math.inf, None, "x", object()])
def test_a_bad_argument_is_named_with_a_remedy(
    name: str, make: Callable[[Any], object], value: object
) -> None:
    if name == "gamma" and value is None:
        return
    with pytest.raises(ParameterError, match=f"^{name} must .*; "):
        make(value)


@pytest.mark.parametrize("value", [Gaussian, 3, None])
def test_what_is_no_loss_is_not_run_several_times(value: Any) -> None:
    for make in (lambda loss: RandomStopping(loss, 1.0, 0.1), lambda loss: PoissonStopping(loss, 3.0)):
        with pytest.raises(ParameterError, match=r"^loss must be the PrivacyLoss of one run"):
            make(value)


def test_a_sensitivity_beyond_all_floats_is_refused() -> None:
    for leaf in (DiscreteGaussian, DiscreteLaplace):
        with pytest.raises(ParameterError, match=r"^sensitivity must have at most"):
            leaf(10, 10**400)
        assert leaf(10, 10**30).epsilon(1e-6) > 1.0


def test_numbers_beyond_the_range_of_exponentials_are_composed() -> None:
    assert optimal_composition(1e12, 0.0, 8_000_000, target_delta=0.1).epsilon == 8e18
    assert gdp_clt_approximation(PureDP(800.0) * 3) == math.inf
    assert matrix_mechanism([[1.7e308]], 1.7e308, separation=1).gdp().mu == pytest.approx(1.0)


def test_one_rate_may_stand_alone_and_numbers_are_plain() -> None:
    rates: Any = 0.1
    assert len(LOSS.risk(false_positive_rates=rates).attacks) == 1
    run = PoissonSubsampled(LOSS, 0.01) * 10
    assert {type(run.epsilon(1e-5)), type(run.delta(1.0)), type(run.rdp(np.float64(2.0)))} == {float}
    assert {type(end) for end in run.epsilon_interval(1e-5)[:2] + run.delta_interval(1.0)[:2]} == {float}


def test_a_group_of_any_size_has_a_loss() -> None:
    for leaf in (Laplace, Gaussian):
        assert leaf(1.0).group(10**400).epsilon(1e-6) == math.inf
    assert Laplace(3.0).group(3) == Laplace(1.0)


def test_the_least_chances_are_told_in_a_few_digits() -> None:
    told = str(Gaussian(1.0).risk(false_positive_rates=[1e-18], prior=1e-9, baseline=1e-300))
    assert "guess with chance 1e-298 %" in told
    assert max(map(len, told.splitlines())) < 200
