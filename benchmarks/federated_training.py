"""Digits of 1,000 clients: accuracy with noise that the clients add, and with that of a trusted server."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import torch
from scipy.stats import t as student
from sklearn.datasets import load_digits
from torch import Tensor, nn

from sfumato.federated import DistributedDiscreteGaussian
from sfumato.learning import (
    DistributedNoiseAggregator,
    FederatedTraining,
    Flat,
    FullBatchSampler,
    SimulatedNoise,
    local_sgd,
    noise_for,
)
from sfumato.privacy import Neighboring

__all__ = ["training_accuracy"]

_CLIENTS, _ROUNDS, _EPSILON, _DELTA = 1000, 8, 3.0, 1e-5
_MINIMUM, _COLLUDERS, _BITS, _CLIP_NORM = 900, 50, 18, 1.0

Data = tuple[Tensor, Tensor]


def training_accuracy(seeds: int) -> None:
    """Print the difference of both accuracies with its standard error, and the cost of a round with masks."""
    torch.set_num_threads(1)
    central = noise_for(_sampler(0), epsilon=_EPSILON, delta=_DELTA)
    noise = DistributedDiscreteGaussian.calibrated(
        epsilon=_EPSILON,
        delta=_DELTA,
        rounds=_ROUNDS,
        clients=_CLIENTS,
        minimum_survivors=_MINIMUM,
        colluders=_COLLUDERS,
        dimension=650,
        clip_norm=Flat(clip_norm=_CLIP_NORM).sensitivity,
        bits=_BITS,
    )
    scores = []
    for seed in range(seeds):
        clients, test = _data(seed)
        trusted = _training(clients, seed, central, None)
        trusted.run()
        shared = _training(clients, seed, noise.noise_multiplier, _aggregator(seed, masks=False))
        shared.run()
        assert max(trusted.epsilon(_DELTA), shared.epsilon(_DELTA)) <= _EPSILON
        assert not shared.aborted
        scores.append((_accuracy(trusted.module, test), _accuracy(shared.module, test)))
    found = 100 * np.array(scores)
    below = found[:, 0] - found[:, 1]
    error = below.std(ddof=1) / np.sqrt(seeds)
    half = float(student.ppf(0.975, seeds - 1)) * error
    print(f"\nfederated training on digits, {_CLIENTS:,} clients of 1 or 2 images, {_ROUNDS} rounds of all")
    print(f"  user-level epsilon {_EPSILON} at delta {_DELTA}; {_MINIMUM} survivors, {_COLLUDERS} colluders")
    print(f"  trusted server      {found[:, 0].mean():8.2f} % of the test images ({seeds} seeds)")
    print(f"  distributed noise   {found[:, 1].mean():8.2f} %, 5 % of the clients lost in each round")
    print(f"  difference          {below.mean():8.2f} points, standard error {error:.2f} (target at most 1)")
    print(f"  95 % interval of it {below.mean() - half:8.2f} to {below.mean() + half:.2f}, by Student's t")
    _masked_round(noise.noise_multiplier)


def _masked_round(noise_multiplier: float) -> None:
    """Run one round with all keys and masks, and the same one without: the models are equal."""
    clients, _ = _data(0)
    models, seconds = [], []
    for masks in (True, False):
        training = _training(clients, 0, noise_multiplier, _aggregator(0, masks=masks))
        start = time.process_time()
        training.run(1)
        seconds.append(time.process_time() - start)
        assert not training.aborted
        models.append(torch.cat([part.detach().flatten() for part in training.module.parameters()]))
    assert torch.equal(*models)
    print(f"  a round with masks  {seconds[0]:8.2f} s CPU, without {seconds[1]:.2f} s, the models are equal")


def _sampler(seed: int) -> FullBatchSampler:
    return FullBatchSampler(
        population=_CLIENTS, steps=_ROUNDS, neighboring=Neighboring.ZERO_OUT, seed=seed + 1
    )


def _aggregator(seed: int, *, masks: bool) -> DistributedNoiseAggregator:
    lost = np.random.default_rng(seed).random((_ROUNDS, _CLIENTS)) < 0.05

    def dropped(number: int, client: int, message: str) -> bool:
        return message == "vector" and bool(lost[number, client])

    return DistributedNoiseAggregator(
        minimum_survivors=_MINIMUM, colluders=_COLLUDERS, bits=_BITS, masks=masks, dropped=dropped, rng=seed
    )


def _training(
    clients: list[Data], seed: int, noise_multiplier: float, aggregation: DistributedNoiseAggregator | None
) -> FederatedTraining[Data]:
    module = nn.Linear(64, 10)
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return FederatedTraining(
        module,
        clients,
        local_sgd(nn.functional.cross_entropy, learning_rate=1.0),
        sampler=_sampler(seed),
        clipping=Flat(clip_norm=_CLIP_NORM),
        noise_multiplier=noise_multiplier,
        noise=SimulatedNoise(seed) if aggregation is None else None,
        aggregation=aggregation,
        server=lambda parameters: torch.optim.SGD(parameters, lr=2.0, momentum=0.5),
    )


def _data(seed: int) -> tuple[list[Data], Data]:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    inputs = torch.tensor(images[order] / 16, dtype=torch.float32)
    targets = torch.tensor(labels[order])
    # Unbalanced: the first half of the clients have two images, the others one.
    starts = [*range(0, _CLIENTS, 2), *range(_CLIENTS, _CLIENTS + _CLIENTS // 2), _CLIENTS * 3 // 2]
    clients = [(inputs[first:last], targets[first:last]) for first, last in pairwise(starts)]
    return clients, (inputs[starts[-1] :], targets[starts[-1] :])


def _accuracy(module: nn.Module, test: Data) -> float:
    with torch.no_grad():
        return float((module(test[0]).argmax(1) == test[1]).double().mean())
