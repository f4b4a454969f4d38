"""Every type of PostgreSQL is carried exactly, or no query can use it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from sfumato.errors import SchemaError
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.plan.measure import Measure, One
from sfumato.queries.plan.query import AggregationJob, Scan
from tests.postgres import Cluster
from tests.queries.every_type import violations

pytestmark = pytest.mark.postgres

_WHOLE = ["-9223372036854775808", "-1", "0", "9007199254740992", "9007199254740993", "9223372036854775807"]
_LARGE = [*_WHOLE, "9223372036854775808", "18446744073709551615", "18446744073709551616", "9" * 40]
_CARRIED = {
    "bool": ["true", "false"],
    "int2": ["-32768", "32767", "0"],
    "int4": ["-2147483648", "2147483647", "0"],
    "int8": _WHOLE,
    "float4": ["-3.4028235e38", "1e-45", "0.1", "16777216", "Infinity", "-Infinity"],
    "float8": ["-1.7976931348623157e308", "5e-324", "0.1", "9007199254740992", "Infinity", "-Infinity"],
    "numeric": [*_LARGE, "0.1", "0.10000000000000000001", "1e-300", "Infinity", "-Infinity"],
    "numeric(18,0)": ["-999999999999999999", "9007199254740993", "999999999999999999"],
    "numeric(18,3)": ["9007199254740.993", "9007199254740.992", "-0.001"],
    "numeric(9,2)": ["9999999.99", "0.01", "-0.01"],
    "text": ["", " ", "a", "A", "ä", "a\u0308", "1", "01", "\U0001f642"],
    "varchar(9)": ["", "a", "A"],
    "char(3)": ["a", "ab", "A"],
    "name": ["a", "A"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "mood": ["sad", "ok", "SAD"],
    "date": ["0001-01-01", "1970-01-01", "9999-12-31"],
    "timestamp": ["0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"],
    "timestamptz": ["0001-01-02 00:00:00+00", "1969-12-31 23:59:59.999999+00", "9999-12-30 00:00:00+00"],
    "cents": ["0.01", "0.02", "90071992547409.93", "90071992547409.92"],
    "time": ["00:00:00", "23:59:59.999999"],
    "timetz": ["00:00:00+00", "00:00:00+01"],
    "inet": ["10.0.0.1", "10.0.0.1/8", "::1"],
    "cidr": ["10.0.0.0/8", "10.0.0.0/9"],
    "jsonb": ["{}", '{"a": 1}', '{"a": "1"}'],
    "int4[]": ["{}", "{1}", "{1,NULL}"],
    "numeric[]": ["{1.0}", "{1.1}"],
}
_UNITS_ALONE = {
    "oid": ["0", "4294967295"],
    "money": ["$1.00", "$1.01", "-$92,233,720,368,547,758.08"],
    "interval": ["1 day", "25 hours"],
    "bytea": ["\\x00", "\\x0000", "\\x"],
    "bit(2)": ["00", "01"],
    "varbit": ["0", "00", "1"],
    "macaddr": ["08:00:2b:01:02:03", "08:00:2b:01:02:04"],
    "int4range": ["[1,2)", "[1,3)"],
}
_NOBODY = {"varbit[]": ["{0}"], "json": ["{}"], "point": ["(1,2)"], "xml": ["<a/>"], "tsvector": ["a"]}


@pytest.fixture(scope="module")
def typed(postgres: Cluster) -> str:
    """A table with a column of each type; its rows are a person each, and all values are there twice."""
    url = postgres.database()
    columns = {**_CARRIED, **_UNITS_ALONE, **_NOBODY}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TYPE mood AS ENUM ('sad', 'ok', 'SAD'); CREATE DOMAIN cents AS numeric(16, 2)"
        )
        items = ", ".join(f"c{at} {type_}" for at, type_ in enumerate(columns))
        connection.execute(f"CREATE TABLE data (person int, {items})")
        marks = ", ".join(f"CAST(%s AS {type_})" for type_ in columns)
        for line in range(2 * (max(map(len, columns.values())) + 1)):
            row = [values[at] if (at := line // 2) < len(values) else None for values in columns.values()]
            connection.execute(f"INSERT INTO data VALUES (%s, {marks})", [line, *row])
    return url


def _values(first: int, columns: dict[str, list[str]]) -> dict[str, list[Any]]:
    longest = max(map(len, [*_CARRIED.values(), *_UNITS_ALONE.values(), *_NOBODY.values()])) + 1
    return {
        f"c{at}": [value for value in (*values, *[None] * (longest - len(values))) for _ in range(2)]
        for at, values in enumerate(columns.values(), first)
    }


def test_every_type_is_carried_exactly(typed: str) -> None:
    with PostgresEngine(PostgresSource(typed)) as engine:
        types = [column.type for column in engine.schemas["data"].columns[1:]]
        assert [type_ is not None for type_ in types] == [
            type_ in _CARRIED for type_ in (*_CARRIED, *_UNITS_ALONE, *_NOBODY)
        ]
        assert violations(engine, _values(0, _CARRIED)) == []
        assert violations(engine, _values(len(_CARRIED), _UNITS_ALONE)) == []


def test_what_has_no_hash_is_no_unit_and_charges_nothing(typed: str) -> None:
    with PostgresEngine(PostgresSource(typed)) as engine:
        schema = engine.schemas["data"]
        for at, type_ in enumerate(_NOBODY, len(_CARRIED) + len(_UNITS_ALONE)):
            job = AggregationJob(Scan("data", schema, f"c{at}"), (), (Measure(One()),), None, None, None)
            with pytest.raises(SchemaError, match="must suit the engine"):
                engine.check(job)
            assert type_ in _NOBODY


def test_numbers_that_are_equal_are_one_unit(typed: str) -> None:
    """Equal arrays of numbers are written differently, but are one person."""
    with psycopg.connect(typed, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE same AS SELECT * FROM (VALUES ('{1.0}'::numeric[], 1.0), ('{1.00}', 1.00)) v(u, n)"
        )
    with PostgresEngine(PostgresSource(typed, tables=["same"])) as engine:
        for unit in ("u", "n"):
            job = AggregationJob(
                Scan("same", engine.schemas["same"], unit), (), (Measure(One()),), None, None, None
            )
            engine.check(job)
            assert engine.aggregate(job, bytes(32))["m0"].to_pylist() == [1]
