"""What one analyst asks, and why, is on no page of others and in no line for the operator."""

from __future__ import annotations

import asyncio
import html
from urllib.parse import urlencode

import pytest

from sfumato.ledger import Budget, Role
from sfumato.server.console.access.permissions import Scope
from tests.server.console.office import COUNT, Office, Reply
from tests.server.console.test_app import EXPECTED

NAME = "zoraide-71"
SECRETS = ("alias_82", "purpose-93", "remark-64", "wish-55")
SQL = COUNT.replace(" AS n", " AS alias_82")
STAFF = ("carl", "otto", "rita")


class Town:
    """A console on which one analyst asked, and all others look at everything."""

    def __init__(self, office: Office) -> None:
        self.office, ledger = office, office.console.ledger
        for name in (NAME, "bob"):
            ledger.members.set_roles(name, {Role.ANALYST}, by="carl")
        ledger.grant(NAME, Budget.pure(epsilon=1.0), by="carl")
        create = office.console.tokens.create
        self.tokens = {name: create(name, tuple(Scope), days=1)[0] for name in (*STAFF, NAME, "bob", "ada")}
        self.jobs: list[str] = []

    async def ask(self) -> None:
        """Ask, wish for more, and fail in several ways."""
        post = self.post
        price = {"sql": SQL, "purpose": "purpose-93"}
        priced = html.unescape((await post(NAME, "/ask/price", price)).text)
        for field in ("question", "cost", "request"):
            at = priced.index(f'name="{field}" value="') + len(f'name="{field}" value="')
            price[field] = priced[at : priced.index('">', at)]
        sent = await post(NAME, "/ask/run", price)
        assert sent.status == 303, sent.text
        self.jobs.append(sent.location)
        while "State: <strong>done" not in (await self.get(NAME, sent.location)).text:
            pass
        await post(NAME, "/account/request", {"epsilon": "2", "purpose": "wish-55"})
        for form in (
            {"sql": SQL.replace("data", "nowhere")},
            {"sql": f"{SQL} WHERE"},
            {**price, "cost": "{}"},
        ):
            await post(NAME, "/ask/price", form)
        assert (await post(NAME, "/ask/run", {**price, "request": "new", "cost": "x"})).status == 400

    async def get(self, name: str, path: str) -> Reply:
        return await self.office.answer("GET", path.encode(), self._headers(name))

    async def post(self, name: str, path: str, form: dict[str, str]) -> Reply:
        headers = [*self._headers(name), (b"content-type", b"application/x-www-form-urlencoded")]
        return await self.office.answer("POST", path.encode(), headers, [urlencode(form).encode()])

    def _headers(self, name: str) -> list[tuple[bytes, bytes]]:
        return [(b"authorization", f"Bearer {self.tokens[name]}".encode())] if name else []

    async def everything(self, name: str) -> str:
        """All pages that somebody gets, of every route that can be read, and the refusals of the others."""
        found = []
        for route in EXPECTED:
            method, _, path = route.partition(" ")
            if "oidc" in path:
                continue
            for job in (self.jobs[0].partition("?")[0].rpartition("/")[2], "1"):
                place = path.replace("{job}", job).replace("{form}", "csv").replace("{number}", "2")
                if method == "GET":
                    queries = "", f"?again={job}&wait=1&name={job}&page=1"
                    found += [(await self.get(name, f"{place}{query}")).text for query in queries]
                elif path != "/log/export":  # which is for auditors, and says so
                    found.append((await self.post(name, place, {})).text)
        return html.unescape("".join(found))


def test_nothing_of_an_analysts_questions_is_anybodys(
    asked_office: Office, capfd: pytest.CaptureFixture[str]
) -> None:
    async def visit() -> dict[str, str]:
        town = Town(asked_office)
        await town.ask()
        own = await town.get(NAME, town.jobs[0])
        assert all(secret in own.text for secret in ("alias_82", NAME)), "they are there to be seen"
        return {name: await town.everything(name) for name in ("", "ada", "bob", *STAFF)}

    pages = asyncio.run(visit())
    for name, text in pages.items():
        for secret in (*SECRETS, *(() if name in STAFF else (NAME,))):
            wish_of_a_curator = secret == "wish-55" and name in ("carl", "otto")
            assert (secret in text) is wish_of_a_curator, f"{secret} on the pages of {name or 'the public'}"
    assert capfd.readouterr() == ("", "")
    assert asked_office.failures == []


def test_who_has_left_sees_nothing_of_their_own(asked_office: Office) -> None:
    async def visit() -> list[int]:
        town = Town(asked_office)
        await town.ask()
        before = await town.get(NAME, town.jobs[0])
        asked_office.console.ledger.members.set_roles(NAME, set(), by="carl")
        return [before.status, (await town.get(NAME, town.jobs[0])).status]

    assert asyncio.run(visit()) == [200, 403]
