"""Neighboring columns, keys and tables that try what works on records."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.pairs import InputPair
from sfumato.privacy.neighboring import Neighboring

__all__ = ["column_pairs", "key_pairs", "line_pairs", "neighbors"]


def column_pairs(bounds: tuple[Any, Any], neighboring: Neighboring) -> list[InputPair]:
    """Make neighboring columns of records at the ends of their bounds.

    Parameters
    ----------
    bounds : tuple of two numbers
        Records are whole where both are ints.
    neighboring : Neighboring

    Returns
    -------
    list of InputPair
        One of few records, which any one moves far; one of equal halves, of which one record decides what is
        in the middle; one of records between the bounds, on whose sides answers differ in rank.
    """
    kind = np.int64 if all(isinstance(bound, int) for bound in bounds) else np.float64
    lower, upper = np.array(bounds).astype(kind)
    middle = np.array(lower / 2 + upper / 2).astype(kind)
    few, halves = np.array([lower, upper]), np.repeat(np.array([lower, upper]), [8, 7])
    between = np.repeat(np.array([lower, middle]), [3, 5])
    return [neighbors(shared, upper, lower, neighboring) for shared in (few, halves, between)]


def key_pairs(keys: int) -> list[InputPair]:
    """Make counts of keys: a lone unit brings that many new ones, or leaves that many known ones."""
    known = dict.fromkeys(range(keys), 4)
    more = known | dict.fromkeys(range(keys, 2 * keys), 1)
    return [
        InputPair(first=known, second=more),
        InputPair(first=known, second=dict.fromkeys(range(keys), 3)),
    ]


def line_pairs(slopes: tuple[float, float], neighboring: Neighboring) -> list[InputPair]:
    """Make points on a line, of which one leaves it."""
    steep, flat = (np.array([1.0, float(slope)]) for slope in slopes)
    return [neighbors(np.zeros((1, 2)), flat, steep, neighboring)]


def neighbors(shared: NDArray[Any], extra: Any, other: Any, neighboring: Neighboring) -> InputPair:
    """Return some records with one more; beside them without it, or with another or a zero in its place."""
    without = np.zeros_like(np.asarray(extra)) if neighboring is Neighboring.ZERO_OUT else other
    second = shared if neighboring is Neighboring.ADD_REMOVE else _with(shared, without)
    return InputPair(first=_with(shared, extra), second=second)


def _with(shared: NDArray[Any], record: Any) -> NDArray[Any]:
    return np.concatenate([shared, np.asarray(record, dtype=shared.dtype)[None]])
