"""Count reports stored in columns: Arrow streams in constant memory, Parquet files by several processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfumato import _check
from sfumato.errors import SchemaError, SourceError
from sfumato.local.base.aggregator import Aggregator
from sfumato.local.base.protocol import LocalProtocol, ReportProtocol
from sfumato.local.base.threads import cores
from sfumato.local.device.base.record_layout import Records

__all__ = ["add_column", "aggregate_arrow", "aggregate_parquet"]

Result = TypeVar("Result")
Path = str | os.PathLike[str]
Task = tuple[str, int]
"""A file and one of its row groups."""

_ROWS: Final = 1 << 16
_UNREADABLE: Final = (
    "files must be Parquet that can be read to the end, got another or a damaged one; nothing was counted"
)
_CUT: Final = (
    "source must be a stream that can be read to its end, got a cut or damaged one; nothing was counted"
)


def add_column(aggregator: Aggregator[Any], column: pa.Array | pa.ChunkedArray) -> int:
    """Count each value of a binary column as one record; return how many were accepted.

    Parameters
    ----------
    aggregator : Aggregator
    column : pyarrow.Array or pyarrow.ChunkedArray
        Of any binary type. Missing values and those of another length than a record's are refused
        (``"width"``), as by `Aggregator.add`.

    Returns
    -------
    int
        How many values were accepted.

    Raises
    ------
    SchemaError
        If the column is not of a binary type.
    """
    if isinstance(column, pa.ChunkedArray):
        return sum(add_column(aggregator, chunk) for chunk in column.chunks)
    kind = column.type
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or _is_fixed(kind) or _is_view(kind)):
        raise SchemaError(f"column must be of a binary type, with one report a row, got {kind}; cast it")
    accepted = 0
    for start in range(0, len(column), _ROWS):
        part = column.slice(start, _ROWS)
        records = _records(part, aggregator.oracle.device.width)
        accepted += aggregator.add_batch(records)
        aggregator.add_batch(np.empty((len(part) - len(records), 0), np.uint8))
    return accepted


def _records(part: pa.Array, width: int) -> Records:
    """Return the values of a binary column that are as long as a record, without a copy where all are."""
    if _is_fixed(part.type):
        part = part.drop_null() if part.type.byte_width == width else part.slice(0, 0)
        start, data = part.offset * width, part.buffers()[1]
    else:
        part = part.cast(pa.large_binary())
        part = part.filter(pc.equal(pc.binary_length(part), width))  # missing values fall out too
        _, ends, data = part.buffers()
        start = int(np.frombuffer(ends, np.int64)[part.offset]) if len(part) else 0
    size = width * len(part)
    whole = np.frombuffer(data, np.uint8)[start : start + size] if size else np.empty(0, np.uint8)
    return whole.reshape(len(part), width)


def aggregate_arrow(
    protocol: LocalProtocol[Any, Result], source: Any, column: str = "report"
) -> Aggregator[Result]:
    """Return an aggregator of a column of reports that comes in pieces, in constant memory.

    Parameters
    ----------
    protocol : LocalProtocol
        What made the reports.
    source : Arrow stream
        Whatever has the Arrow stream interface, such as a ``pyarrow.RecordBatchReader``, a table or a frame
        of Polars; a dataset of pyarrow; or an iterable of record batches or tables.
    column : str
        Of a binary type, with one report a row.

    Returns
    -------
    Aggregator
        The same, bit by bit, as one that all reports were added to, in any order.

    Raises
    ------
    SchemaError
        If there is no such column, or it is not binary.
    SourceError
        If the stream cannot be read to its end.
    ParameterError
        If the source is none of these.

    Examples
    --------
    >>> from sfumato import local
    >>> oracle = local.RandomizedResponse(epsilon=1.0, domain=local.Domain(["a", "b", "c"]))
    >>> table = pa.table({"report": [oracle.randomize("b", 1), oracle.randomize("c", 2), None]})
    >>> aggregator = aggregate_arrow(oracle, table)
    >>> aggregator.accepted, aggregator.refused["width"]
    (2, 1)
    """
    _check.instance("protocol", protocol, ReportProtocol, "pass an oracle of sfumato.local")
    aggregator, whole = protocol.aggregator(), False
    with suppress(OSError, pa.ArrowException):
        for piece in _pieces(source, column):
            add_column(aggregator, _named(piece, column))
        whole = True
    if not whole:
        raise SourceError(_CUT)
    return aggregator


def aggregate_parquet(
    protocol: LocalProtocol[Any, Result],
    files: Path | Iterable[Path],
    column: str = "report",
    *,
    processes: int | None = None,
) -> Aggregator[Result]:
    """Return an aggregator of the reports in Parquet files, counted by several processes.

    Parameters
    ----------
    protocol : LocalProtocol
        What made the reports. Its module must be importable: other processes are started afresh.
    files : path or iterable of paths
    column : str
        Of a binary type, with one report a row.
    processes : int, optional
        As many as there are cores if left out; 1 counts in this process. Scripts that ask for more must be
        guarded by ``if __name__ == "__main__":``.

    Returns
    -------
    Aggregator
        The same, bit by bit, for any number of processes.

    Raises
    ------
    SchemaError
        If a file has no such column, or it is not binary.
    SourceError
        If a file cannot be read, or a process ended before its time; nothing is counted then.

    Notes
    -----
    A process counts row groups, one after the other, in constant memory, and its state comes back when it has
    counted a few; the states are merged.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sfumato import local
    >>> oracle = local.RandomizedResponse(epsilon=1.0, domain=local.Domain(["a", "b", "c"]))
    >>> table = pa.table({"report": [oracle.randomize("b", 1), oracle.randomize("c", 2)]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "reports.parquet")
    ...     pq.write_table(table, path)
    ...     aggregator = aggregate_parquet(oracle, path, processes=1)
    >>> aggregator.accepted
    2
    """
    _check.instance("protocol", protocol, ReportProtocol, "pass an oracle of sfumato.local")
    wanted = cores() if processes is None else _check.integer("processes", processes, minimum=1)
    named: Any = [files] if isinstance(files, str | os.PathLike) else files
    given: list[Any] = list(named) if isinstance(named, Iterable) else [named]
    if not all(isinstance(path, str | os.PathLike) for path in given):
        _check.refuse_type("files", "be a path or paths", files, "pass one path or a list")
    tasks = [task for path in given for task in _row_groups(os.fspath(path), column)]
    aggregator = protocol.aggregator()
    size = max(1, -(-len(tasks) // (4 * wanted)))
    parts = [tasks[start : start + size] for start in range(0, len(tasks), size)]
    if wanted == 1 or len(parts) < 2:
        for part in parts:
            aggregator.merge(_count(protocol, part, column))
        return aggregator
    lost = False
    with ProcessPoolExecutor(min(wanted, len(parts)), multiprocessing.get_context("spawn")) as pool:
        try:
            for state in _in_turn(pool, protocol, parts, column):
                aggregator.merge(state)
        except BrokenProcessPool:
            lost = True
    if lost:
        raise SourceError("processes must last to the end, got one that was ended; count again, with fewer")
    return aggregator


def _in_turn(
    pool: ProcessPoolExecutor, protocol: LocalProtocol[Any, Any], parts: list[list[Task]], column: str
) -> Iterator[bytes]:
    """Yield states as they come, with a bounded number of them under way or waiting."""
    left, running = iter(parts), list[Future[bytes]]()
    for part in islice(left, 8):
        running.append(pool.submit(_count, protocol, part, column))
    while running:
        yield running.pop(0).result()
        for part in islice(left, 1):
            running.append(pool.submit(_count, protocol, part, column))


def _count(protocol: LocalProtocol[Any, Any], tasks: list[Task], column: str) -> bytes:
    """Return the state of an aggregator of some row groups; runs in a process of its own."""
    aggregator = protocol.aggregator()
    failed = True
    with suppress(OSError, pa.ArrowException):
        for path, group in tasks:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(_ROWS, [group], [column]):
                    add_column(aggregator, batch.column(column))
        failed = False
    if failed:
        raise SourceError(_UNREADABLE)
    return aggregator.to_bytes()


def _row_groups(path: str, column: str) -> list[Task]:
    """Return the row groups of a file that has the column."""
    with suppress(OSError, pa.ArrowException), pq.ParquetFile(path) as file:
        _check_column(file.schema_arrow, column)
        return [(path, group) for group in range(file.num_row_groups)]
    raise SourceError(_UNREADABLE)


def _pieces(source: Any, column: str) -> Iterator[Any]:
    """Yield the record batches or tables of whatever has some."""
    if isinstance(source, pa.RecordBatch | pa.Table | pa.RecordBatchReader):
        yield from [source] if not isinstance(source, pa.RecordBatchReader) else source
    elif callable(getattr(source, "to_batches", None)):  # a dataset
        _check_column(source.schema, column)
        yield from source.to_batches(columns=[column])
    elif isinstance(source, pa.Array | pa.ChunkedArray):
        rule = "be an Arrow stream, a dataset or record batches"
        _check.refuse_type("source", rule, source, "put the column into a table")
    elif hasattr(source, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(source)
    elif callable(getattr(source, "to_arrow", None)):  # a frame of Polars before it had streams
        yield source.to_arrow()
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes | os.PathLike):
        yield from source
    else:
        rule = "be an Arrow stream, a dataset or record batches"
        _check.refuse_type("source", rule, source, "use aggregate_parquet for files")


def _named(piece: Any, column: str) -> Any:
    if not isinstance(piece, pa.RecordBatch | pa.Table):
        _check.refuse_type("source", "give record batches or tables", piece, "convert them")
    _check_column(piece.schema, column)
    return piece.column(column)


def _check_column(schema: pa.Schema, column: str) -> None:
    found = schema.names.count(column)
    if not found:
        raise SchemaError(f"column must be one of the source's, got {column!r}; pass column=")
    if found > 1:
        reported = f"got {column!r} {found} times; rename the others"
        raise SchemaError(f"column must be in the source once, {reported}")


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind))


def _is_view(kind: pa.DataType) -> bool:
    reported = getattr(pa.types, "is_binary_view", None)
    return bool(reported is not None and reported(kind))
