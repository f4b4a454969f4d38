"""Who may do what, at every route: a table written by hand, which a new route must be added to."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any
from unittest.mock import patch

import pytest
from starlette.applications import Starlette

from sfumato.ledger import LedgerExport, Role
from sfumato.ledger.log.hash_chain import Event
from sfumato.server.console import app
from sfumato.server.console.access.oidc_settings import OidcSettings
from sfumato.server.console.access.permissions import Action, Scope
from sfumato.server.console.pages.answer import Page
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.screens.catalog import SCREENS
from tests.server.console.office import ORIGIN, Office, Reply

CURATOR, ANALYST, REVIEWER, AUDITOR = Role.CURATOR, Role.ANALYST, Role.REVIEWER, Role.AUDITOR
EVERYBODY: tuple[frozenset[Role], None] = frozenset(), None
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND")


def of(scope: str, *roles: Role) -> tuple[frozenset[Role], Scope]:
    """One of these roles, and a token for this."""
    return frozenset(roles), Scope(scope)


EXPECTED = {
    "GET /": EVERYBODY,
    "GET /static/console.css": EVERYBODY,
    "GET /sign-in": EVERYBODY,
    "POST /sign-in": EVERYBODY,
    "POST /sign-out": EVERYBODY,
    "GET /sign-in/oidc": EVERYBODY,
    "GET /sign-in/oidc/back": EVERYBODY,
    "GET /releases": EVERYBODY,
    "GET /releases/{number}": EVERYBODY,
    "GET /ask": of("ask", ANALYST),
    "POST /ask/price": of("ask", ANALYST),
    "POST /ask/run": of("ask", ANALYST),
    "GET /history": of("read", ANALYST),
    "GET /history/{job}": of("read", ANALYST),
    "GET /history/{job}/{form}": of("read", ANALYST),
    "POST /history/{job}/cancel": of("ask", ANALYST),
    "POST /history/{job}/review": of("ask", ANALYST),
    "GET /dry-run": of("ask", ANALYST),
    "POST /dry-run": of("ask", ANALYST),
    "GET /dataset": of("read", *Role),
    "GET /grants": of("read", CURATOR, AUDITOR),
    "POST /grants/grant": of("grant", CURATOR),
    "POST /grants/close": of("grant", CURATOR),
    "POST /grants/decide": of("grant", CURATOR),
    "GET /account": of("read", ANALYST),
    "POST /account/request": of("ask", ANALYST),
    "GET /members": of("grant", CURATOR),
    "POST /members/roles": of("grant", CURATOR),
    "POST /members/key": of("grant", CURATOR),
    "POST /members/revoke": of("grant", CURATOR),
    "GET /review": of("read", CURATOR, REVIEWER, AUDITOR),
    "GET /review/{number}": of("read", CURATOR, REVIEWER, AUDITOR),
    "GET /review/{number}/page": of("read", CURATOR, REVIEWER, AUDITOR),
    "POST /review/{number}/statement": of("review", REVIEWER),
    "POST /review/{number}/approve": of("review", REVIEWER),
    "POST /review/{number}/return": of("review", REVIEWER),
    "POST /review/{number}/publish": of("publish", CURATOR),
    "POST /review/{number}/withdraw": of("publish", CURATOR),
    "GET /budget": of("read", CURATOR, AUDITOR),
    "GET /epsilon": of("grant", CURATOR),
    "GET /log": of("read", CURATOR, AUDITOR),
    "POST /log/verify": of("read", CURATOR, AUDITOR),
    "POST /log/export": of("read", CURATOR, AUDITOR),
}
"""Route by route, which roles may and what a token must be for."""


@dataclass(frozen=True)
class Visitor:
    """Roles, and a token for some scopes; without a token it is the public."""

    roles: frozenset[Role] = frozenset()
    scopes: frozenset[Scope] = frozenset()
    token: str = ""

    def may(self, route: str) -> bool:
        roles, scope = EXPECTED[route]
        return scope is None or (not roles.isdisjoint(self.roles) and scope in self.scopes)


class Desk:
    """Visitors of every kind to one console."""

    def __init__(self, office: Office) -> None:
        self.office, self._named = office, set[str]()
        every = frozenset(Scope)
        self.all = self._visitor(Role, every)
        self.visitors = [Visitor(), self._visitor((), every), self.all]
        for count in (1, 2):
            self.visitors += [self._visitor(roles, every) for roles in combinations(Role, count)]
        for scope in Scope:
            self.visitors += [self._visitor(Role, every - {scope}), self._visitor(Role, {scope})]

    def _visitor(self, roles: Iterable[Role], scopes: Iterable[Scope]) -> Visitor:
        held, name = frozenset(roles), "-".join(sorted(role.value for role in roles)) or "nobody"
        if name not in self._named:
            self._named.add(name)
            self.office.console.ledger.members.set_roles(name, held, by="carl")
        token, _ = self.office.console.tokens.create(name, scopes, days=1)
        return Visitor(held, frozenset(scopes), token)

    async def send(self, visitor: Visitor, method: str, path: str) -> Reply:
        headers = [(b"origin", ORIGIN.encode())]
        if visitor.token:
            headers.append((b"authorization", f"Bearer {visitor.token}".encode()))
        place = path.replace("{number}", "1").replace("{job}", "0" * 32).replace("{form}", "csv")
        return await self.office.answer(method, place.encode(), headers)


@pytest.fixture
def desk(asked_office: Office) -> Iterator[Desk]:
    made = Desk(asked_office)
    before = _events(asked_office)
    yield made
    assert _events(asked_office) == before, "no request of these changed anything"


def _events(office: Office) -> list[Event]:
    """All but what is recorded of those who fail to sign in."""
    events = LedgerExport.parse(office.console.ledger.export()).events
    return [event for event in events if event.kind != "login"]


def routes_of(office: Office, **more: Any) -> set[str]:
    """All routes of pages that the application gives to Starlette; the API's have a table of their own."""
    found = set[str]()

    class Noting(Starlette):
        def __init__(self, *, routes: Any, **rest: Any) -> None:
            pages = (route for route in routes if not route.path.startswith("/api/"))
            found.update(f"{method} {route.path}" for route in pages for method in route.methods - {"HEAD"})
            super().__init__(routes=routes, **rest)

    console = office.console
    before, console.settings = console.settings, replace(console.settings, **more)
    with patch.object(app, "Starlette", Noting):
        app.application(console, [ORIGIN], office.failures.append)
    console.settings = before
    return found


