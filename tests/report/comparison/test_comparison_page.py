"""A comparison on a page and as text: all numbers in a table, a strip, both languages."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from sfumato import report
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import ApproximateDP, Neighboring, PureDP
from tests.cases import cases

SVG = "{http://www.w3.org/2000/svg}"


@cases("language", ["en", "de"])
def test_the_page_has_a_strip_and_a_row_for_each_mark(language: str) -> None:
    comparison = report.compare(ApproximateDP(2.0, 1e-6), unit="person")
    page = report.comparison_page(comparison, language=language)
    assert len(page.to_bytes()) < 50_000
    root = ET.fromstring(page.html)
    rows = root.findall(".//table")[0].findall("tbody/tr")
    assert len(rows) == 1 + len(comparison.placed)
    chart = root.find(f".//{SVG}svg")
    assert chart is not None
    assert len(list(chart.iter(f"{SVG}path"))) == len(comparison.placed)
    numbers = [each.text or "" for each in chart.iter(f"{SVG}text")][: len(comparison.placed)]
    marks = [part for text in numbers for part in text.split(", ") if part.isdigit()]
    assert marks == [str(mark + 1) for mark in range(len(comparison.placed))]
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    assert "http" not in page.html.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_text_and_page_say_the_same() -> None:
    comparison = report.compare(PureDP(1.0), unit="user-day")
    said = report.comparison_text(comparison)
    assert "of these 0 let an attacker be right less often" in said
    assert "This guarantee: right at most 73.2 in 100; a belief of 50 in 100 becomes at most 73.2" in said
    assert "one count is off by about 1.414" in said
    body = " ".join("".join(ET.fromstring(report.comparison_page(comparison).html).itertext()).split())
    for each in comparison.placed:
        assert each.record.name in said
        assert each.record.name in body
    assert "Person tables" not in said
    assert "Überzeugung" in report.comparison_text(comparison, language="de")


def test_the_report_of_a_deployment_places_its_budget_and_a_unit_without_records_has_none() -> None:
    with Ledger.open(
        None,
        budget=Budget.zcdp(rho=0.1),
        privacy_unit="person",
        neighboring=Neighboring.REPLACE_ONE,
        dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ) as ledger:
        page = report.deployment(ledger, compared_unit="person")
        assert "Redistricting" in page.html
        assert "Redistricting" not in report.deployment(ledger).html
        empty = report.deployment(ledger, compared_unit="text-sequence")
    assert "No record of this unit states a whole guarantee" in empty.html
