"""Prefixes and ranges of ordered columns: their noise, their price, and how they are read."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms.factorization.strategies.optimal_strategy import optimal_strategy, svd_bound
from sfumato.privacy import Neighboring
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.synthetic import (
    AIM,
    Marginals,
    MarginalsRelease,
    MarginalTable,
    Ordered,
    ResidualMechanism,
    TableDomain,
    WorkloadError,
)
from sfumato.synthetic.marginals.column_strategy import (
    CellStrategy,
    ColumnStrategy,
    RangeStrategy,
    ordered_strategy,
    squared_shift,
)
from sfumato.synthetic.marginals.ordered_plan import ordered_plan
from sfumato.synthetic.marginals.ordered_queries import OrderedQueries
from sfumato.synthetic.marginals.residual_plan import AskedColumn, residual_plan
from sfumato.synthetic.marginals.table_counts import CountedRows
from tests.cases import cases

DOMAIN = TableDomain(age=Ordered.integers(0, 5, missing=True), pay=Ordered(0, 30, bins=3), sex=["f", "m"])
WORKLOAD = Marginals([("age", "pay", "sex"), ("age", "sex"), ("sex",)], weights=[1.0, 2.0, 0.5])
WORKLOAD = WORKLOAD.with_ranges("age").with_prefixes("pay")


def codes(rows: int = 300) -> Any:
    generator = np.random.default_rng(4)
    return np.stack([generator.integers(0, n, rows) for n in DOMAIN.sizes], axis=1)


def released(mechanism: ResidualMechanism, rng: Any) -> MarginalsRelease:
    return mechanism.release(CountedRows(codes(), DOMAIN.sizes), rng)


def asked(queries: OrderedQueries, attribute: Ordered) -> Any:
    """Return the questions as a matrix, written out one by one."""
    bins = attribute.size - attribute.missing
    starts = range(1 if queries is OrderedQueries.PREFIXES else bins)
    rows = [
        [first <= i <= last for i in range(attribute.size)] for first in starts for last in range(first, bins)
    ]
    return np.array([*rows, *([[False] * bins + [True]] if attribute.missing else [])], np.float64)


def gls_stddevs(mechanism: ResidualMechanism, released: MarginalsRelease, weights: Any) -> Any:
    """Return the standard deviations of weighted least squares from all that is measured."""
    sizes = DOMAIN.sizes
    precision: Any = 0.0
    for part, distribution in released.distributions.items():
        factors: list[Any] = []
        for place, size in enumerate(sizes):
            plain = size * np.eye(size) - np.ones((size, size))
            strategy = released.strategies.get(place)
            measured = plain if strategy is None else strategy.matrix
            factors.append(measured if place in part else np.ones((1, size)))
        matrix = reduce(np.kron, factors) / distribution.stddev
        precision = precision + matrix.T @ matrix
    covariance = np.linalg.inv(precision)
    return np.sqrt(np.einsum("ij,jk,ik->i", weights, covariance, weights))


def test_standard_deviations_are_those_of_least_squares_over_everything_measured() -> None:
    mechanism = ResidualMechanism(domain=DOMAIN, workload=WORKLOAD, scale=3)
    found = released(mechanism, 1)
    age, pay = DOMAIN["age"], DOMAIN["pay"]
    assert isinstance(age, Ordered)
    assert isinstance(pay, Ordered)
    ranges, prefixes = asked(OrderedQueries.RANGES, age), asked(OrderedQueries.PREFIXES, pay)
    crossed: Any = reduce(np.kron, [ranges, prefixes[:2], np.eye(2)])
    table = found.ranges("age", "pay", by=["sex"], between={"pay": [(0, 10), (0, 20)]})
    assert table.stddev.shape == table.counts.shape == (22, 2, 2)
    np.testing.assert_allclose(table.stddev.ravel(), gls_stddevs(mechanism, found, crossed), rtol=1e-9)
    over: Any = reduce(np.kron, [ranges, np.ones((1, 3)), np.eye(2)])
    np.testing.assert_allclose(
        found.ranges("age", by=["sex"]).stddev.ravel(), gls_stddevs(mechanism, found, over), rtol=1e-9
    )
    cells: Any = np.kron(np.eye(7), np.ones((1, 6)))
    np.testing.assert_allclose(
        found.marginal("age").stddev.ravel(), gls_stddevs(mechanism, found, cells), rtol=1e-9
    )
    # What the plan promises of a table is the root of the mean variance of what is asked of it.
    full: Any = reduce(np.kron, [ranges, prefixes, np.eye(2)])
    promised = np.sqrt(np.mean(gls_stddevs(mechanism, found, full) ** 2))
    assert mechanism.stddev("age", "pay", "sex") == pytest.approx(promised, rel=1e-9)


def test_ranges_are_sums_of_the_cells_and_tables_agree() -> None:
    mechanism = ResidualMechanism(domain=DOMAIN, workload=WORKLOAD, scale=3)
    found = released(mechanism, 2)
    cells = found.marginal("age", "sex").counts
    table = found.ranges("age", by=["sex"], between={"age": [(0, 2), (5, 5), (0, 5)]})
    assert table.labels == (("0 to 2", "5", "0 to 5"), ("f", "m"))
    np.testing.assert_allclose(table.counts, [cells[:3].sum(0), cells[5], cells[:6].sum(0)], atol=1e-6)
    prefixes = found.prefixes("pay")
    assert prefixes.labels == (("[0, 10)", "[0, 20)", "[0, 30]"),)
    np.testing.assert_allclose(prefixes.counts, np.cumsum(found.marginal("pay").counts), atol=1e-6)
    assert prefixes.counts[-1] == pytest.approx(found.total, abs=1e-6)
    assert found.prefixes("age").labels[0][-2:] == ("0 to 5", None)
    assert table.to_arrow().column_names == ["age", "sex", "count", "lower", "upper"]
    assert repr(found.prefixes("pay")).startswith("<RangeTable of pay, 3, stddev ")
    assert isinstance(found.marginal("sex"), MarginalTable)
    assert isinstance(found.marginal("sex").stddev, float)
    assert found.to_arrow()["stddev"].to_numpy().min() > 0


def test_counts_have_no_bias_and_intervals_hold() -> None:
    mechanism = ResidualMechanism(domain=DOMAIN, workload=WORKLOAD, scale=2)
    rows = CountedRows(codes(), DOMAIN.sizes)
    exact = np.stack([
        [sum(rows.counts((0, 2))[first : last + 1, sex]) for sex in (0, 1)]
        for first in range(6) for last in range(first, 6)
    ])  # fmt: skip
    rng, runs, inside, together, off = np.random.default_rng(5), 150, 0, 0, []
    for _ in range(runs):
        table = mechanism.release(rows, rng).ranges("age", by=["sex"])
        lower, upper, _ = table.interval(0.95)
        inside += int(((lower[:-1] <= exact) & (exact <= upper[:-1])).sum())
        lower, upper, _ = table.interval(0.9, simultaneous=True)
        together += bool(((lower[:-1] <= exact) & (exact <= upper[:-1])).all())
        off.append(table.counts[:-1] - exact)
    assert np.abs(np.mean(off, axis=0) / table.stddev[:-1]).max() < 6.5 / np.sqrt(runs)  # 1e-9 for 42 answers
    assert np.std(off, axis=0) == pytest.approx(table.stddev[:-1], rel=0.4)
    assert 0.93 <= inside / (exact.size * runs) <= 0.97
    assert together >= 0.85 * runs


@cases("two", [False, True])
def test_no_row_moves_what_is_measured_by_more_than_is_charged(two: bool) -> None:
    """Every row, and every pair of rows, of each residual: the exact shift against the price."""
    relation = Neighboring.REPLACE_ONE if two else Neighboring.ADD_REMOVE
    mechanism = ResidualMechanism(domain=DOMAIN, workload=WORKLOAD, scale=3, neighboring=relation)
    losses = mechanism.privacy_loss
    found = released(mechanism, 1)
    leaves = [leaf for leaf in losses.losses if isinstance(leaf, DiscreteGaussianVector)]  # type: ignore[attr-defined]
    strategies = {
        place: found.strategies.get(place, CellStrategy(size)) for place, size in enumerate(DOMAIN.sizes)
    }
    assert isinstance(strategies[0], RangeStrategy)
    assert len(leaves) == len(mechanism.residuals) == 8
    by_noise = {Fraction(leaf.stddev): leaf for leaf in leaves}
    for part in mechanism.residuals:
        leaf = by_noise[Fraction(found.distributions[part].sigma)]
        moved = []
        for cell in product(*(range(DOMAIN.sizes[place]) for place in part)):
            table: Any = np.zeros([DOMAIN.sizes[place] for place in part], np.int64)
            table[cell] = 1
            for axis, place in enumerate(part):
                table = strategies[place].measured(table, axis)
            moved.append(np.ravel(table))
        rows = np.array(moved)
        worst = int((rows**2).sum(axis=1).max())
        if two and part:
            gram = rows @ rows.T
            worst = max(worst, int((gram.diagonal()[:, None] + gram.diagonal() - 2 * gram).max()))
            assert worst <= leaf.l2_squared <= 1.5 * worst
        else:
            assert worst == leaf.l2_squared


@cases(("bins", "missing"), [(74, False), (2, False), (9, True), (32, True)])
def test_the_error_is_near_the_least_possible_and_below_that_of_cells(bins: int, missing: bool) -> None:
    attribute = Ordered(0, 1, bins=bins, missing=missing)
    domain = TableDomain(age=attribute, sex=["f", "m"])
    for queries, workload in (
        (OrderedQueries.PREFIXES, Marginals.prefixes("age", by=["sex"])),
        (OrderedQueries.RANGES, Marginals.ranges("age", by=["sex"])),
    ):
        matrix = asked(queries, attribute)
        gram = queries.gram(attribute)
        np.testing.assert_allclose(gram, matrix.T @ matrix * attribute.size / len(matrix), rtol=1e-12)
        assert queries.count(attribute) == len(matrix)
        error = ordered_plan(domain, workload, two=False)[0].squared_error
        least = 2 * optimal_strategy(matrix).bound * attribute.size / len(matrix)
        assert least * (1 - 1e-9) <= error <= least * 1.004
        assert error <= 1.1 * 2 * svd_bound(matrix) * attribute.size / len(matrix)
        alike = {0: AskedColumn(CellStrategy(attribute.size), gram)}
        cells = residual_plan([(0, 1)], [1.0], domain.sizes, two=False, ordered=alike).squared_error
        assert error <= cells * (1 + 1e-12)


def test_a_release_with_ranges_is_written_and_read() -> None:
    found = released(ResidualMechanism(domain=DOMAIN, workload=WORKLOAD, scale=3), 6)
    text = found.to_json()
    again = MarginalsRelease.from_json(text)
    assert again.to_json() == text
    for one, other in zip(
        (found.ranges("age", by=["sex"]), found.prefixes("pay")),
        (again.ranges("age", by=["sex"]), again.prefixes("pay")),
        strict=True,
    ):
        np.testing.assert_allclose(one.counts, other.counts, rtol=1e-12)
        np.testing.assert_allclose(one.stddev, other.stddev, rtol=1e-12)
    document = json.loads(text)
    assert document["version"] == 2
    for column, rule in ((2, "strategies of columns"), (9, "strategies of columns")):
        strategies = [{**document["strategies"][0], "column": column}]
        with pytest.raises(ParameterError, match=rule):
            MarginalsRelease.from_json(json.dumps({**document, "strategies": strategies}))
    plain = ResidualMechanism(domain=DOMAIN, workload=Marginals.every(1), scale=3)
    assert json.loads(released(plain, 1).to_json())["version"] == 1


def test_strategies_that_say_too_little_are_refused() -> None:
    for matrix in ([[1, 1, -2], [2, 2, -4]], [[1, -1, 0]], [[1, -1, 0], [1 << 21, 0, 0]], [[1]]):
        with pytest.raises(ParameterError, match="matrix must determine sums of cells but for their number"):
            RangeStrategy(np.array(matrix, np.int64))
    # Of a matrix whose rows do not add up to 0 the base is another one than the mean.
    strategy = RangeStrategy(np.array([[2, 1, 0], [0, 1, 3]], np.int64))
    assert np.abs(strategy.matrix @ strategy.base).max() < 1e-12
    assert strategy.base.sum() == pytest.approx(1)
    counts: Any = np.array([5, 0, 7])
    measured = strategy.measured(counts, 0)
    np.testing.assert_allclose(
        strategy.estimated(measured / strategy.unit, 0), counts - counts.sum() * strategy.base, atol=1e-9
    )


def test_the_price_of_products_is_the_worst_pair() -> None:
    ordered = ordered_strategy(Ordered.integers(0, 3), OrderedQueries.RANGES)
    pairs: list[list[ColumnStrategy]] = [[ordered], [ordered, CellStrategy(2)], [ordered, ordered]]
    for strategies in pairs:
        gram: Any = np.ones((1, 1))
        for each in strategies:
            matrix = each.matrix if isinstance(each, RangeStrategy) else np.array([[1, -1], [-1, 1]])
            gram = np.kron(gram, matrix.T @ matrix)
        worst = int((gram.diagonal()[:, None] + gram.diagonal() - 2 * gram).max())
        assert worst <= squared_shift(strategies, two=True) <= 1.3 * worst
        assert squared_shift(strategies, two=False) == gram.diagonal().max()


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(ParameterError, match="column 'sex' must be ordered for prefixes and ranges"):
        Marginals.ranges("sex").cliques(DOMAIN)
    wide = TableDomain(age=Ordered.integers(0, 1024))
    with pytest.raises(ParameterError, match="column 'age' must have at most 1024 cells"):
        Marginals.prefixes("age").cliques(wide)
    with pytest.raises(ParameterError, match="must be in a table of the workload, got 'pay'"):
        Marginals([("age",)]).with_ranges("pay").cliques(DOMAIN)
    with pytest.raises(ParameterError, match="column must be one of"):
        Marginals([("age",)]).with_ranges("none").cliques(DOMAIN)
    odd: Any = (3,)
    for wrong in ((), odd):
        with pytest.raises(ParameterError, match="columns must be names of ordered columns"):
            Marginals.every(1).with_ranges(*wrong)
    many = TableDomain({f"c{i}": Ordered.integers(0, 3) for i in range(8)})
    with pytest.raises(ParameterError, match="workload must ask fewer columns of one table by prefixes"):
        ResidualMechanism(domain=many, workload=Marginals.every(8).with_ranges(*many), scale=1)
    rows = pa.table({"age": [1], "pay": [2.0], "sex": ["f"]})
    with pytest.raises(ParameterError, match="workload must ask for cells, whose distance this is"):
        WorkloadError(domain=DOMAIN, synthetic=rows, workload=Marginals.ranges("age"))
    found = released(ResidualMechanism(domain=DOMAIN, workload=WORKLOAD, scale=3), 6)
    asks: list[tuple[str, Mapping[str, Any]]] = [
        ("between of 'age' must be the first and last numbers", {"age": [(0, 6)]}),
        ("between of 'age' must be the first and last numbers", {"age": [(3, 2)]}),
        ("between of 'age' must be the first and last numbers", {"age": [(0.5, 2)]}),
        ("between of 'age' must be the first and last numbers", {"age": [(True, 2)]}),
        ("between of 'age' must be the first and last numbers", {"age": [(dt.date(1970, 1, 2), 2)]}),
        ("between of 'age' must be a list of pairs", {"age": 3}),
        ("between of 'age' must be a list of pairs", {"age": [3]}),
        ("between of 'age' must be a list of pairs", {"age": []}),
        ("between must be of columns among", {"pay": [(0, 10)]}),
    ]
    for message, between in asks:
        with pytest.raises(ParameterError, match=message):
            found.ranges("age", between=between)
    for columns in ((), ("sex",), ("age", "age")):
        with pytest.raises(ParameterError, match="must be"):
            found.ranges(*columns)


def test_dates_and_fractions_are_found_at_the_edges() -> None:
    days = [dt.date(2020, 1, 1), dt.date(2021, 1, 1), dt.date(2022, 1, 1), dt.date(2023, 1, 1)]
    domain = TableDomain(born=Ordered(edges=days), part=Ordered(0, 1, bins=10))
    mechanism = ResidualMechanism(
        domain=domain, workload=Marginals.every(1).with_ranges("born", "part"), scale=1
    )
    rows = pa.table({"born": pa.array([days[0], days[1]]), "part": [0.05, 0.65]})
    found = mechanism.release(rows, rng=1)
    table = found.ranges("born", between={"born": [(days[1], days[3])]})
    assert table.labels == (("[2021-01-01, 2023-01-01]",),)
    assert found.ranges("part", between={"part": [(0.3, 0.7)]}).labels == (("[0.3, 0.7)",),)


def test_workloads_say_what_they_ask() -> None:
    assert repr(Marginals.up_to(2).with_ranges("a").with_prefixes("b", "a")) == (
        "Marginals.up_to(2).with_prefixes('a', 'b')"
    )
    assert WORKLOAD.described() == {"age": "ranges", "pay": "prefixes"}
    assert Marginals.every(2, target="sex").with_ranges("age").cliques(DOMAIN) == ((0, 2), (1, 2))
    assert Marginals.ranges("age") != Marginals.prefixes("age")


def test_aim_weighs_tables_by_what_is_asked_of_them() -> None:
    plain = AIM(domain=DOMAIN, rho=1, workload=Marginals.every(2))
    ranged = AIM(domain=DOMAIN, rho=1, workload=Marginals.every(2).with_prefixes("pay"))
    assert len(set(plain._candidates().values())) == 1
    weights = ranged._candidates()
    # An error of variance 1 in each of three cells is one of 1, 2 and 3 in the prefixes: twice as large.
    assert weights[0, 1] == weights[1, 2] == 256
    assert weights[0, 2] == round(256 / 2**0.5)
