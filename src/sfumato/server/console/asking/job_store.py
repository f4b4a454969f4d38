"""The analysts' side of the jobs: a new one, its view, the history, cancellation, answers.

One request id is one job, whoever asks again, and in whichever process. An analyst sees their own jobs, as
`JobView`, and nothing of others but how many wait.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import canonical
from sfumato.errors import SfumatoError
from sfumato.server.console.asking.job import Answer, Job, JobState, JobView, shown_state
from sfumato.server.console.asking.job_file import ACTIVE, JobFile

__all__ = ["JobLimits", "JobStore", "NewJob", "TooManyJobs"]

_INSERT: Final = """INSERT INTO job
    (id, analyst, request, question, proposal, passes, submitted, state, worker,
    attempts, message)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '')"""
_COUNT: Final = f"SELECT count(*) FROM job WHERE {ACTIVE}"  # noqa: S608 - texts of our own
_PAID: Final = f"""SELECT charge.number FROM charge JOIN job ON job.number = charge.job
    WHERE digest = ? AND charge.number IS NOT NULL AND {ACTIVE}
    ORDER BY job.number DESC LIMIT 1"""  # noqa: S608 - texts of our own
_UNDER_WAY: Final = f"""SELECT DISTINCT digest FROM job CROSS JOIN charge ON job.number = charge.job
    WHERE {ACTIVE} AND +analyst = ?"""  # noqa: S608 - texts of our own
_AHEAD: Final = """SELECT count(*) FROM job
    WHERE +number < ? AND (state IN ('charging', 'queued') OR begun > ?)"""
_NOBODY: Final = "nobody"
"""The name of no process: what it had begun is finished by another one."""
_PUT: Final = "UPDATE charge SET number = ? WHERE job = ? AND digest = ?"


class TooManyJobs(SfumatoError):
    """So many jobs wait or run that no other is taken; nothing was charged."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """How many jobs may wait and run at a time.

    Parameters
    ----------
    per_analyst, total : int
        Of one analyst, and of all.
    """

    per_analyst: int = 4
    total: int = 64

    def __post_init__(self) -> None:
        _check.integer("per_analyst", self.per_analyst, minimum=1)
        _check.integer("total", self.total, minimum=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """What is stored of a job before its charge.

    Parameters
    ----------
    analyst, request : str
        Who asks, and the id under which asking again is the same job.
    question : str
        A document of the format ``sfumato.question``.
    proposal : mapping of str to value
        `Proposal.to_json`.
    passes : int
        How often the rows are read.
    digests : sequence of str
        Of its private SELECTs.
    """

    analyst: str
    request: str
    question: str
    proposal: Mapping[str, Any]
    passes: int
    digests: Sequence[str]


@final
class JobStore:
    """The jobs as analysts see them.

    Parameters
    ----------
    file : JobFile
    limits : JobLimits
    """

    def __init__(self, file: JobFile, limits: JobLimits) -> None:
        self._file, self._grid, self.limits = file, file.grid, limits

    def digests(self, job: Job) -> list[str]:
        """Return the digests of a job's private SELECTs."""
        return [
            digest for (digest,) in self._file.rows("SELECT digest FROM charge WHERE job = ?", job.number)
        ]

    def add(self, new: NewJob, worker: str, moment: float) -> tuple[Job, bool]:
        """Store a job that is about to be charged; return it, and whether it is new.

        Private SELECTs that an unfinished job of the analyst asks as well have that one's charges.

        Parameters
        ----------
        new : NewJob
        worker : str
            Whose process charges it.
        moment : float

        Raises
        ------
        ParameterError
            If the request id was used for another question.
        TooManyJobs
            If the limits are reached.
        """
        with self._file.transaction():
            before = self._file.jobs("analyst = ? AND request = ?", new.analyst, new.request)
            if before:
                if before[0].question != new.question:
                    found = "it was used for another question"
                    _check.refuse_state("request", "be a new id", found, "draw a random id for each question")
                return before[0], False
            self._check_limits(new.analyst, moment)
            row = (
                secrets.token_hex(16), new.analyst, new.request, new.question, canonical(dict(new.proposal)),
                new.passes, self._grid.next(moment), JobState.CHARGING.value, worker,
            )  # fmt: skip
            number = self._file.insert(_INSERT, *row)
            paid = self._paid(new.digests, moment)
            for digest in dict.fromkeys(new.digests):
                self._file.insert("INSERT INTO charge VALUES (?, ?, ?)", number, digest, paid.get(digest))
            return self._file.jobs("number = ?", number)[0], True

    def _check_limits(self, analyst: str, moment: float) -> None:
        index = self._grid.passed(moment)
        for whose, most, where, values in (
            ("of one analyst", self.limits.per_analyst, " AND +analyst = ?", (index, analyst)),
            ("of all", self.limits.total, "", (index,)),
        ):
            ((active,),) = self._file.rows(f"{_COUNT}{where}", *values)
            if active >= most:
                raise TooManyJobs(
                    f"jobs {whose} must be at most {most} at a time, got one more; nothing was charged: wait "
                    "for an answer, or cancel one"
                )

    def _paid(self, digests: Sequence[str], moment: float) -> dict[str, int]:
        """Return the charges of unfinished jobs for these private SELECTs."""
        found, index = dict[str, int](), self._grid.passed(moment)
        for digest in digests:
            for (number,) in self._file.rows(_PAID, digest, index):
                found[digest] = number
        return found

    def under_way(self, analyst: str, moment: float) -> frozenset[str]:
        """Return the digests of the private SELECTs of an analyst's unfinished jobs, as they are shown."""
        rows = self._file.rows(_UNDER_WAY, self._grid.passed(moment), analyst)
        return frozenset(digest for (digest,) in rows)

    def charged(self, job: Job, charges: Mapping[str, int]) -> None:
        """Put a job into the queue whose charges were made, by digest."""
        with self._file.transaction():
            (now,) = self._file.jobs("number = ?", job.number)
            if now.state is not JobState.CHARGING:
                return
            for digest, number in charges.items():
                self._file.insert(_PUT, number, job.number, digest)
            if now.cancel is None:
                self._file.set(job, state=JobState.QUEUED.value, worker="")
            else:
                self._file.set(job, state=JobState.CANCELLED.value, worker="", ends=now.cancel)

    def left(self, job: Job) -> None:
        """Leave a job whose charging was interrupted to `JobQueue.recover`."""
        with self._file.transaction():
            if self._file.jobs("number = ?", job.number)[0].state is JobState.CHARGING:
                self._file.set(job, worker=_NOBODY)

    def refused(self, job: Job, message: str) -> None:
        """End a job that the ledger refused; nothing of it was charged."""
        with self._file.transaction():
            self._file.set(job, state=JobState.REFUSED.value, worker="", message=message, ends=job.submitted)

    def cancel(self, analyst: str, job_id: str, moment: float) -> None:
        """Cancel a job, which ends at a step of the grid; one that has ended, as it is shown, stays so.

        Parameters
        ----------
        analyst, job_id : str
        moment : float

        Raises
        ------
        ParameterError
            If the analyst has no such job.
        """
        with self._file.transaction():
            job, grid = self._of(analyst, job_id), self._grid
            if shown_state(job, grid, moment).ended:
                return
            if job.begun is None:
                at = grid.next(moment)
                waits = {"state": JobState.CANCELLED.value, "ends": at, "cancel": at}
                self._file.set(job, **({"cancel": at} if job.state is JobState.CHARGING else waits))
                return
            at = grid.cancelled(job.begun, job.passes, moment)
            if job.state is JobState.RUNNING:
                self._file.set(job, cancel=at if job.cancel is None else min(job.cancel, at))
            elif job.state is JobState.DONE:
                self._file.set(job, ends=min(job.ends or at, at), cancel=at)
            else:
                self._file.set(job, state=JobState.CANCELLED.value, ends=min(job.ends or at, at), cancel=at)

    def _of(self, analyst: str, job_id: str) -> Job:
        """Return a job of an analyst; that of another one is refused like one that is not there."""
        found = self._file.jobs("analyst = ? AND id = ?", analyst, job_id) if job_id.isascii() else []
        if not found:
            rule = "be that of a job of this analyst"
            _check.refuse_state("id", rule, "there is no such job", "take it from the history")
        return found[0]

    def view(self, analyst: str, job_id: str, moment: float) -> JobView:
        """Return what an analyst sees of one of their jobs.

        Raises
        ------
        ParameterError
            If they have no such job.
        """
        with self._file.lock:
            return self._view(self._of(analyst, job_id), moment)

    def view_of_request(self, analyst: str, request: str, moment: float) -> JobView | None:
        """Return the job that an analyst's request id has; None if there is none."""
        with self._file.lock:
            found = self._file.jobs("analyst = ? AND request = ?", analyst, request)
            return self._view(found[0], moment) if found else None

    def _view(self, job: Job, moment: float) -> JobView:
        count = 0
        if shown_state(job, self._grid, moment) is JobState.QUEUED:
            ((count,),) = self._file.rows(_AHEAD, job.number, self._grid.passed(moment))
        return JobView.of(job, self._grid, moment, ahead=count)

    def history(
        self, analyst: str, moment: float, *, limit: int = 50, offset: int = 0
    ) -> tuple[JobView, ...]:
        """Return an analyst's own jobs, the last ones first.

        Parameters
        ----------
        analyst : str
        moment : float
        limit, offset : int
            How many, and after how many.
        """
        with self._file.lock:
            where = "analyst = ? ORDER BY number DESC LIMIT ? OFFSET ?"
            return tuple(self._view(job, moment) for job in self._file.jobs(where, analyst, limit, offset))

    def answer(self, analyst: str, job_id: str, moment: float) -> Answer:
        """Return the answer of a job of an analyst, free of charge.

        Raises
        ------
        ParameterError
            If they have no such job, or it shows no answer yet.
        """
        with self._file.lock:
            job = self._of(analyst, job_id)
            state = shown_state(job, self._grid, moment)
            if state is not JobState.DONE:
                _check.refuse_state("job", "be done to have an answer", f"it is {state.value}", "look again")
            ((table, facts),) = self._file.rows("SELECT answer, facts FROM job WHERE number = ?", job.number)
            return Answer(table=table, facts=json.loads(facts))
