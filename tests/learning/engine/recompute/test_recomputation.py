"""A forward that is run again: the same sums as in one piece, and the same draws the second time."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import UnfitModule
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine
    from tests.learning.engine.reference import square

    class Turning(nn.Module):
        """Takes another way when five examples come."""

        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            layer = self.one if len(x) != 5 else self.other
            output: Tensor = layer(x)
            return output


WAYS: dict[str, dict[str, Any]] = {
    "in chunks": {"chunk": 3},
    "by vmap": {"mode": "vmap"},
    "by vmap, few at a time": {"mode": "vmap", "memory": 1024},
    "one by one": {"mode": "microbatch"},
}


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


@pytest.mark.parametrize("way", WAYS)
def test_sums_and_norms_are_those_of_the_whole_batch(way: str) -> None:
    batch, found = torch.randn(8, 4, generator=torch.Generator().manual_seed(1)), []
    for options in ({}, WAYS[way]):
        module = net()
        engine = Engine(module, Flat(clip_norm=0.5), **options)
        engine.attach()
        square(module(batch)).mean().backward()
        found.append(engine.clipped_sums())
    whole, again = found
    assert whole.examples == again.examples == 8
    torch.testing.assert_close(again.norms, whole.norms)
    torch.testing.assert_close(again.gradients, whole.gradients)


@pytest.mark.parametrize("way", WAYS)
def test_the_second_run_drops_what_the_first_one_dropped(way: str) -> None:
    """Of a dropped output the gradient is zero: drawn anew, a quarter of 512 would not fit their outputs."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 64, bias=False), nn.Dropout(0.5))
    batch = torch.randn(8, 4)
    engine = Engine(module, Flat(clip_norm=2.0**20), **WAYS[way])
    engine.attach()
    output = module(batch)
    output.sum().div(8).backward()
    dropped = output.detach() == 0
    assert 0.25 < dropped.float().mean() < 0.75
    kept_rows = (~dropped).float() * 2
    torch.testing.assert_close(engine.clipped_sums().gradients["0.weight"], kept_rows.t() @ batch)


def test_a_forward_that_turns_for_a_part_of_the_batch_is_refused() -> None:
    module = Turning()
    engine = Engine(module, Flat(clip_norm=1.0), chunk=5)
    engine.attach()
    loss = square(module(torch.randn(8, 4))).mean()
    with pytest.raises(UnfitModule, match="same way for all parts of a batch"):
        loss.backward()
