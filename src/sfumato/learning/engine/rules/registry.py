"""Which rules there are for a function, the generic one last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from sfumato.learning.engine.rules.anything import anything
from sfumato.learning.engine.rules.broadcasting import added, copied, multiplied, subtracted
from sfumato.learning.engine.rules.convolution import convolution
from sfumato.learning.engine.rules.embedding import embedding
from sfumato.learning.engine.rules.linear import linear, matmul
from sfumato.learning.engine.rules.normalization import group_norm, layer_norm
from sfumato.learning.engine.rules.operation import BatchedCall, NoRule

__all__ = ["RULES", "apply"]

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
