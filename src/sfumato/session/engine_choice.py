"""Which engine a source asks for: DuckDB for files and frames; databases and clusters have their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato._check import refuse, refuse_type
from sfumato.errors import SchemaError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.column_types import TableTypes, require_no_types, with_types
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.engine import Engine
from sfumato.queries.engines.named_columns import Columns
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource, as_database
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource, as_cluster
from sfumato.queries.engines.watched_run import Display

__all__ = ["Opened", "open_engine"]

_CACHED_LAYOUTS = 4  # a dashboard asks the same few groupings again and again


@dataclass(frozen=True, slots=True)
class Opened:
    """An engine over all tables, and which of them are private and which public."""

    engine: Engine
    private: tuple[str, ...]
    public: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """A kind of source whose tables stay where they are: how it is known, its engine, words of errors."""

    name: str
    source_of: Callable[[object], Any]
    engine: Callable[[Any, Any], PostgresEngine | SparkEngine]
    tables: str
    remedy: str
    settings: str


_ELSEWHERE = (
    _Elsewhere(
        "PostgreSQL",
        as_database,
        PostgresEngine,
        "database",
        "name them by the same address",
        "set work_mem on the server or in the address",
    ),
    _Elsewhere(
        "Spark",
        as_cluster,
        SparkEngine,
        "Spark session",
        "use spark.createDataFrame",
        "set what the cluster may use in the Spark session",
    ),
)


def open_engine(
    source: object,
    public: object,
    *,
    types: TableTypes | None,
    memory_limit: str | None,
    threads: int | None,
    columns: Columns | None = None,
    statement_timeout: float | None = None,
    display: Display | None = None,
) -> Opened:
    """Open the engine that has both the private and the public tables.

    Raises
    ------
    SourceError
        If a source cannot be opened.
    SchemaError
        If a table is both private and public.
    ParameterError
        If the public tables are not where the private ones are, a setting is not the engine's, or a type is
        declared for what has one.
    """
    for kind in _ELSEWHERE:
        given, listed = kind.source_of(source), kind.source_of(public)
        if given is not None:
            require_no_types(types, kind.name)
            if public and listed is None:
                refuse_type("public", f"be tables of the same {kind.tables}", public, kind.remedy)
            for name, value in (("memory_limit", memory_limit), ("threads", threads)):
                if value is not None:
                    refuse(name, f"be left out for {kind.name}", value, kind.settings)
            return _apart(kind.engine(_restricted(given, columns, statement_timeout), listed), display)
    for name, stated, remedy in (
        ("columns", columns, "leave it out, and select the columns of a frame before"),
        ("statement_timeout", statement_timeout, "leave it out, and call session.cancel() from a thread"),
    ):
        if stated is not None:
            refuse(name, "be left out for files and frames", stated, remedy)
    if any(kind.source_of(public) is not None for kind in _ELSEWHERE):
        refuse_type("public", "be files or frames like source", public, "load the lists as such frames")
    private, tables = open_source(source), open_source(public) if public else {}
    _check_apart(private, tables)
    private, tables = with_types(private, tables, types)
    engine = DuckDBEngine(
        {**private, **tables},
        memory_limit=memory_limit,
        threads=threads,
        cache=_CACHED_LAYOUTS,
        display=display,
    )
    return Opened(engine, tuple(private), tuple(tables))


def _restricted(
    source: PostgresSource | SparkSource, columns: Columns | None, statement_timeout: float | None
) -> PostgresSource | SparkSource:
    """Return a source with the columns and the limit on time that were stated beside it."""
    if isinstance(source, PostgresSource):
        return source.restricted(columns, statement_timeout)
    if statement_timeout is not None:
        remedy = "limit what runs in the Spark session itself"
        refuse("statement_timeout", "be left out for Spark", statement_timeout, remedy)
    return source.restricted(columns)


def _apart(engine: PostgresEngine | SparkEngine, display: Display | None) -> Opened:
    """Return an engine whose private and public tables have different names."""
    try:
        _check_apart(dict.fromkeys(engine.private), dict.fromkeys(engine.public))
    except BaseException:
        engine.close()
        raise
    engine.display = display
    return Opened(engine, engine.private, engine.public)


def _check_apart(private: Mapping[str, object], public: Mapping[str, object]) -> None:
    shared = {name.casefold() for name in private} & {name.casefold() for name in public}
    if shared:
        raise SchemaError(
            f"public tables must not be private too, got {sorted(shared)}; rename one, or name "
            "the private ones alone, as in PostgresSource(address, tables=[...])"
        )
