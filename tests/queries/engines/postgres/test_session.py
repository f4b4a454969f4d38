"""A session over PostgreSQL: what it reads, what it refuses, and what a lost connection costs."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import (
    BudgetExceeded,
    EngineError,
    LedgerMismatch,
    MissingExtra,
    ParameterError,
    SchemaError,
    SourceError,
)
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from tests.postgres import Cluster
from tests.queries.tables_in_postgres import load
from tests.run_time import run_time

pytestmark = pytest.mark.postgres

_COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-7) COUNT(*) AS n FROM people"
_BY_STATE = """
    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0, max_groups_contributed=1,
        group_selection_strategy=PUBLIC_GROUPS)
    state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, 100)) AS income
    FROM people RIGHT OUTER JOIN (SELECT DISTINCT state FROM states) USING (state) GROUP BY state"""
_BUDGET: dict[str, Any] = {"privacy_unit": "person", "epsilon": 1.0, "delta": 1e-6}
if run_time(__name__):
    _PEOPLE = pa.table({
        "person": list(range(3000)),
        "state": ["CA", "NY", "TX"] * 1000,
        "income": [float(i % 100) for i in range(3000)],
    })  # fmt: skip


def _spent(session: sf.Session) -> float:
    epsilon = session.ledger.spent().epsilon
    assert epsilon is not None
    return epsilon


@pytest.fixture
def url(postgres_url: str) -> str:
    with psycopg.connect(postgres_url) as connection:
        load(connection, "people", _PEOPLE)
        load(connection, "states", pa.table({"state": ["CA", "NY", "WA"]}))
    return postgres_url


@pytest.fixture
def database(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def _people(url: str) -> PostgresSource:
    return PostgresSource(url, tables=["people"])


def test_from_address_to_receipt(url: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    states = PostgresSource(url, tables=["states"])
    with sf.connect({"people": url}, public=states, ledger=ledger, **_BUDGET) as session:
        release = session.sql(_BY_STATE)
    rows = release.to_arrow().to_pylist()
    assert [row["state"] for row in rows] == ["CA", "NY", "WA"]
    assert [abs(row["n"] - n) < 200 for row, n in zip(rows, (1000, 1000, 0), strict=True)] == [True] * 3
    with sf.connect(_people(url), public=states, ledger=ledger, **_BUDGET) as session:
        assert session.sql(_BY_STATE).to_arrow().equals(release.to_arrow())  # committed, and free
        session.sql(_COUNT)
        with pytest.raises(BudgetExceeded):
            session.sql(_COUNT.replace("0.5", "0.6"))


def test_a_session_answers_from_the_rows_it_was_opened_on(
    url: str, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    with sf.connect(_people(url), ledger=ledger, **_BUDGET) as session:
        database.execute("DELETE FROM people WHERE person >= 100")
        assert abs(session.sql(_COUNT).to_arrow()["n"][0].as_py() - 3000) < 200
    with pytest.raises(LedgerMismatch, match="another content"):
        sf.connect(_people(url), ledger=ledger, **_BUDGET)
    with sf.connect(_people(url), ledger=ledger, new_version=True, **_BUDGET) as session:
        assert _spent(session) > 0.4


def test_the_content_is_known_wherever_rows_lie(
    url: str, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    def fingerprint() -> str:
        with PostgresEngine(_people(url)) as engine:
            return engine.fingerprint(b"key" * 8)

    first = fingerprint()
    database.execute("UPDATE people SET income = income WHERE person < 50")
    database.execute("VACUUM FULL people")
    assert fingerprint() == first
    database.execute("UPDATE people SET income = income + 1e-9 WHERE person = 7")
    changed = fingerprint()
    assert changed != first
    database.execute("UPDATE people SET income = 7 WHERE person = 7")
    assert fingerprint() == first
    database.execute("INSERT INTO people SELECT * FROM people WHERE person IN (7, 8)")
    database.execute("DELETE FROM people WHERE person = 8")
    assert fingerprint() not in (first, changed)
    with PostgresEngine(_people(url)) as engine:
        assert engine.fingerprint(b"1" * 16) != engine.fingerprint(b"2" * 16)


@pytest.mark.parametrize(
    "change",
    [
        "TRUNCATE people",
        "DROP TABLE people",
        "ALTER TABLE people ALTER income TYPE real",
        "DROP TABLE people; CREATE TABLE people (person bigint, state text, income double precision)",
        "ALTER TABLE people RENAME person TO who",
        "ALTER TABLE people RENAME TO persons; ALTER TABLE others RENAME TO people",
        """ALTER TABLE people RENAME person TO x; ALTER TABLE people RENAME income TO person;
        ALTER TABLE people RENAME x TO income""",
        "CREATE TABLE more () INHERITS (people)",
    ],
)
def test_a_table_that_is_no_longer_the_same_is_not_asked(
    change: str, url: str, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE others AS SELECT * FROM people")
    with sf.connect(_people(url), **_BUDGET) as session:
        database.execute(change)
        with pytest.raises(SourceError, match="connect again"):
            session.sql(_COUNT)
        assert _spent(session) == 0


def _kill_worker(url: str, told: list[int]) -> None:
    """End the session that computes the answer, as soon as it does."""
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(6000):
            found = connection.execute(
                "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                "application_name = 'sfumato' AND state = 'active' AND query LIKE 'SELECT * FROM (S%m0%'"
            ).fetchall()
            if found[0][0]:
                told.append(found[0][0])
                return
            time.sleep(0.005)


def test_a_connection_that_ends_in_mid_query_charges_once(
    url: str, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    database.execute("INSERT INTO people SELECT i, 'CA', i % 50 FROM generate_series(3000, 400000) AS i")
    ledger = tmp_path / "ledger"
    with sf.connect(_people(url), ledger=ledger, **_BUDGET) as session:
        told: list[int] = []
        killer = threading.Thread(target=_kill_worker, args=(url, told))
        killer.start()
        with pytest.raises(EngineError, match="the charge stays") as caught:
            session.sql(_COUNT)
        killer.join()
        assert told == [1]
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        spent = _spent(session)
        assert 0.4 < spent < 0.51
        # no noise was drawn, so asking again is answered under the charge, on a connection of its own
        again = session.sql(_COUNT)
        assert _spent(session) == spent
    with sf.connect(_people(url), ledger=ledger, **_BUDGET) as session:
        assert session.sql(_COUNT).to_arrow().equals(again.to_arrow())
    assert database.execute("SELECT count(*) FROM pg_class WHERE relname = 'parts'").fetchall() == [(0,)]


def test_changes_that_a_snapshot_outlives_are_no_concern(url: str, database: psycopg.Connection[Any]) -> None:
    with sf.connect(_people(url), **_BUDGET) as session:
        database.execute("ALTER TABLE people ADD COLUMN more int; CREATE INDEX ON people (person)")
        database.execute("UPDATE people SET state = 'WA'; ANALYZE people")
        assert abs(session.sql(_COUNT).to_arrow()["n"][0].as_py() - 3000) < 200


def test_a_session_whose_snapshot_is_lost_charges_nothing(
    url: str, database: psycopg.Connection[Any]
) -> None:
    with sf.connect(_people(url), **_BUDGET) as session:
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sfumato'"
        )
        with pytest.raises(SourceError, match="nothing was charged; connect again"):
            session.sql(_COUNT)
        assert _spent(session) == 0


def test_nothing_is_written(url: str, database: psycopg.Connection[Any]) -> None:
    """A trigger would tell: the transaction is read-only but for temporary tables, and is rolled back."""
    with PostgresEngine(_people(url)) as engine, engine._transaction() as connection:
        connection.execute("CREATE TEMPORARY TABLE mine (i int)")
        connection.execute("SET TRANSACTION READ ONLY")
        connection.execute("INSERT INTO mine VALUES (1)")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("DELETE FROM public.people")
        connection.execute("ROLLBACK")
    assert database.execute("SELECT count(*) FROM people").fetchall() == [(3000,)]


def test_names_in_the_way_are_not_called(url: str, database: psycopg.Connection[Any]) -> None:
    """Functions and operators are those of pg_catalog, whatever the schema of the tables holds."""
    database.execute(
        "CREATE FUNCTION public.abs(double precision) RETURNS double precision "
        "LANGUAGE sql AS 'SELECT 1 / 0.0'"
    )
    database.execute("CREATE TABLE parts (u int); CREATE TABLE groups_ (g int)")
    sql = _COUNT.replace("COUNT(*)", "SUM(ABS(income), contribution_bounds_per_group => (0, 100))")
    with sf.connect(_people(url), **_BUDGET) as session:
        assert session.sql(sql).to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("statement", "table", "message"),
    [
        ("CREATE VIEW it AS SELECT * FROM people", "it", "ordinary table"),
        ("CREATE MATERIALIZED VIEW it AS SELECT * FROM people WITH NO DATA", "it", "REFRESH MATERIALIZED"),
        ("ALTER TABLE people ENABLE ROW LEVEL SECURITY", "people", "row security"),
        ("SELECT 1", "People", "'people', 'states'"),
        ("CREATE TABLE it (a int, \"A\" int)", "it", "differ beyond case"),
        ("CREATE SCHEMA closed; CREATE TABLE closed.it (person int)", "it", "must hold the table"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_soundly_is_refused(
    statement: str, table: str, message: str, url: str, database: psycopg.Connection[Any]
) -> None:
    database.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD 'reader'")
    database.execute(
        "GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
    )
    try:
        database.execute(statement)
        as_reader = re.sub("//.*@", "//reader:reader@", url)
        with pytest.raises(SourceError, match=message):
            sf.connect(PostgresSource(as_reader, tables=[table]), **_BUDGET)
    finally:
        database.execute("REASSIGN OWNED BY reader TO sfumato; DROP OWNED BY reader; DROP ROLE reader")


_UNABLE = {
    "ALTER ROLE reader SET temp_file_limit = '10MB'": "GRANT SET ON PARAMETER temp_file_limit",
    "REVOKE EXECUTE ON FUNCTION hash_record_extended(record, bigint) FROM PUBLIC": "refusal in a trial",
    "REVOKE EXECUTE ON FUNCTION row_number() FROM PUBLIC": "refusal in a trial on rows",
}


@pytest.mark.parametrize("statement", _UNABLE)
def test_who_cannot_be_answered_is_told_before_anything_is_charged(
    statement: str, url: str, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    database.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'; GRANT SELECT ON people TO reader")
    as_reader = PostgresSource(re.sub("//.*@", "//reader:reader@", url), tables=["people"])
    try:
        with sf.connect(as_reader, ledger=tmp_path / "before", **_BUDGET) as session:
            session.sql(_COUNT)
        database.execute(statement.format(url.rpartition("/")[2]))
        with pytest.raises(SourceError, match=_UNABLE[statement]) as caught:
            sf.connect(as_reader, ledger=tmp_path / "after", **_BUDGET)
        assert caught.value.__context__ is None
        assert not (tmp_path / "after").exists()
    finally:
        database.execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.parametrize("change", ["TRUNCATE late", "ALTER TABLE visits DETACH PARTITION late"])
def test_partitions_are_read_with_their_table(
    change: str, url: str, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE visits (person int, day date) PARTITION BY RANGE (day)")
    database.execute("CREATE TABLE early PARTITION OF visits FOR VALUES FROM (MINVALUE) TO ('2024-01-01')")
    database.execute("CREATE TABLE late PARTITION OF visits FOR VALUES FROM ('2024-01-01') TO (MAXVALUE)")
    database.execute("INSERT INTO visits SELECT i, DATE '2023-01-01' + i FROM generate_series(0, 999) AS i")
    with sf.connect(PostgresSource(url, tables=["visits"]), **_BUDGET) as session:
        assert abs(session.sql(_COUNT.replace("people", "visits")).to_arrow()["n"][0].as_py() - 1000) < 200
        database.execute(change)
        with pytest.raises(SourceError, match="connect again"):
            session.sql(_COUNT.replace("people", "visits").replace("0.5", "0.4"))


def test_a_right_to_the_columns_that_are_meant_suffices(
    url: str, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    database.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
    database.execute("GRANT SELECT (person, state) ON people TO reader; GRANT SELECT ON states TO reader")
    address = re.sub("//.*@", "//reader:reader@", url)
    states = PostgresSource(address, tables=["states"])
    by_state = _BY_STATE.replace(", AVG(income, contribution_bounds_per_group => (0, 100)) AS income", "")
    try:
        with pytest.raises(SourceError, match=r"no right to 'income'.*name what to read by columns="):
            sf.connect(_people(address), **_BUDGET)
        ledger = tmp_path / "ledger"
        for columns in (["person", "state"], {"people": ["state", "person"]}):
            source = {"people": address}
            with sf.connect(source, public=states, columns=columns, ledger=ledger, **_BUDGET) as session:
                assert session.sql(by_state).to_arrow()["state"].to_pylist() == ["CA", "NY", "WA"]
                assert 0.4 < _spent(session) < 0.51
                with pytest.raises(SchemaError, match="income"):
                    session.sql(_BY_STATE)
        with pytest.raises(SchemaError, match="person"):
            sf.connect(_people(address), columns=["state"], **_BUDGET)
        with pytest.raises(ParameterError, match="columns of table 'people', got 'County'; name some of"):
            sf.connect(_people(url), columns=["person", "County"], **_BUDGET)
        with pytest.raises(ParameterError, match="stated table by table"):
            sf.connect(url, columns=["person"], **_BUDGET)
        # what is not read may change: the ledger knows the columns that are meant
        database.execute("UPDATE people SET income = income + 1")
        named: dict[str, Any] = {"columns": ["person", "state"], "public": states, "ledger": ledger}
        with sf.connect(_people(address), **named, **_BUDGET) as session:
            assert session.ledger.version == 1
    finally:
        database.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_a_materialized_view_is_a_table_until_it_is_refreshed(
    url: str, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE MATERIALIZED VIEW rich AS SELECT * FROM people WHERE income >= 50")
    with sf.connect(PostgresSource(url, tables=["rich"]), **_BUDGET) as session:
        assert abs(session.sql(_COUNT.replace("people", "rich")).to_arrow()["n"][0].as_py() - 1500) < 200
        database.execute("REFRESH MATERIALIZED VIEW rich")
        with pytest.raises(SourceError, match="connect again"):
            session.sql(_COUNT.replace("people", "rich").replace("0.5", "0.4"))
    # only what is named: a session over all tables of the schema is one of the ordinary ones
    with PostgresEngine(PostgresSource(url)) as engine:
        assert engine.private == ("people", "states")


def test_no_row_is_read_where_no_ledger_asks(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: PostgresEngine, key: bytes) -> str:
        raise AssertionError(key)

    monkeypatch.setattr(PostgresEngine, "fingerprint", refused)
    with sf.connect(_people(url), **_BUDGET) as session:
        assert abs(session.sql(_COUNT).to_arrow()["n"][0].as_py() - 3000) < 200


def test_bad_sources_are_refused(url: str, postgres: Cluster) -> None:
    for bad, reason in (
        (url + "x", "database that the server does not have"),
        (url.replace("sfumato:", "nobody:"), "refused user or password"),
        (url.replace(":" + postgres.password, ":wrong"), "refused user or password"),
        (url.replace(":" + postgres.password, ""), "none was given"),
        (url + "?no_such_word=1", "libpq cannot read"),
        (url + "?sslmode=require", "no agreement on TLS"),
        (url.replace(f":{postgres.port}", ":1"), "no answer from a server"),
        (url.replace("127.0.0.1", "no-such-host.invalid"), "no answer from a server"),
    ):
        with pytest.raises(SourceError, match=f"accept connections, got .*{reason}") as caught:
            sf.connect(bad, **_BUDGET)
        assert postgres.password not in str(caught.value)
        assert caught.value.__context__ is None
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"tables": []}, "each table once"),
        ({"tables": ["a", "a"]}, "each table once"),
        ({"tables": [1]}, "names"),
        ({"schema": ""}, "names"),
        ({"columns": 7}, "columns must be names"),
        ({"columns": []}, "one at least"),
        ({"columns": ["a", "a"]}, "each column once"),
        ({"columns": {"people": [""]}}, "columns must be names"),
        ({"columns": ["a"], "tables": ["a", "b"]}, "table by table"),
        ({"columns": {"c": ["a"]}, "tables": ["a", "b"]}, "tables that are meant"),
        ({"statement_timeout": 0}, "statement_timeout must be positive"),
        ({"statement_timeout": 3e6}, "at most 2000000 seconds"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ParameterError, match=message):
            PostgresSource(url, **arguments)
    with pytest.raises(ParameterError, match="address"):
        PostgresSource("mysql://user:secret@host/db")
    assert postgres.password not in repr(PostgresSource(url))
    with pytest.raises(ParameterError, match="lie in one database, but it names several"):
        sf.connect({"people": url, "more": "more.parquet"}, **_BUDGET)
    with pytest.raises(ParameterError, match="same database"):
        sf.connect(_people(url), public={"states": pa.table({"state": ["CA"]})}, **_BUDGET)
    with pytest.raises(ParameterError, match="same database"):
        sf.connect(_people(url), public=PostgresSource(url + "?", tables=["states"]), **_BUDGET)
    with pytest.raises(ParameterError, match="be left out"):
        sf.connect(_people(url), threads=2, **_BUDGET)
    with pytest.raises(ParameterError, match="one column in a database"):
        sf.connect(_people(url), **{**_BUDGET, "privacy_unit": ("person", "state")})
    with pytest.raises(SchemaError, match="private too"):
        sf.connect(_people(url), public=_people(url), **_BUDGET)
    with pytest.raises(SourceError, match="hold a table"):
        sf.connect(PostgresSource(url, schema="nothing"), **_BUDGET)
    with pytest.raises(ParameterError, match="frames"):
        sf.connect(_PEOPLE, public=PostgresSource(url), **_BUDGET)


def test_latin_databases_are_refused(postgres: Cluster) -> None:
    postgres.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(SourceError, match="UTF8"):
        sf.connect(postgres.url("latin"), **_BUDGET)


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"sfumato\[postgres\]"):
        sf.connect("postgresql://127.0.0.1/nothing", **_BUDGET)


def test_a_ledger_may_lie_beside_the_data(url: str) -> None:
    """The ledger's tables are in a schema of their own, so they are no part of the data."""
    with sf.connect(_people(url), ledger=url, **_BUDGET) as session:
        session.sql(_COUNT)
    with sf.connect(_people(url), ledger=url, **_BUDGET) as session:
        assert _spent(session) > 0.4


