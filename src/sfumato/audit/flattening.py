"""Flattens outputs of any kind into the numbers and labels that they consist of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.base.release import Release

__all__ = ["Raw", "as_float", "as_output_array", "flatten", "numeric_entries"]

Raw = Any
"""A numeric array with one outcome in each entry of its first axis, or a list of outcomes of any kind."""


def as_output_array(outputs: Any) -> Raw:
    """Return outputs as a numeric array, or else as a list."""
    if isinstance(outputs, Release):
        outputs = outputs.value
    if isinstance(outputs, np.ndarray):
        if outputs.dtype.kind in "biuf" and outputs.ndim:
            return outputs
        return outputs.tolist() if outputs.ndim else [outputs.item()]
    listed = [output.value if isinstance(output, Release) else output for output in outputs]
    kinds = {type(output) for output in listed}
    if listed and all(issubclass(kind, int | float | np.number | np.bool_) for kind in kinds):
        numbers = np.asarray(listed)
        return numbers if numbers.dtype.kind in "biuf" else listed
    if kinds == {np.ndarray} and len({(entry.shape, entry.dtype.kind) for entry in listed}) == 1:
        stacked = np.stack(listed)
        return stacked if stacked.dtype.kind in "biuf" else listed
    return listed


def numeric_entries(raw: Raw, count: int) -> NDArray[np.float64]:
    """Return the numbers in each of some outcomes, unrounded: up to so many, NaN for what is none."""
    if isinstance(raw, np.ndarray):
        return np.asarray(raw.reshape(len(raw), -1), dtype=np.float64)
    table = np.full((len(raw), count), np.nan)
    for row, outcome in zip(table, raw, strict=True):
        numbers = [as_float(leaf) for leaf in flatten(outcome)[1][:count]]
        row[: len(numbers)] = [math.nan if number is None else number for number in numbers]
    return table


def flatten(outcome: Any) -> tuple[str, list[Any]]:
    """Return an outcome's structure, and the numbers and labels in it."""
    shape: list[str] = []
    leaves: list[Any] = []
    _flatten(outcome, shape, leaves)
    return "".join(shape), leaves


def _flatten(outcome: Any, shape: list[str], leaves: list[Any]) -> None:
    if isinstance(outcome, Release):
        outcome = outcome.value
    if isinstance(outcome, np.ndarray):
        outcome = outcome.tolist()
    if is_dataclass(outcome) and not isinstance(outcome, type):
        outcome = tuple(getattr(outcome, part.name) for part in fields(outcome))
    if isinstance(outcome, Mapping):
        outcome = sorted(outcome.items(), key=repr)
    elif isinstance(outcome, AbstractSet):
        outcome = sorted(outcome, key=repr)
    if isinstance(outcome, tuple | list):
        shape.append("(")
        for entry in outcome:
            _flatten(entry, shape, leaves)
        shape.append(")")
    else:
        shape.append(".")
        leaves.append(outcome.item() if isinstance(outcome, np.generic) else outcome)


def as_float(leaf: Any) -> float | None:
    """Return a number as a float, and None for what is no number."""
    if not isinstance(leaf, Real):
        return None
    try:
        return float(leaf)
    except OverflowError:
        return math.inf if leaf == abs(leaf) else -math.inf
