"""The DuckDB engine: bounded, exact integers over local files and frames."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import duckdb
import pyarrow as pa

from sfumato._check import integer, refuse
from sfumato.errors import EngineError, SchemaError, SourceError
from sfumato.queries.engines.bounding import TEMPORARY, Bounding
from sfumato.queries.engines.connection import connect, lock
from sfumato.queries.engines.groups import ARROW_TYPES, listed_groups, numbered_groups, table_groups
from sfumato.queries.engines.identity import fingerprint, stamps
from sfumato.queries.engines.relations import canonical, relation_layer
from sfumato.queries.engines.rendering import render
from sfumato.queries.engines.slots import Slots
from sfumato.queries.engines.storage import store
from sfumato.queries.plan import AggregationJob, ColumnType, Expression, PublicTable, PublicValues, Schema
from sfumato.queries.sources import Source

__all__ = ["DuckDBEngine"]

_FAILED: Final = (
    "the engine must finish what was charged, got a failure inside it; the charge stays: free memory and "
    "disk space, check that the source is still there, then ask again"
)
_LISTED = "listed"


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A job as SQL: ``base`` has the unit, the keys in canonical form and the values that ``values`` grid."""

    base: str
    values: tuple[str, ...]
    types: tuple[ColumnType, ...]
    slots: Slots
    unit: bool
    max_groups: int | None
    max_rows: int | None
    listed: pa.Table | None
    table: str | None

    @property
    def public(self) -> bool:
        """Whether the groups are public."""
        return self.listed is not None or self.table is not None

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns of ``base`` and of the answer."""
        return tuple(f"k{i}" for i in range(len(self.types)))

    @property
    def grouping(self) -> tuple[str, ...]:
        """The columns to group by: a public group is known by its number."""
        return ("g",) if self.public else self.keys

    def rows(self, parts: str | None) -> str:
        """Return the SELECT of the rows, of some parts only if a table of these is named.

        NULL keys match NULL keys. Values are put on the grid last, so only for rows that matched.
        """
        source = f"({self.base}) AS r"
        if self.public:
            same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM p.{key}" for key in self.keys)
            source = f"(SELECT r.*, p.g FROM {source} JOIN groups AS p ON {same}) AS r"
        if parts is not None:
            keys = (f"r.{key} IS NOT DISTINCT FROM o.{key}" for key in self.grouping)
            source += f" SEMI JOIN {parts} AS o ON {' AND '.join(('r.u = o.u', *keys))}"
        items = [*(["r.u"] if self.unit else []), *(f"r.{key}" for key in self.grouping), *self.values]
        return f"SELECT {_list(items)} FROM {source}"


class DuckDBEngine:
    """Computes jobs over sources with a private DuckDB in this process.

    The database lies in memory, reads nothing but its sources, and never writes to them; what does not fit
    goes to a folder that only this user can enter and that goes away with the engine. The types of a CSV
    file are inferred once, from the whole file, when the engine opens, and the file is held in memory from
    then on.

    Parameters
    ----------
    sources : mapping of str to Source
        What :func:`~sfumato.queries.sources.open_source` returned.
    memory_limit : str, optional
        Most memory for DuckDB, such as ``"2GB"``; beyond it the engine spills. Default: DuckDB's (80 % of
        the machine).
    threads : int, optional
        Default: one for each core.

    Raises
    ------
    SourceError
        If a source cannot be read.

    Notes
    -----
    Guarantee: that of :class:`~sfumato.queries.engines.engine.Engine`, under add/remove of one unit. Rows
    with a NULL (or NaN) unit are dropped; NaN values are NULL; infinity is clamped to a bound; keys that
    are NaN are NULL; the time a query takes is outside the guarantee.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.queries.sources import open_source
    >>> with DuckDBEngine(open_source(pa.table({"person": [1, 2], "age": [30, 40]}))) as engine:
    ...     [column.name for column in engine.schemas["data"].columns]
    ['person', 'age']
    """

    def __init__(
        self, sources: Mapping[str, Source], *, memory_limit: str | None = None, threads: int | None = None
    ) -> None:
        if threads is not None:
            integer("threads", threads, minimum=1, remedy="leave it out for one on each core")
        self._sources = dict(sources)
        spill = tempfile.mkdtemp(prefix="sfumato-")  # mode 0700
        self._remove_spill = weakref.finalize(self, _remove, spill, os.getpid())
        self._lock = threading.Lock()
        try:
            self._connection = connect(spill, memory_limit=memory_limit, threads=threads)
        except duckdb.Error:
            self._remove_spill()
            refuse("memory_limit", "be a size such as '2GB'", memory_limit, "check it and threads")
        self._stamps = stamps(self._sources)
        try:
            self._tables = store(self._connection, self._sources)
            lock(self._connection, self._sources)
        except BaseException:
            self.close()
            raise
        self._schemas = MappingProxyType({name: table.schema for name, table in self._tables.items()})

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The tables by name, with their columns."""
        return self._schemas

    @property
    def schema_text(self) -> str:
        """Canonical text of all tables, columns and types, for the identity of a dataset."""
        lines = []
        for name in sorted(self._schemas):
            lines.append(f"table {name!r}")
            lines += [
                f"  {column.name!r} {'-' if column.type is None else column.type.value}"
                for column in self._schemas[name].columns
            ]
        return "\n".join(lines)

    def fingerprint(self, key: bytes) -> str:
        """Return the keyed HMAC-SHA-256 of the content of all tables, in hexadecimal.

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

    def _check_unchanged(self) -> None:
        if stamps(self._sources) != self._stamps:
            raise SourceError(
                "a source must stay as it is while it is open, got a file that was changed; connect again"
            )

    def close(self) -> None:
        """Close the database and remove the spill folder; calling it again does nothing."""
        self._connection.close()
        self._remove_spill()

    def check(self, job: AggregationJob) -> None:
        """Refuse a job that cannot run; reads no row.

        Raises
        ------
        SourceError
            If a file was changed since the engine opened it: its content is no longer what was fingerprinted.
        ParameterError
            If a limit or bound is out of range, or a limit on groups is missing where a unit can be in
            several.
        QueryError
            If the engine cannot express the job, or public keys are not of their keys' types.
        """
        self._check_unchanged()
        prepared = self._prepare(job)
        with self._lock:
            try:
                self._connection.execute(
                    f"EXPLAIN {replace(prepared, listed=None, table=None).rows(None)}"
                ).fetchall()
            except duckdb.Error:
                pass
            else:
                return
        raise SchemaError(
            "the query must suit the engine, got an expression it refuses; simplify the expression"
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
            If the database fails; the message is fixed.
        """
        if len(secret) < 16:
            refuse("secret", "have at least 16 bytes", f"{len(secret)} bytes", "draw it from a secure source")
        prepared = self._prepare(job)
        return _without_data(lambda: self._run(prepared, secret))

    def _prepare(self, job: AggregationJob) -> _Prepared:
        layer = relation_layer(job.relation, self._tables)
        max_groups, max_rows = _limits(job, unit=layer.unit)
        types = tuple(key.expression.type for key in job.keys)
        slots = Slots(job.measures, max_rows)
        values: list[Expression] = []
        for slot in slots.items:
            if slot.expression not in values:
                values.append(slot.expression)
        unit = ["u"] if layer.unit else []
        below = [
            *unit,
            *(f"{render(key.expression, layer.columns)} AS e{i}" for i, key in enumerate(job.keys)),
        ]
        below += [f"{render(value, layer.columns)} AS x{i}" for i, value in enumerate(values)]
        above = [*unit, *(f"{canonical(f'e{i}', type_)} AS k{i}" for i, type_ in enumerate(types))]
        above += [f"x{i}" for i in range(len(values))]
        base = f"SELECT {_list(above)} FROM (SELECT {_list(below)} FROM ({layer.sql}))"
        gridded = tuple(
            f"{slot.sql(f'r.x{values.index(slot.expression)}')} AS v{i}" for i, slot in enumerate(slots.items)
        )
        listed, table = None, None
        if isinstance(job.public_groups, PublicValues):
            listed = listed_groups(job.public_groups, types)
        elif isinstance(job.public_groups, PublicTable):
            table = table_groups(job.public_groups, self._tables, types)
        return _Prepared(base, gridded, types, slots, layer.unit, max_groups, max_rows, listed, table)

    def _run(self, prepared: _Prepared, secret: bytes) -> pa.Table:
        with self._lock, self._temporary():
            if prepared.public:
                self._make_groups(prepared)
            limits = prepared.max_groups, prepared.max_rows
            bounding = Bounding(prepared.rows, prepared.grouping, prepared.slots, *limits, secret)
            crowded = prepared.unit and self._bound(bounding)
            totals = bounding.totals(unit=prepared.unit, any_crowded=crowded)
            answer = self._connection.sql(_answer(prepared, totals)).to_arrow_table()
        return answer.cast(_answer_schema(prepared))

    def _bound(self, bounding: Bounding) -> bool:
        """Make the parts that count; tell whether some were computed again from fewer rows."""
        run = self._connection.execute
        run(bounding.parts())
        if bounding.max_groups is not None:
            run(bounding.cuts())
        if not bounding.trims_rows:
            return False
        run(bounding.crowded())
        if run("SELECT count(*) FROM crowded").fetchall() == [(0,)]:
            return False
        run(bounding.trimmed())
        return True

    def _make_groups(self, prepared: _Prepared) -> None:
        if prepared.listed is not None:
            self._connection.register(_LISTED, prepared.listed)
            self._connection.execute(numbered_groups(_LISTED, prepared.types))
        else:
            self._connection.execute(numbered_groups(f"({prepared.table})", prepared.types))

    @contextmanager
    def _temporary(self) -> Iterator[None]:
        """Drop what a run leaves, whether it ends well or not: temporary tables are raw data."""
        try:
            yield
        finally:
            for table in (*TEMPORARY, "groups"):
                self._connection.execute(f"DROP TABLE IF EXISTS {table}")
            self._connection.unregister(_LISTED)


