"""Sources: the files and frames that hold the private rows, recognised before anything is charged.

A source is a path (Parquet, CSV, a DuckDB file, a folder or pattern of Parquet files), a pyarrow Table, a
pandas or Polars DataFrame, or another frame that narwhals knows. Nothing here reads rows of a file, and
nothing ever writes to one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import pyarrow as pa

from sfumato.errors import SchemaError, SourceError
from sfumato.queries.plan import Schema

__all__ = [
    "ROW",
    "FileKind",
    "FileSource",
    "FrameSource",
    "Row",
    "Source",
    "check_names",
    "files_meant",
    "open_source",
    "require_unit",
]

_DEFAULT_NAME = "data"
_GLOB = frozenset("*?[")
_BEYOND_ARROW = frozenset({"Int128", "UInt128"})
_CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst")


@final
class Row(Enum):
    """The type of :data:`ROW`."""

    ROW = "ROW"

    def __repr__(self) -> str:
        return "ROW"


ROW: Final = Row.ROW
"""As ``privacy_unit``: each row is a unit of its own.

Examples
--------
>>> ROW
ROW
"""


class FileKind(Enum):
    """The formats that are read."""

    PARQUET = "Parquet"
    CSV = "CSV"
    DUCKDB = "DuckDB"


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files that make one table.

    ``table`` is the table meant in a DuckDB file; None where the file must hold a single table.
    """

    kind: FileKind
    paths: tuple[Path, ...]
    table: str | None = None


@dataclass(frozen=True, slots=True)
class FrameSource:
    """A table in memory, as Arrow. It may share memory with the caller's frame, and is only ever read."""

    frame: pa.Table


Source: TypeAlias = FileSource | FrameSource


def open_source(source: object) -> dict[str, Source]:
    """Recognise a source, or several by name.

    Parameters
    ----------
    source : path, pyarrow Table, DataFrame, or mapping of str to these
        A single source is the table ``data``. In a mapping each name is a table; a DuckDB file with several
        tables gives the one of that name.

    Returns
    -------
    dict of str to Source

    Raises
    ------
    SourceError
        If a file is missing, cannot be read, or is of no known kind, or a frame has no usable columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> sorted(open_source(pa.table({"person": [1, 2]})))
    ['data']
    """
    if not isinstance(source, Mapping):
        return {_DEFAULT_NAME: _one(_DEFAULT_NAME, source, named=False)}
    if not source:
        raise SourceError("source must name at least one table, got an empty mapping; pass {'data': source}")
    tables: dict[str, Source] = {}
    folded: set[str] = set()
    for name, part in source.items():
        if not isinstance(name, str) or not name:
            raise SourceError(
                f"a table's name must be a non-empty string, got {name!r}; pass {{'data': source}}"
            )
        if name.casefold() in folded:
            raise SourceError(f"table names must differ beyond case, got {name!r} twice; rename one")
        folded.add(name.casefold())
        tables[name] = _one(name, part, named=True)
    return tables


def require_unit(schema: Schema, table: str, unit: str) -> str:
    """Return the privacy-unit column as the table spells it.

    Raises
    ------
    SchemaError
        If the table has no such column, or its type cannot identify a unit.
    """
    column = schema.find(unit)
    if column is None:
        names = ", ".join(repr(c.name) for c in schema.columns[:20])
        raise SchemaError(
            f"privacy_unit must be a column of table {table!r}, got {unit!r}; name one of {names}, or pass "
            "ROW (in Python sfumato.ROW) where each row is a person of its own"
        )
    if column.type is None:
        raise SchemaError(
            f"privacy_unit must be a plain column, got {unit!r}; use an integer, text or date column"
        )
    return column.name


def _one(name: str, source: Any, *, named: bool) -> Source:
    if isinstance(source, (str, os.PathLike)):
        return _local(os.fspath(source), name if named else None)
    frame = _frame(name, source)
    if not frame.column_names:
        raise SourceError(
            f"table {name!r} must have at least one column, got none; pass a frame with columns"
        )
    check_names(name, frame.column_names)
    return FrameSource(frame)


def check_names(table: str, names: Sequence[str]) -> None:
    """Refuse columns whose names differ in case alone, as ``straße`` and ``STRASSE`` do, or are empty.

    A query names columns without regard to case, and so does ``privacy_unit``: of two columns with one name
    the wrong one could be taken for the unit.
    """
    folded = [name.casefold() for name in names]
    if len(set(folded)) < len(folded) or "" in folded:
        raise SourceError(
            f"the columns of table {table!r} must have names, which differ beyond case; rename them"
        )


