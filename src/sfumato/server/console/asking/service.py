"""The face of the analyst's part: one object for all analysts of a ledger, in each process of a console."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, final

import pyarrow as pa

from sfumato import _check
from sfumato.ledger.log.words import check_line
from sfumato.ledger.quote import require_at_most
from sfumato.server.console.asking.dataset_facts import DatasetFacts, Domains, dataset_facts
from sfumato.server.console.asking.dry_run import DryRun, dry_run
from sfumato.server.console.asking.generated_rows import Size
from sfumato.server.console.asking.job import Answer, Job, JobView
from sfumato.server.console.asking.job_file import JobFile
from sfumato.server.console.asking.job_queue import JobQueue
from sfumato.server.console.asking.job_runner import JobRunner
from sfumato.server.console.asking.job_store import JobLimits, JobStore, NewJob
from sfumato.server.console.asking.job_work import JobWork, session_for
from sfumato.server.console.asking.planning_tables import planning_session
from sfumato.server.console.asking.proposal import Proposal, Wanted, propose
from sfumato.server.console.asking.question import Question
from sfumato.server.console.asking.time_grid import TimeGrid
from sfumato.server.console.asking.worker_lock import WorkerLock
from sfumato.session.session import Session

__all__ = ["AskingService", "AskingSettings"]

_MOST_ROWS: Final = 2**62
"""More than a history has, and within what SQLite counts."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AskingSettings:
    """What a console lets analysts do at a time, and when it shows answers.

    Parameters
    ----------
    grid : TimeGrid
    limits : JobLimits
    clock : callable
        Seconds since 1970.
    on_failure : callable, optional
        Called with a job and the error of its run; for the operator's log alone.
    domains : mapping of str to TableDomain
        What the curator declares of the private tables' values, by table.
    size : Size
        Of the made-up rows of a dry run.
    """

    grid: TimeGrid = field(default_factory=TimeGrid)
    limits: JobLimits = field(default_factory=JobLimits)
    clock: Callable[[], float] = time.time
    on_failure: Callable[[Job, Exception], object] | None = None
    domains: Domains = field(default_factory=dict)
    size: Size = field(default_factory=Size)


