"""A guarded application over a real ledger, and requests to it without sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from sfumato.ledger import Budget, Dataset, Ledger, Role
from sfumato.privacy import Neighboring
from sfumato.server.asgi import Application, answer_json
from sfumato.server.console.access.failed_logins import FailedLogins
from sfumato.server.console.access.identification import Identification
from sfumato.server.console.access.identity import identity_of
from sfumato.server.console.access.member_roles import MemberRoles
from sfumato.server.console.access.proxy_header import ProxyHeader
from sfumato.server.console.access.sessions import Sessions
from sfumato.server.console.access.sign_in import SignIn
from sfumato.server.console.access.token_store import TokenStore
from sfumato.server.console.guard.bodies import body_of
from sfumato.server.console.guard.csrf import form_token
from sfumato.server.console.guard.guarded import guarded
from sfumato.server.console.guard.request_limits import RequestLimits

__all__ = ["ORIGIN", "Answer", "Browser", "Clock", "Console", "ask", "console", "opened_ledger"]

ORIGIN = "https://console.example"
HOST = (b"host", b"console.example")


class Clock:
    """Seconds, as a test sets them."""

    def __init__(self, now: float = 1e9) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def all(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key == name]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def asked(app: Application, scope: dict[str, Any], body: Sequence[bytes]) -> Answer:
    pieces, sent = list(body), list[Any]()

    async def receive() -> Any:
        if not pieces:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    content = b"".join(message["body"] for message in sent[1:])
    return Answer(sent[0]["status"], sent[0]["headers"], content)


def ask(
    app: Application,
    method: str,
    path: str,
    headers: Sequence[tuple[bytes, bytes]] = (),
    body: bytes | Sequence[bytes] = b"",
    *,
    client: tuple[str, int] | None = ("192.0.2.1", 5),
    host: bool = True,
) -> Answer:
    """Make one request to an application, in an event loop of its own."""
    given = [*([HOST] if host else []), *headers]
    scope = {"type": "http", "method": method, "path": path, "headers": given, "client": client}
    return asyncio.run(asked(app, scope, [body] if isinstance(body, bytes) else body))


@dataclass
class Console:
    """The parts, and how often the application behind the guards changed something."""

    app: Application
    ledger: Ledger
    tokens: TokenStore
    sessions: Sessions
    failed: FailedLogins
    clock: Clock
    changed: list[str] = field(default_factory=list)


@dataclass
class Browser:
    """Sends cookies and origins as browsers do."""

    console: Console
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str = "/", *more: tuple[bytes, bytes]) -> Answer:
        return self._noted(ask(self.console.app, "GET", path, [*self._cookies(), *more]))

    def post(
        self,
        path: str,
        fields: Mapping[str, str],
        *,
        origin: str | None = ORIGIN,
        site: str | None = "same-origin",
        kind: bytes = b"application/x-www-form-urlencoded",
    ) -> Answer:
        headers = [*self._cookies(), (b"content-type", kind)]
        headers += [] if origin is None else [(b"origin", origin.encode())]
        headers += [] if site is None else [(b"sec-fetch-site", site.encode())]
        body = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
        return self._noted(ask(self.console.app, "POST", path, headers, body))

    def sign_in(self, token: str) -> Answer:
        return self.post("/sign-in", {"token": token, "csrf_token": self.get().json["csrf"]})

    def _cookies(self) -> list[tuple[bytes, bytes]]:
        text = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return [(b"cookie", text.encode())] if text else []

    def _noted(self, answer: Answer) -> Answer:
        for header in answer.all(b"set-cookie"):
            assert header.endswith((b"; Path=/; Secure; HttpOnly; SameSite=Strict", b"; Max-Age=0"))
            name, _, value = header.decode().partition(";")[0].partition("=")
            self.cookies[name] = value
            if not value:
                del self.cookies[name]
        return answer


def opened_ledger() -> Ledger:
    """A ledger in memory with a curator, an analyst, a reviewer and an auditor."""
    ledger = Ledger.open(
        None,
        budget=Budget.pure(epsilon=1.0),
        privacy_unit="person_id",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    )
    for name, role in (("carl", "curator"), ("ada", "analyst"), ("rita", "reviewer"), ("otto", "auditor")):
        ledger.members.set_roles(name, {Role(role)})
    return ledger


@contextmanager
def console(
    folder: Path,
    *,
    proxy: ProxyHeader | None = None,
    limits: RequestLimits | None = None,
    origins: Sequence[str] = (ORIGIN,),
    other: Application | None = None,
) -> Iterator[Console]:
    """The whole of it; behind the guards is one that says who asks and notes what is changed, or another."""
    clock = Clock()
    with opened_ledger() as ledger:
        tokens = TokenStore(folder / "tokens.json", now=clock)
        sessions = Sessions(now=clock)
        failed = FailedLogins(ledger.members.record_failed_login, now=clock)
        sign_in = SignIn(sessions, tokens, failed)

        async def inner(scope: Any, receive: Any, send: Any) -> None:
            who = identity_of(scope)
            facts: dict[str, Any] = {"name": who.name, "via": who.via, "scopes": sorted(who.scopes)}
            facts["roles"] = sorted(role.value for role in who.roles)
            extra = []
            if scope["method"] == "GET" and scope["path"] != "/plain":
                facts["csrf"] = form_token(scope)
            elif scope["path"] == "/sign-in":
                fields = parse_qs(body_of(scope).decode())
                extra = [(b"set-cookie", await sign_in.by_token(scope, fields["token"][0]))]
            elif scope["path"] == "/sign-out":
                extra = [(b"set-cookie", sign_in.sign_out(scope))]
            elif scope["method"] not in ("GET", "HEAD"):
                made.changed.append(who.name)
            message = await receive()
            facts["body"] = len(message.get("body", b""))
            await answer_json(send, 200, facts, extra=extra)

        def identified(app: Application) -> Application:
            return Identification(
                app,
                roles=MemberRoles(ledger.members),
                tokens=tokens,
                sessions=sessions,
                failed=failed,
                proxy=proxy,
            )

        app = guarded(other or inner, identified=identified, origins=origins, limits=limits)
        made = Console(app, ledger, tokens, sessions, failed, clock)
        yield made
