"""Spans of time, and functions written with others, against Python."""

from __future__ import annotations

import calendar
import datetime as dt
import random
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
import sqlglot

from sfumato.errors import QueryError, SchemaError, UnsupportedSql
from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.terms import TypedSql
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.plan.query import ColumnType
from sfumato.queries.plan.typed_expressions import TypedTree, column
from sfumato.queries.sql.expressions.scalar import read_expression
from sfumato.queries.sql.parser import PrivateSql
from tests.cases import cases

TICK = dt.timedelta(microseconds=1)
TYPES = {
    "d": ColumnType.DATE, "e": ColumnType.DATE, "m": ColumnType.TIMESTAMP, "n": ColumnType.TIMESTAMP,
    "x": ColumnType.FLOAT, "s": ColumnType.TEXT, "b": ColumnType.BOOLEAN, "c": ColumnType.BOOLEAN,
}  # fmt: skip


class Scope:
    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        return column(name, TYPES[name])


def rows() -> Iterator[dict[str, Any]]:
    draw = random.Random(5)
    days = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29), dt.date(2023, 12, 31), None]
    for _ in range(150):
        day = [draw.choice(days) if draw.random() < 0.4 else dt.date.fromordinal(draw.randint(1, 3652059))
               for _ in range(2)]  # fmt: skip
        times = [
            None
            if one is None
            else dt.datetime.combine(one, dt.time(draw.randint(0, 23), 59, 59, draw.randint(0, 999999)))
            for one in day
        ]
        yield {
            "d": day[0], "e": day[1], "m": times[0], "n": times[1],
            "x": draw.choice([None, -0.1, 0.0, 3.3, 9.999, 10.0, 25.0]),
            "s": draw.choice([None, "", "a", "abab", "xyz", "漢ab"]),
            "b": draw.choice([None, True, False]), "c": draw.choice([None, True, False]),
        }  # fmt: skip


ROWS = list(rows())


def evaluated(text: str) -> list[Any]:
    tree = sqlglot.parse_one(f"SELECT {text}", dialect=PrivateSql()).expressions[0]
    sql = render(read_expression(tree, Scope(), "it"), {k: TypedSql(k, t) for k, t in TYPES.items()}, DUCKDB)
    with duckdb.connect() as connection:
        spelled = ", ".join(f"{name} {DUCKDB.types[type_]}" for name, type_ in TYPES.items())
        connection.execute(f"CREATE TABLE r (place INTEGER, {spelled})")
        marks = ", ".join("?" * (len(TYPES) + 1))
        connection.executemany(
            f"INSERT INTO r VALUES ({marks})", [[i, *r.values()] for i, r in enumerate(ROWS)]
        )
        return [row[0] for row in connection.execute(f"SELECT {sql} FROM r ORDER BY place").fetchall()]


def months(day: dt.date, count: int) -> dt.date | None:
    whole = day.year * 12 + day.month - 1 + count
    year, month = divmod(whole, 12)
    if not 1 <= year <= 9999:
        return None
    return dt.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def later(moment: Any, **span: int) -> Any:
    try:
        return moment + dt.timedelta(**span)
    except OverflowError:
        return None


