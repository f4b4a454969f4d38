"""Batch normalisation that is not frozen any more, and inputs standardised over their batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import UnfitModule
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from sfumato.learning.training.loop.forward_checks import standardised
    from tests.learning.training.conftest import Made

Make = Callable[..., "Made"]


def frozen() -> Any:
    torch.manual_seed(0)
    module: Any = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    module[1].eval()
    return module


def test_frozen_batch_normalisation_trains_and_must_stay_frozen(make: Make) -> None:
    module = frozen()
    statistics = module[1].running_mean.clone()
    made = make(module=module, self_test=True)
    made.epoch()
    assert torch.equal(module[1].running_mean, statistics)
    module.train()  # as a loop does for each epoch
    with pytest.raises(UnfitModule, match=r"got 1 in train mode; call its eval\(\) after each train\(\)"):
        made.epoch()
    made.engine.detach()
    module(torch.randn(4, 3)).sum().backward()


def test_batch_normalisation_that_was_not_frozen_is_refused(make: Make) -> None:
    module = frozen().train()
    with pytest.raises(UnfitModule, match="normalises over the batch"):
        make(module=module)
    with pytest.raises(UnfitModule, match="normalises over the batch"):
        make(module=module.eval())  # the loop's train() would undo it


def test_inputs_standardised_over_their_batch_are_refused(make: Make) -> None:
    made = make(batch_size=30)
    x, y = next(iter(made.loader))
    with pytest.raises(UnfitModule, match="inputs must not be standardised over their batch"):
        made.loss((x - x.mean(0)) / (x.std(0) + 1e-8), y)
    made.loss(x, y).backward()
    made.optimizer.step()


def test_what_is_standardised_over_a_batch_is_recognised() -> None:
    draw = torch.Generator().manual_seed(0)
    images = torch.rand(16, 3, 5, 5, generator=draw)
    rows = torch.rand(16, 6, generator=draw)

    def over(x: Any, dims: Any) -> Any:
        return (x - x.mean(dims, keepdim=True)) / x.std(dims, keepdim=True)

    for batch in (over(rows, 0), over(images, (0, 2, 3)), over(rows, (0, 1)), over(images, (0, 1, 2, 3))):
        assert standardised(batch)
        assert not standardised(2 * batch)
    signs = torch.tensor([1.0, -1.0]).repeat(8)[:, None]
    alone = (over(rows, 1), over(images, (2, 3)), over(images, (1, 2, 3)))
    for batch in (rows, images, signs, *alone, torch.randn(16, 6, generator=draw), torch.zeros(16, 6)):
        assert not standardised(batch)


def test_random_inputs_for_the_self_test_may_be_drawn_by_the_caller(make: Make) -> None:
    class Coded(nn.Module):
        """Takes the codes 100 to 109 only."""

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 1)

        def forward(self, codes: torch.Tensor) -> torch.Tensor:
            if bool((codes < 100).any()):
                raise ValueError("no such code")
            scores: torch.Tensor = self.table(codes - 100)[:, 0]
            return scores

    def draw(size: int, seed: int) -> torch.Tensor:
        return torch.randint(100, 110, (size, 1), generator=torch.Generator().manual_seed(seed))

    data = TensorDataset(torch.randint(100, 110, (40, 1)), torch.zeros(40, 1))
    options: dict[str, Any] = {"data_loader": DataLoader(data, batch_size=10), "self_test": True}
    made = make(module=Coded(), **options)
    with pytest.raises(UnfitModule, match="pass random_batch="):
        made.epoch()
    made = make(module=Coded(), random_batch=draw, **options)
    assert made.epoch() == made.engine.run.cursor == 4
