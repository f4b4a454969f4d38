"""Budgets: what they promise, how they are split, and that the split is stored."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from sfumato.errors import ParameterError
from sfumato.ledger import Budget
from sfumato.ledger.budget.combined_filters import FILTERS, Filters
from sfumato.ledger.budget.filters import BasicFilter, RDPFilter, ZCDPFilter
from sfumato.ledger.budget.spent import Spent
from sfumato.privacy import Neighboring, zcdp_epsilon
from tests.cases import cases

BUDGETS = [
    Budget.approximate(epsilon=2.0, delta=1e-7),
    Budget.pure(epsilon=0.7),
    Budget.zcdp(rho=0.3, delta=1e-9),
    Budget.zcdp(rho=0.3),
    Budget.gaussian(mu=1.1, delta=1e-9),
    Budget.rdp(epsilon=2.0, delta=1e-6),
]


@given(st.floats(0.01, 20.0), st.floats(1e-30, 0.5))
def test_the_two_filters_together_promise_no_more_than_the_budget(epsilon: float, delta: float) -> None:
    basic, zcdp = Budget.approximate(epsilon=epsilon, delta=delta).filters.members
    assert basic.limit == epsilon
    conversion = delta / 4
    assert zcdp_epsilon(zcdp.limit, conversion) <= epsilon
    assert basic.delta + conversion + zcdp.delta <= delta


@given(st.floats(0.01, 20.0), st.floats(1e-30, 0.5))
def test_the_orders_together_promise_no_more_than_the_budget(epsilon: float, delta: float) -> None:
    members = Budget.rdp(epsilon=epsilon, delta=delta).filters.members
    exact = Fraction(members[0].delta)
    for member in members:
        assert isinstance(member, RDPFilter)
        # Canonne, Kamath, Steinke (2020), Proposition 12, at 60 digits.
        with mp.workdps(60):
            order, limit = mp.mpf(member.order), mp.mpf(member.limit)
            log_delta = (order - 1) * (limit - mp.mpf(epsilon))
            log_delta += order * mp.log(1 - 1 / order) - mp.log(order - 1)
            exact += Fraction(str(mp.nstr(mp.exp(log_delta), 50)))
        assert member.limit > 0
        assert member.delta == members[0].delta
    assert 0.99 * delta < exact <= Fraction(delta)


def test_orders_of_which_nothing_is_left_are_dropped_or_refused() -> None:
    budget = Budget.rdp(epsilon=1.0, delta=1e-6, orders=(1.5, 64.0, 32.0))
    assert [member["order"] for member in budget.to_json()["filters"]] == [32.0, 64.0]
    for orders in ((2.0,), (1.0, 64.0), ()):
        with pytest.raises(ParameterError, match="orders must"):
            Budget.rdp(epsilon=1.0, delta=1e-6, orders=orders)
    with pytest.raises(ParameterError, match="delta must be strictly"):
        Budget.rdp(epsilon=1.0, delta=0.0)


@cases("budget", BUDGETS, ids=str)
def test_a_budget_survives_json_with_its_split(budget: Budget) -> None:
    kept = Budget.from_json(budget.to_json())
    assert kept == budget
    assert kept.filters == budget.filters
    assert hash(kept) == hash(budget)


@cases("budget", BUDGETS, ids=str)
def test_a_budget_is_remade_alike(budget: Budget) -> None:
    assert budget.remade() == budget
    assert budget.remade().filters == budget.filters


def test_a_stored_split_outlives_a_better_conversion() -> None:
    fields = Budget.approximate(epsilon=2.0, delta=1e-7).to_json()
    kept = Budget.from_json(
        fields | {"filters": FILTERS.encode(Filters((BasicFilter(2.0, 5e-8), ZCDPFilter(0.01, 2.5e-8))))}
    )
    assert kept == Budget.approximate(epsilon=2.0, delta=1e-7)
    assert kept.filters.members[1].limit == 0.01
    assert kept.weakest(kept.remade().filters).members[1].limit == 0.01


PURE = Budget.pure(epsilon=1.0).to_json()


@cases(
    "altered",
    [
        {"epsilon": -1.0},
        {"epsilon": "1"},
        {"epsilon": None},
        {"rho": 1.0},
        {"kind": "from_json"},
        {"kind": "zcdp"},
        {"delta": 0.5},
        {"filters": []},
        {"filters": FILTERS.encode(Filters((ZCDPFilter(1.0, 0.0),)))},
        {"filters": PURE["filters"] * 2},
        {"filters": [{"kind": "none", "limit": 1.0, "delta": 0.0}]},
        {"filters": [{"kind": "pure", "limit": "nan", "delta": 0.0}]},
        {"filters": [{"kind": "pure", "limit": 1.0, "delta": -1.0}]},
    ],
    ids=str,
)
def test_a_stored_budget_that_no_constructor_makes_is_refused(altered: dict[str, Any]) -> None:
    assert Budget.from_json(PURE) == Budget.pure(epsilon=1.0)
    with pytest.raises(ParameterError):
        Budget.from_json(PURE | altered)


def test_a_limit_that_is_too_high_today_is_lowered() -> None:
    budget = Budget.approximate(epsilon=2.0, delta=1e-7)
    generous = Filters((BasicFilter(2.0, 5e-8), ZCDPFilter(5.0, 2.5e-8)))
    assert budget.weakest(generous) == budget.filters


def test_no_limit_and_no_mass_is_raised_by_those_of_today() -> None:
    budget = Budget.approximate(epsilon=2.0, delta=1e-7)
    basic, zcdp = budget.filters.members
    less = Filters((BasicFilter(1.0, 1e-8), ZCDPFilter(zcdp.limit / 2, zcdp.delta / 2)))
    kept = Budget.from_json(budget.to_json() | {"filters": FILTERS.encode(less)})
    assert kept.weakest(budget.filters) == less
    mixed = Filters((BasicFilter(basic.limit, 1e-8), ZCDPFilter(zcdp.limit / 2, zcdp.delta)))
    assert budget.weakest(mixed) == mixed


def test_the_mu_filter_sums_squares_below_the_square_of_mu() -> None:
    (member,) = Budget.gaussian(mu=1.1).filters.members
    assert member.limit <= 1.1 * 1.1 <= math.nextafter(member.limit, 2)


@cases("amount", [2.0, 3.0, 5.0, 0.1, 1e-9, 1.21])
def test_mu_is_shown_from_outside_the_square_that_is_summed(amount: float) -> None:
    (member,) = Budget.gaussian(mu=3.0).filters.members
    spent = Spent(amount, 0.0)
    high, low = (Fraction(member.in_unit(spent, up=up)["mu"]) for up in (True, False))
    assert low**2 <= Fraction(amount) <= high**2
    assert high - low <= high * Fraction(1, 2**51)


@cases(
    ("make", "arguments"),
    [
        (Budget.approximate, {"epsilon": 0.0, "delta": 1e-7}),
        (Budget.approximate, {"epsilon": -1.0, "delta": 1e-7}),
        (Budget.approximate, {"epsilon": math.inf, "delta": 1e-7}),
        (Budget.approximate, {"epsilon": math.nan, "delta": 1e-7}),
        (Budget.approximate, {"epsilon": 1.0, "delta": 1.0}),
        (Budget.approximate, {"epsilon": 1.0, "delta": -1e-9}),
        (Budget.approximate, {"epsilon": 1.0, "delta": 5e-324}),
        (
            Budget.approximate,
            {"epsilon": 1.0, "delta": 1.5e-323},
        ),  # its quarter is a float, but not an exact one
        (Budget.approximate, {"epsilon": "1", "delta": 0.0}),
        (Budget.pure, {"epsilon": 0.0}),
        (Budget.zcdp, {"rho": 0.0}),
        (Budget.zcdp, {"rho": 1.0, "delta": 1.0}),
        (Budget.gaussian, {"mu": math.inf}),
        (Budget.gaussian, {"mu": 1e200}),
        (Budget.gaussian, {"mu": True}),
    ],
)
def test_bad_budgets_are_refused(make: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="must"):
        make(**arguments)


def test_budgets_differ_by_what_they_promise() -> None:
    assert len({*BUDGETS, Budget.pure(epsilon=0.7)}) == len(BUDGETS)
    assert Budget.approximate(epsilon=1.0, delta=0.0) == Budget.pure(epsilon=1.0)
    assert BUDGETS[0].guarantee(Neighboring.REPLACE_ONE).epsilon == 2.0
    assert BUDGETS[0] != "budget"


@cases(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (2.0, 1e-6), (10.0, 1e-5), (20.0, 0.1)])
def test_orders_are_refused_with_the_least_that_would_do(epsilon: float, delta: float) -> None:
    with pytest.raises(ParameterError, match=r"orders must reach [\d.]+ at this") as told:
        Budget.rdp(epsilon=epsilon, delta=delta, orders=[1 + 1e-9])
    least = float(str(told.value).split()[3])
    assert Budget.rdp(epsilon=epsilon, delta=delta, orders=[least]).epsilon == epsilon
    with pytest.raises(ParameterError, match=str(least)):
        Budget.rdp(epsilon=epsilon, delta=delta, orders=[1 + (least - 1) * 0.99])
