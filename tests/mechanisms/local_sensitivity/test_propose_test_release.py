"""Propose-test-release: the exact distribution against the loss, the sampler against the distribution."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import ProposeTestRelease, StableQuantile
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

TOP, REACH = 6, 90
MEDIAN = StableQuantile(bounds=(0, TOP))


@functools.cache
def distribution(mechanism: ProposeTestRelease, data: tuple[int, ...]) -> np.ndarray:
    """Probabilities of a refusal, and of the values from -REACH to REACH."""
    array = np.array(data, np.int64)
    q = math.exp(-1 / float(mechanism.test_scale))
    missing = mechanism.threshold - mechanism.statistic.distance(array, Fraction(mechanism.bound))
    passed = q**missing / (1 + q) if missing > 0 else 1 - q ** (1 - missing) / (1 + q)
    p = math.exp(-1 / float(mechanism.scale))
    k = np.arange(-REACH, REACH + 1) - mechanism.statistic.value(array)
    return np.concatenate([[1 - passed], passed * (1 - p) / (1 + p) * p ** np.abs(k)])


@pytest.mark.parametrize("relation", list(Neighboring))
def test_the_loss_covers_the_exact_distribution(relation: Neighboring) -> None:
    mechanism = ProposeTestRelease(
        statistic=MEDIAN, bound=2, test_scale=2, threshold=3, scale=4, neighboring=relation
    )
    loss = mechanism.privacy_loss
    assert loss.pure().epsilon == 1.0
    for epsilon in (0.2, 0.6, 1.0):
        claimed, worst = loss.delta(epsilon), 0.0
        for size in range(5):
            for one in itertools.combinations_with_replacement(range(TOP + 1), size):
                for new in range(TOP + 1):
                    moved = (*one[1:], 0 if relation is Neighboring.ZERO_OUT else new) if one else one
                    other = (*one, new) if relation is Neighboring.ADD_REMOVE else moved
                    here, there = (distribution(mechanism, tuple(sorted(data))) for data in (one, other))
                    for a, b in ((here, there), (there, here)):
                        worst = max(worst, float(np.maximum(0, a - math.exp(epsilon) * b).sum()))
        assert 0.1 * claimed < worst <= claimed * (1 + 1e-9)


def test_releases_follow_the_distribution() -> None:
    mechanism = ProposeTestRelease(statistic=MEDIAN, bound=2, test_scale=2, threshold=3, scale=1)
    data, count = (4, 3, 5, 3, 4), 1000
    rng = np.random.default_rng(4)
    seen = Counter(mechanism.release(np.array(data), rng).value for _ in range(count))
    keys = [None, *range(-REACH, REACH + 1)]

    def probabilities(test_scale: Any, scale: Any) -> dict[int | None, float]:
        other = replace(mechanism, test_scale=test_scale, scale=scale)
        return dict(zip(keys, distribution(other, data).tolist(), strict=True))

    accepts_only(
        frequencies(seen),
        probabilities(2, 1),
        less_noise=probabilities(2, Fraction(1, 2)),
        more_noise=probabilities(2, 2),
        steadier_test=probabilities(1, 1),
    )
    assert 0.2 < seen[None] / count < 0.8


def test_calibration_meets_the_request_and_needs_no_more_distance() -> None:
    for epsilon, delta, bound in ((1.0, 1e-6, 0.1), (0.1, 1e-9, 3), (4.0, 1e-2, Fraction(1, 3))):
        mechanism = ProposeTestRelease.calibrated(
            statistic=MEDIAN, bound=bound, epsilon=epsilon, delta=delta, neighboring=Neighboring.REPLACE_ONE
        )
        found = mechanism.privacy_loss.pure()
        assert 0.999 * epsilon < found.epsilon <= epsilon
        assert found.delta <= delta < found.delta * math.exp(epsilon / 2) * 1.01
        assert mechanism.privacy_loss.epsilon(delta) <= epsilon


def test_stable_data_is_answered_and_unstable_data_is_not() -> None:
    mechanism = ProposeTestRelease.calibrated(
        statistic=StableQuantile(bounds=(0.0, 1.0)), bound=0.01, epsilon=1.0, delta=1e-6
    )
    stable = np.random.default_rng(0).normal(0.5, 0.01, 10_000)
    assert mechanism.statistic.distance(stable, Fraction(0.01)) > mechanism.distance_needed(1e-9)
    answers = [mechanism.release(stable, rng=seed).value for seed in range(30)]
    assert all(isinstance(answer, float) for answer in answers)
    assert np.median(np.abs(np.array(answers) - 0.5)) < 0.05
    split = np.repeat([0.0, 1.0], 5000)
    assert [mechanism.release(split, rng=seed).value for seed in range(30)] == [None] * 30


def test_odd_data_is_answered_at_the_usual_cost() -> None:
    mechanism = ProposeTestRelease.calibrated(
        statistic=StableQuantile(bounds=(-1.0, 1.0), quantile=0.3), bound=0.1, epsilon=1.0, delta=1e-6
    )
    odd = np.array([math.nan, math.inf, -math.inf, 1e308, 0.5])
    for data in (np.zeros(0), odd, np.full(9, math.nan), np.zeros(5, np.int64)):
        release = mechanism.release(data)
        assert release.value is None or isinstance(release.value, float)
        assert release.loss == mechanism.privacy_loss
    assert isinstance(mechanism.release(np.full(10_000, math.inf)).value, float)


class Own:
    """A user's statistic."""

    def __init__(self, distance: Any) -> None:
        self._distance = distance

    def value(self, data: Any) -> float:
        return float(data.sum())

    def distance(self, data: Any, bound: Fraction) -> Any:
        return self._distance