def given(*names: str) -> Callable[[Callable[..., Any]], Callable[[dict[str, Any]], Any]]:
    def wrap(make: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
        def of(row: dict[str, Any]) -> Any:
            values = [row[name] for name in names]
            return None if None in values else make(*values)

        return of

    return wrap


CASES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "DATE_ADD(d, INTERVAL 40 DAY)": given("d")(lambda d: later(d, days=40)),
    "DATE_SUB(d, INTERVAL 3 WEEK)": given("d")(lambda d: later(d, days=-21)),
    "d + INTERVAL 1 MONTH": given("d")(lambda d: months(d, 1)),
    "d - INTERVAL 7 QUARTER": given("d")(lambda d: months(d, -21)),
    "DATE_ADD(d, INTERVAL 5000 YEAR)": given("d")(lambda d: months(d, 60000)),
    "DATE_SUB(d, INTERVAL 1 YEAR)": given("d")(lambda d: months(d, -12)),
    "DATE_SUB(d, INTERVAL -2 DAY)": given("d")(lambda d: later(d, days=2)),
    "LAST_DAY(d)": given("d")(
        lambda d: None if months(d.replace(day=1), 1) is None
        else d.replace(day=calendar.monthrange(d.year, d.month)[1])
    ),
    "EXTRACT(DAYOFWEEK FROM d)": given("d")(lambda d: d.isoweekday() % 7 + 1),
    "EXTRACT(DAYOFWEEK FROM m)": given("m")(lambda m: m.isoweekday() % 7 + 1),
    "DATE_DIFF(d, e, DAY)": given("d", "e")(lambda d, e: (d - e).days),
    "DATE_DIFF(d, e, MONTH)": given("d", "e")(lambda d, e: (d.year - e.year) * 12 + d.month - e.month),
    "DATE_DIFF(d, e, QUARTER)": given("d", "e")(
        lambda d, e: (d.year - e.year) * 4 + (d.month - 1) // 3 - (e.month - 1) // 3
    ),
    "DATE_DIFF(d, '2020-06-30', YEAR)": given("d")(lambda d: d.year - 2020),
    "TIMESTAMP_ADD(m, INTERVAL 90 MINUTE)": given("m")(lambda m: later(m, minutes=90)),
    "m - INTERVAL 400 DAY": given("m")(lambda m: later(m, days=-400)),
    "TIMESTAMP_ADD(m, INTERVAL 1 MICROSECOND)": given("m")(lambda m: later(m, microseconds=1)),
    "TIMESTAMP_DIFF(m, n, MICROSECOND)": given("m", "n")(lambda m, n: (m - n) // TICK),
    "TIMESTAMP_DIFF(m, n, HOUR)": given("m", "n")(
        lambda m, n: (1 if m >= n else -1) * (abs(m - n) // dt.timedelta(hours=1))
    ),
    "DATE(m)": given("m")(lambda m: m.date()),
    "WIDTH_BUCKET(x, 0, 10, 4)": given("x")(lambda x: 0 if x < 0 else 5 if x >= 10 else int(x * 4 // 10) + 1),
    "LEFT(s, 2)": given("s")(lambda s: s[:2]),
    "RIGHT(s, 2)": given("s")(lambda s: s[-2:]),
    "RIGHT(s, 0)": given("s")(lambda s: ""),
    "REPLACE(s, 'ab', 'c')": given("s")(lambda s: s.replace("ab", "c")),
    "ENDS_WITH(s, 'ab')": given("s")(lambda s: s.endswith("ab")),
    "SAFE_DIVIDE(x, x)": given("x")(lambda x: x / x if x else None),
    "d IS DISTINCT FROM e": lambda row: row["d"] != row["e"],
    "b IS NOT DISTINCT FROM c": lambda row: row["b"] == row["c"],
    "b IS TRUE": lambda row: row["b"] is True,
    "b IS NOT FALSE": lambda row: row["b"] is not False,
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_what_a_function_gives_is_what_python_gives(text: str) -> None:
    assert evaluated(text) == [CASES[text](row) for row in ROWS]


@cases(
    ("text", "error", "phrase"),
    [
        ("DATE_ADD(d, INTERVAL x DAY)", SchemaError, "the span of DATE_ADD must be INT64"),
        ("DATE_ADD(d, INTERVAL 1.5 DAY)", UnsupportedSql, "must be a whole number as a literal"),
        ("DATE_ADD(d, INTERVAL 1 HOUR)", UnsupportedSql, "must be one of DAY, MONTH, QUARTER, WEEK, YEAR"),
        ("DATE_ADD(m, INTERVAL 1 DAY)", SchemaError, "the argument of DATE_ADD must be DATE"),
        ("TIMESTAMP_ADD(m, INTERVAL 1 MONTH)", UnsupportedSql, "the unit of TIMESTAMP_ADD"),
        ("DATE_ADD(d, INTERVAL 10001 YEAR)", UnsupportedSql, "at most 10000 years"),
        ("DATE_ADD(d, INTERVAL '1-2' YEAR TO MONTH)", QueryError, "the unit of DATE_ADD"),
        ("x + INTERVAL 1 DAY", SchemaError, "what an INTERVAL is added to"),
        ("d * INTERVAL 1 DAY", SchemaError, "an operand of *"),
        ("INTERVAL 1 DAY IS NULL", UnsupportedSql, "an INTERVAL must be added"),
        (
            "DATE_DIFF(d, e, HOUR)",
            UnsupportedSql,
            "must be DAY, WEEK, ISOWEEK, MONTH",
        ),
        ("TIMESTAMP_DIFF(m, n, MONTH)", UnsupportedSql, "the part of TIMESTAMP_DIFF"),
        ("LAST_DAY(d, YEAR)", UnsupportedSql, "LAST_DAY is that of the MONTH"),
        ("WIDTH_BUCKET(x, 3, 3, 4)", UnsupportedSql, "a lower bound below the upper"),
        ("WIDTH_BUCKET(x, 0, x, 4)", UnsupportedSql, "must be literals"),
        ("WIDTH_BUCKET(x, 0, 1, 2.5)", UnsupportedSql, "1 to 1000000 buckets"),
        ("LEFT(s, x)", UnsupportedSql, "must be an integer literal"),
        ("LEFT(s, -1)", UnsupportedSql, "must be an integer literal"),
        ("RIGHT(s, 99999999)", UnsupportedSql, "at most 1000000"),
        ("REPLACE(s, 'a', 'bc')", UnsupportedSql, "no longer than what it looks for"),
        ("REPLACE(s, 'a', '漢')", UnsupportedSql, "no longer than what it looks for"),
        ("REPLACE(s, '', 'a')", UnsupportedSql, "not empty"),
        ("REPLACE(s, s, 'a')", UnsupportedSql, "a string literal"),
        ("ENDS_WITH(s, s)", UnsupportedSql, "a string literal"),
        (
            "REGEXP_CONTAINS(s, r'(a+)+b')",
            UnsupportedSql,
            "a regular expression must not repeat what it captures",
        ),
        ("PARSE_DATE('%Y', s)", UnsupportedSql, "the function"),
        ("LPAD(s, 100000000, 'a')", UnsupportedSql, "the function LPAD is not supported"),
        ("NULL IS DISTINCT FROM NULL", UnsupportedSql, "must compare a column"),
        ("d IS DISTINCT FROM x", SchemaError, "values of one type"),
        ("DATE(x)", SchemaError, "CAST cannot turn FLOAT64 into DATE"),
        ("DATE(b)", SchemaError, "CAST cannot turn BOOL into DATE"),
    ],
)
def test_what_is_not_answered_is_named(text: str, error: type[QueryError], phrase: str) -> None:
    with pytest.raises(error, match=phrase.replace("*", r"\*").replace("(", r"\(")):
        evaluated(text)
