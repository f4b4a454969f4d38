"""Arrow tables as DataFrames of a Spark session."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["frame"]

_TYPES = {
    "int8": "TINYINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "decimal128(30, 4)": "DECIMAL(30, 4)",
    "decimal128(30, 9)": "DECIMAL(30, 9)",
    "string": "STRING",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP_NTZ",
}


def frame(session: Any, table: pa.Table, **types: str) -> Any:
    """Return the rows as a DataFrame, in the types that Spark has for them, or in those given."""
    names = (field.name.replace("`", "``") for field in table.schema)
    made = (types.get(field.name) or _type(field.type) for field in table.schema)
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in zip(names, made, strict=True))
    return session.createDataFrame(table, schema=schema)


def _type(type_: pa.DataType) -> str:
    return f"ARRAY<{_type(type_.value_type)}>" if pa.types.is_list(type_) else _TYPES[str(type_)]
