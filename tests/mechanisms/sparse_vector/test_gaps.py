"""Gaps of the sparse vector technique: free of charge, by the exact distribution of what is released."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Grid, SparseVector
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate

REACH = 200


def weights(scale: Fraction, noise: str) -> np.ndarray:
    """Probabilities of noise at -REACH, ..., REACH."""
    k = np.arange(-REACH, REACH + 1)
    mass = np.exp(-np.abs(k) / float(scale))
    if noise == "exponential":
        mass[:REACH] = 0
    return np.asarray(mass / mass.sum())


def probability(mechanism: SparseVector, queries: Any, answers: Any) -> float:
    """The exact probability of answers, None or a gap, to integer queries for a threshold of 0."""
    product = weights(Fraction(mechanism.threshold_scale), mechanism.noise)
    mass = weights(Fraction(mechanism.query_scale), mechanism.noise)
    tail = np.cumsum(mass[::-1])[::-1]
    z = np.arange(-REACH, REACH + 1)
    for query, answer in zip(queries, answers, strict=False):
        if answer is None:
            product = product * (1 - tail[np.clip(z - query + REACH, 0, 2 * REACH)])
        else:
            at = z + answer - query + REACH
            product = product * np.where((at >= 0) & (at <= 2 * REACH), mass[np.clip(at, 0, 2 * REACH)], 0.0)
    return float(product.sum())


@cases("noise", ["laplace", "exponential"])
@cases(("positives", "monotone"), [(1, False), (2, False), (2, True)])
def test_gaps_cost_nothing(noise: Any, positives: int, monotone: bool) -> None:
    mechanism = SparseVector(
        sensitivity=1,
        threshold_scale=2,
        query_scale=Fraction(7, 2),
        positives=positives,
        noise=noise,
        monotone=monotone,
        gaps=True,
    )
    epsilon = mechanism.privacy_loss.epsilon(0.0)
    assert epsilon == pytest.approx(0.5 + (1 if monotone else 2) * positives / 3.5, rel=1e-12)
    queries, worst = (1, -2, 0), 0.0
    moves = [m for m in itertools.product([-1, 0, 1], repeat=3) if not monotone or len({*m} - {0}) <= 1]
    outcomes: list[tuple[Any, ...]] = [(None, None, gap) for gap in range(0, 12, 3)]
    outcomes += [(gap,) if positives == 1 else (gap, None, 3) for gap in range(0, 12, 3)]
    for move, outcome in itertools.product(moves, outcomes):
        neighbor = [query + step for query, step in zip(queries, move, strict=True)]
        here, there = (probability(mechanism, data, outcome) for data in (queries, neighbor))
        worst = max(worst, abs(math.log(here / there)))
    assert 0.4 * epsilon < worst <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
@pytest.mark.parametrize("by_one", [False, True])
def test_gaps_come_as_often_as_the_distribution_says(noise: Any, by_one: bool) -> None:
    mechanism = SparseVector(sensitivity=1, threshold_scale=2, query_scale=3, noise=noise, gaps=True)
    queries, count, rng = np.array([0, 2]), 6000, np.random.default_rng(8)
    runs: list[Any]
    if by_one:
        runs = [list(mechanism.answers(queries, rng=rng)) for _ in range(count)]
    else:
        runs = mechanism.outputs(queries, count, rng)
    seen = Counter(tuple(None if a is False or math.isnan(a) else int(a) for a in run) for run in runs)

    def distribution(threshold: Any, query: Any, moved: int = 0) -> dict[tuple[Any, ...], float]:
        other = SparseVector(sensitivity=1, threshold_scale=threshold, query_scale=query, noise=noise)
        outcomes = [(gap,) for gap in range(15)] + [(None, gap) for gap in range(15)]
        return {each: probability(other, queries + moved, each) for each in outcomes}

    accepts_only(
        frequencies(seen),
        distribution(2, 3),
        less_noisy_queries=distribution(2, 2),
        other_threshold=distribution(Fraction(1, 2), 3),
        moved=distribution(2, 3, 1),
    )


def test_one_release_has_the_gaps_of_its_run() -> None:
    mechanism = SparseVector(
        sensitivity=0.5, threshold_scale=0.001, query_scale=0.001, threshold=10, positives=2, gaps=True
    )
    released = mechanism.release(np.array([1.0, 50.0, 2.0, 70.0, 90.0])).value
    assert np.isnan(released).tolist() == [True, False, True, False]
    assert np.abs(released[[1, 3]] - [40, 60]).max() < 0.2
    assert np.isnan(mechanism.query_interval(released, queries=5).lower).tolist() == [
        True,
        False,
        True,
        False,
    ]
    extreme = SparseVector(sensitivity=1, threshold_scale=1, query_scale=1, threshold=-(2**70), gaps=True)
    assert next(extreme.answers([2**70])) > 2**63 - 200


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_intervals_hold_for_all_gaps_of_a_run(noise: Any) -> None:
    mechanism = SparseVector(
        sensitivity=1, threshold_scale=6, query_scale=9, noise=noise, positives=3, gaps=True
    )
    queries, count, level = np.array([0, -4, 9, 2, 0, 5]), 1500, 0.6
    runs = np.full((count, 6), np.nan)
    for row, run in zip(runs, mechanism.outputs(queries, count, 5), strict=True):
        row[: len(run)] = run
    lower, upper = mechanism.query_interval(runs, queries=6, level=level)[:2]
    held = int((((lower <= queries) & (queries <= upper)) | np.isnan(runs)).all(axis=1).sum())
    accepts_only(rate(held, count), held / count, never_surely=1.0, less_than_said=level - 0.02)
    assert held / count >= level
    narrow, wide = (mechanism.query_interval(4.0, queries=n, level=0.9) for n in (1, 100))
    assert wide.lower < narrow.lower <= 4 <= narrow.upper <= wide.upper


def test_on_a_grid_the_interval_is_in_the_unit_of_the_queries() -> None:
    mechanism = SparseVector(
        sensitivity=0.5,
        threshold_scale=1.0,
        query_scale=1.0,
        threshold=0.3,
        gaps=True,
        grid=Grid(exponent=-2),
    )
    lower, upper, _ = mechanism.query_interval(0.25, queries=1)
    # The threshold is rounded up to 0.5; both ends are as far from it.
    assert lower + upper == pytest.approx(2 * 0.75)
    assert upper - lower == pytest.approx(4 * -math.log(0.025), rel=0.2)


@cases(
    ("change", "message"),
    [
        ({"gaps": 1}, "gaps must be True or False"),
        ({"gaps": True, "answer_scale": 2}, "gaps must be False where answer_scale is given"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"sensitivity": 1, "threshold_scale": 2, "query_scale": 4}
    with pytest.raises(ParameterError, match=message):
        SparseVector(**good | change)
    with pytest.raises(ParameterError, match="gaps must be True for an interval"):
        SparseVector(**good).query_interval(3, queries=1)
    with pytest.raises(ParameterError, match="queries must be"):
        SparseVector(**good, gaps=True).query_interval(3, queries=0)


def test_calibration_does_not_pay_for_gaps() -> None:
    plain, gaps = (SparseVector.calibrated(sensitivity=1, epsilon=0.7, gaps=each) for each in (False, True))
    assert gaps.gaps
    assert gaps.query_scale == plain.query_scale
    assert gaps.privacy_loss == plain.privacy_loss
