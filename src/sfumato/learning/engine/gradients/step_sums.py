"""The clipped sums of one step: what forwards and their backwards have added up to since the last one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final

import torch
from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.clipped_sums import ClippedSums
from sfumato.learning.engine.gradients.forward_backward import ForwardBackward
from sfumato.learning.engine.gradients.memory_pool import MemoryPool
from sfumato.learning.engine.gradients.per_example import wide
from sfumato.learning.engine.out_of_memory import OutOfMemoryRemedy

__all__ = ["StepSums", "learns_from"]


@final
class StepSums:
    """One forward that waits for its backward, and the sums of those that are complete.

    Parameters
    ----------
    memory : int
        Bytes of per-example gradients that one use of a parameter may keep until they are summed.
    """

    def __init__(self, memory: int) -> None:
        self.pool = MemoryPool(memory // 4, 5 * memory // 8)
        self.reset()

    def reset(self) -> None:
        """Forget the step."""
        self.current: ForwardBackward | None = None
        self.sums: dict[str, Tensor] = {}
        self._norms: list[Tensor] = []
        self.examples = 0
        self.begun = False
        """Whether a forward has come since the last step, also one of no example."""

    @property
    def pending(self) -> bool:
        """Whether a forward or a backward of examples has come since the last step."""
        return self.current is not None or self.examples > 0

    def settle(
        self,
        clipping: Clipping,
        groups: Mapping[str, int],
        scale: Callable[[int], float],
        *,
        views: int,
        averaged: bool,
    ) -> None:
        """Add up the last forward if its backward is complete; give up one that has failed or never came.

        Parameters
        ----------
        clipping, groups
            As in `ForwardBackward.sums_and_norms`.
        scale : callable
            What the loss of so many rows was divided by.
        views : int
            How many rows are one example.
        averaged : bool
            Whether sums are divided by the number of the forward's own examples.
        """
        done, self.current = self.current, None
        if done is None:
            return
        if not done.complete:
            done.superseded = True
            self.pool.release()
            return
        with torch.no_grad(), OutOfMemoryRemedy():
            sums, norms = done.sums_and_norms(clipping, groups, scale(done.count))
        for name, total in sums.items():
            own = total / (done.count // views) if averaged else total
            self.sums[name] = self.sums[name].add_(own) if name in self.sums else own
        self._norms.append(norms)
        self.examples += done.count // views

    def taken(self, parameters: Mapping[str, Tensor], groups: Mapping[str, int]) -> ClippedSums:
        """Return all sums, and begin the next step.

        Parameters
        ----------
        parameters : mapping of str to Tensor
            Those that require a gradient: zero for one that got none.
        groups : mapping of str to int
            The clipping group of each.
        """
        norms = torch.cat(self._norms, 1) if self._norms else torch.zeros(max(groups.values()) + 1, 0)
        gradients = {
            name: self.sums[name] if name in self.sums else torch.zeros_like(wide(p.detach()))
            for name, p in parameters.items()
        }
        sums = ClippedSums(gradients=gradients, examples=self.examples, norms=norms)
        self.reset()
        return sums

    def forget(self) -> int:
        """Drop what is complete; a forward that still waits for its backward stays.

        Returns
        -------
        int
            The number of examples whose gradients were dropped.
        """
        waiting = None if self.current is None or self.current.complete else self.current
        examples, begun = self.examples, self.begun and (waiting is not None or not self.examples)
        self.reset()
        self.current, self.begun = waiting, begun
        return examples


def learns_from(count: int, rows: int, parameters: Mapping[str, Tensor]) -> bool:
    """Return whether parameters learn from rows that hold no data; refuse another number of them than stated.

    Parameters
    ----------
    count, rows : int
        How many a forward takes, and how many it was stated to take.
    parameters : mapping of str to Tensor
        A generator may freeze them all in its own step.
    """
    if count != rows:
        remedy = "draw that many at every step: the size of a batch follows from the examples drawn"
        _check.refuse("rows", "be as many as a forward under data_free takes", rows, remedy)
    return any(parameter.requires_grad for parameter in parameters.values())
