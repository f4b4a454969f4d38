"""Residuals: what a row moves, against all pairs; least error, against a search; noise, against its own."""

from __future__ import annotations

import math
from functools import reduce
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.synthetic import Marginals, Ordered, ResidualMechanism, TableDomain
from sfumato.synthetic.marginals.contingency import contingency_table
from sfumato.synthetic.marginals.residual_plan import l2_squared_shift, residual_plan, share_of
from sfumato.synthetic.marginals.table_counts import table_counts
from tests.cases import cases
from tests.synthetic.marginals.residuals import integer_residual

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
PERSON = TableDomain(a=[0, 1], b=[0, 1, 2], c=[0, 1, 2, 3])


def moved(shape: tuple[int, ...], *, two: bool) -> int:
    """The most that a neighbor moves a residual, over all cells: by the matrices themselves."""
    matrix = reduce(np.kron, [n * np.eye(n, dtype=np.int64) - 1 for n in shape], np.eye(1, dtype=np.int64))
    rows = [*matrix.T, np.zeros_like(matrix[0])]
    pairs = combinations(rows, 2) if two else ((row, rows[-1]) for row in rows)
    return max(int(((x - y) ** 2).sum()) for x, y in pairs)


@cases("shape", [(), (2,), (5,), (2, 2), (2, 3), (3, 4), (2, 2, 3), (3, 3, 2), (4, 3, 5)])
@cases("two", [False, True])
def test_no_row_moves_a_residual_by_more_than_is_charged_and_one_does(shape: Any, two: bool) -> None:
    assert moved(shape, two=two) == l2_squared_shift(shape, two=two)


def neighbors(relation: Neighboring) -> Any:
    """All pairs of small tables of one row more, or of another row; rows that are not counted among them."""
    rows = [*product(range(2), range(3)), (0, None)]
    others = [(), ((0, 0),), ((1, 2), (0, 0))]
    for row in rows:
        for rest in others:
            changed = [()] if relation is Neighboring.ADD_REMOVE else [(other,) for other in rows]
            yield from (((row, *rest), (*change, *rest)) for change in changed)


def table(rows: Any) -> pa.Table:
    return pa.table({name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate("ab")})


@cases("relation", list(Neighboring))
def test_every_pair_of_neighbors_is_within_the_loss(relation: Neighboring) -> None:
    """The drawn noise's own parameters against the exact shift of what it was added to."""
    domain = TableDomain(a=[0, 1], b=[0, 1, 2])
    mechanism = ResidualMechanism(domain=domain, workload=Marginals.every(2), scale=9, neighboring=relation)
    leaves = [leaf for leaf, count in mechanism.privacy_loss.terms for _ in range(count)]
    charged = sum(leaf.l2_squared / leaf.stddev**2 for leaf in leaves)  # type: ignore[attr-defined]
    noise = mechanism._distributions()
    worst = 0.0
    for first, second in neighbors(relation):
        counted = [table_counts(domain, table(rows)) for rows in (first, second)]
        spent = 0.0
        for part, distribution in noise.items():
            here, there = (integer_residual(each.counts(part)) for each in counted)
            spent += float(((here - there) ** 2).sum()) / float(distribution.sigma) ** 2
        worst = max(worst, spent)
    assert worst <= charged * (1 + 1e-12)
    assert worst >= charged / (1.0000001 if relation is Neighboring.ADD_REMOVE else 1.9)
    assert all(isinstance(leaf, DiscreteGaussianVector) for leaf in leaves)


@cases("relation", list(Neighboring))
def test_a_person_of_several_rows_moves_residuals_by_no_more_than_is_charged(relation: Neighboring) -> None:
    """All persons of up to two rows, added, or replaced by all others; added, some reach the price."""
    domain = TableDomain(a=[0, 1], b=[0, 1, 2])
    mechanism = ResidualMechanism(
        domain=domain, workload=Marginals.every(2), scale=9, neighboring=relation, max_rows_contributed=2
    )
    leaves = [leaf for leaf, count in mechanism.privacy_loss.terms for _ in range(count)]
    one = ResidualMechanism(domain=domain, workload=Marginals.every(2), scale=9, neighboring=relation)
    assert mechanism.privacy_loss.epsilon(1e-6) == pytest.approx(one.privacy_loss.epsilon(1e-6), rel=1e-3)
    assert mechanism.stddev("a") == pytest.approx(2 * one.stddev("a"), rel=1e-3)
    cells = [None, *product(range(2), range(3))]
    persons = list({tuple(sorted(filter(None, pair))) for pair in product(cells, cells)})
    assert () in persons
    two, prices = relation is not Neighboring.ADD_REMOVE, []
    for part in mechanism._distributions():
        moved = {}
        for person in persons:
            codes = np.array(person, np.int64).reshape(-1, 2)
            moved[person] = integer_residual(contingency_table(codes, domain.sizes, part))
        prices.append(4 * l2_squared_shift([domain.sizes[place] for place in part], two=two))
        shifts = [
            int(((moved[x] - moved[y]) ** 2).sum()) for x in persons for y in (persons if two else [()])
        ]
        assert max(shifts) <= prices[-1]
        assert two or max(shifts) == prices[-1]
    assert sorted(prices) == sorted(leaf.l2_squared for leaf in leaves)  # type: ignore[attr-defined]


