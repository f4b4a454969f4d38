"""The reports of all other agents: every profile, or every multiset of reports, in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

__all__ = ["all_profiles", "count_tables", "multisets", "number_of_multisets"]

_Ints = NDArray[np.int64]


def number_of_multisets(size: int, kinds: int) -> int:
    """Return how many multisets of a size there are."""
    return comb(size + kinds - 1, size)


def all_profiles(size: int, kinds: int, block: int) -> Iterator[_Ints]:
    """Yield all reports of some agents in turn, in blocks of shape (at most block, size)."""
    total = kinds**size
    powers = kinds ** np.arange(size, dtype=np.int64)
    for start in range(0, total, block):
        yield np.arange(start, min(total, start + block))[:, None] // powers % kinds


def multisets(size: int, kinds: int, block: int) -> Iterator[_Ints]:
    """Yield all multisets of reports, each as reports in order, in blocks of shape (at most block, size)."""
    rows: list[tuple[int, ...]] = []
    for row in combinations_with_replacement(range(kinds), size):
        rows.append(row)
        if len(rows) == block:
            yield np.array(rows, np.int64).reshape(len(rows), size)
            rows = []
    if rows:
        yield np.array(rows, np.int64).reshape(len(rows), size)


def count_tables(size: int, kinds: int) -> list[_Ints]:
    """Return for each sum from 0 to size all counts of some kinds that have it, as (m, kinds)."""
    if not kinds:
        return [np.zeros((int(total == 0), 0), np.int64) for total in range(size + 1)]
    tables = []
    for total in range(size + 1):
        # Bars between stars: the gaps of every choice of where the bars are.
        bars = np.array(list(combinations(range(total + kinds - 1), kinds - 1)), np.int64)
        ends = np.full((len(bars), 1), total + kinds - 1)
        edges = np.concatenate([np.full((len(bars), 1), -1), bars, ends], axis=1)
        tables.append(np.diff(edges, axis=1) - 1)
    return tables
