from __future__ import annotations

from collections.abc import Mapping

import pytest

from sfumato.errors import ParameterError
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine
    from sfumato.learning.engine.functional import clipped_grad


def loss(parameters: Mapping[str, Tensor], x: Tensor, scale: float, y: Tensor) -> Tensor:
    return (parameters["weight"] @ x + parameters["bias"] - y).square().mean() * scale


@pytest.mark.parametrize("memory", [1, 2**20])
def test_it_agrees_with_the_engine(memory: int) -> None:
    torch.manual_seed(0)
    module, x, y = nn.Linear(4, 3), torch.randn(9, 4), torch.randn(9, 3)
    grad = clipped_grad(loss, clip_norm=0.7, batch_argnums=(1, 3), memory=memory)
    found = grad(dict(module.named_parameters()), x, 2.0, y)
    engine = Engine(module, Flat(clip_norm=0.7))
    engine.attach()
    ((module(x) - y).square().mean(1) * 2.0).mean().backward()
    expected = engine.clipped_sums()
    assert found.examples == 9
    torch.testing.assert_close(found.norms, expected.norms)
    torch.testing.assert_close(found.gradients, expected.gradients)
    assert grad.sensitivity == Flat(clip_norm=0.7).sensitivity


def test_examples_that_are_not_finite_and_empty_batches_add_nothing() -> None:
    grad = clipped_grad(loss, clip_norm=1.0, batch_argnums=(1, 3))
    parameters = {"weight": torch.ones(3, 4), "bias": torch.zeros(3)}
    x, y = torch.randn(3, 4), torch.randn(3, 3)
    alone = grad(parameters, x[:2], 1.0, y[:2])
    x[2] = torch.nan
    torch.testing.assert_close(grad(parameters, x, 1.0, y).gradients, alone.gradients)
    empty = grad(parameters, x[:0], 1.0, y[:0])
    assert empty.examples == 0
    assert not any(total.any() for total in empty.gradients.values())


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(ParameterError, match="clip_norm must"):
        clipped_grad(loss)
    with pytest.raises(ParameterError, match="clip_norm must"):
        clipped_grad(loss, clip_norm=1.0, clipping=Flat(clip_norm=1.0))
    for places in (0, (1, 1), ()):
        with pytest.raises(ParameterError, match="batch_argnums must"):
            clipped_grad(loss, clip_norm=1.0, batch_argnums=places)
    with pytest.raises(ParameterError, match="randomness must"):
        clipped_grad(loss, clip_norm=1.0, randomness="none")
    with pytest.raises(ParameterError, match="as many rows"):
        clipped_grad(loss, clip_norm=1.0, batch_argnums=(1, 3))({}, torch.ones(2, 4), 1.0, torch.ones(3))
