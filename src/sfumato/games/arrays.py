"""Arrays that callers pass: what is no array of numbers is refused, and none of it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["as_array", "as_numbers"]


def as_array(name: str, given: Any, remedy: str) -> NDArray[Any]:
    """Return an array, or refuse rows of different lengths.

    Parameters
    ----------
    name : str
        The parameter's name.
    given : array_like
    remedy : str
        What to pass instead.

    Returns
    -------
    array

    Raises
    ------
    ParameterError
        If it is no array.
    """
    try:
        return np.asarray(given)
    except (ValueError, TypeError):
        _check.refuse_state(name, "be an array", "its rows differ in length or form", remedy)


def as_numbers(name: str, given: Any, remedy: str) -> NDArray[np.float64]:
    """Return a new array of floats, or refuse what is none.

    Parameters
    ----------
    name : str
        The parameter's name.
    given : array_like
    remedy : str
        What to pass instead.

    Returns
    -------
    float64 array

    Raises
    ------
    ParameterError
        If it is no array of real numbers.
    """
    found = as_array(name, given, remedy)
    if found.dtype.kind not in "biuf":
        try:
            # numpy would read numbers out of strings.
            numeric = found.dtype.kind == "O" and not any(isinstance(one, str | bytes) for one in found.flat)
            found = np.array(found.tolist(), np.float64) if numeric else np.empty(0)
        except (ValueError, TypeError, OverflowError):
            found = np.empty(0)
        if found.dtype.kind != "f" or not found.size:
            _check.refuse_type(name, "be real numbers", given, remedy)
    return np.array(found, np.float64)
