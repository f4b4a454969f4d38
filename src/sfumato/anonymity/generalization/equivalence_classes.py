"""Equivalence classes of a table at a node of the lattice, and how those of a coarser node follow from them.

A node says the level of generalisation of each quasi-identifier. Rows whose generalised values agree are one
equivalence class. The classes of a coarser node are unions of those of a finer one, so that they are found
from one row of each class (roll-up; Kohlmayer, Prasser, Eckert, Kemper and Kuhn, "Flash", PASSAT 2012,
section III).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CodedTable", "Partition", "group"]

Integers = NDArray[np.int64]

_DENSE = 1 << 22
_LARGEST = 1 << 62


def group(columns: Sequence[NDArray[Any]], sizes: Sequence[int]) -> tuple[Integers, int]:
    """Give numbers to the distinct combinations of columns of codes.

    Parameters
    ----------
    columns : sequence of integer arrays of one length
        Codes, each at least 0 and below its size.
    sizes : sequence of int
        How many codes each column may have.

    Returns
    -------
    tuple
        The number of each row's combination, and how many combinations there are.
    """
    key = np.asarray(columns[0]).astype(np.int64)
    bound = int(sizes[0])
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        if bound * size > _LARGEST:
            key, bound = _renumber(key, bound)
        key *= size
        key += column
        bound *= size
    return _renumber(key, bound)


def _renumber(key: Integers, bound: int) -> tuple[Integers, int]:
    """Give numbers to the values of ``key`` from 0 in their order."""
    if bound <= min(_DENSE, 8 * len(key) + 64):
        seen = np.zeros(bound, dtype=np.bool_)
        seen[key] = True
        numbers = np.cumsum(seen) - 1
        return numbers[key], int(numbers[-1]) + 1
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.empty(len(key), dtype=np.bool_)
    starts[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    numbers = np.empty(len(key), dtype=np.int64)
    numbers[order] = np.cumsum(starts) - 1
    return numbers, int(np.count_nonzero(starts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The equivalence classes at one node.

    ``first`` is one distinct row of each class and ``counts`` how many rows it has. A cell is a class
    together with one combination of the sensitive columns: ``cell_class``, ``cell_first`` (a distinct row of
    it) and ``cell_counts``. Without sensitive columns, cells are classes.
    """

    first: Integers
    counts: Integers
    cell_class: Integers
    cell_first: Integers
    cell_counts: Integers

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        arrays = (self.first, self.counts, self.cell_class, self.cell_first, self.cell_counts)
        return sum(array.nbytes for array in arrays)


class CodedTable:
    """A table of codes with the maps of each level: what the search works on.

    Parameters
    ----------
    codes : sequence of integer arrays
        One array of codes for each quasi-identifier.
    levels : sequence of sequences of integer arrays
        ``levels[column][level][code]`` is the code of the generalised value; level 0 is the value itself.
    sensitive : mapping of str to integer array, optional
        Codes of the sensitive columns that a privacy model reads.
    """

    __slots__ = (
        "column_counts",
        "distinct_counts",
        "generalized",
        "levels",
        "of_row",
        "rows",
        "sensitive",
        "sizes",
    )

    def __init__(
        self,
        codes: Sequence[NDArray[Any]],
        levels: Sequence[Sequence[NDArray[Any]]],
        sensitive: dict[str, NDArray[Any]] | None = None,
    ) -> None:
        self.levels = tuple(tuple(np.asarray(of, dtype=np.int64) for of in column) for column in levels)
        self.sizes = tuple(
            tuple(int(of.max()) + 1 if len(of) else 1 for of in column) for column in self.levels
        )
        self.rows = len(codes[0])
        hidden = sensitive or {}
        columns = [*codes, *hidden.values()]
        sizes = [len(column[0]) for column in self.levels]
        sizes += [int(values.max()) + 1 if len(values) else 1 for values in hidden.values()]
        self.of_row, count = group(columns, sizes) if self.rows else (np.zeros(0, dtype=np.int64), 0)
        first = np.empty(count, dtype=np.int64)
        first[self.of_row[::-1]] = np.arange(self.rows - 1, -1, -1)
        self.distinct_counts = np.bincount(self.of_row, minlength=count)
        self.column_counts = tuple(
            np.bincount(values, minlength=len(maps[0]))
            for values, maps in zip(codes, self.levels, strict=True)
        )
        self.generalized = tuple(
            tuple(of[np.asarray(values)[first]] for of in maps)
            for values, maps in zip(codes, self.levels, strict=True)
        )
        self.sensitive = {name: np.asarray(values, dtype=np.int64)[first] for name, values in hidden.items()}

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each quasi-identifier has."""
        return tuple(len(column) for column in self.levels)

    def values(self, node: Sequence[int], column: int, distinct: Integers) -> Integers:
        """Give the generalised codes of a column at a node, for some distinct rows."""
        values: Integers = self.generalized[column][node[column]][distinct]
        return values

    def classes_of_rows(self, node: Sequence[int]) -> Integers:
        """Find the number of the class of each row at ``node``, as `partition` numbers them."""
        columns = [self.generalized[column][level] for column, level in enumerate(node)]
        number, _ = group(columns, [self.sizes[column][level] for column, level in enumerate(node)])
        return number[self.of_row]

    def partition(self, node: Sequence[int], finer: Partition | None = None) -> Partition:
        """Find the equivalence classes at ``node``, from those of a finer node where one is given."""
        if finer is None:
            everything = np.arange(len(self.distinct_counts), dtype=np.int64)
            finer = Partition(
                first=everything,
                counts=self.distinct_counts,
                cell_class=everything,
                cell_first=everything,
                cell_counts=self.distinct_counts,
            )
        number, count = group(
            [self.values(node, column, finer.first) for column in range(len(node))],
            [self.sizes[column][level] for column, level in enumerate(node)],
        )
        first = np.empty(count, dtype=np.int64)
        first[number] = finer.first
        counts = _sum(number, finer.counts, count)
        if not self.sensitive:
            return Partition(
                first=first, counts=counts, cell_class=number[:0], cell_first=first, cell_counts=counts
            )
        cell_class = number[finer.cell_class]
        cell, cells = group(
            [cell_class, *(values[finer.cell_first] for values in self.sensitive.values())],
            [count, *(int(values.max()) + 1 for values in self.sensitive.values())],
        )
        cell_first = np.empty(cells, dtype=np.int64)
        cell_first[cell] = finer.cell_first
        of_class = np.empty(cells, dtype=np.int64)
        of_class[cell] = cell_class
        return Partition(
            first=first,
            counts=counts,
            cell_class=of_class,
            cell_first=cell_first,
            cell_counts=_sum(cell, finer.cell_counts, cells),
        )


def _sum(number: Integers, weights: Integers, count: int) -> Integers:
    """Sum integer weights by number: exact, as every partial sum is an integer below 2^53."""
    return np.bincount(number, weights=weights, minlength=count).astype(np.int64)
