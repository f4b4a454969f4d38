r"""Intervals of weighted sums of released cells, and of ratios of two, from the cells' own noise.

The cells are independent. A row's noise is that of each distribution in it, as many times as there are cells
with one pair of weights; a sum has the interval of its noise, a ratio Fieller's (`ratio_interval`). Rows with
the same weights are tested together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.queries.outer.noise_forms import ColumnNoise
from sfumato.queries.outer.noisy_cells import CellMeasure, measures_and_rows
from sfumato.queries.release.ratio_intervals import NoiseTerm, ratio_interval, sum_interval
from sfumato.queries.release.tails.noise_tails import combined_tail
from sfumato.queries.release.tails.repeated_noise import repeated_tail

__all__ = ["cell_ends"]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
_Kind: TypeAlias = tuple[SymmetricDistribution, float, float]
_Kinds: TypeAlias = tuple[tuple[_Kind, int], ...]

_SPARE: Final = 1 / 50
"""The part of an error probability for groups that are shown though that is unlikely."""
_NEAR: Final = 1 / 2
"""The part of it for groups near the threshold, where there are any."""


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of all rows, each once in a row, with their weights above and below."""

    row: Integers
    cell: Integers
    above: Floats
    below: Floats


def cell_ends(
    noise: ColumnNoise, name: str, table: pa.Table, measures: Sequence[CellMeasure], level: float
) -> tuple[pa.Array, pa.Array]:
    r"""Return the ends of intervals of a column; NULL where its value is, infinite where it has none.

    Parameters
    ----------
    noise : ColumnNoise
        What is in the column.
    name : str
    table : pyarrow.Table
        With the columns that it names.
    measures : sequence of CellMeasure
        Those that the numbers of cells count.
    level : float

    Notes
    -----
    Guarantee: each interval holds the value at the bounded answers with probability at least ``level``, given
    which groups are shown. Without a threshold this is the test of the noise. With one, let N be the groups
    of a row whose counts are so near the threshold that they are hidden with a probability above s (see
    `CellMeasure.far`), of k in all, and s k a fiftieth of the error probability. The others' noise, given
    that they are shown, misses at most 1 / (1 - s k) times as often as without this condition. That of N is
    within their own intervals, at 1/k of half the error probability each; these are added to the noise of all
    cells, which is wider than that of the others alone (a sum of symmetric unimodal noises on one lattice;
    Birnbaum, "On random variables with comparable peakedness", Ann. Math. Stat. 19, 1948; where weights make
    the lattices differ, up to one step of the coarser one). Where no group seems to be in N, the whole error
    probability is for the noise.
    """
    values = [table[each].to_numpy().astype(np.float64) for each in (noise.ratio or (name,))]
    cells = _summed(noise, table)
    miss, above, below = _near(cells, measures, table.num_rows, 1 - level)
    low, high = np.full(table.num_rows, np.nan), np.full(table.num_rows, np.nan)
    for kinds, rows in _signatures(cells, measures, table.num_rows).items():
        here = np.array(rows)
        terms = _terms(kinds)
        if noise.ratio is None:
            if terms:
                found = sum_interval(values[0][here], terms, miss[here])
                low[here], high[here] = found[0] - above[0][here], found[1] + above[1][here]
            continue
        moved = [
            (values[0][here] + one[here], values[1][here] + other[here])
            for one in (-above[0], above[1])
            for other in (-below[0], below[1])
        ]
        if not terms:
            continue
        moved = moved if np.any([each[here] for each in (*above, *below)]) else moved[:1]
        known = [ratio_interval(one, other, terms, miss[here]) for one, other in moved]
        signs = np.array([np.sign(other) for _, other in moved])
        crossing = (signs.min(axis=0) != signs.max(axis=0)) | (signs.min(axis=0) == 0)
        low[here] = np.where(crossing, -np.inf, np.min([each[0] for each in known], axis=0))
        high[here] = np.where(crossing, np.inf, np.max([each[1] for each in known], axis=0))
    missing = np.any([np.isnan(each) for each in (*values, low)], axis=0)
    kind = table.schema.field(name).type
    if pa.types.is_integer(kind):  # what lies strictly between the ends is not rejected
        low, high = np.floor(low) + 1, np.ceil(high) - 1
        missing |= ~(np.abs(low) < 2.0**63) | ~(np.abs(high) < 2.0**63)
        ends = (np.where(missing, 0.0, end).astype(np.int64) for end in (low, high))
        one, other = (pa.array(end, kind, mask=missing) for end in ends)
        return one, other
    return pa.array(low, kind, mask=missing), pa.array(high, kind, mask=missing)


