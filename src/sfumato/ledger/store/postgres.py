"""A ledger on a PostgreSQL server, for a team: one schema of one database, through SQLAlchemy Core.

Charges are serial: each locks the one row of ``head`` before it reads what was spent, and releases it with
its commit, so that of any number of processes on any number of machines one at a time sees what is left and
spends it. Reading does not wait: it sees the ledger as it was at one moment. A process that dies, or loses
its connection, in the middle of a charge leaves nothing behind: the server rolls back and frees the row.

A charge lets go of the row before it is on the disk, and returns when it is: many wait for one sync. The
server's log is one sequence, of which a crash leaves a beginning. So a charge that built on others is on the
disk only if they are; what a crash takes away was returned to nobody. And no process goes on from what it
saw before that is on the disk: a ledger that a crash has shortened must not look like one put back.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, final

from sfumato import _check
from sfumato.errors import LedgerUnavailable, MissingExtra
from sfumato.ledger.failures import NOTHING_CHARGED
from sfumato.ledger.store.base import SCHEMA_VERSION, Read, Rows, Store, WriteFirst
from sfumato.ledger.store.postgres_batch import FetchedRows, collect_batches, run_batch, with_integers
from sfumato.ledger.store.postgres_failures import BEFORE_COMMIT, LOCK_HELD, explained, sqlstate_of
from sfumato.ledger.store.postgres_schema import (
    APPLICATION,
    FIRST_HEAD,
    check_schema,
    statements,
)

if TYPE_CHECKING:
    import sqlalchemy

__all__ = ["PostgresStore", "is_address"]

SCHEMES = ("postgresql://", "postgres://")
SCHEMA = "sfumato"
"""The schema of a ledger whose address does not say ``?schema=``."""

SHORTEST_WAIT, LONGEST_WAIT = 0.001, 2e6
"""Seconds; the server takes 0 for no limit, and counts milliseconds in 31 bits."""

SETTINGS: Mapping[str, str] = {
    # A holder of the lock that stands still must not stop the others for ever.
    "idle_in_transaction_session_timeout": "10min",
    # A commit that is returned is on the disk, whatever the server's own default is.
    "synchronous_commit": "on",
}
BEGIN_AND_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
BEGIN_AND_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
LOCK = "SELECT position FROM head WHERE id = 1 FOR UPDATE"
LOCK_AND_SHARE = (
    "SELECT position, set_config('synchronous_commit', 'off', true) FROM head WHERE id = 1 FOR UPDATE"
)
"""The same, and the commit of this transaction waits for no disk: `SYNC` does, after it."""

SYNC = "SELECT pg_logical_emit_message(true, 'sfumato', '')"
"""A transaction that writes next to nothing, whose commit waits until all before it is on the disk."""

HOLDERS = """SELECT DISTINCT a.pid, coalesce(a.application_name, '') FROM pg_catalog.pg_locks AS l
    JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.relation = 'head'::regclass AND l.granted AND l.mode <> 'AccessShareLock'
    AND l.pid <> pg_backend_pid()
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_locks AS w WHERE w.pid = l.pid AND NOT w.granted)
    ORDER BY a.pid LIMIT 3"""
"""Who has locked the row of ``head`` and waits for nobody: process on the server, name of the program."""

MAY_SYNC = """SELECT coalesce(bool_and(has_function_privilege('public', oid, 'EXECUTE')), FALSE)
    FROM pg_catalog.pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
    AND proname = 'pg_logical_emit_message' AND proargtypes[2] = 'text'::regtype"""
"""Whether every user may sync: one who reads and may not would show what is not on the disk yet."""

IS_SYNCED = """SELECT CASE WHEN pg_is_in_recovery() THEN TRUE
    WHEN current_setting('synchronous_standby_names') <> '' THEN FALSE
    ELSE pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() END"""
"""Whether all that was ever committed is on the disk; a server that only follows another has nothing else.

Where commits wait for a standby, the server's own disk is not enough; how far the standby is, few may see."""


def is_address(location: object) -> bool:
    """Whether a ledger's location is the address of a PostgreSQL database and not a path."""
    return isinstance(location, str) and location.startswith(SCHEMES)


