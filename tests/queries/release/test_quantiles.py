"""Quantiles through SQL: a brute force, shared trees, odd data, replay, intervals, neighbors, errors."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sfumato.errors import OptionError, QueryError, SchemaError, UnsupportedSql
from sfumato.frames.sources import open_source
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism, BinnedQuantiles
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Column, ColumnType, Query, Scan, Schema
from sfumato.queries.pricing.calibration import NoiseDistribution
from sfumato.queries.pricing.measures.bins import CountBins
from sfumato.queries.pricing.measures.counts import CountUnits
from sfumato.queries.pricing.price import PricedQuery, loss_at, price
from sfumato.queries.pricing.quantile_bins import chosen_by_rank, interval_chosen_by_rank
from sfumato.queries.release.noise import noisy_quantiles
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from sfumato.session.connection import connect
from sfumato.session.units import ROW
from tests.cases import cases
from tests.chance import accepts_only, at_least
from tests.queries.canonical_sql import canonical_text
from tests.queries.one_order import rank_by_sql

_SCHEMA = Schema(
    (
        Column("id", ColumnType.INTEGER),
        Column("g", ColumnType.TEXT),
        Column("x", ColumnType.FLOAT),
        Column("i", ColumnType.INTEGER),
    )
)
_ROW = "contribution_bounds_per_row => "


def _query(select: str, options: str = "max_groups_contributed=2", *, unit: str | None = "id") -> Query:
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, {options}) {select}"
    return read(text, Catalog({"data": Scan("data", _SCHEMA, unit)}))


def _priced(aggregates: str, options: str = "max_groups_contributed=2", **given: Any) -> PricedQuery:
    return price(_query(f"g, {aggregates} FROM data GROUP BY g", options, **given))


def _people(rows: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": rng.integers(0, rows // 3, rows),
            "g": pa.array([("a", "b", None)[place] for place in rng.integers(0, 3, rows)]),
            "x": rng.normal(20, 30, rows),
            "i": rng.integers(-50, 150, rows),
        }
    )


def _ask(table: pa.Table, select: str, options: str, *, unit: Any = "id", **given: Any) -> TableRelease:
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {select}"
    public = given.pop("public_groups", None)
    with connect(table, privacy_unit=unit, epsilon=1e7, delta=0.5, rng=7, **given) as session:
        return session.sql(text, public_groups=public)


_HUGE = "epsilon=3000000, delta=1e-6, group_selection_strategy=LAPLACE_THRESHOLD"
_ORDERS = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)


def _around(values: list[float], order: float) -> tuple[float, float]:
    """The two values between which the quantile is interpolated."""
    place = order * (len(values) - 1)
    ordered = sorted(values)
    return ordered[math.floor(place)], ordered[math.ceil(place)]


@pytest.mark.parametrize("column", ["x", "i"])
@pytest.mark.parametrize("by_row", [False, True])
def test_without_noise_it_is_the_quantile_of_the_clamped_rows(column: str, by_row: bool) -> None:
    table = _people(600)
    calls = [f"PERCENTILE_CONT({column}, {p}, {_ROW}(-20, 100)) AS p{n}" for n, p in enumerate(_ORDERS)]
    calls += [f"MEDIAN({column}, {_ROW}(-20, 100)) AS m", f"MIN({column}, {_ROW}(-20, 100)) AS least"]
    calls += [f"MAX({column}, {_ROW}(-20, 100)) AS most"]
    calls += [f"APPROX_QUANTILES({column}, 10, {_ROW}(-20, 100)) AS q"]
    bounds = "" if by_row else ", max_groups_contributed=3, max_rows_per_group=100"
    release = _ask(
        table, f"g, {', '.join(calls)} FROM data GROUP BY g", _HUGE + bounds, unit=ROW if by_row else "id"
    )
    groups: dict[Any, list[float]] = defaultdict(list)
    for row in table.to_pylist():
        groups[row["g"]].append(min(max(float(row[column]), -20.0), 100.0))
    width = 2.0**-9 if column == "x" else 0.0
    found = release.to_arrow(intervals=True).to_pylist()
    assert {row["g"] for row in found} == set(groups)
    for row in found:
        named = [*((p, row[f"p{n}"]) for n, p in enumerate(_ORDERS)), (0.5, row["m"])]
        named += [(0.005, row["least"]), (0.995, row["most"])]
        named += list(zip([0.005, *(k / 10 for k in range(1, 10)), 0.995], row["q"], strict=True))
        for order, value in named:
            low, high = _around(groups[row["g"]], order)
            assert low - width <= value <= high + width, (order, value)
            assert isinstance(value, float)
        for n in range(len(_ORDERS)):
            low, high = _around(groups[row["g"]], _ORDERS[n])
            assert row[f"p{n}_lower"] - width <= low <= high <= row[f"p{n}_upper"] + width
        assert row["q"] == sorted(row["q"])
        assert len(row["q"]) == len(row["q_lower"]) == len(row["q_upper"]) == 11


def test_units_keep_so_many_rows_and_groups() -> None:
    """One unit has nearly all rows: its five count, against the one of each of twenty others."""
    table = pa.table({"id": [0] * 500 + list(range(1, 21)), "x": [90.0] * 500 + [10.0] * 20})
    for options, expected in (
        (", max_rows_per_group=500", 90.0),
        (", max_rows_per_group=3", 10.0),
        ("", 10.0),
    ):
        release = _ask(table, f"MEDIAN(x, {_ROW}(0, 100)) AS m FROM data", _HUGE + options)
        assert release.to_arrow()["m"].to_pylist() == [pytest.approx(expected, abs=2**-9)]
    above = _ask(table, f"PERCENTILE_CONT(x, 0.85, {_ROW}(0, 100)) AS m FROM data", _HUGE)
    assert above.to_arrow()["m"].to_pylist() == [pytest.approx(90.0, abs=2**-9)]  # 5 of 25 rows
    assert "at most 5 rows in a group" in above.explain()


def test_all_quantiles_of_one_expression_and_bounds_share_one_measure() -> None:
    row = f"{_ROW}(0, 100)"
    one = _priced(f"MEDIAN(x, {row})")
    many = _priced(
        f"MEDIAN(x, {row}), PERCENTILE_CONT(x, 0.9, {row}), MIN(x, {row}), MAX(x, {row}), "
        f"APPROX_QUANTILES(x, 20, {row})"
    )
    assert many.measures == one.measures
    assert [type(request) for request in many.requests] == [CountUnits, CountBins]
    chosen = many.mechanisms[1]
    assert isinstance(chosen, BinnedQuantiles)
    assert len(chosen.quantiles) == 21
    assert many.loss.quick_epsilon(1e-6) == pytest.approx(one.loss.quick_epsilon(1e-6), rel=0.01)
    assert many.measures[1].sensitivity == 5
    for other in ("MEDIAN(x, contribution_bounds_per_row => (0, 99))", f"MEDIAN(x + 1, {row})"):
        assert len(_priced(f"MEDIAN(x, {row}), {other}").measures) == 3


def _noise(priced: PricedQuery) -> float:
    mechanism = priced.mechanisms[1]
    assert not isinstance(mechanism, BinMechanism)
    return float(mechanism.stddev)


def _choices(priced: PricedQuery) -> BinnedQuantiles:
    mechanism = priced.mechanisms[1]
    assert isinstance(mechanism, BinnedQuantiles)
    return mechanism


def test_a_tree_costs_an_entry_for_each_level() -> None:
    # 65,536 bins in 4 levels, 2 groups: 8 entries that 5 rows move; the count has the other half
    options = "max_groups_contributed=2, group_selection_strategy=LAPLACE_THRESHOLD"
    priced = _priced(f"APPROX_QUANTILES(x, 40, {_ROW}(0, 100))", options)
    assert _noise(priced) == pytest.approx(2**0.5 * 5 * 8 / 0.5, rel=1e-3)
    assert priced.loss.quick_epsilon(1e-6) <= 1.0
    ages = _priced(f"APPROX_QUANTILES(i, 10, {_ROW}(0, 120))", options)  # 121 bins in 2 levels
    assert _noise(ages) == pytest.approx(2**0.5 * 5 * 4 / 0.5, rel=1e-3)
    stated = _priced(f"APPROX_QUANTILES(i, 10, {_ROW}(0, 120), epsilon => 0.9)", options)
    assert _noise(stated) == pytest.approx(2**0.5 * 5 * 4 / 0.9, rel=1e-3)
    rows = _priced(f"APPROX_QUANTILES(i, 10, {_ROW}(0, 120))", options, unit=None)
    assert rows.measures[1].sensitivity == 1
    many = _priced(f"APPROX_QUANTILES(i, 99, {_ROW}(0, 120))", "max_groups_contributed=40")
    assert many.distribution is NoiseDistribution.GAUSSIAN
    assert many.loss.quick_epsilon(1e-6) <= 1.0


def test_a_choice_costs_its_range_on_each_level_and_in_each_group() -> None:
    options = "max_groups_contributed=2, group_selection_strategy=LAPLACE_THRESHOLD"
    one = _priced(f"MEDIAN(x, {_ROW}(0, 100))", options)
    assert float(_choices(one).epsilon) == pytest.approx(0.5 / 2, rel=1e-6)
    assert (_choices(one).rows, _choices(one).groups) == (5, 2)
    quartiles = _priced(f"APPROX_QUANTILES(x, 4, {_ROW}(0, 100))", options)
    assert float(_choices(quartiles).epsilon) == pytest.approx(0.5 / (2 * 3), rel=1e-6)
    stated = _priced(f"MEDIAN(i, {_ROW}(0, 120), epsilon => 0.9)", options)
    assert float(_choices(stated).epsilon) == pytest.approx(0.9 / 2, rel=1e-6)
    rows = _priced(f"MEDIAN(i, {_ROW}(0, 120))", options, unit=None)
    assert (_choices(rows).rows, _choices(rows).groups) == (1, 1)
    # of few bins noisy counts tell more, but for a median of more than 8
    assert _choices(_priced(f"MEDIAN(i, {_ROW}(0, 15))", options)).rows == 5
    for few in (
        "MEDIAN(i, {}(0, 7))",
        "PERCENTILE_CONT(i, 0.9, {}(0, 15))",
        "APPROX_QUANTILES(i, 2, {}(0, 15))",
    ):
        assert _noise(_priced(few.format(_ROW), options)) == pytest.approx(2**0.5 * 5 * 2 / 0.5, rel=1e-3)
    for priced in (one, quartiles, stated, rows):
        assert priced.loss.quick_epsilon(1e-6) <= 1.0


def test_beside_gaussian_noise_choices_are_as_wide_as_the_whole_loss_allows() -> None:
    many = _priced(f"MEDIAN(i, {_ROW}(0, 120))", "max_groups_contributed=40")
    assert many.distribution is NoiseDistribution.GAUSSIAN
    assert 0.99 < many.loss.quick_epsilon(1e-6) <= 1.0
    # a choice of this range has the zCDP of Gaussian noise of the count's multiplier, 40 groups each
    count = many.mechanisms[0]
    assert isinstance(count, Gaussian)
    multiplier = float(count.stddev) / math.sqrt(40)
    assert float(_choices(many).epsilon) == pytest.approx(2 / (multiplier * math.sqrt(40)), rel=1e-4)
    alone = _priced(
        f"MEDIAN(i, {_ROW}(0, 120))", "max_groups_contributed=40, group_selection_strategy=LAPLACE_THRESHOLD"
    )
    assert float(_choices(alone).epsilon) < 0.6 * float(_choices(many).epsilon)


def test_rows_over_all_groups_move_each_level_by_their_number() -> None:
    def limited(call: str) -> PricedQuery:
        query = _query(f"g, {call} FROM data GROUP BY g")
        options = replace(
            query.options, max_rows_contributed=6, max_groups_contributed=None, max_rows_per_group=None
        )
        return price(replace(query, options=options))

    priced = limited(f"APPROX_QUANTILES(i, 99, {_ROW}(0, 120))")
    assert (priced.measures[1].sensitivity, priced.measures[1].l1) == (6, 12)  # 2 levels
    assert priced.loss.quick_epsilon(1e-6) <= 1.0
    assert _noise(priced) < 2**0.5 * 6 * 6 * 2  # not 6 rows in each of 6 groups
    one = limited(f"MEDIAN(i, {_ROW}(0, 120))")
    assert (_choices(one).rows, _choices(one).groups) == (6, 1)
    assert one.loss.quick_epsilon(1e-6) <= 1.0


@pytest.mark.parametrize("parts", [4, 40])
def test_the_same_bytes_again_without_any_count(parts: int) -> None:
    table = _people(3000)
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, delta=1e-6, max_groups_contributed=1) g, "
        f"MEDIAN(x, {_ROW}(-100, 100)) AS m, APPROX_QUANTILES(x, {parts}, {_ROW}(-100, 100)) AS q "
        "FROM data GROUP BY g"
    )
    with connect(table, privacy_unit="id", epsilon=5, delta=1e-3, rng=3) as session:
        first, second = session.sql(text), session.sql(text)
    assert (first.replayed, second.replayed) == (False, True)
    payload = first.record.to_bytes()
    assert second.record.to_bytes() == payload
    again = ReleaseRecord.from_bytes(payload)
    assert again.to_bytes() == payload
    for level in (0.5, 0.9, 0.99, 0.999):
        tables = [r.to_arrow(intervals=True, level=level) for r in (first, second)]
        assert tables[0].equals(tables[1])
    # both are of the orders of one measure; nothing of the engine's counts is in the record
    ends = [] if parts == 4 else ["l1", "u1"]
    assert again.table.column_names == ["k0", "m0", "m1", *ends]
    assert again.table["m1"].type == pa.list_(pa.int64(), parts + 1)
    assert again.columns[0].quantile_indices == (parts // 2,)
    assert again.columns[1].quantile_indices == tuple(range(parts + 1))
    # beyond the levels of a tree, and of a choice always, the interval is the whole range
    wide = first.to_arrow(intervals=True, level=0.999 if ends else 0.5)
    assert set(wide["m_lower"].to_pylist()) == {-100.0}
    assert set(wide["m_upper"].to_pylist()) == {100.0}


@pytest.mark.parametrize("bounds", ["(0, 0)", "(7.25, 7.25)", "(-3, -3)"])
def test_equal_bounds_are_the_answer(bounds: str) -> None:
    release = _ask(_people(900), f"MEDIAN(x, {_ROW}{bounds}) AS m FROM data", "epsilon=1, delta=0")
    number = float(bounds.strip("()").split(",")[0])
    shown = release.to_arrow(intervals=True).to_pylist()[0]
    assert shown == {"m": number, "m_lower": number, "m_upper": number}


_ODD = [math.nan, math.inf, -math.inf, 1e308, None]


@pytest.mark.parametrize("count", [0, 1, 400])
def test_odd_and_empty_data_get_an_answer(count: int) -> None:
    table = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "g": pa.array(["a"] * count, pa.string()),
            "x": pa.array([_ODD[place % 5] for place in range(count)], pa.float64()),
        }
    )
    options = "epsilon=30, delta=0, max_groups_contributed=1, group_selection_strategy=PUBLIC_GROUPS"
    release = _ask(
        table,
        f"g, MEDIAN(x, {_ROW}(0, 100)) AS m, MAX(x, {_ROW}(0, 100)) AS most, "
        f"APPROX_QUANTILES(x, 2, {_ROW}(0, 100)) AS q FROM data GROUP BY g",
        options,
        public_groups={"g": ["a", "empty"]},
    )
    rows = release.to_arrow(intervals=True).to_pylist()
    assert [row["g"] for row in rows] == ["a", "empty"]
    for row in rows:
        for number in (row["m"], row["m_lower"], row["m_upper"], row["most"], *row["q"]):
            assert 0 <= number <= 100
    if count == 400:
        assert rows[0]["most"] == 100.0  # infinity and what is too large are at the bound
    nothing = _ask(table.slice(0, 0), f"MEDIAN(x, {_ROW}(0, 100)) AS m FROM data", "epsilon=1, delta=0")
    assert nothing.to_arrow().num_rows == 1


def test_only_groups_that_pass_the_threshold_are_shown() -> None:
    table = pa.table({"id": list(range(1001)), "g": ["big"] * 1000 + ["small"], "x": [1.0] * 1001})
    options = "epsilon=2, delta=1e-8, max_groups_contributed=1"
    release = _ask(table, f"g, MEDIAN(x, {_ROW}(0, 2)) AS m FROM data GROUP BY g", options)
    assert release.to_arrow()["g"].to_pylist() == ["big"]


def test_no_group_at_all_may_pass_the_threshold() -> None:
    table = pa.table({"id": [1, 2], "g": ["a", "b"], "x": [1.0, 2.0]})
    calls = f"MEDIAN(x, {_ROW}(0, 2)) AS m, APPROX_QUANTILES(x, 4, {_ROW}(0, 2)) AS q"
    options = "epsilon=1, delta=1e-8, max_groups_contributed=1"
    release = _ask(table, f"g, {calls} FROM data GROUP BY g HAVING m > 1 ORDER BY m", options)
    shown = release.to_arrow(intervals=True)
    assert shown.num_rows == 0
    assert shown.column_names == ["g", "m", "m_lower", "m_upper", "q", "q_lower", "q_upper"]
    assert str(ReleaseRecord.from_bytes(release.record.to_bytes()).table.schema) == str(
        release.record.table.schema
    )
    assert "g  m  q" in str(release)
    assert release.to_polars(intervals=True).shape == (0, 7)


def test_intervals_hold_the_quantile_of_the_bounded_rows() -> None:
    table = pa.table({"id": list(range(2000)), "x": [float(n % 1000) / 10 for n in range(2000)]})
    held, lowest, widths = 0, 0, []
    calls = ", ".join(f"APPROX_QUANTILES(x + {n}, 40, {_ROW}({n}, {n + 100})) AS m{n}" for n in range(20))
    release = _ask(table, f"{calls} FROM data", "epsilon=20, delta=0, max_rows_per_group=1")
    shown = release.to_arrow(intervals=True, level=0.8).to_pylist()[0]
    for n in range(20):
        lower, upper = shown[f"m{n}_lower"][20], shown[f"m{n}_upper"][20]
        held += lower <= n + 49.9 and n + 50.0 <= upper
        lowest += lower <= n + 49.9 and n + 50.0 <= lower + (upper - lower) / 10
        widths.append(upper - lower)
    accepts_only(lambda hits: at_least(hits, 20)(0.8), held, of_the_lowest_tenth=lowest)
    assert held >= 14
    assert np.mean(widths) < 20


def test_an_interval_that_is_paid_for_holds_the_quantile() -> None:
    table = pa.table({"id": list(range(2000)), "x": [float(n % 1000) / 10 for n in range(2000)]})
    row = f"{_ROW}(0, 100), interval_epsilon => 1"
    calls = f"MEDIAN(x, {row}) AS m, PERCENTILE_CONT(x, 0.9, {row}) AS t, MIN(x, {_ROW}(0, 100)) AS least"
    release = _ask(table, f"{calls} FROM data", "epsilon=4, delta=0, max_rows_per_group=1")
    (shown,) = release.to_arrow(intervals=True).to_pylist()
    for name, low, high in (("m", 49.9, 50.0), ("t", 89.9, 90.0)):
        assert shown[f"{name}_lower"] <= low <= high <= shown[f"{name}_upper"] + 2**-9
        # 2000 rows in 100: the depth aimed at is 5 or 8 ranks, after an answer that is off by a few
        assert 0.4 < shown[f"{name}_upper"] - shown[f"{name}_lower"] < 2.5
        assert shown[f"{name}_lower"] <= shown[name] <= shown[f"{name}_upper"]
    assert (shown["least_lower"], shown["least_upper"]) == (0.0, 100.0)
    (wide,) = release.to_arrow(intervals=True, level=0.96).to_pylist()
    assert (wide["m_lower"], wide["m_upper"]) == (0.0, 100.0)
    record = ReleaseRecord.from_bytes(release.record.to_bytes())
    assert [column.more for column in record.columns] == [(1,), (2,), ()]
    assert record.table["m1"].type == pa.list_(pa.int64(), 2)
    assert "It holds the quantile of the bounded rows in at least 95 % of answers" in release.explain()


def test_an_interval_costs_its_stated_part() -> None:
    bounds = f"{_ROW}(0, 100)"
    options = "max_groups_contributed=2, group_selection_strategy=LAPLACE_THRESHOLD"
    priced = _priced(f"MEDIAN(x, {bounds}, interval_epsilon => 0.4)", options)
    ends = priced.mechanisms[2]
    assert isinstance(ends, BinMechanism)
    assert ends.privacy_loss.epsilon() == pytest.approx(0.4, rel=1e-6)
    assert (ends.rows, ends.groups) == (5, 2)
    assert float(ends.epsilon) == pytest.approx(0.2, rel=1e-6)
    assert _choices(priced).privacy_loss.epsilon() == pytest.approx(0.3, rel=1e-6)
    assert priced.loss.quick_epsilon(1e-6) <= 1.0
    both = _priced(f"MEDIAN(x, {bounds}, epsilon => 0.5, interval_epsilon => 0.4)", options)
    assert _choices(both).privacy_loss.epsilon() == pytest.approx(0.5, rel=1e-6)
    smaller = loss_at(priced.query)(0.5)
    assert 0.49 < smaller.quick_epsilon(1e-6) <= 0.5
    with pytest.raises(OptionError, match="leave some of 1 for"):
        _priced(f"MEDIAN(x, {bounds}, interval_epsilon => 1)", options)
    with pytest.raises(OptionError, match="interval_epsilon must be positive"):
        _priced(f"MEDIAN(x, {bounds}, interval_epsilon => 0)", options)
    several = _priced(f"APPROX_QUANTILES(x, 4, {bounds}, interval_epsilon => 0.4)", options)
    tree = several.mechanisms[2]
    assert isinstance(tree, Laplace)
    assert (tree.sensitivity, tree.l0) == (5, 2 * 4)
    assert tree.privacy_loss.epsilon() == pytest.approx(0.4, rel=1e-6)
    assert several.loss.quick_epsilon(1e-6) <= 1.0


@cases(
    ("call", "orders", "chosen"),
    [
        ("APPROX_QUANTILES(x, 1", (0.005, 0.995), False),
        ("APPROX_QUANTILES(x, 10", (0.005, *(k / 10 for k in range(1, 10)), 0.995), False),
        ("MEDIAN(x", (0.5,), True),
        ("MIN(x", (0.005,), False),
    ],
)
def test_intervals_that_are_paid_for_hold_their_quantiles(
    call: str, orders: tuple[float, ...], *, chosen: bool
) -> None:
    """Of one near the median they are chosen, else read off a tree that has further levels."""
    table = pa.table({"id": list(range(4000)), "x": [float(n % 1000) / 10 for n in range(4000)]})
    bounds = f"{_ROW}(0, 100)"
    calls = f"{call}, {bounds}, interval_epsilon => 6) AS q, PERCENTILE_CONT(x, 0.75, {bounds}) AS t"
    release = _ask(table, f"{calls} FROM data", "epsilon=12, delta=0, max_rows_per_group=1")
    for level, narrow in ((0.5, True), (0.95, True), (0.99, not chosen), (0.995, False)):
        (shown,) = release.to_arrow(intervals=True, level=level).to_pylist()
        found = [shown[name] if len(orders) > 1 else [shown[name]] for name in ("q", "q_lower", "q_upper")]
        assert [len(each) for each in found] == [len(orders)] * 3
        for order, value, low, high in zip(orders, *found, strict=True):
            place = order * 3999
            assert low <= value <= high
            assert low <= math.floor(place) // 4 / 10 <= math.ceil(place) // 4 / 10 <= high + 2**-9
            assert (high - low < 12) == narrow
        assert (shown["t_lower"], shown["t_upper"]) == (0.0, 100.0)
    record = ReleaseRecord.from_bytes(release.record.to_bytes())
    assert [column.more for column in record.columns] == [(1,), ()]
    assert ("l1" in record.table.column_names) != chosen


def test_one_quantile_of_few_bins_is_chosen_near_the_median() -> None:
    # Beside Gaussian noise a choice of an extreme order errs up to 3.8 times a tree's error among 16 bins.
    orders = [0.005, 0.1, 0.45, 0.9, 0.995]
    found = [
        [chosen_by_rank(16, [order], gaussian=gaussian) for order in orders] for gaussian in (False, True)
    ]
    assert found == [[False, False, True, False, False], [False, True, True, True, False]]
    assert [chosen_by_rank(16, orders[:many], gaussian=True) for many in (2, 3, 4)] == [True, True, False]


def test_the_ends_of_an_interval_are_chosen_where_that_is_nearer() -> None:
    # Half widths in ranks over 20,000 even rows at epsilon 0.1, by choice and by tree, of the median: 57 and
    # 611 among 65,536 bins, 83 and 331 among 121, 1,875 and 1,250 among 16; of the order 0.9: 111 and 460,
    # 248 and 248 (among 121 a bin holds 165 rows).
    found = {
        (bins, gaussian): [
            interval_chosen_by_rank(bins, orders, gaussian=gaussian)
            for orders in ([0.5], [0.9], [0.005], [0.005, 0.995])
        ]
        for bins in (16, 121, 1 << 16)
        for gaussian in (False, True)
    }
    assert found == {
        (16, False): [False, False, False, False],
        (16, True): [False, False, False, False],
        (121, False): [True, True, False, False],
        (121, True): [True, True, False, False],
        (1 << 16, False): [True, True, False, False],
        (1 << 16, True): [True, True, False, False],
    }


def test_an_interval_within_found_bounds() -> None:
    table = pa.table({"id": list(range(4000)), "x": [float(n % 1000) for n in range(4000)]})
    release = _ask(table, "MEDIAN(x, interval_epsilon => 2) AS m FROM data", "epsilon=8, delta=0")
    (shown,) = release.to_arrow(intervals=True).to_pylist()
    assert 400 < shown["m_lower"] <= 499
    assert 500 <= shown["m_upper"] < 600


def test_what_is_computed_from_quantiles_is_free() -> None:
    table = _people(3000)
    options = "epsilon=5, delta=1e-6, max_groups_contributed=2"
    median = f"MEDIAN(x, {_ROW}(-100, 100))"
    select = f"g, {median} AS m, {median} - 10 AS lower FROM data GROUP BY g"
    release = _ask(table, f"{select} HAVING m > 0 ORDER BY {median} DESC LIMIT 2", options)
    rows = release.to_arrow().to_pylist()
    assert len(rows) == 2
    assert rows[0]["m"] >= rows[1]["m"] > 0
    assert all(row["lower"] == row["m"] - 10 for row in rows)
    assert len(release.record.measures) == 2


_REFUSED: list[tuple[str, type[QueryError], str]] = [
    ("MEDIAN(x, contribution_bounds_per_group => (0, 1))", OptionError, f"write {_ROW}"),
    (f"MEDIAN(x, {_ROW}(1, 0))", OptionError, "lower bound first"),
    (f"MEDIAN(x, {_ROW}(1e15, 1000000000000001))", OptionError, "closer together"),
    (f"MEDIAN(i, {_ROW}(0.25, 0.75))", OptionError, "must hold a whole number"),
    (f"MEDIAN(g, {_ROW}(0, 1))", SchemaError, "the argument of MEDIAN"),
    ("MEDIAN(DISTINCT x)", UnsupportedSql, "leave DISTINCT out"),
    (f"PERCENTILE_CONT(x, {_ROW}(0, 1))", UnsupportedSql, r"write PERCENTILE_CONT\(x, 0.5\)"),
    (f"PERCENTILE_CONT(x, 1.5, {_ROW}(0, 1))", OptionError, "from 0 to 1"),
    (f"PERCENTILE_CONT(x, -0.5, {_ROW}(0, 1))", OptionError, "from 0 to 1"),
    (f"PERCENTILE_CONT(x, TRUE, {_ROW}(0, 1))", OptionError, "from 0 to 1"),
    (f"PERCENTILE_CONT(x, 'half', {_ROW}(0, 1))", OptionError, "from 0 to 1"),
    (f"PERCENTILE_CONT(x, x, {_ROW}(0, 1))", OptionError, "must be a literal"),
    (f"APPROX_QUANTILES(x, 0, {_ROW}(0, 1))", OptionError, "a whole number from 1 to 100"),
    (f"APPROX_QUANTILES(x, 101, {_ROW}(0, 1))", OptionError, "a whole number from 1 to 100"),
    (f"APPROX_QUANTILES(x, 2.5, {_ROW}(0, 1))", OptionError, "a whole number from 1 to 100"),
    (f"APPROX_QUANTILES(x, 4, {_ROW}(0, 1)) + 1", UnsupportedSql, "makes an array"),
]


@cases(("call", "error", "message"), _REFUSED)
def test_bad_calls_are_refused(call: str, error: type[QueryError], message: str) -> None:
    with pytest.raises(error, match=message):
        _query(f"g, {call} AS q FROM data GROUP BY g")


@pytest.mark.parametrize("clause", ["HAVING q > 1", "ORDER BY q", "ORDER BY 2", "ORDER BY q + 1"])
def test_arrays_are_shown_only(clause: str) -> None:
    with pytest.raises(UnsupportedSql, match="makes an array"):
        _query(f"g, APPROX_QUANTILES(x, 4, {_ROW}(0, 1)) AS q FROM data GROUP BY g {clause}")


def test_spellings_of_one_quantile_are_one_query() -> None:
    bounds = f"{_ROW}(0, 1)"
    texts = {
        canonical_text(_query(f"g, {call} AS q FROM data GROUP BY g"))
        for call in (
            f"MEDIAN(x, {bounds})",
            f"PERCENTILE_CONT(x, 0.5, {bounds})",
            f"percentile_cont(X, .50, {bounds})",
        )
    }
    assert len(texts) == 1
    others = {
        canonical_text(_query(f"g, {call} AS q FROM data GROUP BY g"))
        for call in (
            f"PERCENTILE_CONT(x, 0.25, {bounds})",
            f"APPROX_QUANTILES(x, 1, {bounds})",
            f"MIN(x, {bounds})",
            f"MEDIAN(x, {bounds}, interval_epsilon => 0.1)",
        )
    }
    assert len(others - texts) == 4


def test_noise_of_another_distribution_is_refused() -> None:
    priced = _priced(f"MEDIAN(i, {_ROW}(0, 120))")
    column = pa.chunked_array(
        [pa.array([[]], pa.large_list(pa.struct([("leaf", pa.int64()), ("n", pa.int64())])))]
    )
    with pytest.raises(Exception, match="noise must be"):
        noisy_quantiles(column, priced.measures[1], TruncatedLaplaceDistribution(1, 5), [0.5], None)  # type: ignore[arg-type]


def _neighbors(seed: int) -> list[str]:
    """Take one unit out of a random table, and return what moved by more than its noise is made for."""
    draw = random.Random(seed)
    rows = range(draw.choice([1, 6, 60]))
    table = pa.table(
        {
            "id": pa.array([draw.choice([0, 0, 0, 1, 2, 3, None]) for _ in rows], pa.int64()),
            "g": pa.array([draw.choice(["a", "b", "c", None]) for _ in rows], pa.string()),
            "i": pa.array([draw.choice([0, 1, 2, -7, 2**62, None]) for _ in rows], pa.int64()),
            "x": pa.array(
                [draw.choice([0.1, -3.3, 55.5, math.inf, math.nan, None]) for _ in rows], pa.float64()
            ),
        }
    )
    limit = draw.choice(["", ", max_rows_per_group=1", ", max_rows_per_group=3"])
    number, bounds = (
        draw.choice(["x", "i", "x * i", "1 / i"]),
        draw.choice(["(0, 9)", "(-5, 60.5)", "(2, 2)"]),
    )
    paid = draw.choice(["", ", interval_epsilon => 0.2"])
    calls = [
        f"MEDIAN({number}, {_ROW}{bounds}{draw.choice(['', ', interval_epsilon => 0.2'])})",
        f"APPROX_QUANTILES(i, {draw.choice([3, 40])}, {_ROW}(-10, 1000000){paid})",
    ]
    texts = ", ".join(draw.sample(calls, draw.choice([1, 2])))
    query = _query(
        f"g, {texts}, SUM(x, {_ROW.replace('row', 'group')}(0, 5)) FROM data GROUP BY g",
        f"max_groups_contributed={draw.choice([1, 2])}{limit}",
    )
    priced, answers = price(query), []
    for some in (table, table.filter(pc.fill_null(pc.not_equal(table["id"], 0), fill_value=True))):
        with DuckDBEngine(open_source(some), threads=1) as engine:
            exact = engine.aggregate(priced.job, bytes(range(32))).to_pylist()
        answers.append({row["k0"]: _measures(row, len(priced.measures)) for row in exact})
    found, moved = [], 0
    for key in answers[0].keys() | answers[1].keys():
        one, two = (answer.get(key, [Counter()] * len(priced.measures)) for answer in answers)
        moved += one != two
        for a, b, mechanism in zip(one, two, priced.mechanisms, strict=True):
            by = sum(abs(a[leaf] - b[leaf]) for leaf in a.keys() | b.keys())
            most = mechanism.rows if isinstance(mechanism, BinMechanism) else mechanism.sensitivity
            assert most is not None
            if by > most:
                found.append(f"{canonical_text(query)}: moved by {by}")
    if moved > (query.options.max_groups_contributed or 1):
        found.append(f"{canonical_text(query)}: {moved} groups moved")
    return found


def _measures(row: dict[str, Any], count: int) -> list[Counter[int]]:
    values = (row[f"m{n}"] for n in range(count))
    return [
        Counter({b["leaf"]: b["n"] for b in value}) if isinstance(value, list) else Counter({0: value})
        for value in values
    ]


@pytest.mark.parametrize("block", range(5))
def test_one_unit_moves_no_level_by_more_than_its_noise_is_made_for(block: int) -> None:
    assert [line for seed in range(block * 5, block * 5 + 5) for line in _neighbors(seed)] == []


def test_rows_beyond_the_limit_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.queries.engines.compilation.bounding import Bounding  # noqa: PLC0415

    rank_by_sql(monkeypatch)
    leaves = Bounding.leaves
    monkeypatch.setattr(
        Bounding,
        "leaves",
        lambda self, index, *, unit, any_crowded: leaves(self, index, unit=unit, any_crowded=False),
    )
    assert any(_neighbors(seed) for seed in range(12))


def test_quantiles_are_asked_in_python_too() -> None:
    import sfumato as sf  # noqa: PLC0415

    with connect(_people(900), privacy_unit="id", epsilon=9, delta=1e-3, rng=3) as session:
        asked = (
            session.table("data")
            .group_by("g")
            .agg(
                sf.median("x", bounds=(0, 100)),
                sf.quantile("x", 0.9, bounds=(0, 100)),
                sf.min("x", bounds=(0, 100)),
                sf.max("x", bounds=(0, 100)),
                sf.quantiles("x", 4, bounds=(0, 100)),
            )
            .options(epsilon=5, delta=1e-6, max_groups_contributed=2)
        )
        release = asked.release()
    assert release.columns == ("g", "median_x", "quantile_x", "min_x", "max_x", "quantiles_x")
    assert len(release.record.measures) == 2
