"""A ledger on a PostgreSQL server: lost connections, killed processes, altered tables, refused rights."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.errors import (
    BudgetExceeded,
    LedgerCorrupt,
    LedgerError,
    LedgerUnavailable,
    MissingExtra,
    ParameterError,
)
from sfumato.ledger import Budget, Ledger, Role
from sfumato.ledger.log.event_log import append_event
from sfumato.ledger.log.member_events import AccountSet
from sfumato.ledger.store.postgres_schema import FUNCTIONS, MAY_GRANT, NO_CURATOR
from sfumato.privacy import PureDP, Receipt
from tests.postgres import Cluster

LABS = Path(__file__).parents[1]
Open = Callable[..., Ledger]

pytestmark = pytest.mark.postgres


def run(url: str, *statements: str) -> list[Any]:
    """Run statements in one transaction, in the ledger's schema, and return the rows of the last."""
    with psycopg.connect(url) as connection:
        connection.execute("SET search_path = sfumato")
        for statement in statements:
            cursor = connection.execute(statement)
        return [] if cursor.description is None else cursor.fetchall()


def cut(url: str) -> int:
    """Let the server close every connection that a ledger has, as a network does; return how many."""
    (row,) = run(
        url,
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'sfumato ledger'",
    )
    return int(row[0])


@pytest.fixture
def ledger(postgres_url: str, open_ledger: Open) -> Ledger:
    """A ledger of 0.3 spent, with releases."""
    ledger = open_ledger(postgres_url)
    for request in "abc":
        ledger.commit(ledger.charge(PureDP(0.1), delta=0.0, request=request), request.encode() * 9000)
    return ledger


@pytest.fixture
def crashing(open_ledger: Open) -> Iterator[tuple[Ledger, Ledger, Callable[[], None]]]:
    """Return a ledger as two processes have it, on a server that writes nothing unasked, and its crash."""
    with Cluster() as cluster:
        # Whoever does not ask for it waits ten seconds for the disk.
        cluster.run("ALTER SYSTEM SET wal_writer_delay = '10s'")
        cluster.run("SELECT pg_reload_conf()")
        url = cluster.database()
        one, other = open_ledger(url), open_ledger(url)
        other.charge(PureDP(0.1), delta=0.0)
        with psycopg.connect(url) as victim, psycopg.connect(url, autocommit=True) as witness:
            process = victim.info.backend_pid

            def crash() -> None:
                # The server throws away all that is in memory, as after a loss of power, and starts again.
                os.kill(process, signal.SIGKILL)
                with contextlib.suppress(psycopg.OperationalError):
                    for _ in range(600):  # until it ends all connections, it would take new ones
                        witness.execute("SELECT 1")
                        threading.Event().wait(0.1)
                for _ in range(600):
                    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url):
                        return
                    threading.Event().wait(0.1)

            yield one, other, crash


def test_a_crash_of_the_server_takes_no_charge_that_was_returned(
    crashing: tuple[Ledger, Ledger, Callable[[], None]],
) -> None:
    one, other, crash = crashing
    receipts = [ledger.charge(PureDP(0.1), delta=0.0, request="r") for ledger in (one, other, one)]
    one.commit(receipts[-1], b"answer")
    crash()
    assert other.find("r") == b"answer"
    assert one.verify().charges == receipts[-1].sequence == 4