@final
class _PostgresTransaction:
    """One transaction's statements."""

    __slots__ = ("_connection", "_fetched", "_highest", "_text", "writes")

    def __init__(self, connection: sqlalchemy.Connection, text: Callable[[str], Any]) -> None:
        self._connection = connection
        self._text = text
        self._highest: int | None = None
        self._fetched: list[tuple[Read, list[Any]]] = []
        self.writes = False

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None, /) -> Rows:
        for place, (read, rows) in enumerate(self._fetched):
            if read == (statement, parameters):
                del self._fetched[place]
                return FetchedRows(rows)
        if not statement.startswith("SELECT"):
            self._fetched = []  # as it was before this
        return self._connection.execute(self._text(statement), parameters or {})

    def begin(self, *, write: bool, share: bool, ahead: Sequence[Read]) -> None:
        """Begin, lock if it writes, and read ``ahead``: in one message."""
        self.writes = write
        # Each statement after the lock sees all that was committed before it was had.
        batch = [BEGIN_AND_WRITE, LOCK_AND_SHARE if share else LOCK] if write else [BEGIN_AND_READ]
        _, *results = run_batch(self._connection, *batch, *(with_integers(*read) for read in ahead))
        if write:
            locked = results.pop(0)
            self._highest = locked[0][0] if locked else None
        self._fetched = list(zip(ahead, results, strict=True))

    def commit(self, *, share: bool) -> None:
        """Commit, and wait until all that was written or seen is on the disk, where commits do not."""
        if not share:
            self._connection.exec_driver_sql("COMMIT")
            return
        _, ((synced,),) = run_batch(self._connection, "COMMIT", SYNC if self.writes else IS_SYNCED)
        if not (self.writes or synced):
            self._connection.exec_driver_sql(SYNC).close()

    def highest(self) -> int | None:
        if self._highest is None:
            row = self.execute("SELECT position FROM head WHERE id = 1").fetchone()
            self._highest = None if row is None else row[0]
        return self._highest

    def check_pages(self) -> bool:
        # The server checks each page as it reads it, where its cluster has checksums.
        return True


@final
class PostgresStore(Store["sqlalchemy.Connection"]):
    """Transactions on one schema of a PostgreSQL database.

    Parameters
    ----------
    address : str
        ``postgresql://user:password@host:port/database?schema=sfumato``; what else stands after ``?`` goes to
        the driver (``sslmode=verify-full``, say).
    read_only : bool
        Refuse every writing transaction.
    lock_timeout : float
        Seconds to wait for other processes' locks.
    make_first : callable, optional
        Returns what writes the first rows; without it, a schema without a ledger is refused.

    Raises
    ------
    MissingExtra
        SQLAlchemy or psycopg is not installed.
    """

    max_payload_bytes = 400_000_000
    """A value of the server's holds a thousand million, and bytes travel as two digits each."""

    def __init__(
        self,
        address: str,
        *,
        read_only: bool = False,
        lock_timeout: float = 30.0,
        make_first: Callable[[], WriteFirst] | None = None,
    ) -> None:
        self._alchemy = _library()
        url, self._schema = _parsed(self._alchemy, address)
        shown = url.set(drivername="postgresql", query={"schema": self._schema})
        super().__init__(repr(shown.render_as_string(hide_password=True)), read_only=read_only)
        self._own: tuple[type[BaseException], ...] = (self._alchemy.exc.SQLAlchemyError,)
        self._text = functools.cache(self._alchemy.text)
        self._lock_timeout = min(max(lock_timeout, SHORTEST_WAIT), LONGEST_WAIT)
        self._shares = False
        self._holders = ""
        self._work: _PostgresTransaction | None = None
        with self._explained():
            self._engine = _engine(self._alchemy, url, self._lock_timeout)
            if make_first is not None:
                self._make(make_first)
            self._connection = self._open()

    def _begin(self, *, write: bool, ahead: Sequence[Read]) -> _PostgresTransaction:
        reused = self._connection is not None
        try:
            return self._begun(write=write, ahead=ahead)
        except self._alchemy.exc.DBAPIError as error:
            if not (reused and error.connection_invalidated):
                raise
        # The connection was lost while nothing was asked of it: no harm in asking once more.
        self._drop_connection()
        return self._begun(write=write, ahead=ahead)

    def _begun(self, *, write: bool, ahead: Sequence[Read]) -> _PostgresTransaction:
        if self._connection is None:
            self._connection = self._open()
        work = _PostgresTransaction(self._connection, self._text)
        try:
            work.begin(write=write, share=self._shares, ahead=ahead)
        except self._alchemy.exc.DBAPIError as error:
            if sqlstate_of(error) == LOCK_HELD:
                self._holders = self._who_holds(self._connection)
            raise
        self._work = work
        return work

    def _who_holds(self, connection: sqlalchemy.Connection) -> str:
        """Return who holds the lock that was waited for in vain, in brackets; nothing once it is free."""
        rows: list[Any] = []
        with contextlib.suppress(*self._own):
            connection.exec_driver_sql("ROLLBACK")
            rows = list(connection.exec_driver_sql(HOLDERS))
        found = ", ".join(f"process {process}, {program!r}" for process, program in rows)
        return f" ({found})" if found else ""

    def _finish(self) -> None:
        if self._connection is not None and self._work is not None:
            self._work.commit(share=self._shares)

    def _undo(self, *, failed: bool) -> None:
        rolled_back = False
        with contextlib.suppress(*self._own):
            if self._connection is not None and not self._connection.invalidated:
                self._connection.exec_driver_sql("ROLLBACK")
                if (
                    not failed
                    and self._shares
                    and not self._connection.exec_driver_sql(IS_SYNCED).scalar_one()
                ):
                    self._connection.exec_driver_sql(SYNC).close()
                rolled_back = True
        if failed or not rolled_back:
            # Nothing is begun again on a connection of which it is not known where it stands.
            self._drop_connection()

    def _close_connection(self, connection: sqlalchemy.Connection) -> None:
        with contextlib.suppress(*self._own):
            connection.close()

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.name, self._own, lambda: self._holders)

    def _is_own(self, error: BaseException) -> bool:
        return isinstance(error, self._own)

    def _may_have_committed(self, error: BaseException) -> bool:
        state = sqlstate_of(error)
        return state is None or not state.startswith(BEFORE_COMMIT)

    def _open(self) -> sqlalchemy.Connection:
        connection = self._connected()
        try:
            work = _PostgresTransaction(connection, self._text)
            _require_ledger(work, self._schema, self.name)
            check_schema(work, self._schema, self.name)
            self._shares = bool(work.execute(MAY_SYNC).fetchone()[0])
        except BaseException:
            self._close_connection(connection)
            raise
        return connection

    def _connected(self) -> sqlalchemy.Connection:
        connection = self._engine.connect()
        settings = {
            **SETTINGS,
            "search_path": f'"{self._schema}"',
            "lock_timeout": f"{math.ceil(self._lock_timeout * 1000)}ms",
            "default_transaction_read_only": "on" if self.read_only else "off",
        }
        for name, value in settings.items():
            connection.execute(
                self._text("SELECT set_config(:name, :value, false)"), {"name": name, "value": value}
            )
        return connection

    def _make(self, make_first: Callable[[], WriteFirst]) -> None:
        """Make the ledger, whole or not at all, if there is none: of several processes one does."""
        connection = self._connected()
        try:
            work = _PostgresTransaction(connection, self._text)
            if _has_ledger(work, self._schema):
                return
            write_first = make_first()  # may read all of the data: not while others wait
            work.execute("BEGIN")
            work.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))", {"name": f"ledger {self._schema}"}
            )
            if not _has_ledger(work, self._schema):
                if work.execute(HAS_SCHEMA, {"schema": self._schema}).fetchone() is None:
                    work.execute(f'CREATE SCHEMA "{self._schema}"')
                for statement in statements(f'"{self._schema}"'):
                    connection.exec_driver_sql(statement)
                work.execute(FIRST_HEAD, {"application": APPLICATION, "version": SCHEMA_VERSION})
                write_first(work)
            work.execute("COMMIT")
        finally:
            self._close_connection(connection)


