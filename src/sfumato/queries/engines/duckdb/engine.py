"""The DuckDB engine: bounded, exact integers over local files and frames."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import duckdb
import pyarrow as pa

from sfumato._check import integer, refuse
from sfumato.errors import SourceError
from sfumato.frames.sources import Source
from sfumato.queries.engines.compilation.bounding import Bounding
from sfumato.queries.engines.compilation.group_table import numbered_groups
from sfumato.queries.engines.compilation.job import GROUPS, CompiledJob, compile_job, with_bin_counts
from sfumato.queries.engines.duckdb.cache import CACHED_PARTS, BoundingCache, CachedBounding
from sfumato.queries.engines.duckdb.components import add_components
from sfumato.queries.engines.duckdb.connection import connect, lock
from sfumato.queries.engines.duckdb.fingerprint import fingerprint, stamps
from sfumato.queries.engines.duckdb.kernel import KernelAnswer, KernelSettings, bound_rows
from sfumato.queries.engines.duckdb.ranks import RANKED_DUCKDB, add_ranks
from sfumato.queries.engines.duckdb.storage import store
from sfumato.queries.engines.self_test import run_self_test
from sfumato.queries.engines.stored_tables import StoredTablesEngine
from sfumato.queries.engines.watched_run import Display
from sfumato.queries.plan.query import AggregationJob

__all__ = ["DuckDBEngine"]

_LISTED = "listed"
_KERNEL_TOTALS = "kernel_totals"
_RETAINED_SHARE = 8  # of the memory limit, for what the kernel retains
_SERVED = ("parts", "trimmed")


class DuckDBEngine(StoredTablesEngine):
    """Computes jobs over sources with a private DuckDB in this process.

    The database lies in memory, reads nothing but its sources, and never writes to them; what does not fit
    goes to a folder that only this user can enter and that goes away with the engine. A CSV file is taken in
    when the engine opens, in the types that are declared for it, and held in memory from then on.

    Parameters
    ----------
    sources : mapping of str to Source
        What :func:`~sfumato.frames.sources.open_source` returned.
    memory_limit : str, optional
        Most memory for DuckDB, such as ``"2GB"``; beyond it the engine spills. Default: DuckDB's (80 % of
        the machine). The bounding kernel takes up to a quarter as much for rows, while DuckDB only scans;
        beyond it spills, too. It takes an eighth for counts of single rows, and one for what it retains.
    threads : int, optional
        Default: one for each core.
    cache : int
        For how many choices of rows, groups and limits the bounded parts are retained for later jobs, which
        then share their secret.
    kernel : bool
        Whether the bounding kernel does the jobs that it can; else SQL does all, with the same answers.
    display : callable, optional
        Where the progress of jobs is shown; to the curator alone, for it depends on the data.

    Raises
    ------
    SourceError
        If a source cannot be read, or there is no folder for temporary files.
    ParameterError
        If a setting is none, or no query could be computed in so little memory.

    Notes
    -----
    Guarantee: that of :class:`~sfumato.queries.engines.engine.Engine`, under add/remove of one unit. Rows
    with a NULL (or NaN) unit are dropped; NaN values are NULL; infinity is clamped to a bound; keys that
    are NaN are NULL; the time a query takes is outside the guarantee.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.frames.sources import open_source
    >>> with DuckDBEngine(open_source(pa.table({"person": [1, 2], "age": [30, 40]}))) as engine:
    ...     [column.name for column in engine.schemas["data"].columns]
    ['person', 'age']
    """

    _failed = (
        "the engine must finish what was charged, got a failure inside it; the charge stays: free memory and "
        "disk space, check that the source is still there, then ask again"
    )
    _dialect = RANKED_DUCKDB

    def __init__(
        self,
        sources: Mapping[str, Source],
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        cache: int = 0,
        kernel: bool = True,
        display: Display | None = None,
    ) -> None:
        integer("cache", cache, remedy="0 keeps nothing")
        if threads is not None:
            integer("threads", threads, minimum=1, remedy="leave it out for one on each core")
        self._sources, self.display = dict(sources), display
        spill = _spill_folder()
        self._remove_spill = weakref.finalize(self, _remove, spill, os.getpid())
        self._lock = threading.Lock()
        try:
            counted = display is not None
            self._connection = connect(spill, memory_limit=memory_limit, threads=threads, progress=counted)
        except duckdb.Error:
            self._remove_spill()
            refuse("memory_limit", "be a size such as '2GB'", memory_limit, "check it and threads")
        # A database with a function of Python must be closed before the interpreter ends.
        self._close_connection = weakref.finalize(self, _close, self._connection, os.getpid())
        self._kernel: KernelSettings | None = None
        self._layouts = BoundingCache(self._execute, 0)
        self._stamps = stamps(self._sources)
        try:
            settings = self._tried_out(spill, memory_limit)
            self._kernel = settings if kernel else None
            self._layouts = BoundingCache(self._execute, cache)
            self._tables = store(self._connection, self._sources)
            lock(self._connection, self._sources)
        except BaseException:
            self.close()
            raise

    def _tried_out(self, spill: str, memory_limit: str | None) -> KernelSettings:
        """Add what queries need; refuse a limit under which none could be computed, however few the rows."""
        settings = None
        with suppress(duckdb.Error, MemoryError):
            add_ranks(self._connection)
            found = KernelSettings.of(self._connection, spill)
            if memory_limit is not None:
                self._run(run_self_test(RANKED_DUCKDB), None, bytes(32))
            settings = found
        if settings is None:
            refuse(
                "memory_limit", "be enough for a query over a few rows", memory_limit, "give 100MB or more"
            )
        return settings

    def fingerprint(self, key: bytes) -> str:
        """Return the keyed HMAC-SHA-256 of the content of all tables, in hexadecimal.

        Parameters
        ----------
        key : bytes
            Of 32 bytes; without it nobody can test a guess at the content.

        Returns
        -------
        str

        Raises
        ------
        SourceError
            If a file can no longer be read.
        """
        try:
            made = fingerprint(self._sources, key)
        except OSError:
            made = None
        if made is None:
            raise SourceError(
                "a source must stay readable, got a file that is gone; put it back and connect again"
            )
        self._check_unchanged()
        return made

    def unite(self, columns: Mapping[str, tuple[str, ...]]) -> None:
        """Give tables a column more, ``privacy_unit``: the connected component of each row.

        Parameters
        ----------
        columns : mapping of str to tuple of str
            The columns whose values connect rows, table by table; see
            :mod:`~sfumato.queries.engines.duckdb.components`.

        Raises
        ------
        SourceError
            If the database fails over it; the message is fixed.
        """
        united = None
        with suppress(duckdb.Error, MemoryError), self._lock:
            united = add_components(self._connection, self._tables, columns)
        if united is None:
            raise SourceError(
                "the connected components must fit in memory, got a failure; free some, or make a column "
                "that numbers them and name it as the unit"
            )
        self._tables = {**self._tables, **united}

    def _check_unchanged(self) -> None:
        if stamps(self._sources) != self._stamps:
            raise SourceError(
                "a source must stay as it is while it is open, got a file that was changed; connect again"
            )

    def close(self) -> None:
        """Close the database and remove the spill folder; calling it again does nothing."""
        self._close_connection()
        self._remove_spill()

    def _interrupt(self) -> bool:
        self._connection.interrupt()
        return True

    def _percent(self) -> float | None:
        done = self._connection.query_progress()
        return done if done >= 0 else None

    def _fetch(self, select: str, schema: pa.Schema) -> pa.Table:
        return self._connection.sql(select).to_arrow_table().cast(schema)

    def _accepts(self, prepared: CompiledJob) -> bool:
        self._check_unchanged()
        with suppress(duckdb.Error), self._lock:
            return bool(self._connection.execute(f"EXPLAIN {prepared.rows(None)}").fetchall())
        return False

    def _compute(self, job: AggregationJob, prepared: CompiledJob, secret: bytes) -> pa.Table:
        known = self._layouts.known(prepared.identity)
        again = None if known is None else compile_job(job, self._tables, RANKED_DUCKDB, known)
        return self._run(prepared, again, secret)

    def _run(self, fresh: CompiledJob, again: CompiledJob | None, secret: bytes) -> pa.Table:
        """Compute a job, ``again`` from its retained layout if that serves, else ``fresh``."""
        made: list[str] = []
        with self._temporary(made):
            layout = None if again is None else self._layouts.take(again.identity, again.slots)
            if again is None or layout is None:
                prepared, layout = fresh, self._laid_out(fresh, secret, made)
            else:
                prepared = again
                made += layout.tables
            answer = layout.answers.get(prepared.slots.measures)
            if answer is None:
                answer = self._computed(prepared, layout)
            if layout.reusable:
                self._layouts.keep(prepared.identity, layout.with_answer(prepared.slots.measures, answer))
                made.clear()
        return answer

    def _laid_out(self, prepared: CompiledJob, secret: bytes, made: list[str]) -> CachedBounding:
        if prepared.public:
            self._make(GROUPS, self._groups(prepared), made)
        slots = prepared.slots
        columns = tuple(slots.items), frozenset(slots.part_names)
        if self._kernel is not None:
            most = self._layouts.most
            retain = self._kernel.memory // _RETAINED_SHARE // most if most else -1
            found = bound_rows(self._connection, prepared, secret, self._kernel, retain=retain)
            if found is not None:
                answers = {slots.measures: self._arranged(prepared, found)}
                retained = found.parts is not None
                return CachedBounding(secret, *columns, tuple(made), False, answers, found.parts, retained)
        bounding = prepared.bounding(secret)
        crowded = prepared.unit and self._bound(bounding, made)
        if prepared.unit and self._layouts.most:
            # Later jobs read what stays, and rows by bin; the rest has served.
            self._make(CACHED_PARTS, bounding.staying(unit=True, any_crowded=crowded), made)
            self._drop([table for table in made if table in _SERVED], made)
        return CachedBounding(secret, *columns, tuple(made), crowded)

    def _arranged(self, prepared: CompiledJob, found: KernelAnswer) -> pa.Table:
        """Return the answer, in its order, from what the kernel made."""
        self._connection.register(_KERNEL_TOTALS, found.totals)
        try:
            select = prepared.arranged(f"SELECT * FROM {_KERNEL_TOTALS}")
            table = self._connection.sql(select).to_arrow_table()
        finally:
            self._connection.unregister(_KERNEL_TOTALS)
        answer = table.select(prepared.schema.names).cast(prepared.schema)
        return with_bin_counts(answer, found.leaves(table))

    def _computed(self, prepared: CompiledJob, layout: CachedBounding) -> pa.Table:
        if layout.parts is not None:
            return self._arranged(prepared, KernelAnswer(layout.parts.totals(prepared.slots)))
        bounding, crowded = prepared.bounding(layout.secret), layout.crowded
        parts_table = CACHED_PARTS if CACHED_PARTS in layout.tables else None
        select = prepared.answer(bounding, any_crowded=crowded, parts_table=parts_table)
        answer = self._connection.sql(select).to_arrow_table()
        leaves = {
            index: self._connection.sql(select).to_arrow_table()
            for index, select in prepared.leaves(bounding, any_crowded=crowded).items()
        }
        return with_bin_counts(answer.cast(prepared.schema), leaves)

    def _bound(self, bounding: Bounding, made: list[str]) -> bool:
        """Make the parts that count; return whether some were computed again from fewer rows."""
        for step in bounding.steps():
            self._make(step.name, step.select, made)
            if step.name == "crowded":
                found = self._connection.execute("SELECT count(*) FROM crowded").fetchall()
                if found == [(0,)]:
                    return False
        return bounding.trims_rows

    def _make(self, table: str, select: str, made: list[str]) -> None:
        made.append(table)
        self._execute(f"CREATE TEMP TABLE {table} AS {select}")

    def _execute(self, statement: str) -> None:
        """Run a statement to its end: a result that is not read bars the connection."""
        self._connection.execute(statement).fetchall()

    def _groups(self, prepared: CompiledJob) -> str:
        if prepared.listed is None:
            return numbered_groups(f"({prepared.table})", prepared.types, RANKED_DUCKDB)
        self._connection.register(_LISTED, prepared.listed)
        return numbered_groups(_LISTED, prepared.types, RANKED_DUCKDB)

    @contextmanager
    def _temporary(self, made: list[str]) -> Iterator[None]:
        """Drop what a run made, whether it ends well or not: temporary tables are raw data."""
        try:
            yield
        finally:
            self._drop(list(made), made)
            self._connection.unregister(_LISTED)

    def _drop(self, tables: Sequence[str], made: list[str]) -> None:
        for table in tables:
            self._execute(f"DROP TABLE IF EXISTS {table}")
            made.remove(table)


def _close(connection: duckdb.DuckDBPyConnection, process: int) -> None:
    """Close a database, unless a forked child ends that did not open it."""
    if os.getpid() == process:
        connection.close()


def _spill_folder() -> str:
    """Make a folder that only this user can enter."""
    folder = None
    with suppress(OSError):
        folder = tempfile.mkdtemp(prefix="sfumato-")  # mode 0700
    if folder is None:
        raise SourceError(
            "the folder for temporary files must be writable, for what does not fit into memory, got one "
            "that is not; set TMPDIR to another"
        )
    return folder


def _remove(folder: str, process: int) -> None:
    """Remove a spill folder, unless a forked child ends that did not make it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
