"""Losses for a test: of a module's own outputs, and the outputs that a given loss sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.errors import UnfitModule
from sfumato.learning.checks.batch_tensors import batch_size, call, is_example, leaves
from sfumato.learning.checks.reference_gradients import Loss

__all__ = ["OwnLoss", "OwnNumber", "outputs_of"]

_TURN = 2.0


@final
class OwnLoss:
    """A curved loss of all outputs that have a row for each example, added up as declared.

    Where there are none and the module gives one number, that is the loss. Beside such outputs, `number`
    reports one that may be the loss that a loop takes, as of models that are given labels.

    Parameters
    ----------
    reduction : {"mean", "sum"}
    """

    def __init__(self, reduction: str) -> None:
        self._reduction = reduction
        self._paths: set[str] | None = None
        self.number: str | None = None
        """Which output is a loss by itself, beside those in rows; None if there is none."""

    def __call__(self, module: nn.Module, batch: Any) -> Tensor:
        """Return the loss; outputs that once had no row for each example are left out from then on."""
        size = batch_size(batch)
        outputs = dict(leaves(call(module, batch)))
        with_rows = {p for p, t in outputs.items() if is_example(t, size) and t.is_floating_point()}
        self._paths = with_rows if self._paths is None else self._paths & with_rows
        chosen = [outputs[path] for path in sorted(self._paths)]
        numbers = {path: t for path, t in outputs.items() if not t.ndim and t.is_floating_point()}
        if not chosen and len(numbers) == 1:
            return next(iter(numbers.values()))
        losses = [path for path, t in numbers.items() if t.requires_grad]
        named = [path for path in losses if path.endswith("loss")]
        if len(losses) == 1 or len(named) == 1:
            self.number = (named or losses)[0]
        if not chosen:
            rule = "have float entries in a row for each example"
            _check.refuse_state(
                "outputs", rule, f"no output has any: {sorted(outputs)}", "pass loss_fn=", error=UnfitModule
            )
        total = sum((_each(tensor) for tensor in chosen), start=torch.zeros(size, device=chosen[0].device))
        return total.mean() if self._reduction == "mean" else total.sum()


@final
class OwnNumber:
    """One output of the module as the loss.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, module: nn.Module, batch: Any) -> Tensor:
        """Return it."""
        return dict(leaves(call(module, batch)))[self._path]


def _each(tensor: Tensor) -> Tensor:
    flat = tensor.flatten(1) if tensor.ndim > 1 else tensor[:, None]
    target = torch.arange(flat.shape[1], device=flat.device).mul(_TURN).cos()
    return (flat.float() - target).square().mean(1)


def outputs_of(loss: Loss) -> Callable[[nn.Module, Any], Any]:
    """Return what runs a loss and gives the outputs of the module in it."""

    def run(module: nn.Module, batch: Any) -> Any:
        outputs_seen: list[Any] = []
        handle = module.register_forward_hook(lambda *called: outputs_seen.append(called[-1]))
        try:
            loss(module, batch)
        finally:
            handle.remove()
        if not outputs_seen:
            remedy = "call it in loss_fn"
            _check.refuse_state("loss_fn", "call the module", "it did not", remedy, error=UnfitModule)
        return outputs_seen

    return run
