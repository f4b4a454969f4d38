"""What a refused question is offered: an epsilon or a delta that fits as it stands, and hardly less."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pytest

from sfumato.ledger import Budget
from sfumato.ledger.budget.combined_filters import Filters
from sfumato.ledger.budget.refused_question import RefusedQuestion, round_down
from sfumato.ledger.budget.spent import Spent
from sfumato.privacy import ZCDP, ApproximateDP, PrivacyLoss, PureDP

BUDGETS = {
    "approximate": Budget.approximate(epsilon=2.0, delta=1e-7),
    "zcdp": Budget.zcdp(rho=0.5, delta=1e-8),
    "gaussian": Budget.gaussian(mu=1.0, delta=1e-8),
    "rdp": Budget.rdp(epsilon=2.0, delta=1e-7),
}


def asked(filters: Filters, epsilon: float, delta: float) -> RefusedQuestion:
    """Ask for what is (epsilon, delta)-DP, all of whose delta is mass."""

    def loss_at(smaller: float) -> PrivacyLoss:
        return ApproximateDP(smaller, delta)

    return RefusedQuestion(loss_at, epsilon, delta, filters.price(loss_at(epsilon), delta))


def fits(filters: Filters, totals: tuple[Spent, ...], epsilon: float, delta: float) -> bool:
    return filters.hold(filters.after(totals, filters.price(ApproximateDP(epsilon, delta), delta)))


def spent(filters: Filters, *losses: PrivacyLoss) -> tuple[Spent, ...]:
    totals = filters.nothing
    for loss in losses:
        totals = filters.after(totals, filters.price(loss, 0.0))
    return totals


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("asked_delta", [1e-6, 3e-5, 0.2])
def test_a_smaller_delta_is_offered_where_only_the_mass_is_too_much(kind: str, asked_delta: float) -> None:
    filters = BUDGETS[kind].filters
    for totals in (filters.nothing, spent(filters, PureDP(0.1))):
        epsilon = 0.05
        assert not fits(filters, totals, epsilon, asked_delta)
        offered = asked(filters, epsilon, asked_delta).smaller_delta(filters, totals)
        assert offered is not None
        assert 0 < offered < asked_delta
        assert offered == round_down(offered, 3)
        assert fits(filters, totals, epsilon, offered)
        assert not fits(filters, totals, epsilon, offered * 1.011)


@pytest.mark.parametrize("kind", BUDGETS)
def test_no_delta_is_offered_where_none_helps(kind: str) -> None:
    filters = BUDGETS[kind].filters
    # Nothing is asked for with a delta; the mass fits, and epsilon is too much.
    assert asked(filters, 9.0, 0.0).smaller_delta(filters, filters.nothing) is None
    assert asked(filters, 9.0, 1e-12).smaller_delta(filters, filters.nothing) is None
    # Nothing is left in any unit, whatever is left of the mass.
    used_up = tuple(Spent(member.limit, 0.0) for member in filters.members)
    assert asked(filters, 0.5, 1e-3).smaller_delta(filters, used_up) is None
    passed = tuple(Spent(2 * member.limit, 0.0) for member in filters.members)
    assert asked(filters, 0.5, 1e-3).smaller_delta(filters, passed) is None


def test_a_mass_that_just_fits_is_not_what_is_too_much() -> None:
    for kind, delta in (("zcdp", 1e-8), ("gaussian", 1e-8)):
        filters = BUDGETS[kind].filters
        assert asked(filters, 9.0, delta).smaller_delta(filters, filters.nothing) is None
    # What costs infinitely much in every unit has no delta that it did not ask for.
    filters = BUDGETS["approximate"].filters
    cost = tuple(Spent(math.inf, 0.0) for _ in filters.members)
    question = RefusedQuestion(PureDP, 1.0, 0.0, cost)
    assert question.smaller_delta(filters, filters.nothing) is None


def test_a_question_that_costs_several_times_its_delta_is_offered_a_share() -> None:
    filters = BUDGETS["zcdp"].filters

    def cost(delta: float) -> tuple[Spent, ...]:
        return filters.price(ApproximateDP(0.05, delta) * 4, delta)

    offered = RefusedQuestion(PureDP, 0.2, 1e-6, cost(1e-6)).smaller_delta(filters, filters.nothing)
    assert offered is not None
    assert filters.hold(cost(offered))
    assert not filters.hold(cost(offered * 1.011))


def test_one_filter_with_something_left_is_enough() -> None:
    filters = BUDGETS["approximate"].filters
    for place, member in enumerate(filters.members):
        totals = tuple(
            Spent(0.0 if n == place else other.limit, 0.0) for n, other in enumerate(filters.members)
        )
        offered = asked(filters, 0.05, 1e-3).smaller_delta(filters, totals)
        assert offered is not None
        assert 0.99 * member.delta < offered <= member.delta
        assert fits(filters, totals, 0.05, offered)
        # Where the mass is used up, only an answer without any helps.
        gone = tuple(Spent(total.amount, f.delta) for total, f in zip(totals, filters.members, strict=True))
        assert asked(filters, 0.05, 1e-3).smaller_delta(filters, gone) == 0.0


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize(("epsilon", "delta"), list(product([3.0, 40.0, 1e6], [0.0, 1e-12])))
def test_the_largest_epsilon_found_fits_and_is_near(kind: str, epsilon: float, delta: float) -> None:
    filters = BUDGETS[kind].filters
    for totals in (filters.nothing, spent(filters, PureDP(0.3), PureDP(0.2))):
        offered = asked(filters, epsilon, delta).largest_epsilon(filters, totals)
        assert 0 < offered < epsilon
        assert offered == round_down(offered)
        assert fits(filters, totals, offered, delta)
        # From far away, four probes along power laws may end below.
        assert epsilon > 3 or not fits(filters, totals, offered * 1.1, delta)


def test_what_cannot_be_asked_at_all_is_offered_nothing() -> None:
    filters = BUDGETS["approximate"].filters
    cost = filters.price(PureDP(9.0), 0.0)

    def refused(_: float) -> Callable[..., PrivacyLoss]:
        raise AssertionError("nothing is left to price")

    for question in (
        RefusedQuestion(refused, math.inf, 0.0, cost),  # type: ignore[arg-type]
        RefusedQuestion(refused, 9.0, 0.0, tuple(Spent(part.amount, 1.0) for part in cost)),  # type: ignore[arg-type]
    ):
        assert question.largest_epsilon(filters, filters.nothing) == 0.0


@pytest.mark.parametrize("power", [1.5, 2.0, 3.0])
def test_the_offer_comes_close_whatever_the_price_grows_like(power: float) -> None:
    filters = Budget.zcdp(rho=1.0).filters

    def loss_at(epsilon: float) -> ZCDP:
        return ZCDP(epsilon**power)

    question = RefusedQuestion(loss_at, 2.0, 0.0, filters.price(loss_at(2.0), 0.0))
    offered = question.largest_epsilon(filters, filters.nothing)
    assert 0.998 < offered <= 1
    assert filters.hold(filters.after(filters.nothing, filters.price(loss_at(offered), 0.0)))
