"""An adversary against batches that were really drawn: shuffling hides less than Poisson sampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import betaincinv

from sfumato.learning.sampling.epoch_sampler import ShuffledSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.learning.sampling.sampler import Sampler
from tests.chance import FALSE_ALARM, accepts_only

N, RUNS, NOISE, EPSILON = 100, 1500, 0.4, 2.0


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
    """The delta that is proven at epsilon, with a false alarm of twice `FALSE_ALARM`."""
    least = float(betaincinv(with_unit, RUNS - with_unit + 1, FALSE_ALARM)) if with_unit else 0.0
    most = float(betaincinv(without + 1, RUNS - without, 1 - FALSE_ALARM))
    return least - float(np.exp(EPSILON)) * most


def test_a_shuffle_that_is_accounted_as_poisson_is_caught() -> None:
    def shuffled(seed: int) -> ShuffledSampler:
        return ShuffledSampler(population=N, batch_size=1, steps=N, seed=seed)

    proven = _proven(_shown(shuffled, 1.0, 1), _shown(shuffled, 0.0, 2))
    poisson = PoissonSampler(population=N, sampling_probability=1 / N, steps=N)

    def allows(delta: float) -> None:
        assert proven <= delta

    right, wrong = (sampler.loss(NOISE).delta(EPSILON) for sampler in (shuffled(0), poisson))
    accepts_only(allows, right, poisson=wrong, twice_poisson=2 * wrong)
