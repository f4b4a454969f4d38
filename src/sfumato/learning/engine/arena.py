"""Memory that is used again in the next step: fresh pages cost more than what is computed into them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

__all__ = ["Arena"]


@final
class Arena:
    """Buffers that are all free again after each forward's sums are made."""

    def __init__(self) -> None:
        self._free: list[Tensor] = []
        self._taken: list[Tensor] = []

    def take(self, shape: Sequence[int], like: Tensor) -> Tensor:
        """Return a tensor of any contents, with the type and device of another."""
        size = math.prod(shape)
        fitting = [
            place
            for place, buffer in enumerate(self._free)
            if buffer.dtype == like.dtype
            and buffer.device == like.device
            and size <= buffer.numel() <= 2 * size
        ]
        if fitting:
            buffer = self._free.pop(min(fitting, key=lambda place: self._free[place].numel()))
        else:
            buffer = torch.empty(size, dtype=like.dtype, device=like.device)
        self._taken.append(buffer)
        return buffer[:size].view(*shape)

    def release(self) -> None:
        """Make what was taken free again, and give back what was not."""
        self._free, self._taken = self._taken, []
