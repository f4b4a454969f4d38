"""The Spark engine: bounded, exact integers computed by a cluster, through DataFrames of SQL alone."""

from __future__ import annotations

import logging
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from sfumato._check import refuse
from sfumato.errors import SchemaError, SourceError
from sfumato.queries.engines.compilation.bounding import Step
from sfumato.queries.engines.compilation.group_table import numbered_groups
from sfumato.queries.engines.compilation.job import GROUPS, CompiledJob, with_bin_counts
from sfumato.queries.engines.dialects.base import StoredColumn, StoredTable
from sfumato.queries.engines.self_test import run_self_test
from sfumato.queries.engines.spark.bounding_steps import SparkBounding, with_steps
from sfumato.queries.engines.spark.dialect import SPARK
from sfumato.queries.engines.spark.fingerprint import content
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.queries.engines.stored_tables import StoredTablesEngine
from sfumato.queries.engines.watched_run import CANCELLED
from sfumato.queries.plan.query import AggregationJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkEngine"]

_LOST: Final = (
    "a Spark source must be readable in its session while it is open, got a failure; nothing was charged: "
    "check that the session is alive, that the tables are still there and that their files can be read, then "
    "connect again"
)
_UNABLE: Final = (
    "a Spark source must let its session make temporary views and compute, got a refusal in a trial on rows "
    "of its own; nothing was charged: use a session on a cluster that lets it"
)
_PLANNED: Final = "Error occurred during query planning"
_TRIED: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


