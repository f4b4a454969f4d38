"""Per-example gradients by other means than the engine's: one example at a time, by vmap or in a loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from sfumato.learning.checks.batch_tensors import batch_size, is_example, leaves, mapped, rows
from sfumato.learning.checks.double_precision import squared_sum, weighted_sum
from sfumato.learning.clipping.clipping import Clipping

__all__ = ["Loss", "PerExample", "looped", "per_example", "vmapped"]

Loss: TypeAlias = Callable[[nn.Module, Any], Tensor]
"""A loss of a module on a batch, as one number."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PerExample:
    """The gradients of each example's own loss.

    Parameters
    ----------
    gradients : dict of str to Tensor of shape (examples, ...)
        For each parameter that requires a gradient.
    losses : Tensor of shape (examples,)
    way : str
        ``"vmap"`` or ``"one at a time"``.
    """

    gradients: dict[str, Tensor]
    losses: Tensor
    way: str

    def squared_norms(self, clipping: Clipping) -> Tensor:
        """Return the squared norms in float64, of shape (groups, examples)."""
        groups = clipping.groups(list(self.gradients))
        sums = torch.zeros(max(groups) + 1, len(self.losses), dtype=torch.float64)
        for group, gradient in zip(groups, self.gradients.values(), strict=True):
            sums[group] += torch.tensor([squared_sum(row) for row in gradient], dtype=torch.float64)
        return sums

    def clipped(self, clipping: Clipping) -> dict[str, Tensor]:
        """Return the sums of clipped gradients, in float64."""
        return self.weighted(clipping.factors(self.squared_norms(clipping)), clipping)

    def weighted(self, factors: Tensor, clipping: Clipping) -> dict[str, Tensor]:
        """Return the sums of gradients times factors of shape (groups, examples), in float64."""
        groups = clipping.groups(list(self.gradients))
        return {
            name: weighted_sum(factors[group], gradient)
            for group, (name, gradient) in zip(groups, self.gradients.items(), strict=True)
        }


class _Whole(nn.Module):
    """A loss as a module, so that it can be called with other parameters, whatever it does with them."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.module, self._loss = module, loss

    def forward(self, batch: Any) -> Tensor:
        return self._loss(self.module, batch)


def per_example(module: nn.Module, loss: Loss, batch: Any) -> PerExample:
    """Return per-example gradients by vmap, or in a loop where vmap cannot."""
    try:
        return vmapped(module, loss, batch)
    except (RuntimeError, ValueError, NotImplementedError, TypeError, AttributeError):
        return looped(module, loss, batch)


def vmapped(module: nn.Module, loss: Loss, batch: Any) -> PerExample:
    """Return per-example gradients by one `torch.func.vmap` over the whole module and its loss.

    Raises
    ------
    Exception
        Whatever an operation raises that vmap cannot batch.
    """
    whole, size = _Whole(module, loss), batch_size(batch)
    whole.training = module.training
    trained = {name: p.detach() for name, p in whole.named_parameters() if p.requires_grad}
    examples = [tensor for _, tensor in leaves(batch) if is_example(tensor, size)]

    def one(parameters: dict[str, Tensor], example: list[Tensor]) -> Tensor:
        parts = iter(example)
        single = mapped(lambda _, t: next(parts)[None] if is_example(t, size) else t, batch)
        value: Tensor = functional_call(whole, parameters, (single,))
        return value

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        gradients, losses = vmap(grad_and_value(one), in_dims=(None, 0))(trained, examples)
    plain = {name.removeprefix("module."): gradient for name, gradient in gradients.items()}
    return PerExample(gradients=plain, losses=losses.detach(), way="vmap")


def looped(module: nn.Module, loss: Loss, batch: Any) -> PerExample:
    """Return per-example gradients by a backward pass for each example."""
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    gathered: dict[str, list[Tensor]] = {name: [] for name in trained}
    losses = []
    for index in range(batch_size(batch)):
        value = loss(module, rows(batch, torch.tensor([index])))
        found = torch.autograd.grad(value, list(trained.values()), allow_unused=True, materialize_grads=True)
        losses.append(value.detach())
        for name, gradient in zip(trained, found, strict=True):
            gathered[name].append(gradient.detach().to_dense())
    gradients = {name: torch.stack(parts) for name, parts in gathered.items()}
    return PerExample(gradients=gradients, losses=torch.stack(losses), way="one at a time")
