"""Filters against adversaries that choose each charge from the answers so far."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError, UnsupportedView
from sfumato.ledger import Budget
from sfumato.ledger.budget.combined_filters import Filters
from sfumato.ledger.budget.filters import BasicFilter, Filter, GDPFilter, PureFilter, RDPFilter, ZCDPFilter
from sfumato.ledger.budget.spent import NOTHING, Spent
from sfumato.numerics.decimals import at_most_decimal, decimal_of
from sfumato.privacy import ApproximateDP, Gaussian, Laplace, Neighboring, PrivacyLoss, PureDP, ZCDPView
from tests.chance import accepts_only, mean_at_most

AMOUNTS = st.floats(0.0, 10.0)


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS), max_size=30))
def test_totals_round_up_and_barely(parts: list[tuple[float, float]]) -> None:
    total = NOTHING
    for part in parts:
        total = total.plus(Spent(*part))
    for summed, column in zip(map(decimal_of, total), zip(*parts, strict=True), strict=False):
        exact = sum(map(decimal_of, column), Fraction(0))
        assert exact <= summed <= exact * (1 + Fraction(len(parts), 2**51))


@given(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS)
def test_what_is_left_fits_exactly(limit: float, delta: float, amount: float, mass: float) -> None:
    member, spent = BasicFilter(limit, delta), Spent(amount, mass)
    left = member.left(spent)
    if member.holds(spent):
        assert member.holds(spent.plus(left))
        exact = decimal_of(limit) - decimal_of(amount)
        more = next(x for x in (math.nextafter(left.amount, math.inf),) if decimal_of(x) > exact)
        assert not member.holds(spent.plus(Spent(more, 0.0)))
    else:
        assert left == NOTHING


def test_sums_that_are_floats_stay_exact() -> None:
    total = NOTHING
    for _ in range(4):
        total = total.plus(Spent(0.5, 0.0))
    assert total.amount == 2.0


def gaussian_delta(noise: float, epsilon: Fraction) -> mpmath.mpf:
    """Return the least delta at an epsilon (Balle and Wang 2018), to the digits that mpmath works in."""
    at, rate = mpmath.mpf(epsilon.numerator) / epsilon.denominator, 1 / mpmath.mpf(noise)
    return mpmath.ncdf(rate / 2 - at / rate) - mpmath.exp(at) * mpmath.ncdf(-rate / 2 - at / rate)


@given(st.floats(0.1, 50.0), st.floats(1e-12, 1e-3))
def test_each_filter_charges_its_own_view(noise: float, delta: float) -> None:
    loss = Gaussian(noise)
    basic, mass = BasicFilter(1.0, 1.0).price(loss, delta)
    read_at, shown = at_most_decimal(delta), loss.epsilon(delta)
    with mpmath.workdps(60):
        least = decimal_of(delta)
        assert gaussian_delta(noise, decimal_of(basic)) * least.denominator <= least.numerator
    assert basic == pytest.approx(shown, rel=1e-12)  # each search ends its own last bits above the truth
    assert loss.delta(shown) <= read_at * (1 + 1e-9)
    assert (mass, Fraction(read_at) <= decimal_of(delta)) == (delta, True)
    rho, charged = Fraction(loss.zcdp().rho), ZCDPFilter(1.0, 1.0).price(loss, delta).amount
    assert rho <= decimal_of(charged) <= rho * (1 + Fraction(1, 2**51))
    squared = GDPFilter.of(1.0, 1.0).price(loss, delta).amount
    assert decimal_of(squared) >= Fraction(loss.gdp().mu) ** 2
    assert not PureFilter(1e300, 0.0).holds(PureFilter(1e300, 0.0).price(loss, delta))


def test_a_loss_with_a_mass_never_fits_a_pure_budget() -> None:
    assert not PureFilter(10.0, 0.0).holds(PureFilter(10.0, 0.0).price(ApproximateDP(0.1, 1e-9), 0.0))
    assert PureFilter(10.0, 0.0).holds(PureFilter(10.0, 0.0).price(Laplace(1.0), 0.0))


class Silent(PrivacyLoss):
    """A loss without a single view, and with a negative one if asked."""

    def __init__(self, rho: float | None = None) -> None:
        self.rho = rho

    @property
    def neighboring(self) -> Neighboring:
        return Neighboring.ADD_REMOVE

    def zcdp(self) -> ZCDPView:
        if self.rho is None:
            raise UnsupportedView("silent")
        return ZCDPView(self.rho, 0.0)


def test_a_missing_view_costs_infinitely_much_and_a_negative_one_is_refused() -> None:
    filters = Filters((ZCDPFilter(1.0, 0.0),))
    assert not filters.hold(filters.price(Silent(), 0.0))
    for wrong in (-1.0, math.nan):
        with pytest.raises(ParameterError, match="cost nothing negative"):
            filters.price(Silent(wrong), 0.0)


def test_both_filters_add_up_what_only_one_accepted() -> None:
    filters = Budget.approximate(epsilon=1.0, delta=1e-6).filters
    totals = filters.nothing
    small, large = Gaussian(100.0), PureDP(0.4)
    for loss in [small] * 60 + [large] * 3:
        totals = filters.after(totals, filters.price(loss, 1e-9))
    assert not filters.members[0].holds(totals[0])
    assert totals[0].amount > 60 * small.epsilon(1e-9) + 3 * 0.39
    assert not filters.hold(totals)


# The exact worst case over all adaptive adversaries of a small game. Each round the adversary picks from a
# menu a randomized response about the one bit in which two neighbors differ, that may reveal the bit outright
# with some probability. The hockey-stick divergence is a sum over transcripts, so the best choice after each
# history can be made on its own.

MENU = [PureDP(0.25), PureDP(0.6), ApproximateDP(0.05, 0.04)]


def outcomes(loss: PrivacyLoss, delta: float) -> list[tuple[float, float]]:
    """Probabilities of each answer under the two neighbors."""
    epsilon = loss.epsilon(delta)
    truth = (1 - delta) / (1 + math.exp(-epsilon))
    lie = (1 - delta) - truth
    revealed = [(delta, 0.0), (0.0, delta)] if delta else []
    return [(truth, lie), (lie, truth), *revealed]


def worst_divergence(filters: Filters, epsilon: float, rounds: int) -> float:
    menu = [
        (outcomes(loss, delta), filters.price(loss, delta))
        for loss, delta in zip(MENU, (0.0, 0.0, 0.04), strict=True)
    ]

    @cache
    def best(totals: tuple[Spent, ...], left: int, p: float, q: float) -> float:
        stop = max(0.0, p - math.exp(epsilon) * q)
        values = [stop]
        for answers, cost in menu:
            after = filters.after(totals, cost)
            if left and filters.hold(after):
                values.append(sum(best(after, left - 1, p * a, q * b) for a, b in answers if p * a + q * b))
        return max(values)

    return best(filters.nothing, rounds, 1.0, 1.0)


GAMES = [(0.6, 0.3), (1.0, 0.3), (1.0, 0.1), (0.3, 0.5)]


@pytest.mark.parametrize(("epsilon", "delta"), GAMES)
def test_no_adaptive_adversary_gets_past_an_approximate_budget(epsilon: float, delta: float) -> None:
    filters = Budget.approximate(epsilon=epsilon, delta=delta).filters
    assert worst_divergence(filters, epsilon, rounds=6) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), GAMES)
def test_no_adaptive_adversary_gets_past_a_renyi_budget(epsilon: float, delta: float) -> None:
    filters = Budget.rdp(epsilon=epsilon, delta=delta, orders=(6.0, 12.0)).filters
    worst = worst_divergence(filters, epsilon, rounds=6)
    assert worst <= delta
    assert worst > 0.01 or epsilon < 1


def test_no_adaptive_adversary_gets_past_a_pure_budget() -> None:
    assert worst_divergence(Budget.pure(epsilon=1.0).filters, 1.0, rounds=6) <= 1e-12


def test_the_game_shows_a_filter_that_lets_too_much_through() -> None:
    assert worst_divergence(Filters((ZCDPFilter(1.0, 0.0),)), 0.6, rounds=6) > 0.3
    assert worst_divergence(Filters((RDPFilter(1.0, 0.1, 6.0),)), 0.6, rounds=6) > 0.15
    # A filter that was to stop at a delta of 0.1, but counts to 0.2.
    assert worst_divergence(Filters((BasicFilter(0.6, 0.2),)), 0.6, rounds=6) > 0.1
    assert worst_divergence(Filters((PureFilter(1.5, 0.0),)), 1.0, rounds=6) > 0.0


def adaptive_losses(member: Filter, delta: float, runs: int) -> np.ndarray:
    """Simulated privacy losses of Gaussian answers whose noise depends on the sign of the last answer."""
    rng = np.random.default_rng(20240607)
    menu = {mu: member.price(Gaussian(1 / mu), delta) for mu in (0.05, 0.2, 0.4)}
    losses = np.zeros(runs)
    for run in range(runs):
        spent, mu = NOTHING, 0.2
        while member.holds(after := spent.plus(menu[mu])):
            spent = after
            step = rng.normal(mu * mu / 2, mu)
            losses[run] += step
            # Press on while the answers give the bit away, hold back else.
            mu = 0.4 if losses[run] > 0 and step > 0 else 0.05 if step < -mu else 0.2
    return losses


@pytest.mark.parametrize(
    ("member", "epsilon", "delta", "too_little"),
    [
        (Budget.approximate(epsilon=1.0, delta=0.2).filters.members[1], 1.0, 0.05, 0.011),
        # delta(0.5) of N(0, 1) against N(0.7, 1) is 0.12107; against N(0.6, 1) it is 0.0857.
        (Budget.gaussian(mu=0.7).filters.members[0], 0.5, 0.1211, 0.0858),
        (Budget.rdp(epsilon=1.0, delta=0.1, orders=(4.0,)).filters.members[0], 1.0, 0.05, 0.011),
    ],
    ids=["zcdp", "gdp", "rdp"],
)
def test_adaptively_chosen_gaussian_answers_stay_below_the_promised_delta(
    member: Filter, epsilon: float, delta: float, too_little: float
) -> None:
    losses = adaptive_losses(member, 1e-3, 10_000)
    accepts_only(mean_at_most(np.maximum(0.0, 1 - np.exp(epsilon - losses))), delta, too_little=too_little)
    assert losses.std() > 0.3
