"""Online multiplicative weights: its distribution against its loss, its bound against its errors."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Grid, Histogram, MultiplicativeWeightsRelease, OnlineMultiplicativeWeights
from sfumato.privacy import DiscreteLaplace, Neighboring, SparseVector
from tests.cases import cases
from tests.chance import accepts_only, frequencies

TWO = Histogram(categories=(0, 1))
SMALL = OnlineMultiplicativeWeights(
    histogram=TWO,
    updates=1,
    threshold=2,
    total_scale=3,
    threshold_scale=2,
    query_scale=4,
    answer_scale=3,
    grid=Grid(exponent=0),
)
QUERIES = np.array([[1, 0], [0, 1], [1, 0]])
EIGHT = Histogram(categories=range(8))

Told = tuple[int, str, int]
"""The total, the outcomes (a for above, b for below), and the number that the last "a" is released with."""


def laplace(scale: float, reach: int) -> np.ndarray:
    """The discrete Laplace distribution from -reach to reach."""
    values = np.arange(-reach, reach + 1)
    return np.asarray(np.tanh(1 / (2 * scale)) * np.exp(-np.abs(values) / scale))


@functools.cache
def distribution(data: tuple[int, ...]) -> dict[Told, float]:
    """The exact distribution of `SMALL`, by sums over all noise: independent of how it is sampled."""
    counts, reach, queries = np.bincount(np.array(data, int), minlength=2), 120, QUERIES
    values = np.arange(-reach, reach + 1)
    totals, thresholds = laplace(3, reach), laplace(2, reach)
    above = np.cumsum(laplace(4, 4 * reach)[::-1])[::-1]  # of noise that is at least ..., from -4 reach on
    found: dict[Told, float] = defaultdict(float)
    numbers = laplace(3, 40).tolist()
    for total, chance in zip(values + len(data), totals, strict=True):
        synthetic = np.array([round(max(1, int(total)) * float(q @ [0.5, 0.5])) for q in queries])
        off = np.abs(queries @ counts - synthetic)
        # Of each threshold's noise, the chance that each query is above.
        chances = above[np.clip(2 + values[:, None] - off[None, :] + 4 * reach, 0, 8 * reach)]
        below = np.cumprod(np.hstack([np.ones((len(values), 1)), 1 - chances]), axis=1)
        for place, query in enumerate(queries):
            hit = chance * float(thresholds @ (below[:, place] * chances[:, place]))
            for number, share in enumerate(numbers, int(query @ counts) - 40):
                found[int(total), "b" * place + "a", number] += hit * share
        found[int(total), "b" * len(queries), 0] += chance * float(thresholds @ below[:, -1])
    return found


def released(release: MultiplicativeWeightsRelease) -> Told:
    total = round(float(release.cells.sum()))
    if not release.measured:
        return total, "b" * len(release.value), 0
    place, number = release.measured[0]
    return total, "b" * place + "a", int(number)


@pytest.mark.parametrize("neighboring", list(Neighboring))
def test_the_loss_is_that_of_its_steps(neighboring: Neighboring) -> None:
    mechanism = replace(SMALL, updates=3, neighboring=neighboring, grid=Grid(exponent=-20))
    step = 2**20
    parts = (
        DiscreteLaplace(3, neighboring=neighboring),
        SparseVector(2, 4, positives=3, neighboring=neighboring),
        DiscreteLaplace(3 * step, step, neighboring=neighboring) * 3,
    )
    assert mechanism.privacy_loss == parts[0] + parts[1] + parts[2]
    assert mechanism.privacy_loss.epsilon(0.0) == pytest.approx(1 / 3 + (1 / 2 + 6 / 4) + 3 / 3)


@cases(
    ("first", "second"),
    [((0,) * 5, (0,) * 6), ((0, 1, 1), (0, 0, 1, 1)), ((), (1,)), ((0, 0, 0), (0, 0, 1)), ((0, 1), (1, 1))],
)
def test_its_exact_distribution_keeps_its_loss(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Over all totals, outcomes and numbers, for units that come, go and change."""
    distributions = distribution(first), distribution(second)
    assert all(abs(sum(one.values()) - 1) < 1e-4 for one in distributions)
    ratios = [
        abs(math.log(distributions[0][key] / distributions[1][key]))
        for key in distributions[0].keys() & distributions[1].keys()
        if min(distributions[0][key], distributions[1][key]) > 1e-13
    ]
    claimed = SMALL.privacy_loss.epsilon(0.0)
    assert 0.4 * claimed < max(ratios) <= claimed


