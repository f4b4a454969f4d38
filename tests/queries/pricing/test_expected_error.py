"""The error and the cost that are told of each aggregate, held against what is seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
from sfumato.queries.pricing.expected_error import cost_alone, expected_error, loss_alone
from sfumato.queries.pricing.measures.measure_request import ExpectedError
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.chance import accepts_only, at_least
from tests.queries.noised import noised

_GROUPS, _UNITS = 1500, 100
_BOUNDS = "contribution_bounds_per_{} => (-4, 12)"
_SHOWN = "group_selection_strategy=PUBLIC_GROUPS"
_SCHEMA = Schema(
    (
        Column("id", ColumnType.INTEGER),
        Column("g", ColumnType.INTEGER),
        Column("x", ColumnType.FLOAT),
        Column("y", ColumnType.FLOAT),
    )
)

_CALLS = {
    "n": "COUNT(*)",
    "s": f"SUM(x, {_BOUNDS.format('group')})",
    "a": f"AVG(x, {_BOUNDS.format('group')})",
    "v": f"VAR_POP(x, {_BOUNDS.format('row')})",
    "c": "COVAR_POP(x, y, contribution_bounds_per_row => ((-4, 12), (-4, 12)))",
    "m": f"MEDIAN(x, {_BOUNDS.format('row')})",
    "t": f"PERCENTILE_CONT(x, 0.9, {_BOUNDS.format('row')})",
}


def _text(names: str, delta: str, options: str = "") -> str:
    columns = ", ".join(f"{_CALLS[name]} AS {name}" for name in names)
    return (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=8, delta={delta}, max_groups_contributed=1, "
        f"max_rows_per_group=1{options}) g, {columns} FROM data GROUP BY g"
    )


def _priced(names: str, delta: str, options: str = "", groups: Any = None) -> PricedQuery:
    catalog = Catalog({"data": Scan("data", _SCHEMA, "id")})
    return price(read(_text(names, delta, options), catalog, public_groups=groups))


def _told(names: str, delta: str) -> dict[str, ExpectedError]:
    priced = _priced(names, delta, f", {_SHOWN}", groups={"g": [0]})
    found = {estimator.name: expected_error(priced, estimator) for estimator in priced.estimators}
    return {name: error for name, error in found.items() if error is not None}


@cache
def _data(shape: str) -> pa.Table:
    rng = np.random.default_rng(8)
    many = _GROUPS * _UNITS
    columns: dict[str, Any] = {"id": np.arange(many), "g": np.arange(many) // _UNITS}
    for name in "xy":
        wide = rng.uniform(-4.0, 12.0, many)
        columns[name] = {"end": np.full(many, 12.0), "middle": rng.choice([3.0, 5.0], many), "wide": wide}[
            shape
        ]
    return pa.table(columns)


@cache
def _seen(names: str, shape: str, delta: str) -> Any:
    with sf.connect(_data(shape), privacy_unit="id", epsilon=100, delta=1e-3, rng=21) as session:
        groups = {"g": list(range(_GROUPS))}
        release = session.sql(_text(names, delta, f", {_SHOWN}"), public_groups=groups)
    table = release.to_arrow(
        intervals=names == "ns"
    )  # intervals of spreads take seconds, and none looks at them
    assert table["g"].to_pylist() == groups["g"]
    return {name: table[name].to_numpy() for name in table.column_names}


def _ratios(names: str, shape: str, delta: str) -> Iterator[tuple[str, float]]:
    x, y = (_data(shape)[name].to_numpy().reshape(_GROUPS, _UNITS) for name in "xy")
    answer, told = _seen(names, shape, delta), _told(names, delta)
    truth: dict[str, Any] = {"n": _UNITS, "s": x.sum(axis=1), "a": x.mean(axis=1), "v": x.var(axis=1)}
    truth["c"] = (x * y).mean(axis=1) - x.mean(axis=1) * y.mean(axis=1)
    for name in names:
        error = answer[name] - truth[name]
        expected = told[name].stddev / (_UNITS if told[name].over else 1)
        yield name, float(np.sqrt((error**2).mean())) / expected


def ratio_of(found: float, off: float) -> Callable[[float], None]:
    """A check of the root of a second moment of errors, over what was expected."""

    def check(ratio: float) -> None:
        assert abs(found - ratio) < off

    return check


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_counts_and_sums_are_off_by_what_is_told(delta: str) -> None:
    """The second moment of 1500 errors: six of its standard deviations are 0.17 (0.35 for Laplace's)."""
    for _, ratio in _ratios("ns", "wide", delta):
        accepts_only(ratio_of(ratio, 0.2), 1.0, two_thirds_are_told=3 / 2, half_more_is_told=2 / 3)
    answer, told = _seen("ns", "wide", delta), _told("ns", delta)
    x = _data("wide")["x"].to_numpy().reshape(_GROUPS, _UNITS)
    for name, truth in (("n", _UNITS), ("s", x.sum(axis=1))):
        width = told[name].half_width
        assert width is not None
        near = int((abs(answer[name] - truth) <= width + 1e-9).sum())
        accepts_only(at_least(near, _GROUPS), 0.95, always=0.9999)
        assert ((answer[f"{name}_upper"] - answer[f"{name}_lower"]) / 2 <= width * (1 + 1e-9)).all()


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_means_are_off_by_what_is_told_at_the_ends_and_by_less_within(delta: str) -> None:
    ((_, at_end),) = _ratios("a", "end", delta)
    ((_, within),) = _ratios("a", "middle", delta)
    # the answer is clamped to its bounds, so at the end half of the errors are cut off: a root of 1 / 2
    accepts_only(ratio_of(at_end, 0.15), math.sqrt(0.5), not_clamped=1.0, half=0.5)
    # in the middle the noise of the number moves nothing
    priced = _priced("a", delta, f", {_SHOWN}", groups={"g": [0]})
    sums = float(noised(priced.mechanisms[0]).stddev) * 2.0 ** priced.measures[0].exponent
    of_sums = sums / _told("a", delta)["a"].stddev
    accepts_only(ratio_of(within, 0.15), of_sums, twice=2 * of_sums, half=of_sums / 2)
    assert within < 0.9


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("shape", ["middle", "wide"])
def test_spreads_are_off_by_no_more_than_is_told(shape: str, delta: str) -> None:
    for _, ratio in _ratios("vc", shape, delta):
        assert 0.05 < ratio < 1.1


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_quantiles_are_off_by_no_more_ranks_than_are_told(delta: str) -> None:
    answer, told = _seen("mt", "wide", delta), _told("mt", delta)
    values = _data("wide")["x"].to_numpy().reshape(_GROUPS, _UNITS)
    for name, order in (("m", 0.5), ("t", 0.9)):
        assert told[name].unit == "ranks"
        ranks = (values < answer[name][:, None]).sum(axis=1) - order * _UNITS
        spread = float(np.sqrt((ranks.astype(np.float64) ** 2).mean()))
        typical = told[name].typical
        assert typical is not None
        assert spread < told[name].stddev
        assert 0.8 * typical < math.sqrt(max(0.0, spread**2 - 1 / 12)) < 1.25 * typical  # whole ranks


def test_what_is_not_a_function_of_a_count_is_not_told() -> None:
    catalog = Catalog({"data": Scan("data", _SCHEMA, "id")})
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=8, delta=0)"
    priced = price(read(f"{clause} CORR(x, y) AS r, STDDEV(x) AS d FROM data", catalog))
    assert [expected_error(priced, estimator) for estimator in priced.estimators] == [None, None]


