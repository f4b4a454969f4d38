"""Sums and products of examples with a parameter, and a parameter that is copied for each example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from torch import Tensor

from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.gradients.per_example import DenseGradients, wide
from sfumato.learning.engine.rules.operation import BatchedCall, NoRule, Operation, run
from sfumato.learning.engine.trace.batch_layout import BatchLayout

__all__ = ["added", "copied", "multiplied", "subtracted"]


def _broadcast_layout(values: Tensor, layout: BatchLayout, parameter: Tensor) -> BatchLayout:
    """Return where the examples lie in the result, if the parameter is the same for all of them there."""
    dims = max(values.dim(), parameter.dim())
    dim = layout.dim + dims - values.dim()
    own = dim - (dims - parameter.dim())
    if own >= 0 and parameter.shape[own] != 1:
        raise NoRule
    return BatchLayout(dim, layout.minor)


def _folded(gradient: Tensor, layout: BatchLayout, count: int, shape: Sequence[int]) -> Tensor:
    """Return gradients of the result summed, for each example, to the shape of the parameter."""
    apart = wide(layout.examples(gradient, count))
    extra = apart.dim() - 1 - len(shape)
    sums = [
        1 + dim
        for dim in range(apart.dim() - 1)
        if dim < extra or (shape[dim - extra] == 1 and apart.shape[1 + dim] != 1)
    ]
    return (apart.sum(sums) if sums else apart).reshape(count, *shape)


@final
class _Combined(Operation):
    """One of ``data + sign * parameter`` (sign 1 or -1) and ``data * parameter`` (sign 0)."""

    def __init__(
        self, collector: GradientCollector, layout: BatchLayout, parameter: Tensor, sign: int
    ) -> None:
        self._collector, self._layout, self._parameter, self._sign = collector, layout, parameter, sign
        collector.expect(parameter)

    def forward(self, *data: Tensor) -> tuple[Any, tuple[Tensor | None, ...]]:
        (values,) = data
        parameter = self._parameter.detach()
        self._dtype, self._shape = values.dtype, values.shape
        if self._sign == 0:
            return values * parameter, (values, parameter)
        return torch.add(values, parameter, alpha=self._sign), (None, None)

    def backward(
        self, saved: Sequence[Any], needed: Sequence[bool], gradients: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        values, parameter = saved
        (gradient,) = gradients
        own = gradient if self._sign == 1 else -gradient if self._sign else wide(gradient) * values
        folded = _folded(own, self._layout, self._collector.count, self._parameter.shape)
        self._collector.collect(self._parameter, DenseGradients(folded))
        if not needed[0]:
            return (None,)
        through = gradient * parameter if self._sign == 0 else gradient
        return (through.sum_to_size(self._shape).to(self._dtype),)


def _combined(sign: int) -> Callable[..., Any]:
    def rule(call: BatchedCall, one: Any, other: Any, **options: Any) -> Any:
        if options or not isinstance(one, Tensor) or not isinstance(other, Tensor) or call.count == 0:
            raise NoRule
        if call.followed(one) and sign < 0:
            raise NoRule
        values, parameter = (other, one) if call.followed(one) else (one, other)
        call.shared(parameter)
        layout = _broadcast_layout(values, call.batched(values), parameter)
        if not parameter.is_floating_point() or not call.followed(parameter):
            raise NoRule
        return run(call.collector, _Combined(call.collector, layout, parameter, sign), values)

    return rule


added, subtracted, multiplied = _combined(1), _combined(-1), _combined(0)


@final
class _Copied(Operation):
    def __init__(self, call: BatchedCall, layout: BatchLayout, parameter: Tensor, output: Tensor) -> None:
        self._call, self._layout, self._parameter, self._output = call, layout, parameter, output
        call.collector.expect(parameter)

    def forward(self, *data: Tensor) -> tuple[Any, tuple[Tensor | None, ...]]:
        output, self._output = self._output, self._parameter.detach()
        return output, ()

    def backward(
        self, saved: Sequence[Any], needed: Sequence[bool], gradients: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        folded = _folded(gradients[0], self._layout, self._call.count, self._parameter.shape)
        self._call.collector.collect(self._parameter, DenseGradients(folded))
        return ()


def copied(call: BatchedCall, parameter: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Run `Tensor.expand` and its like where they make one copy for each example."""
    (layout,) = call.step.outputs
    if not isinstance(layout, BatchLayout) or not call.followed(parameter):
        raise NoRule
    output = call.func(parameter.detach(), *args, **kwargs)
    own = (1,) * (output.dim() - parameter.dim()) + tuple(parameter.shape)
    sizes = zip(output.shape, own, strict=True)
    if own[layout.dim] != 1 or any(size not in (1, given) for given, size in sizes):
        raise NoRule
    return run(call.collector, _Copied(call, layout, parameter, output))
