"""VAR, STDDEV, COVAR and CORR: against a brute force over rows, within their range, and their intervals."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import OptionError
from sfumato.frames.sources import open_source
from sfumato.numerics.randomness.source import random_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.measure import RowSum
from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.noise import add_noise
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.cases import cases

ONE = "contribution_bounds_per_row => (-2, 6)"
TWO = "contribution_bounds_per_row => ((-2, 6), (0, 4))"
KINDS = {
    "VAR_POP": f"VAR_POP(x, {ONE})",
    "VAR_SAMP": f"VAR_SAMP(x, {ONE})",
    "STDDEV_POP": f"STDDEV_POP(x, {ONE})",
    "STDDEV_SAMP": f"STDDEV(x, {ONE})",
    "COVAR_POP": f"COVAR_POP(x, y, {TWO})",
    "COVAR_SAMP": f"COVAR_SAMP(x, y, {TWO})",
    "CORR": f"CORR(x, y, {TWO})",
}
COLUMNS = ", ".join(f"{call} AS {name}" for name, call in KINDS.items())


def _table(seed: int, units: int = 60) -> pa.Table:
    draw = random.Random(seed)
    odd = [math.nan, math.inf, -math.inf, None, 0.1]
    rows = []
    for unit in range(units):
        for _ in range(draw.choice([1, 2, 3])):
            x = draw.gauss(1, 3) if draw.random() < 0.9 else draw.choice(odd)
            y = None if draw.random() < 0.1 or x is None else min(max(x, -9), 9) * 0.5 + draw.gauss(1, 1)
            rows.append((unit, draw.choice(["a", "b"]), x, y))
    unit_column, group, xs, ys = (list(column) for column in zip(*rows, strict=True))
    return pa.table({"id": unit_column, "g": group, "x": pa.array(xs, pa.float64()), "y": ys})


def _exact(table: pa.Table, columns: str, options: str) -> tuple[PricedQuery, pa.Table]:
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) g, {columns} FROM data GROUP BY g"
    with DuckDBEngine(open_source(table)) as engine:
        catalog = Catalog({"data": Scan("data", engine.schemas["data"], "id")})
        priced = price(read(text, catalog, public_groups={"g": ["a", "b", "empty"]}))
        return priced, engine.aggregate(priced.job, bytes(32))


def _record(priced: PricedQuery, exact: pa.Table, seed: int) -> ReleaseRecord:
    return add_noise(priced, exact, random_source(seed), privacy_unit="id")


def _brute(table: pa.Table) -> dict[str, dict[str, float]]:
    """The definitions, over rows clamped to the bounds; NaN is NULL."""
    singles, pairs = defaultdict(list), defaultdict(list)
    for row in table.to_pylist():
        x, y = row["x"], row["y"]
        if x is None or math.isnan(x):
            continue
        singles[row["g"]].append(min(max(x, -2), 6))
        if y is not None:
            pairs[row["g"]].append((min(max(x, -2), 6), min(max(y, 0), 4)))
    found = {}
    for group, values in singles.items():
        n, m = len(values), len(pairs[group])
        var = sum((v - sum(values) / n) ** 2 for v in values) / n
        means = [sum(p[i] for p in pairs[group]) / m for i in (0, 1)]
        cov, sx, sy = (
            sum((p[i] - means[i]) * (p[j] - means[j]) for p in pairs[group]) / m
            for i, j in ((0, 1), (0, 0), (1, 1))
        )
        found[group] = {
            "VAR_POP": var,
            "VAR_SAMP": var * n / (n - 1),
            "STDDEV_POP": math.sqrt(var),
            "STDDEV_SAMP": math.sqrt(var * n / (n - 1)),
            "COVAR_POP": cov,
            "COVAR_SAMP": cov * m / (m - 1),
            "CORR": cov / math.sqrt(sx * sy),
        }
    return found


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_they_are_what_they_are_called(seed: int) -> None:
    table = _table(seed)
    priced, exact = _exact(table, COLUMNS, "epsilon=1e7, delta=0, max_groups_contributed=2")
    assert priced.query.options.max_rows_per_group == 5
    answer = TableRelease(_record(priced, exact, 1), None, priced).to_arrow().to_pylist()
    expected = _brute(table)
    for row in answer[:2]:
        for name in KINDS:
            assert row[name] == pytest.approx(expected[row["g"]][name], rel=1e-3), name


def test_the_group_of_nobody_has_an_answer_too() -> None:
    priced, exact = _exact(_table(1), COLUMNS, "epsilon=1e7, delta=0, max_groups_contributed=2")
    row = TableRelease(_record(priced, exact, 1), None, priced).to_arrow().to_pylist()[2]
    assert row["g"] == "empty"
    assert all(row[name] is not None and abs(row[name]) <= 32 for name in KINDS if name != "CORR")


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 1, 20])
@pytest.mark.parametrize("bounds", ["(-2, 6)", "(3, 3)", "(0, 0)", "(1000000, 1000001)", "(-1e-9, 1e-9)"])
def test_no_noise_takes_them_out_of_their_range(epsilon: float, bounds: str) -> None:
    columns = COLUMNS.replace("(-2, 6)", bounds)
    options = f"epsilon={epsilon}, delta=1e-9, max_groups_contributed=2, max_rows_per_group=3"
    priced, exact = _exact(_table(2), columns, options)
    lower, upper = (float(part) for part in bounds.strip("()").split(","))
    most = ((upper - lower) / 2) ** 2 * (1 + 1e-3) + 1e-300
    for seed in range(5):
        release = TableRelease(_record(priced, exact, seed), None, priced)
        for row in release.to_arrow(intervals=True).to_pylist():
            assert 0 <= row["VAR_POP"] <= most
            assert 0 <= row["STDDEV_SAMP"] <= math.sqrt(2 * most)
            assert row["VAR_POP_lower"] <= row["VAR_POP"] <= row["VAR_POP_upper"] <= most
            assert abs(row["COVAR_POP"]) <= math.sqrt(most * 4.01)
            assert row["CORR"] is None or -1 <= row["CORR"] <= 1
            assert -1 <= row["CORR_lower"] <= row["CORR_upper"] <= 1


def _estimand(priced: PricedQuery, exact: pa.Table) -> list[dict[str, Any]]:
    """The bounded answer: what is read off the exact sums."""
    rows: list[dict[str, Any]] = (
        TableRelease(replace(_record(priced, exact, 0), table=exact), None, priced).to_arrow().to_pylist()
    )
    return rows


@pytest.mark.parametrize("strategy", ["delta=0", "delta=1e-6"])
@pytest.mark.parametrize("level", [0.9, 0.5])
def test_intervals_hold_the_bounded_answer_as_often_as_they_say(strategy: str, level: float) -> None:
    options = f"epsilon=40, {strategy}, max_groups_contributed=2, max_rows_per_group=2"
    priced, exact = _exact(_table(3, 300), COLUMNS, options)
    truth, runs = _estimand(priced, exact), 40
    held = dict.fromkeys(KINDS, 0)
    for seed in range(runs):
        answer = TableRelease(_record(priced, exact, seed), None, priced).to_arrow(
            intervals=True, level=level
        )
        for row, true in list(zip(answer.to_pylist(), truth, strict=True))[:2]:
            for name in KINDS:
                slack = 1e-9 * abs(true[name])
                held[name] += row[f"{name}_lower"] - slack <= true[name] <= row[f"{name}_upper"] + slack
    for name, times in held.items():
        assert times >= 2 * runs * level - 4 * math.sqrt(2 * runs * level * (1 - level)), name


def test_a_release_is_read_back_as_it_was() -> None:
    priced, exact = _exact(_table(4), COLUMNS, "epsilon=3, delta=0, max_groups_contributed=2")
    record = _record(priced, exact, 9)
    again = ReleaseRecord.from_bytes(record.to_bytes())
    assert again.to_bytes() == record.to_bytes()
    first, second = (TableRelease(each, None, priced).to_arrow(intervals=True) for each in (record, again))
    assert first.equals(second)


def test_sums_are_shared_by_all_that_read_them() -> None:
    priced, _ = _exact(_table(5), COLUMNS, "epsilon=3, delta=0, max_groups_contributed=2")
    assert len(priced.measures) == 3 + 6
    alone, _ = _exact(
        _table(5), f"STDDEV(x, {ONE}), VAR_POP(x, {ONE})", "epsilon=3, delta=0, max_groups_contributed=2"
    )
    assert len(alone.measures) == 3


def test_rows_that_are_units_are_counted_once() -> None:
    table = _table(6)
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e6, delta=0) VAR_POP(x, {ONE}) AS v FROM data"
    with sf.connect(table, privacy_unit=sf.ROW, epsilon=1e7, rng=1) as session:
        release = session.sql(text)
        (value,) = release.to_arrow()["v"].to_pylist()
        assert "5 rows" not in release.explain()
    xs = [min(max(x, -2), 6) for x in table["x"].to_pylist() if x is not None and not math.isnan(x)]
    mean = sum(xs) / len(xs)
    assert value == pytest.approx(sum((x - mean) ** 2 for x in xs) / len(xs), rel=1e-3)


def test_whole_numbers_stay_on_a_grid_of_ones() -> None:
    table = pa.table({"id": [1, 2, 3], "g": ["a"] * 3, "x": [1, 5, 9]})
    priced, _ = _exact(
        table,
        "VAR_POP(x, contribution_bounds_per_row => (0, 10)) AS v",
        "epsilon=1, delta=0, max_groups_contributed=1",
    )
    assert all(factor.exponent == 0 for measure in priced.measures for factor in measure.value.columns)


def test_rows_too_many_for_any_grid_are_refused() -> None:
    options = "epsilon=1, delta=0, max_groups_contributed=1, max_rows_per_group=100000000000"
    with pytest.raises(OptionError, match="fewer groups or rows"):
        _exact(_table(0), f"VAR_POP(x, {ONE})", options)


@cases("rows", [1, 5, 1 << 10, 1 << 24])
@cases("lower", [0.0, 1e3, -1e9, 9.9e9])
@cases("call", ["VAR_POP(x, {})", "COVAR_POP(x, y, {})"])
def test_the_middle_of_the_bounds_times_the_rows_of_a_unit_stays_within_64_bits(
    call: str, lower: float, rows: int
) -> None:
    """The engine subtracts it from a part's sum, in its own integers, where no row may make it fail."""
    pair = f"({lower!r}, {lower + 1.0!r})"
    bounds = pair if call.startswith("VAR") else f"({pair}, {pair})"
    written = call.format(f"contribution_bounds_per_row => {bounds}")
    text = (
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0, max_rows_per_group={rows}) {written}"
    )
    columns = [Column(name, ColumnType.FLOAT) for name in "xy"]
    schema = Schema((Column("id", ColumnType.INTEGER), *columns))
    catalog = Catalog({"data": Scan("data", schema, "id")})
    try:
        priced = price(read(f"{text} AS v FROM data", catalog))
    except OptionError:
        assert rows >= 1 << 24
        return
    for measure in priced.measures:
        for factor in measure.value.columns:
            assert abs(factor.center) * rows < 2**62
            assert factor.upper > factor.lower
        if isinstance(measure.value, RowSum):
            assert abs(measure.value.offset) * rows < 2**62