def test_a_plan_is_the_best_that_a_search_finds() -> None:
    sizes, cliques, weights = (2, 3, 4), [(0, 1), (1, 2), (2,)], [1.0, 2.0, 0.5]
    plan = residual_plan(cliques, weights, sizes, two=False)
    parts = sorted(plan.variances)
    shapes = [[sizes[i] for i in part] for part in parts]
    costs = np.array([l2_squared_shift(s, two=False) / math.prod(s) ** 2 for s in shapes])
    errors = np.array([
        sum(
            w * math.prod(sizes[i] for i in c) * share_of(c, part, sizes)
            for c, w in zip(cliques, weights, strict=True)
            if set(part) <= set(c)
        )
        for part in parts
    ])  # fmt: skip
    found = np.array([plan.variances[part] for part in parts])
    assert (costs / found).sum() == pytest.approx(1, rel=1e-12)
    assert (errors * found).sum() == pytest.approx(plan.squared_error, rel=1e-12)

    def error(logs: Any) -> float:
        variances = np.exp(logs)
        return float((errors * variances).sum() * (costs / variances).sum())

    least = minimize(
        error, np.zeros(len(parts)), method="Nelder-Mead", options={"maxiter": 20000, "xatol": 1e-9}
    )
    assert plan.squared_error <= least.fun * (1 + 1e-9)
    assert plan.squared_error == pytest.approx(least.fun, rel=1e-3)


@cases(("orders", "error"), [((1,), 3.0468), ((2,), 6.3587), ((3,), 10.5153), ((1, 2, 3), 10.6650)])
def test_errors_are_those_of_the_singular_values_bound(orders: tuple[int, ...], error: float) -> None:
    """On Adult's columns, at 1-Gaussian DP: the figures of the paper's optimum, to four digits."""
    cliques = [c for k in orders for c in combinations(range(len(ADULT)), k)]
    plan = residual_plan(cliques, [1.0] * len(cliques), ADULT, two=False)
    cells = sum(math.prod(ADULT[i] for i in c) for c in cliques)
    assert math.sqrt(plan.squared_error / cells) == pytest.approx(error, abs=5e-5)


def test_without_noise_the_tables_are_the_counts() -> None:
    rng = np.random.default_rng(3)
    codes = np.stack([rng.integers(0, n, 500) for n in (2, 3, 4)], axis=1)
    people = pa.table({name: codes[:, i] for i, name in enumerate("abc")})
    mechanism = ResidualMechanism.calibrated(PERSON, Marginals.every(2), epsilon=900.0, delta=0.5)
    released = mechanism.release(people, rng=rng)
    for names in combinations("abc", 2):
        exact = contingency_table(codes, (2, 3, 4), tuple("abc".index(name) for name in names))
        found = released.marginal(*names)
        assert np.abs(found.counts - exact).max() < 6 * found.stddev < 2
        turned = released.marginal(*names[::-1])
        assert (turned.counts == found.counts.T).all()
        assert turned.columns == names[::-1]