def test_settings_hold_in_every_transaction(url: str) -> None:
    """Behind a pool, a transaction may find a session of the server that another client has left."""
    with sf.connect(_people(url), **_BUDGET) as session:
        engine = session._engine
        assert isinstance(engine, PostgresEngine)
        assert engine._worker is not None
        for setting in (
            "TimeZone = 'Asia/Tokyo'",
            "DateStyle = 'SQL, DMY'",
            "search_path = public",
            "jit = on",
        ):
            engine._worker.execute(f"SET {setting}")
        with engine._transaction() as connection:
            found = [
                connection.execute(f"SHOW {name}").fetchall()[0][0]
                for name in ("TimeZone", "DateStyle", "search_path", "row_security", "jit")
            ]
    assert found == ["UTC", "ISO, YMD", "pg_catalog", "off", "off"]


def test_what_the_server_cannot_plan_is_refused_before_the_charge(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgreSQL, "absolute", lambda self, sql, type_: f"no_such_function({sql})")
    sql = _COUNT.replace("COUNT(*)", "SUM(ABS(income), contribution_bounds_per_group => (0, 1))")
    with sf.connect(_people(url), **_BUDGET) as session:
        with pytest.raises(SchemaError, match="suit the engine"):
            session.sql(sql)
        assert _spent(session) == 0
        assert session.sql(_COUNT).to_arrow().num_rows == 1


def test_names_and_texts_may_hold_anything(url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("""CREATE TABLE "we""ird %s {0} ; \\ name" ("per""son %" int, "st'ate {0}" text)""")
    database.execute(
        """INSERT INTO "we""ird %s {0} ; \\ name" SELECT i, 'a\\%''{}' FROM generate_series(1, 500) AS i"""
    )
    source = PostgresSource(url, tables=['we"ird %s {0} ; \\ name'])
    text = """
        SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-7, max_groups_contributed=1)
        UPPER(`st'ate {0}`) AS k, COUNT(*) AS n FROM `we"ird %s {0} ; \\\\ name`
        WHERE `st'ate {0}` = 'a\\\\%\\'{}' AND `st'ate {0}` <> '%s' GROUP BY k"""
    budget = {**_BUDGET, "privacy_unit": 'per"son %'}
    with sf.connect(source, **budget) as session:
        assert session.sql(text).to_arrow()["k"].to_pylist() == ["A\\%'{}"]
