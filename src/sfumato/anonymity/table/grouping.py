"""Rows that agree in several columns, by one combined integer key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["EquivalenceClasses", "combined_key", "equivalence_classes"]

_DENSE = 1 << 22
"""Keys below this are counted in a table; larger ones are sorted."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class EquivalenceClasses:
    """The classes of rows that agree in some columns.

    Parameters
    ----------
    of_row : int64 array
        The class of each row, from 0.
    sizes : int64 array
        How many rows each class has; at least one.

    Examples
    --------
    >>> import numpy as np
    >>> equivalence_classes([np.array([1, 0, 1], np.int32)], [2]).sizes
    array([1, 2])
    """

    of_row: NDArray[np.int64]
    sizes: NDArray[np.int64]


def combined_key(codes: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """Return one integer for each row, the same where all codes agree, and a bound above all of them.

    Parameters
    ----------
    codes : sequence of int arrays
        A code for each row in each column.
    sizes : sequence of int
        How many codes each column may have.
    """
    key = np.zeros(len(codes[0]), np.int64)
    bound = 1
    for column, size in zip(codes, sizes, strict=True):
        if bound * size > 1 << 62:
            key, bound = _renumbered(key, bound)
        key = key * size + column
        bound *= size
    return key, bound


def equivalence_classes(codes: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> EquivalenceClasses:
    """Return the classes of rows whose codes agree in all columns, ordered by these codes.

    Parameters
    ----------
    codes : sequence of int arrays
        A code for each row in each column.
    sizes : sequence of int
        How many codes each column may have.
    """
    key, bound = combined_key(codes, sizes)
    of_row, count = _renumbered(key, bound)
    return EquivalenceClasses(of_row, np.bincount(of_row, minlength=count))


def _renumbered(key: NDArray[np.int64], bound: int) -> tuple[NDArray[np.int64], int]:
    """Return the keys numbered without gaps, in their order, and how many there are."""
    if bound <= max(_DENSE, 4 * len(key)):
        present = np.zeros(bound, np.bool_)
        present[key] = True
        distinct = np.flatnonzero(present)
        numbers = np.empty(bound, np.int64)
        numbers[distinct] = np.arange(len(distinct))
        return numbers[key], len(distinct)
    distinct, of_row = np.unique(key, return_inverse=True)
    return of_row.astype(np.int64), len(distinct)