HAS_SCHEMA = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = :schema"
HAS_TABLES = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = :schema LIMIT 1"


def _has_ledger(work: _PostgresTransaction, schema: str) -> bool:
    """Whether the schema holds anything: a ledger, or what must not be taken for an empty schema."""
    return work.execute(HAS_TABLES, {"schema": schema}).fetchone() is not None


def _require_ledger(work: _PostgresTransaction, schema: str, name: str) -> None:
    if not _has_ledger(work, schema):
        raise LedgerUnavailable(
            f"ledger must be in its schema, got none at {name}; {NOTHING_CHARGED}; check the address, or "
            "make the ledger with Ledger.open or sfumato.connect"
        )


def _library() -> Any:
    try:
        import psycopg  # noqa: F401, PLC0415 - an optional library
        import sqlalchemy  # noqa: PLC0415 - an optional library
    except ImportError as missing:
        raise MissingExtra(
            "a ledger on PostgreSQL needs SQLAlchemy and psycopg; pip install 'sfumato[postgres]'"
        ) from missing
    return sqlalchemy


def _parsed(alchemy: Any, address: str) -> tuple[sqlalchemy.URL, str]:
    """Return the driver's address and the schema; what is not one is refused without being shown."""
    try:
        url: sqlalchemy.URL = alchemy.make_url(address)
    except (alchemy.exc.ArgumentError, ValueError):
        url = alchemy.make_url(SCHEMES[0])
    if not url.database:
        # The value is not shown: it may hold a password.
        remedy = "pass postgresql://user@host/database"
        _check.refuse_state("ledger", "be an address with a database", "it names none", remedy)
    schema = url.query.get("schema", SCHEMA)
    if not isinstance(schema, str) or not re.fullmatch("[a-z_][a-z0-9_]{0,62}", schema):
        _check.refuse("schema", "be one name of small letters, digits and _", schema, "pass ?schema=acs, say")
    return url.set(drivername="postgresql+psycopg").difference_update_query(["schema"]), schema


def _engine(alchemy: Any, url: sqlalchemy.URL, lock_timeout: float) -> sqlalchemy.Engine:
    wait = (
        {}
        if "connect_timeout" in url.query
        else {"connect_timeout": min(max(2, math.ceil(lock_timeout)), 60)}
    )
    engine: sqlalchemy.Engine = alchemy.create_engine(
        url,
        # Transactions are begun and ended here by statements; the store has one connection.
        isolation_level="AUTOCOMMIT",
        poolclass=alchemy.pool.NullPool,
        connect_args={"application_name": "sfumato ledger", **wait},
        # Statements are written to be shown to nobody: parameters stay out of the driver's messages.
        hide_parameters=True,
    )
    collect_batches(alchemy.event, engine)
    return engine
