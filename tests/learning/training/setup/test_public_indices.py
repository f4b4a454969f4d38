"""A loader's sampler of public indices becomes the population; samplers that may read data are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Gaussian, Neighboring, PoissonSubsampled
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch.utils.data import (
        BatchSampler,
        DataLoader,
        RandomSampler,
        Sampler,
        SequentialSampler,
        SubsetRandomSampler,
        TensorDataset,
        WeightedRandomSampler,
    )
    from torch.utils.data.distributed import DistributedSampler

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
            "data_loader must have a SubsetRandomSampler or a list .* of type WeightedRandomSampler",
        ),
        (
            lambda: DataLoader(places(), batch_size=5, sampler=RandomSampler(places(), replacement=True)),
            {},
            "data_loader must have torch's RandomSampler",
        ),
        (
            lambda: DataLoader(places(), batch_size=5, shuffle=True),
            {"public_indices": True},
            "data_loader must have a SubsetRandomSampler or a list .* got a value of type RandomSampler",
        ),
    ],
)
def test_what_may_follow_from_data_is_refused(
    make: Make, loader: Callable[[], Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        make(data_loader=loader(), **options)


def test_lists_and_batch_samplers_of_public_indices_are_taken(make: Make) -> None:
    for options in (
        {"sampler": [1, 3, 5, 7, 9], "batch_size": 2},
        {"sampler": range(1, 10, 2), "batch_size": 2},
        {"batch_sampler": BatchSampler(SubsetRandomSampler([1, 3, 5, 7, 9]), 2, drop_last=False)},
        {"batch_sampler": BatchSampler((1, 3, 5, 7, 9), 2, drop_last=False)},
    ):
        loader: Any = DataLoader(places(), **options)
        made = make(data_loader=loader, public_indices=True, lr=0.0)
        assert (made.engine.run.sampler.population, len(made.loader)) == (5, 3)
        drawn = torch.cat([x[:, 0] for _ in range(4) for x, _ in made.loader])
        assert {int(place) for place in drawn} == {1, 3, 5, 7, 9}
        with pytest.raises(ParameterError, match=r"public_indices=True\) for indices that are public"):
            make(data_loader=loader)
    for indices in ([1.5, 2.0], ["a"]):
        with pytest.raises(ParameterError, match="indices must be whole numbers"):
            make(data_loader=DataLoader(places(), sampler=indices, batch_size=2), public_indices=True)


def test_every_other_way_to_draw_is_refused(make: Make) -> None:
    class Own(Sampler[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(40))

        def __len__(self) -> int:
            return 40

    class OwnBatches(BatchSampler):
        """Of a class of its own, which may look at what it gives."""

    data = places()
    weights = WeightedRandomSampler([0.5] * 40, 40)
    ways: dict[str, dict[str, Any]] = {
        "Own": {"sampler": Own(), "batch_size": 5},
        "OwnBatches": {"batch_sampler": OwnBatches(SequentialSampler(data), 5, drop_last=False)},
        "WeightedRandomSampler": {"batch_sampler": BatchSampler(weights, 5, drop_last=False)},
        "list": {"batch_sampler": [[1, 2], [3, 4]]},
        "RandomSampler": {"sampler": RandomSampler(data, num_samples=20), "batch_size": 5},
        "DistributedSampler": {"sampler": DistributedSampler(data, 2, 0), "batch_size": 5},
    }
    for name, options in ways.items():
        loader = DataLoader(data, **options)
        for public in (False, True):
            with pytest.raises(
                ParameterError, match=f"data_loader must have .*, got a value of type {name};"
            ):
                make(data_loader=loader, public_indices=public)


def test_a_second_run_of_one_module_is_refused_when_it_is_made(make: Make) -> None:
    """Also before the first forward, at which the engine is attached."""
    first = make(self_test=True)
    for self_test in (True, False):
        with pytest.raises(ParameterError, match="module must belong to one run"):
            make(module=first.module, self_test=self_test)
    first.engine.detach()
    make(module=first.module, self_test=True).epoch()