@pytest.mark.parametrize("refused", [False, True])
def test_what_another_saw_before_it_was_on_the_disk_is_there_after_a_crash(
    crashing: tuple[Ledger, Ledger, Callable[[], None]], monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    one, other, crash = crashing
    store: Any = one._store
    monkeypatch.setattr(
        store, "_finish", lambda: store._connection.exec_driver_sql("COMMIT")
    )  # and no further
    one.charge(PureDP(0.1), delta=0.0)
    if refused:
        with pytest.raises(BudgetExceeded):
            other.charge(PureDP(1.0), delta=0.0)
    else:
        assert other.entries()[-1].sequence == 2
    crash()
    assert other.verify().charges == 2


def test_what_only_the_server_itself_has_is_told_to_nobody(
    crashing: tuple[Ledger, Ledger, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, _ = crashing
    store: Any = one._store
    monkeypatch.setattr(
        store, "_finish", lambda: store._connection.exec_driver_sql("COMMIT")
    )  # and no further
    one.charge(PureDP(0.1), delta=0.0)
    assert len(other.entries()) == 2  # on the server's own disk, whose loss a synchronous standby survives
    seen: list[int] = []
    reading = threading.Thread(target=lambda: seen.append(len(other.entries())))
    url = store._engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("ALTER SYSTEM SET synchronous_standby_names = 'elsewhere'")
        owner.execute("SELECT pg_reload_conf()")
        while owner.execute("SHOW synchronous_standby_names").fetchone() != ("elsewhere",):
            threading.Event().wait(0.05)
        try:
            reading.start()
            reading.join(1.0)
            early = list(seen)
        finally:
            owner.execute("ALTER SYSTEM RESET synchronous_standby_names")
            owner.execute("SELECT pg_reload_conf()")
            reading.join(60.0)
    assert (early, seen) == ([], [2])


def test_commits_wait_for_the_disk_where_not_every_reader_can(ledger: Ledger, postgres_url: str) -> None:
    ledger.close()
    run(postgres_url, "REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) FROM PUBLIC")
    with Ledger.read(postgres_url) as again:
        store: Any = again._store
        assert not store._shares  # its user may sync, and another user who reads may not


def test_a_sync_is_shared_where_its_function_has_an_argument_more(
    ledger: Ledger, postgres_url: str, open_ledger: Open
) -> None:
    ledger.close()
    run(
        postgres_url,
        "SET allow_system_table_mods = on",
        "ALTER FUNCTION pg_catalog.pg_logical_emit_message(boolean, text, text) RENAME TO emit_before",
        "CREATE FUNCTION pg_catalog.pg_logical_emit_message(boolean, text, text, boolean DEFAULT false) "
        "RETURNS pg_lsn LANGUAGE sql AS 'SELECT pg_catalog.emit_before($1, $2, $3)'",
    )  # as PostgreSQL 17 has it
    again = open_ledger(postgres_url)
    assert again.charge(PureDP(0.1), delta=0.0).sequence == 4
    store: Any = again._store
    assert store._shares


@pytest.mark.parametrize("analyst", ["", "ada"])
def test_a_charge_waits_for_three_answers_of_the_server(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, analyst: str
) -> None:
    ledger.grant("ada", Budget.pure(epsilon=0.5))
    asked: list[str] = []

    def noted(send: Callable[..., Any]) -> Callable[..., Any]:
        def sent(connection: object, statement: object, *rest: Any, **more: Any) -> Any:
            asked.append(str(statement))
            return send(connection, statement, *rest, **more)

        return sent

    connection: Any = ledger._store._connection
    for name in ("execute", "exec_driver_sql"):
        monkeypatch.setattr(type(connection), name, noted(getattr(type(connection), name)))
    ledger.charge(PureDP(0.01), delta=0.0, analyst=analyst)
    del asked[:]  # the first one reads the accounts
    ledger.charge(PureDP(0.01), delta=0.0, analyst=analyst)
    assert [statement.split()[0] for statement in asked] == ["BEGIN", "INSERT", "COMMIT;"]


def test_a_connection_lost_while_idle_is_made_anew(ledger: Ledger, postgres_url: str) -> None:
    assert cut(postgres_url) == 1
    assert ledger.charge(PureDP(0.1), delta=0.0).sequence == 4
    assert cut(postgres_url) == 1
    assert ledger.verify().sound


def test_a_connection_lost_between_charge_and_commit_keeps_the_charge(
    ledger: Ledger, postgres_url: str
) -> None:
    receipt = ledger.charge(PureDP(0.1), delta=0.0, request="d")
    cut(postgres_url)
    ledger.commit(receipt, b"answer")
    assert ledger.find("d") == b"answer"


def test_a_connection_lost_in_a_charge_charges_nothing(
    ledger: Ledger, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*arguments: Any, **more: Any) -> Any:
        cut(postgres_url)
        return append_event(*arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.ledger.log.event_log.append_event", lose)
        with pytest.raises(LedgerUnavailable, match="nothing was charged") as told:
            ledger.charge(PureDP(0.1), delta=0.0)
    assert "perhaps" not in str(told.value)
    assert ledger.charge(PureDP(0.1), delta=0.0).sequence == 4
    assert ledger.verify().charges == 4


def test_a_connection_lost_in_storing_the_answer_says_that_the_charge_stays(
    ledger: Ledger, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*arguments: Any, **more: Any) -> Any:
        cut(postgres_url)
        return append_event(*arguments, **more)

    receipt = ledger.charge(PureDP(0.1), delta=0.0, request="d")
    with monkeypatch.context() as patched:
        patched.setattr("sfumato.ledger.log.event_log.append_event", lose)
        with pytest.raises(LedgerUnavailable, match="charge 4 stays, and its answer is not safely stored"):
            ledger.commit(receipt, b"answer")
    assert ledger.find("d") is None, "asking again is a new charge"
    assert [entry.committed for entry in ledger.entries()] == [True, True, True, False]
    again = ledger.charge(PureDP(0.1), delta=0.0, request="d")
    ledger.commit(again, b"fresh")
    assert ledger.find("d") == b"fresh"
    assert ledger.verify().sound


def test_a_connection_lost_in_the_commit_itself_may_have_charged(
    ledger: Ledger, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = ledger._store
    finish = store._finish

    def committed_but_not_told() -> None:
        finish()
        cut(postgres_url)
        store._connection.exec_driver_sql("SELECT 1")

    with monkeypatch.context() as patched:
        patched.setattr(store, "_finish", committed_but_not_told)
        with pytest.raises(LedgerUnavailable, match="it may have been charged all the same"):
            ledger.charge(PureDP(0.1), delta=0.0)
    assert len(ledger.entries()) == 4
    assert ledger.verify().sound


def test_a_server_that_stands_still_or_is_not_there_is_named_without_its_password(
    ledger: Ledger, postgres: Cluster, postgres_url: str
) -> None:
    del ledger
    nowhere = {
        postgres_url.replace(f":{postgres.port}/", ":1/"): "no answer from a server",
        postgres.url("no_such_database"): "a database that the server does not have",
        postgres.url(postgres_url.rpartition("/")[2], password="wrong"): "a refused user or password",
        f"{postgres_url}?sslmode=require": "no agreement on TLS",
        f"{postgres_url}?no_such_word=1": "an address that libpq cannot read",
    }
    for url, reason in nowhere.items():
        with pytest.raises(
            LedgerUnavailable, match=f"reachable, got {reason} .*; nothing was charged"
        ) as told:
            Ledger.read(url)
        assert postgres.password not in str(told.value)
        assert "wrong" not in str(told.value)
    with pytest.raises(LedgerUnavailable, match="got none"):
        Ledger.read(f"{postgres_url}?schema=other")
    assert postgres.password not in repr(Ledger.read(postgres_url))


@pytest.mark.parametrize(
    "address", ["postgresql://", "postgresql://host", "postgresql://user:secret@h", "postgresql://h:x/db"]
)
def test_a_broken_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(ParameterError, match="be an address with a database") as told:
        Ledger.read(address)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("schema", ["A", "x;y", 'a"b', "1a", "a" * 64])
def test_a_schema_is_one_plain_name(postgres_url: str, schema: str) -> None:
    with pytest.raises(ParameterError, match="schema must be one name"):
        Ledger.read(f"{postgres_url}?schema={schema}")


def test_several_ledgers_lie_in_one_database(postgres_url: str, open_ledger: Open) -> None:
    first, second = open_ledger(f"{postgres_url}?schema=first"), open_ledger(f"{postgres_url}?schema=user")
    first.charge(PureDP(1.0), delta=0.0)
    second.charge(PureDP(1.0), delta=0.0)
    assert first.ledger_id != second.ledger_id
    assert run(postgres_url, "SELECT count(*) FROM first.event") == [(2,)]


def test_a_schema_that_holds_something_else_is_refused(postgres_url: str, open_ledger: Open) -> None:
    run(postgres_url, "CREATE SCHEMA sfumato", "CREATE TABLE sfumato.other (x integer)")
    with pytest.raises(LedgerCorrupt, match="a schema that sfumato made"):
        open_ledger(postgres_url)


def test_an_empty_schema_made_beforehand_is_used(postgres_url: str, open_ledger: Open) -> None:
    run(postgres_url, "CREATE SCHEMA sfumato")
    assert open_ledger(postgres_url).charge(PureDP(0.1), delta=0.0).sequence == 1


def test_a_format_of_a_later_version_is_named(ledger: Ledger, postgres_url: str) -> None:
    del ledger
    run(postgres_url, "UPDATE head SET version = 2")
    with pytest.raises(LedgerUnavailable, match=r"got 2 in .*; upgrade sfumato"):
        Ledger.read(postgres_url)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET body = body",
        "DELETE FROM event",
        "TRUNCATE event",
        "UPDATE release SET dataset_version = 2",
        "DELETE FROM release WHERE charge = 1",
        "TRUNCATE release",
        "UPDATE secret SET key = key",
        "DELETE FROM secret",
        "TRUNCATE secret",
        "DELETE FROM head",
        "TRUNCATE head",
        "UPDATE head SET position = position - 1",
        "UPDATE head SET position = position + 2",
        "UPDATE head SET version = 0",
        "UPDATE head SET application = 'x'",
        "INSERT INTO event VALUES (3, 'charge', 9, '', '', '')",
        "INSERT INTO event VALUES (99, 'charge', 9, '', '', '')",
        "INSERT INTO event SELECT 8, kind, charge, body, previous, digest FROM event WHERE position = 2",
        "INSERT INTO secret VALUES (2, '')",
    ],
)
def test_the_tables_are_append_only(ledger: Ledger, postgres_url: str, statement: str) -> None:
    with pytest.raises((psycopg.errors.IntegrityError, psycopg.errors.UniqueViolation)):
        run(postgres_url, statement)
    assert ledger.verify().sound


TRIGGERS = (
    "event_refused",
    "release_refused",
    "secret_refused",
    "head_refused",
    "head_advanced",
    "claim_appended",
    "claim_grown",
    "claim_refused",
)


@pytest.mark.parametrize(
    "change",
    [
        *(f"DROP TRIGGER {name} ON {name.split('_')[0]}" for name in TRIGGERS),
        "ALTER TABLE event DISABLE TRIGGER event_appended",
        "ALTER TABLE event DISABLE TRIGGER ALL",
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger AS 'BEGIN END' LANGUAGE plpgsql",
        "CREATE TRIGGER more BEFORE INSERT ON event EXECUTE FUNCTION refuse_change()",
        "ALTER TABLE release RENAME TO elsewhere",
    ],
)
def test_altered_tables_are_found_when_the_ledger_is_opened(
    ledger: Ledger, postgres_url: str, change: str
) -> None:
    ledger.close()
    run(postgres_url, change)
    with pytest.raises(LedgerCorrupt, match="tables and triggers it was made with"):
        Ledger.read(postgres_url)


UNLOCKED = tuple(
    f"ALTER TABLE {table} DISABLE TRIGGER ALL" for table in ("event", "release", "secret", "head")
)
LOCKED = tuple(f"ALTER TABLE {table} ENABLE TRIGGER ALL" for table in ("event", "release", "secret", "head"))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event SET body = replace(body, '0.1', '0.01') WHERE position = 4",
        "DELETE FROM event WHERE position = 4",
        "DELETE FROM event WHERE position = 7",
        "UPDATE event SET kind = 'version' WHERE position = 2",
        "UPDATE release SET payload = '\\x00' WHERE charge = 2",
        "DELETE FROM release WHERE charge = 2",
        "INSERT INTO release VALUES (9, 'r', 1, '')",
        "UPDATE secret SET key = '\\x00'",
        "DELETE FROM secret",
        "DELETE FROM event",
        "UPDATE head SET position = 9",
        "DELETE FROM head",
    ],
)
def test_altered_rows_are_found(ledger: Ledger, postgres_url: str, change: str) -> None:
    ledger.close()
    run(postgres_url, *UNLOCKED, change, *LOCKED)
    with pytest.raises(LedgerError), Ledger.read(postgres_url) as seen:
        seen.verify()


def test_a_database_put_back_under_an_open_ledger_is_found(ledger: Ledger, postgres_url: str) -> None:
    head = ledger.head()
    ledger.charge(PureDP(0.1), delta=0.0)
    run(
        postgres_url,
        *UNLOCKED,
        "DELETE FROM event WHERE position = 8",
        "UPDATE head SET position = 7",
        *LOCKED,
    )
    with pytest.raises(LedgerCorrupt, match="never go back"):
        ledger.charge(PureDP(0.1), delta=0.0)
    assert Ledger.read(postgres_url).verify(head).sound


def test_a_dropped_schema_takes_no_more_charges(ledger: Ledger, postgres_url: str) -> None:
    run(postgres_url, "DROP SCHEMA sfumato CASCADE")
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="nothing was charged"):
            ledger.charge(PureDP(0.1), delta=0.0)


