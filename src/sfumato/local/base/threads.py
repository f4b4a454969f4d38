"""Run work in pieces on all cores, for kernels that release Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

__all__ = ["cores", "in_pieces"]


def cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def in_pieces(task: Callable[[slice], None], size: int, *, each: int = 1) -> None:
    """Run a task on slices that make up ``range(size)``, side by side.

    Parameters
    ----------
    task : callable
        Of a slice; different slices must touch different memory.
    size : int
    each : int
        Fewest things for which a thread is worth its start.
    """
    pieces = max(1, min(cores(), size // max(1, each)))
    cuts = [size * piece // pieces for piece in range(pieces + 1)]
    slices = [slice(start, stop) for start, stop in pairwise(cuts)]
    if pieces == 1:
        task(slices[0])
        return
    with ThreadPoolExecutor(pieces) as threads:
        list(threads.map(task, slices))
