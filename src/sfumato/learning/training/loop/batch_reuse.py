"""Batches that were given before: one that is used again is in no sample that was priced."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.learning.checks.batch_tensors import leaves

__all__ = ["BatchReuseCheck"]


@final
class BatchReuseCheck:
    """Knows the tensors of earlier steps' batches by where they lie, as long as somebody keeps them.

    Parameters
    ----------
    current : callable
        Returns whether a step's batch may be used now.

    Notes
    -----
    What is refused is a batch of another step: its number of examples alone does not distinguish it from the
    one that was given, as where all batches are of one size. A copy of one, such as after ``to(device)``, is
    not known, nor is a batch from elsewhere.
    """

    def __init__(self, current: Callable[[int], bool]) -> None:
        self._current = current
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
            if noted is not None and noted[0]() is not None and not self._current(noted[1]):
                remedy = "run each batch through the module once in training mode, when it is returned"
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
