"""Estimates of the dyadic blocks of a binary tree, and of prefix sums from blocks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from sfumato.mechanisms.factorization.strategies.integer_strategy import Array
from sfumato.mechanisms.factorization.strategies.participation import Participation

__all__ = [
    "PrefixEstimates",
    "block_squares",
    "block_variance",
    "block_weights",
    "completed_blocks",
    "own_weight",
]


class PrefixEstimates:
    """The estimates of the blocks that make up the prefix so far, the longest first."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []

    def add(self, measured: list[Any]) -> Any:
        """Take the measurements of the blocks that end with this step, by height; return the prefix's sum."""
        estimate = measured[0]
        for height, own in enumerate(measured[1:], 1):
            share = own_weight(height)
            estimate = share * own + (1 - share) * (self._blocks.pop() + estimate)
        self._blocks.append(estimate)
        return sum(self._blocks)

    def extend(self, measured: list[Array], before: int, steps: int) -> Array:
        """Take the measurements of the blocks that end with some steps, by height; return all prefixes' sums.

        Parameters
        ----------
        measured : list of arrays of shape (blocks, ...)
        before, steps : int
            How many steps there were, and how many these are.
        """
        ends, waiting, remaining = np.arange(before + 1, before + steps + 1), self._blocks, []
        total = np.zeros((steps, *measured[0].shape[1:]))
        halves: Array = measured[0]
        for height, own in enumerate(measured):
            blocks = own
            if height:
                share = own_weight(height)
                blocks = share * own + (1 - share) * halves
            first = before >> height
            if first & 1:
                first -= 1
                blocks = np.concatenate([np.asarray(waiting.pop())[np.newaxis], blocks])
            held = np.flatnonzero(ends >> height & 1)
            total[held] += blocks[(ends[held] >> height) - 1 - first]
            pairs = len(blocks) // 2
            if len(blocks) % 2:
                remaining.append(blocks[-1] if blocks.ndim > 1 else float(blocks[-1]))
            halves = blocks[: 2 * pairs].reshape(pairs, 2, *blocks.shape[1:]).sum(axis=1)
        self._blocks = waiting + remaining[::-1]
        return total


def block_squares(steps: int, participation: Participation) -> int:
    """Return a bound on the squared norm of the sum of a pattern's columns; see the notes of `BinaryTree`."""
    maximum, gap = participation.max_steps(steps), participation.separation
    return sum(maximum * min(maximum, -(-(1 << height) // gap)) for height in range(steps.bit_length()))


def completed_blocks(end: int) -> int:
    """Return how many blocks end with the step of that number, counted from 1."""
    return (end & -end).bit_length()


def block_variance(height: int) -> float:
    """Return the variance of a block's estimate, that of one measurement being 1."""
    return 1 / (2 - 2.0**-height)


@cache
def own_weight(height: int) -> float:
    """Return the weight of a block's own measurement against its halves', for a height of at least 1."""
    halves = 2 * block_variance(height - 1)
    return halves / (1 + halves)


def block_weights(heights: int) -> list[list[tuple[float, int]]]:
    """Return for each height the weights in a block's estimate, and how often each of them occurs."""
    every = [[(1.0, 1)]]
    for height in range(1, heights):
        share = own_weight(height)
        every.append([(share, 1), *[((1 - share) * weight, 2 * count) for weight, count in every[-1]]])
    return every
