"""PostgreSQL computes what DuckDB computes, and moves by no more when one unit leaves."""

from __future__ import annotations

import datetime as dt
import math
import random
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings

import sfumato as sf
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.dialect import DUCKDB, DuckDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.engines.postgres.engine import PostgresEngine, _run
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.engines.self_test import run_self_test
from sfumato.queries.plan.measure import Measure
from sfumato.queries.plan.query import AggregationJob, Column, ColumnType, Named, Scan
from tests.chance import accepts_only, frequencies
from tests.postgres import Cluster
from tests.queries.engines.duckdb.test_engine import _column
from tests.queries.engines.measures import UNITS, row_count, row_sum
from tests.queries.engines.test_neighbors import _answer, _job, _on, _table, _violations
from tests.queries.exact_numbers import Number, Rows, check, columns, select
from tests.queries.one_order import rank_alike
from tests.queries.tables_in_postgres import load
from tests.run_time import run_time

pytestmark = pytest.mark.postgres

_SECRET = bytes(range(32))
if run_time(__name__):
    _PUBLIC = pa.table({"name": pa.array(["a", "b", "a", None, "zz"])})
_ROWS = row_count(10**6)


@pytest.fixture(scope="module")
def url(postgres: Cluster) -> str:
    return postgres.database()


