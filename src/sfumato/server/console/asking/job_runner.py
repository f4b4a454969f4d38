"""One process's worker: it runs a job at a time, and stops it when its time has passed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias, final

from sfumato.errors import QueryCancelled
from sfumato.queries.engines.watched_run import CANCELLED
from sfumato.server.console.asking.job import Answer, Job
from sfumato.server.console.asking.job_queue import JobQueue
from sfumato.server.console.asking.time_grid import TimeGrid
from sfumato.server.console.asking.worker_lock import WorkerLock

__all__ = ["JobRunner", "Run"]

Run: TypeAlias = Callable[[Job, Callable[[], None]], Answer]
"""Answers a job; what it is given beside raises where it is to stop."""

_LOOKS: Final = 8
"""How often in a step the worker looks for work, and for what is to be stopped."""


@final
class JobRunner:
    """Runs the jobs of a queue, one at a time.

    Parameters
    ----------
    queue : JobQueue
    lock : WorkerLock
        This process's.
    grid : TimeGrid
    run : callable
        Answers a job.
    interrupt : callable
        Makes the engine stop what it computes; from another thread.
    finish_charging : callable
        Charges a job whose process died while it did so.
    clock : callable
        Seconds since 1970.
    on_failure : callable, optional
        What is done with the error of a run, for the operator's eyes; nobody else is shown it.
    """

    def __init__(
        self,
        queue: JobQueue,
        lock: WorkerLock,
        grid: TimeGrid,
        *,
        run: Run,
        interrupt: Callable[[], object],
        finish_charging: Callable[[Job], object],
        clock: Callable[[], float],
        on_failure: Callable[[Job, Exception], object] | None = None,
    ) -> None:
        self._queue, self._lock, self._grid = queue, lock, grid
        self._run, self._interrupt, self._finish_charging = run, interrupt, finish_charging
        self._clock, self._on_failure = clock, on_failure
        self._current: Job | None = None
        self._ending, self._guard = threading.Event(), threading.Lock()
        self._threads: list[threading.Thread] = []

    def run_next(self) -> bool:
        """Run the job that is to begin now, to its end; return whether there was one."""
        self._queue.settle(self._lock.is_dead, self._clock())
        for left in self._queue.recover(self._lock.is_dead, self._clock()):
            try:
                self._finish_charging(left)
            except Exception as error:  # of one job: the others go on
                self._report(left, error)
        job = self._queue.claim(self._lock.name, self._clock())
        if job is None:
            return False
        self._current = job
        answer = None
        try:
            answer = self._run(job, lambda: self._go_on(job))
        except Exception as error:  # of whatever kind: none is shown
            self._report(job, error)
        finally:
            with self._guard:
                self._current = None
        if answer is not None or not self._ending.is_set():
            self._queue.finish(job, answer, self._clock)
        return True

    def _report(self, job: Job, error: Exception) -> None:
        if self._on_failure is not None:
            self._on_failure(job, error)

    def _go_on(self, job: Job) -> None:
        stop = self._queue.stop_at(job)
        if stop is None or self._clock() > self._grid.time_of(stop):
            raise QueryCancelled(CANCELLED)

    def watch(self) -> bool:
        """Stop the job that runs if its time has passed; return whether it had. From another thread."""
        job = self._current
        if job is None:
            return False
        stop = self._queue.stop_at(job)
        if stop is not None and self._clock() <= self._grid.time_of(stop):
            return False
        self._queue.finish(job, None, self._clock)
        self._stop(job)
        return True

    def _stop(self, job: Job) -> None:
        """Interrupt the engine, if it still computes this job."""
        with self._guard:
            if self._current is job:
                self._interrupt()

    def start(self) -> None:
        """Run and watch in threads of their own until `close`."""
        for each, name in ((self.run_next, "sfumato-jobs"), (self.watch, "sfumato-deadlines")):
            thread = threading.Thread(target=self._repeat, args=(each,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _repeat(self, step: Callable[[], bool]) -> None:
        while not self._ending.wait(self._grid.step / _LOOKS):
            with suppress(Exception):  # a store that is locked or a disk that is full for a while
                step()

    def close(self) -> None:
        """Stop the threads and what they run; a job that runs is begun again by the next process."""
        self._ending.set()
        while any(thread.is_alive() for thread in self._threads):
            if (job := self._current) is not None:
                self._stop(job)
            for thread in self._threads:
                thread.join(self._grid.step / _LOOKS)
        self._threads.clear()
