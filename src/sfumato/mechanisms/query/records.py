"""Checks records given as numpy arrays, and adds integers without overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.grid import clamp

__all__ = ["as_numbers", "as_records", "as_table", "exact_sum", "relative_positions"]

_HALF = 32  # each half of a summand has at most 32 bits, so 2**31 of them fit into int64


def as_records(data: Any) -> NDArray[Any]:
    """Return the data, an array with one record per entry of its first axis.

    Anything else is refused: it would be given one type for all of its records, so that a single record (a
    text among the whole numbers of a list, a null among those of a column) could change every other.
    """
    if not isinstance(data, np.ndarray) or data.ndim == 0:
        rule, remedy = "be a numpy array of records", "pass numpy.array(..., dtype=...)"
        _check.refuse_state("data", rule, f"it is a value of type {type(data).__name__}", remedy)
    return data


def as_numbers(data: Any, *, integral: bool) -> NDArray[Any]:
    """Return one real number per record.

    Raises
    ------
    ParameterError
        If the type or the number of axes does not fit; never for a value.
    """
    array = as_records(data)
    kinds = "biu" if integral else "biuf"
    # What is made of no records often has no type of its own.
    if array.ndim != 1 or (array.dtype.kind not in kinds and array.size):
        rule = f"be a one-dimensional array of {'integers' if integral else 'real numbers'}"
        remedy = "convert it, or pass float bounds where records are real" if integral else "convert it"
        _check.refuse_state("data", rule, f"it has {array.ndim} axes of type {array.dtype}", remedy)
    return array.astype(np.int8) if array.dtype.kind == "b" else array


def as_table(data: Any, columns: int, *, name: str = "data") -> NDArray[Any]:
    """Return real numbers in so many columns, a row for each record.

    Raises
    ------
    ParameterError
        If the type or the number of columns does not fit; never for a value or for the number of records,
        which the message does not tell.
    """
    array = as_records(data)
    if array.ndim != 2 or array.shape[1] != columns or array.dtype.kind not in "biuf":
        rule = f"be an array of real numbers of shape (n, {columns})"
        _check.refuse_state(
            name,
            rule,
            f"its records have the shape {array.shape[1:]} and are {array.dtype}",
            "stack the columns with numpy.column_stack",
        )
    return array


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