@pytest.mark.parametrize("runs", [1_000, 4_000])
def test_what_is_drawn_follows_the_exact_distribution(runs: int) -> None:
    data = (0, 0, 0, 0, 0, 1)
    generator = np.random.default_rng(20261121)
    found = Counter(released(SMALL.release((np.array(data), QUERIES), generator)) for _ in range(runs))

    def follows(data: tuple[int, ...]) -> None:
        exact = distribution(data)
        for coarse in (
            lambda key: key[1],
            # The total is seen from 1 on, where a run tells it.
            lambda key: (min(12, max(1, key[0])), key[1]),
            lambda key: (key[1], min(12, max(-4, key[2]))),
        ):
            expected: dict[Any, float] = defaultdict(float)
            seen: Counter[Any] = Counter()
            for key, chance in exact.items():
                expected[coarse(key)] += chance
            for key, count in found.items():
                seen[coarse(key)] += count
            frequencies(seen)(expected)

    accepts_only(follows, data, of_fewer_records=(0, 0, 0, 1), of_others=(1, 1, 1, 1, 1, 0))


@pytest.mark.parametrize("neighboring", list(Neighboring))
def test_a_unit_moves_no_comparison_and_no_answer_by_more_than_a_record(neighboring: Neighboring) -> None:
    generator = np.random.default_rng(3)
    mechanism = replace(SMALL, grid=Grid(exponent=-20), neighboring=neighboring)
    record = int(1 / mechanism.grid.step)
    assert mechanism._comparisons().sensitivity == mechanism._answer().sensitivity == record
    data = generator.integers(0, 2, 9)
    others = [data[1:], *(np.append(data[1:], cell) for cell in (0, 1, 7))]
    for other, share in itertools.product(others, generator.random(50)):
        query = np.rint(np.array([share, 1 - share**2]) * record).astype(int)
        exact = [int(query @ np.bincount(d[d < 2], minlength=2)) for d in (data, other)]
        assert abs(exact[0] - exact[1]) <= record


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_calibration(delta: float) -> None:
    mechanism = OnlineMultiplicativeWeights.calibrated(
        histogram=EIGHT, records=10_000, queries=1000, epsilon=1.0, delta=delta
    )
    assert 0.99 < mechanism.privacy_loss.epsilon(delta) <= 1.0
    bound = mechanism.utility_bound(0.05, queries=1000, records=10_000)
    for updates in (mechanism.updates // 3, 3 * mechanism.updates):
        other = OnlineMultiplicativeWeights.calibrated(
            histogram=EIGHT, records=10_000, queries=1000, epsilon=1.0, delta=delta, updates=updates
        )
        assert bound < other.utility_bound(0.05, queries=1000, records=10_000) < math.inf


def test_the_bound_follows_its_parts() -> None:
    mechanism = OnlineMultiplicativeWeights.calibrated(
        histogram=EIGHT, records=10_000, queries=1000, epsilon=1.0
    )
    bound = mechanism.utility_bound(0.05, queries=1000, records=10_000)
    assert float(mechanism.threshold) < bound < 2 * float(mechanism.threshold)
    assert mechanism.utility_bound(0.1, queries=1000, records=10_000) < bound
    assert mechanism.utility_bound(0.05, queries=500, records=10_000) < bound
    # Where more records are than it was made for, so many updates may not be enough.
    assert mechanism.utility_bound(0.05, queries=1000, records=20_000) == math.inf
    assert replace(mechanism, updates=1).utility_bound(0.05, queries=1000, records=10_000) == math.inf


def test_no_more_updates_are_promised_to_suffice_than_the_theorem_says() -> None:
    mechanism = OnlineMultiplicativeWeights.calibrated(
        histogram=EIGHT, records=10_000, queries=1000, epsilon=1.0, updates=20
    )
    a, c, d, rounding = map(float, mechanism._errors(0.05, 1000, 10_000))
    assert a == pytest.approx(10 * math.log(8 / 0.05), abs=1)
    threshold, query, number = (
        float(getattr(mechanism, f"{name}_scale")) for name in ("threshold", "query", "answer")
    )
    assert c == pytest.approx(threshold * math.log(8 / 0.05) + query * math.log(8 * 1000 / 0.05), rel=1e-6)
    assert d == pytest.approx(number * math.log(8 * 20 / 0.05), rel=1e-6)
    suffices = []
    for at in range(1500, 4500, 10):
        gap = at - c - a - rounding
        room = gap**2 - ((a + d) * gap / (gap - a)) ** 2 if gap > a else 0.0
        most = 10_000**2 * math.log(8) / (2 * room) if room > 0 else math.inf
        suffices.append(most < 21)
        bound = replace(mechanism, threshold=at).utility_bound(0.05, queries=1000, records=10_000)
        assert bound == (pytest.approx(max(at + c, d) + rounding) if suffices[-1] else math.inf)
    assert 0 < sum(suffices) < len(suffices)


def test_each_update_brings_the_synthetic_shares_nearer_by_what_the_proof_says() -> None:
    generator = np.random.default_rng(4)
    mechanism = replace(SMALL, histogram=EIGHT, threshold=20, updates=40, grid=Grid(exponent=-20))
    data = generator.choice(8, 500, p=generator.dirichlet(np.full(8, 0.5)))
    shares = np.bincount(data, minlength=8) / 500
    stream = mechanism.stream(data, generator)

    def divergence() -> float:
        there = shares > 0
        synthetic = stream.cells / stream.cells.sum()
        return float((shares * np.log(np.where(there, shares, 1) / synthetic))[there].sum())

    for _ in range(300):
        query, before, cells = generator.random(8), divergence(), stream.cells
        answer = stream.send(query)
        if answer.measured:
            off = query @ (shares - cells / cells.sum())
            noisy = (answer.value - query @ cells) / cells.sum()
            assert before - divergence() >= 2 * off**2 - 2 * (off - noisy) ** 2 - 1e-5
        else:
            assert divergence() == before
    assert stream.left < 35


@pytest.mark.parametrize("records", [0, 40, 4000, 20_000])
def test_errors_stay_within_the_bound_whatever_the_queries(records: int) -> None:
    """Each run asks, time after time, what the synthetic histogram answers worst: beta is 1e-10."""
    mechanism = OnlineMultiplicativeWeights.calibrated(
        histogram=EIGHT, records=20_000, queries=60, epsilon=1.0, beta=1e-10
    )
    bound = mechanism.utility_bound(1e-10, queries=60, records=20_000)
    assert bound < 0.8 * 20_000
    generator = np.random.default_rng(records)
    surprises = 0
    for _ in range(20):
        data = generator.choice(8, records, p=generator.dirichlet(np.full(8, 0.1)))
        counts = np.bincount(data, minlength=8)
        stream = mechanism.stream(data, generator)
        for _ in range(60):
            query = (counts > stream.cells).astype(float)
            answer = stream.send(query)
            assert abs(answer.value - query @ counts) <= bound
            assert answer.checked
            surprises += answer.measured
        assert stream.left > 0
    assert surprises >= 20 if records == 20_000 else surprises <= 20


def test_it_learns_from_what_is_asked() -> None:
    generator = np.random.default_rng(1)
    data = generator.choice(8, 100_000, p=[0.5, 0.3, 0.1, 0.04, 0.02, 0.02, 0.01, 0.01])
    truth = np.bincount(data, minlength=8)
    mechanism = OnlineMultiplicativeWeights.calibrated(
        histogram=EIGHT, records=100_000, queries=500, epsilon=1.0
    )
    queries = generator.integers(0, 2, (500, 8)).astype(float)
    release = mechanism.release((data, queries), rng=2)
    assert isinstance(release, MultiplicativeWeightsRelease)
    uniform = queries @ np.full(8, 100_000 / 8)
    assert 0 < len(release.measured) < mechanism.updates
    assert np.abs(release.value - queries @ truth).mean() < 0.3 * np.abs(uniform - queries @ truth).mean()
    for place, value in release.measured:
        assert release.value[place] == value
        assert abs(value - queries[place] @ truth) < 3000


def test_easy_queries_are_free_and_the_data_is_not_read_after_the_last_update() -> None:
    mechanism = replace(SMALL, threshold=1000, updates=2)
    stream = mechanism.stream(np.repeat([0, 1], [30_000, 0]), rng=5)
    released = [stream.send([1, 0]), stream.send([0, 1]), stream.send([1, 0])]
    assert stream.left == 0 or all(answer.checked for answer in released)
    hard = replace(mechanism, threshold=1, updates=1).stream(np.zeros(30_000, int), rng=5)
    assert hard.send([1, 0]).measured
    hard._counts[:] = -(10**6)
    after = [hard.send([0.25, 1]) for _ in range(50)]
    assert not any(answer.checked or answer.measured for answer in after)
    assert len(set(after)) == 1
    assert hard.loss == replace(mechanism, threshold=1, updates=1).privacy_loss


@pytest.mark.parametrize(
    "data", [np.array([], dtype=np.int64), np.array([7, 9]), np.zeros(3, dtype=np.int64)]
)
def test_edge_data_is_answered(data: np.ndarray) -> None:
    release = SMALL.release((data, QUERIES), rng=1)
    assert np.isfinite(release.value).all()
    assert (release.cells > 0).all()
    assert release.loss == SMALL.privacy_loss
    assert release.simulated
    assert not SMALL.release((data, QUERIES)).simulated


def test_a_cell_that_is_released_to_be_empty_again_and_again_keeps_a_share() -> None:
    mechanism = replace(SMALL, updates=2000, threshold=1, query_scale=1, answer_scale=1000)
    stream = mechanism.stream(np.zeros(3, int), rng=1)
    for _ in range(2000):
        stream.send([0, 1])
    assert np.isfinite(stream.cells).all()
    assert (stream.cells > 0).all()


@cases(
    ("change", "message"),
    [
        ({"histogram": 8}, "histogram must be a Histogram"),
        ({"updates": 0}, "updates must be an integer"),
        ({"threshold": 0}, "threshold must be positive"),
        ({"total_scale": -1}, "total_scale must be positive"),
        ({"query_scale": math.inf}, "query_scale must be"),
        ({"grid": Grid(exponent=2)}, "grid must have a step"),
        ({"grid": 1}, "grid must be a Grid"),
        ({"neighboring": "add"}, "neighboring must be a Neighboring"),
    ],
)
def test_bad_parameters(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        replace(SMALL, **change)


@cases(
    ("query", "message"),
    [
        ([1], "query must hold 2 numbers"),
        (1, "query must hold 2 numbers"),
        ([2, 0], "weights from 0 to 1"),
        ([-0.1, 0], "weights from 0 to 1"),
        ([math.nan, 0], "weights from 0 to 1"),
        (["a", "b"], "query must hold 2 numbers"),
    ],
)
def test_bad_queries(query: Any, message: str) -> None:
    stream = SMALL.stream(np.array([0, 1]), rng=1)
    with pytest.raises(ParameterError, match=message):
        stream.send(query)
    assert stream.send([1, 0]).checked


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([0]), "value must be a pair"),
        ((np.array([0]), np.array([1, 0])), "queries must have two axes"),
        ((np.array([0]), np.array([[1, 0, 0]])), "query must hold 2 numbers"),
    ],
)
def test_bad_values(value: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        SMALL.release(value)


@cases(
    ("change", "message"),
    [
        ({"records": 0}, "records must be"),
        ({"queries": 0}, "queries must be"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"beta": 1}, "beta must be"),
        ({"histogram": None}, "histogram must be a Histogram"),
        ({"updates": 0}, "updates must be"),
    ],
)
def test_bad_calibration(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"histogram": EIGHT, "records": 10, "queries": 10, "epsilon": 1.0}
    with pytest.raises(ParameterError, match=message):
        OnlineMultiplicativeWeights.calibrated(**(given | change))
