"""A ledger with a release and four members, and visits of theirs to a console's pages."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode

import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sfumato
from sfumato.ledger import Budget, Role
from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.app import application
from sfumato.server.console.asking.time_grid import TimeGrid
from sfumato.server.console.console import Console
from sfumato.server.console.guard.request_limits import RequestLimits
from sfumato.server.console.settings import ConsoleSettings

__all__ = ["COUNT", "MEMBERS", "ORIGIN", "Office", "Reply", "ask", "hidden_field", "make_ledger"]

COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.25, delta=0) COUNT(*) AS n FROM data"
MEMBERS = {"carl": Role.CURATOR, "ada": Role.ANALYST, "rita": Role.REVIEWER, "otto": Role.AUDITOR}


ORIGIN = "http://localhost:8460"


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
    def location(self) -> str:
        """Where it is sent."""
        return self.headers["location"]


def make_ledger(folder: Path) -> Ed25519PrivateKey:
    """Make a ledger of four members in which ada asked one question; return rita's key."""
    key = Ed25519PrivateKey.generate()
    with sfumato.connect(_people(), **_about(folder)) as session:
        members = session.ledger.members
        members.set_roles("carl", {Role.CURATOR})
        for name, role in MEMBERS.items():
            members.set_roles(name, {role}, by="carl")
        members.register_key("rita", key.public_key(), by="carl")
        session.ledger.grant("ada", Budget.pure(epsilon=0.5), by="carl", reason="a report")
    ask(folder, COUNT)
    return key


def ask(folder: Path, query: str) -> None:
    """Ask a question as ada."""
    about = _about(folder)
    with sfumato.connect(_people(), **about, analyst="ada", purpose="a report") as session:
        session.sql(query)


def _people() -> pa.Table:
    return pa.table({"id": range(1000), "age": [18 + number % 60 for number in range(1000)]})


def _about(folder: Path) -> dict[str, Any]:
    return {"privacy_unit": "id", "epsilon": 2.0, "ledger": folder / "people.ledger"}


class Office:
    """A console whose visitors say who they are."""

    def __init__(self, folder: Path, *, data: bool = False) -> None:
        self.failures: list[str] = []
        about = {**_about(folder), "source": _people()}
        del about["ledger"]
        settings = ConsoleSettings(
            ledger=str(folder / "people.ledger"),
            folder=folder / "console",
            title="People <of> a town",
            dataset=about if data else {},
            grid=TimeGrid(step=0.05),
        )
        self.console = Console(settings, self.failures.append)
        limits = RequestLimits(member_rate=1e6, member_burst=10**6, member_at_once=10**3, address_rate=None)
        self._app = application(self.console, [ORIGIN], self.failures.append, limits)
        create = self.console.tokens.create
        self._tokens = {name: create(name, tuple(Scope), days=1)[0] for name in MEMBERS}
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

    def _visit(self, name: str, method: str, path: str, body: bytes) -> Reply:
        headers = [(b"content-type", b"application/x-www-form-urlencoded")] if body else []
        headers += [(b"origin", ORIGIN.encode())] if method == "POST" else []
        if name:
            headers.append((b"authorization", f"Bearer {self._tokens[name]}".encode()))
        return asyncio.run(self.answer(method, path.encode(), headers, [body]))

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
        own = [(b"host", ORIGIN.partition("//")[2].encode())] if host else []
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
            "headers": [*own, (b"accept", b"text/html"), *headers],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        pieces, sent = list(body), list[Any]()

        async def receive() -> dict[str, Any]:
            piece = pieces.pop(0) if pieces else b""
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return Reply(sent[0]["status"], got, content)


def hidden_field(text: str, name: str) -> str:
    """Return the value of a hidden field of a form."""
    found = re.search(f'<input type="hidden" name="{name}" value="([^"]*)">', text)
    assert found is not None
    return html.unescape(found[1])
