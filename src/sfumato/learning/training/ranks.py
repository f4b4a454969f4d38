"""Processes that train together: what each has is summed, and what one draws is told to all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["Ranks"]


@final
class Ranks:
    """The processes of a run; one alone where `torch.distributed` has none.

    Parameters
    ----------
    together : bool
        Whether the processes of the default group train one module together.
    """

    def __init__(self, *, together: bool) -> None:
        self.together = together and dist.is_available() and dist.is_initialized()

    @property
    def rank(self) -> int:
        """The number of this process."""
        return dist.get_rank() if self.together else 0

    @property
    def size(self) -> int:
        """How many processes there are."""
        return dist.get_world_size() if self.together else 1

    @property
    def first(self) -> bool:
        """Whether this process is the one that charges and claims."""
        return self.rank == 0

    def share(self, value: Any) -> Any:
        """Return what the first process passed, in all of them."""
        if not self.together:
            return value
        box = [value if self.first else None]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def sum_(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over the processes, in place, the same in all."""
        if not self.together:
            return
        for work in [dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
            if work is not None:
                work.wait()

    def gathered(self, norms: Tensor) -> Tensor:
        """Return the norms of all processes' examples, in the order of the processes."""
        if not self.together:
            return norms
        parts: list[Any] = [None] * self.size
        dist.all_gather_object(parts, norms.cpu())
        return torch.cat(parts, 1).to(norms.device)

    def total(self, count: int) -> int:
        """Return the sum of a count over the processes."""
        if not self.together:
            return count
        parts: list[Any] = [None] * self.size
        dist.all_gather_object(parts, count)
        return sum(parts)
