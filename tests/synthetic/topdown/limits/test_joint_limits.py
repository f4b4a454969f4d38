"""Constraints of several partitions: feasibility and nearest tables against all tables of small places."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import optimize

from sfumato.errors import EngineError, ParameterError
from sfumato.synthetic import CountBound, Hierarchy, Invariant, TableDomain, TopDown, UnitCounts
from sfumato.synthetic.topdown.cell_query import cell_query
from sfumato.synthetic.topdown.constraints import stated_limits
from sfumato.synthetic.topdown.limits.controlled_rounding import nearest, rounded
from sfumato.synthetic.topdown.limits.joint_limits import Constraints, JointLimits, joint_limits
from sfumato.synthetic.topdown.limits.lookahead import Coming
from sfumato.synthetic.topdown.nonnegative_fit import Limits
from tests.cases import cases
from tests.run_time import run_time

DOMAIN = TableDomain(sex=["f", "m"], age=[0, 1])
CELLS = np.arange(4)
COLUMNS: Any = {"total": [()], "laminar": [(), ("sex",)], "crossing": [("sex",), ("age",), ()]}
if run_time(__name__):
    TINY = Hierarchy.from_table(pa.table({"state": [0, 0, 1], "town": [1, 2, 3]}), ["state", "town"])
    MANY = Hierarchy.from_table(
        pa.table({"state": np.arange(18) // 9, "county": np.arange(18) // 3, "town": np.arange(18)}),
        ["state", "county", "town"],
    )
    # all tables of three towns with at most one person in each cell
    ALL = np.array(list(product([0, 1], repeat=12))).reshape(-1, 3, 4)
    LEVELS = {"all": ALL.sum(axis=1)[:, None], "state": np.stack([ALL[:, :2].sum(axis=1), ALL[:, 2]], axis=1)}
    LEVELS["town"] = ALL


def groups(columns: Any, counts: Any) -> Any:
    """Counts of cells, along the last axis, by the groups of columns."""
    query = cell_query(DOMAIN, columns)
    return np.stack([counts[..., query.group_of == g].sum(axis=-1) for g in range(query.groups)], axis=-1)


def planned(hierarchy: Hierarchy, bounds: list[CountBound]) -> Constraints:
    return Constraints.of(hierarchy, DOMAIN, CELLS, [], bounds)


def drawn(kind: str, seed: int) -> tuple[list[CountBound], Any]:
    """Random bounds by several columns, and which of all tables meet them."""
    rng = np.random.default_rng(seed)
    bounds, fits = [CountBound("town", upper=1, columns=["sex", "age"])], np.ones(len(ALL), bool)
    base = rng.integers(len(ALL))
    for level, counts in LEVELS.items():
        for columns in COLUMNS[kind]:
            seen = groups(columns, counts)
            of = base if rng.random() < 0.8 else rng.integers(len(ALL))
            low = np.maximum(seen[of] - rng.integers(0, 2), 0)
            high = low + rng.integers(0, 3, low.shape)
            places = np.arange(low.shape[0])[rng.random(low.shape[0]) < 0.45]
            names = [level] if level == "all" else (places + (level == "town")).tolist()
            if not len(places):
                continue
            named = dict(zip(names, places.tolist(), strict=True))
            upper, lower = ({n: ends[p].tolist() for n, p in named.items()} for ends in (high, low))
            bounds.append(CountBound(level, lower, upper, columns))
            fits &= ((seen >= low) & (seen <= high))[:, places].all(axis=(1, 2))
    return bounds, fits


@cases("kind", list(COLUMNS))
def test_what_no_table_meets_is_refused_and_nothing_else(kind: str) -> None:
    found = []
    for seed in range(30):
        bounds, fits = drawn(kind, seed)
        try:
            limits = planned(TINY, bounds).limits()
        except ParameterError:
            assert not fits.any()
            found.append("refused")
            continue
        assert fits.any()
        assert limits is not None
        found.append("coupled" if limits.coupled[1].any() else "apart")
        for part in limits.parts:  # no table that fits is outside
            for depth, counts in enumerate(LEVELS.values()):
                seen = np.stack(
                    [
                        counts[fits][..., part.query.group_of == g].sum(axis=-1)
                        for g in range(part.query.groups)
                    ],
                    axis=-1,
                )
                assert (part.lower[depth] <= seen).all()
                assert (seen <= part.upper[depth]).all()
    assert min(map(found.count, ("refused", "coupled"))) >= 3


def family(limits: JointLimits) -> tuple[list[Limits], list[Coming]]:
    """The limits of both states, and what lies below them, as a batch has them."""
    within = [
        Limits(part.query.group_of, part.lower[1].T.astype(np.float64), part.upper[1].T.astype(np.float64))
        for part in limits.parts
    ]
    atoms = limits.parts[-1].query.group_of
    return within, [Coming(c, atoms, limits.coarse, look) for c, look in limits.below(1, 0, 2).items()]


@cases("kind", list(COLUMNS))
def test_no_table_that_leaves_a_solution_below_is_nearer(kind: str) -> None:
    ahead = 0
    for seed in range(30):
        bounds, fits = drawn(kind, seed)
        if not fits.any():
            continue
        limits = planned(TINY, bounds).limits()
        assert limits is not None
        rng = np.random.default_rng(seed)
        root = LEVELS["all"][rng.choice(np.flatnonzero(fits))][0]
        states = np.unique(LEVELS["state"][fits & (LEVELS["all"][:, 0] == root).all(axis=1)], axis=0)
        tables = states.transpose(0, 2, 1)  # cells by states, each with towns below it
        table = np.maximum(rng.dirichlet([0.7, 0.7], 4) * root[:, None] + rng.normal(0, seed % 2, (4, 2)), 0)
        within, coming = family(limits)
        ahead += len(coming)
        found = nearest(table, root, within, coming)
        assert found is not None
        assert (tables == found).all(axis=(1, 2)).any()
        costs = np.abs(tables - table).sum(axis=(1, 2))
        assert np.abs(found - table).sum() <= costs.min() + 0.05  # units beyond the first cost .001 more
        whole = rounded(table, root, within, coming)
        assert (tables == whole).all(axis=(1, 2)).any()
        near = (np.abs(tables - table) < 1).all(axis=(1, 2))
        for part in limits.parts:
            for g in range(part.query.groups):
                held = part.query.group_of == g
                near &= (np.abs(tables[:, held].sum(axis=1) - table[held].sum(axis=0)) < 1).all(axis=1)
        if near.any():
            assert np.abs(whole - table).sum() <= costs[near].min() + 1e-6
    assert ahead > 2


@cases("kind", ["laminar", "crossing"])
@cases("seed", range(2))
def test_a_release_keeps_all_of_them_at_all_levels(kind: str, seed: int) -> None:
    """Much noise, and limits on every level that leave little: counts of the rows are the only sure ones."""
    rng = np.random.default_rng(seed)
    dense = rng.poisson(rng.gamma(0.4, 2, (18, 4)))
    levels = {"town": dense}
    for name, depth in (("county", 2), ("state", 1), ("all", 0)):
        levels[name] = np.add.reduceat(levels[[*levels][-1]], MANY.starts(depth)[:-1])
    invariants, bounds = [Invariant("state")], []
    for level, counts in levels.items():
        for columns in COLUMNS[kind]:
            if rng.random() < 0.3:
                invariants.append(Invariant(level, columns))
            else:
                seen = groups(columns, counts)
                low, high = np.maximum(seen - rng.integers(0, 3, seen.shape), 0), seen + rng.integers(0, 3)
                names = MANY.places(level).to_pylist()
                lower, upper = (dict(zip(names, ends.tolist(), strict=True)) for ends in (low, high))
                bounds.append(CountBound(level, lower, upper, columns))
    town, cell = np.indices(dense.shape)
    rows = UnitCounts(town.ravel(), cell.ravel(), dense.ravel())
    mechanism = TopDown(
        hierarchy=MANY, domain=DOMAIN, queries=[(), ("sex", "age")], rho=0.05, invariants=invariants,
        bounds=bounds,
    )  # fmt: skip
    released = mechanism.release(rows, rng=seed)
    found = {level: released.counts(level, "sex", "age").reshape(-1, 4) for level in levels}
    assert (found["town"] != dense).any()
    for level, counts in found.items():
        assert counts.min() >= 0
        if level != "town":
            under = MANY.levels[MANY.depth(level) + 1]
            sums = np.add.reduceat(found[under], MANY.starts(MANY.depth(level))[:-1])
            assert (sums == counts).all()
    for each in invariants:
        real, seen = (groups(each.columns, of[each.level]) for of in (levels, found))
        assert (real == seen).all()
    for bound in bounds:
        seen = groups(bound.columns, found[bound.level])
        assert (seen >= np.array(list(bound.lower.values()))).all()
        assert (seen <= np.array(list(bound.upper.values()))).all()
    totals = levels["state"].sum(axis=1)
    estimate = released.estimate(places={"state": [0]})
    assert (float(estimate.counts), estimate.stddev) == (totals[0], 0.0)


def test_limits_of_a_parent_are_met_with_those_of_its_children() -> None:
    bounds = [
        CountBound("town", lower={1: 2, 3: 4}, upper={1: 5, 2: 6}),
        CountBound("state", upper={0: 9}),
        CountBound("all", lower=7),
    ]
    query = cell_query(DOMAIN, ())

    def found(exact: Any) -> Any:
        [limits] = joint_limits(TINY, [stated_limits(TINY, query, bounds, exact)]).parts
        return [[each.ravel().tolist() for each in ends] for ends in (limits.lower, limits.upper)]

    assert found({1: np.array([[8], [20]])}) == [
        [[28], [8, 20], [2, 0, 4]],
        [[28], [8, 20], [5, 6, 2**52]],
    ]
    assert found({}) == [[[7], [2, 4], [2, 0, 4]], [[2**52], [9, 2**52], [5, 6, 2**52]]]


def test_the_census_state_totals_stand_beside_bounds_of_blocks_and_couple_no_place_below() -> None:
    bounds = [CountBound("town", upper={4: [0, 9]}, lower={5: [1, 0]}, columns=["sex"])]
    constraints = Constraints.of(MANY, DOMAIN, CELLS, [Invariant("state")], bounds)
    levels = constraints.limits([{1: np.array([[30], [8]])}, {}])
    assert levels is not None
    assert [each.tolist() for each in levels.coupled] == [[True], [True, True], [False] * 6, [False] * 18]
    assert [query.name for query in constraints.queries] == ["total", "sex"]


def test_too_many_places_where_partitions_meet_are_refused_before_a_row_is_read() -> None:
    many = Hierarchy.from_table(pa.table({"town": np.arange(140_000)}), ["town"])
    bounds = [CountBound("town", upper=9, columns=["sex"]), CountBound("town", upper=12)]
    with pytest.raises(
        ParameterError, match="invariants and bounds of different columns must meet at places"
    ):
        Constraints.of(many, DOMAIN, CELLS, [], bounds)
    Constraints.of(many, DOMAIN, CELLS, [Invariant("all")], bounds[:1])


def test_counts_of_large_places_leave_a_solution_for_small_ones_far_below() -> None:
    """Every other town has two people, in two cells only: no group's limits say so in larger places."""
    halves = [np.array([2, 2, 0, 0]), np.array([0, 0, 2, 2])]
    upper = {town: halves[town % 2].tolist() for town in range(18)}
    bounds = [CountBound("town", upper=upper, columns=["sex", "age"]), CountBound("town", 2, 2)]
    mechanism = TopDown(hierarchy=MANY, domain=DOMAIN, queries=[("sex", "age")], rho=0.02, bounds=bounds)
    rows = UnitCounts(np.arange(18), np.arange(18) % 2 * 2, np.full(18, 2))
    for seed in range(4):
        towns = mechanism.release(rows, rng=seed, intervals=False).counts("town", "sex", "age").reshape(18, 4)
        assert (towns.sum(axis=1) == 2).all()
        assert (towns <= np.array(list(upper.values()))).all()


