"""The workers' side of the jobs: which one begins, when it is to be stopped, and how it ended.

Two processes never run one job, and a worker begins its next one when its last one has ended as it is shown:
when a job begins depends on the rows through such ends only (see `time_grid`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from sfumato._wire import canonical
from sfumato.server.console.asking.job import Answer, Job, JobState, stop_of
from sfumato.server.console.asking.job_file import ACTIVE, JobFile

__all__ = ["JobQueue"]

_ATTEMPTS: Final = 2
_BEGUN: Final = "state IN ('charging', 'running') AND worker <> ''"
_EARLIER: Final = f"""SELECT count(*) FROM charge AS own JOIN charge AS other ON own.digest = other.digest
    JOIN job ON job.number = other.job
    WHERE own.job = ? AND other.job < own.job AND {ACTIVE}"""  # noqa: S608 - texts of our own


@final
class JobQueue:
    """The jobs as workers take them.

    Parameters
    ----------
    file : JobFile
    """

    def __init__(self, file: JobFile) -> None:
        self._file, self._grid = file, file.grid

    def claim(self, worker: str, moment: float) -> Job | None:
        """Return the job that a worker is to run now, which has begun with this; None if there is none.

        Parameters
        ----------
        worker : str
        moment : float
        """
        index = self._grid.passed(moment)
        if not self._file.jobs("state = 'queued' AND submitted <= ?", index):
            return None  # without a transaction that writes
        with self._file.transaction():
            busy = self._file.jobs(f"worker = ? AND {ACTIVE}", worker, index)
            if any(job.state is not JobState.CHARGING for job in busy):
                return None
            for job in self._file.jobs("state = 'queued' AND submitted <= ? ORDER BY number", index):
                if not self._waits_for_another(job, index):
                    self._file.set(
                        job,
                        state=JobState.RUNNING.value,
                        worker=worker,
                        begun=index,
                        attempts=job.attempts + 1,
                    )
                    return self._file.jobs("number = ?", job.number)[0]
        return None

    def _waits_for_another(self, job: Job, index: int) -> bool:
        """Whether an earlier job asks one of the same private SELECTs, and has not ended as it is shown."""
        return self._file.rows(_EARLIER, job.number, index) != [(0,)]

    def stop_at(self, job: Job) -> int | None:
        """Return the step at whose end a running job is to be stopped; None once it runs no more."""
        found = self._file.jobs("number = ?", job.number)[0]
        return stop_of(found, self._grid) if found.worker == job.worker else None

    def settle(self, is_dead: Callable[[str], bool], moment: float) -> None:
        """End the jobs whose time has passed, though their runs may not have stopped yet.

        Whoever looks at jobs does this first: of a run that ends at its very deadline, and a look at it, the
        first one decides how it has ended. Those of dead processes are left to `recover`.

        Parameters
        ----------
        is_dead : callable
            Whether a worker's process has ended.
        moment : float
        """
        index = self._grid.passed(moment)
        if not self._overdue(index):
            return  # without a transaction that writes
        with self._file.transaction():
            for job, stop in self._overdue(index):
                if not is_dead(job.worker):
                    self._unanswered(job, stop)

    def _overdue(self, index: int) -> list[tuple[Job, int]]:
        running = ((job, stop_of(job, self._grid)) for job in self._file.jobs("state = 'running'"))
        return [(job, stop) for job, stop in running if stop is not None and stop <= index]

    def _unanswered(self, job: Job, stop: int) -> None:
        state = JobState.FAILED if job.cancel is None else JobState.CANCELLED
        self._file.set(job, state=state.value, ends=stop)

    def finish(self, job: Job, answer: Answer | None, clock: Callable[[], float]) -> None:
        """Store how a run ended; one without an answer, or after its time, is shown at its last deadline.

        It has ended when nobody else writes any more: one that waits for that is shown at a later deadline,
        and not when it is stored.

        Parameters
        ----------
        job : Job
            As it was claimed.
        answer : Answer or None
        clock : callable
            Seconds since 1970.
        """
        with self._file.transaction():
            moment = clock()
            (now,) = self._file.jobs("number = ?", job.number)
            stop = stop_of(now, self._grid)
            if stop is None or now.worker != job.worker:
                return  # it was settled, or another process has taken it over
            shown = self._grid.shown(now.begun or 0, now.passes, moment)
            if answer is None or shown is None or self._grid.next(moment) > stop:
                self._unanswered(now, stop)
                return
            self._file.set(
                now,
                state=JobState.DONE.value,
                ends=min(shown, stop),
                answer=answer.table,
                facts=canonical(dict(answer.facts)),
            )

    def recover(self, is_dead: Callable[[str], bool], moment: float) -> list[Job]:
        """Put jobs of dead processes back into the queue; return those that died while they were charged.

        One that was begun twice has failed: it may be what ends the process.

        Parameters
        ----------
        is_dead : callable
            Whether a worker's process has ended.
        moment : float
        """
        if not any(is_dead(job.worker) for job in self._file.jobs(_BEGUN)):
            return []
        with self._file.transaction():
            left = self._file.jobs(_BEGUN)
            dead = {worker for worker in {job.worker for job in left} if is_dead(worker)}
            charging = []
            for job in left:
                if job.worker not in dead:
                    continue
                at = self._grid.next(moment)
                if job.state is JobState.CHARGING:
                    charging.append(job)
                elif job.cancel is not None:
                    self._file.set(job, state=JobState.CANCELLED.value, ends=at, worker="")
                elif job.attempts >= _ATTEMPTS:
                    self._file.set(job, state=JobState.FAILED.value, ends=at, worker="")
                else:
                    self._file.set(job, state=JobState.QUEUED.value, begun=None, submitted=at, worker="")
            return charging
