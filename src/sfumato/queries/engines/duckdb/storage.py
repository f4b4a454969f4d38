"""Sources as tables of the private DuckDB, checked once so that no query can fail over them later.

What is checked here fails when the curator connects. Under a query it would fail after the charge, and
whether it fails would tell something about a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.frames.datasets import DatasetSource
from sfumato.frames.delimited import Delimited
from sfumato.frames.sources import FileKind, FileSource, FrameSource, Source, check_names
from sfumato.queries.engines.dialects.base import StoredColumn, StoredTable
from sfumato.queries.engines.duckdb.column_types import require_columns
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.plan.schema import ColumnType

__all__ = ["pattern_of", "store"]

_MAX_DIGITS = 38  # of a DuckDB decimal


def store(connection: duckdb.DuckDBPyConnection, sources: Mapping[str, Source]) -> dict[str, StoredTable]:
    """Make each source a table or view of the database, and read it through once.

    Raises
    ------
    SourceError
        If a file cannot be read as what it is, names of columns do not differ beyond case, or the files of
        one table have different columns.
    """
    attached: dict[str, str] = {}
    tables: dict[str, StoredTable] = {}
    for name, source in sources.items():
        inside = f"t{len(tables)}"
        try:
            _make(connection, name, inside, source, attached)
            types = _types(connection, inside)
            check_names(name, [column for column, _ in types])
            _read_through(connection, inside, types)
            _check_values(source)
        except (duckdb.Error, OSError):
            types = None
        if types is None:  # outside of the handler: DuckDB's message may quote the data
            raise SourceError(
                f"table {name!r} must be readable as {_kind(source)}; the source is damaged or in use, "
                "or holds values that cannot be read"
            )
        undeclared = _undeclared(source, [column for column, _ in types])
        keys = () if len(sources) == 1 else (name,)
        columns = (
            StoredColumn(
                column,
                type_,
                DUCKDB.column_type(type_),
                (*keys, column) if column in undeclared else (),
                DUCKDB.element_type(type_),
            )
            for column, type_ in types
        )
        tables[name] = StoredTable(inside, tuple(columns))
    return tables


def pattern_of(path: Path) -> str:
    """Return the pattern that matches this path alone: DuckDB reads a path as a pattern of paths."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def _kind(source: Source) -> str:
    return source.kind.value if isinstance(source, FileSource) else "Arrow"


def _check_values(source: Source) -> None:
    """Refuse a dataset that holds what its types do not say: a frame was looked at when it was taken in."""
    if isinstance(source, DatasetSource):
        for _ in source.batches():
            pass


def _types(connection: duckdb.DuckDBPyConnection, relation: str) -> tuple[tuple[str, str], ...]:
    rows = connection.execute(f"DESCRIBE {relation}").fetchall()
    return tuple((str(row[0]), str(row[1])) for row in rows)


def _read_through(
    connection: duckdb.DuckDBPyConnection, inside: str, types: Sequence[tuple[str, str]]
) -> None:
    """Read every value that a query can use, so that one that cannot be read fails now."""
    usable = [
        DUCKDB.identifier(name)
        for name, type_ in types
        if DUCKDB.column_type(type_) is not None or DUCKDB.element_type(type_) is not None
    ]
    if usable:
        hashes = ", ".join(f"bit_xor(hash({column}))" for column in usable)
        connection.execute(f"SELECT {hashes} FROM {inside}").fetchall()


def _make(
    connection: duckdb.DuckDBPyConnection, name: str, inside: str, source: Source, attached: dict[str, str]
) -> None:
    if isinstance(source, FrameSource):
        _check_types(connection, name, source.frame.slice(0, 0))
        connection.register(inside, source.frame)
    elif isinstance(source, DatasetSource):
        _check_types(connection, name, source.dataset.schema.empty_table())
        connection.register(inside, source.dataset)
    elif source.kind is FileKind.PARQUET:
        _view_parquet(connection, name, inside, source)
    elif source.kind is FileKind.CSV:
        read = _detect_csv if _is_detected(source) else _read_csv
        read(connection, name, inside, source)
    else:
        _attach(connection, inside, source, attached)


def _check_types(connection: duckdb.DuckDBPyConnection, name: str, empty: pa.Table) -> None:
    """Refuse columns of a type that DuckDB does not know, which shows without any row."""
    for index, field in enumerate(empty.schema):
        known = False
        with suppress(duckdb.Error):
            connection.register("trial", empty.select([index]))
            known = bool(_types(connection, "trial"))
        connection.unregister("trial")
        if not known:
            raise SourceError(
                f"the column {field.name!r} of table {name!r} must have a type that can be read, got "
                f"{field.type}; cast it, such as to string or float64, or drop it"
            )


def _view_parquet(connection: duckdb.DuckDBPyConnection, name: str, inside: str, source: FileSource) -> None:
    files = [DUCKDB.string(pattern_of(path)) for path in source.paths]
    hive = "true, hive_types_autocast = false" if source.partitions else "false"
    one = f"SELECT * FROM read_parquet([{{}}], hive_partitioning = {hive})"
    first = None
    for file in files:
        # DuckDB renames a column whose name another has but for case: the names are read off the file itself
        query = f"SELECT name, coalesce(num_children, 0), coalesce(precision, 0) FROM parquet_schema({file})"
        nodes = _top_level(connection.execute(query).fetchall())
        check_names(name, [column for column, _ in nodes])
        _check_digits(name, nodes)
        types = _types(connection, one.format(file))
        first = types if first is None else first
        if types != first:
            raise SourceError(
                f"the files of table {name!r} must have the same columns of the same types in one order; "
                "write them again with one schema"
            )
    items = _partition_values(name, source, [column for column, _ in first or ()])
    rows = one.format(", ".join(files)).removeprefix("SELECT * FROM ")
    connection.execute(f"CREATE VIEW {inside} AS SELECT {items} FROM {rows}")