def _remove(folder: str, process: int) -> None:
    """Remove a spill folder, unless a forked child ends that did not make it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _list(items: Sequence[str]) -> str:
    return ", ".join(items) if items else "1 AS nothing"


def _limits(job: AggregationJob, *, unit: bool) -> tuple[int | None, int | None]:
    """Return the limits that apply: a row that is a unit is in one group, once."""
    if job.public_groups is not None and not job.keys:
        refuse("public_groups", "come with keys", job.public_groups, "add a GROUP BY")
    if not unit:
        return None, None
    max_rows = None if job.max_rows is None else integer("max_rows_per_group", job.max_rows, minimum=1)
    if not job.keys:
        return None, max_rows
    return integer("max_groups_contributed", job.max_groups, minimum=1), max_rows


def _answer(prepared: _Prepared, totals: str) -> str:
    measures = [f"m{i}" for i in range(len(prepared.slots.measures))]
    if prepared.public:
        items = [*(f"p.{key}" for key in prepared.keys), *(f"coalesce({m}, 0) AS {m}" for m in measures)]
        return (
            f"SELECT {', '.join(items)} FROM groups AS p LEFT JOIN ({totals}) AS t ON p.g = t.g ORDER BY p.g"
        )
    order = ", ".join(f"{key} NULLS LAST" for key in prepared.keys)
    return f"SELECT * FROM ({totals})" + (f" ORDER BY {order}" if order else "")


def _answer_schema(prepared: _Prepared) -> pa.Schema:
    keys = [(key, ARROW_TYPES[type_]) for key, type_ in zip(prepared.keys, prepared.types, strict=True)]
    return pa.schema([*keys, *((f"m{i}", pa.int64()) for i in range(len(prepared.slots.measures)))])


def _without_data(run: Callable[[], pa.Table]) -> pa.Table:
    """Run, and let nothing of a failure through: messages quote values, and the class may depend on them."""
    answer = None
    with suppress(Exception):
        answer = run()
    if answer is None:
        raise EngineError(_FAILED)
    return answer
