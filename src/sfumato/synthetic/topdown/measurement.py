"""Exact counts and exact discrete Gaussian noise, for the places of one level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.randomness.source import RandomSource
from sfumato.synthetic.topdown.cell_query import CellQuery
from sfumato.synthetic.topdown.hierarchy import Nodes
from sfumato.synthetic.topdown.noise_plan import LevelNoise
from sfumato.synthetic.topdown.unit_counts import LevelCounts

__all__ = ["NoisyCounts", "measure", "measure_some"]

NoisyCounts: TypeAlias = Mapping[int, NDArray[Any]]
"""Noisy counts of shape (places, groups) by the number of the query."""

_CHUNK: Final = 1 << 20
_NARROW: Final = 1 << 24
_LARGEST: Final = 1 << 30


def measure(
    counts: LevelCounts, noise: Sequence[LevelNoise], queries: Sequence[CellQuery], source: RandomSource
) -> NoisyCounts:
    """Return all noisy counts of a level.

    Parameters
    ----------
    counts : LevelCounts
        Private.
    noise : sequence of LevelNoise
        Of this level.
    queries : sequence of CellQuery
        All of them.
    source : RandomSource

    Returns
    -------
    mapping of int to array
        Of int32 where the noise is far smaller: then a count is taken within 2**30, which brings neighbors no
        farther apart.
    """
    places, found = len(counts.starts) - 1, {}
    for each in noise:
        query, distribution = queries[each.query], each.distribution
        narrow = each.sigma < _NARROW and places > 1 << 10
        out = np.empty((places, query.groups), np.int32 if narrow else np.int64)
        step = max(1, _CHUNK // query.groups)
        for first in range(0, places, step):
            last = min(first + step, places)
            exact = counts.grouped(first, last, query.group_of, query.groups)
            if narrow:
                np.minimum(exact, _LARGEST, out=exact)
            exact += distribution.sample(exact.shape, source)
            out[first:last] = exact
        found[each.query] = out
    return found


def measure_some(
    counts: LevelCounts,
    noise: Sequence[LevelNoise],
    queries: Sequence[CellQuery],
    source: RandomSource,
    *,
    children: tuple[int, int],
    wanted: Iterator[tuple[int, NDArray[np.int64]]],
) -> NoisyCounts:
    """Return noisy counts of some places, drawn for those groups only that are not known to be 0.

    Parameters
    ----------
    counts, noise, queries, source
        As for `measure`.
    children : tuple of int
        The first place and the one after the last.
    wanted : iterator of (int, int64 array)
        For each parent how many children it has, and the cells that it has people in by its released counts.

    Returns
    -------
    mapping of int to array
        0 where nothing was drawn.

    Notes
    -----
    Guarantee: that of `measure`. Which noise is drawn depends on released counts alone, and what is left out
    is what a reader of all noisy counts would leave out.
    """
    first, last = children
    families = [(number, cells) for number, cells in wanted]
    found = {}
    for each in noise:
        query, distribution = queries[each.query], each.distribution
        chosen = np.zeros((last - first, query.groups), np.bool_)
        row = 0
        for number, cells in families:
            chosen[row : row + number, query.group_of[cells]] = True
            row += number
        exact = counts.grouped(first, last, query.group_of, query.groups)
        noisy = np.zeros_like(exact)
        noisy[chosen] = exact[chosen] + distribution.sample((int(np.count_nonzero(chosen)),), source)
        found[each.query] = noisy
    return found


def child_ranges(starts: Nodes, cells: int, most: int) -> list[tuple[int, int]]:
    """Return ranges of parents whose children have at most so many counts together, or are of one parent."""
    sizes = np.diff(starts) * cells
    ranges, first, total = [], 0, 0
    for place, size in enumerate(sizes.tolist()):
        if total and total + size > most:
            ranges.append((first, place))
            first, total = place, 0
        total += size
    return [*ranges, (first, len(sizes))]