def test_where_the_search_is_cut_off_any_table_within_the_rules_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve, asked = optimize.milp, list[Any]()

    def cut(cost: Any, integrality: Any, options: Any, **given: Any) -> Any:
        """Find no whole table within the nodes, and vertices that are not whole."""
        asked.append((bool(integrality.any()), "node_limit" in options, bool(np.any(cost))))
        found: Any = solve(cost, integrality=integrality, options=options, **given)
        if asked[-1] == (False, False, True):
            return SimpleNamespace(x=found.x + 0.5, status=0)
        return SimpleNamespace(x=None, status=1) if asked[-1][1] else found

    monkeypatch.setattr(optimize, "milp", cut)
    sex, age = CELLS // 2, CELLS % 2
    table, sums = np.full((4, 3), 1 / 3), np.ones(4, np.int64)
    within = [Limits(of, np.zeros((2, 3)), np.ones((2, 3))) for of in (sex, age)]
    found = rounded(table, sums, within)
    assert (found.sum(axis=1) == 1).all()
    for of in (sex, age):
        assert all((found[of == group].sum(axis=0) <= 1).all() for group in range(2))
    steps = [(False, False, True), (True, True, True)]
    assert asked == [*steps, *steps, (True, False, False)]
    impossible = [Limits(sex, np.zeros((2, 3)), np.array([[1, 0, 0], [9, 9, 9.0]]))]
    monkeypatch.undo()
    assert nearest(table, sums, impossible) is None
    with pytest.raises(EngineError, match="counts must be rounded within their limits"):
        rounded(table, sums, impossible)
