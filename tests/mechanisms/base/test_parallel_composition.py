"""Parallel composition and contribution bounds: what they cost, what they preserve, what they refuse."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import (
    ContributionBound,
    Count,
    Gaussian,
    Laplace,
    Norm,
    ParallelComposition,
)
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, rate


def test_parts_cost_what_the_dearest_costs() -> None:
    cheap, dear = (Laplace.calibrated(sensitivity=1, epsilon=epsilon) for epsilon in (0.25, 0.5))
    both = ParallelComposition(parts={"a": cheap, "b": dear, "c": cheap})
    assert both.privacy_loss.epsilon(0.0) == 0.5
    mixed = ParallelComposition(
        parts={1: dear, 2: Gaussian.calibrated(sensitivity=1, epsilon=0.5, delta=1e-6)}
    )
    assert mixed.privacy_loss.epsilon(1e-6) <= 0.5 * (1 + 1e-6)


def test_parts_are_fixed_when_they_are_given() -> None:
    count, other = Laplace(sensitivity=1, scale=2), Laplace(sensitivity=1, scale=4)
    given = {"a": count, "b": other}
    both = ParallelComposition(parts=given)
    given["c"] = count
    assert list(both.parts) == ["a", "b"]
    assert (both.parts["b"], len(both.parts), both.parts.get("c")) == (other, 2, None)
    with pytest.raises(TypeError):
        both.parts["a"] = other  # type: ignore[index]
    with pytest.raises(KeyError):
        both.parts["c"]
    same, turned = (
        ParallelComposition(parts=dict(order)) for order in (both.parts.items(), [*both.parts.items()][::-1])
    )
    assert both == same
    assert hash(both) == hash(same)
    assert len({both, same, turned}) == 2  # values come in the order of parts
    assert pickle.loads(pickle.dumps(both)) == replace(both) == both
    assert repr(both) == f"ParallelComposition(parts={{'a': {count!r}, 'b': {other!r}}})"


def test_each_part_is_released_with_its_own_error() -> None:
    count = Laplace.calibrated(sensitivity=1, epsilon=1.0)
    release = ParallelComposition(parts={"a": count, "b": count}).release([10, np.array([20, 30])], rng=4)
    assert list(release.value) == ["a", "b"]
    assert release.value["b"].shape == (2,)
    interval = release.parts["a"].interval(0.9)  # type: ignore[attr-defined]
    assert interval.lower <= release.value["a"] <= interval.upper
    assert release.simulated
    assert release.parts["a"].loss == count.privacy_loss


def test_parts_under_replace_one_or_of_mixed_relations_are_refused() -> None:
    replace = Laplace(sensitivity=1, scale=2, neighboring=Neighboring.REPLACE_ONE)
    with pytest.raises(NeighboringMismatch):
        ParallelComposition(parts={"a": replace})
    with pytest.raises(NeighboringMismatch):
        ParallelComposition(parts={"a": Laplace(sensitivity=1, scale=2), "b": replace})


@pytest.mark.parametrize("parts", [{}, [], {"a": 1}, None])
def test_what_is_no_partition_is_refused(parts: Any) -> None:
    with pytest.raises(ParameterError, match="parts must map"):
        ParallelComposition(parts=parts)


@cases("value", [None, 1, {1: 5, 2: 7}, {5, 7}, "57"])
def test_values_in_no_order_are_refused(value: Any) -> None:
    count = Laplace.calibrated(sensitivity=1, epsilon=0.5)
    with pytest.raises(ParameterError, match="value must be a sequence"):
        ParallelComposition(parts={1: count, 2: count}).release(value)


def test_one_value_for_each_part_is_needed() -> None:
    count = Laplace(sensitivity=1, scale=2)
    with pytest.raises(ParameterError, match="value must hold 2 values"):
        ParallelComposition(parts={"a": count, "b": count}).release([1])


def test_at_most_the_limit_is_retained_of_each_unit_in_order() -> None:
    rng = np.random.default_rng(7)
    units = rng.integers(0, 50, 3000)
    retained = ContributionBound(limit=4)((units, np.arange(3000)))
    assert (np.diff(retained) > 0).all()
    counts, whole = Counter(units[retained].tolist()), Counter(units.tolist())
    assert all(counts[unit] == min(4, whole[unit]) for unit in whole)
    few = ContributionBound(limit=10**9)((units.astype(str), np.arange(3000)))
    assert few.tolist() == list(range(3000))
    assert len(ContributionBound(limit=1)((np.zeros(0, np.int64), np.zeros(0)))) == 0


def test_every_record_of_a_unit_is_retained_as_often() -> None:
    bound = ContributionBound(limit=2, rng=np.random.default_rng(3))
    units, records = np.array([1, 0, 1, 1, 0, 1]), np.arange(6)
    seen = Counter(record for _ in range(4000) for record in bound((units, records)).tolist())
    assert seen[1] == seen[4] == 4000
    for record in (0, 2, 3, 5):
        accepts_only(rate(seen[record], 4000), 1 / 2, rarer=0.4, more_often=0.6)


def test_removing_a_unit_changes_no_other_unit() -> None:
    rng = np.random.default_rng(11)
    units, records = rng.integers(0, 8, 60), np.arange(60)
    # The same numbers for the records that stay: those of the removed unit come last.
    order = np.argsort(units == 3, kind="stable")
    units, records = units[order], records[order]
    staying = units != 3
    whole = ContributionBound(limit=3, rng=5)((units, records))
    without = ContributionBound(limit=3, rng=5)((units[staying], records[staying]))
    gone = set(whole.tolist()) - set(without.tolist())
    assert set(without.tolist()) <= set(whole.tolist())
    assert len(gone) <= 3
    assert all(units[records == record][0] == 3 for record in gone)


def test_a_query_of_bounded_contributions_costs_the_limit() -> None:
    bound = ContributionBound(limit=3)
    query = Count().after(bound, stability=bound.stability)
    assert query.sensitivity(Neighboring.ADD_REMOVE, Norm.L1) == 3
    assert query.sensitivity(Neighboring.REPLACE_ONE, Norm.L1) == 6


@pytest.mark.parametrize(("rng", "simulated"), [(None, False), (3, True), (np.random.default_rng(3), True)])
def test_a_lot_drawn_by_a_seed_makes_the_release_a_simulation(rng: Any, simulated: bool) -> None:
    bound = ContributionBound(limit=2, rng=rng)
    query = Count().after(bound, stability=bound.stability).after(stability=1)
    release = Laplace.for_query(query, epsilon=1.0).release((np.array([1, 1, 1, 2]), np.arange(4)))
    assert release.simulated is simulated


@cases("limit", [0, -1, 1.5, True, None])
def test_a_limit_that_is_no_number_of_records_is_refused(limit: Any) -> None:
    with pytest.raises(ParameterError, match="limit must be an integer of at least 1"):
        ContributionBound(limit=limit)


@cases(
    "data",
    [
        np.zeros(3),
        (np.zeros(3), np.zeros(3)),
        (np.zeros(2, np.int64), np.zeros(3)),
        (np.zeros((3, 1), np.int64), np.zeros(3)),
        ([1, 2], np.zeros(3)),
        ({1, 2, 3}, np.zeros(3)),
    ],
)
def test_data_without_units_is_refused(data: Any) -> None:
    with pytest.raises(ParameterError, match=r"(data|units) must"):
        ContributionBound(limit=1)(data)
