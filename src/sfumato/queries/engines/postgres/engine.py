"""The PostgreSQL engine: bounded, exact integers over tables that stay in their database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from sfumato._check import refuse
from sfumato.errors import SourceError
from sfumato.queries.engines.compilation.bounding import Bounding, Step
from sfumato.queries.engines.compilation.group_table import numbered_groups
from sfumato.queries.engines.compilation.job import (
    GROUPS,
    CompiledJob,
    as_one_statement,
    with_bin_counts,
)
from sfumato.queries.engines.compilation.windowed_bounding import WindowedBounding
from sfumato.queries.engines.postgres.connection import library, open_connection, settle
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.engines.postgres.failures import LOCK_WAIT, before_charge, holders_of_locks, in_query
from sfumato.queries.engines.postgres.fingerprint import content
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.engines.postgres.tables import check_server, find_tables, may_make_tables, stamp
from sfumato.queries.engines.self_test import run_self_test
from sfumato.queries.engines.stored_tables import StoredTablesEngine
from sfumato.queries.plan.query import AggregationJob

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresEngine"]

_CHANGED: Final = (
    "a table must stay the table it was while its source is open, got one that was dropped, altered, "
    "truncated or rewritten; nothing was charged; connect again"
)
_UNABLE: Final = (
    "a PostgreSQL source must let its user call the functions of pg_catalog, and fill and ANALYZE temporary "
    "tables where it may make them, got a refusal in a trial on rows of its own; nothing was charged: check "
    "the rights and settings of the user, then connect again"
)
_LISTED: Final = "listed"
_CANCEL_SECONDS: Final = 5.0
_Found = TypeVar("_Found")


class PostgresEngine(StoredTablesEngine):
    """Computes jobs in a PostgreSQL database, over the tables as they were when the engine opened.

    One connection holds a snapshot of the database from opening to closing; each job runs on another one,
    sees that snapshot, and writes nothing but temporary tables: its transaction is read-only from the moment
    they are made, and is always rolled back. A user who only reads, by default or for want of a right, and a
    standby server make no tables: there each job is one SELECT. What a job computes with are built-in
    functions and operators of ``pg_catalog`` only.

    Parameters
    ----------
    source : PostgresSource
        The tables to read.
    public : PostgresSource, optional
        More tables of the same database.

    Raises
    ------
    MissingExtra
        If psycopg is not installed.
    SourceError
        If the database cannot be reached or used, or a table is missing or no ordinary table; also if a job
        over rows in the text of its statements fails, as every query would.

    Notes
    -----
    Guarantee: that of :class:`~sfumato.queries.engines.engine.Engine`, under add/remove of one unit. Rows
    with a NULL (or NaN) unit are dropped; NaN values are NULL; infinity is clamped to a bound; keys that are
    NaN are NULL; the time a query takes is outside the guarantee, and so is what the server logs.
    """

    _failed = (
        "the engine must finish what was charged, got a failure of the database or of the connection to it; "
        "the charge stays: check that the server runs and has room for temporary tables, then ask again"
    )

    _dialect: PostgreSQL

    def __init__(self, source: PostgresSource, public: PostgresSource | None = None) -> None:
        if public is not None and public.url != source.url:
            refuse("public", "name tables of the same database", public, "pass the same address")
        self._source = source
        self._lock = threading.Lock()
        self._worker: psycopg.Connection[Any] | None = None
        self._holder = open_connection(source)
        try:
            self._ask(lambda: self._open(public))
            self._try_out()
        except BaseException:
            self.close()
            raise

    def _open(self, public: PostgresSource | None) -> None:
        """Find the tables, and hold them as they are now."""
        self._holder.execute(f"SET lock_timeout = '{LOCK_WAIT}'")
        self._dialect = check_server(self._holder)
        self._makes_tables = may_make_tables(self._holder)
        private = find_tables(self._holder, self._source, self._dialect)
        listed = {} if public is None else find_tables(self._holder, public, self._dialect)
        self.private, self.public = tuple(private), tuple(listed)
        self._tables = {**private, **listed}
        self._holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        self._snapshot = str(self._holder.execute("SELECT pg_export_snapshot()").fetchall()[0][0])
        with self._transaction(LOCK_WAIT, limited=False) as connection:
            self._stamp = stamp(connection, self._tables, self._dialect)
        if not self._stamp:
            raise SourceError(_CHANGED)

    def _try_out(self) -> None:
        """Refuse a user for whom no query could be computed."""
        answer = None
        with suppress(library().Error), self._transaction(limited=False) as connection:
            answer = self._answer(connection, run_self_test(self._dialect), bytes(32))
        if answer is None:
            raise SourceError(_UNABLE)

    def fingerprint(self, key: bytes) -> str:
        """Return a keyed digest of the content of all tables, in hexadecimal; the server computes it.

        Raises
        ------
        SourceError
            If the connection is lost, the limit on time is reached, or a table was changed in a way that a
            snapshot does not outlive.
        """

        def digest() -> str:
            with self._transaction(LOCK_WAIT) as connection:
                self._check_unchanged(connection)
                return content(connection, self._tables, self._dialect, key)

        with self._lock:
            return self._ask(digest)

    def close(self) -> None:
        """Close the connections; calling it again does nothing."""
        self._holder.close()
        if self._worker is not None:
            self._worker.close()

    def _fetch(self, select: str, schema: pa.Schema) -> pa.Table:
        with self._transaction() as connection:
            return _table(connection, select, schema)

    def _accepts(self, prepared: CompiledJob) -> bool:
        select = (
            WindowedBounding.of(prepared, bytes(32)).parts().select if prepared.unit else prepared.rows(None)
        )

        def accepts() -> bool:
            self._holder.execute("SELECT 1")
            with self._transaction(LOCK_WAIT, limited=False) as connection:
                self._check_unchanged(connection)
                return self._explains(connection, select) and (
                    not prepared.unit or self._explains(connection, f"ANALYZE {_ranked_nobody(prepared)}")
                )

        with self._lock:
            return self._ask(accepts)

    def _compute(self, job: AggregationJob, prepared: CompiledJob, secret: bytes) -> pa.Table:
        with self._transaction() as connection:
            self._check_unchanged(connection)
            return self._answer(connection, prepared, secret)

    def _answer(self, connection: psycopg.Connection[Any], prepared: CompiledJob, secret: bytes) -> pa.Table:
        run = _run if self._makes_tables else _select
        return run(connection, prepared, secret)

    def _failure(self, error: Exception) -> str:
        return in_query(error, self._source, self._failed)

    def _interrupt(self) -> bool:
        worker = self._worker
        if worker is not None:
            worker.cancel_safe(timeout=_CANCEL_SECONDS)
        return True

    def _explains(self, connection: psycopg.Connection[Any], select: str) -> bool:
        try:
            connection.execute(f"EXPLAIN {select}")
        except library().Error:
            if connection.broken:
                raise
            return False
        return True

    @contextmanager
    def _transaction(self, lock_wait: str = "", *, limited: bool = True) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection that sees the snapshot; what is done on it is rolled back.

        The curator's limit on time is for what reads rows, not for trials and plans.
        """
        if self._worker is None or self._worker.closed:
            self._worker = open_connection(self._source)
        connection = self._worker
        try:
            mode = "READ WRITE" if self._makes_tables else "READ ONLY"
            connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ, {mode}")
            connection.execute(f"SET TRANSACTION SNAPSHOT '{self._snapshot}'")
            settle(connection, self._source, local=True, limited=limited)
            if lock_wait:
                connection.execute(f"SET LOCAL lock_timeout = '{lock_wait}'")
            yield connection
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()  # the server rolls back; nothing more can be known of this connection
            raise

    def _check_unchanged(self, connection: psycopg.Connection[Any]) -> None:
        if stamp(connection, self._tables, self._dialect) != self._stamp:
            raise SourceError(_CHANGED)

    def _ask(self, work: Callable[[], _Found]) -> _Found:
        """Return what is found before a charge; whatever the database says instead becomes one message."""
        try:
            return work()
        except library().Error as error:
            said = before_charge(error, self._source, holders_of_locks(self._holder, self._source))
        raise SourceError(said)  # outside of the handler: messages of the server quote values


