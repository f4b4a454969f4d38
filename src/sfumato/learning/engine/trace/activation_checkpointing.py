"""Activation checkpointing around parameters: left out on the fast way, where it would run them again unseen.

What a checkpoint runs again in the backward runs beside the forward, so its uses of parameters would not be
rerouted. On the fast way the tensors that the backward needs are therefore saved as without a checkpoint: the
gradients are the same, the memory is not saved. ``chunk`` saves it instead.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor, nn

from sfumato.errors import UnfitModule

__all__ = ["around", "has_functions", "tensors_saved"]

_OWN = vars(torch.utils.checkpoint)


def around(arguments: Sequence[Tensor]) -> bool:
    """Return whether the call that is being made is inside of a checkpoint, and the backward needs it.

    Raises
    ------
    UnfitModule
        If a reentrant checkpoint is around a trained parameter: its backward is another one, which passes the
        engine by.
    """
    needed = [tensor for tensor in arguments if tensor.requires_grad]
    frame, codes = sys._getframe() if needed else None, set()  # noqa: SLF001
    while frame is not None:
        if frame.f_globals is _OWN:
            codes.add(frame.f_code)
        frame = frame.f_back
    if torch.utils.checkpoint.CheckpointFunction.forward.__code__ not in codes:
        return bool(codes)
    if any(isinstance(tensor, nn.Parameter) for tensor in needed):
        raise UnfitModule(
            "checkpoint must have use_reentrant=False around parameters that are trained, got True; "
            "pass use_reentrant=False (for transformers in gradient_checkpointing_kwargs), or leave it out"
        )
    return False


def tensors_saved() -> AbstractContextManager[object]:
    """Make a context in which tensors are saved for the backward, whatever checkpoint is around it.

    Notes
    -----
    The innermost pair of hooks is the one that counts, so that the checkpoint's is never asked. Versions are
    compared as torch does without hooks: what is changed in place after it was saved is an error.
    """
    return torch.autograd.graph.saved_tensors_hooks(_saved, _restored)


def _saved(tensor: Tensor) -> tuple[Tensor, int]:
    return tensor.detach(), tensor._version  # noqa: SLF001 - a detached tensor shares it


def _restored(pair: tuple[Tensor, int]) -> Tensor:
    tensor, version = pair
    if tensor._version != version:  # noqa: SLF001
        raise UnfitModule(
            "tensors of a checkpointed part must not be changed in place behind it, got one that was; "
            "use mode 'microbatch' (grad_sample_mode in make_private), or an operation that is not in place"
        )
    return tensor


def has_functions(outputs: Sequence[Tensor]) -> bool:
    """Return whether autograd functions of the user's own are part of outputs: their calls are not seen."""
    waiting: list[Any] = [tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None]
    visited = set(waiting)
    while waiting:
        node = waiting.pop()
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return True
        fresh = {parent for parent, _ in node.next_functions if parent is not None} - visited
        visited |= fresh
        waiting += fresh
    return False
