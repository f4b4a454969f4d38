"""Tables as bytes that programs read: a stream of Arrow, with what is said of the table in its schema.

>>> import json
>>> stream = arrow_stream(pa.table({"n": [7]}), {"epsilon": 0.5})
>>> table = pa.ipc.open_stream(stream).read_all()
>>> table.column("n").to_pylist(), json.loads(table.schema.metadata[b"sfumato.facts"])
([7], {'epsilon': 0.5})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from sfumato.server.console.api.plain_values import json_bytes
from sfumato.server.console.asking.table_stream import written_stream

__all__ = ["FACTS", "arrow_stream", "with_facts"]

FACTS: Final = "sfumato.facts"
"""The key of the schema's metadata under which they stand, as JSON."""


def with_facts(table: pa.Table, facts: Mapping[str, Any]) -> pa.Table:
    """Return a table whose schema has facts about it in its metadata.

    Parameters
    ----------
    table : pyarrow.Table
    facts : mapping of str to value
    """
    return table.replace_schema_metadata({FACTS: json_bytes(facts)})


def arrow_stream(table: pa.Table, facts: Mapping[str, Any]) -> bytes:
    """Return a table with facts as a stream of Arrow's IPC format.

    Parameters
    ----------
    table : pyarrow.Table
    facts : mapping of str to value
    """
    return written_stream(with_facts(table, facts))
