"""How a job ended is decided once, before it is shown, and what is left of dead processes stops nobody."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sfumato.errors import OptionError, ParameterError
from sfumato.ledger import LedgerView
from sfumato.numerics.randomness.source import random_source
from sfumato.server.console.asking.job import Answer
from sfumato.server.console.asking.job_file import JobFile
from sfumato.server.console.asking.job_queue import JobQueue
from sfumato.server.console.asking.job_store import JobLimits, JobStore, NewJob
from sfumato.server.console.asking.job_work import JobWork
from sfumato.server.console.asking.question import Question
from sfumato.server.console.asking.service import AskingService
from sfumato.server.console.asking.time_grid import TimeGrid
from sfumato.session.answer import ask_ledger
from tests.server.console.asking.setting import COUNT, GRID, SEARCH, opened, setting

SOURCE = random_source(None)


def begun(folder: Path) -> tuple[JobFile, JobStore, JobQueue, Any]:
    """Return the jobs of a folder, one of which began at 0: its deadlines are 2, 4, 8 and 16."""
    file = JobFile(folder / "jobs.sqlite", grid=GRID, ledger="one")
    store, queue = JobStore(file, JobLimits()), JobQueue(file)
    new = NewJob(analyst="ada", request="r", question="q", proposal={}, passes=1, digests=["d"])
    job, _ = store.add(new, "here", 0.0)
    store.charged(job, {"d": 1})
    return file, store, queue, queue.claim("here", 0.0)


def test_an_end_is_stored_before_it_is_shown_and_stays(tmp_path: Path) -> None:
    """A run that ends at its last deadline, and is looked at before that is stored, stays failed."""
    file, store, queue, job = begun(tmp_path)
    assert store.view("ada", job.id, 16.0).state == "running", "nothing is stored yet"
    queue.settle(lambda _: True, 16.0)
    assert store.view("ada", job.id, 16.0).state == "running", "what a dead process left begins anew"
    assert store.view("ada", job.id, 16.5).next_look == 17.0
    queue.settle(lambda _: False, 15.9)
    assert queue.stop_at(job) == 16
    queue.settle(lambda _: False, 16.0)
    assert store.view("ada", job.id, 16.0).state == "failed"
    queue.finish(job, None, lambda: 15.9)
    assert queue.stop_at(job) is None
    assert store.view("ada", job.id, 99.0).ended == 16.0
    file.close()


def test_an_answer_that_waits_to_be_stored_is_shown_at_a_later_deadline(tmp_path: Path) -> None:
    """The time is read when nobody else can write, so that an answer never shows when it was stored."""
    file, store, queue, job = begun(tmp_path)
    other = sqlite3.connect(tmp_path / "jobs.sqlite", timeout=0, isolation_level=None)

    def clock() -> float:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        return 2.5

    queue.finish(job, Answer(table=b"", facts={}), clock)
    other.close()
    assert [store.view("ada", job.id, now).state for now in (2.6, 3.9, 4.0)] == ["running", "running", "done"]
    file.close()


@pytest.mark.exhaustive
def test_of_a_job_without_an_answer_the_price_says_where_it_was_stopped(tmp_path: Path) -> None:
    """Two searches for bounds: stopped at the second, the first is free again; so there are more outcomes."""
    parts = [SEARCH.format(part) for part in (0.25, 0.125)]
    question = Question(sql=f"SELECT a.s + b.s AS both FROM ({parts[0]}) AS a, ({parts[1]}) AS b")
    seen = {}
    for each in (100.0, 25.0):
        with setting(tmp_path / str(each)) as here:
            job = here.ask(question.sql, "r")
            assert here.run(each)
            here.clock.now = 1000.0
            view = here.service.job("ada", job)
            assert (view.state, view.ended, view.proposal["passes"]) == ("failed", 64.0, 4)
            seen[each] = here.service.propose("ada", question).cost["epsilon"]
    assert seen == {100.0: 0.25, 25.0: 0.125}
    assert GRID.outcomes(searches=2) == GRID.outcomes() + 2


def test_what_a_question_costs_by_now_is_never_more_than_was_said(tmp_path: Path) -> None:
    """Its noise was drawn under the charge that it was to go on with, between the price and the charge."""
    with setting(tmp_path) as here:
        lost = here.ask(COUNT.format(0.25), "lost")
        with patch.object(type(here.session.engine), "aggregate", side_effect=ValueError):
            assert here.run(0.0)
        here.clock.now = 100.0
        assert here.state(lost) == "failed"
        real = JobWork.charge

        def drawn_before(work: Any, job: Any) -> None:
            view = LedgerView(here.session.ledger, "ada")
            (priced,) = here.service.session_of("ada").priced(COUNT.format(0.25))
            charge = next(iter(ask_ledger([priced], [""], account=view, source=SOURCE).charges.values()))
            (receipt,) = view.charge_all([charge])
            view.claim_draw(receipt, charge)
            real(work, job)

        with patch.object(JobWork, "charge", drawn_before):
            view = here.service.submit("ada", Question(sql=COUNT.format(0.25)), request="two", at_most={})
        assert (view.state, view.charges) == ("refused", ())
        assert "cost must be at most 0.0 epsilon, but it is 0.25 by now" in view.message
        assert len(here.session.ledger.entries()) == 1
        for limit, rule in ((float("nan"), "at_most of epsilon must be"), (0.2, "cost must be at most")):
            with pytest.raises(ParameterError, match=rule):
                here.service.submit(
                    "ada", Question(sql=COUNT.format(0.3)), request="3", at_most={"epsilon": limit}
                )


def test_a_submission_that_cannot_be_finished_stops_no_other_job(tmp_path: Path) -> None:
    """One breaks off in its process, and is refused by another one's policy; the job after it runs."""
    with setting(tmp_path) as here:
        with patch.object(JobStore, "charged", side_effect=KeyError), pytest.raises(KeyError):
            here.ask(COUNT.format(0.5), "left")
        with patch.object(JobWork, "_charges", side_effect=OptionError("epsilon must be smaller by now")):
            assert not here.run(0.0)
        (left,) = here.service.history("ada")
        assert (left.state, left.message) == ("refused", "epsilon must be smaller by now")
        with patch.object(JobStore, "charged", side_effect=KeyError), pytest.raises(KeyError):
            here.ask(COUNT.format(0.25), "again")
        after = here.ask(COUNT.format(0.125), "after")
        with patch.object(JobWork, "_charges", side_effect=KeyError):
            assert here.run(0.0), "it reports one that it cannot finish, and goes on"
        here.clock.now = 2.0
        assert here.state(after) == "done"
        here.run(0.0)
        here.clock.now = 8.0
        assert here.state(here.ask(COUNT.format(0.25), "again")) == "done"
        assert len(here.session.ledger.entries()) == 3


