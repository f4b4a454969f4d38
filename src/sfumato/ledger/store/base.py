"""The interface of a store: transactions on a ledger's rows that survive crashes, threads and forks.

Each database has a small implementation: `sfumato.ledger.store.sqlite`, a file or memory, and
`sfumato.ledger.store.postgres`, a server that a team shares. What is read and written is the same SQL in
both.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from sfumato.errors import LedgerCorrupt, LedgerUnavailable
from sfumato.ledger.failures import NOTHING_CHARGED, PERHAPS_CHARGED

__all__ = [
    "SCHEMA_VERSION",
    "Read",
    "ReadAhead",
    "Rows",
    "Store",
    "Transaction",
    "WriteFirst",
    "stating_outcome",
]

LiveConnection = TypeVar("LiveConnection")


class Rows(Iterable[Any], Protocol):
    """The rows that a statement returns."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""


class Transaction(Protocol):
    """What the ledger does within one transaction; parameters are named, ``:name``."""

    def execute(self, statement: str, parameters: Mapping[str, Any] = ..., /) -> Rows:
        """Run one statement."""

    def highest(self) -> int | None:
        """Return the highest position ever written, stored beside the events: a missing last one shows."""

    def check_pages(self) -> bool:
        """Whether the database finds itself undamaged, as far as it can tell."""


SCHEMA_VERSION = 1
"""Version of the tables, which a store is marked with; a store of a later version is refused."""

Read: TypeAlias = tuple[str, Mapping[str, int]]
"""A statement that reads, with its parameters."""

ReadAhead: TypeAlias = Callable[[], Sequence[Read]]
"""Returns what will be read in a transaction; asked once no other thread is in one."""

WriteFirst: TypeAlias = Callable[[Transaction], None]
"""Writes the first rows of a new ledger, in the transaction that makes its tables."""


class Store(ABC, Generic[LiveConnection]):
    """Transactions on one ledger's database, over one connection of each process.

    Parameters
    ----------
    name : str
        Where it is, as error messages say it.
    read_only : bool
        Refuse every writing transaction.
    """

    path: Path | None = None
    """The file, where it is one."""

    max_payload_bytes: int
    """The largest release that can be stored."""

    durable: bool = True
    """Whether the ledger is still there when the process ends."""

    def __init__(self, name: str, *, read_only: bool) -> None:
        self.name = name
        self.read_only = read_only
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._connection: LiveConnection | None = None
        with _REGISTERING:
            _STORES.add(self)

    @contextmanager
    def transaction(self, *, write: bool, ahead: ReadAhead = tuple) -> Iterator[Transaction]:
        """Run one transaction: all of it is durable when the block ends, none of it if anything is raised.

        One that writes holds the ledger's lock from its beginning: of two processes only one at a time sees
        what is left of a budget and spends it. A server is asked for what ``ahead`` says with the beginning.
        """
        if write and self.read_only:
            raise LedgerUnavailable(
                f"ledger must be opened for writing, got {self.name} opened by Ledger.read; use Ledger.open"
            )
        with self._lock, self._explained():
            self._require_usable()
            try:
                yield self._begin(write=write, ahead=ahead())
            except BaseException as error:
                self._undo(failed=self._is_own(error))
                raise
            self._commit(write=write)

    def close(self) -> None:
        """Close the connection; a later transaction is refused."""
        with self._lock:
            self._closed = True
            self._drop_connection()

    def __del__(self) -> None:
        self._closed = True
        if hasattr(self, "_connection"):
            self._drop_connection()

    @abstractmethod
    def _begin(self, *, write: bool, ahead: Sequence[Read]) -> Transaction:
        """Begin a transaction, on a new connection where there is none; ``ahead`` will be read in it."""

    @abstractmethod
    def _finish(self) -> None:
        """Commit."""

    @abstractmethod
    def _undo(self, *, failed: bool) -> None:
        """Roll back; after a failure of the database itself, also let go of the connection."""

    @abstractmethod
    def _close_connection(self, connection: LiveConnection) -> None:
        """Close a connection that this process opened; raises nothing."""

    @abstractmethod
    def _explained(self) -> AbstractContextManager[None]:
        """Turn the database's errors into the ledger's."""

    @abstractmethod
    def _is_own(self, error: BaseException) -> bool:
        """Whether an error is the database's."""

    @abstractmethod
    def _may_have_committed(self, error: BaseException) -> bool:
        """Whether a commit that failed so may have happened."""

    def _commit(self, *, write: bool) -> None:
        try:
            self._finish()
        except BaseException as error:
            own = self._is_own(error)
            self._undo(failed=own)
            if not (write and own and self._may_have_committed(error)):
                raise
            with stating_outcome(PERHAPS_CHARGED), self._explained():
                raise

    def _require_usable(self) -> None:
        if self._closed:
            raise LedgerUnavailable(f"ledger must be open, got a closed one at {self.name}; open it again")
        if self._process != os.getpid():
            if not self.durable:
                raise LedgerUnavailable(
                    "ledger must be used in the process that made it, got one in memory after a fork, where "
                    "both processes would spend the same budget; keep the ledger in a file"
                )
            self._drop_connection()
            self._process = os.getpid()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._process == os.getpid():
            self._close_connection(connection)
        else:
            # A child process must not use, or even close, a connection that its parent opened.
            _INHERITED.append(connection)


@contextmanager
def stating_outcome(words: str) -> Iterator[None]:
    """Let the ledger's errors say what was charged, where that is not nothing."""
    try:
        yield
    except (LedgerUnavailable, LedgerCorrupt) as error:
        stated = [phrase for phrase in (NOTHING_CHARGED, PERHAPS_CHARGED) if phrase in str(error)]
        message = str(error).replace(stated[0], words) if stated else f"{error}; {words}"
        raise type(error)(message) from error.__cause__


_REGISTERING = threading.Lock()
_STORES: weakref.WeakSet[Store[Any]] = weakref.WeakSet()
_HELD: list[Store[Any]] = []
_INHERITED: list[object] = []


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
