"""A ledger with a release and four members, and visits of theirs to a console's pages."""

from __future__ import annotations

import asyncio
import datetime as dt
import html
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import unquote, urlencode

import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sfumato
from sfumato.ledger import Budget, Renewal, Role
from sfumato.server.console import console
from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.app import application
from sfumato.server.console.asking.job_store import JobLimits
from sfumato.server.console.asking.service import AskingSettings
from sfumato.server.console.asking.time_grid import TimeGrid
from sfumato.server.console.console import Console
from sfumato.server.console.guard.request_limits import RequestLimits
from sfumato.server.console.settings import ConsoleSettings

__all__ = ["COUNT", "MEMBERS", "ORIGIN", "Office", "Reply", "ask", "hidden_field", "make_ledger"]

COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.25, delta=0) COUNT(*) AS n FROM data"
MEMBERS = {"carl": Role.CURATOR, "ada": Role.ANALYST, "rita": Role.REVIEWER, "otto": Role.AUDITOR}


ORIGIN = "http://localhost:8460"
FORM = b"application/x-www-form-urlencoded"


class Reply(NamedTuple):
    """What a browser gets."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        """The page."""
        return self.content.decode()

    @property
    def json(self) -> Any:
        """The document."""
        return json.loads(self.content)

    @property
    def location(self) -> str:
        """Where it is sent."""
        return self.headers["location"]


def make_ledger(folder: Path, renewal: Renewal | None = None) -> Ed25519PrivateKey:
    """Make a ledger of four members; where it does not renew, ada asked one question. Return rita's key."""
    key = Ed25519PrivateKey.generate()
    with sfumato.connect(_people(renewal), **_about(folder, renewal)) as session:
        members = session.ledger.members
        members.set_roles("carl", {Role.CURATOR})
        for name, role in MEMBERS.items():
            members.set_roles(name, {role}, by="carl")
        members.register_key("rita", key.public_key(), by="carl")
        session.ledger.grant("ada", Budget.pure(epsilon=0.5), by="carl", reason="a report")
    if renewal is None:
        ask(folder, COUNT)
    return key


def ask(folder: Path, query: str) -> None:
    """Ask a question as ada."""
    about = _about(folder)
    with sfumato.connect(_people(), **about, analyst="ada", purpose="a report") as session:
        session.sql(query)


def _people(renewal: Renewal | None = None) -> pa.Table:
    columns = {"id": range(1000), "age": [18 + number % 60 for number in range(1000)]}
    times = {} if renewal is None else {renewal.column: [dt.date(2026, 1, 1 + n % 28) for n in range(1000)]}
    return pa.table({**columns, **times})


def _about(folder: Path, renewal: Renewal | None = None) -> dict[str, Any]:
    about = {"privacy_unit": "id", "epsilon": 2.0, "ledger": folder / "people.ledger"}
    return about if renewal is None else {**about, "renewal": renewal, "period": "2026-01"}


class Office:
    """A console whose visitors say who they are."""

    def __init__(
        self,
        folder: Path,
        *,
        data: bool = False,
        origin: str = ORIGIN,
        clock: Callable[[], float] = time.time,
        renewal: Renewal | None = None,
    ) -> None:
        self.failures: list[str] = []
        about = {**_about(folder, renewal), "source": _people(renewal)}
        del about["ledger"]
        settings = ConsoleSettings(
            ledger=str(folder / "people.ledger"),
            folder=folder / "console",
            title="People <of> a town",
            dataset=about if data else {},
            grid=TimeGrid(step=0.05),
            jobs=JobLimits(per_analyst=64),
        )
        with patch.object(console, "AskingSettings", partial(AskingSettings, clock=clock)):
            self.console = Console(settings, self.failures.append)
        limits = RequestLimits(member_rate=1e6, member_burst=10**6, member_at_once=10**3, address_rate=None)
        self.app = application(self.console, [origin], self.failures.append, limits)
        create = self.console.tokens.create
        self.tokens = {name: create(name, tuple(Scope), days=1)[0] for name in MEMBERS}
        self._folder = folder

    def ask(self, query: str) -> None:
        """Ask a question as ada, beside the console."""
        ask(self._folder, query)

    def get(self, name: str, path: str) -> Reply:
        """Return the answer to a member's reading of a page; "" is the public."""
        return self._visit(name, "GET", path, b"")

    def post(self, name: str, path: str, form: Mapping[str, str] | None = None) -> Reply:
        """Return the answer to a form that a member sends."""
        return self._visit(name, "POST", path, urlencode(form or {}).encode())

    def call(self, name: str, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """Return the answer to a program of a member that calls the API."""
        content = b"" if body is None else json.dumps(body).encode()
        more = {"content-type": "application/json"} if body is not None else {}
        more |= {each.replace("_", "-"): value for each, value in headers.items()}
        given = [(each.encode(), value.encode()) for each, value in more.items()]
        return self._asked(name, method, f"/api/v1{path}", given, content)

    def send(self, name: str, method: str, path: str, body: bytes, kind: bytes) -> Reply:
        """Return the answer to bytes of a kind."""
        return self._visit(name, method, path, body, kind)

    def _visit(self, name: str, method: str, path: str, body: bytes, kind: bytes = FORM) -> Reply:
        headers = [] if path.startswith("/api/") else [(b"accept", b"text/html")]
        headers += [(b"content-type", kind)] if body else []
        headers += [(b"origin", ORIGIN.encode())] if method == "POST" else []
        return self._asked(name, method, path, headers, body)

    def _asked(
        self, name: str, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> Reply:
        headers = [(b"host", ORIGIN.partition("//")[2].encode()), *headers]
        if name:
            headers.append((b"authorization", f"Bearer {self.tokens[name]}".encode()))
        return asyncio.run(self.answer(method, path.encode(), headers, [body], host=False))

    async def answer(
        self,
        method: str,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]] = (),
        body: Sequence[bytes] = (b"",),
        *,
        host: bool = True,
    ) -> Reply:
        """Return the answer to any request, whose body comes in pieces."""
        own = [(b"host", ORIGIN.partition("//")[2].encode()), (b"accept", b"text/html")] if host else []
        place, _, query = target.partition(b"?")
        scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(place.decode("latin-1")),
            "raw_path": place,
            "query_string": query,
            "root_path": "",
            "headers": [*own, *headers],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        pieces, sent = list(body), list[Any]()

        async def receive() -> dict[str, Any]:
            if not pieces:
                await asyncio.Event().wait()  # the client stays, and says no more
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return Reply(sent[0]["status"], got, content)


def hidden_field(text: str, name: str) -> str:
    """Return the value of a hidden field of a form."""
    found = re.search(f'<input type="hidden" name="{name}" value="([^"]*)">', text)
    assert found is not None
    return html.unescape(found[1])
