"""The forecast: exact decimals, the filter that lasts longest, and no date where there is none."""

from __future__ import annotations

import datetime as dt
from types import MappingProxyType

from sfumato.ledger import Budget
from sfumato.ledger.budget.spent import Spent
from sfumato.ledger.log.entries import Entry
from sfumato.privacy import Laplace
from sfumato.report.deployments.forecast import Forecast, forecast_of

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def charged(number: int, day: int, **costs: Spent) -> Entry:
    return Entry(
        sequence=number,
        time=START + dt.timedelta(days=day),
        description="",
        loss=Laplace(1.0),
        epsilon=1.0,
        delta=0.0,
        costs=MappingProxyType(costs),
        version=1,
        simulated=False,
        committed=True,
        previous="",
        digest="",
    )


def test_a_pure_budget_lasts_as_many_charges_as_fit_exactly() -> None:
    entries = [charged(number, 2 * number, pure=Spent(0.1, 0.0)) for number in range(3)]
    found = forecast_of(Budget.pure(epsilon=1.0), entries)
    assert found == Forecast(charges=3, more=7, until=dt.date(2026, 1, 19))
    assert forecast_of(Budget.pure(epsilon=1.0), entries[:1]) == Forecast(charges=1, more=9, until=None)
    assert forecast_of(Budget.pure(epsilon=1.0), []) is None


def test_the_filter_that_lasts_longest_counts_and_what_is_free_has_no_end() -> None:
    budget = Budget.approximate(epsilon=1.0, delta=1e-6)
    rho = budget.filters.members[1].limit
    costs = {"basic": Spent(0.5, 0.0), "zcdp": Spent(rho / 100, 0.0)}
    found = forecast_of(budget, [charged(1, 0, **costs), charged(2, 0, **costs)])
    assert found is not None
    assert found.more is not None
    assert 97 <= found.more <= 98
    assert found.until == START.date()
    free = forecast_of(budget, [charged(1, 0, basic=Spent(0.0, 0.0), zcdp=Spent(rho, 0.0))])
    assert free == Forecast(charges=1, more=None, until=None)


def test_extremes_have_a_forecast() -> None:
    budget = Budget.pure(epsilon=1e308)
    entries = [charged(number, number, pure=Spent(5e-324, 0.0)) for number in range(2)]
    found = forecast_of(budget, entries)
    assert found is not None
    assert found.more is not None
    assert found.more > 10**600
    assert found.until is None
    budget = Budget.approximate(epsilon=1.0, delta=1e-6)
    spent = forecast_of(budget, [charged(1, 0, basic=Spent(float("inf"), 0.0), zcdp=Spent(9.0, 0.0))])
    assert spent == Forecast(charges=1, more=0, until=None)
