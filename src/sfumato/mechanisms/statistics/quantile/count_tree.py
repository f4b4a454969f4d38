"""A tree of counts over public bins: exact counts held sparsely, noise drawn once for each node that is seen.

A group's tree has its bins as leaves, and each node counts what is in the bins below it. The root is never
counted: its children are level 1, the bins level ``height``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["CountTree", "NoisyNodes", "TreeCounts", "TreeShape"]

_WIDEST: Final = 16
_MAX_LEAVES: Final = 1 << 20

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class TreeShape:
    """How many bins there are, and how they are gathered.

    Parameters
    ----------
    leaves : int
        Number of bins, from 1 to 2**20.
    branching : int
        Children of a node, at least 2; nodes that hold no bin are left out.
    height : int
        Levels that are counted, at least 1; ``branching**height`` is at least ``leaves``.

    Examples
    --------
    >>> TreeShape.of(65_000), TreeShape.of(121), TreeShape.of(2)
    (TreeShape(leaves=65000, branching=16, height=4), TreeShape(leaves=121, branching=11, height=2), \
TreeShape(leaves=2, branching=2, height=1))
    """

    leaves: int
    branching: int
    height: int

    def __post_init__(self) -> None:
        _check.integer("leaves", self.leaves, minimum=1)
        _check.integer("branching", self.branching, minimum=2)
        _check.integer("height", self.height, minimum=1)
        if self.leaves > min(_MAX_LEAVES, self.branching**self.height):
            rule = "be at most 2**20, and at most branching**height"
            _check.refuse("leaves", rule, self.leaves, "use TreeShape.of, or a coarser grid")

    @classmethod
    def of(cls, leaves: int) -> Self:
        """Return the tree of the fewest levels with at most 16 children to a node, and of them the narrowest.

        With one scale s of noise on a level that costs an h-th of the budget, the error of a rank grows like
        ``h**1.5 * sqrt(branching)`` (Laplace: s is in proportion to h) or ``h * sqrt(branching)`` (Gaussian):
        for a given number of bins it is least near 16 children, and flat around that.
        """
        height = 1
        while _WIDEST**height < leaves:
            height += 1
        branching = 2
        while branching**height < leaves:
            branching += 1
        return cls(leaves, branching, height)

    @property
    def span(self) -> int:
        """Bins that the tree has room for."""
        return int(self.branching**self.height)

    def width(self, level: int) -> int:
        """Return how many bins a node of a level has room for."""
        return int(self.branching ** (self.height - level))

    def filled(self, level: int, nodes: Integers) -> Integers:
        """Return how many children of nodes of a level hold bins; a node is known by its number there."""
        first = (nodes % self.branching**level) * self.width(level)
        children: Integers = np.clip(-((first - self.leaves) // self.width(level + 1)), 0, self.branching)
        return children


@final
@dataclass(frozen=True, slots=True)
class TreeCounts:
    """Exact counts of the bins that are not empty, of many groups: raw data.

    Parameters
    ----------
    groups, leaves, counts : int64 arrays of one length
        The number of a group, of a bin in it, and how much is there; in any order. A bin may come twice.
    """

    groups: Integers
    leaves: Integers
    counts: Integers


class NoisyNodes(Protocol):
    """Where noisy counts come from."""

    @property
    def shape(self) -> TreeShape:
        """The shape of every group's tree."""

    def children(self, level: int, nodes: Integers) -> Integers:
        """Return the noisy counts of the children of nodes of a level, of shape (nodes, branching)."""


@final
class CountTree:
    """The trees of some groups, seen through noise.

    Parameters
    ----------
    shape : TreeShape
    distribution : SymmetricDistribution
        Of the noise of each node, on whole numbers.
    counts : TreeCounts
        What each group's bins hold; bins outside the tree are moved to its nearest.
    source : RandomSource
        Where the noise comes from.

    Notes
    -----
    A node of level l of group g has the number ``g * branching**l`` plus its index in the level.

    Guarantee: whatever is computed from ``children`` has the distribution of the same function of all noisy
    counts, as if every node of every group had got its noise at first: noise is drawn independently for each
    node, once, and retained; which nodes are seen depends on noisy counts seen before, so a draw that is put
    off is the same draw. Nodes without bins are empty whatever the data, and get none.
    """

    def __init__(
        self, shape: TreeShape, distribution: SymmetricDistribution, counts: TreeCounts, source: RandomSource
    ) -> None:
        self.shape = shape
        self._distribution, self._source = distribution, source
        keys = counts.groups * shape.span + np.clip(counts.leaves, 0, shape.leaves - 1)
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._up_to = np.concatenate([[0], np.cumsum(counts.counts[order], dtype=np.int64)])
        none = np.zeros(0, np.int64), np.zeros((0, shape.branching), np.int64)
        self._seen = [none] * shape.height

    def children(self, level: int, nodes: Integers) -> Integers:
        """Return the noisy counts of the children of nodes of a level, of shape (nodes, branching)."""
        wanted, indices = np.unique(nodes, return_inverse=True)
        known, noisy = self._seen[level]
        fresh = np.setdiff1d(wanted, known, assume_unique=True)
        if fresh.size:
            drawn = self._exact(level, fresh) + self._distribution.sample(
                (fresh.size, self.shape.branching), self._source
            )
            there = np.arange(self.shape.branching) < self.shape.filled(level, fresh)[:, None]
            order = np.argsort(np.concatenate([known, fresh]), kind="stable")
            known = np.concatenate([known, fresh])[order]
            noisy = np.concatenate([noisy, np.where(there, drawn, 0)])[order]
            self._seen[level] = known, noisy
        return noisy[np.searchsorted(known, wanted)[indices]]

    def _exact(self, level: int, nodes: Integers) -> Integers:
        steps = np.arange(self.shape.branching + 1) * self.shape.width(level + 1)
        borders = (nodes * self.shape.width(level))[:, None] + steps
        return np.diff(self._up_to[np.searchsorted(self._keys, borders)], axis=1)
