"""Noisy counts: what they are of, how large they may be, and which of them are drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from sfumato.numerics import SimulatedSource
from sfumato.privacy import Neighboring
from sfumato.synthetic import Hierarchy, TableDomain, UnitCounts
from sfumato.synthetic.topdown.cell_query import cell_query
from sfumato.synthetic.topdown.measurement import child_ranges, measure, measure_some
from sfumato.synthetic.topdown.noise_plan import LevelNoise, noise_plan, shares_of, squared_shift

DOMAIN = TableDomain(sex=["f", "m"], age=[0, 1, 2])
QUERIES = [cell_query(DOMAIN, ["sex"]), cell_query(DOMAIN, ["sex", "age"])]
NOISE = [LevelNoise(1, 0, 1, Fraction(1)), LevelNoise(1, 1, 1, Fraction(3, 2))]


def test_many_places_are_measured_in_short_numbers_that_hold_all_counts() -> None:
    units = np.arange(3000)
    counts = UnitCounts(units, units % 6, np.where(units == 7, 2**40, units)).lowest(3000, 6)
    assert counts.counts.max() == 2**30
    found = measure(counts, NOISE, QUERIES, SimulatedSource(1))
    for place, query in enumerate(QUERIES):
        exact = counts.grouped(0, 3000, query.group_of, query.groups)
        off = found[place].astype(np.int64) - exact
        assert found[place].dtype == np.int32
        assert np.abs(off).max() < 10
        assert 0.95 < off.std() / float(NOISE[place].sigma) < 1.05


def test_noise_is_drawn_for_the_wanted_groups_alone() -> None:
    counts = UnitCounts(np.arange(60) % 10, np.arange(60) % 6, np.full(60, 50)).lowest(10, 6)
    wanted = [(2, np.array([0, 1])), (1, np.array([5]))]
    found = measure_some(counts, NOISE, QUERIES, SimulatedSource(1), children=(3, 6), wanted=iter(wanted))
    exact = [counts.grouped(3, 6, query.group_of, query.groups) for query in QUERIES]
    drawn = np.array([[1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]], np.bool_)
    assert (found[1][~drawn] == 0).all()
    assert np.abs(found[1] - exact[1])[drawn].max() < 12
    assert (found[0][[0, 1], 1] == 0).all()
    assert found[0][2, 0] == 0
    assert np.abs(found[0] - exact[0])[[0, 1, 2], [0, 0, 1]].max() < 9


def test_ranges_of_parents_have_all_of_them_once_and_few_children_each() -> None:
    starts = np.array([0, 3, 4, 9, 10, 11])
    assert child_ranges(starts, 2, 10) == [(0, 2), (2, 3), (3, 5)]
    assert child_ranges(starts, 100, 10) == [(i, i + 1) for i in range(5)]
    assert child_ranges(starts, 1, 100) == [(0, 5)]


def test_the_noise_of_a_share_is_priced_at_no_more_than_it() -> None:
    places = Hierarchy.from_table(pa.table({"town": [1, 2, 3]}), ["town"])
    shares = shares_of(places, 2, {"all": 1, "town": Fraction(1, 3)}, {"all": [0, 1], "town": [0.25, 0.75]})
    assert sum(map(sum, shares)) == 1
    for relation in Neighboring:
        plan = noise_plan(places, QUERIES, shares, Fraction(7, 10), neighboring=relation)
        assert [(each.depth, each.query) for each in plan] == [(0, 1), (1, 0), (1, 1)]
        for each in plan:
            rho = Fraction(each.l2_squared) / each.sigma**2 / 2
            wanted = shares[each.depth][each.query] * Fraction(7, 10)
            assert wanted * (1 - Fraction(1, 2**28)) <= rho <= wanted
            assert each.loss(relation).zcdp().rho <= float(wanted) * (1 + 1e-15)
            assert each.l2_squared == squared_shift(6, relation)
