"""What a notebook shows of each object: whole HTML without scripts, in which nobody's text is markup."""

from __future__ import annotations

import json
from dataclasses import fields
from html.parser import HTMLParser
from typing import Any

import pytest

import sfumato as sf
from sfumato import _display
from sfumato._display import html_facts, html_table
from sfumato.errors import SourceError
from tests.run_time import run_time

if run_time(__name__):
    import pyarrow as pa

    from sfumato import local, mechanisms
    from sfumato.audit import audit, audit_one_run, audit_precision
    from sfumato.federated.dap.preparation import Preparation
    from sfumato.local import surveys
    from sfumato.queries.engines.compilation.bounding import Bounding
    from sfumato.queries.engines.duckdb.cache import CachedBounding
    from sfumato.session.remote.remote_answer import RemoteAnswer

EVIL = "<script>alert('1')</script>\x1b[2J"
IGNORED = "tex2jax_ignore mathjax_ignore"
TAGS = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "small", "p", "dl", "dt", "dd"}


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
        known = {"th": [("scope", "col"), ("scope", "row")], "div": [("class", IGNORED)]}
        assert len(attrs) <= 1
        assert set(attrs) <= set(known.get(tag, []))
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
    assert shown.startswith(f'<div class="{IGNORED}"><table>'), "a notebook makes no formula of a name"
    assert shown.endswith("</div>")
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


def test_names_are_whole_and_huge_numbers_short() -> None:
    names = {2019: "2019", 1000.25: "1000.25", None: "NULL", "\ud800": r"\ud800"}
    assert {value: _display.named(value) for value in names} == names
    numbers = {-1.7e308: "-1.7e+308", 5e-324: "4.941e-324", 10**400: "1.000e+400", 10**9: "1,000,000,000"}
    assert {value: _display.shown(value) for value in numbers} == numbers


def test_years_of_a_console_s_answer_are_names() -> None:
    table = pa.table({"year": [2019], "n": [7000], "n_lower": [6990], "n_upper": [7010]})
    facts = {"epsilon": 1.0, "delta": 0.0, "privacy_unit": "id", "simulated": False, "receipts": []}
    answer = RemoteAnswer(table=table, facts=facts)
    assert str(answer).splitlines()[1] == "2019  7,000"
    assert "<td>2019</td><td>7,000 <small>[6,990, 7,010]</small></td>" in answer._repr_html_()


def test_a_console_s_answer_is_whole_and_steers_nothing() -> None:
    facts = {"epsilon": 1.0, "delta": 0.0, "privacy_unit": EVIL, "simulated": False, "receipts": []}
    answer = RemoteAnswer(table=pa.table({"n": [7]}), facts=facts | {"explanation": f"{EVIL}\nb"})
    assert all(line.isprintable() for line in f"{answer}\n{answer.explain()}".split("\n"))
    assert answer.explain().endswith("\nb")
    assert "<script>" in page(answer)
    for lost in facts:
        own = {name: value for name, value in facts.items() if name != lost}
        sink, marked = pa.BufferOutputStream(), {b"sfumato.facts": json.dumps(own).encode()}
        table = pa.table({"n": [7]}).replace_schema_metadata(marked)
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        with pytest.raises(SourceError, match="an answer must be a stream of Arrow"):
            RemoteAnswer.from_stream(sink.getvalue().to_pybytes())


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


def test_releases_of_mechanisms() -> None:
    texts = mechanisms.Histogram(categories=(EVIL, *map(str, range(29))))
    release = mechanisms.Laplace.for_query(texts, epsilon=1.0).release([EVIL] * 50, rng=1)
    shown = page(release)
    lower, upper, _ = release.interval()
    first = f"{release.value[0]} [{lower[0]:g}, {upper[0]:g}]".replace(" ", " \n", 1)
    assert f"category\nvalue\n<script>alert('1')</script>\\x1b[2J\n{first}\n" in shown
    assert "and 10 more\nin brackets\n95 % intervals\n" in shown
    assert f"cost\n{release.loss!r}\nprotected\nadd/remove" in shown
    assert "nobody is protected" in shown
    assert f"value\n{release.value[0]}\n" in page(release.map(lambda counts: counts[0]))
    assert "value\narray of shape (5, 6)" in page(release.map(lambda counts: counts.reshape(5, 6)))
    assert "value\n30 entries" in page(release.map(lambda counts: [counts] * 30))
    assert "value\nobject" in page(release.map(lambda counts: object()))
    assert "entry\nvalue\n0\nb\n1\nNULL" in page(release.map(lambda counts: ["b", None]))


