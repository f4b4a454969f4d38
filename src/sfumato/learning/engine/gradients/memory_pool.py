"""Memory that is used again in the next step: fresh pages cost more than what is computed into them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

__all__ = ["MemoryPool"]


@final
class MemoryPool:
    """Buffers that are all free again after each forward's sums are made.

    They are there while the next forward keeps what its backward needs: what they may hold together bounds by
    how much a step takes more memory.

    Parameters
    ----------
    each, together : int
        How many entries one buffer may have, and all of them.
    """

    def __init__(self, each: int, together: int) -> None:
        self._each, self._together = each, together
        self._free: list[Tensor] = []
        self._taken: list[Tensor] = []
        self._elsewhere = 0

    def holds(self, entries: int) -> bool:
        """Return whether there is room for so many entries."""
        return entries <= min(self._each, self._together - self._elsewhere - _entries(self._taken))

    def count(self, entries: int) -> None:
        """Count entries that are stored as long, and lie elsewhere.

        Parameters
        ----------
        entries : int
            Of all gradients together.
        """
        self._elsewhere += entries

    def take(self, shape: Sequence[int], like: Tensor) -> Tensor:
        """Return a tensor of any contents, with the type and device of another."""
        size = math.prod(shape)
        fitting = [
            index
            for index, buffer in enumerate(self._free)
            if buffer.dtype == like.dtype
            and buffer.device == like.device
            and size <= buffer.numel() <= 2 * size
        ]
        if fitting:
            buffer = self._free.pop(min(fitting, key=lambda index: self._free[index].numel()))
        else:
            while self._free and _entries([*self._free, *self._taken]) + size > self._together:
                self._free.pop()
            buffer = torch.empty(size, dtype=like.dtype, device=like.device)
        self._taken.append(buffer)
        return buffer[:size].view(*shape)

    def release(self) -> None:
        """Make what was taken free again, and give back what was not."""
        self._free, self._taken, self._elsewhere = self._taken, [], 0


def _entries(buffers: Sequence[Tensor]) -> int:
    return sum(buffer.numel() for buffer in buffers)