def test_a_statistic_of_ones_own() -> None:
    parameters: dict[str, Any] = {"bound": 1.0, "epsilon": 1.0, "delta": 1e-6}
    for distance in (math.inf, 10**30, np.int64(1000)):
        released = ProposeTestRelease.calibrated(statistic=Own(distance), **parameters).release(np.ones(3))
        assert isinstance(released.value, float)
    for distance in (0, -(10**30)):
        assert (
            ProposeTestRelease.calibrated(statistic=Own(distance), **parameters).release(np.ones(3)).value
            is None
        )
    with pytest.raises(ParameterError, match="distance must be an int"):
        ProposeTestRelease.calibrated(statistic=Own(2.5), **parameters).release(np.ones(3))


def test_an_answer_of_another_type_is_refused_whatever_the_test_says() -> None:
    # Whole answers were promised by the int.
    mechanism = ProposeTestRelease(
        statistic=StableQuantile(bounds=(0.0, 1.0)), bound=1, test_scale=1, threshold=1000, scale=1
    )
    with pytest.raises(ParameterError, match="pass a float sensitivity"):
        mechanism.release(np.array([0.0, 1.0]))


@cases(
    ("parameters", "message"),
    [
        ({"statistic": 3}, "statistic must"),
        ({"statistic": StableQuantile}, "statistic must"),
        ({"bound": 0}, "bound must"),
        ({"test_scale": 0}, "test_scale must"),
        ({"test_scale": 2**41}, "test_scale must"),
        ({"threshold": 0}, "threshold must"),
        ({"threshold": 1.5}, "threshold must"),
        ({"scale": -1}, "scale must"),
        ({"grid": 1}, "grid must"),
        ({"neighboring": "add"}, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"statistic": MEDIAN, "bound": 2, "test_scale": 2, "threshold": 3, "scale": 4}
    with pytest.raises(ParameterError, match=message):
        ProposeTestRelease(**(good | parameters))


def test_bad_requests_are_refused() -> None:
    with pytest.raises(ParameterError, match="delta must be positive"):
        ProposeTestRelease.calibrated(statistic=MEDIAN, bound=2, epsilon=1.0, delta=0.0)
    with pytest.raises(UnboundedSensitivity):
        ProposeTestRelease.calibrated(statistic=MEDIAN, bound=math.inf, epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="quantile must"):
        StableQuantile(bounds=(0, 1), quantile=1)
