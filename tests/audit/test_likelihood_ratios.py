"""Ratios of known families: exact, better than learned ones, and never more than a score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.audit import InputPair, audit
from sfumato.audit.likelihood_ratios import known_log_likelihood_ratio, of_pair
from sfumato.errors import ParameterError
from sfumato.mechanisms import (
    BoundedSum,
    Count,
    Exponential,
    Gaussian,
    Histogram,
    Laplace,
    Mechanism,
    Staircase,
)
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from tests.cases import cases
from tests.chance import accepts_only, unrefuted

SURE = 1 - 1e-12
ONES = InputPair(first=np.zeros(10), second=np.ones(10))


def laplace_ratio(outputs: Any, first: Any, second: Any) -> Any:
    return (np.abs(outputs - second) - np.abs(outputs - first)).sum(axis=1) / 10


KNOWN: dict[str, tuple[Mechanism, Any, Any, Any]] = {
    "Laplace": (Laplace(sensitivity=1, scale=2), DiscreteLaplaceDistribution(2), 3, 5),
    "Gaussian": (Gaussian(sensitivity=1, stddev=3), DiscreteGaussianDistribution(3), -1, 0),
    "a count": (
        Laplace.for_query(Count(), epsilon=0.5),
        DiscreteLaplaceDistribution(2),
        np.zeros(4),
        np.zeros(5),
    ),
}


@cases("known", list(KNOWN))
def test_the_ratio_is_that_of_the_noise(known: str) -> None:
    mechanism, noise, first, second = KNOWN[known]
    ratio = known_log_likelihood_ratio(mechanism)
    assert ratio is not None
    outputs = np.arange(-6, 9)
    counts = [len(data) if isinstance(data, np.ndarray) else data for data in (first, second)]
    exact = [
        np.log(noise.pmf(int(output) - counts[0]).upper / noise.pmf(int(output) - counts[1]).upper)
        for output in outputs
    ]
    assert np.allclose(ratio(outputs, first, second), exact, rtol=0, atol=1e-9)
    assert np.abs(of_pair(ratio, InputPair(first=first, second=second))(outputs) - exact).max() < 1e-6


def test_entries_of_an_output_add_up_in_the_unit_of_the_values() -> None:
    mechanism = Laplace(sensitivity=0.5, scale=4.0, l0=3)
    outputs = mechanism.outputs(np.zeros(3), 50, 1)
    ratio = known_log_likelihood_ratio(mechanism)
    assert ratio is not None
    exact = (np.abs(outputs - 0.5) - np.abs(outputs)).sum(axis=1) / 4
    assert np.allclose(ratio(outputs, np.zeros(3), np.full(3, 0.5)), exact)
    summed = Laplace.for_query(BoundedSum(bounds=(0.0, 2.0)), epsilon=1.0)
    known = known_log_likelihood_ratio(summed)
    assert known is not None
    released = summed.outputs(np.array([2.0]), 50, 1)
    assert np.allclose(
        known(released, np.array([2.0]), np.zeros(0)), (np.abs(released) - np.abs(released - 2)) / 2
    )


@cases("mechanism", [Staircase(sensitivity=1.0, epsilon=1.0), Exponential(sensitivity=1, scale=2), len])
def test_of_others_none_is_known(mechanism: Any) -> None:
    assert known_log_likelihood_ratio(mechanism) is None


def test_many_dimensions_are_told_apart() -> None:
    """Of the true epsilon 1, bounds on two probabilities of learned events certified .36 in as many runs."""
    noise = np.random.default_rng(1)

    def boxed(data: Any, size: int) -> Any:
        return data + noise.laplace(0.0, 10.0, (size, 10))

    given: dict[str, Any] = {"epsilon": 1.0, "pairs": [ONES], "trials": 100_000}
    for ratio in (laplace_ratio, None):
        found = audit(boxed, **given, log_likelihood_ratio=ratio)
        accepts_only(unrefuted(found.epsilon_lower), 1.0, part=0.45)


def test_a_wrong_ratio_refutes_nothing() -> None:
    noise = np.random.default_rng(2)
    found = audit(
        lambda data, size: data + noise.laplace(0.0, 10.0, (size, 10)),
        epsilon=1.0,
        pairs=[ONES],
        trials=4000,
        confidence=SURE,
        log_likelihood_ratio=lambda outputs, first, second: noise.normal(size=len(outputs)),
    )
    assert not found.violated


def test_events_of_it_can_be_asked_about_outputs() -> None:
    mechanism = Laplace.for_query(Histogram(categories=("a", "b")), epsilon=1.0)
    found = audit(mechanism, epsilon=1.0, trials=2000, rng=1)
    assert found.event.holds(mechanism.outputs(found.pair.first, 10, 1)).shape == (10,)


def test_it_must_give_one_number_for_each_output_and_not_come_with_observers() -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "pairs": [ONES], "trials": 400}

    def noisy(data: Any, size: int) -> Any:
        return np.random.default_rng(1).normal(size=(size, 10))

    with pytest.raises(ParameterError, match="log_likelihood_ratio must return 100 numbers, one for each"):
        audit(noisy, **given, log_likelihood_ratio=lambda outputs, first, second: outputs)
    with pytest.raises(ParameterError, match="log_likelihood_ratio must be left out where observe is given"):
        audit(noisy, **given, log_likelihood_ratio=laplace_ratio, observe=["time"])
