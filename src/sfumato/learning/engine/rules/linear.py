"""Linear maps: the weight's gradient is, for each example, a sum of outer products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.gradients.outer_products import OuterProducts
from sfumato.learning.engine.gradients.per_example import DenseGradients, squares, wide
from sfumato.learning.engine.rules.operation import BatchedCall, NoRule, Operation, lowered, run
from sfumato.learning.engine.trace.batch_layout import BatchLayout

__all__ = ["linear", "matmul"]


@final
class _Linear(Operation):
    """``input @ weight.T + bias``; with the weight as it is if `turned`."""

    def __init__(
        self,
        collector: GradientCollector,
        layout: BatchLayout,
        weight: Tensor,
        bias: Tensor | None,
        *,
        turned: bool = False,
    ) -> None:
        self._collector, self._layout, self._weight, self._bias = collector, layout, weight, bias
        self._turned = turned
        for parameter in (weight, bias):
            if parameter is not None and id(parameter) in collector.followed:
                collector.expect(parameter)

    def forward(self, *data: Tensor) -> tuple[Any, tuple[Tensor | None, ...]]:
        (given,) = data
        self._dtype = given.dtype
        values, weight = lowered(given), lowered(self._weight.detach())
        weight = weight.t() if self._turned else weight
        bias = None if self._bias is None else lowered(self._bias.detach())
        return F.linear(values, weight, bias), (values, weight)

    def backward(
        self, saved: Sequence[Any], needed: Sequence[bool], gradients: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        values, weight = saved
        (gradient,) = gradients
        collector, count = self._collector, self._collector.count
        left = wide(self._layout.rows(gradient, count))
        sizes = squares(left[:, 0]) if left.shape[1] == 1 else None
        if id(self._weight) in collector.followed:
            pair = (left, self._layout.rows(values, count))
            pair = pair[::-1] if self._turned else pair
            known = None if self._turned else sizes
            collector.collect(
                self._weight,
                OuterProducts(*pair, max_entries=collector.max_entries, pool=collector.pool, sizes=known),
            )
        if self._bias is not None and id(self._bias) in collector.followed:
            dense = DenseGradients(left[:, 0], sizes) if left.shape[1] == 1 else DenseGradients(left.sum(1))
            collector.collect(self._bias, dense)
        return ((gradient @ weight).to(self._dtype) if needed[0] else None,)


def linear(call: BatchedCall, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:  # noqa: A002
    """Run `torch.nn.functional.linear`."""
    call.shared(weight)
    call.shared(bias)
    layout = call.batched(input)
    if weight.dim() != 2 or layout.dim == input.dim() - 1:
        raise NoRule
    return run(call.collector, _Linear(call.collector, layout, weight, bias), input)


def matmul(call: BatchedCall, input: Tensor, other: Tensor) -> Any:  # noqa: A002
    """Run `torch.matmul` of examples with a matrix of parameters."""
    call.shared(other)
    layout = call.batched(input)
    if other.dim() != 2 or layout.dim == input.dim() - 1:
        raise NoRule
    return run(call.collector, _Linear(call.collector, layout, other, None, turned=True), input)
