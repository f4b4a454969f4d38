"""Layer norm and group norm: the affine part's gradients beside torch's own backward of the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor

from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.gradients.per_example import DenseGradients, wide
from sfumato.learning.engine.rules.operation import BatchedCall, NoRule, Operation, run
from sfumato.learning.engine.trace.batch_layout import BatchLayout

__all__ = ["group_norm", "layer_norm"]


class _Affine(Operation):
    def __init__(
        self, call: BatchedCall, layout: BatchLayout, weight: Tensor | None, bias: Tensor | None
    ) -> None:
        self._collector: GradientCollector = call.collector
        self._layout, self._weight, self._bias = layout, weight, bias
        for parameter in (weight, bias):
            call.shared(parameter)
            if parameter is not None and call.followed(parameter):
                call.collector.expect(parameter)

    def _plain(self, given: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return input and affine part in one type; under autocast norms run in float32."""
        weight, bias = (None if p is None else p.detach() for p in (self._weight, self._bias))
        self._dtype = given.dtype
        if torch.is_autocast_enabled(given.device.type):
            given = wide(given)
        return given.contiguous(), weight, bias

    def _collect(self, parameter: Tensor | None, gradients: Tensor) -> None:
        if parameter is not None and id(parameter) in self._collector.followed:
            self._collector.collect(
                parameter, DenseGradients(gradients.reshape(len(gradients), *parameter.shape))
            )


@final
class _LayerNorm(_Affine):
    def __init__(  # noqa: PLR0917
        self,
        call: BatchedCall,
        layout: BatchLayout,
        weight: Tensor | None,
        bias: Tensor | None,
        shape: Sequence[int],
        eps: float,
    ) -> None:
        super().__init__(call, layout, weight, bias)
        self._shape, self._eps = list(shape), eps

    def forward(self, *data: Tensor) -> tuple[Any, tuple[Tensor | None, ...]]:
        values, weight, bias = self._plain(data[0])
        output, mean, scale = torch.native_layer_norm(values, self._shape, weight, bias, self._eps)
        return output, (values, weight, mean, scale)

    def backward(
        self, saved: Sequence[Any], needed: Sequence[bool], gradients: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        values, weight, mean, scale = saved
        gradient, count = gradients[0].contiguous(), self._collector.count
        last = gradient.dim() - len(self._shape)
        rows = self._layout.rows(wide(gradient).flatten(last), count)
        ratio = self._layout.rows(wide(scale).flatten(last), count).transpose(1, 2)
        shift = self._layout.rows(wide(mean).flatten(last), count).transpose(1, 2) * ratio
        product = rows * self._layout.rows(wide(values).flatten(last), count)
        if rows.shape[1] == 1:
            self._collect(self._weight, (ratio * product - shift * rows)[:, 0])
        else:
            self._collect(self._weight, (torch.bmm(ratio, product) - torch.bmm(shift, rows))[:, 0])
        self._collect(self._bias, rows[:, 0] if rows.shape[1] == 1 else rows.sum(1))
        if not needed[0]:
            return (None,)
        backward: Any = torch.ops.aten.native_layer_norm_backward
        mask = [True, False, False]
        found = backward(gradient, values, self._shape, mean, scale, weight, None, mask)[0]
        return (found.to(self._dtype),)


def layer_norm(  # noqa: PLR0917 - the arguments of torch's own
    call: BatchedCall,
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """Run `torch.nn.functional.layer_norm`."""
    layout = call.batched(input)
    if layout.dim >= input.dim() - len(normalized_shape):
        raise NoRule
    return run(call.collector, _LayerNorm(call, layout, weight, bias, normalized_shape, eps), input)


@final
class _GroupNorm(_Affine):
    def __init__(
        self, call: BatchedCall, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float
    ) -> None:
        super().__init__(call, BatchLayout(0), weight, bias)
        self._groups, self._eps = groups, eps

    def forward(self, *data: Tensor) -> tuple[Any, tuple[Tensor | None, ...]]:
        values, weight, bias = self._plain(data[0])
        count, channels, *space = values.shape
        output, mean, scale = torch.native_group_norm(
            values, weight, bias, count, channels, math.prod(space), self._groups, self._eps
        )
        return output, (values, weight, mean, scale)

    def backward(
        self, saved: Sequence[Any], needed: Sequence[bool], gradients: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        values, weight, mean, scale = saved
        gradient = gradients[0].contiguous()
        count, channels, *space = values.shape
        positions = math.prod(space)
        flat = wide(gradient).view(count, channels, positions)
        total = flat.sum(2)
        product = (flat * wide(values).view(count, channels, positions)).sum(2)
        each = channels // self._groups
        shift, ratio = (wide(part).repeat_interleave(each, dim=1) for part in (mean, scale))
        self._collect(self._weight, (product - shift * total) * ratio)
        self._collect(self._bias, total)
        if not needed[0]:
            return (None,)
        backward: Any = torch.ops.aten.native_group_norm_backward
        sizes = (count, channels, positions, self._groups)
        found = backward(gradient, values, mean, scale, weight, *sizes, [True, False, False])[0]
        return (found.to(self._dtype),)


def group_norm(  # noqa: PLR0917 - the arguments of torch's own
    call: BatchedCall,
    input: Tensor,  # noqa: A002
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """Run `torch.nn.functional.group_norm`."""
    if call.batched(input) != BatchLayout(0) or input.shape[0] != call.count:
        raise NoRule
    return run(call.collector, _GroupNorm(call, weight, bias, num_groups, eps), input)
