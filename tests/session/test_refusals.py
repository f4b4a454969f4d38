"""A refusal: what it offers instead is priced for the query that was asked, and accepted as it is typed."""

from __future__ import annotations

import re

import pytest

import sfumato as sf
from sfumato.cli.data import ACS
from sfumato.errors import BudgetExceeded
from sfumato.privacy import PrivacyLoss, PureDP
from sfumato.queries.pricing.price import price

MEANS = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta={}, max_groups_contributed=1)
    state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, 200000)) AS income
    FROM data GROUP BY state"""
COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta={}) COUNT(*) AS n FROM data"
GROUPS = """SELECT WITH DIFFERENTIAL_PRIVACY
    OPTIONS(epsilon={}, delta={}, max_groups_contributed=3, group_selection_strategy=GAUSSIAN_THRESHOLD)
    state, COUNT(*) AS n FROM data GROUP BY state"""
PARTS = """SELECT WITH DIFFERENTIAL_PRIVACY
    OPTIONS(epsilon={}, delta={}, max_groups_contributed=1, group_selection_epsilon={selection})
    state, COUNT(*, epsilon => {part}) AS n,
    AVG(income, contribution_bounds_per_group => (0, 200000)) AS income
    FROM data GROUP BY state"""
SPREAD = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta={}, max_rows_contributed=4)
    state, STDDEV(income, contribution_bounds_per_row => (0, 200000)) AS s, COUNT(DISTINCT age) AS ages
    FROM data GROUP BY state"""
BUDGETS: list[dict[str, float]] = [
    {"epsilon": 2.0, "delta": 1e-7},
    {"epsilon": 2.0},
    {"rho": 0.05, "delta": 1e-8},
    {"mu": 0.3, "delta": 1e-8},
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(
    "query", [COUNT, MEANS, GROUPS, PARTS, SPREAD], ids=["count", "laplace", "gauss", "parts", "spread"]
)
@pytest.mark.parametrize("spent", [None, 0.1, 0.2])
def test_the_epsilon_that_a_refusal_offers_is_accepted_as_it_is_typed(
    budget: dict[str, float], query: str, spent: float | None
) -> None:
    with sf.connect(ACS, privacy_unit="person_id", rng=1, **budget) as session:  # type: ignore[call-overload]
        if spent:
            session.ledger.charge(PureDP(spent), delta=1e-9 if len(budget) > 1 else 0.0)
        with pytest.raises(BudgetExceeded) as refused:
            session.sql(asked(query, 9.0))
        offered, told = refused.value.remaining.answerable_epsilon, str(refused.value)
        assert "nothing was charged" in told
        if not offered:
            assert "no answer" in told
            return
        typed = re.search("ask for an epsilon of at most ([0-9.e-]+)", told)
        assert typed is not None
        assert float(typed[1]) == offered
        more = price_of(session, asked(query, offered * 1.02))
        assert not session.ledger.would_accept(more, delta=1e-9)
        session.sql(asked(query, float(typed[1])))


def asked(query: str, epsilon: float) -> str:
    """A query at an epsilon, with the parts that it states in proportion, as a refusal says."""
    return query.format(epsilon, "1e-9", selection=epsilon / 45, part=epsilon / 180)


def price_of(session: sf.Session, text: str) -> PrivacyLoss:
    return price(session.read(text)).loss


@pytest.mark.parametrize(
    ("query", "delta", "budget", "remedy"),
    [
        (GROUPS, "8e-8", {"epsilon": 2.0, "delta": 1e-7}, "ask for a delta of at most 6.66e-08"),
        (GROUPS, "3e-8", {"rho": 0.05, "delta": 1e-8}, "ask for a delta of at most 2.66e-08"),
        (MEANS, "1e-9", {"epsilon": 2.0}, "ask for a delta of 0, with public groups"),
    ],
)
def test_a_refusal_says_where_a_smaller_delta_helps(
    query: str, delta: str, budget: dict[str, float], remedy: str
) -> None:
    with sf.connect(ACS, privacy_unit="person_id", rng=1, **budget) as session:  # type: ignore[call-overload]
        with pytest.raises(BudgetExceeded, match=remedy) as refused:
            session.sql(query.format(4.0, delta))
        assert refused.value.remaining.answerable_epsilon == 0.0
