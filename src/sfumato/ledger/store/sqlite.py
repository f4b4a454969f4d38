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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, final

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.failures import NOTHING_CHARGED, unavailable
from sfumato.ledger.store.base import Read, Rows, Store, WriteFirst
from sfumato.ledger.store.sqlite_schema import check_schema, write_schema

__all__ = ["SQLiteStore", "create_file", "explained"]

PRAGMAS = (
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",  # on macOS a plain sync leaves data in the drive's cache
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)

LONGEST_WAIT = 1e6
"""Seconds, eleven days and a half."""

UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: ("be free", "a lock held by another process", "try again when it is done"),
    sqlite3.SQLITE_LOCKED: ("be free", "a lock held by this process", "try again when it is done"),
    sqlite3.SQLITE_READONLY: ("be writable", "a read-only file", "make the file and its folder writable"),
    sqlite3.SQLITE_FULL: ("find room to grow", "a full disk", "free some space and try again"),
    sqlite3.SQLITE_IOERR: ("be readable and writable", "an input or output error", "check the disk"),
    sqlite3.SQLITE_CANTOPEN: (
        "be in a folder where files can be made",
        "a file that cannot be opened",
        "check that the folder exists and is writable",
    ),
    sqlite3.SQLITE_PERM: ("be writable", "missing permission", "make the file and its folder writable"),
    sqlite3.SQLITE_AUTH: ("be writable", "missing permission", "make the file and its folder writable"),
    sqlite3.SQLITE_INTERRUPT: ("not be interrupted", "an interrupt", "try again"),
    sqlite3.SQLITE_PROTOCOL: ("be free", "a lock that cannot be had", "put it on a local disk"),
    sqlite3.SQLITE_NOLFS: ("be on a disk that holds large files", "one that does not", "move it"),
    # No code: the connection was closed.
    None: ("be open", "a closed one", "open it again"),
}

SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ
"""Part of the file is missing: damage, not a disk that fails."""

NO_ERRNO = "an operating system error"


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

    def _begin(self, *, write: bool, ahead: Sequence[Read]) -> _SQLiteTransaction:
        del ahead
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
        # A commit happens when the journal is removed. A write that fails, for want of room or otherwise,
        # comes before that, and a lock that is not free before every write; what else may fail, such as the
        # sync of the folder, can come after.
        code: int | None = getattr(error, "sqlite_errorcode", None)
        return code is None or (code & 0xFF == sqlite3.SQLITE_IOERR and code != sqlite3.SQLITE_IOERR_WRITE)

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


@contextlib.contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn errors of SQLite and the operating system into `LedgerUnavailable` or `LedgerCorrupt`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _of_sqlite(error, name) from error
    except UnicodeDecodeError as error:
        raise _damaged(name) from error
    except OSError as error:
        got, remedy = error.strerror or NO_ERRNO, "check the path, its permissions and the disk"
        raise unavailable("be readable and writable", got, name, remedy) from error


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


def _of_sqlite(error: sqlite3.Error, name: str) -> LedgerUnavailable | LedgerCorrupt:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    # The low byte is the error, the rest says more about it.
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_NOTADB:
        return LedgerCorrupt(
            f"ledger must be a file that sfumato made, got another kind of file at {name}; "
            f"{NOTHING_CHARGED}; give another path, or restore the file from a backup if it was a ledger"
        )
    undecodable = primary is None and isinstance(error, sqlite3.OperationalError)
    if code == SHORT_READ or undecodable or primary not in UNAVAILABLE:
        return _damaged(name)
    rule, got, remedy = UNAVAILABLE[primary]
    return unavailable(rule, got, name, remedy)


def _damaged(name: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"ledger must be undamaged, got a damaged or altered file at {name}; {NOTHING_CHARGED}; "
        "restore it from a backup and compare with the latest exported head"
    )
