"""The worst case of tracing: power up to the bound, and a planted release is refuted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import attacks
from sfumato.errors import ParameterError
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.mechanisms.base.grid import Grid
from sfumato.privacy import GaussianDP, Neighboring

EVERYTHING = np.ones(16, int)


def test_no_bound_is_exceeded_and_the_power_comes_near_it() -> None:
    """At a confidence of 1 - 1e-9."""
    for mechanism in (Laplace(sensitivity=1, l0=16, scale=4), Gaussian(sensitivity=1, l0=16, stddev=4)):
        found = attacks.worst_case_tracing(mechanism, EVERYTHING, runs=20_000, confidence=1 - 1e-9, rng=1)
        success, advantage, precision = found.bounds
        assert not any(bound.exceeded for bound in found.bounds)
        assert success.seen.upper > success.allowed - 0.05
        assert 0.1 < advantage.seen.upper < advantage.allowed + 0.1
        assert precision.seen.lower > 0.5
        assert found.design == "runs"


def test_half_of_the_noise_that_is_claimed_is_refuted() -> None:
    claim = Gaussian(sensitivity=1, l0=16, stddev=8)
    planted = Gaussian(sensitivity=1, l0=16, stddev=4)
    options: dict[str, Any] = {"runs": 20_000, "confidence": 1 - 1e-9, "rng": 2}
    found = attacks.worst_case_tracing(
        planted, EVERYTHING, claim=claim.privacy_loss, assumed_noise=claim.distribution, **options
    )
    assert found.bounds[0].exceeded
    right = attacks.worst_case_tracing(claim, EVERYTHING, **options)
    assert not right.bounds[0].exceeded


def test_attributes_that_the_target_lacks_say_nothing() -> None:
    mechanism = Laplace(sensitivity=1, l0=4, scale=1)
    few = attacks.worst_case_tracing(mechanism, [1, 0, 0, 0], runs=4000, confidence=1 - 1e-9, rng=3)
    assert few.success is not None
    # One count of scale 1: at a false positive rate of a twentieth, at most e times that.
    assert few.success.lower < 0.05 * np.e


def test_a_claim_about_replacements_has_no_bound_for_absence() -> None:
    claim = GaussianDP(1.0, neighboring=Neighboring.REPLACE_ONE)
    found = attacks.worst_case_tracing(
        Laplace(sensitivity=1, scale=1, l0=16), EVERYTHING, runs=100, claim=claim, rng=1
    )
    assert found.bounds == ()


def test_bad_input_is_refused() -> None:
    counts = Laplace(sensitivity=1, l0=2, scale=1)
    for mechanism, target, runs in (
        ("laplace", [1, 1], 10),
        (Laplace(sensitivity=1.5, l0=2, scale=1, grid=Grid(exponent=-4)), [1, 1], 10),
        (counts, [1, 2], 10),
        (counts, [], 10),
        (counts, [0, 0], 10),
        (counts, [1, 1], 7),
    ):
        with pytest.raises(ParameterError):
            attacks.worst_case_tracing(mechanism, target, runs=runs)  # type: ignore[arg-type]


def test_a_target_whom_the_loss_is_not_about_refutes_nothing() -> None:
    counts = Laplace(sensitivity=1, l0=4, scale=4)
    with pytest.raises(ParameterError, match="more attributes"):
        attacks.worst_case_tracing(counts, EVERYTHING, runs=500, rng=1)
    claimed = attacks.worst_case_tracing(counts, EVERYTHING, runs=500, claim=counts.privacy_loss, rng=1)
    assert claimed.success is not None


def test_a_seed_of_numpy_draws_as_one_of_python_does() -> None:
    counts = Laplace(sensitivity=1, l0=4, scale=4)
    seeds: list[Any] = [3, np.int64(3)]
    found = [attacks.worst_case_tracing(counts, np.ones(4, int), runs=50, rng=seed) for seed in seeds]
    assert np.array_equal(found[0].targets.scores, found[1].targets.scores)
    assert found[0].controls is not None
    assert found[1].controls is not None
    assert np.array_equal(found[0].controls.scores, found[1].controls.scores)