@final
class SparkEngine(StoredTablesEngine):
    """Computes jobs in a Spark session, classic or Connect, over tables that stay where they are.

    Everything is SQL on DataFrames: no RDDs, no Python on the workers, no setting of the session changed or
    relied on. The tables go by names that nobody can guess, and are dropped when the engine closes.

    Parameters
    ----------
    source : SparkSource
        The tables to read.
    public : SparkSource, optional
        More tables of the same session.

    Raises
    ------
    SourceError
        If a table cannot be read, or the session refuses what every query needs.

    Notes
    -----
    Guarantee: that of :class:`~sfumato.queries.engines.engine.Engine`, under add/remove of one unit, if a
    table gives the same rows whenever Spark reads it: rows are read again where a worker is lost, and where
    values are counted by bin or distinguished. Rows with a NULL (or NaN) unit are dropped; NaN values are
    NULL, and so is text that is not UTF-8; infinity is clamped to a bound; the time a query takes is outside
    the guarantee, and so is what Spark logs and shows on its web pages.
    """

    _failed = (
        "the engine must finish what was charged, got a failure of Spark or of the connection to it; the "
        "charge stays: check that the session is alive and has workers, then ask again"
    )
    _dialect = SPARK

    def __init__(self, source: SparkSource, public: SparkSource | None = None) -> None:
        if public is not None and public.session is not source.session:
            refuse("public", "be tables of the same session", public, "make them in the session of source")
        self._session: Any = source.session
        self._lock = threading.Lock()
        self._views: list[str] = []
        self._tables: dict[str, StoredTable] = {}
        self.private = tuple(source.tables)
        self.public = () if public is None else tuple(public.tables)
        try:
            with self._or_lost(), _silent():
                for part in (source, *([] if public is None else [public])):
                    self._tables |= {name: self._table(frame) for name, frame in part.tables.items()}
            self._try_out()
        except BaseException:
            self.close()
            raise

    def _try_out(self) -> None:
        """Refuse a session that is denied what a query needs; once for each session.

        What is SQL alone was done or is planned before a charge. The rest is sending rows.
        """
        if self._session in _TRIED:
            return
        views: list[str] = []
        found = None
        with suppress(Exception), _silent():
            (groups,) = self._groups(run_self_test(SPARK), views)
            found = self._session.sql(groups.select).toArrow()
        self._drop(views)
        if found is None:
            raise SourceError(_UNABLE)
        _TRIED.add(self._session)

    def fingerprint(self, key: bytes) -> str:
        """Return a keyed digest of the content of all tables, in hexadecimal; every row is read once.

        Raises
        ------
        SourceError
            If a table cannot be read.
        """
        with self._lock, self._or_lost(), _silent():
            return content(lambda select: self._session.sql(select).toArrow(), self._tables, key)

    @property
    def session(self) -> Any:
        """The Spark session that computes."""
        return self._session

    def close(self) -> None:
        """Drop the views; the session goes on. Calling it again does nothing."""
        self._drop(self._views)

    def _fetch(self, select: str, schema: pa.Schema) -> pa.Table:
        with _silent():
            return self._session.sql(select).toArrow().cast(schema)

    def _accepts(self, prepared: CompiledJob) -> bool:
        bounded = prepared.unit
        select = SparkBounding.of(prepared, bytes(32)).parts().select if bounded else prepared.rows(None)
        with self._lock, self._or_lost(), _silent():
            self._session.sql("SELECT 1").toArrow()
            with suppress(*_refusals()):
                plan = self._session.sql(f"EXPLAIN {select}").toArrow()
                return not str(plan.column(0)[0]).startswith(_PLANNED)
        return False

    def _compute(self, job: AggregationJob, prepared: CompiledJob, secret: bytes) -> pa.Table:
        with _silent():
            return self._run(prepared, secret)

    def _watch(self, work: Callable[[], pa.Table]) -> pa.Table:
        """Run a job in the thread that asks, whose own settings Spark goes by; it hears Ctrl-C itself."""
        try:
            return work()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(CANCELLED) from None

    def _run(self, prepared: CompiledJob, secret: bytes) -> pa.Table:
        views: list[str] = []
        run: Callable[[str], pa.Table] = lambda select: self._session.sql(select).toArrow()  # noqa: E731
        try:
            bounding = SparkBounding.of(prepared, secret)
            steps = [*self._groups(prepared, views), *(bounding.steps() if prepared.unit else [])]
            answer = run(with_steps(steps, bounding.answer(prepared)))
            leaves = {
                index: run(with_steps(steps, bounding.leaves(index, unit=prepared.unit, any_crowded=False)))
                for index in prepared.slots.binned
            }
        finally:
            self._drop(views)
        return with_bin_counts(_ordered(answer, prepared).cast(prepared.schema), leaves)

    def _groups(self, prepared: CompiledJob, views: list[str]) -> list[Step]:
        """Return the step of the public groups, if there are any."""
        if not prepared.public:
            return []
        source = f"({prepared.table})"
        if prepared.listed is not None:
            source = _name()
            columns = zip(prepared.keys, prepared.types, strict=True)
            schema = ", ".join(f"{key} {SPARK.types[type_]}" for key, type_ in columns)
            self._view(self._session.createDataFrame(prepared.listed, schema=schema), source, views)
        return [Step(GROUPS, numbered_groups(source, prepared.types, SPARK))]

    def _table(self, frame: DataFrame) -> StoredTable:
        """Make a view of a frame with neutral names, and return what it holds."""
        stored = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
        name = _name()
        self._view(frame.toDF(*(SPARK.identifier(column) for column, _ in stored)), name, self._views)
        columns = (
            StoredColumn(column, type_, SPARK.column_type(type_), element=SPARK.element_type(type_))
            for column, type_ in stored
        )
        return StoredTable(name, tuple(columns))

    def _view(self, frame: DataFrame, name: str, views: list[str]) -> None:
        frame.createTempView(name)
        views.append(name)

    def _drop(self, views: list[str]) -> None:
        while views:
            with suppress(Exception), _silent():
                self._session.catalog.dropTempView(views[-1])
            views.pop()

    @contextmanager
    def _or_lost(self) -> Iterator[None]:
        """Turn whatever Spark says into one message."""
        lost = False
        try:
            yield
        except SchemaError:
            raise
        except Exception:  # of the network, of Java, of Spark: none may show
            lost = True
        if lost:
            raise SourceError(_LOST)


def _name() -> str:
    """Return a name that nobody can guess."""
    return f"sfumato_{secrets.token_hex(16)}"


def _refusals() -> tuple[type[Exception], ...]:
    """Return what Spark raises over a statement that it does not accept."""
    from pyspark import errors  # noqa: PLC0415 - an optional library

    return errors.AnalysisException, errors.ParseException


def _loggers() -> list[logging.Logger]:
    """Return pyspark's loggers of failed statements; they must be made by pyspark, as a class of its own."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - an optional library

    return [
        PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
    ]


def _ordered(answer: pa.Table, prepared: CompiledJob) -> pa.Table:
    """Return the rows in their order: the workers send them in any."""
    keys: Sequence[str] = ("g",) if prepared.public else prepared.keys
    if keys:
        by = [(key, "ascending") for key in keys]
        answer = answer.take(pc.sort_indices(answer, sort_keys=by))  # NULL last
    return answer.drop_columns(["g"]) if prepared.public else answer


@contextmanager
def _silent() -> Iterator[None]:
    """Keep pyspark's own loggers from writing failures, which quote values, to standard error."""
    loggers = _loggers()
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
