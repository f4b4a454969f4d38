"""torch's global generators, begun from a number at no more cost than the devices that are there."""

from __future__ import annotations

import torch

__all__ = ["seed_torch"]


def seed_torch(number: int) -> None:
    """Let torch's global generators begin from a number, as ``torch.manual_seed`` does.

    Where there is no accelerator, that function would queue a call for each kind that torch knows, with the
    traceback of the whole stack, and keep them all: milliseconds and memory for every run of a probe.

    Parameters
    ----------
    number : int

    Examples
    --------
    >>> import torch
    >>> with torch.random.fork_rng([]):
    ...     seed_torch(3)
    ...     first = torch.rand(())
    ...     _ = torch.manual_seed(3)
    ...     bool(first == torch.rand(()))
    True
    """
    if torch.accelerator.is_available():
        torch.manual_seed(number)
    else:
        torch.default_generator.manual_seed(number)
