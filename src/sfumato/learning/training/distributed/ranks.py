"""Ranks of a process group: sums over all of them, and values that the first one shares with the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor

from sfumato import _check

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

    def alike(self, numbers: Sequence[int], device: torch.device) -> bool:
        """Whether all processes have passed the same numbers, in order; every process must ask."""
        if not self.together:
            return True
        values = [len(numbers), *numbers[:1], *numbers[-1:], sum(numbers)]
        # The largest of each and of its opposite: alike where one is the other's.
        ends = torch.tensor([*values, *(-one for one in values)], device=device)
        dist.all_reduce(ends, op=dist.ReduceOp.MAX)
        maximum, minimum = ends.view(2, -1).tolist()
        return bool(maximum == [-one for one in minimum])

    def require_alike(self, values: Mapping[str, Any]) -> None:
        """Refuse, in every process, what is not the same in all; every process must ask.

        Raises
        ------
        ParameterError
            With the first name that differs, and what each process has.
        """
        if not self.together:
            return
        parts: list[Any] = [None] * self.size
        dist.all_gather_object(parts, dict(values))
        for name in values:
            each = [part[name] for part in parts]
            if any(one != each[0] for one in each):
                remedy = "pass the same arguments to make_private in each"
                _check.refuse(name, "be the same in all processes", each, remedy)

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