def test_a_lock_that_stays_is_an_error_and_then_all_is_well(postgres_url: str, open_ledger: Open) -> None:
    ledger, other = open_ledger(postgres_url), open_ledger(postgres_url, lock_timeout=0.0)
    with ledger._store.transaction(write=True) as transaction:
        (holder,) = transaction.execute("SELECT pg_backend_pid()").fetchone()
        for _ in range(2):
            who = rf"lock held by another process \(process {holder}, 'sfumato ledger'\)"
            with pytest.raises(LedgerUnavailable, match=who):
                other.charge(PureDP(0.1), delta=0.0)
        assert other.remaining() == other.remaining(), "reading goes on"
    assert other.charge(PureDP(0.1), delta=0.0).sequence == 1


def test_a_user_without_rights_is_told(ledger: Ledger, postgres: Cluster, postgres_url: str) -> None:
    ledger.close()
    name = postgres_url.rpartition("/")[2]
    postgres.run(f"CREATE ROLE {name}_reader LOGIN PASSWORD 'p'")
    url = postgres.url(name, user=f"{name}_reader", password="p")
    with pytest.raises(LedgerUnavailable, match="no tables that its user may see"):
        Ledger.read(url)
    run(
        postgres_url,
        f"GRANT USAGE ON SCHEMA sfumato TO {name}_reader",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA sfumato TO {name}_reader",
    )
    with Ledger.read(url) as seen:
        assert len(seen.entries()) == 3
        assert seen.verify().sound


