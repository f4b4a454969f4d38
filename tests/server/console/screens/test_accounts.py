"""Grants and requests through the console, each in the name of who is signed in."""

from __future__ import annotations

import re

import pytest

from sfumato.errors import LedgerMismatch
from sfumato.ledger import Budget
from tests.cases import cases
from tests.server.console.office import MEMBERS, Office, hidden_field


def test_a_budget_is_asked_for_and_granted(office: Office) -> None:
    ledger = office.console.ledger
    assert "0.25-DP" in office.get("ada", "/account").text
    asked = office.post("ada", "/account/request", {"epsilon": "1.5", "purpose": "more <i>"})
    assert (asked.status, asked.location) == (303, "/account")
    assert "more &lt;i&gt;" in office.get("ada", "/account").text
    page = office.get("carl", "/grants").text
    assert "asks for 1.5-DP" in page
    shown = {"analyst": "ada", "decision": "grant", "budget": "1-DP"}
    assert "must be the one that was shown" in office.post("carl", "/grants/decide", shown).text
    budget = str(ledger.members.budget_requests()[0].budget)
    assert office.post("carl", "/grants/decide", {**shown, "budget": budget}).status == 303
    assert ledger.budget_of("ada") == Budget.pure(epsilon=1.5)
    again = office.post("carl", "/grants/decide", {**shown, "budget": budget})
    assert "must have an open request" in again.text
    assert "Nobody asks" in office.get("carl", "/grants").text


def test_a_request_is_declined_with_a_reason(office: Office) -> None:
    office.post("ada", "/account/request", {"epsilon": "1", "purpose": "more"})
    form = {"analyst": "ada", "decision": "decline"}
    assert office.post("carl", "/grants/decide", form).status == 400
    assert office.post("carl", "/grants/decide", {**form, "reason": "too much"}).status == 303
    assert office.console.ledger.members.budget_requests() == ()
    assert office.console.ledger.budget_of("ada") == Budget.pure(epsilon=0.5)


def test_enter_in_a_reason_does_what_the_button_after_it_says(office: Office) -> None:
    office.post("ada", "/account/request", {"epsilon": "1", "purpose": "more"})
    page = office.get("carl", "/grants").text
    forms = [form.partition("</form>")[0] for form in page.split('action="/grants/decide"')[1:]]
    assert [hidden_field(form, "decision") for form in forms] == ["grant", "decline"]
    assert [re.findall("<button>(.*)</button>", form) for form in forms] == [["Grant it"], ["Decline"]]
    assert [' name="reason" required' in form for form in forms] == [False, True]
    assert len(set(re.findall(' id="([^"]+)"', page))) == page.count(' id="')


def test_accounts_are_opened_and_closed(office: Office) -> None:
    form = {"analyst": "bo", "epsilon": "0.75", "reason": "a <thesis>"}
    assert office.post("carl", "/grants/grant", form).status == 303
    assert office.console.ledger.budget_of("bo") == Budget.pure(epsilon=0.75)
    assert office.post("carl", "/grants/close", {"analyst": "bo"}).status == 303
    with pytest.raises(LedgerMismatch):
        office.console.ledger.budget_of("bo")
    page = office.get("otto", "/grants").text
    assert "closed" in page
    assert "Grant a budget" not in page


@cases("amount", ["", "-1", "0", "nan", "inf", "1e999", "one", "\u0661", "0x1"])
def test_an_amount_that_is_none_is_refused(office: Office, amount: str) -> None:
    before = office.console.ledger.head()
    refused = office.post("carl", "/grants/grant", {"analyst": "bo", "epsilon": amount})
    assert refused.status == 400
    assert "epsilon" in refused.text
    assert office.console.ledger.head() == before


def test_no_one_else_may(office: Office) -> None:
    before = office.console.ledger.head()
    for name in ("", *MEMBERS):
        for path in ("/grants/grant", "/grants/close", "/grants/decide"):
            assert office.post(name, path).status == (400 if name == "carl" else 403), (name, path)
        assert office.post(name, "/account/request").status == (400 if name == "ada" else 403)
        assert office.get(name, "/grants").status == {"": 303, "carl": 200, "otto": 200}.get(name, 403)
        assert office.get(name, "/account").status == {"": 303, "ada": 200}.get(name, 403)
    assert office.console.ledger.head() == before
