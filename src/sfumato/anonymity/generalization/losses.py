"""How much of a table is lost at a node of the lattice, and lower bounds of it that let a search stop early.

A loss that counts suppressed rows has a lower bound that leaves them out; that bound grows along
generalisation, so that a node whose bound is at least the best loss found ends the search above it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.generalization.equivalence_classes import CodedTable, Partition

__all__ = [
    "AverageClassSize",
    "Discernibility",
    "InformationLoss",
    "NonUniformEntropy",
    "Precision",
    "information_loss",
]


class InformationLoss(ABC):
    """What a search minimises over the nodes of the lattice.

    Examples
    --------
    >>> from sfumato.anonymity import Discernibility, InformationLoss
    >>> isinstance(Discernibility(), InformationLoss)
    True
    """

    __slots__ = ()

    @final
    def node_bounds(self, table: CodedTable) -> NDArray[np.float64]:
        """Compute a lower bound of the loss of every node that needs no equivalence classes.

        Parameters
        ----------
        table : CodedTable

        Returns
        -------
        float64 array
            An axis for each quasi-identifier, indexed by level.
        """
        return self._node_bounds(table)

    @final
    def class_bound(self, table: CodedTable, partition: Partition) -> float:
        """Compute a lower bound of the loss of a node, and of all coarser ones, from its equivalence classes.

        Parameters
        ----------
        table : CodedTable
        partition : Partition
            The classes of the node.

        Returns
        -------
        float
        """
        return self._class_bound(table, partition)

    @final
    def loss(
        self, table: CodedTable, node: Sequence[int], partition: Partition, held: NDArray[np.bool_]
    ) -> float:
        """Compute the loss of a node.

        Parameters
        ----------
        table : CodedTable
        node : sequence of int
            The level of each quasi-identifier.
        partition : Partition
            The classes of the node.
        held : bool array
            Which classes are released; the others are suppressed.

        Returns
        -------
        float
        """
        return self._loss(table, node, partition, held)

    @abstractmethod
    def _node_bounds(self, table: CodedTable) -> NDArray[np.float64]: ...

    @abstractmethod
    def _class_bound(self, table: CodedTable, partition: Partition) -> float: ...

    @abstractmethod
    def _loss(
        self, table: CodedTable, node: Sequence[int], partition: Partition, held: NDArray[np.bool_]
    ) -> float: ...


def _sum_over_columns(columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    total = np.zeros(tuple(len(column) for column in columns))
    for axis, column in enumerate(columns):
        total += column.reshape([-1 if other == axis else 1 for other in range(len(columns))])
    return total


def _entropy_columns(table: CodedTable) -> list[NDArray[np.float64]]:
    """Sum -log2 of the frequency of each value within its generalised value, for each column and level."""
    columns = []
    for counts, maps in zip(table.column_counts, table.levels, strict=True):
        present = counts > 0
        weights = counts[present].astype(np.float64)
        losses = []
        for of in maps:
            among = np.bincount(of, weights=counts)[of[present]]
            losses.append(math.fsum(weights * np.log2(among / weights)))
        columns.append(np.maximum.accumulate(np.asarray(losses)))
    return columns


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NonUniformEntropy(InformationLoss):
    """Non-uniform entropy: the bits that generalisation takes from each cell.

    A cell loses -log2 of the frequency of its value among the rows with the same generalised value of that
    column. A suppressed row counts as generalised as the node says, or, with ``suppressed``, loses in
    addition -log2 of the frequency of its generalised value among the suppressed rows.

    Parameters
    ----------
    suppressed : bool, default False
        Whether suppression adds to the loss. ARX has both as "monotonic" (False) and "non-monotonic" (True).

    References
    ----------
    Gionis and Tassa, "k-Anonymization with Minimal Loss of Information", IEEE TKDE 21(2), 2009.

    Examples
    --------
    >>> from sfumato.anonymity import NonUniformEntropy
    >>> NonUniformEntropy(suppressed=True)
    NonUniformEntropy(suppressed=True)
    """

    suppressed: bool = False

    def _node_bounds(self, table: CodedTable) -> NDArray[np.float64]:
        """Give the loss of generalisation alone, which is additive over the columns."""
        return _sum_over_columns(_entropy_columns(table))

    def _class_bound(self, table: CodedTable, partition: Partition) -> float:
        """Give no further bound: that of the node is known without classes."""
        return 0.0

    def _loss(
        self, table: CodedTable, node: Sequence[int], partition: Partition, held: NDArray[np.bool_]
    ) -> float:
        """Give the loss of the node."""
        parts = [losses[level] for losses, level in zip(_entropy_columns(table), node, strict=True)]
        out = np.flatnonzero(~held)
        if self.suppressed and len(out):
            parts += [
                part
                for column in range(len(node))
                for part in self._hidden(table, node, column, partition, out)
            ]
        return math.fsum(parts)

    @staticmethod
    def _hidden(
        table: CodedTable, node: Sequence[int], column: int, partition: Partition, out: NDArray[Any]
    ) -> NDArray[np.float64]:
        weights = partition.counts[out]
        counts = np.bincount(table.values(node, column, partition.first[out]), weights=weights)
        found = counts[counts > 0].astype(np.float64)
        return found * np.log2(int(weights.sum()) / found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Discernibility(InformationLoss):
    """Discernibility: every row costs the rows from which it cannot be distinguished.

    A row in a class of s rows costs s, so that the class costs s squared; a suppressed row costs the whole
    table.

    Parameters
    ----------
    suppressed : bool, default True
        Whether a suppressed row costs the whole table. With False it costs its class as any other row does,
        which is the monotone variant DM* of El Emam et al. (JAMIA 16(5), 2009).

    References
    ----------
    Bayardo and Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005.

    Examples
    --------
    >>> from sfumato.anonymity import Discernibility
    >>> Discernibility()
    Discernibility(suppressed=True)
    """

    suppressed: bool = True

    def _node_bounds(self, table: CodedTable) -> NDArray[np.float64]:
        """Give the number of rows: every row costs at least itself."""
        return np.full(table.shape, float(table.rows))

    def _class_bound(self, table: CodedTable, partition: Partition) -> float:
        """Give DM*, which grows along generalisation: (a + b)^2 >= a^2 + b^2."""
        return float(np.dot(partition.counts, partition.counts))

    def _loss(
        self, table: CodedTable, node: Sequence[int], partition: Partition, held: NDArray[np.bool_]
    ) -> float:
        """Give the loss of the node."""
        sizes = partition.counts
        if not self.suppressed:
            return float(np.dot(sizes, sizes))
        return float(np.dot(sizes[held], sizes[held]) + table.rows * int(sizes[~held].sum()))


@final
@dataclass(frozen=True, slots=True)
class AverageClassSize(InformationLoss):
    """Average class size: rows divided by the number of equivalence classes.

    All suppressed rows together are one more class, as in ARX; the paper divides by k as well, which changes
    no choice among nodes.

    References
    ----------
    LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.

    Examples
    --------
    >>> from sfumato.anonymity import AverageClassSize
    >>> AverageClassSize()
    AverageClassSize()
    """

    def _node_bounds(self, table: CodedTable) -> NDArray[np.float64]:
        """Give 1: no class is smaller than one row."""
        return np.ones(table.shape)

    def _class_bound(self, table: CodedTable, partition: Partition) -> float:
        """Divide by all classes: suppression takes at least one and adds one; generalisation joins."""
        return table.rows / max(1, len(partition.counts))

    def _loss(
        self, table: CodedTable, node: Sequence[int], partition: Partition, held: NDArray[np.bool_]
    ) -> float:
        """Give the loss of the node."""
        classes = int(np.count_nonzero(held))
        return table.rows / max(1, classes + (classes < len(held)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Precision(InformationLoss):
    """Precision loss: one minus Sweeney's Prec, the mean over cells of the level over the highest level.

    Parameters
    ----------
    suppressed : bool, default True
        Whether the cells of a suppressed row count as fully generalised.

    References
    ----------
    Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression", IJUFKS 10(5),
    2002.

    Examples
    --------
    >>> from sfumato.anonymity import Precision
    >>> Precision()
    Precision(suppressed=True)
    """

    suppressed: bool = True

    def _node_bounds(self, table: CodedTable) -> NDArray[np.float64]:
        """Give the mean share of the levels, which no suppression lowers."""
        columns = [np.arange(levels) / max(1, levels - 1) for levels in table.shape]
        return _sum_over_columns(columns) / len(columns)

    def _class_bound(self, table: CodedTable, partition: Partition) -> float:
        """Give no further bound: that of the node is known without classes."""
        return 0.0

    def _loss(
        self, table: CodedTable, node: Sequence[int], partition: Partition, held: NDArray[np.bool_]
    ) -> float:
        """Give the loss of the node."""
        shares = [level / max(1, levels - 1) for level, levels in zip(node, table.shape, strict=True)]
        share = sum(shares) / len(shares)
        if not self.suppressed:
            return share
        hidden = int(partition.counts[~held].sum()) / table.rows
        return share + hidden * (1 - share)


_NAMED: dict[str, InformationLoss] = {
    "average-class-size": AverageClassSize(),
    "discernibility": Discernibility(),
    "non-uniform-entropy": NonUniformEntropy(),
    "precision": Precision(),
}


def information_loss(loss: str | InformationLoss) -> InformationLoss:
    """Take a loss by its name, or as a value."""
    if isinstance(loss, InformationLoss):
        return loss
    if loss not in _NAMED:
        _check.refuse("loss", f"be one of {', '.join(_NAMED)} or an InformationLoss", loss, "pass one")
    return _NAMED[loss]
