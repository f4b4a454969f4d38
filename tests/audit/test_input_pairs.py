"""Pairs are neighbors, and those of our mechanisms are as far apart as their sensitivity allows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Neighboring
from sfumato.audit import array_pairs, audit, score_pairs, vector_pairs
from sfumato.audit.worst_case_pairs import column_pairs, default_pairs, key_pairs, line_pairs
from sfumato.errors import ParameterError
from sfumato.mechanisms import (
    BoundedSum,
    Count,
    Gaussian,
    Histogram,
    KNorm,
    Laplace,
    LinearWorkload,
    Mean,
    Norm,
    ParallelComposition,
    Quantile,
)
from tests.cases import cases
from tests.chance import accepts_only, unrefuted

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


@cases("relation", list(Neighboring))
@cases("query", MEASURED.values(), ids=MEASURED)
def test_a_query_is_moved_by_its_whole_sensitivity(query: Any, relation: Neighboring) -> None:
    if query == MEASURED["rows"] and relation is not Neighboring.ADD_REMOVE:
        relation = Neighboring.ADD_REMOVE
    if query == MEASURED["mean of public size"] and relation is Neighboring.ADD_REMOVE:
        relation = Neighboring.REPLACE_ONE  # where n is public, add/remove is refused
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


@cases("relation", list(Neighboring))
@cases("bounds", [(-1, 3), (0.5, 2.0)])
def test_columns_differ_in_one_record(relation: Neighboring, bounds: tuple[Any, Any]) -> None:
    for pair in column_pairs(bounds, relation):
        first, second = pair.first.tolist(), pair.second.tolist()
        assert all(type(record) is type(bounds[0]) for record in first)
        if relation is Neighboring.ADD_REMOVE:
            assert first[:-1] == second
            continue
        changed = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
        assert changed == [(bounds[1], 0 if relation is Neighboring.ZERO_OUT else bounds[0])]


@pytest.mark.parametrize("relation", list(Neighboring))
def test_a_median_is_tried_hard(relation: Neighboring) -> None:
    """With all records at the ends of the bounds every answer would have the same rank."""
    mechanism = Quantile(bounds=(0.0, 1.0), epsilon=1.0, neighboring=relation)
    found = audit(mechanism, epsilon=1.0, trials=20_000, confidence=1 - 1e-10, rng=1)
    accepts_only(unrefuted(found.epsilon_lower), 1.0, part=0.4)


@pytest.mark.parametrize("relation", list(Neighboring))
def test_points_differ_in_one(relation: Neighboring) -> None:
    (pair,) = line_pairs((-2, 3), relation)
    assert pair.first.tolist() == [[0, 0], [1, 3]]
    others = {Neighboring.ADD_REMOVE: [], Neighboring.REPLACE_ONE: [[1, -2]], Neighboring.ZERO_OUT: [[0, 0]]}
    assert pair.second.tolist() == [[0, 0], *others[relation]]


@pytest.mark.parametrize("keys", [1, 3])
def test_a_unit_moves_so_many_keys(keys: int) -> None:
    for pair in key_pairs(keys):
        moved = {key for key in pair.first | pair.second if pair.first.get(key, 0) != pair.second.get(key, 0)}
        assert len(moved) == keys
        assert all(abs(pair.first.get(key, 0) - pair.second.get(key, 0)) == 1 for key in moved)


def test_each_part_moves_alone() -> None:
    parts = ParallelComposition(
        parts={"a": Laplace(sensitivity=1, scale=1), "b": Laplace(sensitivity=2.0, scale=2)}
    )
    assert [(pair.first, pair.second) for pair in default_pairs(parts)] == [
        ([0, 0.0], [1, 0.0]),
        ([0, 0.0], [0, 2.0]),
    ]


@pytest.mark.parametrize(("facets", "euclidean"), [(None, False), (None, True), ([[1, 1], [1, -1]], False)])
def test_bodies_are_moved_to_their_border(facets: Any, euclidean: bool) -> None:
    mechanism = KNorm(dimension=2, sensitivity=3, scale=1, facets=facets, euclidean=euclidean)
    (pair,) = default_pairs(mechanism)
    assert mechanism.norm(pair.second - pair.first) == 3


def test_callables_need_pairs() -> None:
    with pytest.raises(ParameterError, match="pairs must be given for a callable"):
        default_pairs(len)
