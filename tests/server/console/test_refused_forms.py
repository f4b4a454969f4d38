"""A form that is refused stands on its page again, with all that was filled in and why it was refused."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from html.parser import HTMLParser

import pytest

from sfumato.ledger import Budget, Role
from sfumato.server.console.asking.question import Question
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.screens.catalog import SCREENS
from sfumato.server.console.services.reviewing import CHECKLIST
from tests.cases import cases
from tests.server.console.hostile import FORMS
from tests.server.console.office import COUNT, Office, Reply

ODD = "<b>\"&'</b></textarea> $1"
REFUSED: tuple[tuple[str, str, Mapping[str, str], str], ...] = (
    ("ada", "/ask/price", {"sql": ODD, "epsilon": "0.5", "error": "", "units": "7", "purpose": ODD}, "SQL"),
    (
        "ada",
        "/ask/price",
        {
            "table": "data",
            "aggregate": "SUM",
            "column": "age",
            "lower": "-1.5",
            "upper": "120",
            "group_by": "id",
            "groups": "2",
            "rows": "3",
            "delta": "1e-9",
            "epsilon": "0.5",
            "error": "4",
            "purpose": "p",
        },
        "error",
    ),
    ("ada", "/dry-run", {"sql": f"SELECT {ODD}", "epsilon": "0.5"}, "SQL"),
    ("ada", "/account/request", {"epsilon": "0.5", "purpose": ""}, "purpose"),
    ("carl", "/grants/grant", {"analyst": ODD, "epsilon": "", "reason": ODD}, "epsilon"),
    ("carl", "/grants/close", {"analyst": "line\u0007", "reason": ODD}, "analyst"),
    ("carl", "/grants/decide", {"analyst": "ada", "decision": "grant", "budget": "9", "reason": ODD}, "look"),
    ("carl", "/members/roles", {"name": "", "role-analyst": "yes", "role-auditor": "yes"}, "name"),
    ("carl", "/members/roles", {"name": "carl", "role-analyst": "yes"}, "curator"),
    ("carl", "/members/key", {"name": "rita", "public_key": f"12 {ODD}"}, "key"),
    ("carl", "/members/revoke", {"name": ODD}, "member"),
    ("rita", "/review/1/statement", {"comment": ODD, CHECKLIST[1][0]: "yes"}, "confirm"),
    ("rita", "/review/1/approve", {"statement": f"{{}} {ODD}", "signature": "00"}, "JSON"),
    ("rita", "/review/1/return", {"comment": " "}, "comment"),
)
BOXES = {
    "/members/roles": {f"role-{role.value}" for role in Role},
    "/review/1/statement": {key for key, _ in CHECKLIST},
}
HIDDEN = {"csrf_token", "decision", "analyst", "budget", "statement"}


class _Forms(HTMLParser):
    """Reads the fields of the forms of a page, by what each form does."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = [("", {})]
        self._area = self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        fields = self.forms[-1][1]
        if tag == "form":
            self.forms.append((given["action"], {}))
        elif tag == "input" and (given.get("type") != "checkbox" or "checked" in given):
            fields[given["name"]] = given.get("value", "")
        elif tag == "textarea":
            self._area = given.get("name", "")
            fields[self._area] = ""
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and "selected" in given:
            self._area = self._select
            fields[self._area] = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.forms[-1][1][self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("textarea", "option"):
            self._area = ""


def _forms(reply: Reply) -> list[tuple[str, dict[str, str]]]:
    parser = _Forms()
    parser.feed(reply.text)
    return parser.forms


def _alerts(reply: Reply) -> list[str]:
    return [html.unescape(each) for each in re.findall('role="alert">(.*?)</p>', reply.text, re.DOTALL)]


@pytest.fixture
def office(asked_office: Office) -> Office:
    """Where ada asked for a review, and for a budget."""
    ledger = asked_office.console.ledger
    ledger.reviews.request(1, by="ada")
    ledger.members.request_budget("ada", Budget.pure(epsilon=0.75), purpose="more")
    return asked_office


@cases(("name", "path", "fields", "word"), REFUSED)
def test_what_was_filled_in_stands_in_the_form_and_nowhere_else(
    office: Office, name: str, path: str, fields: Mapping[str, str], word: str
) -> None:
    reply = office.post(name, path, fields)
    assert 400 <= reply.status < 500
    (said,) = _alerts(reply)
    assert word in said
    shown = {key: value for key, value in fields.items() if key not in HIDDEN or path == "/grants/grant"}
    same = [form for action, form in _forms(reply) if action == path]
    assert any({key: form.get(key) for key in shown} == shown for form in same), same
    assert ODD not in [text for action, form in _forms(reply) if action != path for text in form.values()]
    boxes = BOXES.get(path, set())
    assert all(boxes & set(form) == boxes & set(fields) for form in same)
    assert sum(form.get(key) == ODD for form in same for key in form) == sum(
        fields[key] == ODD for key in shown
    )


def test_every_form_with_fields_is_shown_again() -> None:
    again = {screen.path for screen in SCREENS if screen.again is not None}
    sent = {re.sub(r"\d+", "{number}", path) for _, path, _, _ in REFUSED}
    assert again - sent == {"/ask/run", "/review/{number}/publish", "/review/{number}/withdraw"}
    plain = {screen.path for screen in SCREENS if screen.method == "POST" and screen.again is None}
    assert plain == {"/history/{job}/cancel", "/history/{job}/review", "/log/verify", "/log/export"}


def test_a_price_that_has_grown_is_shown_anew(office: Office) -> None:
    question = Question(sql=COUNT.replace("AS n", "AS other"), purpose=ODD)
    form = {**FORMS["/ask/run"], "question": question.to_json(), "cost": '{"epsilon": 0.125}'}
    before = office.console.ledger.head()
    reply = office.post("ada", "/ask/run", form)
    assert reply.status == 400
    assert "0.125" in _alerts(reply)[0]
    (again,) = [found for action, found in _forms(reply) if action == "/ask/run"]
    assert (again["question"], again["cost"]) == (question.to_json(), '{"epsilon": 0.25}')
    assert again["request"] != form["request"]
    assert office.console.ledger.head() == before


def test_where_the_form_cannot_be_shown_either_the_first_message_stands(office: Office) -> None:
    reply = office.post("ada", "/ask/run", {**FORMS["/ask/run"], "question": "{}"})
    assert reply.status == 400
    assert len(_alerts(reply)) == 1
    assert '<a href="/ask">Back</a>' in reply.text
    reply = office.post("rita", "/review/9/return", {"comment": "x"})
    assert reply.status == 404
    reply = office.post("rita", "/review/9/approve", {"statement": "{}", "signature": "00"})
    assert reply.status == 400
    assert "<h1>Not done</h1>" in reply.text


def test_a_screen_without_a_form_leads_back(office: Office) -> None:
    cancel = next(screen for screen in SCREENS if screen.path == "/history/{job}/cancel")
    assert isinstance(cancel, Screen)
    reply = office.post("ada", "/history/none/cancel")
    assert '<a href="/history/none">Back</a>' in reply.text
