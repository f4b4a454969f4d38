"""Turns data into arrays of records, in whatever form people have it, and adds integers without overflow.

Data is a numpy array, a list or tuple, a column of pandas, Polars, Arrow or narwhals, or (where a record is a
row of numbers) a frame of these. What an array or a column holds follows from its type; a list has none, so
each of its records is read by itself. Either way no record changes how another one is read, and no error
depends on a record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.columns import Column, columns_of, read_column
from sfumato.mechanisms.base.grid import clamp

__all__ = [
    "as_column",
    "as_columns",
    "as_numbers",
    "as_records",
    "as_table",
    "exact_sum",
    "record_count",
    "relative_positions",
]

_HALF = 32  # each half of a summand has at most 32 bits, so 2**31 of them fit into int64
_RULE = "be an array, a list or a column of records"
_REMEDY = "pass numpy.array(..., dtype=...), a list, or a column of pandas, Polars or Arrow"


def record_count(data: Any) -> int:
    """Return how many records there are; a null is one."""
    listed = isinstance(data, list | tuple) or columns_of(data) is not None
    return len(data) if listed else len(as_records(data))


def as_column(data: Any) -> Column:
    """Return one value per record, and which are null, without changing what they are.

    Raises
    ------
    ParameterError
        If the type or the number of axes does not fit; never for a value.
    """
    if isinstance(data, list | tuple):
        return Column(np.fromiter(data, dtype=object, count=len(data)))
    found = read_column(data) or Column(as_records(data))
    if found.values.ndim != 1:
        # Each number of a row would be counted, and one unit would move as many cells.
        _check.refuse_state("data", "have one axis", f"it has {found.values.ndim}", "pass one column")
    return found


def as_records(data: Any) -> NDArray[Any]:
    """Return the data as an array with one record per entry of its first axis.

    A list is one of real numbers, read as `as_numbers` reads it; a frame is a table of them. Nulls of a
    column are NaN, 0 among whole numbers, None among other values.
    """
    if isinstance(data, list | tuple):
        return _each(data, _real, np.float64)
    columns = columns_of(data)
    if columns is not None:
        return _stacked(columns)
    found = read_column(data)
    if found is not None:
        return found.values
    if not isinstance(data, np.ndarray) or data.ndim == 0:
        _check.refuse_state("data", _RULE, f"it is a value of type {type(data).__name__}", _REMEDY)
    return data


def as_numbers(data: Any, *, integral: bool) -> NDArray[Any]:
    """Return one real number per record.

    A null counts as NaN does, as the number 0: it is NaN among floats, and 0 among whole numbers. In a list,
    what is no number counts as a null, and where whole numbers are asked for others are rounded.

    Raises
    ------
    ParameterError
        If the type or the number of axes does not fit; never for a value.
    """
    if isinstance(data, list | tuple):
        return _each(data, _whole, np.int64) if integral else _each(data, _real, np.float64)
    array = as_records(data)
    kinds = "biu" if integral else "biuf"
    # What is made of no records, or of nulls only, often has no type of its own.
    if array.ndim != 1 or (array.dtype.kind not in kinds and array.size):
        rule = f"be a one-dimensional array of {'integers' if integral else 'real numbers'}"
        remedy = "convert it, or pass float bounds where records are real" if integral else "convert it"
        _check.refuse_state("data", rule, f"it has {array.ndim} axes of type {array.dtype}", remedy)
    if array.dtype.kind not in kinds:
        return array.astype(np.int64)
    return array.astype(np.int8) if array.dtype.kind == "b" else array


def as_table(data: Any, columns: int, *, name: str = "data") -> NDArray[Any]:
    """Return real numbers in so many columns, a row for each record.

    Nulls of a frame are NaN. A row of a list that is no list or tuple of so many entries is one of NaN.

    Raises
    ------
    ParameterError
        If the type or the number of columns does not fit; never for a value or for the number of records,
        which the message does not tell.
    """
    if isinstance(data, list | tuple):
        return np.array([_row(record, columns) for record in data], np.float64).reshape(-1, columns)
    array = as_records(data)
    if array.ndim != 2 or array.shape[1] != columns or array.dtype.kind not in "biuf":
        rule = f"be an array of real numbers of shape (n, {columns})"
        _check.refuse_state(
            name,
            rule,
            f"its records have the shape {array.shape[1:]} and are {array.dtype}",
            "stack the columns with numpy.column_stack, or pass a frame of them",
        )
    return array


def as_columns(data: Any, columns: int) -> list[Any]:
    """Return so many columns of records, each in a form that `as_column` takes, whatever is in them.

    A row of a list that is no list or tuple of so many entries is one of nulls.

    Raises
    ------
    ParameterError
        If the type or the number of columns does not fit; never for a value or for the number of records.
    """
    if isinstance(data, list | tuple):
        rows = [_entries(record, columns) or [None] * columns for record in data]
        return [[row[place] for row in rows] for place in range(columns)]
    frame = columns_of(data)
    if frame is not None and len(frame) == columns:
        return list(frame)
    records = as_records(data)
    if records.ndim != 2 or records.shape[1] != columns:
        found = f"its records have the shape {records.shape[1:]}"
        rule = f"have the shape (n, {columns})"
        _check.refuse_state("data", rule, found, "stack the columns, or pass a frame of them")
    return list(records.T)


def _entries(record: Any, columns: int) -> list[Any] | None:
    """Return the entries of a row of a list, None where it is no row of so many."""
    if isinstance(record, np.ndarray) and record.ndim == 1:
        record = record.tolist()
    return list(record) if isinstance(record, list | tuple) and len(record) == columns else None


def _each(data: list[Any] | tuple[Any, ...], read: Callable[[Any], Any], dtype: Any) -> NDArray[Any]:
    return np.fromiter(map(read, data), dtype=dtype, count=len(data))


def _real(record: Any) -> float:
    """Return the number nearest to a record, NaN for what is none."""
    if type(record) is float:
        return record
    real: bool = isinstance(record, Real | Decimal | np.bool_)
    try:
        return float(record) if real else math.nan
    except OverflowError:  # an int beyond all floats
        return math.inf if record > 0 else -math.inf
    except Exception:  # whether a number of an unknown type has a float depends on the record
        return math.nan


def _whole(record: Any) -> int:
    """Return the whole number nearest to a record, half to even, 0 for what is none."""
    if type(record) is int:
        return clamp(record)
    try:
        if isinstance(record, Integral | np.bool_):
            return clamp(int(record))
        if isinstance(record, Fraction):
            return clamp(round(record))
    except Exception:  # as above
        return 0
    real = _real(record)
    return 0 if math.isnan(real) else clamp(round(max(-(2.0**62), min(2.0**62, real))))


def _row(record: Any, columns: int) -> list[float]:
    entries = _entries(record, columns)
    return [math.nan] * columns if entries is None else [_real(entry) for entry in entries]


def _stacked(columns: Sequence[Any]) -> NDArray[np.float64]:
    """Return the columns of a frame beside each other, NaN for nulls."""
    made = []
    for column in columns:
        values, nulls = as_column(column)
        if values.dtype.kind not in "biuf" and values.size:
            rule = "be a frame of columns of real numbers"
            _check.refuse_state("data", rule, f"one has the type {values.dtype}", "leave out or convert it")
        real = values.astype(np.float64)
        made.append(real if nulls is None else np.where(nulls, np.nan, real))
    return np.column_stack(made) if made else np.empty((0, 0))


def relative_positions(array: NDArray[Any], bounds: tuple[Any, Any]) -> NDArray[np.float64]:
    """Return where real numbers lie between two bounds: 0 at the lower and 1 at the upper one, or beyond.

    NaN counts as the number 0. Bounds that are arrays are those of columns.
    """
    lower, upper = bounds
    real = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.asarray(np.clip((np.clip(real, lower, upper) - lower) / (upper - lower), 0, 1))


def exact_sum(steps: NDArray[np.int64]) -> int:
    """Return the sum of int64 numbers, exact for up to 2**31 of them, clamped to 2**62 either way."""
    high, low = steps >> _HALF, steps & ((1 << _HALF) - 1)
    return clamp((int(high.sum(dtype=np.int64)) << _HALF) + int(low.sum(dtype=np.int64)))
