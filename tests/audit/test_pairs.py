"""Pairs are neighbors, and those of our mechanisms are as far apart as their sensitivity allows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Neighboring
from sfumato.audit import array_pairs, score_pairs, vector_pairs
from sfumato.audit.own_pairs import default_pairs
from sfumato.errors import ParameterError
from sfumato.mechanisms import (
    BoundedSum,
    Count,
    Gaussian,
    Histogram,
    Laplace,
    LinearWorkload,
    Mean,
    Norm,
)

relations = st.sampled_from(list(Neighboring))


@settings(max_examples=60, deadline=None)
@given(relations, st.integers(1, 20), st.integers(2, 8), st.integers(0, 3))
def test_arrays_are_neighbors(relation: Neighboring, count: int, longest: int, seed: int) -> None:
    pairs = array_pairs(relation, bounds=(0, 3), sizes=(1, longest), count=count, seed=seed)
    assert len(pairs) == count
    for pair in pairs:
        first, second = (data.tolist() for data in (pair.first, pair.second))
        assert 1 <= len(first) <= longest
        assert all(0 <= record <= 3 for record in [*first, *second])
        if relation is Neighboring.ADD_REMOVE:
            assert any(first[:k] + first[k + 1 :] == second for k in range(len(first)))
        else:
            assert len(first) == len(second)
            changed = [b for a, b in zip(first, second, strict=True) if a != b]
            assert len(changed) <= 1
            assert relation is Neighboring.REPLACE_ONE or set(changed) <= {0}


def test_arrays_of_values() -> None:
    pairs = array_pairs(values=["a", "b"], count=12)
    assert {record for pair in pairs for record in pair.first.tolist()} == {"a", "b"}
    with pytest.raises(ParameterError, match="bounds must be the only one"):
        array_pairs(bounds=(0, 1), values=[1])
    with pytest.raises(ParameterError, match="sizes must"):
        array_pairs(bounds=(0, 1), sizes=(1, 1))
    with pytest.raises(ParameterError, match="count must"):
        array_pairs(bounds=(0, 1), count=0)


@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 9))
def test_vectors_move_as_far_as_they_may(entries: int, sensitivity: int, moved: int) -> None:
    for pair in vector_pairs(entries, sensitivity, moved=moved):
        moves = np.abs(pair.second - pair.first)
        assert set(moves.tolist()) <= {0, sensitivity}
        assert np.count_nonzero(moves) == min(moved, entries)


@given(st.integers(2, 9), st.integers(1, 12), st.booleans())
def test_scores_move_as_they_may(candidates: int, sensitivity: int, monotone: bool) -> None:
    for pair in score_pairs(candidates, sensitivity, monotone=monotone):
        moves = pair.second - pair.first
        assert np.abs(moves).max() == sensitivity
        assert not monotone or (moves >= 0).all()
    with pytest.raises(ParameterError, match="candidates must"):
        score_pairs(1, sensitivity)


MEASURED = {
    "count": Count(),
    "sum": BoundedSum(bounds=(-3, 10)),
    "real sum": BoundedSum(bounds=(-3.0, 10.0)),
    "mean": Mean(bounds=(0.0, 5.0)),
    "mean of public size": Mean(bounds=(0.0, 5.0), n=4),
    "histogram": Histogram(categories=("a", "b", "c")),
    "edges": Histogram(edges=(-math.inf, 0.0, 1.0, math.inf)),
    "workload": LinearWorkload(matrix=np.tril(np.ones((4, 4)))),
    "rows": Count().after(stability=1),
}


@pytest.mark.parametrize("relation", list(Neighboring))
@pytest.mark.parametrize("query", MEASURED.values(), ids=MEASURED)
def test_a_query_is_moved_by_its_whole_sensitivity(query: Any, relation: Neighboring) -> None:
    if query == MEASURED["rows"] and relation is not Neighboring.ADD_REMOVE:
        relation = Neighboring.ADD_REMOVE
    measurement = Laplace.for_query(query, epsilon=1.0, neighboring=relation)
    (pair,) = default_pairs(measurement)
    moved = np.abs(np.asarray(query.steps(pair.first)) - np.asarray(query.steps(pair.second))).sum()
    if isinstance(query, Count) and relation is not Neighboring.ADD_REMOVE:
        assert moved == 0  # the number of records is public there
        return
    if relation is Neighboring.ZERO_OUT:
        return  # zero is no category, and lies inside the bounds or at their end
    assert math.isclose(float(moved) * float(query.step), query.sensitivity(relation, Norm.L1), rel_tol=1e-6)


def test_additive_mechanisms_are_moved_by_their_sensitivity() -> None:
    for mechanism, norm in (
        (Laplace(sensitivity=3, scale=1), 3.0),
        (Laplace(sensitivity=0.3, scale=1.0), 0.3),
        (Laplace(sensitivity=2, scale=1, l0=3), 6.0),
        (Laplace(l1=5, scale=1), 5.0),
        (Laplace(l1=0.5, scale=1.0, l0=4), 0.5),
    ):
        for pair in default_pairs(mechanism):
            moved = float(np.abs(np.asarray(pair.second) - np.asarray(pair.first)).sum())
            assert moved <= norm * (1 + 1e-12)
        assert any(
            math.isclose(float(np.abs(np.asarray(p.second) - np.asarray(p.first)).sum()), norm)
            for p in default_pairs(mechanism)
        )
    for pair in default_pairs(Gaussian(l2=5.0, stddev=1.0, l0=4)):
        assert math.isclose(float(np.linalg.norm(pair.second - pair.first)), 5.0)