def test_a_user_who_may_only_read_cannot_charge(
    ledger: Ledger, postgres: Cluster, postgres_url: str, open_ledger: Open
) -> None:
    del ledger
    name = postgres_url.rpartition("/")[2]
    postgres.run(f"CREATE ROLE {name}_looker LOGIN PASSWORD 'p'")
    run(
        postgres_url,
        f"GRANT USAGE ON SCHEMA sfumato TO {name}_looker",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA sfumato TO {name}_looker",
    )
    looking = open_ledger(postgres.url(name, user=f"{name}_looker", password="p"))
    with pytest.raises(LedgerUnavailable, match=r"missing permission at .*; nothing was charged"):
        looking.charge(PureDP(0.1), delta=0.0)


def _roles(postgres: Cluster, database: str) -> dict[str, str]:
    """Make the roles that docs/ledger.md names, and return their addresses."""
    roles = {role: f"{database}_{role}" for role in ("owner", "curator", "service", "auditor")}
    for name in roles.values():
        postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD 'p'")
    postgres.run(f"GRANT CREATE ON DATABASE {database} TO {roles['owner']}")
    return {role: postgres.url(database, user=name, password="p") for role, name in roles.items()}


def _documented_grants(database: str) -> list[str]:
    """Return the statements of docs/ledger.md, for the roles of one database."""
    text = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text("utf-8")
    section = text.split("### Roles on the server")[1]
    sql = section.split("```sql")[1].split("```")[0].replace("people.", "sfumato.")
    sql = sql.replace("SCHEMA people", "SCHEMA sfumato")
    return [
        re.sub(r"\b(curator|service|auditor)\b", rf"{database}_\1", statement)
        for statement in re.sub("--.*", "", sql).split(";")
        if statement.strip()
    ]


