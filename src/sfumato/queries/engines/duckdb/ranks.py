"""Ranks by SipHash: what decides in DuckDB which groups and rows of a unit count.

SQL and the bounding kernel share them, so both choose the same groups and rows under the same secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from duckdb.func import ARROW, SPECIAL

from sfumato.queries.engines.duckdb import _bounding
from sfumato.queries.engines.duckdb.dialect import DuckDB

__all__ = ["RANKED_DUCKDB", "KernelColumn", "RankedDuckDB", "add_ranks", "is_text", "kernel_column"]

_FUNCTION: Final = "sfumato_rank"
_DECIMAL_BYTES: Final = 16
_INTEGERS: Final = pa.int64()

KernelColumn: TypeAlias = tuple[Any, Any, Any, int, int]
"""A column as the kernel takes it: validity, offsets, data, first row, and whether offsets have 64 bits."""


@final
class RankedDuckDB(DuckDB):
    """The SQL of a DuckDB that :func:`add_ranks` gave its function."""

    def rank(self, words: tuple[int, int], columns: Sequence[str]) -> str:
        """Return 63 bits of SipHash-2-4 of the columns, keyed by the words."""
        key = ", ".join(f"CAST('{word}' AS UBIGINT)" for word in words)
        return f"{_FUNCTION}({key}, {', '.join(columns)})"


RANKED_DUCKDB: Final = RankedDuckDB()
"""The dialect; it has no state."""


def add_ranks(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the function that ranks, to a database whose settings are not locked yet.

    Examples
    --------
    >>> with duckdb.connect() as connection:
    ...     add_ranks(connection)
    ...     rank = RANKED_DUCKDB.rank((1, 2), ["7", "'place'", "NULL"])
    ...     connection.sql(f"SELECT {rank} = {rank}, {rank} = {rank.replace('7', '8')}").fetchall()
    [(True, False)]
    """
    connection.create_function(_FUNCTION, _ranks, None, "BIGINT", type=ARROW, null_handling=SPECIAL)


def _ranks(first: pa.Array, second: pa.Array, *columns: pa.Array) -> pa.Array:
    """Return the rank of each row; the first two columns are the key, the same in each row."""
    count = len(first)
    made = np.empty(count, dtype=np.int64)
    if count:
        words = first[0].as_py() | second[0].as_py() << 64
        _bounding.ranks(words.to_bytes(16, "little"), count, tuple(map(kernel_column, columns)), made)
    return pa.array(made)


def is_text(type_: pa.DataType) -> bool | None:
    """Return whether the kernel takes a type as bytes; None where it does not take it.

    Examples
    --------
    >>> is_text(pa.string()), is_text(pa.int64()), is_text(pa.list_(pa.int64()))
    (True, False, None)
    >>> is_text(pa.decimal128(38, 2)), is_text(pa.dictionary(pa.int8(), pa.string()))
    (True, True)
    """
    if pt.is_dictionary(type_):
        return is_text(type_.value_type) or None
    if pt.is_string(type_) or pt.is_large_string(type_) or pt.is_binary(type_) or pt.is_large_binary(type_):
        return True
    if pt.is_decimal128(type_):
        return True
    whole = (
        pt.is_integer(type_) or pt.is_boolean(type_) or (pt.is_temporal(type_) and not pt.is_interval(type_))
    )
    return False if whole or pt.is_float32(type_) or pt.is_float64(type_) else None


def kernel_column(array: pa.Array) -> KernelColumn:
    """Return an array as the kernel takes it: texts as they are, all else as one integer of 64 bits a value.

    A float is its bits, 0.0 and -0.0 alike; a decimal is its 16 bytes; an ENUM is its text. Values of types
    that the kernel does not take are ranked by their text.

    Examples
    --------
    >>> validity, offsets, data, first, wide = kernel_column(pa.array(["a", "bc"]))
    >>> validity is None, data.to_pybytes()[:3], first, wide
    (True, b'abc', 0, 0)
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    type_ = array.type
    if type_.equals(_INTEGERS):  # the most frequent type, and DuckDB asks for 2,048 rows at a time
        validity, data = array.buffers()
        return (validity if array.null_count else None), None, data, array.offset, 0
    if pt.is_dictionary(type_):
        array = array.dictionary_decode()
        type_ = array.type
    text = is_text(type_)
    if text is None:
        return kernel_column(
            pa.array([None if v is None else repr(v) for v in array.to_pylist()], pa.string())
        )
    if pt.is_decimal128(type_):
        validity, data = array.buffers()
        ends = np.arange(array.offset + len(array) + 1, dtype=np.int64) * _DECIMAL_BYTES
        return (validity if array.null_count else None), ends, data, array.offset, 1
    if text:
        validity, offsets, data = array.buffers()
        wide = pt.is_large_string(type_) or pt.is_large_binary(type_)
        return (validity if array.null_count else None), offsets, data, array.offset, int(wide)
    if pt.is_floating(type_):
        values = array.cast(pa.float64()).fill_null(0.0).to_numpy()
        words = np.where(values == 0, 0.0, values).view(np.int64)
        array = pa.array(words, mask=array.is_null().to_numpy(zero_copy_only=False))
    elif type_.bit_width < 64:
        small = array.cast(pa.int32()) if pt.is_temporal(type_) else array
        array = small.cast(pa.int64())
    validity, data = array.buffers()
    return (validity if array.null_count else None), None, data, array.offset, 0
