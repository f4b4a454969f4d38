"""The logical batch of the next step: the batches given to it, and the clipped sums of their examples.

A batch that is used again is in no sample that was priced, so it is refused.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, Final, final

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.learning.checks.batch_tensors import leaves
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.clipped_sums import ClippedSums
from sfumato.learning.training.distributed.shards import Shards
from sfumato.learning.training.loop.private_loader import GivenBatch

__all__ = ["BatchReuseCheck", "LogicalBatch", "empty_sums"]

_FREE: Final = "rows without data, as of a generator, in `with engine.data_free(rows=...)`"


@final
class BatchReuseCheck:
    """Knows the tensors of earlier steps' batches by where they lie, as long as somebody keeps them.

    Parameters
    ----------
    current : callable
        Returns whether a step's batch may be used now.
    data_free : callable
        Returns whether forwards are of rows that hold no data, which no batch of the loader does.

    Notes
    -----
    What is refused is a batch of another step: its number of examples alone does not distinguish it from the
    one that was given, as where all batches are of one size. A copy of one, such as after ``to(device)``, is
    not known, nor is a batch from elsewhere.
    """

    def __init__(self, current: Callable[[int], bool], data_free: Callable[[], bool]) -> None:
        self._current, self._data_free = current, data_free
        self._steps: dict[int, tuple[weakref.ref[Tensor], int]] = {}
        self._handle: Any = None

    def note(self, step: int, batch: Any) -> None:
        """Learn of the batch of a step."""
        self._steps = {address: noted for address, noted in self._steps.items() if noted[0]() is not None}
        for _, tensor in leaves(batch):
            if (address := _address(tensor)) is not None:
                self._steps[address] = weakref.ref(tensor), step

    def watch(self, module: nn.Module) -> None:
        """Look at what each forward in training is called with.

        Parameters
        ----------
        module : torch.nn.Module
        """
        self._handle = module.register_forward_pre_hook(self._before, with_kwargs=True)

    def release(self) -> None:
        """Look no more."""
        if self._handle is not None:
            self._handle.remove()
        self._handle, self._steps = None, {}

    def _before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del module
        if not torch.is_grad_enabled():
            return
        for _, tensor in leaves((args, kwargs)):
            address = _address(tensor)
            noted = None if address is None else self._steps.get(address)
            if noted is None or noted[0]() is None:
                continue
            if self._data_free():
                rule, found = "hold no data under data_free", "one is the loader's"
                _check.refuse_state("rows", rule, found, "draw them, labels too, from no example")
            if not self._current(noted[1]):
                remedy = (
                    f"run each batch through the module once in training mode, when it is returned; {_FREE}"
                )
                rule = "be the one that the loader returned last"
                _check.refuse_state("batch", rule, "it is an earlier one", remedy)


def _address(tensor: Tensor) -> int | None:
    """Return where a tensor's entries lie; None where that is nowhere of its own, as under vmap."""
    if not tensor.numel() or tensor.layout is not torch.strided:
        return None
    try:
        return tensor.untyped_storage().data_ptr()
    except RuntimeError:
        return None