def test_who_charges_cannot_grant_and_who_grants_need_not_own(
    postgres: Cluster, postgres_url: str, open_ledger: Open
) -> None:
    database = postgres_url.rpartition("/")[2]
    urls = _roles(postgres, database)
    owner = open_ledger(urls["owner"])
    owner.grant("ada", Budget.pure(epsilon=0.25))
    owner.members.set_roles("ada", {Role.ANALYST})
    run(urls["owner"], *_documented_grants(database))
    service = open_ledger(urls["service"])
    service.commit(service.charge(PureDP(0.125), delta=0.0, analyst="ada", request="d"), b"answer")
    service.reserve(PureDP(0.125), steps=8, delta=0.0).claim(3)
    service.reviews.request(1, by="ada")
    service.members.request_budget("ada", Budget.pure(epsilon=1.0), purpose="more")
    before = service.head()
    for budget in (Budget.pure(epsilon=1.0), None):
        with pytest.raises(LedgerUnavailable, match="changed by a curator, got a grant by a user without"):
            service.grant("ada", budget)
    with pytest.raises(LedgerUnavailable, match="changed by a curator, got a grant by a user without"):
        service.members.set_roles("ada", {Role.CURATOR})
    with pytest.raises(LedgerUnavailable, match="changed by a curator, got a grant by a user without"):
        service.members.register_key("ada", Ed25519PrivateKey.generate().public_key())
    with pytest.raises(BudgetExceeded):
        service.charge(PureDP(0.25), delta=0.0, analyst="ada")
    forged = f"INSERT INTO event VALUES ({before.position + 1}, 'account', NULL, '', '', '')"
    for statement, error in {
        forged: NO_CURATOR,
        "GRANT EXECUTE ON FUNCTION may_grant() TO CURRENT_USER": "42501",
        "CREATE OR REPLACE FUNCTION may_grant() RETURNS boolean LANGUAGE sql AS 'SELECT TRUE'": "42501",
        "ALTER TABLE event DISABLE TRIGGER ALL": "42501",
        "INSERT INTO secret VALUES (2, '')": "42501",
        "DELETE FROM event": "42501",
    }.items():
        with pytest.raises(psycopg.Error) as caught:
            run(urls["service"], statement)
        assert caught.value.sqlstate == error, statement
    with pytest.raises(LedgerUnavailable, match="without the right to grant"):
        service.grant("ada", Budget.pure(epsilon=1.0))
    assert service.head() == before
    with Ledger.manage(urls["curator"]) as curator:
        curator.grant("ada", Budget.pure(epsilon=0.5))
    service.charge(PureDP(0.25), delta=0.0, analyst="ada")
    with Ledger.read(urls["auditor"]) as auditor:
        assert auditor.verify(before).sound
        assert [account.budget for account in auditor.accounts()] == [Budget.pure(epsilon=0.5)]
    with pytest.raises(LedgerUnavailable, match="missing permission"):
        open_ledger(urls["auditor"]).charge(PureDP(0.125), delta=0.0)


