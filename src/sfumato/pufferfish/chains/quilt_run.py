"""The active quilt of a run of records: how far before and after each the proof of its protection looks."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["QuiltRun"]


class QuiltRun(NamedTuple):
    """The active quilt of a run of nodes: so many steps before and after; 0 stands for no node there.

    Examples
    --------
    >>> QuiltRun(first=6, last=95, left=5, right=5).size(length=100)
    9
    """

    first: int
    last: int
    left: int
    right: int

    def size(self, length: int) -> int:
        """Return how many records lie within the quilt, at most, for a node of the run.

        Parameters
        ----------
        length : int
            How many records the sequence has.

        Returns
        -------
        int
        """
        before = self.left or self.last
        after = self.right or length - self.first + 1
        if not self.left and not self.right:
            return length
        return before + after - 1
