"""The binary tree strategy: every dyadic block of steps is measured when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.mechanisms.factorization.strategies.block_estimates import (
    PrefixEstimates,
    block_squares,
    block_variance,
    completed_blocks,
)
from sfumato.mechanisms.factorization.strategies.integer_tree import IntegerTree
from sfumato.mechanisms.factorization.strategies.participation import ONCE, Participation
from sfumato.mechanisms.factorization.strategies.power_series import check_steps
from sfumato.mechanisms.factorization.strategies.strategy import (
    Array,
    Draw,
    NoiseStream,
    Strategy,
    check_unfinished,
)
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import sqrt_down, sqrt_up

__all__ = ["BinaryTree"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryTree(Strategy):
    r"""Sums over dyadic blocks, combined with the smallest variance that the blocks so far allow.

    Parameters
    ----------
    steps : int
        The public number of steps.

    Notes
    -----
    *Estimate.* The sum of a block of :math:`2^h` steps is known from its own measurement and from its two
    halves. Weighted by their inverse variances, these give the variance :math:`v_h = 2^h/(2^{h+1} - 1)`
    (:math:`v_0 = 1`, :math:`1/v_h = 1 + 1/2v_{h-1}`), and a prefix is a sum of blocks, one for each bit of
    its length.

    *Sensitivity.* A step is in one block of each height. With at most :math:`k` steps of one unit at least
    :math:`b` apart, a block of :math:`2^h` steps holds at most :math:`m_h = \min(k, \lceil 2^h/b \rceil)`
    of them, and all blocks of that height together at most :math:`k`; so the squared norm is at most
    :math:`\sum_h k m_h`, exact for one participation.

    References
    ----------
    Dwork, Naor, Pitassi, Rothblum (2010); Chan, Shi, Song (2011), the tree; Honaker (2015), "Efficient use of
    differentially private binary trees", the estimate from below.

    Examples
    --------
    >>> tree = BinaryTree(steps=8)
    >>> tree.entries, round(tree.sensitivity().upper, 9), round(float(tree.variances().max()), 3)
    (15, 2.0, 2.238)
    """

    steps: int

    def __post_init__(self) -> None:
        check_steps(self.steps)

    @property
    def heights(self) -> int:
        """The number of heights at which a block is complete."""
        return self.steps.bit_length()

    @property
    def entries(self) -> int:
        """The number of complete blocks."""
        return sum(self.steps >> height for height in range(self.heights))

    def matrix(self) -> Array:
        """Return C, shape (entries, steps); blocks in the order in which they end, the smaller first.

        Returns
        -------
        array of shape (entries, steps)
        """
        rows = []
        for end in range(1, self.steps + 1):
            for height in range(completed_blocks(end)):
                row = np.zeros(self.steps)
                row[end - (1 << height) : end] = 1
                rows.append(row)
        return np.array(rows)

    def sensitivity(self, participation: Participation = ONCE) -> Interval:
        """Bound how far one unit moves C x: from below by the earliest pattern.

        Parameters
        ----------
        participation : Participation
            In how many steps one unit takes part, and how far apart.

        Returns
        -------
        Interval
            L2 sensitivity to a move of one step's input by 1.
        """
        bound = block_squares(self.steps, participation)
        steps = participation.earliest_steps(self.steps)
        found = 0
        for height in range(self.heights):
            blocks = steps[steps < (self.steps >> height) << height] >> height
            found += int(np.square(np.bincount(blocks)).sum()) if blocks.size else 0
        return Interval(sqrt_down(float(found)), sqrt_up(float(bound)))

    def variances(self, workload: ArrayLike | None = None) -> Array:
        """Return the variance of each prefix sum's noise; other workloads have no estimate here.

        Parameters
        ----------
        workload : array of shape (steps,), optional
            Weights by age, the newest first; of prefix sums unless given.

        Returns
        -------
        array of shape (steps,)
            That of one measurement being 1.
        """
        if workload is not None:
            _check.refuse_type("workload", "be left out for a tree", workload, "pass a Toeplitz strategy")
        lengths = np.arange(1, self.steps + 1)
        total = np.zeros(self.steps)
        for height in range(self.heights):
            total += (lengths >> height & 1) * block_variance(height)
        return total

    def in_integers(self, bits: int) -> IntegerTree:
        """Return the tree in multiples of ``2**-bits``.

        Parameters
        ----------
        bits : int
            Entries are rounded to multiples of ``2**-bits``.

        Returns
        -------
        IntegerTree
        """
        return IntegerTree(self.steps, bits)

    def noise(self) -> NoiseStream:
        """Return a fresh stream: what the prefix sum's noise changes by, with memory for a block a height.

        Returns
        -------
        NoiseStream
        """
        return _Differences(self)


class _Differences(NoiseStream):
    def __init__(self, tree: BinaryTree) -> None:
        self._tree, self._refinement = tree, PrefixEstimates()
        self._time = 0
        self._last: Array | float = 0.0

    @property
    def memory(self) -> int:
        return self._tree.heights + 1

    def send(self, draw: Draw) -> Array:
        check_unfinished(self._time, self._tree.steps)
        self._time += 1
        prefix = self._refinement.add([np.array(draw()) for _ in range(completed_blocks(self._time))])
        noise = prefix - self._last
        self._last = prefix
        return np.asarray(noise)
