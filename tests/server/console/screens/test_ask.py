"""Asking through the console: priced first, charged once, answered on the grid, kept from all others."""

from __future__ import annotations

import html
import re

import pyarrow as pa

from sfumato.ledger import LedgerExport
from sfumato.privacy import PureDP
from tests.cases import cases
from tests.server.console.office import COUNT, MEMBERS, Office, Reply, hidden_field

QUESTION = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta=0) COUNT(*) AS adults FROM data WHERE age >= 18"


def _priced(office: Office, **form: str) -> Reply:
    return office.post(
        "ada", "/ask/price", {"sql": QUESTION, "epsilon": "0.125", "purpose": "a report", **form}
    )


def _run(office: Office, priced: Reply) -> Reply:
    names = ("question", "cost", "request")
    return office.post("ada", "/ask/run", {name: hidden_field(priced.text, name) for name in names})


def test_a_question_is_priced_charged_answered_and_reviewed(asked_office: Office) -> None:
    office, ledger = asked_office, asked_office.console.ledger
    before = ledger.head()
    priced = _priced(office)
    assert "Spend 0.125 of your 0.25 epsilon." in priced.text
    assert re.search(r'<td class="n">2[0-9]', priced.text)  # the half-width at epsilon 1/8 is 24
    assert ledger.head() == before
    sent = _run(office, priced)
    assert sent.status == 303
    assert re.fullmatch(r"/history/[0-9a-zA-Z_-]+\?wait=1", sent.location)
    assert _run(office, priced).location == sent.location
    assert ledger.head().charges == before.charges + 1
    path = sent.location.partition("?")[0]
    page = office.get("ada", sent.location).text
    assert "State: <strong>done" in page
    assert "adults_lower" in page
    assert "adults_upper" in page
    stored = pa.ipc.open_stream(office.get("ada", f"{path}/arrow").content).read_all()
    value = stored.column("adults")[0].as_py()
    assert office.get("ada", f"{path}/csv").text.splitlines()[1].split(",")[0] == str(value)
    assert f"<bdi>{value}</bdi>" in page
    assert office.get("ada", f"{path}/xlsx").status == 404
    assert html.escape(QUESTION) in office.get("ada", "/history").text
    assert html.escape(QUESTION) in office.get("ada", f"/ask?again={path.rpartition('/')[2]}").text
    again = _priced(office)
    assert "for nothing" in again.text
    assert _run(office, again).status == 303
    assert ledger.head().charges == before.charges + 1
    assert office.post("ada", f"{path}/review", {"comment": "for print"}).status == 303
    assert ledger.reviews.of(2).state == "requested"
    assert QUESTION.replace(">", "&gt;") in office.get("rita", "/review/2").text


def test_what_does_not_fit_is_offered_smaller(asked_office: Office) -> None:
    refused = _priced(asked_office, epsilon="0.3")
    assert refused.status == 200
    assert "Price it at epsilon 0.25" in refused.text
    assert "/ask/run" not in refused.text
    offered = asked_office.post("ada", "/ask/price", {"sql": QUESTION, "epsilon": "0.25"})
    assert "Spend 0.25 of your 0.25 epsilon." in offered.text


def test_an_offer_that_the_text_does_not_take_lets_the_text_be_changed(asked_office: Office) -> None:
    stated = QUESTION.replace("delta=0", "epsilon=0.3, delta=0")
    other = QUESTION.replace("18", "65")
    for sql, epsilon, fits in (
        (stated, "", stated.replace("0.3", "0.25")),
        (f"{QUESTION} UNION ALL {other}", "0.2", f"{QUESTION} UNION ALL {QUESTION}"),
    ):
        refused = _priced(asked_office, sql=sql, epsilon=epsilon)
        assert "ask for an epsilon of at most 0.25" in refused.text
        assert "Price it at epsilon" not in refused.text, "it would be refused again"
        assert "/ask/run" not in refused.text
        form = refused.text.partition("Change the question</h2>")[2].partition("</form>")[0]
        assert f">{html.escape(sql)}</textarea>" in form
        assert f'type="number" value="{epsilon}"' in form
        names = ("purpose", "period")
        changed = {name: hidden_field(form, name) for name in names} | {"sql": fits, "epsilon": epsilon}
        assert changed["purpose"] == "a report"
        assert "of your 0.25 epsilon." in _priced(asked_office, **changed).text
        assert "Spend" in _priced(asked_office, **changed).text


