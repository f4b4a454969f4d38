"""A console's asking over a small table, with a clock that tests turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import sfumato as sf
from sfumato.ledger import Budget
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.server.console.asking.job_store import JobLimits
from sfumato.server.console.asking.question import Question
from sfumato.server.console.asking.service import AskingService, AskingSettings
from sfumato.server.console.asking.time_grid import TimeGrid
from sfumato.session.session import Session

COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta=0) COUNT(*) AS n FROM data"
SEARCH = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta=0) SUM(pay) AS s FROM data"
GRID = TimeGrid(step=1.0, first=2, doublings=3)


@dataclass
class Clock:
    """What the service takes for the time; a run may turn it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Setting:
    """A service with its clock."""

    session: Session
    service: AskingService
    clock: Clock

    def ask(self, text: str, request: str, analyst: str = "ada", **more: Any) -> str:
        """Submit a question and return its job's id."""
        return self.service.submit(analyst, Question(sql=text, **more), request=request).id

    def state(self, job: str, analyst: str = "ada") -> str:
        return self.service.job(analyst, job).state

    def run(self, seconds: float) -> bool:
        """Run the next job, which takes so long."""
        with patch.object(type(self.session.engine), "aggregate", turned(self.clock, seconds)):
            return self.service.run_next()


def turned(clock: Clock, seconds: float) -> Callable[..., Any]:
    """Return an engine's `aggregate` that turns the clock."""
    real = DuckDBEngine.aggregate

    def aggregate(engine: Any, *given: Any) -> Any:
        clock.now += seconds
        return real(engine, *given)

    return aggregate


def people(count: int = 100) -> Any:
    return pa.table({"person": range(count), "pay": [float(n % 10) for n in range(count)]})


def opened(folder: Path, table: Any = None) -> Session:
    """Return the curator's session, with accounts for two analysts."""
    folder.mkdir(exist_ok=True)
    ledger = folder / "ledger"
    session = sf.connect(table or people(), privacy_unit="person", epsilon=2.0, ledger=ledger)
    if not session.ledger.accounts():
        for name in ("ada", "bob"):
            session.ledger.grant(name, Budget.pure(epsilon=1.0))
    return session


@contextmanager
def setting(folder: Path, *, limits: JobLimits | None = None) -> Iterator[Setting]:
    clock = Clock()
    settings = AskingSettings(grid=GRID, limits=limits or JobLimits(), clock=clock)
    with opened(folder) as session, AskingService(session, folder, settings=settings) as service:
        yield Setting(session, service, clock)
