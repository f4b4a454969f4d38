"""Sessions of a server: users who only read, a standby, limits on time and space, locks, lost clients."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import EngineError, ParameterError, SourceError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.dialect import DuckDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.postgres import engine as postgres_engine
from sfumato.queries.engines.postgres.connection import settings_of
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from tests.postgres import Cluster
from tests.queries.engines.test_neighbors import _job, _table
from tests.queries.one_order import rank_alike
from tests.queries.tables_in_postgres import load
from tests.run_time import run_time

pytestmark = pytest.mark.postgres

_BUDGET: dict[str, Any] = {"privacy_unit": "person", "epsilon": 1.0, "delta": 1e-6}
_COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-7) COUNT(*) AS n FROM people"
_SLOW = """
    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-7, max_groups_contributed=1)
    UPPER(state) AS k, COUNT(*) AS n FROM people GROUP BY k"""
if run_time(__name__):
    _PUBLIC = pa.table({"name": pa.array(["a", "b", "a", None, "zz"])})


@pytest.fixture
def url(postgres_url: str) -> str:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (person int, state text, income double precision)")
        connection.execute(
            "INSERT INTO people SELECT i, chr(65 + i % 5), i % 100 FROM generate_series(1, 3000) AS i"
        )
    return postgres_url


@pytest.fixture
def database(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@contextmanager
def _reader(database: psycopg.Connection[Any], url: str, *statements: str) -> Iterator[str]:
    """Yield the address for a user who may read, after some statements about this user."""
    database.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
    try:
        for statement in statements or ("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",):
            database.execute(statement.format(url.rpartition("/")[2]))
        yield re.sub("//.*@", "//reader:reader@", url)
    finally:
        database.execute("DROP OWNED BY reader; DROP ROLE reader")


def _count(session: sf.Session) -> int:
    return int(session.sql(_COUNT).to_arrow()["n"][0].as_py())


def _spent(session: sf.Session) -> float:
    return session.ledger.spent().epsilon or 0.0


_READ = "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
_ONLY_READS = {
    "by default": (_READ, "ALTER ROLE reader SET default_transaction_read_only = on"),
    "without TEMPORARY": (_READ, "REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC"),
}


@pytest.mark.parametrize("how", _ONLY_READS)
def test_a_user_who_only_reads_is_answered(
    how: str, url: str, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    with _reader(database, url, *_ONLY_READS[how]) as as_reader:
        with sf.connect(as_reader, ledger=tmp_path / "ledger", **_BUDGET) as session:
            assert abs(_count(session) - 3000) < 200
        with sf.connect(as_reader, ledger=tmp_path / "ledger", **_BUDGET) as session:
            assert 0.4 < _spent(session) < 0.51


@pytest.mark.parametrize("seed", range(6))
def test_one_statement_answers_as_the_tables_of_duckdb_do(
    seed: int, url: str, database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rank_alike(monkeypatch, DuckDB, PostgreSQL)
    draw = random.Random(1000 + seed)
    table = _table(draw)
    load(database, "data", table)
    load(database, "public", _PUBLIC)
    with (
        _reader(database, url, *_ONLY_READS["by default"]) as as_reader,
        DuckDBEngine(open_source({"data": table, "public": _PUBLIC}), threads=1) as duckdb,
        PostgresEngine(PostgresSource(as_reader, tables=["data", "public"])) as engine,
    ):
        assert not engine._makes_tables
        for _ in range(8):
            job, secret = _job(draw, duckdb.schemas["data"]), draw.randbytes(32)
            engine.check(job)
            assert engine.aggregate(job, secret).equals(duckdb.aggregate(job, secret)), job


def test_listed_groups_of_any_text_and_number_are_found_by_one_statement(
    url: str, database: psycopg.Connection[Any]
) -> None:
    """Five thousand groups are one text each: no statement grows too deep to be planned."""
    keys = ['a"b', "a\\b", "{c,d}", "NULL", "", " ", "'", "é", None]
    database.execute("CREATE TABLE odd (person int, k text)")
    with database.cursor() as cursor:
        cursor.executemany("INSERT INTO odd VALUES (%s, %s)", [(i, keys[i % 9]) for i in range(9000)])
    listed = [*keys, *(f"other {i}" for i in range(5000))]
    sql = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.9, delta=0, max_groups_contributed=1)
        k, COUNT(*) AS n FROM odd GROUP BY k"""
    with _reader(database, url, *_ONLY_READS["by default"]) as as_reader:
        source = PostgresSource(as_reader, tables=["odd"])
        with sf.connect(source, **{**_BUDGET, "delta": 0.0}) as session:
            rows = session.sql(sql, public_groups={"k": listed}).to_arrow().to_pylist()
    found = {row["k"]: row["n"] for row in rows}
    assert len(found) == 5009
    assert all(abs(found[key] - 1000) < 100 for key in keys)
    assert max(abs(n) for key, n in found.items() if key not in keys) < 100


def test_a_standby_server_is_asked_like_its_primary(postgres: Cluster, url: str, tmp_path: Path) -> None:
    """A real one: a copy of the server, which follows it."""
    with sf.connect(url, ledger=tmp_path / "ledger", **_BUDGET) as session:
        assert abs(_count(session) - 3000) < 200
    with Cluster(follows=postgres) as standby:
        there = standby.url(url.rpartition("/")[2])
        # the same content: the ledger that was made over the primary is its ledger
        with sf.connect(there, ledger=tmp_path / "ledger", **_BUDGET) as session:
            engine = session._engine
            assert isinstance(engine, PostgresEngine)
            with engine._transaction() as connection:
                assert connection.execute("SELECT pg_is_in_recovery()").fetchall() == [(True,)]
            assert 0.4 < _spent(session) < 0.51
            other = session.sql(_COUNT.replace("0.5", "0.4")).to_arrow()["n"][0].as_py()
            assert abs(other - 3000) < 200


