"""The wrapper for several processes, by Opacus's name."""

from __future__ import annotations

from sfumato.learning.training.distributed.data_parallel import (
    DPDDP,
    DifferentiallyPrivateDistributedDataParallel,
)

__all__ = ["DPDDP", "DifferentiallyPrivateDistributedDataParallel"]
