"""The report of a whole ledger: what each audience sees, sums that hold, the same bytes again."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato import report
from sfumato.errors import ParameterError
from sfumato.ledger import Budget, Dataset, Ledger, Renewal, Role
from sfumato.privacy import Gaussian, Laplace, Neighboring
from tests.cases import cases

MINUS, NONE = "\N{MINUS SIGN}", "\N{EN DASH}"
SECRET = "SELECT secret_of_ada FROM data"


def opened(budget: Budget, *, renewal: Renewal | None = None) -> Ledger:
    return Ledger.open(
        None,
        budget=budget,
        privacy_unit="person <i>",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
        renewal=renewal,
    )


def text_of(page: report.ReleasePage) -> str:
    body = ET.fromstring(page.html).find("body")
    assert body is not None
    return " ".join(" ".join(body.itertext()).split())


@pytest.fixture(scope="module")
def ledger() -> Iterator[Ledger]:
    """A ledger with a release in each state, and two analysts."""
    with opened(Budget.approximate(epsilon=4.0, delta=1e-6)) as book:
        key = Ed25519PrivateKey.generate()
        book.members.set_roles("carl", {Role.CURATOR})
        book.members.set_roles("rita", {Role.REVIEWER}, by="carl")
        book.members.set_roles("cora", {Role.CURATOR}, by="carl")
        book.members.register_key("rita", key.public_key(), by="cora")
        book.members.record_failed_login("rita")
        for name in ("ada", "bob"):
            book.grant(name, Budget.approximate(epsilon=2.0, delta=5e-7), reason=SECRET)
        for number in range(1, 6):
            analyst = "ada" if number % 2 else "bob"
            charge = {"description": SECRET, "purpose": f"purpose {number} <b>", "analyst": analyst}
            receipt = book.charge(Laplace(10.0), delta=0.0, **charge)  # type: ignore[arg-type]
            if number < 5:
                book.commit(receipt, f"release {number}".encode())
        for number in (1, 2, 3):
            book.reviews.request(number, by="carl", comment=SECRET)
            if number < 3:
                approval = book.reviews.approval(number, by="rita", comment=SECRET)
                book.reviews.approve(approval, approval.sign(key))
                book.reviews.publish(number, by="carl")
        book.reviews.withdraw(2, by="carl", comment=SECRET)
        book.reviews.request(2, by="carl")
        yield book


@cases("language", ["en", "de"])
@cases("audience", ["public", "internal"])
def test_nobody_sees_what_was_asked(ledger: Ledger, audience: str, language: str) -> None:
    page = report.deployment(ledger, audience=audience, language=language)
    assert "secret_of_ada" not in page.html
    assert "<b>" not in page.html
    assert page == report.deployment(ledger, audience=audience, language=language)
    root = ET.fromstring(page.html)
    assert root.get("lang") == language
    assert all(table.find("caption") is not None for table in root.iter("table"))
    assert len(page.to_bytes()) < 50_000


def test_the_public_sees_what_is_or_was_published_and_no_more(ledger: Ledger) -> None:
    said = text_of(report.deployment(ledger))
    assert "purpose 1 <b>" in said
    assert re.search(r"purpose 2 <b> \S+; 0 withdrawn: do not use it any more", said)
    assert all(f"purpose {number}" not in said for number in (3, 4, 5))
    assert all(name not in said.split() for name in ("ada", "bob", "cora"))
    assert "failed" not in said
    entry, review = ledger.entry(1), ledger.reviews.of(1)
    assert all(each in said for each in (entry.digest, review.public_key, review.signature, "rita"))
    assert "Not listed are 3 charges that are not published" in said
    assert ledger.spent().epsilon == 0.5
    assert "Charged so far: 5 times, of which 4 have a stored answer. Together they cost 0.5-DP" in said


def test_curators_see_accounts_states_members_and_a_forecast(ledger: Ledger) -> None:
    said = text_of(report.deployment(ledger, audience="internal"))
    states = ("withdrawn", "review asked for", "not reviewed", "no answer stored")
    assert all(f"purpose {number}" in said for number in range(1, 6))
    assert states[1:] == tuple(state for state in states if state in said)
    assert f"ada {NONE} (2, 5e-07)-DP 3 0.3-DP" in said
    assert f"bob {NONE} (2, 5e-07)-DP 2 0.2-DP" in said
    assert f"(3.5; 5·10^{MINUS}7)-DP or" in said
    key = ledger.members.of("rita").public_key
    assert f"rita reviewer {key} 1" in said
    more = re.search(r"(\d+) more charges fit that cost as much as the average of the 5 so far", said)
    assert more is not None
    limit, spent = ledger.budget.filters.members[1].limit, ledger.spent().rho
    assert int(more[1]) == int((limit - spent) / spent * 5) > 35  # type: ignore[operator]
    assert "this page names members" in said


def test_the_promise_is_the_budgets_and_the_reading_holds_all_charges() -> None:
    with opened(Budget.approximate(epsilon=4.0, delta=1e-6)) as book:
        losses = [Laplace(10.0), Gaussian(9.0), Gaussian(9.0)]
        for loss in losses:
            book.charge(loss, delta=0.0 if isinstance(loss, Laplace) else 1e-7)
        said = text_of(report.deployment(book))
        found = re.search(rf"all charges so far together are \(([\d.]+); ([\d.]+)·10\^{MINUS}6\)-DP", said)
    assert found is not None
    exact = (losses[0] + losses[1] + losses[2]).epsilon(1e-6)
    assert exact <= float(found[1]) < 1.5 * exact
    assert float(found[2]) >= 1
    assert "cost at most: (4, 1e-06)-DP" in said


@cases(
    "budget, said",
    lambda: [
        (Budget.pure(epsilon=0.5), ("at most 62.3 in 100 likely", "all charges so far together are 0.1-DP")),
        (Budget.zcdp(rho=0.5), ("No theorem states one epsilon", "no bound on a belief")),
        (Budget.zcdp(rho=0.5, delta=1e-6), (f"all charges so far together are (0.1; 1·10^{MINUS}6)-DP",)),
        (Budget.gaussian(mu=1.0, delta=1e-9), ("is right in at most 69.2 of 100 cases",)),
        (Budget.rdp(epsilon=0.5, delta=1e-6), ("cost at most: (0.5, 1e-06)-DP", "rdp")),
    ],
)
def test_each_kind_of_budget_has_a_report(budget: Budget, said: tuple[str, ...]) -> None:
    with opened(budget) as book:
        book.charge(Laplace(10.0), delta=0.0)
        text = text_of(report.deployment(book, audience="internal"))
    assert [each for each in said if each not in text] == []


def test_where_the_budget_renews_each_period_has_an_account() -> None:
    with opened(Budget.pure(epsilon=1.0), renewal=Renewal(every="month", column="day")) as book:
        for period, times in (("2026-01", 3), ("2026-02", 1)):
            for _ in range(times):
                book.charge(Laplace(10.0), delta=0.0, period=period)
        public, inside = (text_of(report.deployment(book, audience=each)) for each in ("public", "internal"))
    for said in (public, inside):
        assert "the data as a whole 2026-01 1-DP 3 0.3-DP 0.7-DP" in said
        assert "the data as a whole 2026-02 1-DP 1 0.1-DP 0.9-DP" in said
        assert "Over all periods together they cost 0.4-DP; nothing limits this sum" in said
        assert "the budget of one period allows" in said
    assert "9 more charges fit" in inside
    assert "for the latest period, 2026-02" in inside


@cases(
    "every, unit, allowed",
    [
        ("month", "person", False),
        ("year", "household", False),
        ("day", "user-month", False),
        ("week", "account-month", False),
        ("month", "user-month", True),
        ("day", "user-day", True),
        ("week", "event", True),
    ],
)
def test_a_budget_of_one_period_is_not_compared_with_one_for_all_time(
    every: str, unit: str, allowed: bool
) -> None:
    with opened(Budget.pure(epsilon=1.0), renewal=Renewal(every=every, column="day")) as book:
        if allowed:
            assert f"The unit is {unit}" in text_of(report.deployment(book, compared_unit=unit))
        else:
            with pytest.raises(ParameterError, match="unit must be one that lies within a period"):
                report.deployment(book, compared_unit=unit)


def test_limits_of_filters_are_rounded_as_what_they_promise() -> None:
    with opened(Budget.zcdp(rho=0.123456)) as book:
        said = text_of(report.deployment(book))
        (only,) = book.budget.filters.members
    assert only.limit == 0.123456
    assert f"{only.name} 0.1235 0" in said


@cases("language", ["en", "de"])
def test_a_promise_that_is_broken_is_said_before_it_is_made(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(Budget.pure(epsilon=1.0)) as book:
        book.charge(Laplace(10.0), delta=0.0)
        notices = ".//p[@class='notice']"
        assert ET.fromstring(report.deployment(book, language=language).html).findall(notices) == []
        found = replace(book.verify(), underpriced=(1,), overdrawn=True)
        with monkeypatch.context() as patch:
            patch.setattr(type(book), "verify", lambda self, head=None: found)
            main = ET.fromstring(report.deployment(book, language=language).html).find("body/main")
    assert main is not None
    assert [each.get("class") for each in list(main)[:2]] == ["notice", "notice"]
    assert ("broken" in (main[0].text or "")) == (language == "en")


def test_an_empty_ledger_has_a_report_and_wrong_audiences_have_none() -> None:
    with opened(Budget.pure(epsilon=1.0)) as book:
        assert "Nothing is published" in text_of(report.deployment(book))
        assert "more charges fit" not in text_of(report.deployment(book, audience="internal"))
        with pytest.raises(ParameterError, match="audience must be one of public, internal, got 'all'"):
            report.deployment(book, audience="all")
    with pytest.raises(ParameterError, match="ledger must be"):
        report.deployment("people.ledger")  # type: ignore[arg-type]
