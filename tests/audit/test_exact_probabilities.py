"""The exact audit against distributions whose epsilon is known in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.audit import exact_audit
from sfumato.errors import ParameterError
from sfumato.mechanisms import Exponential, Gaussian, Laplace, RandomizedResponse
from sfumato.numerics import Interval

weights = st.lists(st.integers(0, 50), min_size=2, max_size=6).filter(any)


def normalised(values: list[int]) -> dict[int, Fraction]:
    return {k: Fraction(value, sum(values)) for k, value in enumerate(values)}


def by_all_sets(p: dict[int, Fraction], q: dict[int, Fraction], delta: float) -> float:
    """The largest log((P(S) - delta) / Q(S)) over every set, in both directions."""
    worst = 0.0
    outputs = sorted({*p, *q})
    for size in range(1, len(outputs) + 1):
        for event in itertools.combinations(outputs, size):
            sums = [sum(distribution.get(k, Fraction(0)) for k in event) for distribution in (p, q)]
            for mine, theirs in (sums, sums[::-1]):
                if mine > Fraction(delta):
                    worst = max(worst, math.log((mine - Fraction(delta)) / theirs) if theirs else math.inf)
    return worst


@settings(max_examples=150, deadline=None)
@given(weights, weights, st.sampled_from([0.0, 1e-3, 0.1, 0.5]))
def test_no_set_forces_more(first: list[int], second: list[int], delta: float) -> None:
    p, q = normalised(first), normalised(second)
    found = exact_audit((p, q), epsilon=1.0, delta=delta)
    truth = by_all_sets(p, q, delta)
    assert found.epsilon_lower <= found.epsilon_upper
    if truth == math.inf:
        assert found.epsilon_lower == math.inf
    else:
        assert abs(found.epsilon_lower - truth) <= 1e-12
        assert abs(found.epsilon_upper - truth) <= 1e-12
    assert found.violated == (found.epsilon_lower > 1.0)


@settings(max_examples=60, deadline=None)
@given(weights, weights, st.sampled_from([0.0, 1e-3, 0.1]))
def test_the_event_is_a_witness(first: list[int], second: list[int], delta: float) -> None:
    p, q = normalised(first), normalised(second)
    found = exact_audit((p, q), epsilon=0.0, delta=delta)
    if found.epsilon_lower in (0.0, math.inf):
        return
    likely, rare = (p, q) if found.pair.first == "first" else (q, p)
    mine, theirs = (
        sum(distribution.get(k, Fraction(0)) for k in found.event) for distribution in (likely, rare)
    )
    assert abs(math.log((mine - Fraction(delta)) / theirs) - found.epsilon_lower) <= 1e-12


def test_enclosed_probabilities_give_bounds_on_either_side() -> None:
    def distribution(p: float) -> dict[bool, Interval]:
        return {True: Interval(p - 1e-3, p + 1e-3), False: Interval(1 - p - 1e-3, 1 - p + 1e-3)}

    found = exact_audit(distribution, epsilon=0.5, pairs=[(0.7, 0.4)])
    assert found.epsilon_lower < math.log(0.6 / 0.3) < found.epsilon_upper
    assert found.epsilon_upper - found.epsilon_lower < 0.02


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_discrete_laplace_is_exactly_what_it_says(epsilon: float) -> None:
    mechanism = Laplace.calibrated(sensitivity=1, epsilon=epsilon)
    found = exact_audit(mechanism, epsilon=epsilon)
    assert not found.violated
    assert found.epsilon_lower > epsilon * (1 - 1e-6)


@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-2])
def test_discrete_gaussian_is_exactly_what_it_says(delta: float) -> None:
    mechanism = Gaussian.calibrated(sensitivity=1, epsilon=1.0, delta=delta)
    found = exact_audit(mechanism, epsilon=1.0, delta=delta)
    assert not found.violated
    assert found.epsilon_lower <= mechanism.privacy_loss.epsilon(delta)
    assert 1 - 1e-5 < found.epsilon_lower <= found.epsilon_upper <= 1.0
    # At delta 0 it has no epsilon: what is proved is finite, what may be is not.
    assert exact_audit(mechanism, epsilon=1.0).violated
    assert exact_audit(mechanism, epsilon=1.0).epsilon_upper == math.inf


def test_both_inputs_are_enumerated_however_far_apart_they_are() -> None:
    mechanism = Laplace.calibrated(sensitivity=40, epsilon=200.0)  # noise of a fifth, 40 apart
    found = exact_audit(mechanism, epsilon=200.0, delta=1e-5)
    assert not found.violated
    assert 190 < found.epsilon_lower <= found.epsilon_upper <= 200


@pytest.mark.parametrize("monotone", [False, True])
def test_the_exponential_mechanism_tells_its_distribution(monotone: bool) -> None:
    mechanism = Exponential.calibrated(sensitivity=1, epsilon=1.0, monotone=monotone)
    found = exact_audit(mechanism, epsilon=1.0)
    assert not found.violated
    assert found.epsilon_lower > 0.8
    assert exact_audit(mechanism, epsilon=0.5).violated


def test_half_the_noise_is_caught() -> None:
    good = Laplace.calibrated(sensitivity=1, epsilon=1.0)
    assert exact_audit(good, epsilon=1.0, pairs=[(0, 2)]).violated
    assert exact_audit(good, epsilon=0.999).violated


def test_randomized_response_tells_its_distribution() -> None:
    mechanism = RandomizedResponse(categories=("a", "b", "c"), truth=Fraction(3, 4))
    found = exact_audit(mechanism, epsilon=1.8)
    assert math.isclose(found.epsilon_lower, math.log(6), rel_tol=1e-12)
    assert math.isclose(found.epsilon_upper, math.log(6), rel_tol=1e-12)
    assert not found.violated
    assert exact_audit(mechanism, epsilon=1.0).violated
    # What is no category is reported evenly.
    assert exact_audit(mechanism, epsilon=1.0, pairs=[("a", None)]).epsilon_upper < math.log(3)
    with pytest.raises(ParameterError, match="answer must be one category"):
        exact_audit(mechanism, epsilon=1.0, pairs=[(["a"], ["b"])])


class Told:
    """Something that tells its distribution as an array, as selection does."""

    def probabilities(self, value: Any) -> list[float]:
        return [0.25, 0.75] if value else [0.75, 0.25]


def test_a_distribution_may_be_released_by_a_method() -> None:
    found = exact_audit(Told(), epsilon=1.0, pairs=[(0, 1)])  # type: ignore[arg-type]
    assert math.isclose(found.epsilon_lower, math.log(3))
    assert found.violated


def test_it_says_what_it_found() -> None:
    found = exact_audit(({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.75}), epsilon=0.5)
    assert "VIOLATED" in str(found)
    assert found.event == frozenset({"a"})


def test_bad_input() -> None:
    fair = {0: 0.5, 1: 0.5}
    refused: list[Callable[[], Any]] = [
        lambda: exact_audit((fair, fair), epsilon=-1.0),
        lambda: exact_audit((fair, fair), epsilon=1.0, delta=1.0),
        lambda: exact_audit((fair, {0: 0.5}), epsilon=1.0),
        lambda: exact_audit((fair, {0: 1.5, 1: -0.5}), epsilon=1.0),
        lambda: exact_audit((fair, {0: math.nan, 1: 1.0}), epsilon=1.0),
        lambda: exact_audit((fair, fair, fair), epsilon=1.0),  # type: ignore[arg-type]
        lambda: exact_audit((fair, fair), epsilon=1.0, pairs=[(0, 1)]),
        lambda: exact_audit((fair, {}), epsilon=1.0),
        lambda: exact_audit(lambda data: fair, epsilon=1.0),
        lambda: exact_audit(lambda data: fair, epsilon=1.0, pairs=[]),
        lambda: exact_audit(3, epsilon=1.0, pairs=[(0, 1)]),  # type: ignore[arg-type]
        lambda: exact_audit(Laplace(sensitivity=1.0, scale=1.0), epsilon=1.0),
    ]
    for bad in refused:
        with pytest.raises(ParameterError):
            bad()
