"""An adversary against batches that were really drawn: shuffling hides less than Poisson sampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import betaincinv

from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.shuffled import ShuffledSampler

N, RUNS, NOISE, EPSILON = 100, 1500, 0.4, 2.0
CONFIDENCE = 1e-9


def _shown(make: Callable[[int], Sampler], unit: float, seed: int) -> int:
    """Count runs with a step above a threshold: all others pull down by 1, the unit up or not at all.

    Chua et al. (2024), "How private are DP-SGD implementations?", set the example.
    """
    values = np.full(N, -1.0)
    values[0] = unit
    normals = np.random.default_rng(seed)
    count = 0
    for run in range(RUNS):
        sums = np.array([values[batch].sum() for batch in make(seed * RUNS + run).batches()])
        count += bool((sums + NOISE * normals.standard_normal(len(sums)) > 0.8).any())
    return count


def _proven(with_unit: int, without: int) -> float:
    """The delta that is proven at epsilon, at a confidence of 1 - 2e-9."""
    least = float(betaincinv(with_unit, RUNS - with_unit + 1, CONFIDENCE)) if with_unit else 0.0
    most = float(betaincinv(without + 1, RUNS - without, 1 - CONFIDENCE))
    return least - float(np.exp(EPSILON)) * most


def test_a_shuffle_that_is_accounted_as_poisson_is_caught() -> None:
    def shuffled(seed: int) -> ShuffledSampler:
        return ShuffledSampler(population=N, batch_size=1, steps=N, seed=seed)

    proven = _proven(_shown(shuffled, 1.0, 1), _shown(shuffled, 0.0, 2))
    poisson = PoissonSampler(population=N, sampling_probability=1 / N, steps=N)
    assert proven > 2 * poisson.loss(NOISE).delta(EPSILON)
    assert proven < shuffled(0).loss(NOISE).delta(EPSILON)
