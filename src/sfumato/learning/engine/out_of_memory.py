"""Out of memory in the middle of a step: one error with its remedy."""

from __future__ import annotations

from typing import Final, final

import torch

from sfumato.errors import OutOfMemory

__all__ = ["OutOfMemoryRemedy", "add_remedy"]

_REMEDY: Final = (
    "pass SamplingOptions(max_physical_batch_size=), or chunk= to Engine: the step stays the same, "
    "and is made of a few examples at a time"
)


@final
class OutOfMemoryRemedy:
    """A context that raises `OutOfMemory` in place of an error of memory.

    The number of examples is not shown: where batches are drawn at random, that is a secret of the run.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise the error with the remedy if memory has ended."""
        if _is_out_of_memory(error):
            raise OutOfMemory(
                f"batch must fit into memory with what its clipping keeps, got one that does not; {_REMEDY}"
            ) from error


def add_remedy(error: BaseException | None) -> None:
    """Add a note to an error of memory that came up in the user's own forward."""
    if error is not None and _is_out_of_memory(error):
        error.add_note(_REMEDY)


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error is one of memory: Python's, a device's, or of torch's allocator for CPUs."""
    if error is None or isinstance(error, OutOfMemory):
        return False
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)
