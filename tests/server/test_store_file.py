"""Stores are opened alike: by one process, in a folder of their owner's, and refused in one sentence."""

from __future__ import annotations

import contextlib
import itertools
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.federated.dap.version import Role
from sfumato.server.dap.aggregator_store import AggregatorStore
from sfumato.server.store_file import opened_store, store_connection, whole_transaction
from tests.server.dap.setting import parties


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(store_connection(tmp_path / "a" / "b" / "c.db")) as made:
        yield made


def test_folders_and_files_are_their_owners(tmp_path: Path, connection: sqlite3.Connection) -> None:
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a/b", "a/b/c.db")]
    assert modes == [0o700, 0o600]
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="folder must be one that can be written to"):
        store_connection(tmp_path / "file" / "c.db")


def test_a_store_overwrites_what_it_deletes(connection: sqlite3.Connection) -> None:
    with opened_store(connection, "c.db", "shuffler"):
        names = ("locking_mode", "journal_mode", "synchronous", "fullfsync", "secure_delete", "temp_store")
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in (*names, "trusted_schema")]
    assert found == ["exclusive", "truncate", 3, 1, 1, 2, 0]


def test_what_fails_while_it_is_opened_closes_it(connection: sqlite3.Connection) -> None:
    with pytest.raises(KeyError), opened_store(connection, "c.db", "shuffler"):
        raise KeyError
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_a_second_process_is_refused(tmp_path: Path, connection: sqlite3.Connection) -> None:
    with opened_store(connection, "c.db", "shuffler"):
        connection.execute("CREATE TABLE one (x)")
    path = tmp_path / "a" / "b" / "c.db"
    with contextlib.closing(sqlite3.connect(path, timeout=0.01, isolation_level=None)) as second:
        why = "'c.db' must be open in one aggregator only, got a second"
        with pytest.raises(ParameterError, match=why), opened_store(second, "c.db", "aggregator", "an"):
            second.execute("SELECT * FROM one")


def test_a_damaged_schema_of_an_aggregator_is_refused_in_one_sentence(tmp_path: Path) -> None:
    task = parties()[Role.HELPER].task
    AggregatorStore(tmp_path, task, Role.HELPER).close()
    path = tmp_path / "helper.db"
    whole = path.read_bytes()
    found = [begin.start() + 7 for begin in re.finditer(rb"CREATE (TABLE|INDEX)", whole)]
    assert len(found) == 8
    for at, byte in itertools.product(found, (0, 0xF2)):  # the last is the beginning of no character
        path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        with pytest.raises(ParameterError, match=r"'helper.db' must be (as an aggregator left it|an aggreg)"):
            AggregatorStore(tmp_path, task, Role.HELPER)


def test_a_transaction_is_whole_or_nothing(connection: sqlite3.Connection) -> None:
    with whole_transaction(connection):
        connection.execute("CREATE TABLE row (x)")

    def broken() -> None:
        with whole_transaction(connection):
            connection.execute("INSERT INTO row VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert not connection.in_transaction
    connection.execute("BEGIN")
    connection.execute("INSERT INTO row VALUES (2)")  # what a failed rollback leaves
    with whole_transaction(connection):
        connection.execute("INSERT INTO row VALUES (3)")
    assert connection.execute("SELECT x FROM row").fetchall() == [(3,)]
