"""Every function a query may call is total on PostgreSQL, and has there the value it has in DuckDB."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import sqlglot

from sfumato.errors import UnsupportedSql
from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.relations import relation_layer
from sfumato.queries.engines.compilation.terms import TypedSql
from sfumato.queries.engines.dialects.base import Dialect
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.postgres.connection import open_connection
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.plan.query import ColumnType, Expression, Scan
from sfumato.queries.sql.expressions.scalar import read_expression
from sfumato.queries.sql.parser import PrivateSql
from tests.postgres import Cluster
from tests.queries.engines.compilation.test_expressions import (
    _READ,
    _READ_EXACTLY,
    _ROUNDED,
    EXPRESSIONS,
    _nasty,
    _Scope,
)

pytestmark = pytest.mark.postgres

_MORE = """
CAST(x * y AS STRING); CAST(x / y AS STRING); CAST(x + y AS STRING); CAST(x - y AS STRING); EXP(x * 100)
CAST(POWER(x, y) AS STRING); ROUND(x / 3, 2); ROUND(x * 3, 0); CAST(CAST(i AS FLOAT64) AS STRING)
CAST(i / 7 AS STRING); ((x + y) * (x - y)) / ((x * x) + 1) * (y - x); -(x + y); ABS(i - j); ABS(-i)
LEAST(x * y, x + y, i); CAST(x AS STRING) < s; CAST(i AS STRING) || s; i * i * i; (i + j) * (i - j)
CAST(x * 1e300 AS INT64); IF(x > 0, x * 1e308, x / 1e-308); MOD(i + 1, j - 1); TRIM(s || ' '); s > 'a'
"""
_CONSTANTS = ["1e308", "-1e308", "5e-324", "1e-300", "0.0", "-0.0", "1.0", "-1.5", "1e150", "1e200"]
_STEPS = ["{p} {sign} ({q})", "IF(x > 0, {p} {sign} ({q}), x)", "x {sign} ({q})", "{p} {sign} x"]
_POWERS = [
    "POWER({p}, {q})",
    "POWER(x, {q})",
    "POWER({p}, x)",
    "POWER(IF(x > 0, {p}, {q}), y)",
    "ROUND({p}, 3)",
]


_TOGETHER = 40
"""Expressions of one statement."""


@dataclass(frozen=True)
class _Both:
    duckdb: DuckDBEngine
    postgres: PostgresEngine
    connection: psycopg.Connection[Any]

    def expression(self, text: str) -> Expression:
        tree = sqlglot.parse_one(f"SELECT {text}", read=PrivateSql()).expressions[0]
        return read_expression(tree, _Scope(self.duckdb.schemas["data"]), "x")

    def sql(self, texts: Sequence[str], engine: DuckDBEngine | PostgresEngine, dialect: Dialect) -> str:
        scan = Scan("data", self.duckdb.schemas["data"], None)
        layer = relation_layer(scan, engine._tables, dialect)
        items = ", ".join(
            f"{render(self.expression(text), layer.columns, dialect)} AS e{at}"
            for at, text in enumerate(texts)
        )
        return f"SELECT {items} FROM ({layer.sql}) AS r"

    def check(self, *texts: str) -> None:
        """Compare all rows, and where the planner may merge subqueries: then constants take another path.

        Many texts are one statement of the server's, most of whose cost is not for them; but not of DuckDB's,
        where zeros of both signs in one statement become one.
        """
        for some in (texts[at : at + _TOGETHER] for at in range(0, len(texts), _TOGETHER)):
            expected = [self._expected(text) for text in some]
            sql = self.sql(some, self.postgres, self.postgres._dialect)
            for each in (sql, sql.replace(" OFFSET 0", "")):
                got = list(zip(*self.connection.execute(each).fetchall(), strict=True))
                for text, found, right in zip(some, got, expected, strict=True):
                    assert list(map(repr, found)) == list(map(repr, right)), text

    def _expected(self, text: str) -> list[Any]:
        rows = self.duckdb._connection.execute(self.sql([text], self.duckdb, DUCKDB)).fetchall()
        return [value for (value,) in rows]


@pytest.fixture(scope="module")
def both(postgres: Cluster) -> Iterator[_Both]:
    url = postgres.database()
    table = _nasty()
    with DuckDBEngine(open_source({"data": table}), threads=1) as duckdb:
        _load(url, duckdb)
        source = PostgresSource(url)
        with PostgresEngine(source) as engine, open_connection(source) as connection:
            yield _Both(duckdb, engine, connection)


def _load(url: str, duckdb: DuckDBEngine) -> None:
    """Put DuckDB's table into the database, moments that only DuckDB holds as infinity."""
    moments = (
        f"CASE WHEN {name} BETWEEN {type_} '0001-01-01' AND {type_} '{last}' "
        f"THEN CAST({name} AS VARCHAR) WHEN {name} IS NOT NULL THEN 'infinity' END"
        for name, type_, last in (
            ("d", "DATE", "9999-12-31"), ("e", "DATE", "9999-12-31"),
            ("m", "TIMESTAMP", "9999-12-31 23:59:59.999999"),
            ("n", "TIMESTAMP", "9999-12-31 23:59:59.999999"),
        )
    )  # fmt: skip
    rows = duckdb._connection.execute(f"SELECT i, j, x, y, s, t, {', '.join(moments)}, b FROM t0").fetchall()
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE TABLE data (i bigint, j bigint, x double precision, y double precision, s text, t text, "
            "d date, e date, m timestamp, n timestamp, b boolean)"
        )
        with connection.cursor() as cursor:
            values = ", ".join(["%s"] * 11)
            cursor.executemany(f"INSERT INTO data VALUES ({values})", rows)


