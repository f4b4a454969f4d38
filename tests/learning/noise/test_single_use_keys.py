"""One key and one seed for one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.learning.sampling.poisson import PoissonSampler
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.federated.federation import FederatedTraining
    from sfumato.learning.noise.grid import GridNoise
    from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
    from sfumato.learning.noise.noise import Noise
    from tests.learning.training.conftest import Made

    class Keyless(Noise):
        """Noise of no key that is known."""

        simulated = False

        def _add(self, gradients: Any, step: int, stddevs: Any, parts: Any) -> None:
            for gradient, stddev in zip(gradients, stddevs, strict=True):
                gradient.add_(torch.randn(gradient.shape) * stddev)

        def scalar(self, *, step: int, stddev: float) -> float:
            return stddev


def poisson(seed: Any = None) -> PoissonSampler:
    return PoissonSampler(population=3, sampling_probability=0.5, steps=4, seed=seed)


def federated(noise: Noise, sampler: PoissonSampler) -> FederatedTraining[Any]:
    return FederatedTraining(
        nn.Linear(1, 1),
        [1.0, 2.0, 3.0],
        lambda module, client: None,
        sampler=sampler,
        clipping=Flat(clip_norm=1.0),
        noise_multiplier=1.0,
        noise=noise,
    )


@cases("make_noise", lambda: [KeyedNoise, GridNoise, Keyless])
def test_two_trainings_do_not_share_their_noise(make_noise: Callable[[], Noise]) -> None:
    noise = make_noise()
    first, second = federated(noise, poisson()), federated(noise, poisson())
    first.run(1)
    before = [p.clone() for p in second.module.parameters()]
    with pytest.raises(ParameterError, match="noise must belong to one run"):
        second.run(1)
    assert second.rounds == 0
    assert all(torch.equal(a, b) for a, b in zip(before, second.module.parameters(), strict=True))
    first.run(1)


def test_nor_a_key_that_two_noises_are_made_of() -> None:
    key = bytes(range(100, 132))
    federated(KeyedNoise(key), poisson()).run(1)
    with pytest.raises(ParameterError, match="noise must belong to one run"):
        federated(GridNoise(key), poisson()).run(1)


def test_nor_their_batches() -> None:
    sampler = poisson()
    federated(KeyedNoise(), sampler).run(1)
    with pytest.raises(ParameterError, match="sampler must belong to one run"):
        federated(KeyedNoise(), sampler).run(1)


def test_simulations_share_what_they_like() -> None:
    for _ in range(2):
        federated(SimulatedNoise(1), poisson(1)).run(1)


def test_a_runs_noise_and_batches_are_its_own() -> None:
    made = Made(noise_generator=None)
    run = made.engine.run
    for noise, sampler in ((run.noise, poisson()), (KeyedNoise(), poisson(run.sampler.seed))):
        with pytest.raises(ParameterError, match="belong to one run"):
            federated(noise, sampler).run(1)


def test_what_is_made_for_a_run_is_made_of_its_secrets() -> None:
    noise = KeyedNoise()
    with pytest.raises(ParameterError, match="noise must be made of the key"):
        Made(noise_generator=None, noise=lambda sampler, key, seed: noise)

    def drawn(**given: Any) -> PoissonSampler:
        return PoissonSampler(population=given["population"], sampling_probability=0.5, steps=given["steps"])

    for seed in (None, 7):
        with pytest.raises(ParameterError, match="sampler must be made of the seed"):
            Made(noise_generator=seed, sampler=drawn)
