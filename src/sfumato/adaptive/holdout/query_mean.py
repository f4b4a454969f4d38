"""The mean over rows of a query with values in [0, 1], exact on a grid."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np

from sfumato import _check

__all__ = ["ROUNDING", "Query", "query_mean", "row_count"]

Query: TypeAlias = Callable[[Any], Any]
"""From rows to one value in [0, 1] for each of them."""

_STEPS: Final = 1 << 20

ROUNDING: Final = 1 / (2 * _STEPS)
"""How far a rounded value is from the query's own at most."""


def row_count(name: str, rows: Any) -> int:
    """Return how many rows there are, or refuse what has none.

    Parameters
    ----------
    name : str
    rows : array, frame or sequence

    Returns
    -------
    int

    Raises
    ------
    ParameterError
    """
    count = rows[0].shape[0] if _is_pair(rows) else len(rows) if hasattr(rows, "__len__") else 0
    if count < 1:
        remedy = "pass an array, a frame, or a tuple of inputs and labels"
        _check.refuse_type(name, "have rows", rows, remedy)
    return int(count)


def _is_pair(rows: Any) -> bool:
    return isinstance(rows, tuple) and len(rows) > 0 and hasattr(rows[0], "shape")


def query_mean(query: Query, rows: Any, count: int) -> Fraction:
    """Return the mean of a query's values, clamped to [0, 1] and rounded to a multiple of 2**-20.

    Parameters
    ----------
    query : callable
        Must give each row's value by that row alone.
    rows
        What the query is given.
    count : int
        How many values it must return.

    Returns
    -------
    Fraction
        Replacing a row moves it by at most ``1 / count``. NaN counts as 0.

    Raises
    ------
    ParameterError
        If there is not one number for each row.

    Examples
    --------
    >>> query_mean(lambda rows: rows > 1, np.array([1, 2, 3, 4]), 4)
    Fraction(3, 4)
    """
    values = np.asarray(query(rows))
    if values.shape != (count,) or values.dtype.kind not in "biuf":
        _check.refuse_type(
            "query", "return one number for each row", values, "return a one-dimensional array"
        )
    clamped = np.clip(np.nan_to_num(values.astype(np.float64), nan=0.0), 0.0, 1.0)
    return Fraction(int(np.rint(clamped * _STEPS).astype(np.int64).sum()), count * _STEPS)
