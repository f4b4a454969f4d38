"""JSON-LD: what a catalogue reads of a release, and that nothing in it ends the block or runs."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import sfumato as sf
from sfumato import report
from sfumato.errors import ParameterError
from tests.report.making import publish, towns

if TYPE_CHECKING:
    from sfumato.session.session import Session

HOSTILE = '</script><script>document.title = "ran"</script>&amp;<!--'
QUERY = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS `{HOSTILE}` FROM data"


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with sf.connect(towns(4), privacy_unit="who", epsilon=9, delta=1e-5) as opened:
        opened.sql(QUERY)
        yield opened


def test_a_dataset_has_its_guarantee_as_properties(session: Session) -> None:
    made = json.loads(report.json_ld(session.ledger, 1, more={"license": "https://example.org/l"}))
    assert (made["@type"], made["@context"]["@vocab"]) == ("Dataset", "https://schema.org/")
    assert made["variableMeasured"] == [HOSTILE]
    assert made["license"] == "https://example.org/l"
    assert "datePublished" not in made
    guarantee = {each["name"]: each["value"] for each in made["dp:guarantee"]}
    assert {each["@type"] for each in made["dp:guarantee"]} == {"PropertyValue"}
    said = report.statement(session.ledger, 1)
    assert (guarantee["epsilon"], guarantee["delta"], guarantee["notion"]) == (0.5, 0.0, "pure-dp")
    assert guarantee["privacy_unit"] == "who"
    assert (guarantee["digest"], guarantee["release_sha256"]) == (said.digest, said.payload)
    assert made["identifier"] == f"sfumato:{said.ledger}:1"
    assert "creativeWorkStatus" not in made
    taken, names = "more must leave out what follows from the ledger", "more must have names of schema.org"
    for more, message in (
        ({"datePublished": "2026-01-01"}, taken),
        ({"name": "x"}, taken),
        # What a prefix or a whole address stands for would be a second guarantee.
        ({"dp:guarantee": []}, names),
        ({"urn:sfumato:guarantee:1:guarantee": []}, names),
        ({"https://schema.org/name": "x"}, names),
        ({"@id": "x"}, names),
        ({1: "x"}, names),
        ([1], "more must be a dict"),
        ({"size": float("nan")}, "more must have values of JSON"),
        ({"expires": session}, "more must have values of JSON"),
    ):
        with pytest.raises(ParameterError, match=f"^{message}"):
            report.json_ld(session.ledger, 1, more=more)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^name must be"):
        report.json_ld(session.ledger, 1, name=3)  # type: ignore[arg-type]


def test_in_a_page_it_is_one_block_of_data(session: Session) -> None:
    page = report.stored_release(session.ledger, 1)
    whole = report.with_json_ld(page, report.json_ld(session.ledger, 1))
    assert whole.html.count("<script") == whole.html.count("</script") == 1
    (block,) = ET.fromstring(whole.html).iter("script")
    assert block.attrib == {"type": "application/ld+json"}
    assert json.loads(block.text or "") == json.loads(report.json_ld(session.ledger, 1))
    policy = re.findall(r'content="default-src[^"]*"', whole.html)
    assert policy == re.findall(r'content="default-src[^"]*"', page.html)
    assert report.with_json_ld(page, '"</script><b>"').html.count("</script") == 1


def test_a_published_release_has_its_day() -> None:
    with sf.connect(towns(4), privacy_unit="who", epsilon=9, delta=1e-5) as session:
        session.sql(QUERY)
        ledger = session.ledger
        publish(ledger, 1)
        day = ledger.reviews.of(1).steps[-1].time.date().isoformat()
        made = json.loads(report.json_ld(ledger, 1))
        assert (made["datePublished"], made["creativeWorkStatus"]) == (day, "Published")
        assert report.statement(ledger, 1).verify(ledger) == "published"
        ledger.reviews.withdraw(1, by="carl", comment="an error")
        made = json.loads(report.json_ld(ledger, 1))
        assert made["creativeWorkStatus"] == "Withdrawn"
        assert "datePublished" not in made


@pytest.mark.browser
def test_a_browser_runs_nothing_of_it_and_sees_no_breach_of_the_policy(
    session: Session, tmp_path: object
) -> None:
    from pathlib import Path  # noqa: PLC0415

    from tests.browser import browsing  # noqa: PLC0415

    page = report.with_json_ld(report.stored_release(session.ledger, 1), report.json_ld(session.ledger, 1))
    file = Path(str(tmp_path)) / "page.html"
    with browsing() as browser:
        file.write_bytes(page.to_bytes())
        browser.open(file)
        assert browser.driver.title == "Release 1"
        assert browser.driver.get_log("browser") == []
        assert browser.run("return JSON.parse(document.scripts[0].text)['@type']") == "Dataset"
        assert browser.violations() == []
        file.write_text(page.html.replace("</main>", "<script>document.title = 'ran'</script></main>"))
        browser.open(file)
        assert browser.driver.title == "Release 1"
        assert "Content Security Policy" in browser.driver.get_log("browser")[0]["message"]
