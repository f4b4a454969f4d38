"""Sends each use of a parameter in a forward through the rule for its function, or the generic one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.overrides import TorchFunctionMode

from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.rules.anything import anything
from sfumato.learning.engine.rules.broadcasting import added, copied, multiplied, subtracted
from sfumato.learning.engine.rules.convolution import convolution
from sfumato.learning.engine.rules.embedding import embedding
from sfumato.learning.engine.rules.linear import linear, matmul
from sfumato.learning.engine.rules.normalization import group_norm, layer_norm
from sfumato.learning.engine.rules.operation import BatchedCall, NoRule
from sfumato.learning.engine.trace.activation_checkpointing import tensors_saved
from sfumato.learning.engine.trace.calls import tensors_in
from sfumato.learning.engine.trace.decompositions import decomposition_of
from sfumato.learning.engine.trace.plan import ForwardPlan, Step

__all__ = ["RULES", "RuleDispatch", "apply"]


Rule = Callable[..., Any]

RULES: dict[Any, Rule] = {
    F.linear: linear,
    **dict.fromkeys((torch.matmul, torch.mm, Tensor.matmul, Tensor.mm, Tensor.__matmul__), matmul),
    torch.conv1d: convolution(1),
    torch.conv2d: convolution(2),
    torch.conv3d: convolution(3),
    torch.conv_transpose1d: convolution(1, transposed=True),
    torch.conv_transpose2d: convolution(2, transposed=True),
    torch.conv_transpose3d: convolution(3, transposed=True),
    F.embedding: embedding,
    F.layer_norm: layer_norm,
    F.group_norm: group_norm,
    **dict.fromkeys((torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__), added),
    **dict.fromkeys((torch.sub, Tensor.sub, Tensor.__sub__), subtracted),
    **dict.fromkeys((torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__), multiplied),
    **dict.fromkeys((Tensor.expand, Tensor.expand_as, Tensor.repeat, torch.broadcast_to), copied),
}
"""A function of torch to its rule, which takes the call and then the function's own arguments."""


def apply(call: BatchedCall) -> Any:
    """Run a call by its rule, else by the generic one; NotImplemented if neither knows it."""
    for rule in (RULES.get(call.func), anything):
        if rule is not None:
            try:
                return rule(call, *call.args, **call.kwargs)
            except NoRule:
                continue
    return NotImplemented


class RuleDispatch(TorchFunctionMode):
    """Sends each use of a parameter through its rule, in the order of the plan.

    Where a forward leaves the plan the collector is marked as broken, and the calls run as they are.

    Parameters
    ----------
    plan : Plan
    collector : GradientCollector
        Takes what the uses leave.
    """

    def __init__(self, plan: ForwardPlan, collector: GradientCollector) -> None:
        super().__init__()
        self._plan, self._collector, self._next = plan, collector, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._plan.checkpointed:
            with tensors_saved():
                return self._called(func, args, kwargs or {})
        return self._called(func, args, kwargs or {})

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:
        if self._collector.broken or not self._follows(args, kwargs):
            return func(*args, **kwargs)
        decomposed = decomposition_of(func, args, kwargs)
        if decomposed is not None:
            with self:
                return decomposed()
        step = self._step(func, args, kwargs)
        if step is None or not step.batched:
            output = func(*args, **kwargs)
            self._after(step, args, kwargs, output)
            return output
        self._next += 1
        output = apply(BatchedCall(step, self._collector, func, args, kwargs))
        if output is NotImplemented:
            self._collector.broken = True
            return func(*args, **kwargs)
        return output

    def _follows(self, args: Any, kwargs: Any) -> bool:
        followed = self._collector.followed
        for value in args:
            if id(value) in followed:
                return True
            if isinstance(value, tuple | list | dict) and any(id(t) in followed for t in tensors_in(value)):
                return True
        return bool(kwargs) and any(id(t) in followed for t in tensors_in(kwargs))

    def _step(self, func: Any, args: Any, kwargs: Any) -> Step | None:
        """Return the plan's next step if this call is it."""
        if self._next == len(self._plan.steps):
            return None
        step = self._plan.steps[self._next]
        if step.func != func:
            return None
        tensors, followed, count = tensors_in(args, kwargs), self._collector.followed, self._collector.count
        keys = tuple(followed[id(tensor)].key for tensor in tensors if id(tensor) in followed)
        if keys != step.keys or len(tensors) != len(step.arguments):
            return None
        fitting = all(
            layout is None or layout.holds(tensor, count)
            for layout, tensor in zip(step.arguments, tensors, strict=True)
        )
        return step if fitting else None

    def _after(self, step: Step | None, args: Any, kwargs: Any, output: Any) -> None:
        """Follow what was made from parameters alone; a call beside the plan breaks it."""
        made = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
        if step is None:
            self._collector.broken |= bool(made)
            return
        followed = self._collector.followed
        inputs: list[Tensor] = tensors_in(args, kwargs)
        roots = frozenset[str]().union(*(followed[id(t)].roots for t in inputs if id(t) in followed))
        for index, tensor in enumerate(tensors_in(output)):
            self._collector.follow(tensor, f"~{self._next}.{index}", roots)
        self._next += 1
