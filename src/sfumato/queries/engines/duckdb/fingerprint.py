"""Identity of content: a keyed fingerprint that changes with the data and reveals nothing without the key."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.frames.datasets import DatasetSource
from sfumato.frames.sources import FileKind, FileSource, FrameSource, Source

__all__ = ["fingerprint", "stamps"]

_FORMAT = b"sfumato.content.local 1"
"""What is digested first: the name and version of what follows."""
_BLOCK = 1 << 20
_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def fingerprint(sources: Mapping[str, Source], key: bytes) -> str:
    """Return the keyed HMAC-SHA-256 of all content, in hexadecimal.

    Files count by their bytes, whatever they are called; frames by names, types and values, whatever their
    chunks or memory layout. Every piece is preceded by its length, so that no two contents give one stream
    of bytes.

    Notes
    -----
    Guarantee: without the key it reveals nothing about the content, as long as HMAC-SHA-256 is a
    pseudo-random function.
    """
    mac = hmac.new(key, digestmod=hashlib.sha256)
    _piece(mac, _FORMAT)
    for name in sorted(sources):
        source = sources[name]
        _piece(mac, name.encode())
        if isinstance(source, FileSource):
            _files(mac, source)
        elif isinstance(source, DatasetSource):
            _dataset(mac, source)
        else:
            _frame(mac, source)
    return mac.hexdigest()


def stamps(sources: Mapping[str, Source]) -> dict[Path, tuple[int, ...] | None]:
    """Return what tells that a file was changed or replaced, without reading it; None for one that is gone.

    A CSV file is not looked at: its rows were taken into memory.
    """
    read = (
        source.files if isinstance(source, DatasetSource) else source.paths
        for source in sources.values()
        if isinstance(source, DatasetSource)
        or (isinstance(source, FileSource) and source.kind is not FileKind.CSV)
    )
    return {path: _stamp(path) for paths in read for path in paths}


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _piece(mac: hmac.HMAC, data: bytes | memoryview) -> None:
    mac.update(len(data).to_bytes(8, "big"))
    mac.update(data)


def _files(mac: hmac.HMAC, source: FileSource) -> None:
    _piece(mac, f"files {len(source.paths)} {source.table or ''}".encode())
    for path in source.paths:
        if source.partitions:
            _piece(mac, "/".join(path.parts[-1 - len(source.partitions) : -1]).encode())
        _file(mac, path)
        # what a DuckDB file's writer has not yet folded in lies beside it
        log = path.with_name(path.name + ".wal")
        if log.exists():
            _file(mac, log)


def _file(mac: hmac.HMAC, path: Path) -> None:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    _piece(mac, digest.digest())


def _frame(mac: hmac.HMAC, source: FrameSource) -> None:
    frame = source.frame
    _piece(mac, f"frame {frame.num_rows} {frame.num_columns}".encode())
    for name, column in zip(frame.column_names, frame.columns, strict=True):
        canonical = _canonical(column)
        _piece(mac, name.encode())
        _piece(mac, str(canonical.type).encode())
        _column(mac, canonical)


def _dataset(mac: hmac.HMAC, source: DatasetSource) -> None:
    """Digest the rows in their order, whatever the batches that they come in."""
    names = source.dataset.schema.names
    digests = [[hashlib.sha256() for _ in range(3)] for _ in names]
    rows = 0
    for batch in source.batches():
        rows += batch.num_rows
        for parts, values in zip(digests, batch.columns, strict=True):
            _stream(parts, _canonical(pa.chunked_array([values])).combine_chunks())
    _piece(mac, f"dataset {rows} {len(names)}".encode())
    for field, parts in zip(source.dataset.schema, digests, strict=True):
        _piece(mac, field.name.encode())
        _piece(mac, str(_canonical(pa.chunked_array([], field.type)).type).encode())
        for part in parts:
            _piece(mac, part.digest())


def _stream(parts: list[Any], values: pa.Array) -> None:
    """Add values to three digests of a column: which there are, their lengths, and what they are."""
    there, lengths, content = parts
    type_ = values.type
    there.update(_fixed(pc.is_valid(values).cast(pa.uint8()), 1))
    if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_):
        lengths.update(_fixed(pc.fill_null(pc.binary_length(values), -1), 8))
        content.update(_text(values))
    elif pa.types.is_primitive(type_) and type_.bit_width in _INTEGERS:
        content.update(_fixed(_filled(values), type_.bit_width // 8))
    else:  # types that no query can use, value by value
        for value in values.to_pylist():
            written = repr(value).encode()
            lengths.update(len(written).to_bytes(8, "big"))
            content.update(written)


def _canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column in the one type of its kind: how text is laid out in memory is no content."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        column = column.cast(type_.value_type)
        type_ = column.type
    if pa.types.is_string(type_) or pa.types.is_string_view(type_):
        return column.cast(pa.large_string())
    if pa.types.is_binary(type_) or pa.types.is_binary_view(type_):
        return column.cast(pa.large_binary())
    if pa.types.is_boolean(type_):
        return column.cast(pa.uint8())
    return column


def _column(mac: hmac.HMAC, column: pa.ChunkedArray) -> None:
    type_ = column.type
    if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_):
        for chunk in column.chunks:
            lengths = pc.fill_null(pc.binary_length(chunk), -1)
            mac.update(_fixed(lengths, 8))
        for chunk in column.chunks:
            mac.update(_text(chunk))
    elif pa.types.is_primitive(type_) and type_.bit_width in _INTEGERS:
        if column.null_count:
            for chunk in column.chunks:
                mac.update(_fixed(pc.is_valid(chunk).cast(pa.uint8()), 1))
        else:
            mac.update(b"\x01")
        for chunk in column.chunks:
            mac.update(_fixed(_filled(chunk), type_.bit_width // 8))
    else:
        _serialised(mac, column)


def _filled(chunk: pa.Array) -> pa.Array:
    """Return the values with zero where there is none: what memory holds under a NULL is no content."""
    integers = chunk.view(_INTEGERS[chunk.type.bit_width])
    return pc.fill_null(integers, 0) if chunk.null_count else integers


def _fixed(array: pa.Array, width: int) -> memoryview:
    data = array.buffers()[1]
    if data is None:
        return memoryview(b"")
    return memoryview(data)[array.offset * width : (array.offset + len(array)) * width]


def _text(chunk: pa.Array) -> memoryview:
    if chunk.null_count:
        chunk = pc.fill_null(chunk, "" if pa.types.is_large_string(chunk.type) else b"")
    _, offsets, data = chunk.buffers()
    if data is None or offsets is None or not len(chunk):
        return memoryview(b"")
    reach = memoryview(offsets).cast("q")
    return memoryview(data)[reach[chunk.offset] : reach[chunk.offset + len(chunk)]]


def _serialised(mac: hmac.HMAC, column: pa.ChunkedArray) -> None:
    """Types that no query can use, as Arrow writes them."""
    sink = pa.BufferOutputStream()
    table = pa.table({"c": column.combine_chunks()})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    _piece(mac, memoryview(sink.getvalue()))
