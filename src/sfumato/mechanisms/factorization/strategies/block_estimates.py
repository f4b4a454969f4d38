"""Estimates of the dyadic blocks of a binary tree, and of prefix sums from blocks."""

from __future__ import annotations

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
        self._blocks: list[tuple[int, Array]] = []

    def add(self, measured: list[Array]) -> Array:
        """Take the measurements of the blocks that end with this step, by height; return the prefix's sum."""
        estimate = measured[0]
        for height, own in enumerate(measured[1:], 1):
            _, left = self._blocks.pop()
            share = own_weight(height)
            estimate = share * own + (1 - share) * (left + estimate)
        self._blocks.append((len(measured) - 1, estimate))
        return np.asarray(sum(block for _, block in self._blocks))


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
