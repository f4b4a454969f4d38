"""Predictors as people have them, a table or a matrix, to a matrix of floats with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["predictor_matrix"]

_LARGEST: Final = 1e100
"""Beyond it, and below its inverse, squares and products leave the range of floats."""


def predictor_matrix(
    predictors: Any, names: Sequence[str] | None = None
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Return the names and the matrix of predictors.

    Parameters
    ----------
    predictors : mapping of columns, table or 2-dimensional array
        A mapping from names to columns, a pandas, Polars or Arrow table, or an array with a row for each
        respondent, whose columns are called x1, x2 and so on.
    names : sequence of str, optional
        The columns that are wanted, in their order; an array has to have as many.

    Returns
    -------
    tuple of str
    array
        Respondents x predictors.

    Raises
    ------
    ParameterError
        If a column is missing, is not numeric, has an entry that is not finite, or has a largest one beyond
        1e100 or below 1e-100 in size; no entry is shown.

    Examples
    --------
    >>> predictor_matrix({"age": [30, 40], "town": [True, False]})[0]
    ('age', 'town')
    """
    known = _column_names(predictors)
    if known is None:
        given = _numbers("predictors", predictors)
        if given.ndim != 2 or (names is not None and given.shape[1] != len(names)):
            rule = (
                f"have {'columns' if names is None else f'{len(names)} columns'}, a row for each respondent"
            )
            _check.refuse_type("predictors", rule, predictors, "pass a table, or a matrix")
        return tuple(names or (f"x{index + 1}" for index in range(given.shape[1]))), given
    wanted = tuple(known if names is None else names)
    missing = [name for name in wanted if name not in known]
    if missing or not wanted:
        found = f"there is no {missing[0]!r}" if missing else "it has none"
        _check.refuse_state("predictors", "have the columns of the model", found, "add it to the table")
    columns = [_numbers(f"predictors[{name!r}]", predictors[name]) for name in wanted]
    if any(column.ndim != 1 or len(column) != len(columns[0]) for column in columns):
        remedy = "pass one entry for each respondent in each of them"
        _check.refuse_state("predictors", "have columns of one length", "they differ", remedy)
    return wanted, np.column_stack(columns)


def _column_names(predictors: Any) -> tuple[str, ...] | None:
    """Return the names of a table's columns; None for what is no table."""
    if isinstance(predictors, Mapping):
        return tuple(predictors)
    for attribute in ("column_names", "columns"):
        names = getattr(predictors, attribute, None)
        if names is not None:
            return tuple(names)
    return None


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    found = np.asarray(values)
    rule = "be finite numbers, or booleans"
    if found.dtype.kind not in "buif":
        _check.refuse_type(
            name, rule, found, "code categories as columns of 0 and 1, one fewer than there are"
        )
    with np.errstate(over="ignore"):
        numbers = found.astype(np.float64)
    if not np.isfinite(numbers).all():
        _check.refuse_type(name, rule, found, "leave out respondents with a missing predictor")
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest > _LARGEST or 0 < largest < 1 / _LARGEST:
        rule = f"have its largest number between {1 / _LARGEST:g} and {_LARGEST:g} in size"
        _check.refuse_type(name, rule, found, "take another unit")
    return numbers
