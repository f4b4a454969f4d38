"""Augmented views in training: the same run, the same cost, and all views of an example in one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import ParameterError, UnfitModule
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, default_collate

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine
    from sfumato.learning.recipes.augmentation import Views
    from tests.learning.training.conftest import EXAMPLES, Made, make_data


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.allclose(a, b, atol=1e-6) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("options", [{}, {"max_physical_batch_size": 3}, {"chunk": 2}], ids=str)
def test_views_that_are_all_alike_change_nothing(options: dict[str, Any]) -> None:
    plain, seen = Made(), Made(views=Views(count=3), **options)
    plain.epoch()
    rows = [len(x) for x, _ in seen.loader]
    assert all(number % 3 == 0 for number in rows)
    assert max(rows) <= 3 * options.get("max_physical_batch_size", EXAMPLES)
    seen = Made(views=Views(count=3), **options)
    seen.epoch()
    assert same(plain.weights, seen.weights)
    assert seen.engine.get_epsilon(1e-5) == plain.engine.get_epsilon(1e-5)


def test_each_label_stays_with_its_views() -> None:
    made = Made(views=Views(count=2, transform=lambda x: x + torch.randn(3)))
    known = {round(float(y), 5): x for x, y in zip(*make_data().tensors, strict=True)}
    for x, y in made.loader:
        for row, label in zip(x, y, strict=True):
            assert (row - known[round(float(label), 5)]).abs().max() < 6
        assert not len(x) or not torch.equal(x[0], x[1])
        assert torch.equal(y[::2], y[1::2])


def test_views_of_the_users_own_batches() -> None:
    def as_mapping(examples: list[Any]) -> Any:
        return default_collate([{"inputs": x, "labels": y} for x, y in examples])

    plain = Made()
    plain.epoch()
    loader = DataLoader(make_data(), batch_size=10, collate_fn=as_mapping)
    made = Made(views=Views(count=2), data_loader=loader)
    for batch in made.loader:
        made.optimizer.zero_grad()
        made.loss(batch["inputs"], batch["labels"]).backward()
        made.optimizer.step()
    assert same(plain.weights, made.weights)


def test_rows_that_were_left_out_are_refused() -> None:
    made = Made(views=Views(count=3))
    x, y = next(iter(made.loader))
    with pytest.raises(UnfitModule, match="3 rows in a row for each example"):
        made.module(x[:-1])
    made.loss(x[3:], y[3:]).backward()
    with pytest.raises(ParameterError, match="whole and once"):
        made.optimizer.step()


def test_batches_of_nobody_are_given_and_stepped_with() -> None:
    made = Made(views=Views(count=2), batch_size=1)
    assert made.epoch() == EXAMPLES
    assert made.engine.run.released == EXAMPLES  # among them, at this rate, batches of nobody
    assert any(len(made.engine.run.sampler.batch(step)) == 0 for step in range(EXAMPLES))


def test_the_first_forward_is_tested_with_views_too() -> None:
    made = Made(views=Views(count=2), self_test=True)
    made.epoch()
    mixed = Made(module=nn.Sequential(Centred(), nn.Linear(3, 1)), views=Views(count=2), self_test=True)
    with pytest.raises(UnfitModule, match="changes the outputs of others"):
        mixed.epoch()


if run_time(__name__):

    class Centred(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x - x.mean(0)


def test_a_loss_in_float16_is_scaled_by_a_fixed_number(make: Callable[..., Made]) -> None:
    plain, scaled = make(), make(loss_scale=2.0**10)
    plain.epoch()
    for x, y in scaled.loader:
        scaled.optimizer.zero_grad()
        (scaled.loss(x, y) * 2.0**10).backward()
        scaled.optimizer.step()
    assert same(plain.weights, scaled.weights)


def test_small_gradients_in_float16_are_kept_by_the_scale() -> None:
    found = []
    for scale in (1.0, 2.0**14):
        module = nn.Linear(3, 1)
        engine = Engine(module, Flat(clip_norm=1.0), loss_scale=scale)
        engine.attach()
        with torch.autocast("cpu", dtype=torch.float16):
            output = module(torch.ones(2, 3))
        (output.float().mean() * 1e-8 * scale).backward()
        found.append(engine.clipped_sums().norms.tolist())
    assert found[0] == [[0.0, 0.0]]
    assert found[1] == [pytest.approx([2e-8, 2e-8], rel=1e-2)]  # three entries and the bias of 1e-8 each


def test_a_gradient_scaler_is_refused(make: Callable[..., Made]) -> None:
    made = make()
    scaler = torch.amp.GradScaler("cpu")
    x, y = next(iter(made.loader))
    scaler.scale(made.loss(x, y)).backward()
    before = made.weights
    with pytest.raises(ParameterError, match="pass that as loss_scale="):
        scaler.step(made.optimizer)
    assert same(before, made.weights)
    off = torch.amp.GradScaler("cpu", enabled=False)
    off.scale(made.loss(x, y)).backward()
    made.engine.detach()
    assert not hasattr(made.optimizer, "_step_supports_amp_scaling")
