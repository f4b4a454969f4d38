"""Many releases at once have the distribution of one release after another."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from sfumato.audit import sparse_vector_distribution
from sfumato.errors import ParameterError
from sfumato.mechanisms import (
    BoundedLaplace,
    ContinualSum,
    ContributionBound,
    Count,
    Exponential,
    Extreme,
    Gaussian,
    GaussianNoisyMax,
    Histogram,
    InverseSensitivity,
    Laplace,
    LinearWorkload,
    MatrixMechanism,
    Measurement,
    Mechanism,
    NoisyMax,
    ParallelComposition,
    PermuteAndFlip,
    Quantile,
    QuantileTree,
    RandomizedResponse,
    SmoothQuantile,
    SparseVector,
    SquareRoot,
    StabilityHistogram,
    TopK,
)
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

RECORDS = np.array([1, 4, 4, 2, 0])
SCORES = [3, 1, 3]
PREFIXES = LinearWorkload(matrix=np.tril(np.ones((3, 3))))
LOT = Count().after(ContributionBound(limit=1), stability=1)
LETTERS = ("a", "b", "c")
SURVEY = RandomizedResponse.calibrated(categories=("a", "b"), epsilon=1.0)

CASES: dict[str, tuple[Mechanism, Any]] = {
    "Laplace": (Laplace(sensitivity=1, scale=1), 3),
    "Laplace on a vector": (Laplace(sensitivity=1.0, l0=2, scale=1.0), np.array([3.0, 1.5])),
    "count": (Laplace.for_query(Count(), epsilon=1.0), RECORDS),
    "histogram": (Laplace.for_query(Histogram(categories=(0, 4)), epsilon=1.0), RECORDS),
    "count of a lot": (Laplace.for_query(LOT, epsilon=1.0), (RECORDS, RECORDS)),
    "randomized response": (SURVEY, "a"),
    "respondents": (SURVEY, ["a", "b"]),
    "bounded Laplace": (BoundedLaplace(sensitivity=1, scale=2, bounds=(0, 4)), 1),
    "exponential": (Exponential(sensitivity=1, scale=2, candidates=LETTERS), SCORES),
    "permute-and-flip": (PermuteAndFlip(sensitivity=1, scale=2), SCORES),
    "noisy max": (NoisyMax(sensitivity=1, scale=2), SCORES),
    "noisy max, Gumbel": (NoisyMax(sensitivity=1, scale=2, noise="gumbel"), SCORES),
    "noisy max, exponential": (NoisyMax(sensitivity=1, scale=2, noise="exponential"), SCORES),
    "noisy max, Gaussian": (
        GaussianNoisyMax(mechanism=Gaussian(sensitivity=1, stddev=2, l0=3), candidates=LETTERS),
        SCORES,
    ),
    "top 2": (TopK(sensitivity=1, scale=2, count=2, candidates=LETTERS), SCORES),
    "stability histogram": (StabilityHistogram.calibrated(epsilon=1.0, delta=0.1), {"a": 3, "b": 1}),
    "sparse vector": (SparseVector(sensitivity=1, threshold_scale=2, query_scale=2), np.array([0, 1, 0])),
    "sparse vector with numbers": (
        SparseVector(sensitivity=1, threshold_scale=1, query_scale=1, answer_scale=1, positives=2),
        np.array([0, 2, -1]),
    ),
    "median": (Quantile(bounds=(0, 5), epsilon=1.0), RECORDS),
    "median of many": (Quantile(bounds=(0, 5), epsilon=0.1), np.repeat([0, 3, 5], [4990, 20, 4990])),
    "quartiles by a tree": (
        QuantileTree.calibrated(quantiles=(0.25, 0.75), bounds=(0, 20), epsilon=1.0),
        RECORDS,
    ),
    "largest": (Extreme(bounds=(0, 5), epsilon=1.0, rank=1), RECORDS),
    "inverse sensitivity": (
        InverseSensitivity(bounds=(0, 5), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE),
        RECORDS,
    ),
    "smooth sensitivity": (SmoothQuantile.calibrated(bounds=(0, 5), epsilon=1.0), RECORDS),
    "sums over time": (
        ContinualSum(strategy=SquareRoot(steps=3), sensitivity=1, stddev=1),
        np.array([1, 0, 2]),
    ),
    "matrix mechanism": (
        MatrixMechanism.calibrated(workload=PREFIXES, epsilon=1.0),
        np.array([0, 1, 2, 2]),
    ),
    "parts": (
        ParallelComposition(
            parts={"a": Laplace(sensitivity=1, scale=1), "b": Laplace(sensitivity=1, scale=2)}
        ),
        [1, 0],
    ),
}


def coarse(value: Any) -> Any:
    """Return one of a few outcomes, which are counted."""
    if isinstance(value, dict):
        return tuple(sorted((key, coarse(entry)) for key, entry in value.items()))
    if isinstance(value, np.ndarray | list | tuple):
        return tuple(coarse(entry) for entry in value)
    if isinstance(value, str):
        return value
    return "none" if np.isnan(value) else max(-1, min(3, int(np.floor(float(value) / 1.5))))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_outputs_have_the_distribution_of_releases(case: tuple[Mechanism, Any]) -> None:
    """Each of at most some hundreds of outcomes, within 7 standard errors of the difference."""
    mechanism, value = case
    generator = np.random.default_rng(20261121)
    few, many = 1_000, 5_000
    if isinstance(mechanism, SmoothQuantile | Measurement | RandomizedResponse):
        many = 2_000
    singly = Counter(coarse(mechanism.release(value, generator).value) for _ in range(few))
    outputs = mechanism.outputs(value, many, generator)
    assert len(outputs) == many
    at_once = Counter(coarse(output) for output in outputs)
    assert len(singly) > 1

    def like(one: Counter[Any]) -> None:
        for outcome in one | at_once:
            few, many = one.total(), at_once.total()
            share = (one[outcome] + at_once[outcome] + 20) / (few + many)
            off = abs(one[outcome] / few - at_once[outcome] / many)
            assert off < 7 * np.sqrt(share * (1 / few + 1 / many)), outcome

    commonest = max(singly, key=lambda outcome: singly[outcome])
    accepts_only(like, singly, without_one=Counter({k: n for k, n in singly.items() if k != commonest}))


def test_runs_of_the_sparse_vector_technique_have_its_exact_distribution() -> None:
    mechanism = SparseVector(sensitivity=1.0, threshold_scale=2.0, query_scale=4.0, positives=2)
    queries = np.array([0.0, 1.0, -0.5, 2.0])
    runs = 100_000
    found = Counter(tuple(released.tolist()) for released in mechanism.outputs(queries, runs, rng=20261121))
    distribution = sparse_vector_distribution(
        queries.tolist(), threshold_scale=2.0, query_scale=4.0, positives=2
    )
    assert set(found) <= set(distribution)
    accepts_only(
        frequencies(found),
        distribution,
        noisier=sparse_vector_distribution(
            queries.tolist(), threshold_scale=2.0, query_scale=5.0, positives=2
        ),
        steadier=sparse_vector_distribution(
            queries.tolist(), threshold_scale=1.5, query_scale=4.0, positives=2
        ),
    )


def test_runs_of_choices_have_their_exact_distribution() -> None:
    scores, runs = np.array([0, 2, 3, 3]), 200_000

    def peeling(scale: float, count: int) -> dict[tuple[int, ...], float]:
        weights, distribution = np.exp(scores / scale), dict[tuple[int, ...], float]()
        for run in permutations(range(4), count):
            chance, rest = 1.0, weights.sum()
            for index in run:
                chance, rest = chance * weights[index] / rest, rest - weights[index]
            distribution[run] = chance
        return distribution

    for count in (2, 3):
        found = TopK(sensitivity=1, scale=2, count=count).outputs(scores, runs, rng=20261121)
        accepts_only(
            frequencies(Counter(found)),
            peeling(2.0, count),
            flatter=peeling(2.1, count),
            steeper=peeling(1.9, count),
        )


@cases("size", [0, -1, 1.5, None])
@cases("case", CASES.values(), ids=CASES)
def test_one_output_is_the_least(case: tuple[Mechanism, Any], size: Any) -> None:
    mechanism, value = case
    assert len(mechanism.outputs(value, 1)) == 1
    with pytest.raises(ParameterError, match="size must be an integer of at least 1"):
        mechanism.outputs(value, size)
