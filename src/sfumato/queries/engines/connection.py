"""A private DuckDB: in memory, alone with its sources, and locked."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from sfumato.errors import SourceError
from sfumato.queries.engines.relations import StoredTable, quoted_name
from sfumato.queries.engines.rendering import quoted_text
from sfumato.queries.sources import FileKind, FileSource, FrameSource, Source

__all__ = ["connect", "lock", "store"]


def connect(spill: str, *, memory_limit: str | None, threads: int | None) -> duckdb.DuckDBPyConnection:
    """Open an empty database in memory that loads nothing by itself; what does not fit goes to ``spill``."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": spill,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "python_enable_replacements": "false",
        "preserve_insertion_order": "false",
    }
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    if threads is not None:
        config["threads"] = str(threads)
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")  # it would show how long private work takes
    return connection


def lock(connection: duckdb.DuckDBPyConnection, sources: Mapping[str, Source]) -> None:
    """Shut the door behind the sources: no other file, no network, no setting can be reached from now on."""
    paths = [path for s in sources.values() if isinstance(s, FileSource) for path in s.paths]
    allowed = ", ".join(quoted_text(str(path)) for path in paths)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def store(connection: duckdb.DuckDBPyConnection, sources: Mapping[str, Source]) -> dict[str, StoredTable]:
    """Make each source a table or view of the database, and read its columns.

    Raises
    ------
    SourceError
        If a file cannot be read as what it is, or a table has no columns.
    """
    attached: dict[str, str] = {}
    tables: dict[str, StoredTable] = {}
    for name, source in sources.items():
        inside = f"t{len(tables)}"
        try:
            if isinstance(source, FrameSource):
                connection.register(inside, source.frame)
            elif source.kind is FileKind.DUCKDB:
                _attach(connection, inside, source, attached)
            else:
                _read(connection, inside, source)
            types = connection.execute(f"DESCRIBE {inside}").fetchall()
        except duckdb.Error:
            types = None
        if types is None:  # outside of the handler: DuckDB's message may quote the data
            raise SourceError(
                f"table {name!r} must be readable as {_kind(source)}; the source is damaged or in use"
            )
        tables[name] = StoredTable(inside, tuple((str(row[0]), str(row[1])) for row in types))
    return tables


def _kind(source: Source) -> str:
    return source.kind.value if isinstance(source, FileSource) else "Arrow"


def _read(connection: duckdb.DuckDBPyConnection, inside: str, source: FileSource) -> None:
    if source.kind is FileKind.CSV:
        # types come from the whole file, once: a type guessed from its head could fail on a later row
        path = quoted_text(str(source.paths[0]))
        connection.execute(f"CREATE TABLE {inside} AS SELECT * FROM read_csv({path}, sample_size = -1)")
        return
    paths = ", ".join(quoted_text(str(path)) for path in source.paths)
    connection.execute(
        f"CREATE VIEW {inside} AS SELECT * FROM read_parquet([{paths}], hive_partitioning = false)"
    )


def _attach(
    connection: duckdb.DuckDBPyConnection, inside: str, source: FileSource, attached: dict[str, str]
) -> None:
    path = str(source.paths[0])
    if path not in attached:
        attached[path] = f"f{len(attached)}"
        connection.execute(f"ATTACH {quoted_text(path)} AS {attached[path]} (READ_ONLY)")
    catalog = attached[path]
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ? AND NOT internal",
        [catalog],
    ).fetchall()
    wanted = (source.table or "").casefold()
    matching = [row for row in found if str(row[1]).casefold() == wanted] or (
        found if len(found) == 1 else []
    )
    if len(matching) != 1:
        names = ", ".join(sorted(repr(str(row[1])) for row in found)) or "no table"
        raise SourceError(
            f"a DuckDB file must hold one table, or be given as {{'table': path}}, got {names} in {path!r}"
        )
    schema, table = (quoted_name(str(part)) for part in matching[0])
    connection.execute(f"CREATE VIEW {inside} AS SELECT * FROM {catalog}.{schema}.{table}")