def test_found_bounds_are_the_unit_of_what_is_told_before_and_none_after() -> None:
    table = pa.table({"id": range(3000), "x": [5.0] * 3000})
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, delta=0) SUM(x) AS s, AVG(x) AS a FROM data"
    with sf.connect(table, privacy_unit="id", epsilon=9, delta=1e-3, rng=2) as session:
        before = session.explain(text).split("\n")
        release = session.sql(text)
    after = release.explain().split("\n")
    (unit,) = (line.split()[4] for line in before if "times the larger bound" in line)
    (known,) = (line.split()[4] for line in after if "in 95 % of answers" in line)
    assert float(known) == pytest.approx(8 * float(unit), rel=1e-3)  # 5 is within (4, 8)
    assert any("times half the distance of the bounds / n" in line for line in before)
    assert not any("times" in line for line in after if line.startswith("  expected"))
    (side,) = (line for line in after if line.startswith("In this answer: the 95 % interval of s"))
    assert float(side.split()[10]) == pytest.approx(float(known), rel=1e-3)


def test_the_cost_alone_is_of_what_an_aggregate_is_read_off() -> None:
    options = ", group_selection_strategy=LAPLACE_THRESHOLD, group_selection_epsilon=2"
    priced = _priced("nsa", "1e-8", options)
    costs = {
        estimator.name: cost_alone(priced, loss_alone(priced, estimator)) for estimator in priced.estimators
    }
    # the choice of groups has 2, and with it goes a quarter of the rest; each other measure has a quarter
    assert costs["n"] == pytest.approx(2 + 1.5, rel=1e-3)
    assert costs["s"] == pytest.approx(1.5, rel=1e-3)
    assert costs["a"] == pytest.approx(3.0, rel=1e-3)
    assert cost_alone(priced, priced.loss) <= 8


def test_explain_tells_cost_and_error_of_each_aggregate_without_spending() -> None:
    table = pa.table({"id": range(50), "g": [1] * 50, "x": [1.0] * 50, "y": [1.0] * 50})
    with sf.connect(table, privacy_unit="id", epsilon=9, delta=1e-3, rng=2) as session:
        said = session.explain(_text("nsavcm", "1e-8"))
        assert session.ledger.entries() == ()
    lines = said.split("\n")
    for name in "nsavcm":
        (at,) = (place for place, line in enumerate(lines) if line.startswith(f"{name}: "))
        assert lines[at + 1].startswith("  cost: epsilon ")
        assert lines[at + 2].startswith("  expected error: ")
    assert "/ n in a group of n units" in said
    assert "by ranks; standard deviation about" in said
    assert "Together: epsilon " in said


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_explain_shows_the_certified_epsilon_and_what_the_filter_is_charged(delta: float) -> None:
    table = pa.table({"id": range(50), "x": [1.0] * 50})
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = {delta}, max_groups_contributed = 1) "
        "COUNT(*) AS n, SUM(x, contribution_bounds_per_group => (0, 2)) AS s FROM data"
    )
    with sf.connect(table, privacy_unit="id", epsilon=9, delta=1e-3 if delta else 0.0, rng=2) as session:
        lines = session.explain(text).split("\n")
        before = session.ledger.entries()
        (certified,) = (line for line in lines if line.startswith("Accountant: epsilon "))
        (charged,) = (line for line in lines if line.startswith("Charged to the budget: "))
        assert session.ledger.entries() == before == ()
        epsilon = float(certified.split()[2])
        assert 0.5 < epsilon <= 1.0 + 1e-9
        unit, amount = charged.removeprefix("Charged to the budget: ").split(",")[0].split()
        assert unit == ("rho" if delta else "epsilon")
        session.sql(text)
        (entry,) = session.ledger.entries()
        total = entry.loss
        spent = total.zcdp().rho if delta else total.pure().epsilon
        assert spent <= float(amount) <= spent * 1.001
        assert epsilon >= total.epsilon(delta)
