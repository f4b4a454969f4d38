"""Records of several tables as one kind of matrix, and the nearest records of another table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import _check
from sfumato.frames.arrow import as_arrow
from sfumato.synthetic.domain.column_types import is_number, plain_column

__all__ = ["RecordMatrix", "columns_of", "nearest_records", "record_matrices", "table_of"]

_BLOCK: Final = 4_000_000
"""Distances at once: 16 MB."""

_EXACT: Final = 1 << 53

Floats = NDArray[np.float64]


class RecordMatrix(NamedTuple):
    """Records as numbers.

    Attributes
    ----------
    values : array of float, shape (records, columns)
        Of a numeric column its values, of another one codes that all tables share; NaN where one is missing.
    numeric : bool array of shape (columns,)
        Which columns have an order.
    """

    values: Floats
    numeric: NDArray[np.bool_]


def table_of(name: str, frame: Any) -> pa.Table:
    """Return a frame as an Arrow table with one row at least.

    Parameters
    ----------
    name : str
        For messages.
    frame : frame
        Of Arrow, pandas, Polars or another library that `as_arrow` takes.

    Returns
    -------
    pyarrow.Table
    """
    table = as_arrow(name, frame)
    if not table.num_rows:
        _check.refuse_state(name, "have rows", "there is none", "pass at least one record")
    return table


def columns_of(name: str, columns: Sequence[str], *tables: pa.Table) -> tuple[str, ...]:
    """Return names of columns, each once and present in all tables, or refuse them."""
    if isinstance(columns, str) or not columns or not all(isinstance(one, str) for one in columns):
        _check.refuse_type(name, "be names of columns, at least one", columns, "pass a list of names")
    for place, column in enumerate(columns):
        if column in columns[:place]:
            _check.refuse(name, "name each column once", column, "leave the second one out")
        if any(table.schema.names.count(column) != 1 for table in tables):
            _check.refuse(name, "name columns that each table has once", column, "see the tables' schemas")
    return tuple(columns)


def record_matrices(tables: Mapping[str, pa.Table], columns: Sequence[str]) -> list[RecordMatrix]:
    """Return the records of tables, with common codes for what is no number.

    Parameters
    ----------
    tables : mapping of str to pyarrow.Table
        By the names that messages give them.
    columns : sequence of str
        Each present in all of them.

    Returns
    -------
    list of RecordMatrix
        In the order of the tables.
    """
    found = [_common([plain_column(table.column(name)) for table in tables.values()]) for name in columns]
    numeric = np.array([ordered for _, ordered in found])
    sides = zip(*(parts for parts, _ in found), strict=True)
    return [RecordMatrix(np.stack(side, axis=1), numeric) for side in sides]


def nearest_records(records: RecordMatrix, among: RecordMatrix, neighbors: int) -> NDArray[np.int64]:
    """Return the nearest records by Gower's distance.

    Parameters
    ----------
    records : RecordMatrix
    among : RecordMatrix
        Where neighbors are looked for; its range scales each numeric column.
    neighbors : int
        For each record, at most as many as there are.

    Returns
    -------
    int64 array of shape (records, neighbors)
        Indices of ``among``, nearest first; of equals the earlier one.

    References
    ----------
    Gower (1971), A General Coefficient of Similarity and Some of Its Properties.
    """
    neighbors = min(neighbors, len(among.values))
    found = [_smallest(distances, neighbors) for distances in _distances(records, among)]
    return np.concatenate(found)


def _smallest(distances: NDArray[np.float32], neighbors: int) -> NDArray[np.int64]:
    if neighbors == 1:
        return np.asarray(distances.argmin(axis=1)[:, None], dtype=np.int64)
    order = np.argsort(distances, axis=1, kind="stable")
    return np.asarray(order[:, :neighbors], dtype=np.int64)


def _distances(records: RecordMatrix, among: RecordMatrix) -> Iterator[NDArray[np.float32]]:
    """Yield the distances of some records at a time to all others, times the number of columns."""
    values, others = _scaled(records, among), _scaled(among, among)
    rows = max(1, _BLOCK // len(others))
    for start in range(0, len(values), rows):
        block = values[start : start + rows]
        total = np.zeros((len(block), len(others)), dtype=np.float32)
        for column, ordered in enumerate(among.numeric):
            mine, theirs = block[:, column, None], others[None, :, column]
            if ordered:
                apart = np.abs(mine - theirs)
                np.minimum(apart, 1, out=apart)
                apart[np.isnan(apart)] = 1
            else:
                apart = (mine != theirs).astype(np.float32)
            apart[np.isnan(mine)[:, 0][:, None] & np.isnan(theirs)] = 0
            total += apart
        yield total


def _scaled(records: RecordMatrix, among: RecordMatrix) -> NDArray[np.float32]:
    values = records.values.copy()
    for column in np.flatnonzero(among.numeric):
        known = among.values[:, column]
        known = known[np.isfinite(known)]
        width = float(np.ptp(known)) if len(known) else 0.0
        if 0 < width < np.inf:
            values[:, column] /= width
    return values.astype(np.float32)


def _common(columns: list[pa.ChunkedArray]) -> tuple[list[Floats], bool]:
    """Return one column of each table as floats, and whether they have an order."""
    numbers = [_numbers(column) for column in columns]
    exact = [column for column in numbers if column is not None]
    if len(exact) == len(columns):
        return exact, True
    texts = [column.cast(pa.large_string()) for column in columns]
    known = pc.unique(pa.chunked_array([chunk for text in texts for chunk in text.chunks], pa.large_string()))
    known = known.drop_null()
    return [_floats(pc.index_in(text, value_set=known)) for text in texts], False


def _numbers(column: pa.ChunkedArray) -> Floats | None:
    """Return a column's values as floats, or None if it has no numbers, or integers that are no floats."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif not is_number(kind):
        return None
    if pa.types.is_integer(column.type) and len(column) > column.null_count:
        ends = pc.min_max(column)
        if min(ends["min"].as_py(), -ends["max"].as_py()) <= -_EXACT:
            return None
    return _floats(column)


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(pc.fill_null(column.cast(pa.float64()), float("nan")), dtype=np.float64)
