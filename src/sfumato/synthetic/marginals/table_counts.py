"""Where counts by cell come from: rows in memory, or whatever else can count them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.domain.attributes import Codes
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.contingency import contingency_table
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["LARGEST_COUNT", "CountedRows", "TableCounts", "table_counts"]

LARGEST_COUNT: Final = 1 << 38
"""What counts are taken within, so that products of them with sizes of tables stay within int64."""


@runtime_checkable
class TableCounts(Protocol):
    """Private counts of a table by cells of its domain."""

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """Return how many rows are in each cell of some columns.

        Parameters
        ----------
        clique : tuple of int
            The columns by number, rising.

        Returns
        -------
        int64 array, an axis for each column
        """
        ...


@final
@dataclass(frozen=True, slots=True)
class CountedRows:
    """Rows in memory, counted when asked.

    Parameters
    ----------
    codes : int64 array of shape (rows, columns)
        The cells of the rows that are counted.
    sizes : sequence of int
        Cells of each column.
    """

    codes: Codes
    sizes: Sequence[int]

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """Return how many rows are in each cell of some columns, at most 2**38.

        Parameters
        ----------
        clique : tuple of int

        Returns
        -------
        int64 array, an axis for each column
        """
        return np.minimum(contingency_table(self.codes, self.sizes, clique), LARGEST_COUNT)


def table_counts(domain: TableDomain, value: Any) -> TableCounts:
    """Return what counts a private table by the cells of a domain.

    Parameters
    ----------
    domain : TableDomain
    value : frame or TableCounts
        Private.

    Returns
    -------
    TableCounts
    """
    # By its class: a pandas frame shows a column "counts" as an attribute.
    if callable(getattr(type(value), "counts", None)):
        return cast("TableCounts", value)
    return CountedRows(domain.encode(value), domain.sizes)
