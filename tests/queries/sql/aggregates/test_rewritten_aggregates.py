"""COUNTIF, FILTER, the mean of a condition and aggregates of dates: what they become, and their answers."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.queries.plan.query import Query
from sfumato.queries.sql.analysis import read
from tests.cases import cases
from tests.queries.people import CATALOG

_DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=1) "
_PER_GROUP = "contribution_bounds_per_group"
_PER_ROW = "contribution_bounds_per_row"


def _read(select: str) -> Query:
    return read(f"{_DP} state, {select} FROM data GROUP BY state", CATALOG)


_COUNTED = f"{_PER_GROUP} => (0, 3)"
_TWO = f"{_PER_ROW} => ((0, 1), (0, 2))"
_DATES = f"{_PER_ROW} => ('1969-12-30', DATE '2000-01-01'), epsilon => 0.5"
_EPOCH = "DATE '1970-01-01'"
_DIFF = f"DATE_DIFF(born, {_EPOCH}, DAY)"
_DAYS = f"{_PER_ROW} => (-2, 10957), epsilon => 0.5"


@cases(
    ("written", "same"),
    [
        ("COUNTIF(age > 3) AS n", "COUNT(IF(age > 3, 1, NULL)) AS n"),
        (f"COUNTIF(married, {_COUNTED}) AS n", f"COUNT(IF(married, 1, NULL), {_COUNTED}) AS n"),
        (
            "COUNTIF(age > 3) FILTER (WHERE married) AS n",
            "COUNT(IF(married, IF(age > 3, 1, NULL), NULL)) AS n",
        ),
        (
            f"COUNT(*, {_COUNTED}) FILTER (WHERE age > 3) AS n",
            f"COUNT(IF(age > 3, 1, NULL), {_COUNTED}) AS n",
        ),
        ("COUNT(DISTINCT person_id) FILTER (WHERE married) AS n", "COUNT(IF(married, 1, NULL)) AS n"),
        ("COUNT(DISTINCT sex) FILTER (WHERE married) AS n", "COUNT(DISTINCT IF(married, sex, NULL)) AS n"),
        (
            f"SUM(age, {_COUNTED}) FILTER (WHERE married) AS n",
            f"SUM(IF(married, age, NULL), {_COUNTED}) AS n",
        ),
        (
            f"CORR(age, income, {_TWO}) FILTER (WHERE married) AS n",
            f"CORR(IF(married, age, NULL), income, {_TWO}) AS n",
        ),
        ("AVG(married) AS n", f"AVG(CAST(married AS INT64), {_PER_GROUP} => (0, 1)) AS n"),
        ("AVG(age > 3) AS n", f"AVG(CAST(age > 3 AS INT64), {_PER_GROUP} => (0, 1)) AS n"),
        (
            f"MAX(born, {_DATES}) AS d",
            f"DATE_ADD({_EPOCH}, INTERVAL (CAST(MAX({_DIFF}, {_DAYS}) AS INT64)) DAY) AS d",
        ),
    ],
)
def test_each_is_another_call(written: str, same: str) -> None:
    assert _read(written) == _read(same)


def test_names_without_an_alias() -> None:
    query = _read(
        "COUNTIF(married), SUM(age) FILTER (WHERE married), MAX(born), COUNT(*) FILTER (WHERE married)"
    )
    assert query.output == ("state", "countif_married", "sum_age", "max_born", "count")


def test_a_filter_in_a_subquery_is_over_the_rows_of_a_unit() -> None:
    inner = "SELECT person_id, {} AS k FROM data GROUP BY person_id"
    for written, same in (
        ("COUNTIF(age > 3)", "COUNT(IF(age > 3, 1, NULL))"),
        ("SUM(age) FILTER (WHERE married)", "SUM(IF(married, age, NULL))"),
        ("COUNT(*) FILTER (WHERE married)", "COUNT(IF(married, 1, NULL))"),
    ):
        one, other = (
            read(f"{_DP} k, COUNT(*) FROM ({inner.format(call)}) GROUP BY k", CATALOG).relation.schema
            for call in (written, same)
        )
        assert one == other


def _people() -> pa.Table:
    count = 3000
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=row % 300) for row in range(count)]
    return pa.table({
        "id": range(count),
        "x": [row % 10 for row in range(count)],
        "b": [row % 4 == 0 for row in range(count)],
        "day": pa.array(days, pa.date32()),
    })  # fmt: skip


def test_answers_are_near_the_truth_and_dates_have_intervals() -> None:
    bounds = f"{_PER_ROW} => (DATE '2023-01-01', DATE '2025-12-31')"
    with sf.connect(_people(), privacy_unit="id", epsilon=200.0, delta=1e-6, rng=7) as session:
        release = session.sql(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=100, delta=1e-8) COUNTIF(x > 4) AS n, "
            f"AVG(b) AS share, SUM(x, {_PER_GROUP} => (0, 9)) FILTER (WHERE b) AS s, "
            f"MEDIAN(day, {bounds}) AS middle, MAX(day, {bounds}) AS last FROM data"
        )
    (row,) = release.to_arrow(intervals=True).to_pylist()
    assert abs(row["n"] - 1500) < 10
    assert row["share"] == pytest.approx(0.25, abs=0.01)
    assert abs(row["s"] - 750 * 4) < 200
    assert abs(row["middle"] - dt.date(2024, 5, 29)) < dt.timedelta(days=4)
    assert row["middle_lower"] <= dt.date(2024, 5, 29) <= row["middle_upper"]
    assert dt.date(2024, 10, 15) < row["last"] <= dt.date(2024, 11, 5)


def test_the_builder_filters() -> None:
    with sf.connect(_people(), privacy_unit="id", epsilon=200.0, delta=1e-6, rng=7) as session:
        query = session.table().agg(n=sf.count().where(sf.col("x") > 4))
        assert "COUNT(*) FILTER (WHERE (`x` > 4))" in query.sql
        (row,) = query.release(epsilon=100.0, delta=0.0).to_arrow().to_pylist()
    assert abs(row["n"] - 1500) < 10