def _frame(name: str, source: Any) -> pa.Table:
    """Return a frame as Arrow; a library that was never imported is not imported for it, but for narwhals."""
    try:
        found = _as_arrow(name, source)
    except SourceError:
        raise
    except Exception:  # whatever a library trips over, the frame is at fault
        raise SourceError(
            f"table {name!r} must be a frame that holds one type in each column; convert mixed columns, such "
            "as to str, and a single column to a frame"
        ) from None
    if found is None:
        raise SourceError(
            "a source must be a path, a pyarrow Table, a pandas or Polars DataFrame, another frame that "
            f"narwhals knows, or a mapping of names to these, got {type(source).__name__}; convert it, or "
            "pip install 'sfumato[narwhals]'"
        )
    return found


def _as_arrow(name: str, source: Any) -> pa.Table | None:
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return _sound(name, source)
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        if not all(isinstance(column, str) for column in source.columns):
            raise SourceError(f"the columns of table {name!r} must have strings as names; rename them")
        return pa.Table.from_pandas(source, preserve_index=False).replace_schema_metadata(None)
    if polars is not None and isinstance(source, polars.DataFrame):
        for column, type_ in source.schema.items():
            if str(type_) in _BEYOND_ARROW:
                raise SourceError(
                    f"the column {column!r} of table {name!r} must have a type that Arrow knows, got "
                    f"{type_}; cast it, such as to pl.String for its digits, or drop it"
                )
        return source.to_arrow()
    found = _other_frame(source)
    return None if found is None else _sound(name, found.replace_schema_metadata(None))


def _other_frame(source: Any) -> pa.Table | None:
    """Return the rows of a frame of another library: one that gives an Arrow stream, or that narwhals knows.

    A lazy frame is computed. Frames of Spark stay where they are: they are no source of this kind.
    """
    if type(source).__module__.partition(".")[0] in ("pyspark", "builtins"):
        return None
    if callable(getattr(source, "__arrow_c_stream__", None)):
        return pa.table(source)
    try:
        import narwhals.stable.v2 as narwhals  # noqa: PLC0415 - an optional library
    except ImportError:
        return None
    known = narwhals.from_native(source, pass_through=True)
    if isinstance(known, narwhals.LazyFrame):
        known = known.collect(backend="pyarrow")
    return known.to_arrow() if isinstance(known, narwhals.DataFrame) else None


def _sound(name: str, frame: pa.Table) -> pa.Table:
    """Return the frame if its buffers are what its types say: text that is no UTF-8 would fail in a query."""
    try:
        frame.validate(full=True)
    except pa.ArrowException:
        pass
    else:
        return frame
    raise SourceError(f"table {name!r} must hold valid Arrow data, such as text in UTF-8; make it again")


def files_meant(path: Path) -> tuple[Path | None, str]:
    """Return the folder and pattern of the files that make one table; no folder for a path of one file."""
    path = path.expanduser()
    if _GLOB & set(str(path)) and not path.exists():
        return path.parent, path.name
    return (path, "*.parquet") if path.is_dir() else (None, "")


def _local(place: str, table: str | None) -> FileSource:
    path = Path(place).expanduser()
    scheme, mark, _ = place.partition("://")
    if mark and not path.exists():
        # the rest of an address may hold a password
        raise SourceError(
            f"source must be a file here, or of postgresql://, got an address of {scheme}://; fetch the file "
            "first"
        )
    return _file(path, table)


def _file(path: Path, table: str | None) -> FileSource:
    folder, pattern = files_meant(path)
    if folder is not None:
        return _many(path, sorted(folder.glob(pattern)))
    if not path.exists():
        raise SourceError(f"source must be a file that exists, got {str(path)!r}; check the path")
    return _recognised(path, table)


def _many(path: Path, found: list[Path]) -> FileSource:
    if not found:
        raise SourceError(f"source must hold Parquet files, found none at {str(path)!r}; check the path")
    for part in found:
        if _recognised(part, None).kind is not FileKind.PARQUET:
            raise SourceError(
                f"a folder or pattern must hold Parquet files only, got {part.name!r}; take it out"
            )
    return FileSource(FileKind.PARQUET, tuple(part.resolve() for part in found))


def _recognised(path: Path, table: str | None) -> FileSource:
    """Tell the kind by the file's first bytes; CSV has none and is told by its suffix."""
    try:
        with path.open("rb") as stream:
            head = stream.read(16)
    except OSError:
        raise SourceError(
            f"source must be a readable file, got {str(path)!r}; check its permissions"
        ) from None
    if not head:
        raise SourceError(f"source must hold data, got the empty file {str(path)!r}; write it again")
    resolved = (path.resolve(),)
    if head[:4] == b"PAR1":
        return FileSource(FileKind.PARQUET, resolved)
    if head[8:12] == b"DUCK":
        return FileSource(FileKind.DUCKDB, resolved, table)
    if path.name.lower().endswith(_CSV_SUFFIXES):
        return FileSource(FileKind.CSV, resolved)
    raise SourceError(
        f"source must be a Parquet, CSV or DuckDB file, got {str(path)!r}; it is damaged or of another kind"
        " (a CSV file's name must end in .csv)"
    )