def test_the_noise_of_a_cell_is_as_large_as_it_says_and_intervals_hold() -> None:
    people = pa.table({"a": [0] * 900, "b": [0, 1, 2] * 300, "c": [3] * 900})
    mechanism = ResidualMechanism.calibrated(PERSON, Marginals.every(2), epsilon=1.0, delta=1e-6)
    rng, runs = np.random.default_rng(8), 200
    held, together, proven, off = 0, 0, 0, []
    exact = np.array([[0, 0, 0, 300]] * 3)
    for _ in range(runs):
        released = mechanism.release(people, rng=rng)
        found = released.marginal("b", "c")
        assert abs(released.marginal("b").counts.sum() - released.total) < 1e-6
        np.testing.assert_allclose(found.counts.sum(axis=1), released.marginal("b").counts, atol=1e-6)
        off.append(found.counts - exact)
        lower, upper, _ = found.interval(0.95)
        held += int(((lower <= exact) & (exact <= upper)).sum())
        for count, given in ((0, {}), (1, {"proven": True})):
            lower, upper, _ = found.interval(0.9, simultaneous=True, **given)
            inside = bool(((lower <= exact) & (exact <= upper)).all())
            together, proven = together + inside * (count == 0), proven + inside * count
    spread = np.std(off, axis=0)
    assert np.abs(np.mean(off, axis=0)).max() < 5 * found.stddev / math.sqrt(runs)
    assert spread == pytest.approx(found.stddev, rel=0.25)
    assert 0.93 <= held / (12 * runs) <= 0.97
    assert together >= 0.85 * runs
    assert proven >= 0.97 * runs
    assert mechanism.stddev("b", "c") == found.stddev == mechanism.stddev("c", "b")


def test_a_calibrated_mechanism_meets_its_target_and_wastes_nothing() -> None:
    for relation in Neighboring:
        mechanism = ResidualMechanism.calibrated(
            PERSON, Marginals.up_to(3), epsilon=0.7, delta=1e-7, neighboring=relation
        )
        assert 0.69 < mechanism.privacy_loss.quick_epsilon(1e-7) <= 0.7
        assert mechanism.release(table_of_none(), rng=1).neighboring is relation


def table_of_none() -> pa.Table:
    return pa.table({name: pa.array([], pa.int64()) for name in "abc"})


def test_columns_of_one_cell_and_no_rows_are_answered() -> None:
    domain = TableDomain(one=[7], b=[0, 1, 2])
    mechanism = ResidualMechanism.calibrated(domain, Marginals.every(2), epsilon=1.0, delta=1e-6)
    released = mechanism.release(pa.table({"one": [7] * 600, "b": [0, 1, 2] * 200}), rng=2)
    found = released.marginal("one", "b")
    assert found.counts.shape == (1, 3)
    assert np.abs(found.counts - 200).max() < 40
    assert released.marginal("one").counts.tolist() == [released.total]
    assert found.to_arrow().column_names == ["one", "b", "count", "lower", "upper"]
    none = mechanism.release(
        pa.table({"one": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}), rng=2
    )
    assert none.marginal("b").non_negative().sum() == pytest.approx(max(0.0, none.total))


def test_nearest_counts_are_not_negative_and_sum_to_the_rows() -> None:
    mechanism = ResidualMechanism.calibrated(PERSON, Marginals.every(2), epsilon=0.5, delta=1e-6)
    rows = pa.table({"a": [0] * 50, "b": [1] * 50, "c": [2] * 50})
    found = mechanism.release(rows, rng=4).marginal("b", "c")
    assert found.counts.min() < 0
    counts = found.non_negative()
    assert counts.min() == 0
    assert counts.sum() == pytest.approx(found.total)
    moved = found.counts - counts
    assert np.ptp(moved[counts > 0]) < 1e-9  # the same was taken off wherever something is left
    assert moved[counts == 0].max() <= moved.max()


def test_what_is_too_large_or_was_not_measured_is_refused() -> None:
    wide = TableDomain(a=Ordered(0, 1, bins=5000), b=Ordered(0, 1, bins=5000))
    with pytest.raises(
        ParameterError, match="workload must be of tables of at most 16777216 cells, but the larg"
    ):
        ResidualMechanism.calibrated(wide, Marginals.every(2), epsilon=1.0, delta=1e-6)
    many = TableDomain({f"c{i}": [0, 1] if i < 24 else [0] for i in range(30)})
    with pytest.raises(
        ParameterError, match="noisy numbers of the workload must be at most 33554432, but the"
    ):
        ResidualMechanism(
            domain=many, workload=Marginals.every(30), scale=1
        )  # 2**30 residuals are not listed
    for scale in (0, -1, math.nan):
        with pytest.raises(ParameterError, match="scale must be"):
            ResidualMechanism(domain=PERSON, workload=Marginals.every(1), scale=scale)
    mechanism = ResidualMechanism(domain=PERSON, workload=Marginals.every(1), scale=5)
    released = mechanism.release(table_of_none(), rng=1)
    for wrong in (("a", "b"), ("a", "a"), ("x",)):
        with pytest.raises(ParameterError, match=r"columns? must be"):
            released.marginal(*wrong)
        with pytest.raises(ParameterError, match=r"columns? must be"):
            mechanism.stddev(*wrong)