def _partition_values(name: str, source: FileSource, columns: Sequence[str]) -> str:
    """Return the columns, those that folders name in their declared types; NULL where a cast fails."""
    if not source.partitions:
        return "*"
    require_columns(name, {column: ColumnType(type_name) for column, type_name in source.types}, columns)
    declared = {column.casefold(): ColumnType(type_name) for column, type_name in source.types}
    made = []
    for column in columns:
        written, type_ = DUCKDB.identifier(column), declared.get(column.casefold(), ColumnType.TEXT)
        plain = column not in source.partitions or type_ is ColumnType.TEXT
        value = written if plain else DUCKDB.cast(written, ColumnType.TEXT, type_)
        made.append(f"{value} AS {written}")
    return ", ".join(made)


def _top_level(nodes: Sequence[tuple[object, ...]]) -> list[tuple[str, int]]:
    """Return names and digits of the columns, from a schema's nodes, depth first, with their children."""
    columns: list[tuple[str, int]] = []
    below = 0
    for name, children, digits in nodes[1:]:
        if below == 0:
            columns.append((str(name), int(str(digits))))
            below = 1
        below += int(str(children)) - 1
    return columns


def _check_digits(name: str, columns: Sequence[tuple[str, int]]) -> None:
    """Refuse decimals that DuckDB would read as floats."""
    for column, digits in columns:
        if digits > _MAX_DIGITS:
            raise SourceError(
                f"the column {column!r} of table {name!r} must have a type that can be read, got decimals of "
                f"{digits} digits; write it as text, as decimals of {_MAX_DIGITS} digits or as float64, or "
                "drop it"
            )


def _is_detected(source: FileSource) -> bool:
    return source.detected and not source.types


def _undeclared(source: Source, names: Sequence[str]) -> set[str]:
    """Return the columns that are text because nobody declared a type for them."""
    if not isinstance(source, FileSource) or source.kind is FileKind.DUCKDB or _is_detected(source):
        return set()
    declared = {name.casefold() for name, _ in source.types}
    texts = names if source.kind is FileKind.CSV else source.partitions
    return {name for name in texts if name.casefold() not in declared}


def _read_csv(connection: duckdb.DuckDBPyConnection, name: str, inside: str, source: FileSource) -> None:
    """Take in the rows as texts, or in a declared type by the rule of CAST: NULL where it fails."""
    files = [Delimited(path) for path in source.paths]
    file = files[0]
    types = {column: ColumnType(type_name) for column, type_name in source.types}
    names = file.names
    check_names(name, names)
    if any(each.names != names for each in files):
        raise SourceError(
            f"the files of table {name!r} must have the same names in their first lines, in one order; write "
            "them again"
        )
    require_columns(name, types, names)
    folded = {column.casefold(): type_ for column, type_ in types.items()}
    items = []
    for column in names:
        written = DUCKDB.identifier(column)
        type_ = folded.get(column.casefold(), ColumnType.TEXT)
        value = written if type_ is ColumnType.TEXT else DUCKDB.cast(written, ColumnType.TEXT, type_)
        items.append(f"{value} AS {written}")
    for index, each in enumerate(files):
        connection.register("incoming", each.read())
        into = f"INSERT INTO {inside}" if index else f"CREATE TABLE {inside} AS"
        connection.execute(f"{into} SELECT {', '.join(items)} FROM incoming")
        connection.unregister("incoming")


def _detect_csv(connection: duckdb.DuckDBPyConnection, name: str, inside: str, source: FileSource) -> None:
    """Take in a public file, whose types may follow from its rows."""
    file = ", ".join(DUCKDB.string(pattern_of(path)) for path in source.paths)
    # types come from the whole file, once: a type guessed from its head could fail on a later row
    connection.execute(f"CREATE TABLE {inside} AS SELECT * FROM read_csv([{file}], sample_size = -1)")
    names = {column.casefold() for column, _ in _types(connection, inside)}
    if any(column.rpartition("_")[0] in names for column in names):
        # x and x_1: perhaps the file has x twice, and DuckDB renamed the second
        head = f"SELECT * FROM read_csv([{file}], header = false, all_varchar = true) LIMIT 1"
        check_names(name, [str(cell) for cell in connection.execute(head).fetchall()[0]])


def _attach(
    connection: duckdb.DuckDBPyConnection, inside: str, source: FileSource, attached: dict[str, str]
) -> None:
    path = str(source.paths[0])
    if path not in attached:
        attached[path] = f"f{len(attached)}"
        connection.execute(f"ATTACH {DUCKDB.string(path)} AS {attached[path]} (READ_ONLY)")
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
        meant = min((str(row[1]) for row in found), default="table")
        raise SourceError(
            f"a DuckDB file must hold one table, or be given under the name of the one that is meant, got "
            f"{names} in {path!r}; pass {{{meant!r}: path}} (on the command line {meant}=PATH)"
        )
    schema, table = (DUCKDB.identifier(str(part)) for part in matching[0])
    whole = f"{catalog}.{schema}.{table}"
    items = [
        # texts that a collation calls equal may differ, and which of them names a group depends on the rows
        f'{DUCKDB.identifier(column)} COLLATE "binary" AS {DUCKDB.identifier(column)}'
        if type_ == "VARCHAR"
        else DUCKDB.identifier(column)
        for column, type_ in _types(connection, whole)
    ]
    connection.execute(f"CREATE VIEW {inside} AS SELECT {', '.join(items)} FROM {whole}")
