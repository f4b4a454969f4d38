"""The suite catches every specimen; what it says of each is what its docstring says.

Every audit here may raise a false alarm with a chance of at most 1e-12; seeds are fixed.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from sfumato.audit import (
    Audit,
    audit,
    audit_precision,
    sparse_vector_distribution,
    sparse_vector_ratio,
    specimens,
)
from sfumato.audit.specimens import (
    ChenSparseVector,
    FloatGaussian,
    FloatLaplace,
    HalfSensitivitySum,
    LeeCliftonSparseVector,
    OrderedSubset,
    Specimen,
    StoddardSparseVector,
    SureUnaryEncoding,
)
from sfumato.errors import ParameterError
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate, unrefuted

SURE = 1 - 1e-12
FLOATS = (FloatGaussian, FloatLaplace)
ALL: list[type[Specimen]] = [getattr(specimens, name) for name in specimens.__all__ if name != "Specimen"]
WRONG_VALUES = [kind for kind in ALL if kind not in FLOATS]


def refuted(broken: Any, shown_by: Specimen, trials: int = 300_000) -> Audit:
    return audit(
        broken,
        epsilon=shown_by.epsilon,
        delta=shown_by.delta,
        pairs=shown_by.pairs,
        trials=trials,
        confidence=SURE,
    )


@pytest.mark.parametrize("kind", WRONG_VALUES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_audit_catches_it(kind: type[Specimen], seed: int) -> None:
    broken = kind(rng=seed)
    found = refuted(broken, broken)
    assert found.violated, found


def test_a_specimen_brings_its_pairs() -> None:
    assert audit(StoddardSparseVector(rng=1), epsilon=1.0, trials=10_000, confidence=SURE).violated


@cases("kind", FLOATS, ids=lambda kind: kind.__name__)
@cases("epsilon", [0.5, 1.0, 5.0])
def test_impossible_floats_are_caught_and_nothing_else_is_wrong_with_them(
    kind: type[Specimen], epsilon: float
) -> None:
    broken = kind(rng=1, epsilon=epsilon)
    assert not refuted(broken, broken, trials=100_000).violated
    found = audit_precision(
        broken, epsilon=epsilon, delta=broken.delta, pairs=broken.pairs, trials=300_000, confidence=SURE
    )
    assert found.violated, found
    assert found.impossible > 0


@cases("kind", ALL, ids=lambda kind: kind.__name__)
def test_it_is_documented_and_follows_its_seed(kind: type[Specimen]) -> None:
    assert kind.__doc__
    pair = kind(rng=3).pairs[0]
    first, again = (np.asarray(kind(rng=3)(pair.first, 50)) for _ in range(2))
    assert np.array_equal(first, again, equal_nan=first.dtype.kind == "f")
    assert len(first) == 50
    with pytest.raises(ParameterError, match="epsilon must"):
        kind(epsilon=0.0)


def test_half_a_sensitivity_is_twice_the_epsilon() -> None:
    broken = HalfSensitivitySum(rng=4)
    found = refuted(broken, broken)
    accepts_only(unrefuted(found.epsilon_lower), 2 * broken.epsilon, stated=broken.epsilon, nearly=1.85)


@pytest.mark.parametrize("kind", [StoddardSparseVector, ChenSparseVector], ids=lambda kind: kind.__name__)
def test_wrong_sparse_vectors_follow_the_distribution_that_is_integrated(
    kind: type[StoddardSparseVector] | type[ChenSparseVector],
) -> None:
    broken = kind(rng=5)
    queries = [0.0, 1.0, 0.0, 1.0]
    on_threshold, on_queries = broken.scales

    def distribution(
        queries: list[float], threshold: float = 1.0, query: float = 1.0
    ) -> dict[tuple[bool, ...], float]:
        """The distribution at other queries, or where a scale is off by a factor."""
        return sparse_vector_distribution(
            queries, threshold_scale=threshold * on_threshold, query_scale=query * on_queries
        )

    runs = Counter(tuple(run) for run in broken(queries, 100_000).tolist())
    wrong = {
        "neighbor": distribution([1.0, 0.0, 1.0, 0.0]),
        "wider_threshold": distribution(queries, threshold=1.2),
    }
    if on_queries:
        wrong["wider_queries"] = distribution(queries, query=1.2)
    accepts_only(frequencies(runs), distribution(queries), **wrong)


def test_the_ratio_that_the_audit_finds_is_below_the_exact_one() -> None:
    broken = ChenSparseVector(rng=6)
    (pair,) = broken.pairs
    found = refuted(broken, broken)
    worst = sparse_vector_ratio([False, True] * 4, pair.first, pair.second, threshold_scale=2, query_scale=2)
    accepts_only(unrefuted(found.epsilon_lower), worst, stated=broken.epsilon, nearly=1.5)
    assert worst < 3.19


def test_lee_and_clifton_stay_within_what_their_algorithm_is() -> None:
    broken = LeeCliftonSparseVector(rng=7)
    found = refuted(broken, broken)
    accepts_only(unrefuted(found.epsilon_lower), (1 + 6 * broken.positives) / 4, stated=1.0)


def test_the_sound_parts_of_local_reports_are_sound() -> None:
    subset = OrderedSubset(rng=8, categories=5, subset=2)
    drawn = np.sort(subset(0, 100_000), axis=1)
    weight = 2 * math.e
    accepts_only(
        rate(int((drawn == 0).any(axis=1).sum()), 100_000),
        weight / (weight + 3),
        tenth_more_epsilon=2 * math.exp(1.1) / (2 * math.exp(1.1) + 3),
        of_one_category=math.e / (math.e + 4),
        of_chance=2 / 5,
    )

    def shuffled(data: int, size: int) -> Any:
        return np.sort(subset(data, size), axis=1)

    assert not refuted(shuffled, subset).violated
    assert refuted(subset, subset).violated
    with pytest.raises(ParameterError, match="categories must"):
        OrderedSubset(categories=3, subset=3)
    assert SureUnaryEncoding(rng=1, categories=7)(3, 100)[:, 3].all()
