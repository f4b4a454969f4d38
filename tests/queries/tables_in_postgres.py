"""Arrow tables put into a PostgreSQL database."""

from __future__ import annotations

import psycopg
import pyarrow as pa

__all__ = ["load"]

_TYPES = {
    "int8": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float": "real",
    "double": "double precision",
    "decimal128(30, 4)": "numeric(30, 4)",
    "decimal128(30, 9)": "numeric(30, 9)",
    "string": "text",
    "bool": "boolean",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
}


def load(connection: psycopg.Connection[tuple[object, ...]], name: str, table: pa.Table) -> None:
    """Make a table of this name, instead of the one that is there, and fill it."""
    columns = ", ".join(f'"{field.name}" {_type(field.type)}' for field in table.schema)
    connection.execute(f'DROP TABLE IF EXISTS "{name}"')
    connection.execute(f'CREATE TABLE "{name}" ({columns})')
    with connection.cursor() as cursor, cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
        for row in table.to_pylist():
            copy.write_row(tuple(row.values()))
    if not connection.autocommit:
        connection.commit()


def _type(type_: pa.DataType) -> str:
    return f"{_type(type_.value_type)}[]" if pa.types.is_list(type_) else _TYPES[str(type_)]
