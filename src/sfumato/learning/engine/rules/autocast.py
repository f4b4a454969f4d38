"""The types that a call computes in, with and without autocast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

__all__ = ["autocast_as_now", "lowered"]


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
