"""What was spent, what is left, and until when it lasts, against sums by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.ledger import Budget, Dataset, Ledger, Renewal
from sfumato.privacy import Laplace, Neighboring
from sfumato.server.console.asking.forecast import forecast


def opened(budget: Budget, **more: Any) -> Ledger:
    return Ledger.open(
        None,
        budget=budget,
        privacy_unit="id",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="s", fingerprint=lambda key: key.hex()),
        **more,
    )


def test_the_account_lasts_as_long_as_the_filter_that_lasts_longest() -> None:
    with opened(Budget.approximate(epsilon=1.0, delta=1e-6)) as ledger:
        ledger.grant("ada", Budget.approximate(epsilon=0.5, delta=1e-7))
        ledger.grant("eve", None)
        for analyst in ("ada", ""):
            ledger.charge(Laplace(8.0), delta=0.0, analyst=analyst)
        now = ledger.entries()[-1].time + timedelta(seconds=1)
        whole, ada, eve = forecast(ledger, now=now, days=10)
        entries = ledger.entries()
    assert (whole.charges, ada.charges, eve.charges) == (2, 1, 0)
    assert whole.spent["epsilon"] == 0.25
    assert (ada.spent["epsilon"], ada.left["epsilon"]) == (0.125, 0.375)
    rho = entries[0].costs["zcdp"].amount
    basic, zcdp = whole.filters
    assert zcdp.spent == pytest.approx(2 * rho)
    assert basic.days_left == pytest.approx(30.0)
    assert zcdp.days_left == pytest.approx(10 * zcdp.left / (2 * rho))
    assert whole.lasts_until is not None
    assert (whole.lasts_until - now).total_seconds() / 86400 == pytest.approx(
        max(basic.days_left or 0, zcdp.days_left or 0)
    )
    assert whole.used == pytest.approx(min(basic.used, zcdp.used))
    assert (eve.budget, eve.lasts_until) == ("closed", None)
    json.dumps([each.to_json() for each in (whole, ada, eve)])


def test_charges_of_long_ago_are_spent_and_say_nothing_of_the_rate() -> None:
    with opened(Budget.pure(epsilon=1.0)) as ledger:
        ledger.charge(Laplace(2.0), delta=0.0)
        (later,) = forecast(ledger, now=datetime.now(UTC) + timedelta(days=60), days=30)
        (full,) = forecast(ledger, now=datetime.now(UTC) + timedelta(days=1), days=30)
    assert (later.used, later.lasts_until) == (0.5, None)
    assert full.filters[0].days_left == pytest.approx(30.0)


def test_each_period_has_a_budget_of_its_own() -> None:
    with opened(Budget.pure(epsilon=1.0), renewal=Renewal(every="month", column="day")) as ledger:
        ledger.grant("ada", Budget.pure(epsilon=1.0))
        for period, scale in (("2026-01", 2.0), ("2026-02", 4.0)):
            ledger.charge(Laplace(scale), delta=0.0, analyst="ada", period=period)
        found = forecast(ledger, now=datetime.now(UTC), days=30)
    used = {(each.analyst, each.period): each.used for each in found}
    assert used == {
        ("", "2026-01"): 0.5, ("", "2026-02"): 0.25, ("ada", "2026-01"): 0.5, ("ada", "2026-02"): 0.25
    }  # fmt: skip


def test_extreme_losses_make_numbers(tmp_path: Path) -> None:
    del tmp_path
    for epsilon, scale in ((1e-300, 1e300), (1e308, 1e-307), (1.0, 1e300)):
        with opened(Budget.pure(epsilon=epsilon)) as ledger:
            ledger.charge(Laplace(scale), delta=0.0)
            for days in (5e-324, 36_500.0):
                (found,) = forecast(ledger, now=ledger.entries()[0].time, days=days)
                assert 0 < found.used <= 1
                json.dumps(found.to_json(), allow_nan=False)


def test_what_is_no_rate_is_refused() -> None:
    with opened(Budget.pure(epsilon=1.0)) as ledger:
        for given, rule in (({"days": 0.0}, "days must"), ({"days": 1e9}, "days must be at most a century")):
            with pytest.raises(ParameterError, match=rule):
                forecast(ledger, now=datetime.now(UTC), **given)
        with pytest.raises(ParameterError, match="now must have a time zone"):
            forecast(ledger, now=datetime(2026, 1, 1))
