"""Tables as streams of Arrow's IPC format.

>>> read_stream(written_stream(pa.table({"n": [7]}))).column("n").to_pylist()
[7]
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["read_stream", "written_stream"]


def written_stream(table: pa.Table) -> bytes:
    """Return a table as a stream.

    Parameters
    ----------
    table : pyarrow.Table
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_stream(content: bytes) -> pa.Table:
    """Return the table of a stream.

    Parameters
    ----------
    content : bytes
    """
    return pa.ipc.open_stream(content).read_all()
