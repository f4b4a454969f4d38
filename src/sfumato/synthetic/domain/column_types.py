"""Types of columns, and what of a column can be declared."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["is_number", "is_text", "plain_column", "unstorable", "value_type"]


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with its dictionary decoded, if it has one, and views of texts as texts."""
    kind = value_type(column.type)
    column = column if kind is column.type else column.cast(kind)
    if not pa.types.is_string_view(kind):
        return column
    try:
        return column.cast(pa.large_string())
    except pa.ArrowNotImplementedError:  # as pyarrow before 18 has it
        return pa.chunked_array([column.to_pylist()], pa.large_string())


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's values, of a dictionary those that it lists."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether values are numbers: integers, floats or decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def unstorable(text: str) -> bool:
    r"""Return whether a text holds what not every column can.

    Examples
    --------
    >>> unstorable("a"), unstorable("\0")
    (False, True)
    """
    return "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)
