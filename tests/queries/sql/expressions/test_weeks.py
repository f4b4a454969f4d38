"""Weeks and dates as text, against Python's calendar, over all years."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import sqlglot

from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.relations import relation_layer
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Scan
from sfumato.queries.sql.catalog import Rows
from sfumato.queries.sql.expressions.scalar import read_expression

_FIRST, _LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)


def _days() -> list[dt.date]:
    draw = random.Random(7)
    days = [_FIRST + dt.timedelta(days=draw.randrange(3652059)) for _ in range(1500)]
    days += [_FIRST + dt.timedelta(days=count) for count in range(20)]
    days += [_LAST - dt.timedelta(days=count) for count in range(20)]
    return days + [dt.date(2020, 12, 20) + dt.timedelta(days=count) for count in range(800)]


class _Column:
    def __init__(self, engine: DuckDBEngine, days: list[dt.date]) -> None:
        self.engine, self.days = engine, days

    def __call__(self, text: str) -> list[Any]:
        scan = Scan("data", self.engine.schemas["data"], None)
        tree = sqlglot.parse_one(f"SELECT {text}", read="bigquery").expressions[0]
        read = read_expression(tree, Rows.of(scan, "data"), "it")
        layer = relation_layer(scan, self.engine._tables, DUCKDB)
        sql = f"SELECT {render(read, layer.columns, DUCKDB)} FROM ({layer.sql})"
        return [row[0] for row in self.engine._connection.execute(sql).fetchall()]


@pytest.fixture(scope="module")
def column() -> Iterator[_Column]:
    days = _days()
    table = pa.table({"d": pa.array(days, pa.date32()), "n": [day.year * 7 % 99 - 40 for day in days]})
    with DuckDBEngine(open_source({"data": table}), threads=1) as engine:
        yield _Column(engine, days)


def _back(day: dt.date, first: int) -> dt.date | None:
    days = (day.weekday() - first) % 7
    return None if day.toordinal() <= days else day - dt.timedelta(days=days)


def test_numbers_of_weeks(column: _Column) -> None:
    days = column.days
    assert column("EXTRACT(ISOWEEK FROM d)") == [day.isocalendar()[1] for day in days]
    assert column("EXTRACT(ISOYEAR FROM d)") == [day.isocalendar()[0] for day in days]
    assert column("EXTRACT(WEEK FROM d)") == [int(day.strftime("%U")) for day in days]
    assert column("EXTRACT(WEEK(MONDAY) FROM d)") == [int(day.strftime("%W")) for day in days]


def test_first_days_of_weeks_and_their_differences(column: _Column) -> None:
    for name, first in (("ISOWEEK", 0), ("WEEK", 6), ("WEEK(MONDAY)", 0), ("WEEK(THURSDAY)", 3)):
        starts = [_back(day, first) for day in column.days]
        assert column(f"DATE_TRUNC(d, {name})") == starts
        origin = _back(dt.date(2024, 5, 5), first)
        assert origin is not None
        counted = column(f"DATE_DIFF(d, DATE '2024-05-05', {name})")
        for start, day, count in zip(starts, column.days, counted, strict=True):
            if start is not None:
                assert count == (start - origin).days // 7, day


def test_first_days_of_iso_years_and_their_differences(column: _Column) -> None:
    years = [day.isocalendar()[0] for day in column.days]
    starts = [dt.date.fromisocalendar(year, 1, 1) for year in years]
    assert column("DATE_TRUNC(d, ISOYEAR)") == starts
    noons = column("TIMESTAMP_TRUNC(CAST(d AS TIMESTAMP), ISOYEAR)")
    assert [moment.replace(tzinfo=None) for moment in noons] == [
        dt.datetime.combine(start, dt.time()) for start in starts
    ]
    assert column("DATE_DIFF(d, DATE '2024-12-30', ISOYEAR)") == [year - 2025 for year in years]


def test_dates_moved_by_a_column(column: _Column) -> None:
    def moved(day: dt.date, days: int) -> dt.date | None:
        try:
            return day + dt.timedelta(days=days)
        except OverflowError:
            return None

    shifts = [day.year * 7 % 99 - 40 for day in column.days]
    pairs = list(zip(column.days, shifts, strict=True))
    assert column("DATE_ADD(d, INTERVAL n DAY)") == [moved(day, n) for day, n in pairs]
    assert column("DATE_SUB(d, INTERVAL n WEEK)") == [moved(day, -7 * n) for day, n in pairs]
    assert column("d + INTERVAL (n * n) DAY") == [moved(day, n * n) for day, n in pairs]


def test_dates_from_parts_and_as_text(column: _Column) -> None:
    days = column.days
    parts = "EXTRACT(YEAR FROM d), EXTRACT(MONTH FROM d), {}"
    assert column(f"DATE({parts.format('EXTRACT(DAY FROM d)')})") == days

    def real(day: dt.date, number: int) -> dt.date | None:
        try:
            return day.replace(day=number)
        except ValueError:
            return None

    assert column(f"DATE({parts.format('n')})") == [real(day, day.year * 7 % 99 - 40) for day in days]
    text = "%Y-%m-%d %j %G-W%V %U %A %a, %B %b %y"
    plain = text.replace("%Y", "@").replace("%G", "#")
    expected = [
        day.strftime(plain).replace("@", f"{day.year:04}").replace("#", f"{day.isocalendar()[0]:04}")
        for day in days
    ]
    assert column(f"FORMAT_DATE('{text}', d)") == expected
    assert column("FORMAT_DATE('%F|%D %Q %%', d)") == [
        f"{day.year:04}-{day:%m-%d}|{day:%m/%d/%y} {(day.month + 2) // 3} %" for day in days
    ]
