"""A ledger in one SQLite database, in a file or in memory.

A file is one file when at rest (a rollback journal, no write-ahead log that could be left behind when the
file is copied). A transaction is durable once it returns: ``synchronous = EXTRA`` syncs the data and, after
the journal is gone, the folder, without which a power cut could bring the journal back and undo a charge.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import sqlite3
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, final

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.failures import NOTHING_CHARGED
from sfumato.ledger.store.base import Rows, Store, WriteFirst
from sfumato.ledger.store.sqlite_failures import explained, may_have_committed
from sfumato.ledger.store.sqlite_schema import check_schema, write_schema

__all__ = ["SQLiteStore", "create_file"]

PRAGMAS = (
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",  # on macOS a plain sync leaves data in the drive's cache
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)

LONGEST_WAIT = 1e6
"""Seconds, eleven days and a half."""


@final
class _SQLiteTransaction:
    """One transaction's statements."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None, /) -> Rows:
        return self._connection.execute(statement, parameters or {})

    def highest(self) -> int | None:
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'event'").fetchone()
        return None if row is None else row[0]

    def check_pages(self) -> bool:
        return [*self._connection.execute("PRAGMA integrity_check(1)")] == [("ok",)]


@final
class SQLiteStore(Store[sqlite3.Connection]):
    """Transactions on one SQLite database.

    The file is never opened here except through SQLite: POSIX drops a process's locks on a file as soon as
    any of its descriptors of that file is closed.

    Parameters
    ----------
    path : Path or None
        An existing file, absolute; None makes a database in memory.
    read_only : bool
        Refuse every writing transaction.
    lock_timeout : float
        Seconds to wait for other processes' locks.
    write_first : callable, optional
        Writes the first rows of a database in memory.
    """

    max_payload_bytes = 900_000_000
    """SQLite's own limit is a little above."""

    def __init__(
        self,
        path: Path | None,
        *,
        read_only: bool = False,
        lock_timeout: float = 30.0,
        write_first: WriteFirst | None = None,
    ) -> None:
        super().__init__("memory" if path is None else repr(str(path)), read_only=read_only)
        self.path = path
        self.durable = path is not None
        self._lock_timeout = lock_timeout
        self._file_identity: tuple[int, int] | None = None
        with explained(self.name):
            if path is None:
                self._connection = _connect(":memory:", lock_timeout)
                _write_tables(self._connection, write_first)
            else:
                _remove_draft_links(path)
                self._connection = self._open_file(path)

    def _begin(self, *, write: bool) -> _SQLiteTransaction:
        if self._connection is None and self.path is not None:
            self._connection = self._open_file(self.path)
        if self._connection is None:
            raise LedgerUnavailable("ledger must be open, got a closed one in memory; open a new one")
        # IMMEDIATE takes the write lock before the totals are read.
        self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        self._check_file()
        return _SQLiteTransaction(self._connection)

    def _finish(self) -> None:
        if self._connection is not None:
            self._connection.execute("COMMIT")

    def _undo(self, *, failed: bool) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        if failed and self.path is not None:
            # After a failed write or sync, begin again from what is on the disk.
            self._drop_connection()

    def _close_connection(self, connection: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            connection.close()

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.name)

    def _is_own(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.Error)

    def _may_have_committed(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.Error) and may_have_committed(error)

    def _open_file(self, path: Path) -> sqlite3.Connection:
        status = path.stat()
        if status.st_size == 0:
            # SQLite would take an empty file for a new database, and the budget would be whole again.
            raise LedgerCorrupt(
                f"ledger must not be empty, got an empty file at {self.name}; restore it from a backup"
            )
        identity = (status.st_dev, status.st_ino)
        if self._file_identity not in (None, identity):
            raise _moved(self.name)
        connection = _connect(f"{path.as_uri()}?mode=rw", self._lock_timeout)
        try:
            check_schema(connection, self.name)
            if self.read_only:
                connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        self._file_identity = identity
        return connection

    def _check_file(self) -> None:
        """Refuse a file that was moved or replaced: charges would go where nobody looks for them."""
        if self.path is None:
            return
        try:
            status = self.path.stat()
        except FileNotFoundError:
            raise _moved(self.name) from None
        if (status.st_dev, status.st_ino) != self._file_identity:
            raise _moved(self.name)


def create_file(path: Path, write_first: WriteFirst) -> bool:
    """Make a ledger's file, whole or not at all; False if there is one already.

    The database is made under another name and then linked to its own, which fails if that exists: of
    several processes that make the same ledger at once, one does. A crash may leave the draft behind.
    """
    with explained(repr(str(path))):
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        # The file holds the curator's key and released answers.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            connection = _connect(f"{draft.as_uri()}?mode=rw", 0.0)
            try:
                connection.execute("PRAGMA journal_mode = MEMORY")
                _write_tables(connection, write_first)
            finally:
                connection.close()
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
    return True


def _connect(target: str, lock_timeout: float) -> sqlite3.Connection:
    # SQLite counts milliseconds in 32 bits; what overflows them would be no wait at all.
    timeout = min(lock_timeout, LONGEST_WAIT)
    connection = sqlite3.connect(
        target, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in PRAGMAS:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_tables(connection: sqlite3.Connection, write_first: WriteFirst | None) -> None:
    connection.execute("BEGIN IMMEDIATE")
    write_schema(connection)
    if write_first is not None:
        write_first(_SQLiteTransaction(connection))
    connection.execute("COMMIT")


def _remove_draft_links(path: Path) -> None:
    """Remove the second name that a crash right after creating a file left to it."""
    if path.stat().st_nlink == 1:
        return
    for draft in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        with contextlib.suppress(OSError):
            if draft.samefile(path):
                draft.unlink()


def _moved(name: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"ledger must stay where it was opened, got {name} moved or replaced; {NOTHING_CHARGED}; "
        "open the ledger again"
    )
