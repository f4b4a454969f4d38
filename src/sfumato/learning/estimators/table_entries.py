"""Entries of a table as numbers, by one rule that raises no error for what they hold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from sfumato import _check

__all__ = ["is_label", "number", "numbers_of", "refuse_complex"]


def numbers_of(X: Any) -> Any:
    """Return a table whose columns of objects or texts are numbers, NaN where an entry is none.

    scikit-learn's own conversion would raise an error that shows an entry, and thereby that there is one.
    Columns that are numbers already, and all other types, are left as they are.

    Parameters
    ----------
    X : DataFrame of pandas or polars, array or nested sequences

    Raises
    ------
    ParameterError
        If an array has not two dimensions, or entries are complex: scikit-learn's errors would show them.
    """
    if hasattr(X, "iloc") and hasattr(X, "isetitem"):
        refuse_complex("X", X.dtypes)
        columns = [index for index, kind in enumerate(X.dtypes) if getattr(kind, "kind", "O") == "O"]
        if columns:
            X = X.copy()
        for index in columns:
            X.isetitem(index, _column(X.iloc[:, index].tolist()))
        return X
    if hasattr(X, "with_columns") and hasattr(X, "get_columns"):
        texts = [one for one in X.get_columns() if not (one.dtype.is_numeric() or one.dtype == bool)]
        return X.with_columns(**{one.name: _column(one.to_list()) for one in texts}) if texts else X
    if hasattr(X, "tocsr"):
        return X
    given = np.asarray(X)
    refuse_complex("X", [given.dtype])
    if given.ndim != 2 and given.dtype.kind in "biufOUS" and X is not None:
        remedy = "Reshape your data: array.reshape(-1, 1) for one column, array.reshape(1, -1) for one row"
        _check.refuse_state("X", "be a table: Expected 2D array", f"got {given.ndim}D array", remedy)
    if given.dtype.kind in "OUS" and given.ndim == 2:
        return _column(given.ravel().tolist()).reshape(given.shape)
    return X


def _column(entries: list[Any]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([number(one) for one in entries], np.float64)


def refuse_complex(name: str, kinds: Iterable[Any]) -> None:
    """Refuse complex numbers by their type; objects are looked at one by one, and are none."""
    if any(getattr(kind, "kind", "O") == "c" for kind in kinds):
        rule = "be of real numbers: Complex data not supported"
        _check.refuse_state(name, rule, "it has complex numbers", "pass real and imaginary parts as columns")


def is_label(value: Any) -> bool:
    """Whether a label is one: not missing, finite where it is a number, and to be compared with classes."""
    try:
        hash(value)
        return (
            value is not None
            and bool(value == value)  # noqa: PLR0124 - NaN and its like are not
            and not (isinstance(value, float) and math.isinf(value))
        )
    except (TypeError, ValueError):
        return False


def number(value: Any) -> float:
    """Return an entry as a number; NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
