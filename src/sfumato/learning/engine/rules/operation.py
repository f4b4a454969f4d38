"""One batched use of parameters as a rule sees it, and the node that it puts into the graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.gradients.forward_backward import first_order
from sfumato.learning.engine.out_of_memory import OutOfMemoryRemedy
from sfumato.learning.engine.trace.batch_layout import BatchLayout
from sfumato.learning.engine.trace.calls import tensors_in
from sfumato.learning.engine.trace.plan import Step

__all__ = ["BatchedCall", "NoRule", "Operation", "autocast_as_now", "lowered", "run"]


class NoRule(Exception):
    """A rule does not know this use; the next one may."""


class BatchedCall:
    """A call that examples and parameters meet in.

    Parameters
    ----------
    step : Step
        What the plan says of it.
    collector : GradientCollector
        Of the forward.
    func, args, kwargs
        The call.
    """

    def __init__(
        self,
        step: Step,
        collector: GradientCollector,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        self.step, self.collector, self.func, self.args, self.kwargs = step, collector, func, args, kwargs
        self.tensors = tensors_in(args, kwargs)
        self._layouts = dict(zip(map(id, self.tensors), step.arguments, strict=True))

    @property
    def count(self) -> int:
        """How many examples there are."""
        return self.collector.count

    def layout(self, tensor: Tensor) -> BatchLayout | None:
        """Return where the examples lie in an argument; None if in no dimension."""
        return self._layouts[id(tensor)]

    def followed(self, tensor: Any) -> bool:
        """Return whether an argument is a parameter that requires a gradient, or follows from one."""
        return isinstance(tensor, Tensor) and id(tensor) in self.collector.followed

    def batched(self, tensor: Tensor) -> BatchLayout:
        """Return where the examples lie in an argument that must hold them."""
        layout = self._layouts[id(tensor)]
        if layout is None:
            raise NoRule
        return layout

    def shared(self, tensor: Tensor | None) -> None:
        """Stand aside if an argument belongs to examples where the rule takes one for all."""
        if tensor is not None and self._layouts[id(tensor)] is not None:
            raise NoRule


class Operation(ABC):
    """The forward and the backward of one call; its parameters are no inputs of the graph's node."""

    @abstractmethod
    def forward(self, *data: Tensor) -> tuple[Any, tuple[Tensor | None, ...]]:
        """Return the output, and what the backward needs."""

    @abstractmethod
    def backward(
        self, saved: Sequence[Any], needed: Sequence[bool], gradients: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        """Return the gradient of each input that needs one; leave the parameters' to the collector."""


class _Routed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, operation: Operation, collector: GradientCollector, anchor: Tensor, *data: Tensor
    ) -> Any:
        with OutOfMemoryRemedy():
            output, saved = operation.forward(*data)
        ctx.operation, ctx.collector = operation, collector
        ctx.save_for_backward(*saved)
        ctx.set_materialize_grads(False)
        return output

    @staticmethod
    @first_order
    def backward(ctx: Any, *gradients: Any) -> Any:
        needed = ctx.needs_input_grad[3:]
        if all(gradient is None for gradient in gradients):
            return (None,) * (3 + len(needed))
        ctx.collector.begin()
        saved = [None if tensor is None else tensor.detach() for tensor in ctx.saved_tensors]
        with OutOfMemoryRemedy():
            return (None, None, None, *ctx.operation.backward(saved, needed, gradients))


def run(collector: GradientCollector, operation: Operation, *data: Tensor) -> Any:
    """Run an operation as a node of the graph."""
    apply: Any = _Routed.apply
    return apply(operation, collector, collector.anchor, *data)


def lowered(tensor: Tensor) -> Tensor:
    """Return a tensor as autocast hands it to a function that runs in lower precision; as it is, without."""
    kind = tensor.device.type
    if not torch.is_autocast_enabled(kind) or not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return tensor
    return tensor.to(torch.get_autocast_dtype(kind))


def autocast_as_now(tensors: Sequence[Tensor]) -> Callable[[], AbstractContextManager[object]]:
    """Return what makes contexts with autocast as it is now: a backward runs without, by itself."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return nullcontext
    wanted = torch.get_autocast_dtype(kind)
    return lambda: torch.autocast(kind, wanted)
