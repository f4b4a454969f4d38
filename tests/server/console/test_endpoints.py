"""Whatever is sent gets a page, and on it nothing that only the operator may know."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.server.console.access.permissions import Scope
from sfumato.server.console.screens.catalog import SCREENS
from tests.server.console.hostile import ALLOWED, FORMS, Attacker
from tests.server.console.office import FORM, Office


def test_a_form_of_parts_with_a_character_set_of_its_own_is_not_read(office: Office) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n\\ud800+2AA-\r\n--x--\r\n'
    for charset in ("undefined", "idna", "utf-7", "unicode_escape"):
        kind = f"multipart/form-data; boundary=x; charset={charset}".encode()
        assert office.send("ada", "POST", "/account/request", part, kind).status == 415
    assert office.console.ledger.members.budget_requests() == ()


def test_what_is_no_form_is_not_read(office: Office) -> None:
    for body in (b"\xff", b"&".join([b"a=1"] * 101), b"&" * 10**6):
        assert office.send("ada", "POST", "/account/request", body, FORM).status == 400


def test_the_first_field_of_a_name_counts(office: Office) -> None:
    body = b"epsilon=0.25&epsilon=2&purpose=a+report&purpose=%zz%ff%00"
    assert office.send("ada", "POST", "/account/request", body, FORM).status == 303
    (wish,) = office.console.ledger.members.budget_requests()
    assert (wish.budget.epsilon, wish.purpose) == (0.25, "a report")


def test_a_broken_ledger_and_broken_tokens_are_the_operators_affair(
    tmp_path: Path, key: Ed25519PrivateKey
) -> None:
    assert key is not None
    office = Office(tmp_path)
    try:
        tokens = tmp_path / "console" / "tokens"
        tokens.chmod(0o644)
        assert office.get("carl", "/releases").status == 503
        tokens.write_bytes(b"{")
        tokens.chmod(0o600)
        refused = office.get("carl", "/releases")
        assert (refused.status, refused.headers["x-content-type-options"]) == (503, "nosniff")
        office.failures.clear()
        with (tmp_path / "people.ledger").open("r+b") as ledger:
            ledger.write(bytes(8192))
        for path in ("/releases", "/releases/1", "/api/v1/releases", "/api/v1/releases/1"):
            reply = office.get("", path)
            assert reply.status == 503
            assert "people.ledger" not in reply.text
            assert "whoever runs this console knows why" in reply.text
        assert [str(tmp_path) in said for said in office.failures] == [True] * 4
    finally:
        office.console.close()


def test_a_page_has_one_address(office: Office) -> None:
    for path in ("/releases/", "//releases", "/Releases", "/members/roles/"):
        reply = office.get("carl", path)
        assert (reply.status, reply.headers.get("location")) == (404, None)


@pytest.mark.parametrize("count", [150, 1850])
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


def test_forms_of_another_kind_are_not_read(asked_office: Office, capfd: pytest.CaptureFixture[str]) -> None:
    token, _ = asked_office.console.tokens.create("ada", tuple(Scope), days=1)
    part = b'--x\r\ncontent-disposition: form-data; name="sql"\r\n\r\nSELECT 1\r\n--x!!'

    async def visit() -> list[int]:
        found = []
        for kind in (b"multipart/form-data; boundary=x", b"text/plain", b"application/json", FORM):
            headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", kind)]
            found.append((await asked_office.answer("POST", b"/ask/price", headers, [part])).status)
        return found

    assert asyncio.run(visit()) == [415, 415, 415, 400]
    assert capfd.readouterr() == ("", "")


def test_a_refusal_leads_back_to_where_it_is_asked_again(asked_office: Office) -> None:
    pages = {screen.path for screen in SCREENS if screen.method == "GET"}
    for screen in SCREENS:
        if screen.method == "POST":
            assert {screen.path, screen.path.rpartition("/")[0]} & pages, screen.path
    asked_office.console.ledger.reviews.request(1, by="ada")
    for name, method, path, back in (
        ("ada", "POST", "/ask/run", "/ask"),
        ("ada", "POST", "/history/a%20%22b/cancel", "/history/a%20%22b"),
        ("ada", "GET", "/history/none", "/history"),
        ("ada", "GET", "/history/none?wait=1", "/history"),
        ("carl", "GET", "/epsilon?epsilon=99", "/epsilon"),
        ("carl", "GET", "/nowhere", "/"),
    ):
        refused = asked_office.get(name, path) if method == "GET" else asked_office.post(name, path)
        assert refused.status in (400, 404), path
        assert re.findall('<a href="([^"]*)">Back</a>', refused.text) == [back], path
