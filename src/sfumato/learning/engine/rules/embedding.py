"""Tables that rows are looked up in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from sfumato.errors import UnfitModule
from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.gradients.gathered_rows import GatheredRows
from sfumato.learning.engine.rules.operation import BatchedCall, Operation, run
from sfumato.learning.engine.trace.batch_layout import BatchLayout

__all__ = ["embedding"]


@final
class _Embedding(Operation):
    def __init__(
        self, collector: GradientCollector, layout: BatchLayout, weight: Tensor, padding: int | None
    ) -> None:
        self._collector, self._layout, self._weight, self._padding = collector, layout, weight, padding
        collector.expect(weight)

    def forward(self, *data: Tensor) -> tuple[Any, tuple[Tensor | None, ...]]:
        (index,) = data
        return F.embedding(index, self._weight.detach()), (index,)

    def backward(
        self, saved: Sequence[Any], needed: Sequence[bool], gradients: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        count = self._collector.count
        index = self._layout.examples(saved[0], count).reshape(count, -1)
        rows = self._layout.rows(gradients[0], count)
        if self._padding is not None:
            rows = rows.masked_fill((index == self._padding)[:, :, None], 0)
        self._collector.collect(self._weight, GatheredRows(index, rows, self._weight.shape))
        return (None,)


def embedding(  # noqa: PLR0917 - the arguments of torch's own
    call: BatchedCall,
    input: Tensor,  # noqa: A002
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Run `torch.nn.functional.embedding`; gradients are dense, whatever `sparse` says.

    Raises
    ------
    UnfitModule
        If the forward would change the table, or a gradient depend on the other examples.
    """
    if max_norm is not None:
        raise UnfitModule(
            "max_norm must be None in an embedding, got a norm; it changes the table in the forward"
        )
    if scale_grad_by_freq:
        raise UnfitModule(
            "scale_grad_by_freq must be False, got True; it makes a gradient depend on other examples"
        )
    call.shared(weight)
    layout = call.batched(input)
    if padding_idx is not None and padding_idx < 0:
        padding_idx += len(weight)
    return run(call.collector, _Embedding(call.collector, layout, weight, padding_idx), input)