def test_a_limit_on_temporary_files_is_lifted_where_the_user_may(
    url: str, database: psycopg.Connection[Any]
) -> None:
    limited = (_READ, "ALTER ROLE reader SET temp_file_limit = '64kB'")
    with _reader(database, url, *limited) as as_reader:
        with pytest.raises(SourceError, match="GRANT SET ON PARAMETER temp_file_limit") as caught:
            sf.connect(as_reader, **_BUDGET)
        assert caught.value.__context__ is None
        database.execute("GRANT SET ON PARAMETER temp_file_limit TO reader")
        with sf.connect(as_reader, **_BUDGET) as session:
            assert abs(_count(session) - 3000) < 200
        database.execute("REVOKE SET ON PARAMETER temp_file_limit FROM reader")


def test_a_statement_that_takes_too_long_ends_and_its_charge_stays(
    url: str, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    database.execute("INSERT INTO people SELECT i, md5(i::text), 1 FROM generate_series(3001, 400000) AS i")
    with sf.connect(url, ledger=tmp_path / "ledger", **_BUDGET) as session:
        session.sql(_COUNT.replace("0.5", "0.1"))
    with sf.connect(url, statement_timeout=0.02, **_BUDGET) as session:
        with pytest.raises(
            EngineError, match=r"within statement_timeout=0.02 seconds.*the charge stays"
        ) as e:
            session.sql(_SLOW)
        assert e.value.__context__ is None
        assert 0.4 < _spent(session) < 0.51
    with pytest.raises(SourceError, match="nothing was charged; raise statement_timeout") as refused:
        sf.connect(url, ledger=tmp_path / "ledger", statement_timeout=0.02, **_BUDGET)
    assert refused.value.__context__ is None


def test_no_limit_of_the_servers_own_ends_a_query(url: str, database: psycopg.Connection[Any]) -> None:
    limits = ("statement_timeout = '30ms'", "lock_timeout = '30ms'", "idle_session_timeout = '200ms'")
    roles = (_READ, *(f"ALTER ROLE reader SET {limit}" for limit in limits))
    with _reader(database, url, *roles) as as_reader, sf.connect(as_reader, **_BUDGET) as session:
        engine = session._engine
        assert isinstance(engine, PostgresEngine)
        with engine._transaction() as connection:
            connection.execute("SELECT pg_sleep(0.1)")
        time.sleep(0.4)  # longer than an idle session may live, by the role's setting
        assert abs(_count(session) - 3000) < 200


def test_limits_are_stated_once_and_where_they_are_understood(url: str) -> None:
    assert settings_of(PostgresSource(url, statement_timeout=1.5))["statement_timeout"] == "1500ms"
    assert settings_of(PostgresSource(url))["statement_timeout"] == "0"
    source = PostgresSource(url, statement_timeout=60)
    with pytest.raises(ParameterError, match="statement_timeout must be stated once"):
        sf.connect(source, statement_timeout=30, **_BUDGET)
    frame = pa.table({"person": [1]})
    with pytest.raises(ParameterError, match="statement_timeout must be left out for files"):
        sf.connect(frame, statement_timeout=30, **_BUDGET)
    with pytest.raises(ParameterError, match="columns must be left out for files"):
        sf.connect(frame, columns=["person"], **_BUDGET)


def test_who_locks_a_table_is_named_before_anything_is_charged(
    url: str, database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_engine, "LOCK_WAIT", "100ms")
    with _reader(database, url) as as_reader, sf.connect(as_reader, **_BUDGET) as session:
        with psycopg.connect(url, application_name="nightly load") as other:
            other.execute("LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
            who = rf"locked by another session \(process {other.info.backend_pid}, 'nightly load'\)"
            with pytest.raises(SourceError, match=who):
                session.sql(_COUNT)
            with pytest.raises(SourceError, match=who):
                sf.connect(as_reader, **_BUDGET)
        assert _spent(session) == 0
        assert abs(_count(session) - 3000) < 200


_KILLED = """
import sys, sfumato.queries.engines.postgres.engine as e
from sfumato.queries.engines.postgres import connection
from sfumato.queries.engines.postgres.source import PostgresSource
connection._NOTICE_LOST_CLIENT = connection._NOTICE_LOST_CLIENT.replace("5s", "50ms")
engine = e.PostgresEngine(PostgresSource(sys.argv[1]))
with engine._transaction() as connection:
    print("asks", flush=True)
    connection.execute("SELECT pg_sleep(600)")
"""


def test_the_query_of_a_killed_client_ends(url: str, database: psycopg.Connection[Any]) -> None:
    client = subprocess.Popen([sys.executable, "-c", _KILLED, url], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "asks\n"
    running = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(6%' AND state = 'active'"
    )
    for _ in range(200):
        if database.execute(running).fetchall() == [(1,)]:
            break
        time.sleep(0.05)
    os.kill(client.pid, signal.SIGKILL)
    client.communicate()
    for _ in range(200):
        if database.execute(running).fetchall() == [(0,)]:
            break
        time.sleep(0.05)
    assert database.execute(running).fetchall() == [(0,)]
