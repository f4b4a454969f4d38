"""The page of a release: its numbers, the same bytes from a ledger, hostile names, accessibility."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sfumato as sf
from sfumato import report
from sfumato.errors import ParameterError
from sfumato.ledger import Renewal, Role

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.session.session import Session

MINUS = "\N{MINUS SIGN}"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ['<script>alert("x")</script>', "\"'&<b>", "\u202egnp.exe", "שלום", "", "a\x00b", "]]>"]
PURE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS people FROM data"
GROUPS = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7, max_groups_contributed=2, "
    "truncation_epsilon=0.2) city, COUNT(*) AS n, "
    "AVG(age, contribution_bounds_per_group => (0, 100)) AS age, "
    "COUNT(*) * 2 AS doubled FROM data GROUP BY city"
)


def table(cities: list[str]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    rows = range(3000)
    return pa.table(
        {
            "who": [row // 2 for row in rows],
            "city": [cities[row % len(cities)] for row in rows],
            "age": [30.0] * 3000,
        }
    )


def connected(cities: list[str], **options: object) -> Session:
    return sf.connect(table(cities), privacy_unit="who", epsilon=3, delta=1e-6, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with connected(["Rome", "Vinci"]) as opened:
        yield opened


def text_of(page: report.ReleasePage) -> str:
    root = ET.fromstring(page.html)
    body = root.find("body")
    assert body is not None
    return " ".join("".join(body.itertext()).split())


class Tags(HTMLParser):
    """The elements and attributes as a browser's rules see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_of_a_pure_release_says_the_odds_of_belief_and_event(session: Session) -> None:
    page = report.release(session.sql(PURE), ledger=session.ledger)
    said = text_of(page)
    assert "at most 62.3 in 100 likely after any release that could have come out, and at least 37.7" in said
    assert "at most 69.7 in 100 with them" in said
    assert "epsilon is 0.5 and delta is 0" in said
    assert "no bound on a belief" not in said
    german = text_of(report.release(session.sql(PURE), language="de"))
    assert "höchstens 62,3 zu 100" in german
    assert "höchstens eine von 69,7 zu 100" in german


def test_with_delta_no_bound_on_a_belief_is_claimed(session: Session) -> None:
    said = text_of(report.release(session.sql(GROUPS), ledger=session.ledger))
    assert "no bound on a belief holds for every release" in said
    assert "after any release that could have come out" not in said
    assert "Hidden is each group whose noisy number of who is below" in said
    assert "is clamped to 0 to 100" in said
    assert "One who counts in at most 2 groups" in said
    assert re.search(r"Of all groups of all who, [\d.]+ in 100 are left out", said)


def test_a_count_says_what_one_unit_adds_at_least_where_it_is_clamped_from_below(session: Session) -> None:
    cheap = PURE.replace("epsilon=0.5", "epsilon=0.01")
    said = []
    for bounds in ("(5, 7)", "(0, 2)"):
        counted = cheap.replace("COUNT(*)", f"COUNT(*, contribution_bounds_per_group => {bounds})")
        release = session.sql(counted)
        said.append(text_of(report.release(release)))
        assert f"({release.record.measures[0].lower}, {release.record.measures[0].upper})" == bounds
    assert "One who that is in a group adds at least 5 and at most 7 to it" in said[0]
    assert "One who adds at most 2 to a group" in said[1]


