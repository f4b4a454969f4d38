"""Tables of every form that people have, read as Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.errors import SourceError
from sfumato.frames.datasets import DatasetSource
from sfumato.frames.sources import FileKind, FileSource, FrameSource, open_source

__all__ = ["read_table"]


def read_table(frame: Any) -> pa.Table:
    """Return the rows of a frame or file as an Arrow table.

    Parameters
    ----------
    frame : path, list of paths, pyarrow Table or Dataset, or frame of pandas or Polars
        A CSV file has a header; its columns are texts, separated by commas, semicolons or tabs.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    SourceError
        If it cannot be read.
    """
    source = open_source(frame)
    if len(source) > 1:
        raise SourceError("the table must be one, got a mapping of several; pass the one that is meant")
    (opened,) = source.values()
    if isinstance(opened, FrameSource):
        return opened.frame
    if isinstance(opened, DatasetSource):
        return pa.Table.from_batches(opened.batches(), opened.dataset.schema)
    return _files(opened)


def _files(source: FileSource) -> pa.Table:
    if source.kind is FileKind.DUCKDB:
        raise SourceError(
            "the table must be a frame, or a Parquet or CSV file, got a DuckDB file; pass a query's frame"
        )
    if source.partitions:
        raise SourceError(
            "the table must be of files that hold all columns, got folders that name some; pass a Dataset"
        )
    read = _csv if source.kind is FileKind.CSV else pq.read_table
    try:
        return pa.concat_tables([read(path) for path in source.paths])
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise SourceError(
            f"the table must be of files of one shape, got {source.paths[0].name!r} that cannot be read so; "
            "write it again"
        ) from None


def _csv(path: Path) -> pa.Table:
    with path.open(encoding="utf-8-sig") as stream:
        header = stream.readline()
    separator = max(",;\t", key=header.count)
    parsing = pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    names = pyarrow.csv.open_csv(path, parse_options=parsing).schema.names
    conversion = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    return pyarrow.csv.read_csv(path, parse_options=parsing, convert_options=conversion)
