"""Leaving out one example moves the sum by at most the sensitivity, whatever the module and the batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine, Mode


WIDTH = 4
BLOCKS = (
    "linear",
    "no bias",
    "again",
    "tied",
    "functional",
    "norm",
    "bare",
    "attention",
    "recurrent",
    "grid",
)
SLACK = 1e-4
"""What sums of floats may add to the sensitivity: some 2**-24 for each of a few thousand additions."""


if run_time(__name__):

    class Net(nn.Module):
        """Blocks on sequences of rows, each of which uses parameters in a way of its own."""

        def __init__(self, blocks: tuple[str, ...], scale: float) -> None:
            super().__init__()
            self.blocks = blocks
            self.first, self.bare = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(WIDTH))
            self.layers = nn.ModuleList(self.made(block) for block in blocks)
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.mul_(scale)

        def made(self, block: str) -> nn.Module:
            if block == "norm":
                return nn.LayerNorm(WIDTH)
            if block == "attention":
                return nn.MultiheadAttention(WIDTH, 2, batch_first=True)
            if block == "recurrent":
                return nn.GRU(WIDTH, WIDTH, batch_first=True)
            if block == "grid":
                return nn.Conv1d(WIDTH, WIDTH, 3, padding="same")
            layer = nn.Linear(WIDTH, WIDTH, bias=block != "no bias")
            if block == "tied":
                layer.weight = self.first.weight
            return layer

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            for block, layer in zip(self.blocks, self.layers, strict=True):
                x = x + torch.tanh(self.used(block, layer, x))
            return x.mean(1)

        def used(self, block: str, layer: Any, x: Tensor) -> Any:
            if block == "attention":
                return layer(x, x, x, need_weights=False)[0]
            if block == "recurrent":
                return layer(x)[0]
            if block == "grid":
                return layer(x.transpose(1, 2)).transpose(1, 2)
            h = layer(x)
            if block == "again":
                h = self.first(h)
            elif block == "functional":
                h = nn.functional.linear(h, self.first.weight)
            elif block == "bare":
                h = h * self.bare + self.bare
            return h


@dataclass(frozen=True)
class Case:
    blocks: tuple[str, ...]
    size: int
    length: int
    scale: float
    clip_norm: float
    mean: bool
    mode: Mode
    seed: int


CASES = st.builds(
    Case,
    blocks=st.lists(st.sampled_from(BLOCKS), max_size=3).map(tuple),
    size=st.integers(1, 5),
    length=st.integers(1, 4),
    scale=st.sampled_from((0.1, 1.0, 3.0)),
    clip_norm=st.sampled_from((1e-3, 0.1, 1.0, 100.0)),
    mean=st.booleans(),
    mode=st.sampled_from(("auto", "auto", "vmap", "microbatch")),
    seed=st.integers(0, 99),
)


def sums(engine: Engine, module: nn.Module, rows: Tensor, case: Case) -> Mapping[str, Tensor]:
    engine.attach()
    value = module(rows).square().sum(1)
    (value.mean() if case.mean else value.sum()).backward()
    found = engine.clipped_sums()
    assert found.examples == len(rows)
    engine.detach()
    return found.gradients


def moved(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> float:
    squares = [(first[name] - second[name]).detach().double().square().sum() for name in first]
    return float(torch.stack(squares).sum().sqrt())


def made(case: Case) -> tuple[nn.Module, Tensor, Flat, Engine]:
    torch.manual_seed(case.seed)
    module = Net(case.blocks, case.scale)
    rows = torch.randn(case.size, case.length, WIDTH) * 10 ** torch.randint(-2, 2, (case.size, 1, 1))
    clipping = Flat(clip_norm=case.clip_norm)
    reduction: Any = "mean" if case.mean else "sum"
    return module, rows, clipping, Engine(module, clipping, loss_reduction=reduction, mode=case.mode)


@settings(max_examples=60)
@given(case=CASES)
def test_one_example_moves_the_sum_by_at_most_the_sensitivity(case: Case) -> None:
    module, rows, clipping, engine = made(case)
    whole = sums(engine, module, rows, case)
    for place in range(case.size):
        rest = torch.cat([rows[:place], rows[place + 1 :]])
        without = sums(engine, module, rest, case) if len(rest) else {n: 0 * g for n, g in whole.items()}
        assert moved(whole, without) <= clipping.sensitivity * (1 + SLACK)


@settings(max_examples=20)
@given(case=CASES, bad=st.sampled_from((float("nan"), float("inf"))), place=st.integers(0, 4))
def test_an_example_without_a_finite_gradient_adds_nothing(case: Case, bad: float, place: int) -> None:
    module, rows, clipping, engine = made(case)
    spoiled = torch.cat([rows[:place], torch.full_like(rows[:1], bad), rows[place:]])
    whole = sums(engine, module, rows, case)
    assert moved(whole, sums(engine, module, spoiled, case)) <= clipping.sensitivity * SLACK


@settings(max_examples=20)
@given(case=CASES, cut=st.integers(1, 4))
def test_parts_of_a_batch_add_up_to_the_whole(case: Case, cut: int) -> None:
    module, rows, clipping, engine = made(case)
    whole = sums(engine, module, rows, case)
    engine.attach()
    for part in rows.split(cut):
        value = module(part).square().sum(1)
        (value.mean() if case.mean else value.sum()).backward()
    found = engine.clipped_sums()
    assert found.examples == case.size
    assert moved(whole, found.gradients) <= clipping.sensitivity * SLACK * case.size


@pytest.mark.parametrize("mode", ["auto", "vmap", "microbatch"])
def test_no_example_gives_zero(mode: Mode) -> None:
    case = Case((), 2, 1, 1.0, 1.0, mean=True, mode=mode, seed=0)
    module, rows, _, engine = made(case)
    sums(engine, module, rows, case)
    empty = sums(engine, module, rows[:0], case)
    assert all(float(total.abs().max()) == 0 for total in empty.values())
