"""Exact laws of what reads few random words: all words of a piece are treated alike, and pieces are found."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias, TypeVar

__all__ = ["WORDS", "Piece", "enumerated", "pieces", "residues"]

WORDS = 1 << 64
"""The number of all words."""

Piece: TypeAlias = tuple[Sequence[int], Fraction]
"""Words that stand for others, and the share of all words that they stand for."""

Outcome = TypeVar("Outcome")


def pieces(outcome: Callable[[int], object], *, end: int = WORDS) -> list[Piece]:
    """Split the words from 0 to an end into the ranges of which each has one outcome, by bisection.

    An outcome must have one range only. Each range is told by its first and its last word.
    """
    starts = [0, *_borders(outcome, (0, outcome(0)), (end - 1, outcome(end - 1)))]
    return [
        ((start, after - 1), Fraction(after - start, end))
        for start, after in zip(starts, [*starts[1:], end], strict=True)
    ]


def residues(bound: int) -> list[Piece]:
    """Split the words by their remainder, as `sfumato.numerics.randomness.uniform.uniform_integers` does."""
    return [((value, value + 3 * bound), Fraction(1, bound)) for value in range(bound)]


def enumerated(outcome: Callable[..., Outcome], *words: Iterable[Piece]) -> dict[Outcome, Fraction]:
    """Return the law of an outcome of independent words, of which each is given by its pieces.

    In each box of pieces the corners with all first and with all last words must have the same outcome.
    """
    distribution: dict[Outcome, Fraction] = {}
    for box in itertools.product(*words):
        corners = {outcome(*(ends[side] for ends, _ in box)) for side in (0, -1)}
        assert len(corners) == 1, f"words of one piece are told apart: {corners}"
        share = Fraction(1)
        for _, part in box:
            share *= part
        told = corners.pop()
        distribution[told] = distribution.get(told, Fraction(0)) + share
    return distribution


def _borders(
    outcome: Callable[[int], object], low: tuple[int, object], high: tuple[int, object]
) -> list[int]:
    """The first word of each further outcome between two words whose outcomes are known."""
    if low[1] == high[1]:
        return []
    if high[0] - low[0] == 1:
        return [high[0]]
    middle = (low[0] + high[0]) // 2
    told = middle, outcome(middle)
    return _borders(outcome, low, told) + _borders(outcome, told, high)