def _same_letters(text: str) -> bool:
    """Capital letters of more than one letter, and remainders of floats, differ by design."""
    return not re.fullmatch(r"UPPER\(s\)|MOD\(x, y\)", text)


def test_values(both: _Both) -> None:
    more = re.split(r"[;\n]\s*", _MORE.strip())
    both.check(*filter(_same_letters, EXPRESSIONS), *more, *(f"CAST(s AS {t})" for t in _READ))


@pytest.mark.parametrize("sign", list("+-*/"))
def test_arithmetic_with_constants(both: _Both, sign: str) -> None:
    pairs = itertools.product(_CONSTANTS, _CONSTANTS)
    both.check(*(step.format(p=p, q=q, sign=sign) for p, q in pairs for step in _STEPS))


def test_powers_of_constants(both: _Both) -> None:
    pairs = itertools.product(_CONSTANTS[::2], _CONSTANTS)
    both.check(*(power.format(p=p, q=q) for p, q in pairs for power in _POWERS))


@pytest.mark.parametrize("target", list(_READ))
def test_texts_are_read_by_the_strict_rule(both: _Both, target: str) -> None:
    source, texts = (
        "(VALUES " + ", ".join(["(%s::text)"] * len(_READ[target])) + ") AS v (t)",
        list(_READ[target]),
    )
    dialect = both.postgres._dialect
    type_ = both.expression(f"CAST(s AS {target})").type
    text = dialect.cast(dialect.cast("t", both.expression("s").type, type_), type_, both.expression("s").type)
    query = f'SELECT {text.replace("%", "%%")} FROM (SELECT t COLLATE "C" AS t FROM {source}) AS r'
    assert [str(row[0]) for row in both.connection.execute(query, texts).fetchall()] == list(
        _READ[target].values()
    )


@pytest.mark.parametrize("target", list(_READ_EXACTLY))
def test_texts_are_read_as_digits(both: _Both, target: str) -> None:
    texts = [*_READ_EXACTLY[target], *_ROUNDED]
    rows = f"(VALUES {', '.join(['(%s::text)'] * len(texts))}) AS v (t)"
    read = {}
    for nested in (f"CAST(s AS {target})", f"CAST(CAST(s AS NUMERIC) AS {target})"):
        column = {"s": TypedSql("t", ColumnType.TEXT)}
        here = render(both.expression(nested), column, both.postgres._dialect)
        there = render(both.expression(nested), column, DUCKDB)
        query = f'SELECT {here.replace("%", "%%")} FROM (SELECT t COLLATE "C" AS t FROM {rows}) AS r'
        read[nested] = [row[0] for row in both.connection.execute(query, texts).fetchall()]
        listed = both.duckdb._connection.execute(f"SELECT {there} FROM unnest($1) AS r(t)", [texts])
        assert read[nested] == [row[0] for row in listed.fetchall()]
    written = [str(value) for value in read[f"CAST(s AS {target})"][: -len(_ROUNDED)]]
    assert written == list(_READ_EXACTLY[target].values())


def test_capital_letters_beyond_ascii_are_unicodes(both: _Both) -> None:
    sql = both.sql(["UPPER('ÄÖaß')"], both.postgres, both.postgres._dialect)
    assert both.connection.execute(f"{sql} LIMIT 1").fetchall() == [("ÄÖASS",)]


def test_the_remainder_of_floats_is_refused(both: _Both) -> None:
    with pytest.raises(UnsupportedSql, match="INT64"):
        both.check("MOD(x, y)")


def test_letters_never_outgrow_what_the_server_holds(both: _Both) -> None:
    """In capitals this letter takes three times its bytes."""
    text = both.postgres._dialect.text_function("upper", "t")
    for count, expected in ((1 << 10, 6 << 10), ((1 << 25) + 1, None)):
        made = f'SELECT repeat(chr(912), {count}) COLLATE "C" AS t'
        assert both.connection.execute(f"SELECT octet_length({text}) FROM ({made}) AS r").fetchall() == [
            (expected,)
        ]