@final
class LogicalBatch:
    """Batches from when they are given to the step that they are for, in the process that they were given to.

    A batch is fresh until a backward has gone through it, and used from then on. What was summed counts only
    if its examples are those of the batches that were given.
    """

    def __init__(self) -> None:
        self._fresh: list[GivenBatch] = []
        self._process = os.getpid()
        self.drop()

    def drop(self) -> None:
        """Forget used batches and their sums."""
        self._used: list[GivenBatch] = []
        self._sums: dict[str, Tensor] = {}
        self._norms: list[Tensor] = []

    def restart(self) -> None:
        """Forget everything, fresh batches too."""
        self._fresh = []
        self.drop()

    def __contains__(self, step: int) -> bool:
        """Whether a batch of a step was given and not stepped with."""
        return any(given.step == step for given in (*self._fresh, *self._used))

    @property
    def begun(self) -> bool:
        """Whether batches were used since the last step."""
        return bool(self._used)

    @property
    def ended(self) -> bool:
        """Whether the batch given last ends its logical batch; also if there is none."""
        return all(given.last for given in (*self._used, *self._fresh)[-1:])

    @property
    def complete(self) -> bool:
        """Whether the last batch that was used ends its logical batch."""
        return self._used[-1].last

    @property
    def numbers(self) -> list[int]:
        """The numbers of the steps whose batches were used."""
        return sorted({given.step for given in self._used})

    @property
    def examples(self) -> int:
        """How many examples have been summed since the last step."""
        return sum(norms.shape[1] for norms in self._norms)

    def give(self, given: GivenBatch) -> None:
        """Add a fresh batch.

        Parameters
        ----------
        given : GivenBatch
        """
        self._fresh.append(given)
        self._process = os.getpid()

    def forget(self, examples: int) -> None:
        """Remove the earliest fresh batches, as many as hold some examples.

        Parameters
        ----------
        examples : int
            How many examples' gradients were dropped.
        """
        while self._fresh and examples > 0:
            examples -= self._fresh.pop(0).size

    def take_fresh(self) -> list[GivenBatch]:
        """Return the fresh batches, which then are fresh no longer.

        Returns
        -------
        list of GivenBatch
        """
        fresh, self._fresh = self._fresh, []
        return fresh

    def match(self, fresh: list[GivenBatch], examples: int) -> None:
        """Find the batches that examples came from: the latest, as a forward before them may have failed.

        Parameters
        ----------
        fresh : list of GivenBatch
            Given since the last backward.
        examples : int
            How many examples were summed.
        """
        while sum(given.size for given in fresh) > examples:
            fresh.pop(0)
        if sum(given.size for given in fresh) != examples:
            self.drop()
            remedy = f"run each batch through the module once in training mode, and nothing else; {_FREE}"
            rule = "be what the private loader returned, whole and once"
            _check.refuse_state("batch", rule, "the module was run on another number of examples", remedy)
        self._used += fresh

    def add(self, sums: ClippedSums) -> None:
        """Add clipped sums to those since the last step.

        Parameters
        ----------
        sums : ClippedSums
        """
        for name, total in sums.gradients.items():
            self._sums[name] = self._sums[name].add_(total) if name in self._sums else total
        self._norms.append(sums.norms)

    def refuse_fork(self) -> None:
        """Refuse batches that were given to another process."""
        if self._used and os.getpid() != self._process:
            self.drop()
            rule = "be stepped with in the process that it was given to"
            remedy = "its step's noise would be drawn twice: take a batch in the child"
            _check.refuse_state("batch", rule, "this process is a fork of it", remedy)

    def take_sums(self) -> tuple[dict[str, Tensor], Tensor]:
        """Return the sums and the examples' norms since the last step, and begin the next logical batch.

        Returns
        -------
        sums : dict of str to torch.Tensor
            Each parameter's.
        norms : torch.Tensor
            Of shape (groups, examples).
        """
        sums, norms = self._sums, torch.cat(self._norms, 1)
        self.drop()
        return sums, norms


def empty_sums(shards: Shards, clipping: Clipping) -> ClippedSums:
    """Return the sums over nobody, where not even the first example has come yet.

    Parameters
    ----------
    shards : Shards
        What this process holds of the parameters.
    clipping : Clipping

    Returns
    -------
    ClippedSums
    """
    named = {n: p for n, p in shards.named.items() if p.requires_grad}
    gradients = {
        name: torch.zeros(p.shape, dtype=torch.promote_types(p.dtype, torch.float32), device=p.device)
        for name, p in named.items()
    }
    groups = 1 + max(clipping.groups(list(named)))
    return ClippedSums(gradients=gradients, examples=0, norms=torch.zeros(groups, 0))
