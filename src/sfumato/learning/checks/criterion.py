"""Testing a loss by itself, on random outputs and targets of the form that it is called with."""

from __future__ import annotations

import warnings
from typing import Any, final

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.errors import UnfitModule
from sfumato.learning.checks.batch_tensors import batch_size, call, leaves, mapped, rows
from sfumato.learning.checks.random_batches import drawing_for
from sfumato.learning.checks.state_restoration import preserved_state, seeded
from sfumato.learning.engine.engine import Reduction

__all__ = ["check_criterion", "check_loss", "watch_criterion"]

_BY_CLASS = (nn.CrossEntropyLoss, nn.NLLLoss)
_NO_CLASS = -100
_EXAMPLES = 8
_CLOSE = 1e-4


def check_criterion(criterion: object) -> None:
    """Refuse a criterion that divides by what some of the examples are.

    Raises
    ------
    ParameterError
        If a class is left out of a mean, or classes have weights in one.

    Notes
    -----
    The mean of a cross entropy is over the examples that are not ignored, each by its class's weight: so a
    label moves the gradients of all others, and no clipping of single examples bounds that.
    """
    if getattr(criterion, "reduction", "") != "mean" or not isinstance(criterion, _BY_CLASS):
        return
    remedy = "use reduction='sum' for both, or the mean of reduction='none' over the batch"
    if criterion.ignore_index != _NO_CLASS:
        rule = "divide by the number of examples"
        _check.refuse_state("criterion", rule, "with ignore_index a mean divides by another number", remedy)
    if criterion.weight is not None:
        rule = "divide by the number of examples"
        _check.refuse_state("criterion", rule, "with class weights a mean divides by their sum", remedy)


def watch_criterion(criterion: object, *, loss_reduction: Reduction) -> None:
    """Have a loss that is a module tested at its first call on examples, by `check_loss`."""
    if isinstance(criterion, nn.Module):
        _FirstCall(criterion, loss_reduction).watch()


def check_loss(criterion: nn.Module, batch: Any, *, loss_reduction: Reduction, seed: int = 0) -> None:
    """Refuse a loss that is no mean, or sum, of a loss of each example alone.

    Parameters
    ----------
    criterion : torch.nn.Module
    batch : object
        What it is called with; its form is read, never its values.
    loss_reduction : {"mean", "sum"}
    seed : int

    Raises
    ------
    UnfitModule
        If on random examples the loss is not that of the single ones, added up as declared.

    Notes
    -----
    The engine clips what each example's outputs add, by the gradient that came to them. If that gradient
    follows from others' outputs or labels, or from their number otherwise than as declared, an example moves
    what the others add, and the clipping's sensitivity does not bound it. A backward does not show it: this
    tries the loss itself. What passes is no proof.
    """
    device = next(tensor.device.type for _, tensor in leaves(batch))
    plain = torch.autocast(device, enabled=False)
    with preserved_state(criterion), seeded(criterion, seed), torch.no_grad(), plain:
        draw = drawing_for(batch, lambda drawn: call(criterion, drawn)).batch
        drawn = mapped(lambda _, tensor: _wide(tensor), draw(_EXAMPLES, seed))
        values = [call(criterion, drawn)]
        again = call(criterion, drawn)
        values += [call(criterion, rows(drawn, torch.tensor([index]))) for index in range(_EXAMPLES)]
    if any(not isinstance(value, Tensor) or value.numel() != 1 for value in values):
        return  # losses of each example, which are still to be added up
    if not torch.equal(values[0], again):
        warnings.warn("the criterion was not tested: it draws random numbers", stacklevel=2)
        return
    whole, *each = map(float, values)
    factor = _EXAMPLES if loss_reduction == "mean" else 1
    if not abs(whole * factor - sum(each)) <= _CLOSE * sum(map(abs, each)):
        remedy = "leave out what joins examples, or pass loss_reduction as the loss does it"
        rule = f"be a {loss_reduction} over examples of a loss of each alone"
        _check.refuse_state(
            "criterion", rule, "its value on random outputs is another", remedy, error=UnfitModule
        )


def _wide(tensor: Tensor) -> Tensor:
    """Return halves as float32: their own rounding would look like another function."""
    halves = tensor.dtype in (torch.float16, torch.bfloat16)
    return tensor.float() if halves else tensor


@final
class _FirstCall:
    def __init__(self, criterion: nn.Module, loss_reduction: Reduction) -> None:
        self._criterion, self._loss_reduction = criterion, loss_reduction
        self._handle: Any = None

    def watch(self) -> None:
        self._handle = self._criterion.register_forward_pre_hook(self._first, with_kwargs=True)

    def _first(self, criterion: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        batch = args, kwargs
        if not torch.is_grad_enabled() or not batch_size(batch):
            return
        self._handle.remove()
        try:
            check_loss(_Whole(criterion), batch, loss_reduction=self._loss_reduction)
        except UnfitModule:
            self.watch()
            raise
        except Exception as error:  # what random inputs are none for
            message = f"the criterion was not tested: random inputs raise {type(error).__name__}"
            warnings.warn(message, stacklevel=3)


@final
class _Whole(nn.Module):
    """A loss as a function of all that it is called with."""

    def __init__(self, criterion: nn.Module) -> None:
        super().__init__()
        self.criterion = criterion

    def forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.criterion(*args, **kwargs)
