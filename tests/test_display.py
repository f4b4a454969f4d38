"""What a notebook shows of each object: whole HTML without scripts, in which nobody's text is markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

import sfumato as sf
from sfumato._display import html_facts, html_table
from tests.run_time import run_time

if run_time(__name__):
    import pyarrow as pa

    from sfumato import local
    from sfumato.audit import audit, audit_one_run, audit_precision

EVIL = "<script>alert('1')</script>\x1b[2J"
TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td", "small", "p", "dl", "dt", "dd"}


class Page(HTMLParser):
    """Reads a page whose elements must nest, and be of a few harmless kinds without attributes but scope."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        assert text.isprintable()
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert attrs == [] or (tag == "th" and attrs[0] in {("scope", "col"), ("scope", "row")})
        self.open.append(tag)
        self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert self.open[-1] not in {"table", "thead", "tbody", "tr", "dl"}
        self.cells[-1] += data


def page(thing: Any) -> str:
    """Return the text of what a notebook shows, a cell to a line."""
    shown = thing._repr_html_()
    assert shown.count("<table>") == shown.count("<caption>") == 1
    return "\n".join(cell for cell in Page(shown).cells if cell)


@pytest.fixture
def session() -> Any:
    table = pa.table({"id": range(900), "g": [i % 3 for i in range(900)]})
    made = sf.connect({"people": table}, privacy_unit="id", epsilon=3.0, delta=1e-6, rng=4)
    with made:
        yield made


def count(name: str = "n") -> str:
    options = "epsilon=1, delta=1e-8, max_groups_contributed=1"
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) g, COUNT(*) AS {name} FROM people GROUP BY g"


def test_texts_are_never_markup() -> None:
    table = html_table(EVIL, [EVIL], [[EVIL], [(EVIL, EVIL)]], more=EVIL, facts={EVIL: EVIL})
    for shown in (table, html_facts(EVIL, {EVIL: EVIL})):
        cells = Page(shown).cells
        assert any("<script>" in cell for cell in cells)
        assert "<script>" not in shown


def test_a_session_its_plan_and_its_ledger(session: Any) -> None:
    session.ledger.charge(sf.privacy.Laplace(2.0), delta=0.0, description=EVIL)
    assert "people\nprivacy unit\nid\nbudget\n(3, 1e-06)-DP" in page(session)
    assert "left\n(2.5, " in page(session)
    assert "it takes noise from seeds, and protects nobody" in page(session)
    plan = session.plan({"a <b>": count()}, epsilon=1.0)
    shown = page(plan)
    assert "a <b>\nn\n1\n1e-08\n" in shown
    assert "fits into what is left\nyes\ncharged\nnothing, before release()" in shown
    session.sql(count())
    for book in (session.ledger, session.account):
        shown = page(book)
        assert f"Ledger {session.ledger.ledger_id}" in shown
        assert "<script>alert('1')</script>\\x1b[2J\n0.5\n0\nno" in shown
        assert "left\n(1.5, " in shown
    for _ in range(19):
        session.ledger.charge(sf.privacy.Laplace(1000.0), delta=0.0, description="one more")
    assert "and 1 earlier" in page(session.ledger)


def test_a_closed_ledger_says_what_it_knows(session: Any) -> None:
    session.close()
    for thing in (session, session.ledger):
        assert "left\nnot known (Ledger" in page(thing)


def test_a_computed_release_has_intervals_cost_receipts_and_what_is_left(session: Any) -> None:
    text = f"WITH c AS ({count()}) SELECT g, n * 2 AS twice FROM c ORDER BY g"
    release = session.sql(text)
    shown = page(release)
    assert "twice\n0\n" in shown
    assert "cost\n(1, 1e-08)-DP\nreceipt 1\n" in shown
    assert str(release.receipts[0]) in shown
    assert "left\n(2, " in shown
    assert "cost\nnothing: paid before\nleft" in page(session.sql(text))


def test_estimates() -> None:
    domain = local.Domain([EVIL, "b", *map(str, range(30))])
    estimate = local.RandomizedResponse(epsilon=2.0, domain=domain).simulate([50, 900, *[1] * 30], rng=1)
    shown = page(estimate)
    assert shown.index("\nb\n") < shown.index("<script>")  # the most frequent first
    assert "and 12 more" in shown
    assert "each report\nepsilon 2, " in shown
    assert "nobody was protected" in shown
    mean = local.PiecewiseMean(epsilon=2.0, bounds=(0.0, 24.0)).simulate([7.0, 9.0], [500, 500], rng=1)
    assert "95 % interval" in page(mean)
    ranges = local.HierarchicalHistogram(epsilon=2.0, domain=local.Domain(range(16)))
    assert "\n0\n" in page(ranges.simulate([10] * 16, rng=1))


def test_audits() -> None:
    pairs = [([1, 1], [1])]
    found = audit(len, epsilon=1.0, pairs=pairs, trials=1000)
    assert "claim\nepsilon 1 at delta 0\nverdict\nVIOLATED\nepsilon is at least\n" in page(found)
    assert "not observed\ntime, memory, random state" in page(found)
    assert "low bits\n" in page(audit_precision(len, epsilon=1.0, pairs=pairs, trials=1000))
    one = audit_one_run(lambda included: included * 0.0, canaries=100, epsilon=1.0, rng=1)
    assert "verdict\nnot refuted: nothing is proved" in page(one)