def test_every_route_is_in_the_table_and_a_new_one_is_missed(asked_office: Office) -> None:
    oidc = OidcSettings(
        issuer="https://provider.example", client_id="c", client_secret=None,
        redirect_uri=f"{ORIGIN}/sign-in/oidc/back", claim="sub", members=None, ask_for=("openid",),
    )  # fmt: skip
    assert routes_of(asked_office, oidc=oidc) == set(EXPECTED)
    assert set(EXPECTED) - routes_of(asked_office) == {"GET /sign-in/oidc", "GET /sign-in/oidc/back"}
    new = Screen(path="/new", action=Action.VIEW_LOG, show=lambda *_: Page(template="x", title="x"))
    with patch.object(app, "SCREENS", (*SCREENS, new)):
        assert routes_of(asked_office, oidc=oidc) - set(EXPECTED) == {"GET /new"}


def refused(reply: Reply, visitor: Visitor, route: str) -> bool:
    """Whether a request was refused, in the way that is right for who asked."""
    if not visitor.token and route.startswith("GET"):
        return (reply.status, reply.headers.get("location")) == (303, "/sign-in")
    return reply.status == 403


def test_each_visitor_may_do_what_the_table_says(desk: Desk) -> None:
    async def visit() -> list[str]:
        wrong = []
        for route in sorted(set(EXPECTED) - {"GET /sign-in/oidc", "GET /sign-in/oidc/back"}):
            method, _, path = route.partition(" ")
            for visitor in desk.visitors:
                form_without_page = method == "POST" and not visitor.token
                expected = visitor.may(route) and not form_without_page
                reply = await desk.send(visitor, method, path)
                fine = reply.status in (200, 303, 400, 404, 401 if path == "/sign-in" else 200)
                if refused(reply, visitor, route) is expected or (expected and not fine):
                    wrong.append(f"{route} by {visitor}: {reply.status}")
        return wrong

    assert asyncio.run(visit()) == []


def _methods(path: str) -> set[str]:
    """The methods of all routes that a path is of."""
    found = set[str]()
    for method, _, pattern in (route.partition(" ") for route in EXPECTED):
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path):
            found |= {method, "HEAD"} if method == "GET" else {method}
    return found


def test_other_methods_are_nobodys(desk: Desk) -> None:
    async def visit() -> list[str]:
        wrong = []
        for path in {route.partition(" ")[2] for route in EXPECTED if "oidc" not in route}:
            for method in set(METHODS) - _methods(path):
                for visitor in (desk.all, Visitor()):
                    reply = await desk.send(visitor, method, path)
                    statuses = (405,) if visitor.token or method in ("GET", "HEAD") else (403,)
                    if reply.status not in statuses:
                        wrong.append(f"{method} {path}: {reply.status}")
        return wrong

    assert asyncio.run(visit()) == []


def test_what_has_no_rule_is_nobodys(desk: Desk) -> None:
    unruled: Any = Screen(path="/new", action="new", show=lambda *_: Page(template="x", title="x"))  # type: ignore[arg-type]
    with patch.object(app, "SCREENS", (*SCREENS, unruled)):
        office = desk.office
        built = app.application(office.console, [ORIGIN], office.failures.append)
    with patch.object(office, "app", built):
        assert asyncio.run(desk.send(desk.all, "GET", "/new")).status == 403


def test_a_session_without_the_forms_token_changes_nothing(desk: Desk) -> None:
    async def visit() -> list[str]:
        own = (b"origin", ORIGIN.encode()), (b"content-type", b"application/x-www-form-urlencoded")
        page = await desk.office.answer("GET", b"/sign-in")
        csrf = re.search('name="csrf_token" value="([0-9a-f]{64})"', page.text)
        assert csrf is not None
        cookie = page.headers["set-cookie"].partition(";")[0].encode()
        form = f"csrf_token={csrf[1]}&token={desk.all.token}".encode()
        entered = await desk.office.answer("POST", b"/sign-in", [*own, (b"cookie", cookie)], [form])
        assert entered.status == 303
        session = (b"cookie", entered.headers["set-cookie"].partition(";")[0].encode())
        assert (await desk.office.answer("GET", b"/grants", [session])).status == 200
        passed = []
        for route in EXPECTED:
            method, _, path = route.partition(" ")
            if method == "POST":
                replayed = await desk.office.answer(method, path.encode(), [*own, session], [form])
                passed += [] if replayed.status == 403 else [route]
        return passed

    assert asyncio.run(visit()) == []
