"""Families fitted in this process, or in several of this machine."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Protocol, final

from sfumato.errors import EngineError
from sfumato.synthetic.topdown.family_batch import FamilyBatch, Fitted, fit_batch

__all__ = ["FamilyWorkers", "ProcessPool"]


class FamilyWorkers(Protocol):
    """Who fits families. They see noisy counts and limits, and nothing of rows."""

    def fitted(self, batches: Iterator[FamilyBatch]) -> Iterator[Fitted]:
        """Yield the fits in the order of the batches."""
        ...


@final
@dataclass(frozen=True, slots=True)
class ProcessPool:
    """Processes of this machine.

    Parameters
    ----------
    processes : int
        1 is this one.
    """

    processes: int

    def fitted(self, batches: Iterator[FamilyBatch]) -> Iterator[Fitted]:
        """Yield the fits in the order of the batches, at most two for each process under way.

        Parameters
        ----------
        batches : iterator of FamilyBatch

        Yields
        ------
        Fitted

        Raises
        ------
        EngineError
            If a process was ended.
        """
        if self.processes == 1:
            yield from map(fit_batch, batches)
            return
        lost = False
        with ProcessPoolExecutor(self.processes, multiprocessing.get_context("spawn")) as pool:
            running = deque[Future[Fitted]]()
            try:
                for batch in batches:
                    running.append(pool.submit(fit_batch, batch))
                    if len(running) >= 2 * self.processes:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            except BrokenProcessPool:
                lost = True
        if lost:
            raise EngineError("processes must last to the end, got one that was ended; pass processes=1")