def _summed(noise: ColumnNoise, table: pa.Table) -> _Cells:
    """Return the cells of all rows, whose weights are added up where one is in several lists."""
    parts = []
    for (above, below), name in zip(noise.weights, noise.cells, strict=True):
        lists = table[name].combine_chunks()
        lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        row = np.repeat(np.arange(len(lists)), lengths)
        flat = lists.flatten()
        known = flat.is_valid().to_numpy(zero_copy_only=False)
        cell = flat.fill_null(0).to_numpy(zero_copy_only=False)[known]
        parts.append((row[known], cell, np.full(cell.size, float(above)), np.full(cell.size, float(below))))
    row, cell = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
    order = np.lexsort((cell, row))
    row, cell = row[order], cell[order]
    above_: Floats = np.concatenate([part[2] for part in parts])[order]
    below_: Floats = np.concatenate([part[3] for part in parts])[order]
    first = np.flatnonzero(np.diff(row, prepend=-1).astype(bool) | np.diff(cell, prepend=-1).astype(bool))
    if not first.size:
        return _Cells(row, cell, above_, below_)
    above_, below_ = np.add.reduceat(above_, first), np.add.reduceat(below_, first)
    some = (above_ != 0) | (below_ != 0)
    return _Cells(row[first][some], cell[first][some], above_[some], below_[some])


def _near(
    cells: _Cells, measures: Sequence[CellMeasure], many: int, miss: float
) -> tuple[Floats, tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return what tests of the noise may miss, and how far groups near a threshold move either sum."""
    whole = np.full(many, miss)
    zero = (np.zeros(many), np.zeros(many)), (np.zeros(many), np.zeros(many))
    measure, row = measures_and_rows(cells.cell)
    shown = np.array([each.thresholded for each in measures], dtype=bool)[measure]
    if not shown.any():
        return whole, *zero
    most = int(np.bincount(cells.row[shown]).max())
    (low_above, high_above), (low_below, high_below) = zero
    near = np.zeros(many, dtype=bool)
    for place in np.unique(measure[shown]):
        here = shown & (measure == place)
        which, back = np.unique(row[here], return_inverse=True)
        far = measures[place].far(which, miss * _SPARE / most, miss * _NEAR / most)
        larger, smaller = (each[back] for each in far)
        near[cells.row[here][(larger > 0) | (smaller > 0)]] = True
        for weights, low, high in (
            (cells.above[here], low_above, high_above),
            (cells.below[here], low_below, high_below),
        ):
            np.add.at(low, cells.row[here], np.where(weights > 0, weights * larger, -weights * smaller))
            np.add.at(high, cells.row[here], np.where(weights > 0, weights * smaller, -weights * larger))
    counted = np.zeros(many, dtype=bool)
    counted[cells.row[shown]] = True
    left = np.where(near, 1 - _NEAR - _SPARE, 1 - _SPARE) * (1 - _SPARE * miss)
    return np.where(counted, miss * left, whole), (low_above, high_above), (low_below, high_below)


def _signatures(cells: _Cells, measures: Sequence[CellMeasure], many: int) -> Mapping[_Kinds, list[int]]:
    """Return the rows by the distributions in them, with their weights, each so many times."""
    measure, _ = measures_and_rows(cells.cell)
    found: list[dict[_Kind, int]] = [{} for _ in range(many)]
    steps = [each.step for each in measures]
    noises = [each.measure.noise for each in measures]
    columns = (each.tolist() for each in (cells.row, measure, cells.above, cells.below))
    for row, place, above, below in zip(*columns, strict=True):
        kind = noises[place], above * steps[place], below * steps[place]
        found[row][kind] = found[row].get(kind, 0) + 1
    rows: dict[_Kinds, list[int]] = {}
    for row, kinds in enumerate(found):
        rows.setdefault(tuple(kinds.items()), []).append(row)
    return rows


def _terms(kinds: _Kinds) -> list[NoiseTerm]:
    """Return the noises of a row, those whose weights are in proportion as one."""
    together: dict[tuple[float, float], list[tuple[SymmetricDistribution, float, int]]] = {}
    for (noise, above, below), times in kinds:
        size = max(abs(above), abs(below)) * (1 if above > 0 or (above == 0 and below > 0) else -1)
        direction = round(above / size, 12), round(below / size, 12)
        together.setdefault(direction, []).append((noise, abs(size), times))
    made = []
    for (above, below), each in together.items():
        same: dict[tuple[SymmetricDistribution, float], int] = {}
        for noise, size, times in each:  # the noise is symmetric: its sign does not matter
            same[noise, size] = same.get((noise, size), 0) + times
        tails = [repeated_tail(noise, times) for (noise, _), times in same.items()]
        sizes = [size for _, size in same]
        if len(tails) == 1:
            made.append(NoiseTerm(tails[0], above * sizes[0], below * sizes[0]))
        else:
            made.append(NoiseTerm(combined_tail(tails, sizes), above, below))
    return made