def _select(connection: psycopg.Connection[Any], prepared: CompiledJob, secret: bytes) -> pa.Table:
    """Return the answer by SELECT alone, of the same steps."""
    if prepared.listed is not None:
        prepared = replace(prepared, listed=None, table=_listed(prepared, prepared.listed))
    answer, *leaves = as_one_statement(prepared, secret, WindowedBounding.of(prepared, secret))
    counts = zip(prepared.slots.binned, leaves, strict=True)
    return with_bin_counts(
        _table(connection, answer, prepared.schema),
        {index: _leaves(connection, prepared, select) for index, select in counts},
    )


def _listed(prepared: CompiledJob, groups: pa.Table) -> str:
    """Return the SELECT of listed groups, from one array for each key: a text, however many there are."""
    arrays = []
    for key, type_ in zip(prepared.keys, prepared.types, strict=True):
        items = ",".join(_item(value) for value in groups[key].to_pylist())
        dialect = prepared.dialect
        arrays.append(f"CAST({dialect.string('{' + items + '}')} AS {dialect.types[type_]}[])")
    keys = ", ".join(prepared.keys)
    return f"SELECT {keys} FROM unnest({', '.join(arrays)}) AS listed ({keys})"


def _item(value: object) -> str:
    """Return a value as an item of an array's text."""
    if value is None:
        return "NULL"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _ranked_nobody(prepared: CompiledJob) -> str:
    """Return a SELECT of the rank of a unit that is NULL: it fails if the server has no hash of its type."""
    rank = prepared.dialect.rank((0, 0), ["u"])
    return f"SELECT {rank} FROM (SELECT 1 AS one) AS o LEFT JOIN ({prepared.base}) AS r ON FALSE"


