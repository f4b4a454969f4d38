"""Which teacher sees which unit: a keyed hash of the unit decides, never the order of the data."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["column", "parts_of"]


def parts_of(units: Any, count: int, rng: Rng = None) -> NDArray[np.int64]:
    """Return the part of each row: rows of one unit are in one part, whatever the other rows.

    Parameters
    ----------
    units : array of shape (n,)
        What names the unit of each row: integers, strings or bytes. Row numbers are no names: where a row is
        removed, those behind it move up.
    count : int
        How many parts, at least 1.
    rng : None, int, numpy Generator or RandomSource
        Draws the key of the hash.

    Returns
    -------
    int64 array of shape (n,)
        From 0 to ``count - 1``.

    Notes
    -----
    Given the key, a unit's part depends on its name alone: adding or removing a unit changes one part, and
    giving a row to another unit changes at most two.

    Examples
    --------
    >>> parts = parts_of(np.array([7, 8, 7, 9]), 100, rng=1)
    >>> bool(parts[0] == parts[2]), bool(parts[0] == parts[1])
    (True, False)
    """
    count = _check.integer("count", count, minimum=1)
    array = column(units)
    if array.ndim != 1 or array.dtype.kind not in "iuUSO":
        remedy = "convert them to strings"
        _check.refuse_type("units", "be a one-dimensional array of integers, strings or bytes", array, remedy)
    names, indices = _distinct(array)
    key = random_source(rng).bytes(32)
    parts = [
        int.from_bytes(hashlib.blake2b(name, key=key, digest_size=16).digest()) % count for name in names
    ]
    return np.array(parts, np.int64)[indices]


def column(values: Any) -> NDArray[Any]:
    """Return an array of one entry a row; of a list each entry as it is.

    As an array, a list of numbers with one text among them is of texts: one row would change all others.
    """
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    array = np.empty(len(values), object)
    for index, value in enumerate(values):
        array[index] = value
    return array


def _distinct(array: NDArray[Any]) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the distinct names as bytes, and the index of each row's name among them."""
    if array.dtype.kind != "O":
        found, indices = np.unique(array, return_inverse=True)
        return [_bytes(name) for name in found.tolist()], np.asarray(indices, np.int64)
    named = [_bytes(name) for name in array.tolist()]
    order = {name: index for index, name in enumerate(dict.fromkeys(named))}
    return list(order), np.array([order[name] for name in named], np.int64)


def _bytes(name: object) -> bytes:
    """Return what is hashed: different for the integer 1 and the string "1"."""
    if isinstance(name, bytes):
        return b"b" + name
    if isinstance(name, str):
        return b"s" + name.encode("utf-8", "surrogatepass")
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return b"i%d" % int(name)
    return _check.refuse_type("units", "be integers, strings or bytes", name, "convert them to strings")
