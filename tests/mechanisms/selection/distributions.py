"""The exact distributions of choices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

Law = Callable[[Sequence[int], float], np.ndarray]

REACH = 300


def exponential(scores: Sequence[int], scale: float) -> np.ndarray:
    weights = np.exp((np.array(scores) - max(scores)) / scale)
    return np.asarray(weights / weights.sum())


def permute_and_flip(scores: Sequence[int], scale: float) -> np.ndarray:
    """Every outcome of every coin; a random one of the heads is first in a random order."""
    chances = np.exp((np.array(scores) - max(scores)) / scale)
    distribution = np.zeros(len(scores))
    for heads in itertools.product([False, True], repeat=len(scores)):
        shown = np.array(heads)
        if shown.any():
            distribution[shown] += np.where(shown, chances, 1 - chances).prod() / shown.sum()
    return distribution


def laplace_max(scores: Sequence[int], scale: float) -> np.ndarray:
    """Sum over the winner's noise; with t of the others equal to it, it wins with chance 1 / (t + 1)."""
    k = np.arange(-REACH, REACH + 1)
    q = math.exp(-1 / scale)
    pmf = (1 - q) / (1 + q) * q ** np.abs(k)
    below = np.cumsum(pmf) - pmf
    distribution = np.zeros(len(scores))
    for winner, score in enumerate(scores):
        ties = np.zeros((len(scores), k.size))
        ties[0] = pmf
        for other, rival in enumerate(scores):
            if other != winner:
                at = np.clip(k + score - rival + REACH, 0, 2 * REACH)
                inside = np.abs(k + score - rival) <= REACH
                equal = np.where(inside, pmf[at], 0.0)
                less = np.where(k + score - rival > REACH, 1.0, np.where(inside, below[at], 0.0))
                ties = less * ties + equal * np.vstack([np.zeros(k.size), ties[:-1]])
        distribution[winner] = (ties.sum(axis=1) / np.arange(1, len(scores) + 1)).sum()
    return distribution


def peeling(scores: Sequence[int], scale: float, count: int) -> dict[tuple[int, ...], float]:
    """Every ordered choice of ``count``, each in turn by the exponential mechanism among the rest."""
    distribution = {}
    for order in itertools.permutations(range(len(scores)), count):
        chance, left = 1.0, list(range(len(scores)))
        for index in order:
            chance *= float(exponential([scores[i] for i in left], scale)[left.index(index)])
            left.remove(index)
        distribution[order] = chance
    return distribution


def moves(size: int, *, monotone: bool, sensitivity: int = 1) -> Iterator[np.ndarray]:
    """Every way in which one unit moves all scores, by whole steps of up to the sensitivity."""
    steps = range(0 if monotone else -sensitivity, sensitivity + 1)
    for move in itertools.product(steps, repeat=size):
        yield np.array(move)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