def test_pairs_and_what_was_mixed() -> None:
    grid = local.HaarGrid(epsilon=2.0, domains=(local.Domain([EVIL, "b"]), local.Domain(range(9))))
    estimate = grid.simulate([100] * 18, rng=1)
    shown = page(estimate)
    lower, upper, _ = estimate.interval()
    assert f"{estimate.frequencies[1, 2]:.4g} " in shown
    assert f"[{lower[1, 2]:.4g}, {upper[1, 2]:.4g}]" in shown
    assert "and 2 more pairs" in shown
    for protocol, word in ((local.shuffle.ShuffledSum, "sum"), (local.shuffle.ShuffledMean, "mean")):
        asked = protocol(epsilon=1.0, delta=1e-6, clients=10, bounds=(0.0, 1.0))
        aggregator = asked.aggregator()
        aggregator.add_batch(asked.randomize_batch([0.25] * 10, rng=1))
        found = aggregator.estimate()
        low, high, _ = found.interval()
        assert f"{word}\n{found.value:.6g}\n95 % interval\n{low:.6g} to {high:.6g}\n" in page(found)
        assert f"{word}\nnan" in page(asked.aggregator().estimate())


def test_surveys() -> None:
    warner = surveys.Warner(truth="3/4")
    one, other = (warner.estimate({"yes": yes, "no": 1000 - yes}) for yes in (400, 500))
    lower, upper, _ = one.interval()
    shown = page(one)
    assert "Estimated prevalence, of 1,000 respondents" in shown
    assert f"prevalence\n{one.prevalence:.4g} \n[{lower:.4g}, {upper:.4g}]\n" in shown
    assert f"each report\nepsilon {warner.epsilon:.4g}"[:24] in shown
    gap = surveys.PrevalenceDifference(first=one, second=other)
    assert f"difference\n{gap.difference:.4g} \n" in page(gap)
    forced = surveys.ForcedCategory(names=(EVIL, "once", "often"), truth="3/5")
    shares = forced.estimate({EVIL: 500, "once": 300, "often": 200})
    assert f"once\n{shares.shares[1]:.4g} \n" in page(shares)
    assert "at once" in page(surveys.SharesDifference(first=shares, second=shares))
    twice = surveys.Kuk(true="4/5", false="1/5").repeated(2).estimate({0: 530, 1: 320, 2: 150})
    assert f"{twice.shares[1]:.4g} \n" in page(twice)
    number = surveys.UnrelatedNumber(lower=0, upper=2, truth="3/4", other={0: "1/3", 1: "1/3", 2: "1/3"})
    assert "mean\n0.4 \n" in page(number.estimate({0: 600, 1: 250, 2: 150}))
    cheating = surveys.CheatingDetection(yes=("1/4", "3/4"))
    assert "cheaters\n0.3 \n" in page(cheating.estimate({"yes": 325, "no": 675}, {"yes": 575, "no": 425}))
    lying = surveys.StochasticLieDetector(truth=("1/6", "5/6"))
    assert "prevalence\n0.28 \n" in page(lying.estimate({"yes": 860, "no": 140}, {"yes": 380, "no": 620}))


def test_audits() -> None:
    pairs = [([1, 1], [1])]
    found = audit(len, epsilon=1.0, pairs=pairs, trials=1000)
    assert "claim\nepsilon 1 at delta 0\nverdict\nVIOLATED\nepsilon is at least\n" in page(found)
    assert "not observed\ntime, memory, random state" in page(found)
    assert "low bits\n" in page(audit_precision(len, epsilon=1.0, pairs=pairs, trials=1000))
    one = audit_one_run(lambda included: included * 0.0, canaries=100, epsilon=1.0, rng=1)
    assert "verdict\nnot refuted: nothing is proved" in page(one)


def test_no_secret_is_in_a_repr() -> None:
    for kind, secret in ((Bounding, "secret"), (CachedBounding, "secret"), (Preparation, "verify_key")):
        (named,) = (each for each in fields(kind) if each.name == secret)
        assert not named.repr
