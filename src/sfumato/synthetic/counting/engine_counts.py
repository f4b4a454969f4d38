"""Tables counted where the rows lie: what an engine returns, as counts by cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.counting.counting_job import CountingJob, counting_job
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.table_counts import LARGEST_COUNT
from sfumato.synthetic.marginals.workload import Clique

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.queries.engines.engine import Engine
    from sfumato.queries.plan.nodes import Relation

__all__ = ["CountedCells", "EngineCounts", "count_tables", "read_counts"]

_SECRET_BYTES: Final = 32


@final
@dataclass(frozen=True, slots=True)
class CountedCells:
    """The cells of a table that hold rows: raw data.

    Parameters
    ----------
    cells : int64 array of shape (m, columns)
        By column, each different from the others.
    counts : int64 array of shape (m,)
    """

    cells: NDArray[np.int64]
    counts: NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class EngineCounts:
    """Counts of the tables that an engine counted, and of any columns of one of them; a `TableCounts`.

    Parameters
    ----------
    sizes : sequence of int
        Cells of each column.
    tables : mapping of tuple of int to CountedCells
        By columns; private.

    Examples
    --------
    >>> cells = CountedCells(np.array([[0, 1], [1, 1]]), np.array([3, 4]))
    >>> counts = EngineCounts((2, 2), {(0, 1): cells})
    >>> counts.counts((0, 1)).tolist(), counts.counts((1,)).tolist()
    ([[0, 3], [0, 4]], [0, 7])
    """

    sizes: Sequence[int]
    tables: Mapping[Clique, CountedCells] = field(repr=False)

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """Return how many rows are in each cell of some columns, at most 2**38.

        Parameters
        ----------
        clique : tuple of int
            All in one of the tables that were counted.

        Returns
        -------
        int64 array, an axis for each column
        """
        held, shape = self._cells_of(clique), tuple(self.sizes[place] for place in clique)
        made = np.zeros(math.prod(shape), np.int64)
        if clique:
            flat = np.ravel_multi_index(tuple(held.cells.T), shape)
            np.add.at(made, flat, held.counts)
        else:
            made[0] = held.counts.sum()
        return np.minimum(made.reshape(shape), LARGEST_COUNT)

    def cells(self, clique: Clique) -> CountedCells:
        """Return the cells of some columns that hold rows: for tables of far more cells than rows.

        Parameters
        ----------
        clique : tuple of int
            All in one of the tables that were counted.

        Returns
        -------
        CountedCells
        """
        held = self._cells_of(clique)
        cells, place = np.unique(held.cells, axis=0, return_inverse=True)
        counts = np.zeros(len(cells), np.int64)
        np.add.at(counts, place.reshape(-1), held.counts)
        return CountedCells(cells, np.minimum(counts, LARGEST_COUNT))

    def _cells_of(self, clique: Clique) -> CountedCells:
        table = next((each for each in self.tables if set(clique) <= set(each)), None)
        if table is None:
            _check.refuse("clique", "be columns of a table that was counted", clique, "count that table too")
        held = self.tables[table]
        return CountedCells(held.cells[:, [table.index(place) for place in clique]], held.counts)


def count_tables(
    engine: Engine,
    relation: Relation,
    domain: TableDomain,
    cliques: Sequence[Clique],
    *,
    random_bytes: Callable[[int], bytes],
    max_rows_contributed: int = 1,
    together: bool | None = None,
) -> EngineCounts:
    """Count tables by their cells where the rows lie.

    Parameters
    ----------
    engine : Engine
    relation : Relation
        Private rows.
    domain : TableDomain
    cliques : sequence of tuple of int
        The tables, by their columns.
    random_bytes : callable
        Draws the secret by which rows of a unit are chosen.
    max_rows_contributed : int
        The most rows of a unit that are counted.
    together : bool, optional
        As for `counting_job`.

    Returns
    -------
    EngineCounts
        Private: nothing of it may be shown.

    Notes
    -----
    Guarantee: that of `counting_job`.
    """
    counting = counting_job(
        domain, relation, cliques, max_rows_contributed=max_rows_contributed, together=together
    )
    return read_counts(domain, counting, engine.aggregate(counting.job, random_bytes(_SECRET_BYTES)))


def read_counts(domain: TableDomain, counting: CountingJob, answer: pa.Table) -> EngineCounts:
    """Return the counts of an engine's answer.

    Parameters
    ----------
    domain : TableDomain
    counting : CountingJob
    answer : pyarrow.Table
        What the engine returned for its job; private.

    Returns
    -------
    EngineCounts
    """
    sizes = domain.sizes
    if counting.together:
        numbers = [answer[f"k{i}"].to_numpy() for i in range(len(counting.tables))]
        pairs = zip(counting.tables, numbers, strict=True)
        parts = [_unraveled(number, table, sizes) for table, number in pairs]
        table = tuple(place for part in counting.tables for place in part)
        cells = np.concatenate(parts, axis=1) if parts else np.zeros((answer.num_rows, 0), np.int64)
        return EngineCounts(sizes, {table: CountedCells(cells, answer["m0"].to_numpy())})
    tables = {}
    for index, table in enumerate(counting.tables):
        leaves = answer[f"m{index}"].combine_chunks().flatten()
        number, many = (leaves.field(name).to_numpy() for name in ("leaf", "n"))
        tables[table] = CountedCells(_unraveled(number, table, sizes), many)
    return EngineCounts(sizes, tables)


def _unraveled(numbers: NDArray[np.int64], table: Clique, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return the cell by column of each number."""
    made = np.zeros((len(numbers), len(table)), np.int64)
    rest = numbers
    for axis in range(len(table) - 1, -1, -1):
        rest, made[:, axis] = np.divmod(rest, sizes[table[axis]])
    return made
