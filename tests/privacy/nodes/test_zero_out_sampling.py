"""Samples under zero-out, against the enumerated output distributions of noisy sums over two datasets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.privacy import (
    BallsInBins,
    DiscreteLaplace,
    Neighboring,
    PoissonRecords,
    PoissonSubsampled,
    PrivacyLoss,
    RandomAllocation,
    SeparatedPoisson,
    TruncatedPoisson,
)

Distribution = NDArray[np.float64]
Datasets = tuple[tuple[int, ...], tuple[int, ...]]

SCALE = 2
WIDTH = 60
Q = 0.3
BASE = DiscreteLaplace(SCALE, neighboring=Neighboring.ZERO_OUT)
ALONE = ((1, 0, 0), (0, 0, 0))
"""The first unit is zeroed out, and keeps its place; nothing but the noise hides it."""
AMONG = ((1, 0, 1), (0, 0, 1))
"""The same, where it is also unknown who else was drawn."""


def noisy(total: int) -> Distribution:
    """Return the distribution of a sum with discrete Laplace noise on integers near it."""
    outputs = np.arange(-WIDTH, WIDTH + 1)
    weights = np.exp(-np.abs(outputs - total) / SCALE)
    distribution: Distribution = weights / weights.sum()
    return distribution


def drawn(values: tuple[int, ...]) -> list[tuple[float, tuple[int, ...]]]:
    """Return every Poisson sample's probability and values."""
    samples = []
    for selected in itertools.product((False, True), repeat=len(values)):
        chance = math.prod(Q if keep else 1 - Q for keep in selected)
        samples.append((chance, tuple(v for v, keep in zip(values, selected, strict=True) if keep)))
    return samples


def poisson(values: tuple[int, ...]) -> Distribution:
    return sum((chance * noisy(sum(sample)) for chance, sample in drawn(values)), np.zeros(2 * WIDTH + 1))


def truncated(values: tuple[int, ...]) -> Distribution:
    """Keep two of a sample of three, every pair with the same chance."""
    total = np.zeros(2 * WIDTH + 1)
    for chance, sample in drawn(values):
        pairs = list(itertools.combinations(sample, 2)) if len(sample) > 2 else [sample]
        for pair in pairs:
            total += chance / len(pairs) * noisy(sum(pair))
    return total


def allocated(values: tuple[int, ...]) -> Distribution:
    """Throw each unit into one of two steps, each with noise of its own."""
    total = np.zeros((2 * WIDTH + 1, 2 * WIDTH + 1))
    for places in itertools.product((0, 1), repeat=len(values)):
        sums = [sum(v for v, p in zip(values, places, strict=True) if p == step) for step in (0, 1)]
        total += np.outer(noisy(sums[0]), noisy(sums[1])) / 2 ** len(values)
    return total.ravel()


def records(values: tuple[int, ...]) -> Distribution:
    """Let the first unit own two records of its value."""
    return poisson((values[0], *values))


def one_block(values: tuple[int, ...]) -> Distribution:
    """Let each unit take part in at most one of two steps, by coins until it does."""
    total = np.zeros((2 * WIDTH + 1, 2 * WIDTH + 1))
    chances = (Q, (1 - Q) * Q, (1 - Q) ** 2)  # in the first step, in the second, in none
    for places in itertools.product((0, 1, 2), repeat=len(values)):
        sums = [sum(v for v, p in zip(values, places, strict=True) if p == step) for step in (0, 1)]
        total += math.prod(chances[p] for p in places) * np.outer(noisy(sums[0]), noisy(sums[1]))
    return total.ravel()


CASES: dict[str, tuple[PrivacyLoss, Callable[[tuple[int, ...]], Distribution], bool]] = {
    "poisson": (PoissonSubsampled(BASE, Q), poisson, True),
    "truncated": (TruncatedPoisson(BASE, Q, sample_size=2, population_size=3), truncated, False),
    "balls in bins": (BallsInBins(BASE, 2), allocated, True),
    "allocation": (RandomAllocation(BASE, 2), allocated, True),
    "separated": (SeparatedPoisson(BASE, Q, 2, steps=2), one_block, True),
    "records": (PoissonRecords(BASE, Q, 2), records, False),
}


def shown(run: Callable[[tuple[int, ...]], Distribution], neighbors: Datasets, epsilon: float) -> float:
    """Return the least delta of the two runs at an epsilon, the greater of both orders."""
    p, q = (run(values) for values in neighbors)
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize("name", CASES)
def test_the_profile_bounds_what_two_datasets_show_and_is_met_where_it_is_tight(name: str) -> None:
    loss, run, tight = CASES[name]
    assert loss.neighboring is Neighboring.ZERO_OUT
    for epsilon in (0.0, 0.05, 0.1, 0.2, 0.3):
        bound = loss.delta(epsilon)
        assert shown(run, AMONG, epsilon) <= bound + 1e-12
        assert shown(run, ALONE, epsilon) <= bound + 1e-12
        if tight:  # so that a lower price would be exceeded
            assert bound <= shown(run, ALONE, epsilon) + 1e-9
