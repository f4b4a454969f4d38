"""Which engine a source asks for: DuckDB for files and frames; databases and clusters have their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato._check import refuse, refuse_type
from sfumato.errors import SchemaError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.column_types import TableTypes, require_no_types, with_types
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.engine import Engine
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource, as_database
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource, as_cluster

__all__ = ["Opened", "open_engine"]

_KEPT_LAYOUTS = 4  # a dashboard asks the same few groupings again and again


@dataclass(frozen=True, slots=True)
class Opened:
    """An engine over all tables, and which of them are private and which public."""

    engine: Engine
    private: tuple[str, ...]
    public: tuple[str, ...]


def open_engine(
    source: object,
    public: object,
    *,
    types: TableTypes | None,
    memory_limit: str | None,
    threads: int | None,
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
    database, listed = as_database(source), as_database(public)
    if database is not None:
        require_no_types(types, "PostgreSQL")
        return _in_database(database, listed, public, memory_limit, threads)
    cluster, lists = as_cluster(source), as_cluster(public)
    if cluster is not None:
        require_no_types(types, "Spark")
        return _on_cluster(cluster, lists, public, memory_limit, threads)
    if listed is not None or lists is not None:
        refuse_type("public", "be files or frames like source", public, "load the lists as such frames")
    private, tables = open_source(source), open_source(public) if public else {}
    _check_apart(private, tables)
    private, tables = with_types(private, tables, types)
    engine = DuckDBEngine(
        {**private, **tables}, memory_limit=memory_limit, threads=threads, cache=_KEPT_LAYOUTS
    )
    return Opened(engine, tuple(private), tuple(tables))


def _in_database(
    source: PostgresSource,
    listed: PostgresSource | None,
    public: object,
    memory_limit: str | None,
    threads: int | None,
) -> Opened:
    if public and listed is None:
        refuse_type("public", "be tables of the same database", public, "name them by the same address")
    for name, value in (("memory_limit", memory_limit), ("threads", threads)):
        if value is not None:
            refuse(name, "be left out for PostgreSQL", value, "set work_mem on the server or in the address")
    return _apart(PostgresEngine(source, listed))


def _on_cluster(
    source: SparkSource,
    lists: SparkSource | None,
    public: object,
    memory_limit: str | None,
    threads: int | None,
) -> Opened:
    if public and lists is None:
        refuse_type("public", "be tables of the same Spark session", public, "use spark.createDataFrame")
    for name, value in (("memory_limit", memory_limit), ("threads", threads)):
        if value is not None:
            refuse(name, "be left out for Spark", value, "set what the cluster may use in the Spark session")
    return _apart(SparkEngine(source, lists))


def _apart(engine: PostgresEngine | SparkEngine) -> Opened:
    """Return an engine whose private and public tables have different names."""
    try:
        _check_apart(dict.fromkeys(engine.private), dict.fromkeys(engine.public))
    except BaseException:
        engine.close()
        raise
    return Opened(engine, engine.private, engine.public)


def _check_apart(private: Mapping[str, object], public: Mapping[str, object]) -> None:
    shared = {name.casefold() for name in private} & {name.casefold() for name in public}
    if shared:
        raise SchemaError(
            f"public tables must not be private too, got {sorted(shared)}; rename one, or name "
            "the private ones alone, as in PostgresSource(address, tables=[...])"
        )
