"""The digest that the server computes is that of its definition, and every change of the rows changes it."""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Any

import psycopg
import pytest

from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.engines.stored_tables import digest_tables

pytestmark = pytest.mark.postgres

_KEY = bytes(range(32))
_ROWS: list[tuple[int | None, float | None, str | None]] = [
    (1, 0.5, "a"), (1, 0.5, "a"), (2, float("nan"), "é"), (None, None, None), (-7, -0.0, ""),
    (3, 1e300, None),
]  # fmt: skip


def _field(oid: int, value: bytes | None) -> bytes:
    size = -1 if value is None else len(value)
    return struct.pack("!Ii", oid, size) + (value or b"")


def _record(row_key: bytes, row: tuple[int | None, float | None, str | None]) -> bytes:
    """Return a row of int4, float8 and text as PostgreSQL sends a record, behind a key that fills a block."""
    i, x, s = row
    head = struct.pack("!i", 4) + _field(17, row_key + bytes(20))
    assert len(head) == 64
    return head + b"".join((
        _field(23, None if i is None else struct.pack("!i", i)),
        _field(701, None if x is None else struct.pack("!d", x)),
        _field(25, None if s is None else s.encode()),
    ))  # fmt: skip


def test_the_digest_is_that_of_its_definition(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as database:
        database.execute("CREATE TABLE data (i int, x float8, s text, m money)")
        with database.cursor() as cursor:
            cursor.executemany("INSERT INTO data VALUES (%s, %s, %s, 1)", _ROWS)
    row_key = hmac.digest(_KEY, b"postgresql rows data", "sha256")
    words = [struct.unpack("<qq", hashlib.sha256(_record(row_key, row)).digest()[:16]) for row in _ROWS]
    sums = [len(_ROWS), sum(first for first, _ in words), sum(second for _, second in words)]
    with PostgresEngine(PostgresSource(postgres_url)) as engine:
        expected = digest_tables(
            _KEY, b"sfumato.content.postgresql 2", engine._tables, lambda _: [b"%d" % n for n in sums]
        )
        assert engine.fingerprint(_KEY) == expected


def test_every_type_that_a_query_can_use_is_digested(postgres_url: str) -> None:
    changes = {
        "smallint": ("1", "2"), "bigint": ("1", "2"), "real": ("0.1", "0.2"), "numeric": ("1.0", "1.00"),
        "numeric(9, 2)": ("1", "1.01"), "boolean": ("t", "f"), "text": ("a", "a "), "varchar(3)": ("a", "A"),
        "char(4)": ("a", "b"), "uuid": ("0" * 32, "0" * 31 + "1"), "date": ("2024-01-01", "infinity"),
        "timestamp": ("2024-01-01", "2024-01-01 00:00:00.000001"), "timestamptz": ("epoch", "epoch -1 day"),
        "time": ("12:00", "12:01"), "inet": ("10.0.0.1", "10.0.0.1/31"), "jsonb": ("[1]", "[1.0]"),
        "int[]": ("{1,NULL}", "{1,0}"), "numeric[]": ("{1}", "{2}"), "mood": ("sad", "glad"),
        "small": ("1", "2"), "timestamptz[]": ("{epoch}", "{infinity}"), "money": ("1", "2"),
    }  # fmt: skip
    changes["timestamptz"] = ("2024-01-01 00:00+00", "2024-01-01 00:00+01")
    with psycopg.connect(postgres_url, autocommit=True) as database:
        database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN small AS smallint")
        items = ", ".join(f"c{n} {type_}" for n, type_ in enumerate(changes))
        database.execute(f"CREATE TABLE data ({items})")
        with database.cursor() as cursor:
            values = [first for first, _ in changes.values()]
            cursor.execute(f"INSERT INTO data VALUES ({', '.join(['%s'] * len(values))})", values)
        found = {_digest(postgres_url)}
        for n, (type_, (first, second)) in enumerate(changes.items()):
            _set(database, n, second)
            changed = _digest(postgres_url)
            assert (changed in found) == (type_ == "money"), type_  # of no type that a query can use
            found.add(changed)
            _set(database, n, None)
            assert (_digest(postgres_url) in found) == (type_ == "money"), type_
            _set(database, n, first)
            assert _digest(postgres_url) in found, type_


def _set(database: psycopg.Connection[Any], n: int, value: str | None) -> None:
    database.execute(f"UPDATE data SET c{n} = %s", [value])


def _digest(url: str) -> str:
    with PostgresEngine(PostgresSource(url)) as engine:
        return engine.fingerprint(_KEY)


def test_rows_that_move_between_columns_and_tables_are_noticed(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as database:
        database.execute("CREATE TABLE one (a text, b text); CREATE TABLE two (a text, b text)")
        database.execute("INSERT INTO one VALUES ('ab', 'c'); INSERT INTO two VALUES ('x', NULL)")
        found = {_digest(postgres_url)}
        for change in (
            "UPDATE one SET a = 'a', b = 'bc'",
            "UPDATE one SET a = 'bc', b = 'a'",
            "WITH gone AS (DELETE FROM one RETURNING *) INSERT INTO two SELECT * FROM gone",
            "UPDATE two SET b = '' WHERE b IS NULL",
            "INSERT INTO two SELECT * FROM two",
        ):
            database.execute(change)
            assert _digest(postgres_url) not in found, change
            found.add(_digest(postgres_url))