def test_every_interval_on_the_page_holds_its_number_and_the_released_interval(session: Session) -> None:
    release = session.sql(GROUPS)
    root = ET.fromstring(report.release(release).html)
    first = root.findall(".//table")[0]
    cells = ["".join(cell.itertext()) for row in first.findall("tbody/tr") for cell in row.findall("td")]
    wide = release.to_arrow(intervals=True).to_pylist()
    names = ["n", "age", "doubled"]
    assert len(cells) == len(names) * len(wide)
    for index, cell in enumerate(cells):
        row, name = wide[index // 3], names[index % 3]
        value, low, high = (
            float(each.replace(MINUS, "-").replace(",", ""))
            for each in re.split(r" to | \(", cell.rstrip(")"))
        )
        assert low <= row[f"{name}_lower"] <= row[f"{name}_upper"] <= high
        assert low <= value <= high
        assert value == pytest.approx(row[name], rel=1e-3)


def test_a_ledger_gives_the_same_bytes_without_the_data(session: Session) -> None:
    live = session.sql(GROUPS.replace("epsilon=1", "epsilon=0.7"))
    number = live.receipt.sequence if live.receipt is not None else 0
    for language in ("en", "de"):
        stored = report.stored_release(session.ledger, number, language=language)
        without = replace(live, priced=None)  # the limits on a unit's groups: no ledger stores the query
        assert report.release(without, ledger=session.ledger, language=language) == stored
        assert report.release(live, ledger=session.ledger, language=language) != stored
    assert f"sfumato report LEDGER {number} --output page.html" in stored.html


def test_the_page_has_the_digest_that_a_reviewer_signs_and_says_who_signed() -> None:
    with connected(["Rome", "Vinci"]) as session:
        ledger, key = session.ledger, Ed25519PrivateKey.generate()
        ledger.members.set_roles("carl", {Role.CURATOR})
        ledger.members.set_roles("rita <i>", {Role.REVIEWER}, by="carl")
        ledger.members.set_roles("cora", {Role.CURATOR}, by="carl")
        ledger.members.register_key("rita <i>", key.public_key(), by="cora")
        live = session.sql(PURE)
        assert "Nobody has reviewed" in text_of(report.release(live, ledger=ledger))
        ledger.reviews.request(1, by="carl")
        approval = ledger.reviews.approval(1, by="rita <i>")
        assert approval.payload in report.release(live).html
        assert approval.payload == hashlib.sha256(live.record.to_bytes()).hexdigest()
        ledger.reviews.approve(approval, approval.sign(key))
        ledger.reviews.publish(1, by="carl")
        said = text_of(report.stored_release(ledger, 1))
        public_key = key.public_key().public_bytes_raw().hex()
        assert f"Published by carl. Signed by rita <i> with the key {public_key}" in said
        ledger.reviews.withdraw(1, by="carl", comment="old")
        root = ET.fromstring(report.stored_release(ledger, 1).html)
        notices = ["".join(each.itertext()) for each in root.iter("p") if each.get("class") == "notice"]
        assert notices == [text for text in notices if text.startswith("Withdrawn by carl")] != []


def test_a_budget_that_renews_is_said_to_be_of_one_period() -> None:
    import pyarrow as pa  # noqa: PLC0415

    days = pa.array(["2026-01-15", "2026-02-01"] * 500).cast(pa.date32())
    visits = pa.table({"who": range(1000), "day": days})
    monthly = Renewal(every="month", column="day")
    with sf.connect(visits, privacy_unit="who", epsilon=1, renewal=monthly, period="2026-01") as session:
        text = text_of(report.release(session.sql(PURE), ledger=session.ledger))
    assert "for one period together cost at most: 1-DP. Over all periods nothing limits the sum." in text
    assert "All releases of this ledger together" not in text


def test_hostile_names_are_text_and_nothing_runs() -> None:
    with connected(HOSTILE, rng=3) as session:
        query = GROUPS.replace("AS n", 'AS `<script src="//x">`')
        release = session.sql(query.replace("AS doubled", "AS `\"' onload=x`"))
        page = report.release(release, ledger=session.ledger)
    tags = Tags(page.html).tags
    names = {tag for tag, _ in tags}
    assert names.isdisjoint({"script", "b", "img", "iframe", "link", "object", "form"})
    attributes = {name for _, attrs in tags for name in attrs}
    assert not {name for name in attributes if name.startswith("on")}
    assert attributes.isdisjoint({"src", "style", "action"})
    assert [attrs for tag, attrs in tags if tag == "a" or "href" in attrs] == [
        {"href": "#content", "class": "skip"}
    ]
    said = text_of(page)
    shown = [*HOSTILE[:2], "\\u202egnp.exe", "שלום", "a\\x00b", "]]>"]
    assert all(text in said for text in shown)
    assert "\u202e" not in page.html
    assert "Simulation: the noise follows" in said


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_is_accessible_small_and_alone(session: Session, language: str) -> None:
    page = report.release(session.sql(GROUPS), ledger=session.ledger, language=language)
    assert len(page.to_bytes()) < 50_000
    root = ET.fromstring(page.html)
    assert root.get("lang") == language
    headings = [each.tag for each in root.iter() if re.fullmatch(r"h\d", each.tag)]
    assert headings[0] == "h1"
    assert set(headings[1:]) == {"h2"}
    for found in root.iter("table"):
        assert found.find("caption") is not None
        assert {each.get("scope") for each in found.iter("th")} <= {"col", "row"}
        assert not list(found.iter("script"))
    charts = list(root.iter(f"{SVG}svg"))
    assert len(charts) >= 2
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    for chart in charts:
        assert set((chart.get("aria-labelledby") or "").split()) <= set(ids)
        assert chart.find(f"{SVG}title") is not None
    outside = re.findall(r"https?://[^\"'<]*", page.html)
    assert set(outside) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in page.html


def test_long_tables_are_cut_and_say_so() -> None:
    import pyarrow as pa  # noqa: PLC0415

    data = pa.table({"n": list(range(200)) * 5})
    query = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) n, COUNT(*) AS c, COUNT(*) AS d "
        "FROM data GROUP BY n"
    )
    groups = {"n": list(range(200))}
    with sf.connect(data, privacy_unit=sf.ROW, epsilon=1.0) as session:
        page = report.release(session.sql(query, public_groups=groups), ledger=session.ledger)
    assert "Shown are 60 of 200 rows" in page.html
    assert len(page.to_bytes()) < 50_000
    assert "The names of the groups were fixed beforehand" in page.html


def test_what_is_refused(session: Session) -> None:
    release = session.sql(PURE)
    with pytest.raises(ParameterError, match="language must be one of en, de, got 'xx'"):
        report.release(release, language="xx")
    with pytest.raises(ParameterError, match="release must be"):
        report.release(release.to_arrow())
    with connected(["Rome"]) as other:
        other.sql(PURE)
        if release.receipt is not None:
            with pytest.raises(ParameterError, match="ledger must be the one of the release"):
                report.release(release, ledger=other.ledger)
    with pytest.raises(ParameterError, match="number must be that of a charge"):
        report.stored_release(session.ledger, 99)
