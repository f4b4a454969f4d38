"""The checklist: each line says who answers it, and the ledger's facts are the ledger's."""

from __future__ import annotations

import datetime as dt
import xml.etree.ElementTree as ET
from dataclasses import fields, replace

import pytest

from sfumato import report
from sfumato.errors import ParameterError
from sfumato.ledger import Budget, Dataset, Ledger, Renewal, Role
from sfumato.privacy import DiscreteLaplace, Gaussian, Neighboring
from sfumato.report import ChecklistAnswers, ChecklistLine, Deployment, Known
from sfumato.report.deployments.checklist import PARTS
from tests.cases import cases

ABOUT = Deployment(
    name="Visits",
    description="Visits by month.",
    intended_use="Planning <i>.",
    data_product_region="Tuscany",
    data_curators=("The clinic",),
    registry_authors=("Ada",),
    publication_date=dt.date(2026, 1, 31),
)


def opened(*, simulated: bool = False, renewal: Renewal | None = None) -> Ledger:
    return Ledger.open(
        None,
        budget=Budget.approximate(epsilon=4.0, delta=1e-6),
        privacy_unit="person",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
        simulated=simulated,
        renewal=renewal,
    )


def by_question(lines: tuple[ChecklistLine, ...]) -> dict[str, ChecklistLine]:
    found = {line.question: line for line in lines}
    assert len(found) == len(lines)
    return found


def test_every_part_of_the_pyramid_is_asked_for_and_what_a_person_must_answer_is_open() -> None:
    with opened() as ledger:
        lines = report.checklist(ledger)
    assert list(dict.fromkeys(line.part for line in lines)) == list(PARTS)
    asked = {line.answered_in for line in lines if line.known is Known.OPEN}
    answers = {f"checklist.{each.name}" for each in fields(ChecklistAnswers)}
    assert asked == answers | {"unprotected_quantities", "model_name", "access_type"}


def test_what_a_person_answers_is_word_for_word_and_blanks_are_no_answer() -> None:
    about = replace(ABOUT, checklist=ChecklistAnswers(trust="Only <b>we</b>.", bias="  "))
    with opened() as ledger:
        lines = by_question(report.checklist(ledger, about))
        page = report.deployment(ledger, about=about)
    assert (lines["trust"].known, lines["trust"].answer) == (Known.PERSON, "Only <b>we</b>.")
    assert lines["bias"].known is Known.OPEN
    assert (lines["model_name"].known, lines["model_name"].answer) == (Known.PERSON, "Central")
    body = " ".join(" ".join(ET.fromstring(page.html).itertext()).split())
    assert "Only <b>we</b>." in body
    assert "Planning <i>." in body
    assert "To be answered in checklist.bias ." in body


def test_the_ledger_answers_what_it_knows() -> None:
    with opened() as ledger:
        empty = by_question(report.checklist(ledger))
        assert {"no_mechanisms", "no_roles", "all_time", "grid", "real_noise"} <= empty.keys()
        ledger.members.set_roles("carl", {Role.CURATOR, Role.REVIEWER})
        ledger.charge(DiscreteLaplace(scale=10, sensitivity=1), delta=0.0)
        lines = by_question(report.checklist(ledger))
        assert lines["mechanisms"].facts == {"mechanisms": "DiscreteLaplace"}
        assert lines["grid"].known is Known.LEDGER
        assert lines["budget"].facts == {"budget": "(4, 1e-06)-DP", "spent": ledger.spent().amounts}
        assert lines["accounting"].facts == {"charges": "1"}
        roles = {"curators": "1", "analysts": "0", "reviewers": "1", "auditors": "0"}
        assert lines["roles"].facts == roles
        assert lines["chain"].facts == {"events": str(ledger.head().position)}
        ledger.charge(Gaussian(9.0), delta=1e-7)
        # A continuous loss says nothing of how its noise was drawn.
        assert by_question(report.checklist(ledger))["grid"].known is Known.UNKNOWN


@cases("language", ["en", "de"])
def test_every_line_has_a_question_and_an_answer_in_each_language(language: str) -> None:
    with opened(simulated=True) as ledger:
        ledger.charge(Gaussian(9.0), delta=1e-7, simulated=True)
        lines = by_question(report.checklist(ledger))
        assert "simulated" in lines
        root = ET.fromstring(report.deployment(ledger, language=language).html)
    renewal = Renewal(every="month", column="day")
    with opened(renewal=renewal) as ledger:
        assert by_question(report.checklist(ledger))["renewal"].facts == {"period": "month of day"}
        assert report.deployment(ledger, language=language).html
    tables = [table for table in root.iter("table") if len(table.findall("thead/tr/th")) == 3]
    cells = ["".join(cell.itertext()) for table in tables[-len(PARTS) :] for cell in table.iter("td")]
    assert len(cells) == 2 * len(lines)
    assert all(cells)


def test_what_is_refused() -> None:
    with opened() as ledger, pytest.raises(ParameterError, match="about must be"):
        report.checklist(ledger, "visits")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="trust must be"):
        ChecklistAnswers(trust=1)  # type: ignore[arg-type]
