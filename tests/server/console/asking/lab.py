"""Processes of a console: they ask, run and are killed, on one folder and one ledger.

Run as ``python lab.py race FOLDER LEDGER COUNT OWN``: submits the same questions as all others do, for the
last epsilon, and runs what it can; prints how many were refused. Or ``python lab.py kill FOLDER STAGE...``:
for each stage a process kills itself there, and another one finishes what was left, asks under the same id
and under a new one; prints what that found, by stage.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[4]))

import duckdb  # noqa: F401 - before the forks, so that they need not import it
import pyarrow as pa

import sfumato as sf
from sfumato.ledger import Budget, LedgerView
from sfumato.server.console.asking.job_queue import JobQueue
from sfumato.server.console.asking.job_store import JobLimits, JobStore, TooManyJobs
from sfumato.server.console.asking.question import Question
from sfumato.server.console.asking.service import AskingService, AskingSettings
from sfumato.server.console.asking.time_grid import TimeGrid
from tests.ledger.crash_lab import trial

QUERY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta=0) COUNT(*) AS n FROM data"
STAGES: dict[str, tuple[Any, str, bool]] = {
    "before the job": (JobStore, "add", False),
    "before the charge": (LedgerView, "charge_all", False),
    "after the charge": (LedgerView, "charge_all", True),
    "in the queue": (JobStore, "charged", True),
    "after it began": (JobQueue, "claim", True),
    "after reading": (LedgerView, "claim_draw", False),
    "after the draw was written": (LedgerView, "claim_draw", True),
    "after the noise": (LedgerView, "commit", False),
    "after the commit": (LedgerView, "commit", True),
    "after the end": (JobQueue, "finish", True),
}


class Time:
    """A clock that goes on by a step of the grid with every run."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(folder: Path, ledger: str) -> tuple[sf.Session, AskingService, Time]:
    folder.mkdir(exist_ok=True)
    people = pa.table({"person": range(100)})
    session = sf.connect(people, privacy_unit="person", epsilon=1.0, ledger=ledger)
    if not session.ledger.accounts():
        session.ledger.grant("ada", Budget.pure(epsilon=1.0))
    clock = Time()
    settings = AskingSettings(
        grid=TimeGrid(step=1.0, first=1, doublings=3), limits=JobLimits(per_analyst=64), clock=clock
    )
    return session, AskingService(session, folder, settings=settings), clock


def run_all(service: AskingService, clock: Time) -> None:
    for _ in range(20):
        clock.now += 1.0
        service.run_next()


def race(folder: Path, ledger: str, count: int, own: str) -> dict[str, Any]:
    session, service, clock = opened(folder, ledger)
    with session, service:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        jobs = []
        for number in range(count):
            question = Question(sql=QUERY.format(0.1 + number / 1000))
            try:
                jobs.append(service.submit("ada", question, request=f"{own}{number}").id)
            except TooManyJobs:
                continue
        run_all(service, clock)
        return {"refused": sum(service.job("ada", job).state == "refused" for job in jobs)}


def kill(folder: Path, ledger: str, stage: str) -> None:
    _, service, clock = opened(folder, ledger)
    owner, name, after = STAGES[stage]
    method = getattr(owner, name)

    def last(self: Any, *given: Any, **more: Any) -> Any:
        if after:
            method(self, *given, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(owner, name, last):
        service.submit("ada", Question(sql=QUERY.format(0.25)), request="one")
        run_all(service, clock)


def again(folder: Path, ledger: str) -> dict[str, Any]:
    session, service, clock = opened(folder, ledger)
    with session, service:
        clock.now = 100.0
        run_all(service, clock)
        question = Question(sql=QUERY.format(0.25))
        view = service.submit("ada", question, request="one")
        run_all(service, clock)
        first = service.job("ada", view.id)
        free = service.propose("ada", question).free
        other = service.submit("ada", question, request="two")
        run_all(service, clock)
        second = service.job("ada", other.id)
        entries = session.ledger.entries()
        assert session.ledger.verify().sound
        return {
            "first": first.state,
            "said": list(first.charges),
            "free": free,
            "second": second.state,
            "charges": len(entries),
            "same": first.state != "done"
            or service.table("ada", first.id) == service.table("ada", second.id),
        }


def forked(work: Callable[[Callable[[object], None]], None]) -> list[Any]:
    """Run work in a child process, and return what it reported, if it was not killed."""
    reports, ended = trial(work)
    assert ended in (0, signal.SIGKILL), (reports, ended)
    return reports


def kill_and_ask_again(folder: Path, stage: str) -> Any:
    ledger = str(folder / "ledger")
    assert forked(lambda _: kill(folder, ledger, stage)) == [], "it was killed"
    (found,) = forked(lambda report: report(again(folder, ledger)))
    return found


def main(work: str, folder: Path, *more: str) -> dict[str, Any]:
    if work == "race":
        ledger, count, own = more
        return race(folder, ledger, int(count), own)
    return {stage: kill_and_ask_again(folder / str(n), stage) for n, stage in enumerate(more)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])) + "\n")
