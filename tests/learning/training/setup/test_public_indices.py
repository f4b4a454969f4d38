"""A loader's sampler of public indices becomes the population; samplers that may read data are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Gaussian, Neighboring, PoissonSubsampled
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch.utils.data import (
        DataLoader,
        RandomSampler,
        SubsetRandomSampler,
        TensorDataset,
        WeightedRandomSampler,
    )

    from sfumato.learning import PrivacyEngine, SamplingOptions
    from tests.learning.training.conftest import Made

    Make = Callable[..., Made]


def places(examples: int = 40) -> TensorDataset:
    """Return examples whose first entry is their place."""
    place = torch.arange(examples, dtype=torch.float32)
    return TensorDataset(torch.stack([place, place * 0, place * 0 + 1], 1), place[:, None])


def loader_of(indices: Any, **options: Any) -> DataLoader[Any]:
    return DataLoader(places(), batch_size=5, sampler=SubsetRandomSampler(indices), **options)


def test_only_the_examples_at_public_indices_are_drawn_and_priced(make: Make) -> None:
    made = make(data_loader=loader_of(range(10, 30)), public_indices=True, lr=0.0)
    seen: set[int] = set()
    for _ in range(12):
        for x, y in made.loader:
            made.optimizer.zero_grad()
            made.loss(x, y).backward()
            made.optimizer.step()
            seen |= {int(place) for place in x[:, 0]}
    assert seen == set(range(10, 30))  # each is left out of all 48 batches with probability 1e-6
    run = made.engine.run
    assert (run.sampler.population, run.sampler.neighboring) == (20, Neighboring.ZERO_OUT)
    expected = PoissonSubsampled(Gaussian(1.0, neighboring=Neighboring.ZERO_OUT), 0.25) * 48
    assert made.engine.get_epsilon(1e-3) == expected.epsilon(1e-3)


def test_a_target_is_met_for_the_examples_at_public_indices() -> None:
    module = torch.nn.Linear(3, 1)
    engine = PrivacyEngine()
    engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters()),
        data_loader=loader_of(range(10, 30), drop_last=True),
        target_epsilon=1.0,
        target_delta=1e-3,
        max_grad_norm=1.0,
        epochs=2,
        sampling=SamplingOptions(public_indices=True),
    )
    assert engine.run.sampler.steps == 8
    assert 0.99 < engine.run.loss_of(8).epsilon(1e-3) <= 1.0


@pytest.mark.parametrize(
    ("loader", "options", "message"),
    [
        (
            lambda: loader_of(range(20)),
            {},
            "data_loader must have torch's RandomSampler.*public_indices=True",
        ),
        (lambda: loader_of([1, 2, 1]), {"public_indices": True}, "indices must be different places"),
        (lambda: loader_of([1, 40]), {"public_indices": True}, "indices must be different places"),
        (lambda: loader_of([-1, 4]), {"public_indices": True}, "indices must be different places"),
        (
            lambda: loader_of(range(20)),
            {"public_indices": True, "population": 20},
            "population must be left out with public_indices, got 20",
        ),
        (
            lambda: DataLoader(places(), batch_size=5, sampler=WeightedRandomSampler([0.5] * 40, 40)),
            {"public_indices": True},
            "data_loader must have a SubsetRandomSampler, got a value of type WeightedRandomSampler",
        ),
        (
            lambda: DataLoader(places(), batch_size=5, sampler=RandomSampler(places(), replacement=True)),
            {},
            "data_loader must have torch's RandomSampler",
        ),
        (
            lambda: DataLoader(places(), batch_size=5, shuffle=True),
            {"public_indices": True},
            "data_loader must have a SubsetRandomSampler, got a value of type RandomSampler",
        ),
    ],
)
def test_what_may_follow_from_data_is_refused(
    make: Make, loader: Callable[[], Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        make(data_loader=loader(), **options)


def test_a_second_run_of_one_module_is_refused_when_it_is_made(make: Make) -> None:
    """Also before the first forward, at which the engine is attached."""
    first = make(self_test=True)
    for self_test in (True, False):
        with pytest.raises(ParameterError, match="module must belong to one run"):
            make(module=first.module, self_test=self_test)
    first.engine.detach()
    make(module=first.module, self_test=True).epoch()
