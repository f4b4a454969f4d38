"""Hostile requests to all screens, by members of every role: no page fails, and nothing is charged."""

from __future__ import annotations

import asyncio

import pytest

from sfumato.server.console.access.permissions import Scope
from tests.server.console.hostile import ALLOWED, FORM, FORMS, Attacker
from tests.server.console.office import Office


@pytest.mark.parametrize("count", [250, 2000])
def test_hostile_requests_fail_no_page_and_charge_nothing(asked_office: Office, count: int) -> None:
    attacker = Attacker(asked_office, count)
    before = asked_office.console.ledger.head().charges
    statuses = asyncio.run(attacker.attack(count))
    assert attacker.uncaught == []
    assert set(statuses) <= ALLOWED
    assert statuses[200] > count / 20, "some are nearly right, and get far"
    assert asked_office.console.ledger.head().charges == before
    assert asked_office.console.ledger.verify().sound


def test_bytes_that_are_no_text_are_answered(asked_office: Office) -> None:
    async def visit() -> list[int]:
        pages = b"/releases?language=\xff", b"/releases/?x=\xff", b"/%ff?\xed", b"/sign-in?\xed\xa0\x80"
        return [(await asked_office.answer("GET", page)).status for page in pages]

    assert asyncio.run(visit()) == [200, 404, 404, 200]


def test_a_price_that_is_no_number_permits_nothing(asked_office: Office) -> None:
    form = {**FORMS["/ask/run"], "question": FORMS["/ask/run"]["question"].replace("0.75", "0.125")}
    before = asked_office.console.ledger.head()
    for cost in ('{"epsilon": NaN}', '{"epsilon": -1}', "{}", '{"rho": 9}'):
        assert asked_office.post("ada", "/ask/run", {**form, "cost": cost}).status == 400
    assert asked_office.console.ledger.head() == before


def test_forms_of_another_kind_have_no_fields(
    asked_office: Office, capfd: pytest.CaptureFixture[str]
) -> None:
    token, _ = asked_office.console.tokens.create("ada", tuple(Scope), days=1)
    part = b'--x\r\ncontent-disposition: form-data; name="sql"\r\n\r\nSELECT 1\r\n--x!!'

    async def visit() -> list[str]:
        found = []
        for kind in (b"multipart/form-data; boundary=x", b"text/plain", b"application/json", FORM):
            headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", kind)]
            found.append((await asked_office.answer("POST", b"/ask/price", headers, [part])).text)
        return found

    assert all("must be written" in page for page in asyncio.run(visit()))
    assert capfd.readouterr() == ("", "")
