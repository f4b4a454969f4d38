"""Directions on devices: the exact law given a seed, that it is drawn, the vectors, and what is refused."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import (
    PrivUnitGRandomizer,
    PrivUnitRandomizer,
    ProjUnitRandomizer,
    Randomizer,
    SphereSamplingRandomizer,
)
from sfumato.local.device.vector import directions
from sfumato.local.device.vector.random_vectors import UNIT, gaussians, on_sphere
from sfumato.numerics.randomness.source import SimulatedSource
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate
from tests.local.laws import below_exponential, have_moments, within, worst_odds

KINDS: list[Any] = [PrivUnitRandomizer, PrivUnitGRandomizer, SphereSamplingRandomizer, ProjUnitRandomizer]
KNOWN = [[[-3151, -3017, -1010], [1896, -7356, -1160]]]
TRUTHS = [(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.6, 0.0, 0.8), (0.0, -1.0, 0.0)]


def small(kind: Any, epsilon: float, candidates: int = 9, **more: Any) -> Any:
    if kind is not SphereSamplingRandomizer:
        more["candidates"] = candidates + (kind is ProjUnitRandomizer and candidates % 2)
    return kind(epsilon=epsilon, dimension=3, **more)


@cases("kind", KINDS)
@cases("epsilon", [0.05, 0.5, 1.0, 4.0, 12.0])
@cases("candidates", [2, 9, 64])
def test_the_odds_of_all_reports_are_those_of_epsilon(kind: Any, epsilon: float, candidates: int) -> None:
    made = small(kind, epsilon, candidates)
    for seed in (0, 5, (1 << 40) - 1):
        odds = worst_odds(partial(made.probabilities, seed=seed), TRUTHS)
        assert below_exponential(odds, epsilon, 1 - 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_is_the_law(kind: Any) -> None:
    made, n, truth = small(kind, 1.0), 40_000, np.array([0.0, 0.6, -0.8])
    seeds, numbers = made.opened(made.randomize_batch(np.tile(truth, (n, 1)), 3).records)
    order = np.argsort(-made.along(seeds, np.tile(truth, (n, 1))), axis=1)
    ranks = np.bincount(np.argmax(order == numbers[:, None], axis=1), minlength=made.count)
    inside = float(made.inside.chance)
    law = np.full(made.count, (1 - inside) / (made.count - made.near))
    law[: made.near] = inside / made.near
    near = slice(None, made.near)
    less, one_more, even = law.copy(), law.copy(), np.full(made.count, 1 / made.count)
    less[near] /= 1.1
    less[made.near :] *= (1 - less[near].sum()) / (1 - inside)
    one_more[: made.near + 1] = inside / (made.near + 1)
    one_more[made.near + 1 :] = (1 - inside) / max(made.count - made.near - 1, 1)
    told = [dict(enumerate(chances)) for chances in (law, less, one_more, even)]
    counts = dict(enumerate(ranks.tolist()))
    accepts_only(frequencies(counts), told[0], less_often_near=told[1], one_more_near=told[2], even=told[3])
    # Seeds and numbers by themselves say nothing.
    assert len(np.unique(seeds)) == n
    accepts_only(rate(int((seeds >> np.uint64(39)).sum()), n), 0.5, tilted=0.53)
    numbered = dict(enumerate(np.bincount(numbers, minlength=made.count).tolist()))
    accepts_only(frequencies(numbered), told[3], as_ranks=told[0])


def test_vectors_pass_for_normal_and_stay_the_same() -> None:
    seeds, numbers = np.arange(20_000, dtype=np.uint64), np.tile(np.arange(3), (20_000, 1))
    made = gaussians(seeds, numbers, 5) / UNIT
    flat = made.reshape(20_000, 15)
    n = len(flat)
    have_moments(flat, 1.0, tells=0.1)
    fourth = within((flat**4).mean(axis=0), np.sqrt(96 / n))
    accepts_only(fourth, 3.0, uniform=9 / 5, laplace=6.0, of_signs=1.0)
    shared = flat.T @ flat / n - np.eye(15)
    accepts_only(within(shared, np.sqrt(2 / n)), 0.0, a_tenth_is_shared=0.1)
    following = within((flat[1:] * flat[:-1]).mean(axis=0), 1 / np.sqrt(n))
    accepts_only(following, 0.0, a_tenth_is_shared=0.1)
    assert np.linalg.norm(on_sphere(made * UNIT), axis=2) == pytest.approx(np.full((n, 3), UNIT * np.sqrt(5)))
    known = gaussians(np.array([7], np.uint64), np.array([[0, 2]]), 3)
    assert np.rint(known).astype(int).tolist() == KNOWN


@pytest.mark.parametrize("kind", KINDS)
def test_short_vectors_are_randomized_to_either_side(kind: Any) -> None:
    made, n = small(kind, 1.0, radius=5.0), 100_000
    rows = made._sided(made._checked(np.tile([0.0, 3.0, 0.0], (n, 1))), SimulatedSource(3))
    assert np.abs(rows).tolist() == [[0.0, 1.0, 0.0]] * n
    # 3 of 5 in the mean: a share of 0.8 goes up.
    accepts_only(rate(int((rows[:, 1] > 0).sum()), n), 0.8, as_long_as_it_is=0.6, away=0.2)
    nothing = made._sided(made._checked(np.zeros((n, 3))), SimulatedSource(3))
    accepts_only(rate(int((nothing[:, 0] > 0).sum()), n), 0.5, tilted=0.52)


@cases("kind", KINDS)
@cases(
    "values",
    [
        [[7.125, 0, 0]],
        [[float("nan"), 0, 0]],
        [[float("inf"), 0, 0]],
        [[0.1, 0.1]],
        [0.1, 0.1, 0.1],
        [["a", "b", "c"]],
        [[0.1, 0.2, 0.3], [0.1]],
        [None],
        3,
    ],
)
def test_other_vectors_are_refused_and_not_shown(kind: Any, values: Any) -> None:
    with pytest.raises(ParameterError, match="values must be vectors of 3 numbers with a norm") as caught:
        small(kind, 1.0).randomize_batch(values)
    assert "7.125" not in str(caught.value)


@cases("kind", KINDS)
@cases("epsilon", [0.1, 1.0, 4.5])
def test_a_specification_makes_the_same_randomizer(kind: Any, epsilon: float) -> None:
    made = kind(epsilon=epsilon, dimension=4, radius=2.5)
    told = json.loads(json.dumps(made.specification()))
    again: Any = Randomizer.from_specification(told)
    assert type(again) is kind
    assert again == made
    assert again.digest == made.digest
    assert again.randomize([0, 1, 0, 2], 5) == made.randomize([0, 1, 0, 2], 5)
    assert len(made.randomize([0, 0, 0, 2.5])) == made.width
    assert len(made.randomize_batch([])) == 0
    for change in ({"dimension": None}, {"radius": "x"}, {"near": 0}, {"vectors": "other"}):
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, **change})


@cases("kind", KINDS)
def test_vectors_too_long_for_a_piece_are_reported_one_by_one(kind: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directions, "PIECE", 5)
        made = small(kind, 1.0)
        batch = made.randomize_batch([TRUTHS[0]] * 3, 1)
    assert len(batch.records) == 3
    assert made.well_formed(batch.records).all()


def test_numbers_beyond_the_candidates_are_not_well_formed() -> None:
    made = small(PrivUnitRandomizer, 1.0, 5)
    records = made.layout.pack(np.arange(8, dtype=np.uint64) << np.uint64(40) | np.uint64(9))
    assert made.well_formed(records).tolist() == [True] * 5 + [False] * 3


def test_parameters_that_break_a_rule() -> None:
    with pytest.raises(ParameterError, match="dimension must be an integer of at least 2"):
        PrivUnitRandomizer(epsilon=1.0, dimension=1)
    with pytest.raises(ParameterError, match="dimension must be at most 65536"):
        PrivUnitRandomizer(epsilon=1.0, dimension=1 << 17)
    with pytest.raises(ParameterError, match="candidates must be at most 4096"):
        PrivUnitGRandomizer(epsilon=1.0, dimension=3, candidates=5000)
    with pytest.raises(ParameterError, match="candidates must be an integer"):
        PrivUnitGRandomizer(epsilon=1.0, dimension=3, candidates=1)
    with pytest.raises(ParameterError, match="radius must"):
        SphereSamplingRandomizer(epsilon=1.0, dimension=3, radius=0.0)
    with pytest.raises(ParameterError, match="epsilon must be above about"):
        SphereSamplingRandomizer(epsilon=1e-20, dimension=3)


@pytest.mark.parametrize("value", [[1e200, 0.0, 0.0], [1e308, 1e308, 1e308], [1e160, -1e160, 0.0]])
def test_huge_numbers_are_refused_as_any_others(value: list[float]) -> None:
    # No warning either, which would show that they are huge.
    for radius in (1.0, 1e-300):
        with pytest.raises(ParameterError, match="values must be vectors"):
            PrivUnitRandomizer(epsilon=1.0, dimension=3, radius=radius).randomize(value)


def test_candidates_are_the_least_power_of_two_from_eight_times_the_odds() -> None:
    for epsilon in (0.5, 2.0, 2.2, 3.0, 4.0, 5.5, 6.0, 9.0):
        chosen, wanted = PrivUnitRandomizer(epsilon=epsilon, dimension=3).candidates, 8 * math.exp(epsilon)
        assert chosen == min(max(64, next(1 << bits for bits in range(20) if 1 << bits >= wanted)), 4096)
