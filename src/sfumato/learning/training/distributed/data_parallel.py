"""Modules that several processes train together."""

from __future__ import annotations

from typing import Any, final

import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from sfumato import _check
from sfumato.learning.training.distributed.shards import check_shards

__all__ = ["DPDDP", "DifferentiallyPrivateDistributedDataParallel", "inner_module", "is_together"]


@final
class DifferentiallyPrivateDistributedDataParallel(nn.Module):
    """A module that begins the same in all processes; a run sums its clipped gradients over them.

    Parameters
    ----------
    model : torch.nn.Module
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.module = model
        for tensor in (*model.parameters(), *model.buffers()):
            dist.broadcast(tensor.detach(), src=0)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the module does."""
        return self.module(*args, **kwargs)


DPDDP = DifferentiallyPrivateDistributedDataParallel


def is_together(module: nn.Module) -> bool:
    """Whether a module is one that several processes train."""
    return _is_wrapped(module) or isinstance(module, FSDPModule)


def _is_wrapped(module: nn.Module) -> bool:
    return isinstance(module, (DistributedDataParallel, DifferentiallyPrivateDistributedDataParallel))


def inner_module(module: nn.Module) -> nn.Module:
    """Return the user's module inside; `DistributedDataParallel` leaves off summing gradients by itself.

    Raises
    ------
    ParameterError
        If parameters are cut up between processes in a way that `Shards` does not gather, or the module is
        compiled in place with its hooks.
    """
    if isinstance(module, DistributedDataParallel):
        module.require_backward_grad_sync = False
    inner: nn.Module = module.module if _is_wrapped(module) else module  # type: ignore[assignment]
    if getattr(inner, "_compiled_call_impl", None) is not None:
        remedy = "leave out module.compile(); torch.compile(module) is taken"
        _check.refuse_state("module", "run its own hooks", "it was compiled in place", remedy)
    if _is_wrapped(module) and any(isinstance(parameter, DTensor) for parameter in inner.parameters()):
        remedy = "leave DistributedDataParallel out"
        _check.refuse_state("module", "have whole parameters in each process", "they are sharded", remedy)
    check_shards(inner)
    return inner
