"""People of several rows, and rows in structural zeros: every pair of neighbors is within the loss."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.synthetic import CountBound, Hierarchy, Invariant, TableDomain, TopDown, UnitCounts
from sfumato.synthetic.topdown.topdown_release import all_levels
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    PLACES = Hierarchy.from_table(pa.table({"town": ["1", "2"]}), ["town"])
DOMAIN = TableDomain(sex=["f", "m"])
QUERIES: Any = [(), ("sex",)]
ZEROS = TableDomain(age=["child", "adult"], sex=["f", "m"], job=[0, 1, 2]).with_structural_zeros(
    {"age": ["child"], "job": [1, 2]}
)


def moves(mechanism: TopDown, first: Any, second: Any) -> list[int]:
    """By how much two tables differ in what is measured, in squared L2 norm."""
    cells = mechanism.domain.cells
    levels = []
    for rows in (first, second):
        units, inner = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
        lowest = UnitCounts(units, inner, np.ones(len(rows), np.int64))
        exact = lowest.lowest(len(PLACES.labels[-1]), cells, mechanism._possible)
        levels.append(all_levels(mechanism.hierarchy, exact, cells))
    found = []
    for each in mechanism._noise(Fraction(mechanism.rho)):
        query, places = mechanism._queries[each.query], mechanism.hierarchy.size(each.depth)
        here, there = (level[each.depth].grouped(0, places, query.group_of, query.groups) for level in levels)
        found.append(int(((here - there) ** 2).sum()))
    return found


@cases("relation", list(Neighboring))
@cases("most", [1, 2, 3])
def test_the_rows_of_a_person_move_counts_by_what_is_priced_and_some_do(
    most: int, relation: Neighboring
) -> None:
    mechanism = TopDown(
        hierarchy=PLACES, domain=DOMAIN, queries=QUERIES, rho=1, neighboring=relation,
        max_rows_contributed=most,
    )  # fmt: skip
    every = [(town, cell) for town in range(2) for cell in range(2)]
    people = [person for number in range(most + 1) for person in combinations_with_replacement(every, number)]
    rest = ((0, 1), (0, 1), (1, 0))
    pairs: list[Any] = [((), person) for person in people]
    if relation is not Neighboring.ADD_REMOVE:
        pairs = list(combinations(people, 2))
    found = [moves(mechanism, (*one, *rest), (*other, *rest)) for one, other in pairs]
    plan = mechanism._noise(Fraction(1))
    assert [max(column) for column in zip(*found, strict=True)] == [each.l2_squared for each in plan]
    leaves = [leaf for leaf, count in mechanism.privacy_loss.terms for _ in range(count)]
    assert all(isinstance(leaf, DiscreteGaussianVector) and leaf.neighboring is relation for leaf in leaves)
    charged = sum(Fraction(leaf.l2_squared) / leaf.stddev**2 for leaf in leaves)  # type: ignore[attr-defined]
    spent = [sum(m / each.sigma**2 for m, each in zip(row, plan, strict=True)) for row in found]
    assert max(spent) <= charged <= 2  # twice rho


def test_noise_grows_with_the_rows_and_odd_numbers_of_them_are_refused() -> None:
    given: dict[str, Any] = {"hierarchy": PLACES, "domain": DOMAIN, "queries": QUERIES, "rho": 0.5}
    one, five = (TopDown(**given, max_rows_contributed=most) for most in (1, 5))
    assert five.stddev("town", "sex") == pytest.approx(5 * one.stddev("town", "sex"), rel=1e-6)
    assert five.privacy_loss.zcdp().rho == pytest.approx(0.5, rel=1e-6)
    for odd in (0, True, 1.5, 2**20 + 1):
        with pytest.raises(ParameterError, match="max_rows_contributed must be"):
            TopDown(**given, max_rows_contributed=odd)  # type: ignore[arg-type]


def over_zeros(**given: Any) -> TopDown:
    return TopDown(
        **{"hierarchy": PLACES, "domain": ZEROS, "queries": [(), ("age", "job"), ("sex",)], "rho": 1, **given}
    )


def test_rows_in_cells_that_cannot_be_are_not_counted_and_released_counts_there_are_0() -> None:
    rows = {
        "town": ["1", "2"] * 200,
        "age": ["child", "adult"] * 200,
        "sex": ["f"] * 400,
        "job": [0, 2] * 200,
    }
    impossible = {"town": ["1"] * 50, "age": ["child"] * 50, "sex": ["m"] * 50, "job": [2] * 50}
    clean = pa.table(rows)
    mixed = pa.concat_tables([clean, pa.table(impossible)])
    for rho in (0.001, 0.1, 4000):
        for intervals in (True, False):
            first, second = (
                over_zeros(rho=rho).release(table, rng=5, intervals=intervals) for table in (clean, mixed)
            )
            assert first.to_json() == second.to_json()
            for level in PLACES.levels:
                assert not first.counts(level, "age", "job")[:, 0, 1:].any()
    assert first.counts("town", "age", "job").tolist() == [[[200, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 200]]]
    noisy = over_zeros(rho=0.1).release(mixed, rng=1).estimate("job", "age")
    interval = noisy.interval(0.95)
    assert interval.upper[1:, 0].tolist() == interval.lower[1:, 0].tolist() == [0, 0]
    assert interval.upper[0, 0] > interval.lower[0, 0]
    assert moves(over_zeros(), [], [(0, 1), (1, 2), (0, 4)]) == [0] * 6  # all three are of children with jobs


def test_constraints_of_cells_that_cannot_be_are_met_or_refused() -> None:
    groups = {"columns": ["age", "job"]}
    mechanism = over_zeros(
        invariants=[Invariant("town", **groups)], bounds=[CountBound("town", upper=900, **groups)]
    )
    rows = {"town": ["1"] * 9, "age": ["child"] * 9, "sex": ["m"] * 9, "job": [0] * 5 + [1] * 4}
    assert mechanism.release(pa.table(rows), rng=1).counts("all", "job").tolist() == [[5, 0, 0]]
    with pytest.raises(ParameterError, match="counts must exist that meet all invariants and bounds"):
        over_zeros(bounds=[CountBound("town", lower={"2": [0, 1, 0, 0, 0, 0]}, **groups)])
    none_left: list[Any] = [{"age": ["child"], "job": [0]}, {"age": ["adult"], "sex": ["f", "m"]}]
    with pytest.raises(ParameterError, match="zeros must leave some cell, but together they leave none"):
        ZEROS.with_structural_zeros(*none_left)
    written = json.loads(ZEROS.to_json())
    nobody = TableDomain.from_json(json.dumps({**written, "zeros": written["zeros"] + none_left}))
    with pytest.raises(ParameterError, match="domain must have a cell that can hold a row"):
        over_zeros(domain=nobody)


if run_time(__name__):
    MANY = Hierarchy.from_table(pa.table({"town": np.arange(3000)}), ["town"])
    CHANGES: list[dict[str, Any]] = [
        {"hierarchy": Hierarchy.from_table(pa.table({"town": np.arange(3000)}), ["town"], root="land")},
        {"hierarchy": Hierarchy.from_table(pa.table({"town": np.arange(1, 3001)}), ["town"])},
        {"domain": TableDomain(ZEROS)},
        {"queries": [(), ("sex",)]},
        {"shares": [1, 2]},
        {"levels": {"all": 1, "town": 2}},
        {"invariants": [Invariant("all")]},
        {"bounds": [CountBound("town", upper=5)]},
        {"neighboring": Neighboring.REPLACE_ONE},
        {"max_rows_contributed": 2},
    ]


def test_what_is_asked_has_a_fingerprint_of_its_own() -> None:
    given: dict[str, Any] = {"hierarchy": MANY, "domain": ZEROS, "queries": [("sex",), ()], "rho": 1}
    first = TopDown(**given)
    assert TopDown(**given | {"rho": 2}).fingerprint == first.fingerprint
    found = {first.fingerprint, *(TopDown(**given | change).fingerprint for change in CHANGES)}
    assert len(found) == 1 + len(CHANGES)


def test_long_bounds_that_differ_in_the_middle_are_told_apart(tmp_path: Path) -> None:
    domain, folder = TableDomain(job=list(range(1500))), tmp_path / "run"
    upper = np.full(1500, 9)  # shown as a text, so long an array leaves its middle out
    other = upper.copy()
    other[700] = 8
    first, second = (
        TopDown(
            hierarchy=PLACES, domain=domain, queries=[()], rho=1,
            bounds=[CountBound("town", upper=each, columns=["job"])],
        )
        for each in (upper, other)
    )  # fmt: skip
    assert first.fingerprint != second.fingerprint
    nobody = UnitCounts(*[np.zeros(0, np.int64)] * 3)
    first.release(nobody, rng=1, state=folder)
    with pytest.raises(ParameterError, match="state must be of this mechanism"):
        second.release(nobody, rng=1, state=folder)
