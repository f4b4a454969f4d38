"""The engine against per-example gradients by vmap (by a loop, where vmap cannot), over torch.nn's layers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn

    from sfumato.learning.checks.reference_gradients import per_example
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine, Mode
    from tests.learning.engine.hosts import VARIANTS
    from tests.learning.engine.layers import LAYERS, Layer

    CLIPPING = Flat(clip_norm=0.5)
CLOSE, CLOSE_IN_HALF = 2e-5, 3e-2


def loss(module: nn.Module, inputs: Any) -> Tensor:
    out: Tensor = module(*inputs)
    target = torch.cos(2.0 * torch.arange(out.shape[1]))
    return (out - target).square().sum(1).mean()


@pytest.mark.parametrize("variant", ["plain", "reused", "tied", "functional", "frozen", "autocast"])
@cases("layer", lambda: list(LAYERS))
def test_the_engine_agrees_with_per_example_gradients(layer: str, variant: str) -> None:
    agrees(VARIANTS[variant](LAYERS[layer]), LAYERS[layer], CLOSE_IN_HALF if variant == "autocast" else CLOSE)


@cases("layer", lambda: list(LAYERS))
def test_so_does_the_last_resort(layer: str) -> None:
    agrees(VARIANTS["plain"](LAYERS[layer]), LAYERS[layer], CLOSE, mode="microbatch")


def agrees(module: nn.Module, layer: Layer, close: float, *, mode: Mode = "auto") -> None:
    inputs = layer.inputs()
    expected = per_example(module, loss, inputs)
    engine = Engine(module, CLIPPING, mode=mode)
    engine.attach()
    loss(module, inputs).backward()
    got = engine.clipped_sums()
    engine.detach()
    norms = expected.squared_norms(CLIPPING).sqrt()
    assert got.examples == norms.shape[1]
    assert float((got.norms.double() - norms).abs().max()) <= close * float(norms.max())
    sums = expected.clipped(CLIPPING)
    assert set(got.gradients) == set(sums)
    for name, total in sums.items():
        assert float((got.gradients[name].double() - total).norm()) <= close * CLIPPING.clip_norm, name
    assert all(p.grad is None for p in module.parameters())
