"""What engines over stored tables have in common: how they show the tables, check a job and fail."""

from __future__ import annotations

import hashlib
import hmac
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final, Self

import pyarrow as pa

from sfumato._check import refuse_state
from sfumato._wire import Format, canonical, optional
from sfumato.errors import (
    EngineError,
    ParameterError,
    QueryCancelled,
    QueryError,
    SchemaError,
    SourceError,
)
from sfumato.queries.engines.compilation.job import CompiledJob, compile_job
from sfumato.queries.engines.compilation.relations import relation_layer
from sfumato.queries.engines.dialects.base import Dialect, StoredTable
from sfumato.queries.engines.watched_run import CANCELLED, Display, WatchedRun
from sfumato.queries.plan.nodes import PerUnit, PublicScan, UnitAggregate, UnitFunction
from sfumato.queries.plan.query import AggregationJob, PublicRelation, Schema
from sfumato.queries.plan.relation_parts import single_values
from sfumato.queries.plan.schema import ARROW_TYPES
from sfumato.queries.plan.wire_names import COLUMN_TYPE

__all__ = ["StoredTablesEngine", "digest_tables"]

_FORMAT: Final = Format("sfumato.schema", 1)
_SECRET_BYTES: Final = 16


class StoredTablesEngine(ABC):
    """An engine over tables that it knows by name; how it runs the statements of a job is the subclass's."""

    _failed: ClassVar[str]
    """What is said of a failure after the charge."""

    _dialect: Dialect
    _lock: threading.Lock
    _tables: Mapping[str, StoredTable]
    _running: WatchedRun[pa.Table] | None = None
    display: Display | None = None
    """Where progress is shown, to the curator alone; nowhere unless it is set."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The tables by name, with their columns."""
        return {name: table.schema for name, table in self._tables.items()}

    @property
    def schema_text(self) -> str:
        """All tables, columns and types as JSON of the format ``sfumato.schema``, to identify a dataset."""
        tables = {
            name: [
                {"name": column.name, "type": optional(COLUMN_TYPE).encode(column.type)}
                for column in schema.columns
            ]
            for name, schema in self.schemas.items()
        }
        return canonical(_FORMAT.wrap({"tables": tables}))

    def unite(self, columns: Mapping[str, tuple[str, ...]]) -> None:
        """Refuse connected components: an engine that can make them overrides this.

        Raises
        ------
        ParameterError
            Always.
        """
        del columns
        raise ParameterError(
            "privacy_unit must be one column in a database or on a cluster, got several; make a column there "
            "that numbers the users and devices that are connected"
        )

    def check(self, job: AggregationJob) -> None:
        """Refuse a job that cannot run; reads no private row.

        Parameters
        ----------
        job : AggregationJob

        Raises
        ------
        SourceError
            If the tables are not the ones that were opened any more, or cannot be reached.
        ParameterError
            If a limit or bound is out of range, or a limit on groups is missing where a unit can be in
            several.
        QueryError
            If the engine cannot express the job, public keys are not of their keys' types, or a subquery in
            an expression has several rows.
        """
        prepared = compile_job(job, self._tables, self._dialect)
        self._require_single_values(job)
        if not self._accepts(replace(prepared, listed=None, table=None)):
            raise SchemaError(
                "the query must suit the engine, got an expression it refuses; simplify the expression"
            )

    def _require_single_values(self, job: AggregationJob) -> None:
        """Refuse a subquery in an expression that has several rows; it reads public tables alone."""
        groups = job.public_groups
        listed = [groups.relation] if isinstance(groups, PublicRelation) else []
        for each in (value for relation in (job.relation, *listed) for value in single_values(relation)):
            counted = PerUnit(each, (), (UnitAggregate("n", UnitFunction.COUNT_ROWS),), None)
            layer = relation_layer(counted, self._tables, self._dialect)
            select = f"SELECT {layer.columns['n'].sql} AS n FROM ({layer.sql}) AS listed"
            found = None
            with suppress(Exception), self._lock:
                found = self._fetch(select, pa.schema([("n", pa.int64())]))
            if found is None:
                raise SourceError(
                    "public tables must be readable, got a failure; check that they are still there, and ask "
                    "again: nothing was charged"
                )
            many = found["n"][0].as_py()
            if many > 1:
                raise QueryError(
                    f"a subquery in an expression must have one row at most, got {many} public rows; write "
                    "MAX(x) in it, or join the table"
                )

    def aggregate(self, job: AggregationJob, secret: bytes) -> pa.Table:
        """Compute the exact bounded integers of a job.

        Parameters
        ----------
        job : AggregationJob
        secret : bytes
            Keys the choice of rows and groups: fresh and secret for each query, at least 16 bytes.

        Returns
        -------
        pyarrow.Table
            ``k0, ...`` then ``m0, ...`` (int64), sorted by key, NULL last.

        Raises
        ------
        EngineError
            If the engine fails, or the connection to it; the message is fixed, of the engine's few.
        QueryCancelled
            If `cancel` was called from another thread.
        """
        if len(secret) < _SECRET_BYTES:
            rule, remedy = f"have at least {_SECRET_BYTES} bytes", "draw it from a secure source"
            refuse_state("secret", rule, f"it has {len(secret)}", remedy)
        prepared = compile_job(job, self._tables, self._dialect)
        answer, said, cancelled = None, self._failed, False
        try:
            with self._lock:
                answer = self._watch(partial(self._compute, job, prepared, secret))
        except QueryCancelled:
            cancelled = True
        except Exception as error:  # of whatever kind: none may show
            said = self._failure(error)
        if cancelled:
            raise QueryCancelled(CANCELLED)
        if answer is None:  # outside of the handler: messages of engines quote values
            raise EngineError(said)
        return answer

    def cancel(self) -> bool:
        """Make the job that is computed now, if any, end at once; from any thread.

        Returns
        -------
        bool
            Whether one was computed.
        """
        run = self._running
        if run is not None:
            run.cancel()
        return run is not None

    def _watch(self, work: Callable[[], pa.Table]) -> pa.Table:
        """Run a job in a thread of its own, so that the one that asks can hear that it is to be cancelled."""
        self._running = run = WatchedRun(work, interrupt=self._interrupt, progress=self._percent)
        try:
            return run.result(self.display)
        finally:
            self._running = None

    def _interrupt(self) -> bool:
        """Stop the statement that runs now, and return whether the engine can stop it.

        Called from another thread, and again until the job ends.
        """
        return False

    def _percent(self) -> float | None:
        """Return how much of the statement that runs now is done, in per cent; None where that is unknown."""
        return None

    def _failure(self, error: Exception) -> str:
        """Return what is said of a failure after the charge: nothing that depends on rows."""
        del error
        return self._failed

    def public_rows(self, table: str) -> pa.Table:
        """Return the rows of a public table, its usable columns in the types of queries.

        Parameters
        ----------
        table : str
            One that the session lists as public; the rows of a private one must never be asked for.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        SourceError
            If they cannot be read.
        """
        usable = self._tables[table].schema.usable
        layer = relation_layer(PublicScan(table, usable), self._tables, self._dialect)
        typed = [(layer.columns[c.name.casefold()].sql, c.type) for c in usable.columns if c.type is not None]
        kinds = [(f"p{i}", ARROW_TYPES[type_]) for i, (_, type_) in enumerate(typed)]
        items = [f"{self._dialect.canonical(sql, type_)} AS p{i}" for i, (sql, type_) in enumerate(typed)]
        select = f"SELECT {', '.join(items) or '1 AS nothing'} FROM ({layer.sql}) AS listed"
        rows = None
        with suppress(Exception), self._lock:
            rows = self._fetch(select, pa.schema(kinds))
        if rows is None:
            raise SourceError(
                f"public table {table!r} must be readable, got a failure; check that it is still there, and "
                "ask again: nothing was charged"
            )
        return rows.rename_columns([column.name for column in usable.columns])

    @abstractmethod
    def _fetch(self, select: str, schema: pa.Schema) -> pa.Table:
        """Return the rows of a SELECT of public columns, under the lock; what it raises is not shown."""

    @abstractmethod
    def _accepts(self, prepared: CompiledJob) -> bool:
        """Return whether the engine can plan a job; its public groups were taken out."""

    @abstractmethod
    def _compute(self, job: AggregationJob, prepared: CompiledJob, secret: bytes) -> pa.Table:
        """Run the statements of a job, under the lock; what it raises is not shown."""

    @abstractmethod
    def close(self) -> None:
        """Release what the engine holds; calling it again does nothing."""


def digest_tables(
    key: bytes,
    form: bytes,
    tables: Mapping[str, StoredTable],
    content: Callable[[StoredTable], Iterable[bytes]],
) -> str:
    """Return the HMAC-SHA-256 of tables in hexadecimal: of their names, types and content, piece by piece.

    Parameters
    ----------
    key : bytes
    form : bytes
        The name and version of what is digested, which comes first.
    tables : mapping of str to StoredTable
    content : callable
        Returns what stands for the rows of a table.
    """
    mac = hmac.new(key, digestmod=hashlib.sha256)

    def add(piece: bytes) -> None:
        mac.update(len(piece).to_bytes(8, "big"))
        mac.update(piece)

    add(form)
    for name in sorted(tables):
        add(name.encode())
        for column in tables[name].columns:
            add(f"{column.stored} {column.name}".encode())
        for piece in content(tables[name]):
            add(piece)
    return mac.hexdigest()