def test_the_right_to_grant_is_asked_for_the_kind_of_event_that_grants() -> None:
    assert f"NEW.kind = '{AccountSet.kind}' AND NOT {MAY_GRANT}" in FUNCTIONS["append_event"]


def test_a_restored_copy_is_noticed_at_start(postgres: Cluster, postgres_url: str, open_ledger: Open) -> None:
    """Restored under nobody: no process has seen more; the head that was pinned has."""
    ledger = open_ledger(postgres_url)
    ledger.charge(PureDP(0.125), delta=0.0)
    ledger.close()
    name = postgres_url.rpartition("/")[2]
    postgres.run(f"CREATE DATABASE {name}_backup TEMPLATE {name}")
    ledger = open_ledger(postgres_url)
    ledger.charge(PureDP(0.125), delta=0.0)
    head = ledger.head()
    ledger.close()
    backup = postgres.url(f"{name}_backup")
    assert open_ledger(postgres_url, head=head).head() == head
    with pytest.raises(LedgerCorrupt, match="continue the head, got a chain without it"):
        open_ledger(backup, head=head)
    assert open_ledger(backup).remaining().epsilon == 0.875, "without a pinned head nobody can know"
    forked = open_ledger(backup)
    forked.charge(PureDP(0.25), delta=0.0)
    with pytest.raises(LedgerCorrupt, match="continue the head, got another event"):
        open_ledger(backup, head=head)
    with pytest.raises(LedgerUnavailable, match="got none at"):
        open_ledger(postgres.database(), head=head)


