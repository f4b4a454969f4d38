"""Multiplicative weights: the loss of its steps, scores that move as the loss says, answers that learn."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Histogram, Laplace, LinearWorkload, MultiplicativeWeights
from sfumato.mechanisms.factorization.multiplicative_weights import MultiplicativeWeightsRelease
from sfumato.privacy import DiscreteLaplace, Exponential, Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

RANGES = LinearWorkload(
    matrix=[[float(i <= k <= j) for k in range(16)] for i in range(16) for j in range(i, 16)]
)
HALVES = LinearWorkload(matrix=[[0.5, -0.25, 0.0], [1.0, 1.5, -2.0]])


@pytest.mark.parametrize("neighboring", list(Neighboring))
def test_the_loss_is_that_of_its_steps(neighboring: Neighboring) -> None:
    mechanism = MultiplicativeWeights(workload=HALVES, rounds=3, scale=4, neighboring=neighboring)
    moved = HALVES.shift(neighboring).linf
    assert moved == (14 if neighboring is Neighboring.REPLACE_ONE else 8)
    parts = Exponential(0.25, neighboring=neighboring) + DiscreteLaplace(
        4 * moved, moved, neighboring=neighboring
    )
    assert mechanism.privacy_loss == DiscreteLaplace(4, neighboring=neighboring) + parts * 3
    assert mechanism.neighboring is neighboring
    assert mechanism.privacy_loss.epsilon() == pytest.approx(7 / 4)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_calibration(delta: float) -> None:
    mechanism = MultiplicativeWeights.calibrated(workload=RANGES, rounds=30, epsilon=1.0, delta=delta)
    assert mechanism.privacy_loss.epsilon(delta) <= 1.0
    assert (
        float(mechanism.scale) == pytest.approx(61, rel=1e-6) if delta == 0 else float(mechanism.scale) < 35
    )


@pytest.mark.parametrize("neighboring", [Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE])
@pytest.mark.parametrize("workload", [RANGES, HALVES])
def test_a_unit_moves_no_score_and_no_answer_by_more_than_is_paid_for(
    workload: LinearWorkload, neighboring: Neighboring
) -> None:
    """All neighbors of some data, against synthetic answers of every kind."""
    cells = workload.weights().shape[1]
    mechanism = MultiplicativeWeights(workload=workload, rounds=1, scale=1, neighboring=neighboring)
    paid = mechanism._choice().sensitivity
    generator = np.random.default_rng(1)
    data = generator.integers(0, cells, 7)
    if neighboring is Neighboring.ADD_REMOVE:
        others = [np.append(data, cell) for cell in range(cells)]
    else:
        others = [np.append(data[1:], cell) for cell in range(cells + 1)]  # one of them in no cell
    greatest = 0
    for other, synthetic in itertools.product(others, generator.normal(0, 30, (20, workload.entries))):
        first = mechanism._scores(workload.steps(data), synthetic)
        second = mechanism._scores(workload.steps(other), synthetic)
        greatest = max(greatest, int(np.abs(first - second).max()))
    assert 0 < greatest <= paid
    assert mechanism._answer().sensitivity == paid


@pytest.mark.parametrize("runs", [300, 3_000])
def test_the_first_choice_follows_the_distribution_that_is_priced(runs: int) -> None:
    """Given the totals that the runs released, which set the scores of each."""
    workload = LinearWorkload(matrix=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    mechanism = MultiplicativeWeights(workload=workload, rounds=1, scale=3)
    data = np.array([0] * 9 + [1])
    generator = np.random.default_rng(7)
    found: Counter[int] = Counter()
    expected = {scale: np.zeros(3) for scale in (1, 6)}
    for _ in range(runs):
        release = mechanism.release(data, generator)
        found[release.measured[0][0]] += 1
        total = float(release.cells.sum())
        off = np.abs(np.array([9, 1, 10]) - np.rint(np.array([total / 2, total / 2, total])))
        for scale in expected:
            weights = np.exp(off / scale)
            expected[scale] += weights / weights.sum()

    # Counts of choices with unlike chances are nearer to their mean than those with their mean chance.
    distributions = {scale: dict(enumerate(counts / runs)) for scale, counts in expected.items()}
    accepts_only(frequencies(found), distributions[6], steeper=distributions[1])


def test_it_learns_the_data() -> None:
    data = np.repeat([2, 3, 12], [5000, 3000, 2000])
    truth = RANGES(data)
    mechanism = MultiplicativeWeights.calibrated(workload=RANGES, rounds=8, epsilon=2.0)
    uniform = 10_000 * RANGES.weights() @ np.full(16, 1 / 16)
    release = mechanism.release(data, rng=3)
    assert isinstance(release, MultiplicativeWeightsRelease)
    assert np.abs(release.value - truth).mean() < 0.2 * np.abs(uniform - truth).mean()
    assert release.cells.sum() == pytest.approx(10_000, abs=200)
    np.testing.assert_allclose(RANGES.weights() @ release.cells, release.value)
    for index, noisy in release.measured:
        assert abs(noisy - truth[index]) < 500
    # Better than Hardt, Ligett and McSherry's bound.
    bound = 2 * 10_000 * math.sqrt(math.log(16) / 8) + 10 * 8 * math.log(RANGES.entries) / 2
    assert np.abs(release.value - truth).max() < bound


def test_for_many_queries_on_few_records_it_beats_noise_on_each() -> None:
    generator = np.random.default_rng(5)
    workload = LinearWorkload(matrix=generator.integers(0, 2, size=(2000, 64)).astype(float))
    data = np.clip(generator.normal(30, 5, 400).astype(int), 0, 63)
    mechanism = MultiplicativeWeights.calibrated(workload=workload, rounds=8, epsilon=1.0, delta=1e-6)
    release = mechanism.release(data, rng=1)
    plain = Laplace.for_query(workload, epsilon=1.0, delta=1e-6).mechanism.distribution.stddev
    assert np.abs(release.value - workload(data)).max() < plain


@pytest.mark.parametrize(
    "data", [np.array([], dtype=np.int64), np.array([99, 98]), np.zeros(3, dtype=np.int64)]
)
def test_edge_data_is_answered(data: np.ndarray) -> None:
    mechanism = MultiplicativeWeights(workload=RANGES, rounds=2, scale=2)
    release = mechanism.release(data, rng=1)
    assert np.isfinite(release.value).all()
    assert (release.cells > 0).all()
    assert release.loss == mechanism.privacy_loss
    assert release.simulated
    assert not mechanism.release(data).simulated


def test_fractions_and_categories() -> None:
    workload = LinearWorkload(matrix=[[0.5, -0.25]], histogram=Histogram(categories=("a", "b")))
    release = MultiplicativeWeights(
        workload=workload, rounds=1, scale=Laplace(sensitivity=1, scale=2).scale
    ).release(np.array(["a"] * 4000), rng=1)
    assert release.value[0] == pytest.approx(2000, rel=0.1)
    assert release.measured[0][1] == pytest.approx(2000, abs=40)


@cases(
    ("make", "message"),
    [
        (lambda: MultiplicativeWeights(workload=3, rounds=1, scale=1), "workload must be a LinearWorkload"),  # type: ignore[arg-type]
        (lambda: MultiplicativeWeights(workload=RANGES, rounds=0, scale=1), "rounds must be an integer"),
        (lambda: MultiplicativeWeights(workload=RANGES, rounds=1, scale=0), "scale must be positive"),
        (lambda: MultiplicativeWeights(workload=RANGES, rounds=1, scale=1, neighboring="x"), "neighboring"),  # type: ignore[arg-type]
        (
            lambda: MultiplicativeWeights.calibrated(workload=RANGES, rounds=1, epsilon=0),
            "epsilon must be positive",
        ),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()  # type: ignore[operator]