def test_a_hint_is_said_of_every_field_that_it_is_of(asked_office: Office) -> None:
    page = asked_office.get("ada", "/ask").text
    hints = re.findall('class="hint" id="([^"]+)"', page)
    described = re.findall('aria-describedby="([^"]+)"', page)
    assert set(described) == set(hints)
    assert described.count("bounds-hint") == 2


def test_a_wanted_error_finds_its_epsilon(asked_office: Office) -> None:
    priced = _priced(asked_office, epsilon="", error="30")
    assert "Spend 0.0984283 of your 0.25 epsilon." in priced.text


def test_fields_say_a_question_without_sql(asked_office: Office) -> None:
    form = {
        "table": "data",
        "aggregate": "SUM",
        "column": "age",
        "lower": "-5",
        "upper": "90",
        "epsilon": "0.125",
    }
    priced = asked_office.post("ada", "/ask/price", {**form, "delta": "0"})
    assert "Spend 0.125" in priced.text
    assert "((-5.0), 90.0)" in html.unescape(priced.text)


@cases(
    ("form", "error"),
    [
        ({}, "must be written"),
        ({"sql": "SELECT age FROM data"}, "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5"),
        ({"sql": QUESTION, "epsilon": "-1"}, "epsilon must be a number"),
        ({"sql": QUESTION, "error": "0"}, "error must be positive"),
        ({"sql": QUESTION.replace("age", "wage"), "epsilon": "0.125"}, "wage"),
        ({"aggregate": "SUM", "table": "data"}, "column must be given for SUM"),
        ({"aggregate": "COUNT", "table": "data", "groups": "1.5"}, "groups must be a whole number"),
        ({"sql": "x" * 200_000}, "must have at most"),
    ],
)
def test_bad_input_charges_nothing(asked_office: Office, form: dict[str, str], error: str) -> None:
    before = asked_office.console.ledger.head()
    refused = asked_office.post("ada", "/ask/price", form)
    assert refused.status == 400
    assert error in html.unescape(refused.text)
    assert asked_office.console.ledger.head() == before


def test_a_run_that_was_not_priced_so_is_refused(asked_office: Office) -> None:
    before = asked_office.console.ledger.head()
    priced = _priced(asked_office)
    form = {name: hidden_field(priced.text, name) for name in ("question", "cost", "request")}
    for name, value in {
        "question": "{}",
        "cost": '{"epsilon": 0.0625}',
        "request": "",
    }.items():
        assert asked_office.post("ada", "/ask/run", {**form, name: value}).status in {400, 409}, name
    for cost in ("[]", "{", '{"epsilon": "1"}', "[" * 100_000):
        assert asked_office.post("ada", "/ask/run", {**form, "cost": cost}).status == 400, cost[:9]
    assert asked_office.console.ledger.head() == before


def test_no_one_else_sees_or_asks(asked_office: Office) -> None:
    office = asked_office
    path = _run(office, _priced(office)).location.partition("?")[0]
    for name in ("", *MEMBERS):
        if name == "ada":
            continue
        for place in ("/ask", "/history", path, f"{path}/csv"):
            assert office.get(name, place).status == (403 if name else 303), (name, place)
        for place in ("/ask/price", "/ask/run", f"{path}/cancel", f"{path}/review"):
            assert office.post(name, place).status == 403, (name, place)
        for place in ("/releases", "/log", "/review", "/grants", "/budget"):
            assert "adults" not in office.get(name, place).text
    assert "no such job" in office.get("ada", "/history/nothing").text
    log = LedgerExport.parse(office.console.ledger.export())
    assert log.events


def test_a_console_without_data_has_no_questions(office: Office) -> None:
    assert office.get("ada", "/ask").status == 404
    assert 'href="/ask"' not in office.get("ada", "/releases").text


def test_the_budget_is_shared_with_what_is_charged_elsewhere(asked_office: Office) -> None:
    priced = _priced(asked_office)
    asked_office.ask(COUNT.replace("0.25", "0.1875"))
    refused = _run(asked_office, priced)
    assert "State: <strong>refused" in asked_office.get("ada", refused.location).text
    assert asked_office.console.ledger.remaining(analyst="ada").epsilon == 0.0625
    assert PureDP(0.0625).epsilon(0.0) == 0.0625