@pytest.fixture
def database(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("seed", range(8))
def test_answers_are_those_of_duckdb(
    seed: int, url: str, database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rank_alike(monkeypatch, DuckDB, PostgreSQL)
    draw = random.Random(seed)
    table = _table(draw)
    load(database, "data", table)
    load(database, "public", _PUBLIC)
    sources = open_source({"data": table, "public": _PUBLIC})
    with (
        DuckDBEngine(sources, threads=1) as duckdb,
        PostgresEngine(PostgresSource(url, tables=["data", "public"])) as postgres,
    ):
        assert postgres.schema_text == duckdb.schema_text
        for _ in range(8):
            job, secret = _job(draw, duckdb.schemas["data"]), draw.randbytes(32)
            postgres.check(job)
            assert postgres.aggregate(job, secret).equals(duckdb.aggregate(job, secret)), job


def _fuzz(seed: int, url: str, database: psycopg.Connection[Any]) -> list[str]:
    """Draw a table, take one unit out, and return the violations of random jobs."""
    draw = random.Random(seed)
    table = _table(draw)
    units = table["u"].to_pylist()
    gone = draw.choice(units) if units else None
    stays = [not (unit == gone or (unit != unit and gone != gone)) for unit in units]  # noqa: PLR0124
    load(database, "data", table)
    load(database, "less", table.filter(pa.array(stays, pa.bool_())))
    load(database, "public", _PUBLIC)
    found = []
    with PostgresEngine(PostgresSource(url, tables=["data", "less", "public"])) as engine:
        for _ in range(6):
            job = _job(draw, engine.schemas["data"])
            while job.relation.unit is None:
                job = _job(draw, engine.schemas["data"])
            secret = draw.randbytes(32)
            less = replace(job, relation=_on(job.relation, "less"))
            whole, rest = (_answer(engine, each, secret) for each in (job, less))  # type: ignore[arg-type]
            found += _violations(job, whole, rest)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_one_unit_moves_no_answer_by_more_than_declared(
    seed: int, url: str, database: psycopg.Connection[Any]
) -> None:
    assert _fuzz(seed, url, database) == []


@pytest.mark.parametrize(
    ("method", "broken"),
    [
        ("rank", lambda self, words, columns: "random()"),
        ("clamped", lambda self, column, bounds, known=None: f"CAST({column} AS bigint)"),
    ],
)
def test_the_fuzz_catches_what_is_broken(
    method: str, broken: Any, url: str, database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgreSQL, method, broken)
    assert any(_fuzz(seed, url, database) for seed in range(40))


def _one(url: str, key: str | None, *measures: Measure, unit: str | None = "u") -> list[tuple[Any, ...]]:
    with PostgresEngine(PostgresSource(url, tables=["data"])) as engine:
        schema = engine.schemas["data"]
        keys: tuple[Named, ...] = ()
        if key is not None:
            found = schema.find(key)
            assert found is not None
            assert found.type is not None
            keys = (Named(key, _column(key, found.type)),)
        job = AggregationJob(Scan("data", schema, unit), keys, measures, 100 if keys else None, None, None)
        engine.check(job)
        return [tuple(row.values()) for row in engine.aggregate(job, _SECRET).to_pylist()]


@pytest.mark.parametrize(
    ("type_", "values", "distinct"),
    [
        ("bigint", [1, 1, 2, None], 2),
        ("smallint", [1, -1, 2, None], 3),
        ("numeric", ["1.0", "1.00", "NaN", "1e30", "1e30"], 2),
        ("double precision", ["0", "-0", "NaN", None, "Infinity"], 2),
        ("real", ["0", "-0", "NaN", None, "1.5"], 2),
        ("text", ["a", "A", "a ", "é", None], 4),
        ("varchar(5)", ["a", "A", "a ", None], 3),
        ("char(4)", ["a", "a ", "b", None], 2),
        ("uuid", [str(uuid.UUID(int=1)), str(uuid.UUID(int=1)), str(uuid.UUID(int=2))], 2),
        ("date", ["2024-01-01", "infinity", None, "0044-03-15 BC"], 3),
        ("timestamptz", ["2024-01-01 00:00+01", "2023-12-31 23:00+00", None], 1),
        ("boolean", [True, False, True, None], 2),
        ("mood", ["sad", "glad", "sad", None], 2),
        ("small", [1, 2, 1, None], 2),
    ],
)
def test_units_are_told_apart_as_they_are_stored(
    type_: str, values: list[Any], distinct: int, url: str, database: psycopg.Connection[Any]
) -> None:
    """Each unit keeps one of three groups, so a unit taken for two would count twice."""
    if type_ in ("mood", "small"):
        database.execute("DROP TABLE IF EXISTS data; DROP TYPE IF EXISTS mood; DROP DOMAIN IF EXISTS small")
        database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
        database.execute("CREATE DOMAIN small AS smallint CHECK (value < 10)")
    database.execute(f"DROP TABLE IF EXISTS data; CREATE TABLE data (u {type_}, k int)")
    with database.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO data VALUES (%s, %s)", [(value, k) for value in values for k in range(3)]
        )
    assert _one(url, None, UNITS) == [(distinct,)]
    with PostgresEngine(PostgresSource(url, tables=["data"])) as engine:
        scan = Scan("data", engine.schemas["data"], "u")
        job = AggregationJob(scan, (Named("k", _column("k", ColumnType.INTEGER)),), (UNITS,), 1, None, None)
        assert sum(engine.aggregate(job, _SECRET)["m0"].to_pylist()) == distinct


def test_columns_have_standard_types(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute(
        "DROP TABLE IF EXISTS data; DROP TYPE IF EXISTS mood; CREATE TYPE mood AS ENUM ('z', 'a')"
    )
    columns = {
        "u": ("int", ["1", "2", "3", "4"]),
        "n": ("numeric", ["1e400", "-1e400", "1e-400", "NaN"]),
        "r": ("real", ["0.1", "NaN", "-Infinity", None]),
        "d": ("date", ["infinity", "0044-03-15 BC", "10000-01-01", "9999-12-31"]),
        "t": ("timestamptz", ["9999-12-31 23:30-01", "2024-01-01 00:00+02", "-infinity", None]),
        "e": ("mood", ["z", "a", None, "a"]),
        "c": ("char(3)", ["b", "a", "B", None]),
        "j": ("jsonb", ['{"b": 1, "a": [true, null]}', '{"a":[true,null],"b":1}', None, '"x"']),
        "h": ("time", ["12:30", "24:00", None, "12:30:00.5"]),
        "i": ("inet", ["10.0.0.1", "10.0.0.0/8", "::1", None]),
        "a": ("text[]", ["{a,NULL}", '{"a","NULL"}', None, "{a,NULL}"]),
        "m": ("money", ["1", "2", None, None]),
    }
    items = ", ".join(f'"{name}" {type_}' for name, (type_, _) in columns.items())
    database.execute(f"CREATE TABLE data ({items})")
    rows = list(zip(*(values for _, values in columns.values()), strict=True))
    with database.cursor() as cursor:
        cursor.executemany(f"INSERT INTO data VALUES ({', '.join(['%s'] * len(columns))})", rows)
    with PostgresEngine(PostgresSource(url, tables=["data"])) as engine:
        assert engine.schemas["data"].columns == (
            Column("u", ColumnType.INTEGER), Column("n", ColumnType.DECIMAL), Column("r", ColumnType.FLOAT),
            Column("d", ColumnType.DATE), Column("t", ColumnType.TIMESTAMP), Column("e", ColumnType.TEXT),
            Column("c", ColumnType.TEXT), Column("j", ColumnType.TEXT), Column("h", ColumnType.TEXT),
            Column("i", ColumnType.TEXT), Column("a", ColumnType.TEXT, element=ColumnType.TEXT),
            Column("m", None),
        )  # fmt: skip
    digits = [("-1" + "0" * 400, 1), ("0." + "0" * 399 + "1", 1), ("1" + "0" * 400, 1), (None, 1)]
    assert _one(url, "n", _ROWS) == digits
    assert _one(url, "r", _ROWS) == [(-math.inf, 1), (0.10000000149011612, 1), (None, 2)]
    assert _one(url, "d", _ROWS) == [(dt.date(9999, 12, 31), 1), (None, 3)]
    assert _one(url, "t", _ROWS) == [(dt.datetime(2023, 12, 31, 22), 1), (None, 3)]
    assert _one(url, "e", _ROWS) == [("a", 2), ("z", 1), (None, 1)]
    assert _one(url, "c", _ROWS) == [("B", 1), ("a", 1), ("b", 1), (None, 1)]
    assert _one(url, "j", _ROWS) == [('"x"', 1), ('{"a": [true, null], "b": 1}', 2), (None, 1)]
    assert _one(url, "h", _ROWS) == [("12:30:00", 1), ("12:30:00.5", 1), ("24:00:00", 1), (None, 1)]
    assert _one(url, "i", _ROWS) == [("10.0.0.0/8", 1), ("10.0.0.1", 1), ("::1", 1), (None, 1)]
    assert _one(url, "a", _ROWS) == [('{a,"NULL"}', 1), ("{a,NULL}", 2), (None, 1)]


def test_a_value_whose_text_could_be_too_long_is_null(url: str, database: psycopg.Connection[Any]) -> None:
    """A gigabyte of text would be an error, which a row could cause."""
    database.execute("DROP TABLE IF EXISTS data; CREATE TABLE data (u int, a int[], j jsonb)")
    database.execute("INSERT INTO data VALUES (1, '{1}', '[1]')")
    database.execute(
        "INSERT INTO data SELECT 2, array_agg(i), to_jsonb(array_agg(i)) FROM generate_series(1, 99999) AS i"
    )
    # repetitions are stored compressed: a long text of a small value
    database.execute("INSERT INTO data VALUES (3, NULL, to_jsonb(repeat(chr(1), 1000000)))")
    assert _one(url, "a", _ROWS) == [("{1}", 1), (None, 2)]
    rows = _one(url, "j", _ROWS)
    assert [(None if key is None else len(key), n) for key, n in rows] == [(6000002, 1), (3, 1), (None, 1)]


_DIGITS = [(1, 0), (9, 2), (15, 0), (15, 15), (16, 1), (18, 0), (18, 3), (19, 0), (38, 10), (5, -3), (3, 5)]
_DIGITS += [(16, -2), (16, -3), (15, 200), (15, 201), (3, 400)]
_NUMBERS = {
    **{name: Number.of_bits(bits) for name, bits in (("smallint", 16), ("integer", 32), ("bigint", 64))},
    **{f"numeric({digits},{scale})": Number.of_digits(digits, scale) for digits, scale in _DIGITS},
    "numeric(18)": Number.of_digits(18, 0),
    "money_": Number.of_digits(18, 2),
    "numeric": Number.of_digits(60, 30),
}


@settings(max_examples=8)
@given(columns(_NUMBERS))
def test_every_number_is_carried_and_cast_exactly(postgres_numbers: str, rows: dict[str, Rows]) -> None:
    named = {f"v{at}": values for at, values in enumerate(rows.values())}
    with psycopg.connect(postgres_numbers, autocommit=True) as connection:
        items = ", ".join(f"v{at} {type_}" for at, type_ in enumerate(rows))
        connection.execute(f"DROP TABLE IF EXISTS data; CREATE TABLE data (line int, {items})")
        with connection.cursor() as cursor, cursor.copy("COPY data FROM STDIN") as copy:
            for line, row in enumerate(zip(*rows.values(), strict=True)):
                copy.write_row((line, *(None if value is None else f"{value:f}" for value in row)))
    with PostgresEngine(PostgresSource(postgres_numbers)) as engine, engine._transaction() as connection:
        sql, which = select(engine._tables["data"], engine._dialect)
        found = connection.execute(sql).fetchall()
        check(engine._tables["data"], which, list(zip(*found, strict=True))[1:], named)


@pytest.fixture(scope="module")
def postgres_numbers(postgres: Cluster) -> str:
    """A database with a domain over a domain of decimals."""
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DOMAIN cents AS numeric(18, 2); CREATE DOMAIN money_ AS cents")
    return url


def test_what_no_number_is_and_what_is_beyond_them(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("DROP TABLE IF EXISTS data; CREATE TABLE data (u int, n numeric, p numeric(9, 2))")
    database.execute(
        "INSERT INTO data VALUES (1, 'NaN', 'NaN'), (2, 'Infinity', 1.50), (3, '-Infinity', NULL), "
        "(4, 1e400, 0)"
    )
    with PostgresEngine(PostgresSource(url, tables=["data"])) as engine:
        sql, _ = select(engine._tables["data"], engine._dialect)
        with engine._transaction() as connection:
            found = connection.execute(sql).fetchall()
    inf, beyond = math.inf, "1" + "0" * 400
    assert found == [
        (1, *[None] * 9),
        (2, "Infinity", inf, None, "Infinity", "Infinity", None, 1.5, 1.5, 2),
        (3, "-Infinity", -inf, None, "-Infinity", "-Infinity", None, *[None] * 3),
        (4, beyond, inf, None, beyond, beyond, None, 0.0, 0.0, 0),
    ]


def test_a_unit_is_one_whatever_the_precision_of_its_column(
    url: str, database: psycopg.Connection[Any]
) -> None:
    database.execute("DROP TABLE IF EXISTS data, more; CREATE TABLE data (u numeric)")
    database.execute("CREATE TABLE more (u numeric(20, 2)); INSERT INTO more VALUES (1), (2), (NULL)")
    database.execute("INSERT INTO data VALUES (1.0), (1), (2.000), ('NaN'), (3)")
    text = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e4, delta=1e-9)
        COUNT(DISTINCT u) AS n FROM data JOIN more USING (u)"""
    source = PostgresSource(url, tables=["data", "more"])
    with sf.connect(source, privacy_unit="u", epsilon=1e5, delta=1e-3) as session:
        assert session.sql(text).to_arrow()["n"].to_pylist() == [2]
    database.execute("DROP TABLE more")


def test_sums_are_exact_beyond_what_floats_hold(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("DROP TABLE IF EXISTS data; CREATE TABLE data (u int, i bigint)")
    values = [2**60 + 1, 2**60 + 3, -(2**61) - 5, 7]
    with database.cursor() as cursor:
        cursor.executemany("INSERT INTO data VALUES (1, %s)", [(value,) for value in values])
    measure = row_sum(_column("i", ColumnType.INTEGER), 0, -(2**62), 2**62)
    assert _one(url, None, measure) == [(sum(values),)]
    assert _one(url, None, measure, unit=None) == [(sum(values),)]
    database.execute(
        "TRUNCATE data; INSERT INTO data SELECT i, 4611686018427387904 FROM generate_series(1, 6) AS i"
    )
    assert _one(url, None, measure) == [(2**62,)]


def test_the_trial_is_answered_as_by_duckdb(
    url: str, database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rank_alike(monkeypatch, DuckDB, PostgreSQL)
    database.execute("DROP TABLE IF EXISTS data; CREATE TABLE data (u int)")
    with (
        DuckDBEngine(open_source(pa.table({"u": [1]}))) as duckdb,
        PostgresEngine(PostgresSource(url, tables=["data"])) as engine,
        engine._transaction() as connection,
    ):
        answer = _run(connection, run_self_test(engine._dialect), _SECRET)
        assert answer.equals(duckdb._run(run_self_test(DUCKDB), None, _SECRET))
    assert sum(answer["m0"].to_pylist()) == 2


def test_an_empty_table_gives_one_row_without_keys_and_none_with(
    url: str, database: psycopg.Connection[Any]
) -> None:
    database.execute("DROP TABLE IF EXISTS data; CREATE TABLE data (u int, k text)")
    assert _one(url, None, UNITS, _ROWS) == [(0, 0)]
    assert _one(url, "k", UNITS) == []


def test_every_group_and_row_has_the_same_chance(url: str, database: psycopg.Connection[Any]) -> None:
    """Of 2000 units each keeps 1 of 8 groups and 1 of 8 rows."""
    units, keys = 2000, 8
    database.execute("DROP TABLE IF EXISTS data; CREATE TABLE data (u int, k text, x double precision)")
    database.execute(
        "INSERT INTO data SELECT u, 'key ' || k, k "
        "FROM generate_series(1, 2000) AS u, generate_series(0, 7) AS k"
    )
    with PostgresEngine(PostgresSource(url, tables=["data"])) as engine:
        scan = Scan("data", engine.schemas["data"], "u")
        key = Named("k", _column("k", ColumnType.TEXT))
        job = AggregationJob(scan, (key,), (UNITS,), 1, None, None)
        by_key = engine.aggregate(job, _SECRET)["m0"].to_pylist()
        x = _column("x", ColumnType.FLOAT)
        sums = (row_sum(x, 0, v, v + 1, v, v + 1) for v in range(keys - 1))
        row = engine.aggregate(AggregationJob(scan, (), (UNITS, *sums), None, 1, None), _SECRET).to_pylist()[
            0
        ]
    above = [row[f"m{v + 1}"] - v * units for v in range(keys - 1)]
    by_row = [a - b for a, b in zip([units, *above], [*above, 0], strict=True)]
    for counts in (by_key, by_row):
        assert sum(counts) == units
        first = {place: 1 / 16 if place else 9 / 16 for place in range(keys)}
        one_less = {place: 1 / 7 if place else 0 for place in range(keys)}
        even = dict.fromkeys(range(keys), 1 / keys)
        found = frequencies(dict(enumerate(counts)))
        accepts_only(found, even, mostly_the_first=first, never_the_first=one_less)
