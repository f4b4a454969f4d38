"""The PostgreSQL engine: bounded, exact integers over tables that stay in their database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from sfumato._check import refuse
from sfumato.errors import SourceError
from sfumato.queries.engines.compilation.bounding import Bounding, Step
from sfumato.queries.engines.compilation.group_table import numbered_groups
from sfumato.queries.engines.compilation.job import GROUPS, CompiledJob, with_bin_counts
from sfumato.queries.engines.postgres.dialect import PostgreSQL
from sfumato.queries.engines.postgres.fingerprint import content
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.engines.postgres.tables import (
    check_server,
    find_tables,
    library,
    open_connection,
    settle,
    stamp,
)
from sfumato.queries.engines.self_test import run_self_test
from sfumato.queries.engines.stored_tables import StoredTablesEngine
from sfumato.queries.plan.query import AggregationJob

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresEngine"]

_LOST: Final = (
    "a PostgreSQL source must keep its connection while it is open, got one that ended; nothing was charged; "
    "connect again"
)
_CHANGED: Final = (
    "a table must stay the table it was while its source is open, got one that was dropped, altered, "
    "truncated or rewritten; nothing was charged; connect again"
)
_UNABLE: Final = (
    "a PostgreSQL source must let its user make temporary tables, fill and ANALYZE them, and call the "
    "functions of pg_catalog, got a refusal in a trial on rows of its own; nothing was charged: check the "
    "rights and settings of the user, then connect again"
)
_LISTED: Final = "listed"


class PostgresEngine(StoredTablesEngine):
    """Computes jobs in a PostgreSQL database, over the tables as they were when the engine opened.

    One connection holds a snapshot of the database from opening to closing; each job runs on another one,
    sees that snapshot, and writes nothing but temporary tables: its transaction is read-only from the moment
    they are made, and is always rolled back. What a job computes with are built-in functions and operators
    of ``pg_catalog`` only.

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
            self._dialect = check_server(self._holder)
            private = find_tables(self._holder, source, self._dialect)
            listed = {} if public is None else find_tables(self._holder, public, self._dialect)
            self.private, self.public = tuple(private), tuple(listed)
            self._tables = {**private, **listed}
            with self._or_lost():
                self._holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                self._snapshot = str(self._holder.execute("SELECT pg_export_snapshot()").fetchall()[0][0])
                with self._transaction() as connection:
                    self._stamp = stamp(connection, self._tables, self._dialect)
            self._try_out()
        except BaseException:
            self.close()
            raise

    def _try_out(self) -> None:
        """Refuse a user for whom no query could be computed."""
        answer = None
        with suppress(library().Error), self._transaction() as connection:
            answer = _run(connection, run_self_test(self._dialect), bytes(32))
        if answer is None:
            raise SourceError(_UNABLE)

    def fingerprint(self, key: bytes) -> str:
        """Return a keyed digest of the content of all tables, in hexadecimal; it streams every row once.

        Raises
        ------
        SourceError
            If the connection is lost, or a table was changed in a way that a snapshot does not outlive.
        """
        with self._lock, self._or_lost(), self._transaction() as connection:
            self._check_unchanged(connection)
            return content(connection, self._tables, self._dialect, key)

    def close(self) -> None:
        """Close the connections; calling it again does nothing."""
        self._holder.close()
        if self._worker is not None:
            self._worker.close()

    def _accepts(self, prepared: CompiledJob) -> bool:
        select = prepared.bounding(bytes(32)).parts().select if prepared.unit else prepared.rows(None)
        with self._lock, self._or_lost():
            self._holder.execute("SELECT 1")
            with self._transaction() as connection:
                self._check_unchanged(connection)
                return self._explains(connection, select)

    def _compute(self, job: AggregationJob, prepared: CompiledJob, secret: bytes) -> pa.Table:
        with self._transaction() as connection:
            self._check_unchanged(connection)
            return _run(connection, prepared, secret)

    def _explains(self, connection: psycopg.Connection[Any], select: str) -> bool:
        try:
            connection.execute(f"EXPLAIN {select}")
        except library().Error:
            if connection.broken:
                raise
            return False
        return True

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection that sees the snapshot; what is done on it is rolled back."""
        if self._worker is None or self._worker.closed:
            self._worker = open_connection(self._source)
        connection = self._worker
        try:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            connection.execute(f"SET TRANSACTION SNAPSHOT '{self._snapshot}'")
            settle(connection, local=True)
            yield connection
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()  # the server rolls back; nothing more can be known of this connection
            raise

    def _check_unchanged(self, connection: psycopg.Connection[Any]) -> None:
        if stamp(connection, self._tables, self._dialect) != self._stamp:
            raise SourceError(_CHANGED)

    @contextmanager
    def _or_lost(self) -> Iterator[None]:
        """Turn whatever the database says into one message."""
        lost = False
        try:
            yield
        except library().Error:
            lost = True
        if lost:
            raise SourceError(_LOST)


def _run(connection: psycopg.Connection[Any], prepared: CompiledJob, secret: bytes) -> pa.Table:
    bounding = prepared.bounding(secret)
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
