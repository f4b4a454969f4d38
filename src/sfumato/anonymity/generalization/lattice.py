"""The lattice of generalisation levels, what is known of its nodes, and the search for the one of least loss.

Predictive tagging (a node that fails condemns all finer ones, a node that holds commends all coarser ones) is
used for the part of the requirement that is monotone along generalisation, and for no other part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sfumato._progress import Progress
from sfumato.anonymity.generalization.equivalence_classes import CodedTable, Partition
from sfumato.anonymity.generalization.losses import InformationLoss
from sfumato.anonymity.generalization.requirement import Requirement

__all__ = ["LatticeSearch", "Node", "NodeState"]

Node = tuple[int, ...]

_ROUNDED = 1 - 1e-12
"""Bounds are sums of floats: a bound above the best loss by its rounding only does not prune."""


class NodeState(IntEnum):
    """What a search knows of a node.

    Examples
    --------
    >>> from sfumato.anonymity import NodeState
    >>> NodeState.HOLDS.name
    'HOLDS'
    """

    PRUNED = 0
    """Not looked at: its loss is at least that of the node chosen."""
    HOLDS = 1
    """Its classes were computed, and it satisfies the requirement."""
    FAILS = 2
    """Its classes were computed, and it does not satisfy the requirement."""
    INFERRED_HOLDS = 3
    """It satisfies the requirement because a finer node does, by monotonicity; its loss was not needed."""
    INFERRED_FAILS = 4
    """It does not satisfy the requirement because a coarser node does not, by monotonicity."""


class _Cache:
    """The partitions computed last, within a number of bytes."""

    _SLOTS = 256

    def __init__(self, columns: int, limit: int) -> None:
        self._limit, self._bytes, self._next, self._oldest = limit, 0, 0, 0
        self._nodes = np.full((self._SLOTS, columns), np.iinfo(np.int32).max, dtype=np.int32)
        self._cells = np.zeros(self._SLOTS, dtype=np.int64)
        self._items: list[Partition | None] = [None] * self._SLOTS
        self._slot: dict[Node, int] = {}

    def get(self, node: Node) -> Partition | None:
        slot = self._slot.get(node)
        return None if slot is None else self._items[slot]

    def finer(self, node: Node) -> Partition | None:
        """Find the partition with the fewest cells among those of finer nodes."""
        below = np.flatnonzero((self._nodes <= np.asarray(node, dtype=np.int32)).all(axis=1))
        return self._items[below[np.argmin(self._cells[below])]] if len(below) else None

    def put(self, node: Node, partition: Partition) -> None:
        while len(self._slot) == self._SLOTS or (self._slot and self._bytes + partition.nbytes > self._limit):
            self._drop_oldest()
        slot = self._next
        self._next = (slot + 1) % self._SLOTS
        self._nodes[slot], self._cells[slot], self._items[slot] = node, len(partition.cell_first), partition
        self._slot[node] = slot
        self._bytes += partition.nbytes

    def _drop_oldest(self) -> None:
        slot = self._oldest
        self._oldest = (slot + 1) % self._SLOTS
        dropped = self._items[slot]
        del self._slot[tuple(int(level) for level in self._nodes[slot])]
        self._nodes[slot], self._items[slot] = np.iinfo(np.int32).max, None
        self._bytes -= dropped.nbytes if dropped is not None else 0


@dataclass(slots=True)
class LatticeSearch:
    """A search for the node of least loss among those that satisfy a requirement.

    Nodes are taken in the order of a lower bound of their loss, and the search ends when the least bound of
    an open node is at least the loss of the best one: then no open node can be better, so that the result is
    optimal.
    """

    table: CodedTable
    requirement: Requirement
    measure: InformationLoss
    progress: Progress | None = None
    checks: int = 0
    best: Node | None = None
    best_loss: float = float("inf")
    states: NDArray[np.int8] = field(init=False)
    _bounds: NDArray[np.float64] = field(init=False)
    _necessary: NDArray[np.int8] = field(init=False)
    _open: NDArray[np.bool_] = field(init=False)
    _cache: _Cache = field(init=False)

    def __post_init__(self) -> None:
        shape = self.table.shape
        self.states = np.zeros(shape, dtype=np.int8)
        self._bounds = self.measure.node_bounds(self.table)
        self._necessary = np.zeros(shape, dtype=np.int8)
        self._open = np.ones(shape, dtype=np.bool_)
        self._cache = _Cache(len(shape), 32 << 20)

    def run(self) -> LatticeSearch:
        """Search until no open node can be better than the best one."""
        size = self._open.size
        while True:
            index = int(np.argmin(np.where(self._open, self._bounds, np.inf)))
            node = tuple(int(level) for level in np.unravel_index(index, self._open.shape))
            if not self._open[node] or self._bounds[node] * _ROUNDED >= self.best_loss:
                break
            if self._necessary[node] == 0:
                self._tag_path(node)
            if self._open[node]:
                self._evaluate(node)
            if self.progress is not None:
                self.progress(size - int(np.count_nonzero(self._open)), size)
        if self.progress is not None:
            self.progress(size, size)
        self._settle()
        return self

    def _partition(self, node: Node) -> Partition:
        found = self._cache.get(node)
        if found is None:
            found = self.table.partition(node, self._cache.finer(node))
            self._cache.put(node, found)
            self.checks += 1
            above = tuple(slice(level, None) for level in node)
            np.maximum(
                self._bounds[above], self.measure.class_bound(self.table, found), out=self._bounds[above]
            )
        return found

    def _suppressed(self, partition: Partition, held: NDArray[np.bool_]) -> int:
        return int(partition.counts[~held].sum())

    def _tag_path(self, start: Node) -> None:
        """Find by bisection where a chain upwards begins to satisfy the monotone part, and tag."""
        chain = self._chain(start)
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            node = chain[middle]
            partition = self._partition(node)
            if self._suppressed(partition, self.requirement.necessary(partition)) <= self.requirement.limit:
                self._necessary[tuple(slice(level, None) for level in node)] = 1
                high = middle
            else:
                below = tuple(slice(0, level + 1) for level in node)
                self._necessary[below] = -1
                self._open[below] = False
                self.states[node] = NodeState.FAILS
                low = middle + 1

    def _chain(self, start: Node) -> list[Node]:
        chain, node = [start], start
        while True:
            above = [
                (*node[:column], level + 1, *node[column + 1 :])
                for column, level in enumerate(node)
                if level + 1 < self._open.shape[column]
            ]
            above = [other for other in above if self._necessary[other] == 0]
            if not above:
                return chain
            node = min(above, key=lambda other: self._bounds[other])
            chain.append(node)

    def _evaluate(self, node: Node) -> None:
        self._open[node] = False
        partition = self._partition(node)
        held = self.requirement.complete(partition)
        if self._suppressed(partition, held) > self.requirement.limit:
            self.states[node] = NodeState.FAILS
            return
        self.states[node] = NodeState.HOLDS
        loss = self.measure.loss(self.table, node, partition, held)
        if loss < self.best_loss:
            self.best, self.best_loss = node, loss

    def _settle(self) -> None:
        """Write what monotonicity says of the nodes that were not evaluated."""
        unseen = self.states == NodeState.PRUNED
        self.states[unseen & (self._necessary < 0)] = NodeState.INFERRED_FAILS
        if self.requirement.monotone:
            self.states[unseen & (self._necessary > 0)] = NodeState.INFERRED_HOLDS