def _run(connection: psycopg.Connection[Any], prepared: CompiledJob, secret: bytes) -> pa.Table:
    bounding = WindowedBounding.of(prepared, secret)
    steps = _groups(connection, prepared)
    bounds = bounding.steps() if prepared.unit else []
    for step in (*steps, *bounds):
        connection.execute(f"CREATE TEMPORARY TABLE {step.name} ON COMMIT DROP AS {step.select} WITH NO DATA")
    connection.execute("SET TRANSACTION READ ONLY")
    _list_groups(connection, prepared)
    for step in steps:
        _fill(connection, step)
    crowded = _bound(connection, bounding, bounds)
    answer = _table(connection, prepared.answer(bounding, any_crowded=crowded), prepared.schema)
    leaves = prepared.leaves(bounding, any_crowded=crowded)
    return with_bin_counts(answer, {index: _leaves(connection, prepared, leaves[index]) for index in leaves})


def _groups(connection: psycopg.Connection[Any], prepared: CompiledJob) -> list[Step]:
    """Return the step that makes the table of public groups, if there are any."""
    if not prepared.public:
        return []
    if prepared.listed is not None:
        dialect = prepared.dialect
        columns = zip(prepared.keys, prepared.types, strict=True)
        items = ", ".join(f"CAST(NULL AS {dialect.types[type_]}) AS {key}" for key, type_ in columns)
        connection.execute(f"CREATE TEMPORARY TABLE {_LISTED} ON COMMIT DROP AS SELECT {items} WITH NO DATA")
    source = _LISTED if prepared.listed is not None else f"({prepared.table})"
    return [Step(GROUPS, numbered_groups(source, prepared.types, prepared.dialect))]


def _list_groups(connection: psycopg.Connection[Any], prepared: CompiledJob) -> None:
    if prepared.listed is not None:
        with connection.cursor() as cursor, cursor.copy(f"COPY {_LISTED} FROM STDIN") as copy:
            for row in prepared.listed.to_pylist():
                copy.write_row(tuple(row.values()))


def _bound(connection: psycopg.Connection[Any], bounding: Bounding, steps: list[Step]) -> bool:
    """Make the parts that count; return whether some were computed again from fewer rows."""
    for step in steps:
        _fill(connection, step)
        if step.name == "crowded":
            (found,) = connection.execute("SELECT EXISTS (SELECT 1 FROM crowded)").fetchall()
            if not found[0]:
                return False
    return bool(steps) and bounding.trims_rows


def _fill(connection: psycopg.Connection[Any], step: Step) -> None:
    connection.execute(f"INSERT INTO pg_temp.{step.name} {step.select}")
    connection.execute(f"ANALYZE pg_temp.{step.name}")


def _leaves(connection: psycopg.Connection[Any], prepared: CompiledJob, select: str) -> pa.Table:
    keys = [(key, prepared.schema.field(key).type if key != "g" else pa.int64()) for key in prepared.grouping]
    return _table(connection, select, pa.schema([*keys, ("leaf", pa.int64()), ("n", pa.int64())]))


def _table(connection: psycopg.Connection[Any], select: str, schema: pa.Schema) -> pa.Table:
    """Return the rows of a SELECT; integers are exact, whatever type the server gives them."""
    with connection.cursor(binary=True) as cursor:
        rows = cursor.execute(select).fetchall()
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [_array(field, values) for field, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(field: pa.Field, values: tuple[Any, ...]) -> pa.Array:
    whole = pa.types.is_integer(field.type)
    return pa.array([None if v is None else int(v) for v in values] if whole else values, field.type)
