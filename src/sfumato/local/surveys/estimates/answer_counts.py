"""Answers as they come from a file, a frame or a table of counts, to counts of each answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["counts", "indices"]


def indices(name: str, values: Any, labels: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return the index of each value among the labels.

    Parameters
    ----------
    name : str
        Of the parameter, for the error.
    values : array, list or column of a frame
        Labels; or, for two labels, booleans or 0 and 1 for the first and the second.
    labels : sequence of hashables

    Raises
    ------
    ParameterError
        If a value is none of the labels, a missing one too. The message shows no value.
    """
    given = np.asarray(values)
    rule = f"each be one of {', '.join(map(repr, labels))}"
    if given.ndim != 1 or isinstance(values, Mapping | str):
        _check.refuse_type(name, rule, values, "pass a list with one for each respondent")
    with np.errstate(invalid="ignore"):  # infinite ones are refused below
        whole = given.dtype.kind in "bui" or (given.dtype.kind == "f" and not np.mod(given, 1).any())
    if len(labels) == 2 and whole and not any(_is_number(label) for label in labels):
        found = np.where((given == 0) | (given == 1), given, -1).astype(np.int64)
    elif given.dtype.kind in "buifU":
        known = {label: index for index, label in enumerate(labels)}
        kinds, which = np.unique(given, return_inverse=True)
        found = np.array([known.get(kind, -1) for kind in kinds.tolist()], np.int64)[which.ravel()]
    else:
        known = {label: index for index, label in enumerate(labels)}
        if len(labels) == 2 and not any(_is_number(label) for label in labels):
            known |= {False: 0, True: 1}
        found = np.fromiter((_index(known, value) for value in given.tolist()), np.int64, len(given))
    if (found < 0).any():
        remedy = "drop or correct them: they are not shown here"
        _check.refuse_type(name, rule, values, remedy)
    return found


def counts(name: str, values: Any, labels: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return how often each label occurs.

    Parameters
    ----------
    name, values, labels
        As in `indices`; or a mapping from each label to its count.
    """
    if not isinstance(values, Mapping):
        return np.bincount(indices(name, values, labels), minlength=len(labels)).astype(np.int64)
    if not set(values) <= set(labels):
        rule = f"have the keys {', '.join(map(repr, labels))}"
        _check.refuse_type(name, rule, values, "pass a count for each answer")
    return np.array([_check.integer(name, values.get(label, 0)) for label in labels], np.int64)


def _index(known: Mapping[Any, int], value: Any) -> int:
    try:
        return known.get(value, -1)
    except TypeError:  # it cannot be a label
        return -1


def _is_number(label: Hashable) -> bool:
    return isinstance(label, bool | int | float)
