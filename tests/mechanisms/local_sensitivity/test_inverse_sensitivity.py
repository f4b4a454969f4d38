"""Inverse sensitivity: lengths by brute force, the exact distribution against the loss, the sampler."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Grid, InverseSensitivity
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

TOP = 4
Data = tuple[int, ...]


def lengths(mechanism: InverseSensitivity, data: Data) -> dict[int, int]:
    """The length of each answer, by the mechanism's runs."""
    found: dict[int, int] = {}
    for start, count, length in zip(*mechanism._runs(np.array(data, np.int64)), strict=True):
        for answer in range(start, start + count):
            assert answer not in found
            found[answer] = int(length)
    return dict(sorted(found.items()))


def distribution(mechanism: InverseSensitivity, data: Data) -> np.ndarray:
    weights = np.exp(-float(mechanism.epsilon) / 2 * np.array(list(lengths(mechanism, data).values())))
    return np.asarray(weights / weights.sum())


def truth(mechanism: InverseSensitivity, data: Data) -> Fraction:
    if mechanism.of == "mean":
        return Fraction(sum(data), len(data))
    return Fraction(sorted(data)[math.ceil(mechanism.quantile * len(data)) - 1])


KINDS: list[dict[str, Any]] = [
    {"of": "mean"},
    {"quantile": Fraction(1, 2)},
    {"quantile": Fraction(1, 10)},
    {"quantile": Fraction(3, 4)},
    {"quantile": Fraction(1, 2), "radius": 1},
    {"of": "mean", "radius": 1},
]


@cases("kind", KINDS, ids=str)
def test_lengths_are_those_of_a_search_over_all_datasets(kind: dict[str, Any]) -> None:
    mechanism = InverseSensitivity(bounds=(0, TOP), epsilon=1.0, **kind, neighboring=Neighboring.REPLACE_ONE)
    for size in (1, 2, 4):
        space = list(itertools.product(range(TOP + 1), repeat=size))
        values = {data: truth(mechanism, data) for data in space}
        for data in itertools.combinations_with_replacement(range(TOP + 1), size):
            wanted = dict.fromkeys(range(TOP + 1), size + 1)
            for other in space:
                steps = sum(a != b for a, b in zip(data, other, strict=True))
                for answer in wanted:
                    if values[other] == answer:
                        wanted[answer] = min(wanted[answer], steps)
            # Within the radius of whole answers; a mean's radius counts from where k records just reach.
            radius = int(mechanism.radius)
            near = {answer: min(wanted[s] for s in wanted if abs(s - answer) <= radius) for answer in wanted}
            if kind == {"of": "mean", "radius": 1}:
                assert all(lengths(mechanism, data)[answer] <= near[answer] for answer in near)
            else:
                assert lengths(mechanism, data) == near


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("relation", [Neighboring.REPLACE_ONE, Neighboring.ZERO_OUT])
def test_losses_have_the_range_that_is_paid_for(kind: dict[str, Any], relation: Neighboring) -> None:
    mechanism = InverseSensitivity(bounds=(0, TOP), epsilon=1.0, neighboring=relation, **kind)
    assert mechanism.privacy_loss.epsilon(0.0) == 1.0
    widest = 0.0
    for size in range(1, 5):
        for data in itertools.combinations_with_replacement(range(TOP + 1), size):
            for new in range(TOP + 1 if relation is Neighboring.REPLACE_ONE else 1):
                for i in range(size):
                    other = (*data[:i], new, *data[i + 1 :])
                    losses = np.log(distribution(mechanism, data) / distribution(mechanism, other))
                    widest = max(widest, float(np.ptp(losses)))
    assert 0.45 < widest <= 1 + 1e-12


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_releases_follow_the_distribution(kind: dict[str, Any]) -> None:
    mechanism = InverseSensitivity(bounds=(0, TOP), epsilon=2.0, **kind, neighboring=Neighboring.REPLACE_ONE)
    data, count = (4, 0, 1, 3, 1, 4, 4), 3000 if "radius" in kind else 1000
    rng = np.random.default_rng(3)
    seen = Counter(mechanism.release(np.array(data), rng).value for _ in range(count))

    def probabilities(epsilon: float) -> dict[int, float]:
        return dict(enumerate(distribution(replace(mechanism, epsilon=epsilon), data)))

    accepts_only(
        frequencies(seen), probabilities(2.0), flatter=probabilities(1.0), steeper=probabilities(4.0)
    )