def test_a_thousand_threads_share_one_budget(postgres_url: str, open_ledger: Open) -> None:
    ledgers = [open_ledger(postgres_url) for _ in range(4)]
    won: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: won.append(_charged(ledgers[n % 4], 2.0**-7)))
        for n in range(1000)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [0] * (1000 - 128) + list(range(1, 129))
    assert ledgers[0].verify().sound
    assert ledgers[0].remaining().epsilon == 0.0


def _charged(ledger: Ledger, epsilon: float) -> int:
    with contextlib.suppress(BudgetExceeded):
        return ledger.charge(PureDP(epsilon), delta=0.0).sequence
    return 0


def test_without_the_libraries_the_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "from sfumato.ledger import Ledger\n"
        "from sfumato.errors import MissingExtra\n"
        "try:\n    Ledger.read('postgresql://u@h/d')\n"
        "except MissingExtra as error:\n    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert "pip install 'sfumato[postgres]'" in told.stdout
    assert issubclass(MissingExtra, ImportError)


@pytest.mark.parametrize("experiment", ["race", "last_of_the_budget", "making", "inherited", "killed"])
def test_processes(postgres: Cluster, experiment: str) -> None:
    done = subprocess.run(
        [sys.executable, str(LABS / "server_lab.py"), experiment, *(postgres.database() for _ in range(10))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r'"done": [^0]', done.stdout)


def test_a_killed_process_frees_the_lock_and_charges_nothing(
    ledger: Ledger, postgres_url: str, open_ledger: Open
) -> None:
    child = os.fork()
    if child == 0:
        with open_ledger(postgres_url)._store.transaction(write=True):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert ledger.charge(PureDP(0.1), delta=0.0).sequence == 4
    assert ledger.verify().sound


def test_a_receipt_says_where_its_charge_is(ledger: Ledger) -> None:
    receipt = ledger.charge(PureDP(0.1), delta=0.0)
    assert isinstance(receipt, Receipt)
    assert receipt.digest == ledger.entries()[-1].digest
    assert ledger.budget == Budget.pure(epsilon=1.0)
