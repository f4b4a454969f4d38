"""Budgets that renew with each period of the rows' own time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, LedgerCorrupt, LedgerMismatch, ParameterError
from sfumato.ledger import Budget, Ledger, LedgerView, Renewal, reader
from sfumato.privacy import PureDP
from tests.cases import cases
from tests.ledger.tampering import rewrite

Open = Callable[..., Ledger]
At = Callable[[str], Any]
MONTHLY = Renewal(every="month", column="visited")
LENGTHS = ("day", "week", "month", "quarter", "year")


@given(every=st.sampled_from(LENGTHS), day=st.dates(dt.date(1900, 1, 1), dt.date(9990, 1, 1)))
def test_every_day_is_in_one_period(every: str, day: dt.date) -> None:
    renewal = Renewal(every=every, column="t")
    period = renewal.period_of(day)
    first, after = renewal.first_day(period), renewal.day_after(period)
    assert first <= day < after
    assert renewal.period_of(first) == period == renewal.period_of(after - dt.timedelta(days=1))
    assert renewal.period_of(after) != period


@cases(
    ("every", "period"),
    [
        ("day", "2026-02-29"),
        ("day", "2026-2-1"),
        ("week", "2026-W54"),
        ("week", "2025-W53"),
        ("month", "2026-13"),
        ("month", "2026-1"),
        ("month", "2026-01-01"),
        ("month", "\u0662\u0660\u0662\u0666-\u0660\u0661"),
        ("month", ""),
        ("month", None),
        ("quarter", "2026-Q5"),
        ("year", "0000"),
        ("year", "2026\n"),
    ],
)
def test_what_is_no_period_is_refused(every: str, period: Any) -> None:
    with pytest.raises(ParameterError, match=f"period must be a {every}"):
        Renewal(every=every, column="t").first_day(period)


@pytest.mark.parametrize("wrong", [{"every": "hour"}, {"every": None}, {"column": ""}, {"column": 5}])
def test_a_renewal_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Renewal(**({"every": "month", "column": "t"} | wrong))


@pytest.fixture
def ledger(open_anywhere: Open) -> Ledger:
    return open_anywhere(budget=Budget.pure(epsilon=1.0), renewal=MONTHLY)


def test_each_period_has_the_whole_budget(ledger: Ledger) -> None:
    for period in ("2026-01", "2026-02"):
        ledger.charge(PureDP(0.75), delta=0.0, period=period)
        with pytest.raises(BudgetExceeded, match=f"the budget of 1-DP for {period}"):
            ledger.charge(PureDP(0.5), delta=0.0, period=period)
    assert ledger.remaining(period="2026-01").epsilon == 0.25
    assert ledger.remaining(period="2026-03").epsilon == 1.0
    assert ledger.spent().epsilon == 1.5
    assert [entry.period for entry in ledger.entries()] == ["2026-01", "2026-02"]
    assert ledger.verify().sound


def test_every_receipt_says_what_is_protected_and_shows_the_lifetime_sum(ledger: Ledger) -> None:
    ledger.charge(PureDP(0.75), delta=0.0, period="2026-01")
    receipt = ledger.charge(PureDP(0.5), delta=0.0, period="2026-02")
    assert receipt.privacy_unit == "(id, month of visited)" == ledger.privacy_unit
    assert receipt.period == "2026-02"
    assert receipt.lifetime is not None
    assert receipt.lifetime.epsilon == 1.25
    told = "protects each (id, month of visited), here 2026-02, and a unit in all periods by their sum so far"
    assert f"{told}, 1.25-DP" in str(receipt)


def test_a_period_must_be_named_where_budgets_renew_and_only_there(ledger: Ledger, open_ledger: Open) -> None:
    for period in ("", "2026", "January"):
        with pytest.raises(ParameterError, match="period must be a month"):
            ledger.charge(PureDP(0.1), delta=0.0, period=period)
    assert ledger.entries() == ()
    with pytest.raises(ParameterError, match="period must be left out"):
        open_ledger().charge(PureDP(0.1), delta=0.0, period="2026-01")


def test_an_answer_is_found_again_for_the_same_period(ledger: Ledger) -> None:
    receipt = ledger.charge(PureDP(0.1), delta=0.0, request="q", period="2026-01")
    ledger.commit(receipt, b"january")
    assert ledger.find("q", period="2026-01") == b"january"
    assert ledger.find("q", period="2026-02") is None
    assert ledger.find("q") is None


def test_an_analysts_budget_renews_too(ledger: Ledger) -> None:
    ledger.grant("ada", Budget.pure(epsilon=0.5))
    for period in ("2026-01", "2026-02"):
        ada = LedgerView(ledger, "ada", period=period)
        ada.charge(PureDP(0.5), delta=0.0)
        with pytest.raises(BudgetExceeded, match=f"of analyst 'ada' for {period}"):
            ada.charge(PureDP(0.25), delta=0.0)
    assert LedgerView(ledger, "ada", period="2026-03").remaining().epsilon == 0.5
    assert ledger.accounts()[0].periods == ("2026-01", "2026-02")
    assert ledger.verify().sound


@pytest.mark.parametrize(
    ("instant", "period", "other"),
    [
        ("2026-02-28T23:59:59.999999+00:00", "2026-02", "2026-03"),
        ("2026-03-01T00:00:00+00:00", "2026-03", "2026-02"),
        # Far east it is tomorrow already, far west still yesterday: the day is that of UTC.
        ("2026-03-01T13:59:59+14:00", "2026-02", "2026-03"),
        ("2026-02-28T12:00:00-12:00", "2026-03", "2026-02"),
    ],
)
def test_what_is_left_is_todays_unless_a_period_is_named(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, instant: str, period: str, other: str
) -> None:
    class Clock(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
            local = dt.datetime.fromisoformat(instant)
            return local if tz is None else local.astimezone(tz)

    monkeypatch.setattr(reader, "datetime", Clock)
    ledger.charge(PureDP(0.25), delta=0.0, period=period)
    assert ledger.remaining() == ledger.remaining(period=period)
    assert ledger.remaining().epsilon == 0.75
    assert ledger.remaining(period=other).epsilon == 1.0


def test_a_ledger_is_not_opened_with_another_renewal(at: At, open_anywhere: Open) -> None:
    open_anywhere(at("l"), renewal=MONTHLY)
    for other in (None, Renewal(every="week", column="visited"), Renewal(every="month", column="t")):
        with pytest.raises(LedgerMismatch, match="renewal must be the one"):
            open_anywhere(at("l"), renewal=other)
    with Ledger.read(at("l")) as seen:
        assert seen.renewal == MONTHLY
    open_anywhere(at("plain"))
    with pytest.raises(LedgerMismatch, match="renewal must be the one"):
        open_anywhere(at("plain"), renewal=MONTHLY)
    with pytest.raises(ParameterError, match="renewal must be a Renewal"):
        open_anywhere(at("other"), renewal="month")


@pytest.mark.parametrize("forged", ["2026-02", "2026", ""])
def test_charges_moved_to_another_period_are_found(open_ledger: Open, tmp_path: Path, forged: str) -> None:
    ledger = open_ledger(tmp_path / "l", renewal=MONTHLY)
    for period in ("2026-01", "2026-02"):
        ledger.charge(PureDP(0.75), delta=0.0, period=period)
    ledger.close()

    def change(position: int, content: dict[str, Any]) -> None:
        if position == 2:
            content["period"] = forged

    rewrite(tmp_path / "l", change)
    with Ledger.read(tmp_path / "l") as seen, pytest.raises(LedgerCorrupt, match="within the budget"):
        seen.verify()
