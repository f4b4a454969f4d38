"""Rows of values as columns: one column for each question."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.errors import ParameterError

__all__ = ["columns_of"]


def columns_of(values: Any, count: int) -> list[Any]:
    """Return the columns of rows of categories; the one error does not show them.

    Parameters
    ----------
    values : list of rows, or array of shape (respondents, count)
    count : int
        Categories in a row.

    Returns
    -------
    list
        One array or list for each column.

    Raises
    ------
    ParameterError
        If a row has another length.
    """
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == count:
        return list(np.ascontiguousarray(values.T))
    rows: list[Any] = list(values) if isinstance(values, list | tuple | np.ndarray) else [None]
    if not all(isinstance(row, list | tuple | np.ndarray) and len(row) == count for row in rows):
        raise ParameterError(
            f"values must be rows of {count} categories, one row per respondent, got others; "
            "pass [row] for one"
        )
    return [[row[at] for row in rows] for at in range(count)]
