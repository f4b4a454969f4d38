"""The sparse vector technique: its exact distribution against its loss."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError, SfumatoError
from sfumato.mechanisms import Grid, SparseVector
from sfumato.privacy.leaves import sparse_vector as leaf
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

REACH = 400


def weights(scale: Fraction, noise: str) -> np.ndarray:
    """Probabilities of noise at -REACH, ..., REACH."""
    k = np.arange(-REACH, REACH + 1)
    mass = np.exp(-np.abs(k) / float(scale))
    if noise == "exponential":
        mass[:REACH] = 0
    return np.asarray(mass / mass.sum())


def probability(mechanism: SparseVector, queries: Sequence[int], answers: Sequence[bool]) -> float:
    """The exact probability of answers to integer queries, for a threshold of 0."""
    threshold = weights(Fraction(mechanism.threshold_scale), mechanism.noise)
    # P(noise >= j), for j = -REACH, ...
    tail = np.cumsum(weights(Fraction(mechanism.query_scale), mechanism.noise)[::-1])[::-1]
    z = np.arange(-REACH, REACH + 1)
    product = threshold
    for query, answer in zip(queries, answers, strict=False):
        above = tail[np.clip(z - query + REACH, 0, 2 * REACH)]
        product = product * (above if answer else 1 - above)
    return float(product.sum())


def runs(length: int, positives: int) -> Iterator[tuple[bool, ...]]:
    """Every run that ends with its last positive or with the queries."""
    for answers in itertools.product([False, True], repeat=length):
        places = [i for i, answer in enumerate(answers) if answer]
        if len(places) < positives or (len(places) == positives and answers[-1]):
            yield answers
    for end in range(1, length):
        for answers in itertools.product([False, True], repeat=end):
            if sum(answers) == positives and answers[-1]:
                yield answers


@cases("noise", ["laplace", "exponential"])
@cases(("positives", "monotone"), [(1, False), (2, False), (1, True), (2, True)])
def test_the_loss_covers_the_exact_distribution(noise: Any, positives: int, monotone: bool) -> None:
    mechanism = SparseVector(
        sensitivity=1,
        threshold_scale=2,
        query_scale=Fraction(7, 2),
        positives=positives,
        noise=noise,
        monotone=monotone,
    )
    epsilon = mechanism.privacy_loss.epsilon(0.0)
    queries = (1, -2, 0)
    total = sum(probability(mechanism, queries, answers) for answers in runs(3, positives))
    assert total == pytest.approx(1, abs=1e-12)
    worst = 0.0
    moves = [m for m in itertools.product([-1, 0, 1], repeat=3) if not monotone or len({*m} - {0}) <= 1]
    for move in moves:
        neighbor = [query + step for query, step in zip(queries, move, strict=True)]
        for answers in runs(3, positives):
            here, there = (probability(mechanism, data, answers) for data in (queries, neighbor))
            worst = max(worst, abs(math.log(here / there)))
    assert 0.3 * epsilon < worst <= epsilon * (1 + 1e-9)


def test_a_long_run_comes_near_to_the_loss() -> None:
    mechanism = SparseVector(sensitivity=1, threshold_scale=4, query_scale=8)
    answers = [False] * 40 + [True]
    below, above = ([move] * 40 + [-move] for move in (0, 1))
    log_ratio = math.log(probability(mechanism, above, answers) / probability(mechanism, below, answers))
    epsilon = mechanism.privacy_loss.epsilon(0.0)
    assert epsilon == 0.5
    assert 0.45 < abs(log_ratio) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
@pytest.mark.parametrize("by_one", [False, True])
def test_runs_come_as_often_as_the_distribution_says(noise: Any, by_one: bool) -> None:
    mechanism = SparseVector(sensitivity=1, threshold_scale=2, query_scale=3, positives=2, noise=noise)
    queries, count = np.array([0, -1, 2]), 8000
    rng = np.random.default_rng(8)
    seen: Counter[tuple[bool, ...]] = Counter()
    for _ in range(count):
        released = mechanism.answers(queries, rng=rng) if by_one else mechanism.release(queries, rng).value
        seen[tuple(bool(answer) for answer in released)] += 1
    assert set(seen) <= set(runs(3, 2))

    def distribution(threshold_scale: Any, query_scale: Any) -> dict[tuple[bool, ...], float]:
        other = replace(mechanism, threshold_scale=threshold_scale, query_scale=query_scale)
        return {answers: probability(other, queries.tolist(), answers) for answers in runs(3, 2)}

    accepts_only(
        frequencies(seen),
        distribution(2, 3),
        steady_threshold=distribution(Fraction(1, 10), 3),
        noisier_queries=distribution(2, 5),
        less_noisy_queries=distribution(2, 2),
    )


@cases(("positives", "monotone", "numbers"), [(1, False, False), (5, True, True), (9, False, True)])
@cases("sensitivity", [1, 3, 0.1, Fraction(1, 3)])
def test_calibration_meets_its_epsilon_tightly(
    positives: int, monotone: bool, numbers: bool, sensitivity: Any
) -> None:
    mechanism = SparseVector.calibrated(
        sensitivity=sensitivity,
        epsilon=0.7,
        positives=positives,
        monotone=monotone,
        numbers=numbers,
    )
    assert 0.7 * (1 - 1e-5) < mechanism.privacy_loss.epsilon(0.0) <= 0.7
    shifts = positives * (1 if monotone else 2)
    ratio = (mechanism.query_scale / shifts) / mechanism.threshold_scale
    assert float(ratio) == pytest.approx(shifts ** (-2 / 3), rel=1e-3)


def test_each_query_is_taken_after_the_last_answer() -> None:
    mechanism = SparseVector(
        sensitivity=1, threshold_scale=Fraction(1, 50), query_scale=Fraction(1, 50), positives=2
    )
    released: list[bool] = []

    def ask() -> Iterator[int]:
        while True:
            yield 1000 if len(released) % 3 == 2 else -1000

    for answer in mechanism.answers(ask()):
        released += [answer]
    assert released == [False, False, True, False, False, True]


def test_numbers_come_with_fresh_noise_near_the_value() -> None:
    mechanism = SparseVector(
        sensitivity=0.5, threshold_scale=0.01, query_scale=0.01, answer_scale=0.25, threshold=10, positives=2
    )
    release = mechanism.release(np.array([1.0, 50.0, 2.0, 70.0, 90.0]), rng=3)
    assert np.isnan(release.value).tolist() == [True, False, True, False]
    assert np.abs(release.value[[1, 3]] - [50, 70]).max() < 10
    assert release.simulated
    one_by_one = list(mechanism.answers([1.0, 50.0, 2.0, 70.0, 90.0], rng=3))
    assert one_by_one[0] is False
    assert abs(one_by_one[3] - 70) < 10


def test_what_is_no_number_counts_as_zero_or_is_clamped() -> None:
    mechanism = SparseVector(
        sensitivity=1.0, threshold_scale=0.01, query_scale=0.01, threshold=5, positives=2
    )
    values = np.array([math.nan, -math.inf, math.inf, 4.0, 6.0, 7.0])
    assert mechanism.release(values).value.tolist() == [False, False, True, False, True]
    assert mechanism.release(np.zeros(0)).value.tolist() == []


def test_a_block_border_is_no_border() -> None:
    mechanism = SparseVector(sensitivity=1, threshold_scale=1, query_scale=1, threshold=1000, positives=3)
    values = np.zeros(200_000, np.int64)
    values[[10, 65_535, 65_536, 150_000]] = 10_000
    assert np.flatnonzero(mechanism.release(values).value).tolist() == [10, 65_535, 65_536]
    assert len(mechanism.release(values).value) == 65_537


@cases(
    ("change", "error", "message"),
    [
        ({"sensitivity": 0}, ParameterError, "sensitivity must"),
        ({"sensitivity": -1.0}, ParameterError, "sensitivity must"),
        ({"sensitivity": math.inf}, ParameterError, "sensitivity must be finite"),
        ({"threshold_scale": 0}, ParameterError, "threshold_scale must"),
        ({"query_scale": -1}, ParameterError, "query_scale must"),
        ({"answer_scale": 0.0}, ParameterError, "answer_scale must"),
        ({"query_scale": 2**60}, ParameterError, "query_scale must be from"),
        ({"positives": 0}, ParameterError, "positives must be an integer of at least 1"),
        ({"threshold": math.nan}, ParameterError, "threshold must be a finite number"),
        ({"noise": ["laplace"]}, ParameterError, "noise must be 'laplace' or 'exponential'"),
        ({"integral": "yes"}, ParameterError, "integral must be"),
        ({"noise": "gaussian"}, ParameterError, "noise must be 'laplace' or 'exponential'"),
        ({"monotone": True, "neighboring": Neighboring.REPLACE_ONE}, SfumatoError, "monotone"),
        ({"grid": Grid(exponent=3), "integral": True}, ParameterError, "grid must be left out"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    good: dict[str, Any] = {"sensitivity": 1, "threshold_scale": 2, "query_scale": 4}
    with pytest.raises(error, match=message):
        SparseVector(**good | change)


def test_bad_values_are_refused_by_their_type_alone() -> None:
    mechanism = SparseVector(sensitivity=1, threshold_scale=2, query_scale=4)
    with pytest.raises(ParameterError, match="integers"):
        mechanism.release(np.array([0.5]))
    with pytest.raises(ParameterError, match="one dimension"):
        mechanism.release(np.zeros((2, 2), np.int64))
    for queries in (["many"], [np.array([1, 2])]):
        with pytest.raises(ParameterError, match="queries must be"):
            list(mechanism.answers(queries))


def test_a_threshold_of_any_kind_of_number() -> None:
    thresholds: tuple[Any, ...] = (np.float32(2.5), np.int8(3), Fraction(5, 2), 2.5)
    for threshold in thresholds:
        mechanism = SparseVector(
            sensitivity=1, threshold_scale=2**-9, query_scale=2**-9, threshold=threshold, positives=9
        )
        assert mechanism.release(np.array([2, 3])).value.tolist() == [False, True]


def test_scales_in_the_loss_are_rounded_down() -> None:
    for sensitivity, threshold_scale, query_scale in itertools.product(range(3, 40), (1, 10), (1, 10)):
        mechanism = SparseVector(
            sensitivity=sensitivity, threshold_scale=threshold_scale, query_scale=query_scale
        )
        loss = mechanism.privacy_loss
        assert isinstance(loss, leaf.SparseVector)
        for priced, drawn in ((loss.threshold_noise, threshold_scale), (loss.query_noise, query_scale)):
            assert 0 <= 1 - Fraction(priced) * sensitivity / drawn < 2**-52
