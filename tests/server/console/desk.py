"""A console whose members sit at a real browser, and a look behind it: its ledger, its jobs and its clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.ledger import Budget, Ledger, Renewal
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.server.console.asking.job import JobView
from sfumato.server.console.asking.question import Question
from sfumato.server.console.asking.service import AskingService
from tests.browser import Browser
from tests.server.console.living import living_office
from tests.server.console.office import Office
from tests.server.console.visitor import Visitor

__all__ = ["Desk", "desk"]


@dataclass
class Clock:
    """The time of day, which a test can stop, and set on."""

    ahead: float = 0.0
    stopped: float | None = None

    def __call__(self) -> float:
        return self.ahead + (time.time() if self.stopped is None else self.stopped)

    def stop(self) -> None:
        """Let no time pass."""
        self.stopped = time.time()

    def go_on(self) -> None:
        """Let time pass again."""
        self.stopped = None


@dataclass
class Desk:
    """A console of which ada may spend epsilon 0.75, and who is at its browser."""

    office: Office
    visitor: Visitor
    key: Ed25519PrivateKey
    """Rita's."""
    downloads: Path
    clock: Clock = field(default_factory=Clock)
    files: list[str] = field(default_factory=list)
    """What came so."""

    @property
    def ledger(self) -> Ledger:
        return self.office.console.ledger

    @property
    def asking(self) -> AskingService:
        assert self.office.console.asking is not None
        return self.office.console.asking

    @property
    def jobs(self) -> tuple[JobView, ...]:
        """Ada's, the newest first."""
        return self.asking.history("ada", limit=1000)

    def everything(self) -> tuple[object, ...]:
        """Return what an act that changes nothing leaves as it is."""
        return self.ledger.head(), self.jobs, self.office.console.heads.last()

    def sign_in(self, name: str) -> None:
        """Have somebody else at the browser; "" is the public."""
        if name and name != self.visitor.name:
            self.visitor.sign_in(name, self.office.tokens[name])
        elif not name and self.visitor.name:
            self.visitor.sign_out()

    def submit(self, sql: str, request: str) -> JobView:
        """Submit a question of ada's."""
        return self.asking.submit("ada", Question(sql=sql, purpose="a report"), request=request)

    def wait_for(self, job: JobView, state: str) -> None:
        """Wait until a job is in a state."""
        last = time.monotonic() + 60
        while self.asking.job("ada", job.id).state != state:
            assert time.monotonic() < last, self.asking.job("ada", job.id)
            time.sleep(0.005)

    def take_file(self) -> None:
        """Wait for the file that a page sent, and take it."""
        last = time.monotonic() + 60
        while not (found := list(self.downloads.glob("*.jsonl"))):
            assert time.monotonic() < last, list(self.downloads.iterdir())
            time.sleep(0.005)
        self.files.append(found[0].read_text(encoding="utf-8"))
        found[0].unlink()

    def run(self, job: JobView) -> None:
        """Have a job begin, and no time pass from then on; its answer is shown later."""
        self.clock.ahead += self.asking.grid.step
        self.wait_for(job, "running")

    def fail(self, sql: str, request: str) -> JobView:
        """Return a job of which the engine took longer than its last deadline."""
        aggregate = DuckDBEngine.aggregate

        def late(engine: Any, *given: Any) -> Any:
            self.clock.ahead += 1000.0
            return aggregate(engine, *given)

        with patch.object(DuckDBEngine, "aggregate", late):
            job = self.submit(sql, request)
            self.wait_for(job, "failed")
        return job


@contextmanager
def desk(
    folder: Path, key: Ed25519PrivateKey, browser: Browser, *, renewal: Renewal | None = None
) -> Iterator[Desk]:
    """Serve a console until the end of the block; what its pages send as files comes into a folder."""
    clock, downloads = Clock(), folder / "downloads"
    downloads.mkdir()
    with living_office(folder, clock=clock, renewal=renewal) as (office, address):
        office.console.ledger.grant("ada", Budget.pure(epsilon=1.0), by="carl", reason="a report")
        browser.save_files(downloads)
        visitor = Visitor(browser, address)
        visitor.open("/releases")
        yield Desk(office, visitor, key, downloads, clock)
