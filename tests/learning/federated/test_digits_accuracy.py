"""Digits of many clients: accuracy at a stated privacy, and one run audited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.special import betainc

from sfumato.learning.sampling.balls_in_bins import BallsInBinsSampler
from sfumato.learning.sampling.full_batch import FullBatchSampler
from sfumato.learning.sampling.poisson import PoissonSampler
from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
from tests.chance import accepts_only
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn

    from sfumato.learning.clipping.clipping import Clipping
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.federated.client_training import local_sgd
    from sfumato.learning.federated.federation import FederatedTraining
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.keyed import SimulatedNoise

    Data = tuple[Tensor, Tensor]


@pytest.fixture(scope="module")
def digits() -> tuple[list[Data], Data]:
    datasets = pytest.importorskip("sklearn.datasets")
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    inputs = torch.tensor(images[order] / 16, dtype=torch.float32)
    targets = torch.tensor(labels[order])
    clients = [(inputs[i : i + 5], targets[i : i + 5]) for i in range(0, 1500, 5)]
    return clients, (inputs[1500:], targets[1500:])


def _accuracy(module: nn.Module, test: Data) -> float:
    with torch.no_grad():
        return float((module(test[0]).argmax(1) == test[1]).double().mean())


def _zeros() -> nn.Module:
    module = nn.Linear(64, 10)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    return module


def test_federated_averaging_learns_digits(digits: tuple[list[Data], Data]) -> None:
    clients, test = digits
    module = _zeros()
    training = FederatedTraining(
        module,
        clients,
        local_sgd(nn.functional.cross_entropy, learning_rate=1.0),
        sampler=PoissonSampler(population=300, sampling_probability=0.25, steps=12, seed=1),
        clipping=Flat(clip_norm=1.0),
        noise_multiplier=1.2,
        noise=SimulatedNoise(1),
        server=lambda parameters: torch.optim.SGD(parameters, lr=1.0, momentum=0.5),
    )
    training.run()
    assert training.epsilon(1e-4) < 4
    assert _accuracy(module, test) > 0.8


def test_correlated_noise_learns_digits(digits: tuple[list[Data], Data]) -> None:
    clients, test = digits
    module = _zeros()
    sampler = BallsInBinsSampler(population=300, bins=4, steps=16, seed=1)
    strategy = BandedToeplitz.optimal(steps=16, bands=4, participation=sampler.participation)
    training = FederatedTraining(
        module,
        clients,
        local_sgd(nn.functional.cross_entropy, learning_rate=1.0),
        sampler=sampler,
        clipping=Flat(clip_norm=1.0),
        noise_multiplier=2.5,
        noise=CorrelatedNoise(strategy, participation=sampler.participation, seed=1),
        server=lambda parameters: torch.optim.SGD(parameters, lr=1.0, momentum=0.5),
    )
    training.run()
    assert training.epsilon(1e-4) < 4
    assert _accuracy(module, test) > 0.8


if run_time(__name__):

    class _Unclipped(Clipping):
        """A planted fault: claims a sensitivity of 1 and clips nothing."""

        def groups(self, names: Sequence[str]) -> tuple[int, ...]:
            return (0,) * len(names)

        def factors(self, squared_norms: Tensor) -> Tensor:
            return torch.ones_like(squared_norms)

        @property
        def sensitivity(self) -> float:
            return 1.0

        @property
        def group_sensitivities(self) -> tuple[float, ...]:
            return (1.0,)


def _guesses(clipping: Clipping, canaries: int = 400) -> tuple[int, int, float]:
    """Run once with each canary in or out by a fair coin; guess the surest of them from the model.

    A canary pushes a coordinate of its own.
    """
    coins = np.random.default_rng(7).integers(0, 2, canaries).astype(bool)

    def local(module: nn.Module, data: int) -> None:
        with torch.no_grad():
            next(module.parameters())[0, data] += 20.0

    module = nn.Linear(canaries, 1, bias=False)
    with torch.no_grad():
        module.weight.zero_()
    clients: list[Any] = np.flatnonzero(coins).tolist()
    training = FederatedTraining(
        module,
        clients,
        local,
        sampler=FullBatchSampler(population=len(clients), steps=3),
        clipping=clipping,
        noise_multiplier=3.0,
        noise=SimulatedNoise(3),
    )
    training.run()
    scores = module.weight.detach().numpy().ravel() * len(clients) / 3
    surest = np.argsort(-np.abs(scores - np.median(scores)))[:200]
    right = int(((scores > np.median(scores)) == coins)[surest].sum())
    return right, len(surest), training.epsilon(1e-5)


def _chance(right: int, guesses: int, epsilon: float) -> float:
    """The chance of as many right guesses of an epsilon-private run (Steinke, Nasr, Jagielski 2023)."""
    rate = math.exp(epsilon) / (1 + math.exp(epsilon))
    return float(betainc(right, guesses - right + 1, rate)) if right else 1.0


def test_one_run_does_not_refute_the_claim() -> None:
    right, guesses, epsilon = _guesses(Flat(clip_norm=1.0))
    assert 2 < epsilon < 4
    assert right > guesses / 2

    def check(correct: int) -> None:
        """A right run is refuted with a chance of 0.001."""
        assert _chance(correct, guesses, epsilon) > 1e-3

    accepts_only(check, right, unclipped=guesses)


def test_one_run_refutes_a_run_that_clips_nothing() -> None:
    right, guesses, epsilon = _guesses(_Unclipped())
    assert right == guesses
    assert _chance(right, guesses, epsilon) < 1e-3
