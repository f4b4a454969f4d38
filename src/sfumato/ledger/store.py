"""The store: one SQLite database, in a file or in memory, that survives crashes, threads and forks.

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
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.failures import NOTHING_CHARGED, PERHAPS_CHARGED, explained, outcome, unsure
from sfumato.ledger.schema import check_schema, write_schema

__all__ = ["Store", "create_file"]

Fill = Callable[[sqlite3.Connection], None]

PRAGMAS = (
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",  # on macOS a plain sync leaves data in the drive's cache
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)

LONGEST_WAIT = 1e6
"""Seconds, eleven days and a half."""


class Store:
    """Transactions on one ledger's database.

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
    fill : callable, optional
        Writes the first rows of a database in memory.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        read_only: bool = False,
        lock_timeout: float = 30.0,
        fill: Fill | None = None,
    ) -> None:
        self.path = path
        self.name = "memory" if path is None else repr(str(path))
        self.read_only = read_only
        self._lock_timeout = lock_timeout
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._place: tuple[int, int] | None = None
        self._connection: sqlite3.Connection | None = None
        with explained(self.name):
            if path is None:
                self._connection = _connect(":memory:", lock_timeout)
                _write_first(self._connection, fill)
            else:
                _remove_draft_links(path)
                self._connection = self._open_file(path)
        with _REGISTERING:
            _STORES.add(self)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """Run one transaction: all of it is durable when the block ends, none of it if anything is raised."""
        if write and self.read_only:
            raise LedgerUnavailable(
                f"ledger must be opened for writing, got {self.name} opened by Ledger.read; use Ledger.open"
            )
        with self._lock, explained(self.name):
            connection = self._live_connection()
            try:
                # IMMEDIATE takes the write lock before the totals are read: two processes cannot both see
                # the last of a budget.
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                self._check_place()
                yield connection
            except BaseException as error:
                self._undo(connection, failed=isinstance(error, sqlite3.Error))
                raise
            self._commit(connection, write=write)

    def _commit(self, connection: sqlite3.Connection, *, write: bool) -> None:
        try:
            connection.execute("COMMIT")
        except BaseException as error:
            self._undo(connection, failed=isinstance(error, sqlite3.Error))
            if not (write and isinstance(error, sqlite3.Error) and unsure(error)):
                raise
            with outcome(PERHAPS_CHARGED), explained(self.name):
                raise

    def close(self) -> None:
        """Close the connection; a later transaction is refused."""
        with self._lock:
            self._closed = True
            self._drop_connection()

    def __del__(self) -> None:
        self._closed = True
        if hasattr(self, "_connection"):
            self._drop_connection()

    def _live_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerUnavailable(f"ledger must be open, got a closed one at {self.name}; open it again")
        if self._process != os.getpid():
            if self.path is None:
                raise LedgerUnavailable(
                    "ledger must be used in the process that made it, got one in memory after a fork, where "
                    "both processes would spend the same budget; keep the ledger in a file"
                )
            self._drop_connection()
            self._process = os.getpid()
        if self._connection is None and self.path is not None:
            self._connection = self._open_file(self.path)
        if self._connection is None:
            raise LedgerUnavailable("ledger must be open, got a closed one in memory; open a new one")
        return self._connection

    def _open_file(self, path: Path) -> sqlite3.Connection:
        status = path.stat()
        if status.st_size == 0:
            # SQLite would take an empty file for a new database, and the budget would be whole again.
            raise LedgerCorrupt(
                f"ledger must not be empty, got an empty file at {self.name}; restore it from a backup"
            )
        place = (status.st_dev, status.st_ino)
        if self._place not in (None, place):
            raise _moved(self.name)
        connection = _connect(f"{path.as_uri()}?mode=rw", self._lock_timeout)
        try:
            check_schema(connection, self.name)
            if self.read_only:
                connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        self._place = place
        return connection

    def _check_place(self) -> None:
        """Refuse a file that was moved or replaced: charges would go where nobody looks for them."""
        if self.path is None:
            return
        try:
            status = self.path.stat()
        except FileNotFoundError:
            raise _moved(self.name) from None
        if (status.st_dev, status.st_ino) != self._place:
            raise _moved(self.name)

    def _undo(self, connection: sqlite3.Connection, *, failed: bool) -> None:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if failed and self.path is not None:
            # After a failed write or sync, begin again from what is on the disk.
            self._drop_connection()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._process == os.getpid():
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        else:
            # SQLite forbids a child process to use, or even close, a connection that its parent opened.
            _INHERITED.append(connection)


def create_file(path: Path, fill: Fill) -> bool:
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
                _write_first(connection, fill)
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


def _write_first(connection: sqlite3.Connection, fill: Fill | None) -> None:
    connection.execute("BEGIN IMMEDIATE")
    write_schema(connection)
    if fill is not None:
        fill(connection)
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


_REGISTERING = threading.Lock()
_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_HELD: list[Store] = []
_INHERITED: list[sqlite3.Connection] = []


def _before_fork() -> None:
    """Let every transaction of other threads end: a child must not inherit half of one."""
    _REGISTERING.acquire()
    for store in list(_STORES):
        store._lock.acquire()  # noqa: SLF001
        _HELD.append(store)


def _after_fork() -> None:
    while _HELD:
        _HELD.pop()._lock.release()  # noqa: SLF001
    _REGISTERING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
