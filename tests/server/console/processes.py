"""Consoles as processes with data, and who visits them over HTTP: browsers with cookies, and programs."""

from __future__ import annotations

import http.client
import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import urlencode

import pyarrow as pa
from pyarrow import parquet

import sfumato
from sfumato.ledger import Budget, LedgerView, Role
from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.access.token_store import TokenStore
from sfumato.server.console.asking.question import Question
from sfumato.server.console.asking.service import AskingService
from tests.forks import COMMAND, started

__all__ = [
    "ANALYSTS",
    "STAGES",
    "Answered",
    "Running",
    "Visitor",
    "prepare",
    "question",
    "run",
    "running",
]

DYING = "from tests.server.console.processes import dying; dying({!r})"
IMPORTS = """
import duckdb, pandas, pyarrow.parquet, sqlglot
import sfumato.cli.main, sfumato.cli.governance.console
import tests.server.console.processes
import uvicorn.lifespan.off, uvicorn.loops.auto, uvicorn.protocols.http.h11_impl
"""
"""What a console imports by its first answer."""

ANALYSTS = ("ada", "bob", "cleo", "dan")
STAGES: dict[str, tuple[type, str, bool]] = {
    "before the charge": (LedgerView, "charge_all", False),
    "after the charge": (LedgerView, "charge_all", True),
    "before the page": (AskingService, "submit", True),
    "after the draw was written": (LedgerView, "claim_draw", True),
    "after the commit": (LedgerView, "commit", True),
}
"""Where a process kills itself: a method, and whether after it."""

CONFIG = """
ledger = "{ledger}"
title = "A town"
folder = "console"
[dataset]
source = "people.parquet"
privacy-unit = "id"
epsilon = 1.0
[answers]
step = 0.05
per-analyst = 64
"""


class Answered(NamedTuple):
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    text: str


class Running(NamedTuple):
    """A process, and where it listens."""

    port: int
    process: Any

    def ask(
        self, method: str, path: str, body: str = "", *, source: str = "127.0.0.1", **headers: str
    ) -> Answered:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=60, source_address=(source, 0)
        )
        sent = {"host": f"localhost:{self.port}", "accept": "text/html", **headers}
        if method == "POST":
            sent |= {"content-type": "application/x-www-form-urlencoded"}
        try:
            connection.request(
                method, path, body, {name.replace("_", "-"): value for name, value in sent.items()}
            )
            reply = connection.getresponse()
            return Answered(reply.status, reply.headers, reply.read().decode(errors="replace"))
        finally:
            connection.close()

    @property
    def origin(self) -> str:
        """Of its own pages."""
        return f"http://localhost:{self.port}"

    def printed(self) -> str:
        """End it, and return all that it printed after its first line."""
        self.process.terminate()
        out, err = self.process.communicate(timeout=60)
        return f"{out}{err}"


@contextmanager
def running(config: Path, stage: str = "", *, port: int = 0, warm: bool = True) -> Iterator[Running]:
    """Run a console of its own process, which kills itself at a stage, if there is one."""
    words = ("console", "serve", str(config), "--port", str(port))
    script = DYING.format(stage) if stage else COMMAND
    with started(script, *words, imports=IMPORTS, warm=warm) as process:
        first = process.stdout.readline()
        assert "console at http://localhost:" in first, process.stderr.read()
        yield Running(int(first.rpartition(":")[2]), process)


@dataclass
class Visitor:
    """A member: a program with a token, or a browser that signed in with it."""

    console: Running
    token: str
    browser: bool = False
    cookie: str = field(default="", repr=False)
    csrf: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.browser:
            form = self.console.ask("GET", "/sign-in")
            self._note(form)
            assert self.post("/sign-in", {"token": self.token}).status == 303
            self._note(self.get("/ask"))

    def get(self, path: str) -> Answered:
        return self.console.ask("GET", path, **self._headers())

    def post(self, path: str, form: Mapping[str, str]) -> Answered:
        body = urlencode({"csrf_token": self.csrf, **form} if self.browser else form)
        answered = self.console.ask("POST", path, body, **self._headers(), origin=self.console.origin)
        if self.browser and "set-cookie" in answered.headers:
            self.cookie = answered.headers["set-cookie"].partition(";")[0]
        return answered

    def _headers(self) -> dict[str, str]:
        return {"cookie": self.cookie} if self.browser else {"authorization": f"Bearer {self.token}"}

    def _note(self, page: Answered) -> None:
        if "set-cookie" in page.headers:
            self.cookie = page.headers["set-cookie"].partition(";")[0]
        found = re.search('name="csrf_token" value="([0-9a-f]{64})"', page.text)
        assert found is not None
        self.csrf = found[1]

    def ended(self, path: str) -> str:
        """Wait for a question's end, and return its state."""
        while True:
            page = self.get(path)
            assert page.status == 200, page.text
            state = re.search(r"State: <strong>(\w+)</strong>", page.text)
            assert state is not None
            if state[1] not in ("charging", "queued", "running"):
                return state[1]


def prepare(folder: Path, ledger: str = "people.ledger") -> tuple[Path, dict[str, str]]:
    """Make data, a ledger, members and their tokens; return the console's settings and the tokens."""
    folder.mkdir(exist_ok=True)
    people = folder / "people.parquet"
    parquet.write_table(pa.table({"id": range(1000), "age": [18 + n % 60 for n in range(1000)]}), people)
    (folder / "console.toml").write_text(CONFIG.format(ledger=ledger))
    address = ledger if "://" in ledger else str(folder / ledger)
    with sfumato.connect(str(people), privacy_unit="id", epsilon=1.0, ledger=address) as session:
        members, known = session.ledger.members, session.ledger.accounts()
        if not known:
            members.set_roles("carl", {Role.CURATOR})
            for name in ANALYSTS:
                members.set_roles(name, {Role.ANALYST}, by="carl")
                session.ledger.grant(name, Budget.pure(epsilon=1.0), by="carl")
    tokens = TokenStore(folder / "console" / "tokens")
    (folder / "console").mkdir(mode=0o700, exist_ok=True)
    return folder / "console.toml", {name: tokens.create(name, tuple(Scope), days=1)[0] for name in ANALYSTS}


def question(epsilon: float, age: int, purpose: str = "") -> Question:
    """Return a question of its own for each age."""
    options = f"OPTIONS(epsilon={epsilon}, delta=0)"
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY {options} COUNT(*) AS n FROM data WHERE age >= {age}"
    return Question(sql=sql, purpose=purpose)


def run(visitor: Visitor, asked: Question, request: str) -> Answered:
    """Send the form that charges a question."""
    form = {"question": asked.to_json(), "cost": '{"epsilon": 1.0}', "request": request}
    return visitor.post("/ask/run", form)


def dying(stage: str) -> None:
    """Run the program that kills itself."""
    owner, name, after = STAGES[stage]
    method = getattr(owner, name)

    def last(self: Any, *given: Any, **more: Any) -> Any:
        if after:
            method(self, *given, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(owner, name, last):
        exec(COMMAND, {})
