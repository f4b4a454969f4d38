"""Questions are charged when they are asked, answered on the grid, and shown to whoever asked alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sfumato.errors import EngineError, LedgerMismatch, ParameterError, QueryError
from sfumato.server.console.asking.job import MESSAGES, JobState
from sfumato.server.console.asking.job_store import JobLimits, JobStore, TooManyJobs
from sfumato.server.console.asking.question import Question
from sfumato.server.console.asking.service import AskingService, AskingSettings
from sfumato.server.console.asking.time_grid import TimeGrid
from tests.server.console.asking.setting import COUNT, SEARCH, opened, setting


def test_a_question_is_charged_at_once_answered_on_the_grid_and_free_again(tmp_path: Path) -> None:
    with setting(tmp_path) as here:
        job = here.ask(COUNT.format(0.25), "one")
        assert [entry.epsilon for entry in here.session.ledger.entries()] == [pytest.approx(0.25)]
        assert here.state(job) == "queued"
        assert here.run(0.3)
        assert [entry.committed for entry in here.session.ledger.entries()] == [True]
        for moment, state in ((0.3, "running"), (1.99, "running"), (2.0, "done")):
            here.clock.now = moment
            assert here.state(job) == state, moment
        answer = here.service.answer("ada", job)
        table = here.service.table("ada", job)
        assert table.column_names == ["n", "n_lower", "n_upper"]
        assert answer.facts["epsilon"] == 0.25
        assert table["n"][0].as_py() == here.session.ledger.release(1).to_arrow()["n"][0].as_py()
        assert here.ask(COUNT.format(0.25), "one") == job, "the same request id is the same job"
        again = here.ask(COUNT.format(0.25), "two")
        assert again != job
        here.clock.now = 3.0
        assert here.run(0.0)
        here.clock.now = 10.0
        assert here.service.answer("ada", again).table == answer.table
        assert len(here.session.ledger.entries()) == 1
        assert json.dumps([view.to_json() for view in here.service.history("ada")])


def transcript(folder: Path, seconds: list[float], cancel: float | None = None) -> list[Any]:
    """Return all that an analyst sees, at every quarter of a second, of jobs whose runs take so long."""
    with setting(folder) as here, patch("secrets.token_hex", iter_ids()):
        here.clock.now = 0.25
        jobs = [here.ask(COUNT.format(0.1 + n / 10), f"r{n}") for n in range(len(seconds))]
        seen: list[Any] = []
        waiting, free = list(seconds), 0.0
        for tick in range(1, 4 * 60):
            moment = tick / 4
            if cancel == moment:
                here.clock.now = moment
                here.service.cancel("ada", jobs[0])
            if waiting and moment >= free:
                here.clock.now = moment
                if here.run(waiting[0]):
                    waiting.pop(0)
                    free = here.clock.now
            here.clock.now = moment
            views = [asdict(view) for view in here.service.history("ada")]
            left = here.service.propose("ada", Question(sql=COUNT.format(0.05))).before
            seen.append((views, left))
        return seen


def iter_ids() -> Any:
    """Return what draws ids in one fixed order, so that two runs have the same."""
    numbers = iter(range(10**6))
    return lambda _=32: f"{next(numbers):032x}"


@pytest.mark.exhaustive
def test_nothing_that_is_shown_depends_on_the_time_within_a_deadline(tmp_path: Path) -> None:
    """Runs of 0.1 and of 1.9 seconds end at the first deadline, one of 2.5 at the second."""
    first = transcript(tmp_path / "a", [0.1, 0.1])
    assert transcript(tmp_path / "b", [1.5, 0.7]) == first
    assert transcript(tmp_path / "c", [2.5, 0.1]) != first, "the planted leak: one deadline later"


def test_what_is_shown_of_one_job_is_the_same_within_a_deadline(tmp_path: Path) -> None:
    seen = {}
    for seconds in (0.1, 1.9, 2.5):
        with setting(tmp_path / str(seconds)) as here, patch("secrets.token_hex", iter_ids()):
            job = here.ask(COUNT.format(0.25), "r")
            here.run(seconds)
            views = []
            for tick in range(40):
                here.clock.now = tick / 4
                views.append(asdict(here.service.job("ada", job)))
            seen[seconds] = views
    assert seen[0.1] == seen[1.9]
    assert seen[0.1] != seen[2.5]


@pytest.mark.parametrize("text", [COUNT.format(0.25), SEARCH.format(0.25)], ids=["count", "search"])
def test_a_failure_looks_like_a_run_that_takes_too_long(tmp_path: Path, text: str) -> None:
    ends = []
    for how in ("fails", "late"):
        with setting(tmp_path / how) as here, patch("secrets.token_hex", iter_ids()):
            job = here.ask(text, "r")
            error = EngineError("it broke")
            if how == "fails":
                with patch.object(type(here.session.engine), "aggregate", side_effect=error):
                    assert here.service.run_next()
            else:
                assert here.run(1000.0)
            views = []
            for tick in range(150):
                here.clock.now = tick / 2
                views.append(asdict(here.service.job("ada", job)))
            ends.append(views)
            assert views[-1]["state"] == "failed"
            assert views[-1]["message"] == MESSAGES[JobState.FAILED]
            assert views[-1]["charges"] == (1,)
            here.clock.now = 100.0
            again = here.service.propose("ada", Question(sql=text))
            assert again.free is (text == COUNT.format(0.25)), "bounds are searched for with noise"
            other = here.ask(text, "again")
            here.clock.now = 101.0
            assert here.run(0.0)
            here.clock.now = 200.0
            assert here.state(other) == "done"
            assert len(here.session.ledger.entries()) == (1 if again.free else 2)
    assert ends[0] == ends[1]


def test_a_job_is_stopped_at_its_last_deadline_while_it_runs(tmp_path: Path) -> None:
    with setting(tmp_path) as here:
        job = here.ask(COUNT.format(0.25), "r")
        stopped = []

        def aggregate(_: Any, *__: Any) -> Any:
            for here.clock.now in (2.0, 15.9, 16.0, 16.1):
                stopped.append((here.clock.now, here.service.watch(), here.state(job)))
            return None

        with patch.object(type(here.session.engine), "aggregate", aggregate):
            assert here.service.run_next()
        assert stopped == [
            (2.0, False, "running"), (15.9, False, "running"), (16.0, False, "failed"), (16.1, True, "failed")
        ]  # fmt: skip
        assert [entry.committed for entry in here.session.ledger.entries()] == [False]


def test_a_cancellation_takes_effect_on_the_grid_and_the_charge_stays(tmp_path: Path) -> None:
    with setting(tmp_path) as here:
        ran, waits = (here.ask(COUNT.format(part), str(part)) for part in (0.25, 0.5))
        here.clock.now = 0.25
        here.service.cancel("ada", waits)
        assert here.state(waits) == "queued"
        here.clock.now = 0.0
        assert here.run(2.5)
        here.clock.now = 3.1
        assert here.service.cancel("ada", ran).state == "running"
        here.clock.now = 4.0
        assert [here.state(ran), here.state(waits)] == ["done", "cancelled"], "it was answered by then"
        assert not here.run(0.0), "what was cancelled never begins"
        assert len(here.session.ledger.entries()) == 2
        third = here.ask(COUNT.format(0.125), "third")
        here.clock.now = 5.0

        def cancelled(_: Any, *__: Any) -> Any:
            here.service.cancel("ada", third)
            here.clock.now = 9.0
            return None

        with patch.object(type(here.session.engine), "aggregate", cancelled):
            assert here.service.run_next()
        view = here.service.job("ada", third)
        assert (view.state, view.ended, view.message) == ("cancelled", 7.0, MESSAGES[JobState.CANCELLED])
        assert here.service.propose("ada", Question(sql=COUNT.format(0.125))).free


def test_what_is_on_its_way_is_not_charged_twice_nor_shown_to_be_answered(tmp_path: Path) -> None:
    with setting(tmp_path) as here:
        one = here.ask(COUNT.format(0.25), "one")
        seen = []
        for moment in (0.0, 0.5):
            here.clock.now = moment
            seen.append(here.service.propose("ada", Question(sql=COUNT.format(0.25))).to_json())
            here.run(0.5)
        assert seen[0] == seen[1], "that it has run shows nowhere"
        assert seen[0]["free"]
        two = here.ask(COUNT.format(0.25), "two")
        here.clock.now = 1.0
        assert not here.run(0.0), "it waits until the first one has ended as it is shown"
        here.clock.now = 2.0
        assert here.run(0.0)
        here.clock.now = 4.0
        assert here.service.answer("ada", two).table == here.service.answer("ada", one).table
        assert len(here.session.ledger.entries()) == 1


def test_a_refusal_charges_nothing_and_offers_what_fits(tmp_path: Path) -> None:
    with setting(tmp_path) as here:
        here.ask(COUNT.format(0.75), "one")
        proposal = here.service.propose("ada", Question(sql=COUNT.format(0.5)))
        assert proposal.offer is not None
        assert 0.24 < (proposal.offer.epsilon or 0) <= 0.25
        assert proposal.offer.columns[0].half_width is not None
        view = here.service.submit("ada", Question(sql=COUNT.format(0.5)), request="two")
        assert view.state == "refused"
        assert view.message == proposal.offer.message
        assert view.charges == ()
        assert len(here.session.ledger.entries()) == 1
        with pytest.raises(ParameterError, match="cost must be at most"):
            here.service.submit("ada", Question(sql=COUNT.format(0.2)), request="3", at_most={"epsilon": 0.1})


def test_a_refused_question_is_not_on_its_way(tmp_path: Path) -> None:
    with setting(tmp_path) as here:
        question = Question(sql=COUNT.format(50))
        assert here.service.submit("ada", question, request="one").state == "refused"
        assert not here.service.propose("ada", question).fits


def test_an_analyst_sees_their_own_jobs_only(tmp_path: Path) -> None:
    with setting(tmp_path) as here:
        secret = COUNT.format(0.25).replace("FROM data", "FROM data WHERE pay = 7.125")
        job = here.ask(secret, "one", purpose="salaries")
        assert here.service.history("bob") == ()
        for act in (here.service.job, here.service.cancel, here.service.answer):
            with pytest.raises(ParameterError, match="id must be that of a job of this analyst"):
                act("bob", job)
        here.ask(COUNT.format(0.25), "one", analyst="bob")  # a request id is an analyst's own
        (view,) = here.service.history("bob")
        assert "7.125" not in json.dumps(view.to_json())
        assert view.ahead == 1
        bob = here.session.as_analyst("bob").account
        assert "7.125" not in repr(bob.entries())
        assert [entry.purpose for entry in here.session.ledger.entries()] == ["salaries", ""]
        with pytest.raises(LedgerMismatch, match="'eve'"):
            here.ask(secret, "one", analyst="eve")
        with pytest.raises(ParameterError, match="analyst must be"):
            here.ask(secret, "one", analyst="")


def test_so_many_jobs_at_a_time_and_no_more(tmp_path: Path) -> None:
    with setting(tmp_path, limits=JobLimits(per_analyst=2, total=3)) as here:
        here.ask(COUNT.format(0.1), "1")
        here.ask(COUNT.format(0.2), "2")
        with pytest.raises(TooManyJobs, match="jobs of one analyst must be at most 2"):
            here.ask(COUNT.format(0.3), "3")
        here.ask(COUNT.format(0.1), "1", analyst="bob")
        with pytest.raises(TooManyJobs, match="jobs of all must be at most 3"):
            here.ask(COUNT.format(0.2), "2", analyst="bob")
        assert len(here.session.ledger.entries()) == 3
        here.run(0.1)
        with pytest.raises(TooManyJobs, match="one analyst"):
            here.ask(COUNT.format(0.3), "3")
        here.clock.now = 2.0
        here.ask(COUNT.format(0.3), "3")


def test_what_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    with setting(tmp_path) as here:
        here.ask(COUNT.format(0.1), "used")
        refused: list[tuple[dict[str, Any], str, type[Exception]]] = [
            ({"text": "SELEC", "request": "a"}, "SELECT", QueryError),
            ({"text": COUNT.format(0.1)[:-4] + "dta", "request": "a"}, "did you mean 'data'", QueryError),
            ({"text": COUNT.format(0.2), "request": "used"}, "request must be a new id", ParameterError),
            ({"text": COUNT.format(0.2), "request": ""}, "request must be a non-empty id", ParameterError),
            ({"text": COUNT.format(0.2), "request": "a", "period": "x"}, "period must be", ParameterError),
        ]  # fmt: skip
        for given, rule, kind in refused:
            with pytest.raises(kind, match=rule):
                here.ask(**given)
        assert len(here.session.ledger.entries()) == 1


def test_a_folder_is_of_one_ledger_and_one_grid(tmp_path: Path) -> None:
    with setting(tmp_path):
        pass
    with opened(tmp_path) as session:
        grid = AskingSettings(grid=TimeGrid(step=2.0))
        with pytest.raises(ParameterError, match="grid must stay as it is"):
            AskingService(session, tmp_path, settings=grid)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "jobs.sqlite").write_bytes(b"no database at all" * 100)
    with opened(tmp_path) as session, pytest.raises(ParameterError, match="must be a console's store"):
        AskingService(session, tmp_path / "other")


def test_sql_around_private_selects_is_one_job(tmp_path: Path) -> None:
    text = f"SELECT a.n / b.n AS ratio FROM ({COUNT.format(0.25)}) AS a, ({COUNT.format(0.125)}) AS b"
    with setting(tmp_path) as here:
        proposal = here.service.propose("ada", Question(sql=text))
        assert (proposal.passes, proposal.epsilon) == (2, 0.375)
        job = here.ask(text, "one")
        assert here.run(0.5)
        here.clock.now = 3.9
        assert here.state(job) == "running"
        here.clock.now = 4.0
        assert here.service.table("ada", job).column_names[0] == "ratio"
        assert here.service.job("ada", job).charges == (1, 2)


def test_what_a_dead_process_left_is_finished_by_the_next_one(tmp_path: Path) -> None:
    """One job was begun and one submission was charged, but not written down, when the process ended."""
    with setting(tmp_path) as here:
        begun = here.ask(COUNT.format(0.25), "begun")
        with (
            patch.object(type(here.session.engine), "aggregate", side_effect=SystemExit),
            pytest.raises(SystemExit),
        ):
            here.service.run_next()
        with patch.object(JobStore, "charged", side_effect=SystemExit), pytest.raises(SystemExit):
            here.ask(COUNT.format(0.5), "charged")
        charged = here.service.history("ada")[0].id
    with setting(tmp_path) as here:
        for here.clock.now in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0):
            here.run(0.0)
        here.clock.now = 20.0
        assert [here.state(begun), here.state(charged)] == ["done", "done"]
        assert here.ask(COUNT.format(0.5), "charged") == charged
        assert [entry.committed for entry in here.session.ledger.entries()] == [True, True]