_OF_FLOATS = [
    "SUM({x}, contribution_bounds_per_group => (-2, 6))",
    "SUM({x}, contribution_bounds_per_row => (-2, 6))",
    "SUM({x})",
    "AVG({x}, contribution_bounds_per_group => (0, 6))",
    *(f"{name}({{x}}, {ONE})" for name in ("VAR_POP", "VAR_SAMP", "VARIANCE")),
    *(f"{name}({{x}}, {ONE})" for name in ("STDDEV_POP", "STDDEV_SAMP", "STDDEV")),
    *(f"{name}({{x}}, {{y}}, {TWO})" for name in ("COVAR_POP", "COVAR_SAMP", "CORR")),
    *(f"{name}({{x}}, {ONE})" for name in ("MIN", "MAX", "MEDIAN")),
    f"PERCENTILE_CONT({{x}}, 0.3, {ONE})",
    f"APPROX_QUANTILES({{x}}, 4, {ONE})",
]
_IN_PARTS = "SUM({x}, contribution_bounds_per_group => (0, 1)) FILTER (WHERE g = 'a')"


def test_a_numeric_is_aggregated_as_the_float_that_it_is_cast_to() -> None:
    """The plan, the loss and every measured integer are those of the cast that is written out."""
    numbers = [Decimal("1.10"), Decimal("-7.25"), Decimal(2**64 - 1), None, Decimal("0.05"), Decimal("3.00")]
    table = pa.table({
        "id": range(6), "g": ["a", "b"] * 3,
        "x": pa.array(numbers, pa.decimal128(30, 2)), "y": pa.array(numbers[::-1], pa.decimal128(30, 2)),
    })  # fmt: skip
    options = "epsilon=1, delta=1e-8, max_groups_contributed=1, max_rows_per_group=2"
    clause = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) g, "
    with DuckDBEngine(open_source(table)) as engine:
        assert engine.schemas["data"].columns[2].type is ColumnType.DECIMAL
        catalog = Catalog({"data": Scan("data", engine.schemas["data"], "id")})

        def asked(call: str, x: str, y: str, rows: str) -> PricedQuery:
            shown = call.format(x=x, y=y)
            return price(read(f"{clause}{shown} AS m FROM {rows} GROUP BY g", catalog))

        for call in (*_OF_FLOATS, _IN_PARTS):
            plain = asked(call, "x", "y", "data")
            written = asked(call, "CAST(x AS FLOAT64)", "CAST(y AS FLOAT64)", "data")
            assert plain.loss == written.loss
            if call != _IN_PARTS:  # there the cast is of the chosen values
                assert query_key(plain.query) == query_key(written.query), call
                assert plain.query.aggregates == written.query.aggregates
                assert plain.job == written.job, call
            assert engine.aggregate(plain.job, bytes(32)).equals(engine.aggregate(written.job, bytes(32)))
        for inner in ("SUM", "AVG"):  # of each unit's rows
            made = [
                asked("AVG({x})", "t", "t", f"(SELECT id, g, {inner}({x}) AS t FROM data GROUP BY id, g)")
                for x in ("x", "CAST(x AS FLOAT64)")
            ]
            assert query_key(made[0].query) == query_key(made[1].query)
            assert made[0].job == made[1].job
