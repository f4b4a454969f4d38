"""One job: a question that was charged and is to be answered, as it is stored and as its analyst sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Final, final

import pyarrow as pa

from sfumato.server.console.asking.table_stream import read_stream
from sfumato.server.console.asking.time_grid import TimeGrid

__all__ = ["Answer", "Job", "JobState", "JobView", "shown_state", "stop_of"]


class JobState(Enum):
    """What a job is; the stored state may run ahead of the one that is shown."""

    CHARGING = "charging"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self in _ENDED


_SLACK: Final = 0.02
"""Seconds after the end of a step in which it is surely over."""
_ENDED: Final = (JobState.DONE, JobState.REFUSED, JobState.FAILED, JobState.CANCELLED)

MESSAGES: Final = {
    JobState.FAILED: (
        "the question must be answered by its last deadline, but it was not: it took too long, or the engine "
        "failed; its charge stays. Asked again, it is answered under that charge if no noise was drawn for "
        "it, and else charged anew, which the proposal says beforehand"
    ),
    JobState.CANCELLED: (
        "the question was cancelled; its charge stays. Asked again, it is answered under that charge if no "
        "noise was drawn for it, and else charged anew, which the proposal says beforehand"
    ),
}
"""What is said of a job that ended without an answer: the same words, whatever the reason was."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A released table as it is stored with its job: released values and public facts only.

    Parameters
    ----------
    table : bytes
        The table with the ends of its intervals, as a stream of Arrow's IPC format.
    facts : mapping of str to value
        ``epsilon``, ``delta``, ``privacy_unit``, ``simulated``, and ``explanation``.
    """

    table: bytes
    facts: Mapping[str, Any]

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return read_stream(self.table)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it is stored. Only its `JobView` is for the analyst.

    ``submitted``, ``begun``, ``cancel`` and ``ends`` are steps of the grid: those at whose ends it could
    begin at the earliest, began, is cancelled, and is shown as ended.
    """

    number: int
    id: str
    analyst: str
    request: str
    question: str
    proposal: Mapping[str, Any]
    passes: int
    submitted: int
    state: JobState
    worker: str
    attempts: int
    begun: int | None
    cancel: int | None
    ends: int | None
    message: str
    charges: Mapping[str, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as its analyst sees it: a function of public parameters and of when it ended on the grid.

    Parameters
    ----------
    id : str
        Random; the address of the job.
    request : str
        The id that the analyst's program or page gave it.
    state : str
        ``"queued"``, ``"running"``, ``"done"``, ``"refused"``, ``"failed"`` or ``"cancelled"``.
    question : str
        A document of the format ``sfumato.question``.
    proposal : mapping of str to value
        What it cost and which errors were expected: see `Proposal.to_json`.
    message : str
        Why there is no answer; "" else.
    charges : tuple of int
        The numbers of its charges in the ledger, which are for its receipts.
    ahead : int
        How many jobs wait before it.
    submitted, begun, ended : float or None
        Ends of steps, in seconds since 1970.
    next_look : float or None
        When its state can change next; None once it has ended.
    deadline : float or None
        When it has ended at the latest; None before it began and once it has ended.
    """

    id: str
    request: str
    state: str
    question: str
    proposal: Mapping[str, Any]
    message: str
    charges: tuple[int, ...]
    ahead: int
    submitted: float
    begun: float | None
    ended: float | None
    next_look: float | None
    deadline: float | None

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain values, for a page or for JSON."""
        return asdict(self)

    def until_next_look(self, moment: float) -> float | None:
        """Return the seconds until its state can be another, and a little more; None once it has ended."""
        return None if self.next_look is None else max(self.next_look - moment, 0.0) + _SLACK

    @classmethod
    def of(cls, job: Job, grid: TimeGrid, moment: float, *, ahead: int) -> JobView:
        """Return what is shown of a job at a moment."""
        state, index = shown_state(job, grid, moment), grid.passed(moment)
        ended = job.ends if state.ended else None
        begun = job.begun if job.begun is not None and job.begun <= index else None
        last = None if begun is None else grid.last(begun, job.passes)
        following = [index + 1]
        if state is JobState.RUNNING and begun is not None:
            following = [each for each in grid.deadlines(begun, job.passes) if each > index]
            following += [] if job.cancel is None else [max(job.cancel, index + 1)]
        message = job.message if state is JobState.REFUSED else MESSAGES.get(state, "")

        def time(step: int | None) -> float | None:
            return None if step is None else grid.time_of(step)

        return cls(
            id=job.id,
            request=job.request,
            state=state.value,
            question=job.question,
            proposal=job.proposal,
            message=message,
            charges=tuple(sorted(set(job.charges.values()))),
            ahead=ahead,
            submitted=grid.time_of(job.submitted),
            begun=time(begun),
            ended=time(ended),
            next_look=None if state.ended else time(min(following, default=index + 1)),
            deadline=None if state.ended else time(last),
        )


def stop_of(job: Job, grid: TimeGrid) -> int | None:
    """Return the step at whose end a job's run is to be stopped; None for one that does not run."""
    if job.state is not JobState.RUNNING or job.begun is None:
        return None
    return job.cancel if job.cancel is not None else grid.last(job.begun, job.passes)


def shown_state(job: Job, grid: TimeGrid, moment: float) -> JobState:
    """Return the state that is shown at a moment, which is behind the stored one until the job's end.

    An end is shown once it is stored, so that none is shown and then another.
    """
    index = grid.passed(moment)
    if job.state is JobState.REFUSED:
        return job.state
    if job.state.ended and job.ends is not None and job.ends <= index:
        return job.state
    begun = job.begun is not None and job.begun <= index
    return JobState.RUNNING if begun else JobState.QUEUED
