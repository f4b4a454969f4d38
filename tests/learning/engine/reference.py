"""Per-example gradients by the plainest way: one forward and one backward for each example alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.clipping.flat import Flat
from sfumato.learning.engine.engine import Engine

CLIP_NORM = 0.5


def per_example(module: nn.Module, batch: Tensor, loss: Callable[[Any], Tensor]) -> dict[str, Tensor]:
    """Return each example's gradients, of shape (examples, *shape)."""
    parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
    rows = []
    for i in range(len(batch)):
        value = loss(module(batch[i : i + 1])).sum()
        rows.append(
            torch.autograd.grad(value, list(parameters.values()), allow_unused=True, materialize_grads=True)
        )
    return {name: torch.stack([row[k] for row in rows]) for k, name in enumerate(parameters)}


def clipped(gradients: Mapping[str, Tensor], clipping: Clipping) -> tuple[dict[str, Tensor], Tensor]:
    """Return the sums of clipped gradients, and the norms of shape (groups, examples), in float64."""
    groups = clipping.groups(list(gradients))
    count = len(next(iter(gradients.values())))
    squared = torch.zeros(max(groups) + 1, count, dtype=torch.float64)
    for group, gradient in zip(groups, gradients.values(), strict=True):
        squared[group] += gradient.double().flatten(1).square().sum(1)
    factors = clipping.factors(squared)
    return {
        name: (factors[group] @ gradient.double().flatten(1)).view(gradient.shape[1:])
        for group, (name, gradient) in zip(groups, gradients.items(), strict=True)
    }, squared.sqrt()


def square(output: Any) -> Tensor:
    """Return a loss for each example: the mean square of its first output."""
    first = output if isinstance(output, Tensor) else output[0]
    return first.flatten(1).square().mean(1)


def difference(
    module: nn.Module,
    batch: Tensor,
    *,
    loss: Callable[[Any], Tensor] = square,
    clipping: Clipping | None = None,
    **options: Any,
) -> tuple[float, Engine]:
    """Return the largest relative difference of norms and sums from the plain way, and the engine."""
    clipping = clipping or Flat(clip_norm=CLIP_NORM)
    gradients = per_example(module, batch, loss)
    with torch.no_grad():
        sums, norms = clipped(gradients, clipping)
    engine = Engine(module, clipping, **options)
    engine.attach()
    try:
        loss(module(batch)).mean().backward()
        found = engine.clipped_sums()
    finally:
        engine.detach()
    assert found.examples == len(batch)
    assert all(parameter.grad is None for parameter in module.parameters())
    error = torch.stack([(sums[name] - found.gradients[name].double()).norm() for name in sums]).norm()
    size = torch.stack([total.norm() for total in sums.values()]).norm()
    of_norms = (found.norms.double() - norms).abs().max() / norms.max()
    return max(float(error / size), float(of_norms)), engine
