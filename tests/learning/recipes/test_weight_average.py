"""The average of the weights: its formula, its steps, and that it is no part of training."""

from __future__ import annotations

import copy
from itertools import pairwise
from pathlib import Path

import pytest

from sfumato.errors import ParameterError, UnfitModule
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning.recipes.weight_average import WeightAverage
    from tests.learning.training.conftest import Made


def test_every_step_has_the_weight_that_the_decay_says() -> None:
    torch.manual_seed(0)
    module, decay = nn.Linear(2, 2, dtype=torch.float64), 0.9
    average, seen = WeightAverage(module, decay=decay), []
    for _ in range(12):
        nn.init.normal_(module.weight)
        seen.append(module.weight.detach().clone())
        average.update()
        shares = torch.tensor([decay ** (len(seen) - 1 - s) for s in range(len(seen))], dtype=torch.float64)
        expected = torch.tensordot(shares / shares.sum(), torch.stack(seen), dims=1)
        torch.testing.assert_close(average.weights["weight"], expected)


def test_it_follows_whole_logical_batches_of_a_private_optimizer() -> None:
    made = Made(max_physical_batch_size=3)
    average = WeightAverage(made.module, decay=0.9, optimizer=made.optimizer)
    steps, parts = 0, 0
    for x, y in made.loader:
        made.optimizer.zero_grad()
        made.loss(x, y).backward()
        made.optimizer.step()
        parts += 1
    steps = made.engine.run.released
    assert average.updates == steps < parts
    average.detach()
    made.epoch()
    assert average.updates == steps


def test_a_measurement_with_the_average_is_no_part_of_the_run() -> None:
    plain, made = Made(), Made()
    average = WeightAverage(made.module, decay=0.5, optimizer=made.optimizer)
    x = torch.ones(4, 3)
    for (a, b), (c, d) in zip(plain.loader, made.loader, strict=True):
        plain.optimizer.zero_grad()
        plain.loss(a, b).backward()
        plain.optimizer.step()
        made.optimizer.zero_grad()
        made.loss(c, d).backward()
        with average.applied() as module:
            assert not module.training
            assert not module(x).requires_grad
        made.optimizer.step()
    assert made.module.training
    assert all(torch.equal(one, other) for one, other in zip(plain.weights, made.weights, strict=True))
    assert made.engine.get_epsilon(1e-5) == plain.engine.get_epsilon(1e-5)


def test_own_weights_and_modes_come_back_after_an_error() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout().eval())
    average = WeightAverage(module)
    nn.init.zeros_(module[0].weight)  # type: ignore[arg-type]
    with pytest.raises(UnfitModule, match="leave applied"), average.applied():
        average.update()
    with pytest.raises(UnfitModule, match="one applied"), average.applied(), average.applied():
        pass
    with average.applied():
        assert module[0].weight.any()  # type: ignore[operator]
    assert not module[0].weight.any()  # type: ignore[operator]
    assert [m.training for m in module] == [True, False]


def test_what_is_exported_has_averages_under_every_name() -> None:
    first = nn.Linear(2, 2, bias=False)
    module = nn.ModuleDict({"a": first, "b": nn.Linear(2, 2, bias=False)})
    module["b"].weight = first.weight
    module["b"].register_buffer("kept", torch.ones(1))
    module.bfloat16()
    average = WeightAverage(module, decay=0.99)
    for value in (0.0, 1.0):
        nn.init.constant_(first.weight, value)
        average.update()
    exported = average.export_model()
    assert sorted(exported) == sorted(module.state_dict())
    assert torch.equal(exported["a.weight"], exported["b.weight"])
    assert exported["a.weight"].dtype == torch.bfloat16
    assert abs(float(exported["a.weight"][0, 0]) - 1 / 1.99) < 1e-2
    fresh = copy.deepcopy(module)
    fresh.load_state_dict(exported)


def test_small_shares_count_in_half_precision() -> None:
    module = nn.Linear(1, 1, bias=False).bfloat16()
    average = WeightAverage(module, decay=0.999)
    found = []
    for step in range(2000):
        nn.init.constant_(module.weight, 1.0 if step < 1000 else 2.0)
        average.update()
        found.append(float(average.weights["weight"]))
    assert all(a < b for a, b in pairwise(found[1000:]))


def test_a_kept_average_goes_on() -> None:
    module = nn.Linear(2, 2)
    one, other = WeightAverage(module, decay=0.9), WeightAverage(module, decay=0.9)
    for _ in range(3):
        nn.init.normal_(module.weight)
        one.update()
    other.load_state_dict(one.state_dict())
    nn.init.normal_(module.weight)
    one.update()
    other.update()
    assert one.updates == other.updates == 4
    assert all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)
    with pytest.raises(ParameterError, match="decay must be that of the state"):
        WeightAverage(module, decay=0.8).load_state_dict(one.state_dict())
    with pytest.raises(ParameterError, match="state must have the module's parameters"):
        WeightAverage(nn.Linear(3, 2), decay=0.9).load_state_dict(one.state_dict())
    with pytest.raises(ParameterError, match=r"be what state_dict\(\) returned, but it has no decay"):
        one.load_state_dict({"updates": 1, "weights": {}})


def test_an_average_travels_in_a_checkpoint(tmp_path: Path) -> None:
    made = Made()
    average = WeightAverage(made.module, decay=0.9, optimizer=made.optimizer)
    made.epoch()
    place = tmp_path / "model.pt"
    made.engine.save_checkpoint(path=place, checkpoint_dict={"average": average.state_dict()})
    again = Made()
    extra = again.engine.load_checkpoint(path=place, module=again.module, optimizer=again.optimizer)
    other = WeightAverage(again.module, decay=0.9)
    other.load_state_dict(extra["average"])
    assert other.updates == average.updates > 0
    assert all(torch.equal(other.weights[name], average.weights[name]) for name in average.weights)


def test_what_cannot_be_averaged_is_refused() -> None:
    with pytest.raises(ParameterError, match="decay must be in"):
        WeightAverage(nn.Linear(1, 1), decay=1.0)
    with pytest.raises(UnfitModule, match="got none"):
        WeightAverage(nn.ReLU())
    module = nn.Linear(2, 2)
    average = WeightAverage(module)
    module.weight.requires_grad_(False)
    with pytest.raises(UnfitModule, match="got others"):
        average.update()
