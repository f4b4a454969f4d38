"""The shape of a tree over the indices of an ordered domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

from sfumato import _check

__all__ = ["Shape"]

_LARGEST: Final = 1 << 24


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """A tree whose leaves are the indices from 0 to ``size - 1``; the last node of a level may have fewer.

    Parameters
    ----------
    size : int
        From 2 to 2^24.
    branching : int
        Children of a node, at least 2.

    Attributes
    ----------
    levels : int
        How many lie below the root; the last is that of the leaves.

    Examples
    --------
    >>> shape = Shape(10, 4)
    >>> shape.levels, [shape.span(level) for level in range(3)], [shape.nodes(level) for level in range(3)]
    (2, [16, 4, 1], [1, 3, 10])
    """

    size: int
    branching: int
    levels: int = field(init=False)

    def __post_init__(self) -> None:
        size = _check.integer("domain", self.size, minimum=2)
        if size > _LARGEST:
            _check.refuse("domain", "have at most 2**24 categories", size, "make the steps coarser")
        branching = _check.integer("branching", self.branching, minimum=2)
        if branching > _LARGEST:
            _check.refuse("branching", "be at most 2**24", branching, "take 2 to 16, as is usual")
        levels, reach = 1, branching
        while reach < size:
            levels, reach = levels + 1, reach * branching
        object.__setattr__(self, "branching", branching)
        object.__setattr__(self, "levels", levels)

    def span(self, level: int) -> int:
        """Return how many leaves are below a whole node of a level.

        Parameters
        ----------
        level : int
            0 for the root, `levels` for the leaves.

        Returns
        -------
        int
        """
        return int(self.branching ** (self.levels - level))

    def nodes(self, level: int) -> int:
        """Return how many nodes a level has.

        Parameters
        ----------
        level : int
            0 for the root, `levels` for the leaves.

        Returns
        -------
        int
        """
        return -(-self.size // self.span(level))