@final
class AskingService:
    """Proposes, charges, answers and shows the questions of analysts.

    Several processes may share a folder, and its jobs; each runs a job at a time. Processes of different
    folders on one ledger share the budget, not the jobs.

    Parameters
    ----------
    session : Session
        The curator's, over the data and a ledger in a file or on a server.
    folder : Path
        Where the jobs are stored; private.
    planning : Session, optional
        A second session over the same tables and the same ledger, on which questions are priced. Left out,
        a copy of the tables without rows, which files and frames can have.
    settings : AskingSettings

    Raises
    ------
    ParameterError
        If the folder cannot be used, or is another ledger's.
    SourceError
        If the tables cannot be planned on without rows.

    Notes
    -----
    Guarantee: what analysts see before an answer depends on no private row, but for what
    `sfumato.server.console.asking.time_grid` states. A question is charged when it is submitted, before it
    waits for its turn, so that what is left of a budget says nothing about runs. It is never charged more
    than its proposal says. A charge is never made twice for one request id, whichever processes die: a
    submission that was interrupted is finished by any process of the folder, under the charge that was made
    if one was (and no 1,000 events came after it: see `sfumato.ledger.log.draws`).

    Examples
    --------
    >>> import tempfile
    >>> import sfumato as sf
    >>> from sfumato.ledger import Budget
    >>> folder = Path(tempfile.mkdtemp())
    >>> people = pa.table({"person": range(1000)})
    >>> session = sf.connect(people, privacy_unit="person", epsilon=1.0, ledger=folder / "ledger")
    >>> session.ledger.grant("ada", Budget.pure(epsilon=0.5))
    >>> now = [0.0]
    >>> service = AskingService(session, folder, settings=AskingSettings(clock=lambda: now[0]))
    >>> question = Question(
    ...     sql="SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.25, delta=0) COUNT(*) AS n FROM data"
    ... )
    >>> service.propose("ada", question).sentence
    'Spend 0.25 of your 0.5 epsilon.'
    >>> job = service.submit("ada", question, request="a random id")
    >>> service.run_next(), service.job("ada", job.id).state
    (True, 'running')
    >>> now[0] = 0.5
    >>> service.job("ada", job.id).state, service.table("ada", job.id).column_names
    ('done', ['n', 'n_lower', 'n_upper'])
    >>> service.close()
    >>> session.close()
    """

    def __init__(
        self,
        session: Session,
        folder: Path,
        *,
        planning: Session | None = None,
        settings: AskingSettings | None = None,
    ) -> None:
        self._settings = AskingSettings() if settings is None else settings
        self._session, self._clock = session, self._settings.clock
        self._own_planning = planning is None
        if planning is not None and planning.ledger.ledger_id != session.ledger.ledger_id:
            remedy = "connect both with the same ledger"
            _check.refuse_state("planning", "charge the session's ledger", "it has another one", remedy)
        self._lock = WorkerLock(folder / "workers")
        self._planning = planning_session(session) if planning is None else planning
        grid = self._settings.grid
        self._file = JobFile(folder / "jobs.sqlite", grid=grid, ledger=session.ledger.ledger_id)
        self._store = JobStore(self._file, self._settings.limits)
        self._work = JobWork(session, self._planning, self._store)
        self._queue = JobQueue(self._file)
        self._runner = JobRunner(
            self._queue,
            self._lock,
            grid,
            run=self._work.answer,
            interrupt=session.engine.cancel,
            finish_charging=self._work.charge,
            clock=self._clock,
            on_failure=self._settings.on_failure,
        )

    def _now(self) -> float:
        """Return the time, at which no job is left that should have ended by then."""
        now = self._clock()
        self._queue.settle(self._lock.is_dead, now)
        return now

    @property
    def grid(self) -> TimeGrid:
        """When answers are shown."""
        return self._settings.grid

    def session_of(self, analyst: str, question: Question | None = None) -> Session:
        """Return the session on which an analyst's questions are priced; it has no private row.

        Parameters
        ----------
        analyst : str
        question : Question, optional
            Its period, purpose and epsilon are the session's.

        Raises
        ------
        LedgerMismatch
            The analyst has no account.
        """
        return session_for(self._planning, analyst, question)

    def propose(self, analyst: str, question: Question, *, wanted: Wanted | None = None) -> Proposal:
        """Say what a question costs and how wrong its answer will be; nothing is charged, no row is read.

        Parameters
        ----------
        analyst : str
        question : Question
        wanted : Wanted, optional
            The error that is wanted, where the question states no epsilon.

        Returns
        -------
        Proposal
            With the refusal and what is offered instead where it does not fit.

        Raises
        ------
        QueryError, ParameterError, LedgerError
            As for `sfumato.server.console.asking.proposal.propose`.
        """
        session = self.session_of(analyst, question)
        under_way = self._store.under_way(analyst, self._now())
        return propose(session, question, wanted=wanted, under_way=under_way)

    def dry_run(self, analyst: str, question: Question, *, seed: int | None = None) -> DryRun:
        """Answer a question on made-up rows with simulated noise; nothing is charged, no row is read.

        Parameters
        ----------
        analyst : str
        question : Question
        seed : int, optional
            A random one unless given.

        Returns
        -------
        DryRun

        Raises
        ------
        QueryError, ParameterError
            If the question is refused: the same error as of `propose`.
        """
        return dry_run(
            self.session_of(analyst, question),
            question,
            domains=self._settings.domains,
            size=self._settings.size,
            seed=seed,
        )

    def facts(self) -> DatasetFacts:
        """Return what is public of the dataset; no row is read."""
        return dataset_facts(self._session, self._settings.domains)

    def submit(
        self,
        analyst: str,
        question: Question,
        *,
        request: str,
        at_most: Mapping[str, float] | None = None,
    ) -> JobView:
        """Charge a question and put it into the queue; the same request id again is the same job.

        Parameters
        ----------
        analyst : str
        question : Question
        request : str
            A random id of this very question, such as a form carries.
        at_most : mapping of str to float, optional
            The `cost` that the analyst saw; if it costs more by now, it is refused and not charged.

        Returns
        -------
        JobView
            ``"refused"`` where it does not fit, or costs more than a moment before: then nothing was charged.
            So, too, where the ledger cannot be used: then the message says whether it was charged.

        Raises
        ------
        QueryError, ParameterError
            If the question is refused, the request id is another question's, or the cost has grown.
        TooManyJobs
            If the limits are reached.
        """
        check_line("request", request)
        if not request:
            _check.refuse("request", "be a non-empty id", request, "draw a random one for each question")
        written, now = question.to_json(), self._now()
        known = self._store.view_of_request(analyst, request, now)
        if known is not None and known.question == written:
            return known
        proposal = self.propose(analyst, question)
        if at_most is not None:
            require_at_most(proposal.cost, at_most)
        new = NewJob(
            analyst=analyst,
            request=request,
            question=written,
            proposal=proposal.to_json(),
            passes=proposal.passes,
            digests=proposal.requests,
        )
        job, is_new = self._store.add(new, self._lock.name, now)
        if is_new:
            try:
                self._work.charge(job)
            except BaseException:
                self._store.left(job)
                raise
        return self._store.view(analyst, job.id, self._clock())

    def job(self, analyst: str, job_id: str) -> JobView:
        """Return one of an analyst's jobs as it is shown now.

        Raises
        ------
        ParameterError
            If they have no such job; that of another analyst is none.
        """
        return self._store.view(analyst, job_id, self._now())

    def history(self, analyst: str, *, limit: int = 50, offset: int = 0) -> tuple[JobView, ...]:
        """Return an analyst's own jobs, the last ones first; their answers are free.

        Parameters
        ----------
        analyst : str
        limit, offset : int
        """
        limit, offset = _check.integer("limit", limit, minimum=1), _check.integer("offset", offset)
        return self._store.history(
            analyst, self._now(), limit=min(limit, _MOST_ROWS), offset=min(offset, _MOST_ROWS)
        )

    def cancel(self, analyst: str, job_id: str) -> JobView:
        """Cancel one of an analyst's jobs, at a step of the grid; its charge stays.

        Returns
        -------
        JobView

        Raises
        ------
        ParameterError
            If they have no such job.
        """
        now = self._now()
        self._store.cancel(analyst, job_id, now)
        return self._store.view(analyst, job_id, now)

    def answer(self, analyst: str, job_id: str) -> Answer:
        """Return the answer of one of an analyst's jobs again, as it was stored; it costs nothing.

        Raises
        ------
        ParameterError
            If they have no such job, or it is not done.
        """
        return self._store.answer(analyst, job_id, self._now())

    def table(self, analyst: str, job_id: str) -> pa.Table:
        """Return the answer as an Arrow table, with the ends of its intervals; as `answer`."""
        return self.answer(analyst, job_id).to_arrow()

    def run_next(self) -> bool:
        """Run the job that is to begin now to its end, in this thread; return whether there was one."""
        return self._runner.run_next()

    def watch(self) -> bool:
        """Stop the job that runs if its time has passed; return whether it had."""
        return self._runner.watch()

    def start(self) -> None:
        """Run jobs in a thread of this process until `close`."""
        self._runner.start()

    def close(self) -> None:
        """Stop running jobs, and let go of the folder; the session stays open."""
        self._runner.close()
        self._file.close()
        self._lock.close()
        if self._own_planning:
            self._planning.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