def test_answers_are_close() -> None:
    rng = np.random.default_rng(2)
    median = InverseSensitivity(bounds=(0.0, 1.0), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    mean = InverseSensitivity(bounds=(0.0, 1.0), epsilon=1.0, of="mean", neighboring=Neighboring.REPLACE_ONE)
    errors = np.array(
        [
            (median.release(x, rng).value - np.median(x), mean.release(x, rng).value - x.mean())
            for x in (rng.random(1001) for _ in range(120))
        ]
    )
    # The exponential mechanism's published figure for the median is .0023, at the same sensitivity.
    assert 0.0015 < np.abs(errors[:, 0]).mean() < 0.0032
    assert np.abs(errors[:, 1]).mean() < 0.003


def test_the_length_bound_holds() -> None:
    mechanism = InverseSensitivity(bounds=(0, 1000), epsilon=0.2, neighboring=Neighboring.REPLACE_ONE)
    rng = np.random.default_rng(9)
    data = np.sort(rng.integers(0, 1001, 500))
    answers = np.array([mechanism.release(data, rng).value for _ in range(160)])
    below, above = np.searchsorted(data, answers), 500 - np.searchsorted(data, answers, side="right")
    far = np.maximum(0, np.maximum(below - 249, above - 250))

    def held(bound: float) -> None:
        assert np.count_nonzero(far > bound) <= 32

    bound = mechanism.length_bound(0.2)
    accepts_only(held, bound, tenth=bound / 10)


def test_sums_of_far_more_steps_than_fit_are_exact() -> None:
    wide = InverseSensitivity(
        bounds=(0, 1 << 60), epsilon=50.0, of="mean", neighboring=Neighboring.REPLACE_ONE
    )
    assert abs(wide.release(np.full(1000, 1 << 59)).value - (1 << 59)) < 1 << 54


def test_odd_data_is_answered_at_the_usual_cost() -> None:
    odd = np.array([math.nan, math.inf, -math.inf, 1e308, 0.5])
    for of in ("quantile", "mean"):
        mechanism = InverseSensitivity(
            bounds=(-1.0, 1.0), epsilon=1.0, of=of, neighboring=Neighboring.REPLACE_ONE
        )
        for data in (np.zeros(0), odd, np.full(99, math.nan), np.full(9, math.inf), np.zeros(5, np.int64)):
            release = mechanism.release(data)
            assert -1 <= release.value <= 1
            assert release.loss == mechanism.privacy_loss
        assert mechanism.release(np.full(10_000, math.inf)).value > 0.98
    near = InverseSensitivity(
        bounds=(-1.0, 1.0), epsilon=1.0, radius=0.01, neighboring=Neighboring.REPLACE_ONE
    )
    assert abs(near.release(np.full(1000, math.nan)).value) <= 0.01


@cases(
    ("parameters", "error", "message"),
    [
        ({"bounds": (1, 1)}, ParameterError, "bounds must"),
        ({"bounds": (0, math.inf)}, UnboundedSensitivity, "bounds must"),
        ({"epsilon": 0}, ParameterError, "epsilon must"),
        ({"epsilon": 1e-12}, ParameterError, "epsilon must be at least"),
        ({"of": "mode"}, ParameterError, "of must"),
        ({"quantile": 1}, ParameterError, "quantile must"),
        ({"radius": -1}, ParameterError, "radius must"),
        ({"grid": 1}, ParameterError, "grid must"),
        ({"grid": Grid(exponent=-62)}, ParameterError, "bounds must"),
        ({"neighboring": Neighboring.ADD_REMOVE}, ParameterError, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    good: dict[str, Any] = {"bounds": (0, 9), "epsilon": 1.0}
    with pytest.raises(error, match=message):
        InverseSensitivity(**(good | parameters))