def test_a_planning_session_of_another_ledger_or_a_receipt_of_another_question_is_refused(
    tmp_path: Path,
) -> None:
    rule = "planning must charge the session's ledger"
    with opened(tmp_path / "a") as one, opened(tmp_path / "b") as other:  # noqa: SIM117 - one of them fails
        with pytest.raises(ParameterError, match=rule):
            AskingService(one, tmp_path / "jobs", planning=other)
    with setting(tmp_path / "c") as here:
        jobs = [here.ask(COUNT.format(part), str(part)) for part in (0.25, 0.5)]
        exchanged = {1: 2, 2: 1}
        real = type(here.session.ledger).receipt
        with patch.object(
            type(here.session.ledger), "receipt", lambda ledger, number: real(ledger, exchanged[number])
        ):
            assert here.run(0.0)
        here.clock.now = 16.0
        assert here.state(jobs[0]) == "failed", "the receipt was another question's"
        assert not any(entry.committed for entry in here.session.ledger.entries())
        assert here.service.propose("ada", Question(sql=COUNT.format(0.25))).free


def test_the_files_of_the_jobs_are_their_owners_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as session, AskingService(session, tmp_path / "jobs") as service:
        assert service.history("ada", offset=10**40) == ()
        with pytest.raises(ParameterError, match="id must be that of a job"):
            service.job("ada", "\ud800")
        folder = tmp_path / "jobs"
        ledger = session.ledger.ledger_id
        for each in (folder, *folder.rglob("*")):
            assert not stat.S_IMODE(each.stat().st_mode) & 0o077, each
    (folder / "jobs.sqlite").chmod(0o640)
    with pytest.raises(ParameterError, match="must be its owner's alone"):
        JobFile(folder / "jobs.sqlite", grid=TimeGrid(), ledger=ledger)


def test_no_look_at_jobs_goes_through_the_whole_history(tmp_path: Path) -> None:
    """SQLite's own plans: each statement of the analysts' and the workers' side goes by an index."""
    file, store, queue, _ = begun(tmp_path)
    statements: list[str] = []
    connection = file._connection
    connection.set_trace_callback(statements.append)
    store.history("ada", 0.0)
    store.under_way("ada", 0.0)
    queue.settle(lambda _: False, 99.0)
    new = NewJob(analyst="ada", request="s", question="q", proposal={}, passes=1, digests=["d"])
    store.charged(store.add(new, "here", 99.0)[0], {})
    store.view_of_request("ada", "s", 99.0)
    queue.recover(lambda _: False, 99.0)
    queue.claim("here", 99.0)
    connection.set_trace_callback(None)
    selected = [each for each in statements if each.startswith("SELECT") and "FROM" in each]
    assert len(selected) > 10
    for each in selected:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {each}")]
        assert not [step for step in plan if step.startswith("SCAN") or "rowid<" in step], (each, plan)
    file.close()
