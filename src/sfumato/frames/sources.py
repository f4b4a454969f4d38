"""Sources: the files and frames that hold the private rows, recognised before anything is charged.

A source is a path (Parquet, CSV, a DuckDB file, a folder or pattern of Parquet files), a list of paths, a
pyarrow Table or Dataset, a table of Delta or Iceberg, a frame of pandas or Polars, or another frame that
narwhals knows. Nothing here reads rows of a file, and nothing ever writes to one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.frames.arrow import as_arrow
from sfumato.frames.datasets import DatasetSource, as_dataset, delta_table, is_delta_table
from sfumato.frames.delimited import CSV_SUFFIXES
from sfumato.frames.partitions import partition_names, partitioned_files

__all__ = [
    "DatasetSource",
    "FileKind",
    "FileSource",
    "FrameSource",
    "Source",
    "check_names",
    "files_meant",
    "open_source",
]

_DEFAULT_NAME = "data"
_GLOB = frozenset("*?[")


class FileKind(Enum):
    """The formats of files that are read.

    Examples
    --------
    >>> [kind.value for kind in FileKind]
    ['Parquet', 'CSV', 'DuckDB']
    """

    PARQUET = "Parquet"
    CSV = "CSV"
    DUCKDB = "DuckDB"


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files that make one table.

    Parameters
    ----------
    kind : FileKind
        Their format.
    paths : tuple of Path
        One file, the files of a list, or the Parquet files of a folder or pattern.
    table : str or None
        The table that is meant in a DuckDB file; None where the file must hold a single table.
    types : tuple of pairs of str
        The types, by the names that CAST takes, that are declared for columns of a CSV file or for those that
        folders name; its other columns are text.
    detected : bool
        Whether a CSV file without declared types has the types that its rows suggest: for public files only.
    partitions : tuple of str
        The columns that the names of folders give, such as ``month=3``, from the outer folder to the inner.

    Examples
    --------
    >>> FileSource(FileKind.PARQUET, (Path("people.parquet"),)).kind
    <FileKind.PARQUET: 'Parquet'>
    """

    kind: FileKind
    paths: tuple[Path, ...]
    table: str | None = None
    types: tuple[tuple[str, str], ...] = ()
    detected: bool = False
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FrameSource:
    """A table in memory, as Arrow. It may share memory with the caller's frame, and is only ever read.

    Parameters
    ----------
    frame : pyarrow.Table

    Examples
    --------
    >>> FrameSource(pa.table({"person": [1, 2]})).frame.num_rows
    2
    """

    frame: pa.Table


Source: TypeAlias = FileSource | FrameSource | DatasetSource


def open_source(source: object) -> dict[str, Source]:
    """Recognise a source, or several by name.

    Parameters
    ----------
    source : path, list of paths, pyarrow Table or Dataset, DataFrame, or mapping of str to these
        A single source is the table ``data``. In a mapping each name is a table; a DuckDB file with several
        tables gives the one of that name. The files of a list make one table. Also a `DeltaTable` of
        deltalake, or the folder of one, and a `Table` of pyiceberg.

    Returns
    -------
    dict of str to FileSource, FrameSource or DatasetSource
        Each table by its name.

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


def _one(name: str, source: Any, *, named: bool) -> Source:
    if isinstance(source, (str, os.PathLike)):
        return _local(name, os.fspath(source), name if named else None)
    if isinstance(source, (list, tuple)):
        return _listed(name, source)
    dataset = as_dataset(name, source)
    if isinstance(dataset, DatasetSource):
        check_names(name, dataset.dataset.schema.names)
        return dataset
    frame = as_arrow(name, source if dataset is None else dataset)
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


def files_meant(path: Path) -> tuple[Path | None, str]:
    """Return the folder and pattern of the files that make one table; no folder for a path of one file."""
    path = path.expanduser()
    if _GLOB & set(str(path)) and not path.exists():
        return path.parent, path.name
    return (path, "*.parquet") if path.is_dir() else (None, "")


def _listed(name: str, addresses: Sequence[Any]) -> FileSource:
    """Return the files of a list, which make one table."""
    if not addresses or not all(isinstance(address, (str, os.PathLike)) for address in addresses):
        raise SourceError(
            f"table {name!r} must be a list of paths where it is a list, got another or an empty one; pass "
            "['a.parquet', 'b.parquet'], or one frame"
        )
    found = [_local(name, os.fspath(address), None) for address in addresses]
    files = [part for part in found if isinstance(part, FileSource)]
    kinds = {part.kind for part in files}
    if len(files) < len(found) or len(kinds) > 1 or kinds == {FileKind.DUCKDB}:
        raise SourceError(
            f"the files of table {name!r} must be Parquet files or CSV files, all of one kind, got others in "
            "the list; pass them as tables of their own"
        )
    paths = [path for part in files for path in part.paths]
    if len(set(paths)) < len(paths):
        raise SourceError(
            f"the files of table {name!r} must differ, got one twice; list each once: its rows would count "
            "twice"
        )
    partitions = {part.partitions for part in files}
    if len(partitions) > 1:
        raise SourceError(
            f"the files of table {name!r} must lie in folders that name the same columns, got several; pass "
            "them as tables of their own"
        )
    return FileSource(files[0].kind, tuple(paths), partitions=partitions.pop())


def _local(name: str, address: str, table: str | None) -> FileSource | DatasetSource:
    path = Path(address).expanduser()
    scheme, mark, _ = address.partition("://")
    if mark and not path.exists():
        # the rest of an address may hold a password
        raise SourceError(
            f"source must be a file here, or of postgresql://, got an address of {scheme}://; fetch the file "
            "first"
        )
    folder, pattern = files_meant(path)
    if folder is not None and is_delta_table(folder):
        if folder != path:
            raise SourceError(
                f"source must be the whole folder of a Delta table, got the pattern {str(path)!r}; pass the "
                "folder: its files may hold deleted rows"
            )
        return delta_table(name, folder)
    if folder is not None:
        flat = sorted(folder.glob(pattern))
        nested = [] if flat or folder != path else partitioned_files(folder)
        return _parquet_files(path, flat or nested, partition_names(folder, nested))
    if not path.exists():
        raise SourceError(f"source must be a file that exists, got {str(path)!r}; check the path")
    return _recognised(path, table)


def _parquet_files(path: Path, found: list[Path], partitions: tuple[str, ...]) -> FileSource:
    if not found:
        raise SourceError(f"source must hold Parquet files, found none at {str(path)!r}; check the path")
    for part in found:
        if _recognised(part, None).kind is not FileKind.PARQUET:
            raise SourceError(
                f"a folder or pattern must hold Parquet files only, got {part.name!r}; take it out"
            )
    return FileSource(FileKind.PARQUET, tuple(part.resolve() for part in found), partitions=partitions)


def _recognised(path: Path, table: str | None) -> FileSource:
    """Return the kind by the file's first bytes; CSV is known by its suffix, for those may be of a row."""
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
    if path.name.lower().endswith(CSV_SUFFIXES):
        return FileSource(FileKind.CSV, resolved)
    if head[8:12] == b"DUCK":
        return FileSource(FileKind.DUCKDB, resolved, table)
    raise SourceError(
        f"source must be a Parquet, CSV or DuckDB file, got {str(path)!r}; it is damaged or of another kind"
        " (a CSV file's name must end in .csv)"
    )
