"""The truncation report: exact counts, by units computed one by one, and what one unit moves them by."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.engine import Engine
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.queries.plan.query import Query, Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.pricing.truncation_report import PricedTruncation
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.postgres import Cluster
from tests.queries.tables_in_postgres import load
from tests.queries.tables_in_spark import frame
from tests.spark import Driver

_SELECT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, truncation_epsilon=0.5, {}) {}"
_VALUES = (
    "town, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, "
    "SUM(cost, contribution_bounds_per_row => (0, 9)) AS s, "
    "SUM(cost, contribution_bounds_per_group => (-2, 9)) AS t, "
    "SUM(size, contribution_bounds_per_group => (0, 5)) AS i, "
    "AVG(cost, contribution_bounds_per_group => (0, 9)) AS a, "
    "APPROX_COUNT_DISTINCT(size, max_contributions_per_group => 2) AS d, "
    "COVAR_POP(cost, size, contribution_bounds_per_row => ((0, 9), (1, 3))) AS c FROM data GROUP BY town"
)
_COUNTS = "town, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM data GROUP BY town"
_ASKED: Sequence[tuple[str, Mapping[str, Sequence[object]] | None]] = (
    (_SELECT.format("max_groups_contributed=2, max_rows_per_group=3", _VALUES), None),
    (_SELECT.format("max_groups_contributed=1", _COUNTS), {"town": ["a", "c", None]}),
    (_SELECT.format("max_rows_contributed=4", _COUNTS), None),
)
_COSTS = [None, -3.5, 0.0, 1.25, 9.0, 70.0, math.nan, math.inf]
_SIZES = [None, 0, 1, 2, 3, 9]

_Rows = list[tuple[int, str | None, float | None, int | None]]


def _visits(units: int, seed: int) -> _Rows:
    draw = random.Random(seed)
    return [
        (
            unit,
            draw.choice(["a", "b", "c", "d", None]),
            draw.choice(_COSTS),
            draw.choice(_SIZES),
        )
        for unit in range(units)
        for _ in range(draw.choice([1, 2, 5, 12, 40]))
    ]


def _table(rows: _Rows) -> pa.Table:
    types = {"id": pa.int64(), "town": pa.string(), "cost": pa.float64(), "size": pa.int64()}
    return pa.table({n: pa.array([row[i] for row in rows], t) for i, (n, t) in enumerate(types.items())})


def _read(engine: Engine, text: str, groups: Any, unit: str | None = "id") -> tuple[Query, PricedTruncation]:
    catalog = Catalog({"data": Scan("data", engine.schemas["data"], unit)})
    query = read(text, catalog, public_groups=groups)
    report = price(query).truncation
    assert report is not None
    return query, report


def _counts(engine: Engine, asked: Sequence[Any] = _ASKED, unit: str | None = "id") -> list[list[int]]:
    found = []
    for text, groups in asked:
        query, report = _read(engine, text, groups, unit)
        job = report.job(query)
        engine.check(job)
        answer = engine.aggregate(job, bytes(range(32)))
        found.append([answer[name][0].as_py() for name in answer.column_names if name.startswith("m")])
    return found


def _of_table(rows: _Rows, unit: str | None = "id", asked: Sequence[Any] = _ASKED) -> list[list[int]]:
    with DuckDBEngine(open_source(_table(rows)), threads=1) as engine:
        return _counts(engine, asked, unit)


def _outside(value: float | None, low: float, high: float) -> list[bool]:
    """Return whether a value is clamped, in a list that is empty where there is none."""
    return [] if value is None or not math.isfinite(value) else [not low <= value <= high]


def _expected(rows: _Rows) -> list[list[int]]:
    """Count unit by unit, by the definition."""
    parts: dict[int, dict[Any, _Rows]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        parts[row[0]][row[1]].append(row)
    found = [[0] * 18, [0] * 6, [0] * 2]
    for groups in parts.values():
        listed = {town: several for town, several in groups.items() if town in ("a", "c", None)}
        for index, pairs in enumerate((_values_of(groups), _listed_of(listed), [_all_rows_of(groups)])):
            for position, (total, lost, cap, steps) in enumerate(pairs):
                whole = min(total, cap) * steps
                cut = math.floor(lost * Fraction(whole, total)) if total else 0
                found[index][2 * position] += cut
                found[index][2 * position + 1] += whole - cut
    return found


_Pair = tuple[int, Fraction | int, int, int]


def _values_of(groups: Mapping[Any, _Rows]) -> list[_Pair]:
    several, every = list(groups.values()), [row for rows in groups.values() for row in rows]
    rows = sum(map(len, several))
    staying = sum(min(3, len(each)) for each in several)
    if len(several) > 2:
        staying = math.floor(Fraction(2 * staying, len(several)))
    costs = [[c for _, _, c, _ in each if c is not None and math.isfinite(c)] for each in several]
    sizes = [[s for _, _, _, s in each if s is not None] for each in several]
    of_row = [out for _, _, cost, _ in every for out in _outside(cost, 0, 9)]
    totals = [out for each in costs if each for out in _outside(sum(each), -2, 9)]
    whole = [out for each in sizes if each for out in _outside(sum(each), 0, 5)]
    means = [out for each in costs if each for out in _outside(sum(each) / len(each), 0, 9)]
    distinct = [len(set(each)) for each in sizes]
    pairs = [a or b for _, _, c, s in every for a in _outside(c, 0, 9) for b in _outside(s, 1, 3)]
    return [
        (1, int(len(several) > 2), 1, 1),
        (len(several), max(0, len(several) - 2), 8, 1024),
        (rows, rows - staying, 24, 1024),
        (len(of_row), sum(of_row), 6, 1024),
        (len(totals), sum(totals), 2, 1024),
        (len(whole), sum(whole), 2, 1024),
        (len(means), sum(means), 2, 1024),
        (sum(distinct), sum(max(0, many - 2) for many in distinct), 16, 1024),
        (len(pairs), sum(pairs), 6, 1024),
    ]


def _listed_of(groups: Mapping[Any, _Rows]) -> list[_Pair]:
    if not groups:
        return []
    sizes = [len(rows) for rows in groups.values()]
    staying = sum(min(2, size) for size in sizes) // len(sizes)
    return [
        (1, int(len(sizes) > 1), 1, 1),
        (len(sizes), len(sizes) - 1, 4, 1024),
        (sum(sizes), sum(sizes) - staying, 8, 1024),
    ]


def _all_rows_of(groups: Mapping[Any, _Rows]) -> _Pair:
    sizes = [len(rows) for rows in groups.values()]
    return sum(sizes), sum(sizes) - min(4, sum(min(2, size) for size in sizes)), 16, 1024


def test_the_counts_are_those_of_the_definition() -> None:
    rows = _visits(150, 5)
    assert _of_table(rows) == _expected(rows)


def test_where_rows_are_units_their_values_are_counted() -> None:
    rows = _visits(40, 6)
    text = _SELECT.format("max_rows_per_group=1", _VALUES.replace("town, ", "", 1))
    text = text.replace(" GROUP BY town", "")
    text = text[: text.index("APPROX_COUNT")] + text[text.index("COVAR_POP") :]
    (found,) = _of_table(rows, None, [(text, None)])
    s = [out for _, _, cost, _ in rows for out in _outside(cost, 0, 9)]
    t = [out for _, _, cost, _ in rows for out in _outside(cost, -2, 9)]
    i = [out for _, _, _, size in rows for out in _outside(size, 0, 5)]
    c = [a or b for _, _, x, y in rows for a in _outside(x, 0, 9) for b in _outside(y, 1, 3)]
    assert found == [number for each in (s, t, i, s, c) for number in (sum(each), len(each) - sum(each))]


def _moved(rows: _Rows, unit: int, before: list[list[int]]) -> list[list[int]]:
    """Return by how much both numbers of each limit move together if a unit leaves."""
    after = _of_table([row for row in rows if row[0] != unit])
    return [
        [abs(b[i] - a[i]) + abs(b[i + 1] - a[i + 1]) for i in range(0, len(b), 2)]
        for b, a in zip(before, after, strict=True)
    ]


def test_no_unit_moves_both_numbers_of_a_limit_by_more_than_its_reach() -> None:
    with DuckDBEngine(open_source(_table([]))) as engine:
        reaches = [[cut.reach for cut in _read(engine, *asked)[1].cuts] for asked in _ASKED]
    most = [[0] * len(each) for each in reaches]
    for seed in range(2):
        draw = random.Random(seed)
        heavy = [(9, draw.choice("abcdefghi"), draw.choice(_COSTS), draw.choice(_SIZES)) for _ in range(200)]
        rows = [*_visits(5, seed), *heavy]
        before = _of_table(rows)
        for unit in (0, 3, 9):
            for index, each in enumerate(_moved(rows, unit, before)):
                assert all(moved <= reach for moved, reach in zip(each, reaches[index], strict=True))
                most[index] = list(map(max, most[index], each))
    assert most[0] == reaches[0]
    assert most[2] == reaches[2]


def test_a_unit_of_very_many_rows_moves_them_by_no_more() -> None:
    rows = [(0, town, 70.0, 9) for town in "abcdefghijklm" for _ in range(5000)]
    found = _of_table([*rows, (1, "a", 1.0, 1)])
    assert found == _expected([*rows, (1, "a", 1.0, 1)])


@pytest.mark.postgres
def test_counts_on_postgresql(postgres: Cluster) -> None:
    rows = _visits(60, 8)
    url = postgres.database()
    with psycopg.connect(url) as connection:
        load(connection, "data", _table(rows))
    engine = PostgresEngine(PostgresSource(url))
    try:
        assert _counts(engine) == _expected(rows)
    finally:
        engine.close()


@pytest.mark.spark
def test_counts_on_spark(spark: Driver) -> None:
    rows = _visits(60, 8)
    session = spark.session()
    engine = SparkEngine(SparkSource(session, {"data": frame(session, _table(rows))}))
    try:
        assert _counts(engine, _ASKED[:1]) == _expected(rows)[:1]  # a job takes Spark some time
    finally:
        engine.close()
