"""Checks, orders and encodes keys whose domain is unknown."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.grid import whole

__all__ = ["descending_order", "encoded_key", "positive_counts"]

_LIMIT = 1 << 61
_LARGE = 1 << 4096


def positive_counts(value: Any) -> tuple[list[Hashable], NDArray[np.int64]]:
    """Return the keys with a positive count, and their counts; others are as good as absent.

    Parameters
    ----------
    value : mapping of keys to ints
        Private.

    Raises
    ------
    ParameterError
        If it is no mapping, or a count no int; never for a key or a count.
    """
    if not isinstance(value, Mapping):
        remedy = "pass a dict or a collections.Counter"
        _check.refuse_state(
            "value", "be a mapping of keys to counts", f"it is a value of type {type(value).__name__}", remedy
        )
    counts = np.array([whole(count, name="counts") for count in value.values()], dtype=np.int64)
    present = counts > 0
    keys = [key for key, there in zip(value, present.tolist(), strict=True) if there]
    return keys, np.minimum(counts[present], _LIMIT)


def descending_order(counts: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the indices of counts from the largest to the smallest, equal ones in random order."""
    return np.lexsort((words, -counts))


def encoded_key(key: object) -> bytes:
    """Return a key as bytes, of which no two keys of different kind or value have the same.

    Raises
    ------
    ParameterError
        If it is no text, no bytes and no whole number; never for a value.
    """
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, int | np.integer):
        # Thousands of decimal digits are an error; hexadecimal ones are not.
        return b"i%d" % int(key) if abs(int(key)) < _LARGE else b"h%x" % int(key)
    return _check.refuse_state(
        "keys", "be texts, bytes or whole numbers", f"one is of type {type(key).__name__}", "convert them"
    )
