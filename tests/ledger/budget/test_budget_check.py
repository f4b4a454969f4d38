"""What is left of a budget: what is said of it is true of the next charge."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from sfumato import mechanisms
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, Ledger
from sfumato.privacy import (
    ZCDP,
    DiscreteLaplace,
    Laplace,
    PrivacyLoss,
    PureDP,
)

Open = Callable[..., Ledger]
APPROXIMATE = Budget.approximate(epsilon=2.0, delta=1e-7)


@pytest.fixture
def open_ledger(open_anywhere: Open) -> Open:
    """Every test runs on each store."""
    return open_anywhere


@pytest.mark.parametrize(
    "budget",
    [APPROXIMATE, Budget.pure(epsilon=1.0), Budget.zcdp(rho=0.1), Budget.gaussian(mu=0.5, delta=1e-6)],
    ids=str,
)
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-6])
def test_the_answerable_epsilon_is_accepted_and_hardly_more_is(
    open_ledger: Open, budget: Budget, delta: float
) -> None:
    ledger = open_ledger(budget=budget)
    for loss in (PureDP(0.11), PureDP(0.013)):
        ledger.charge(loss, delta=delta)
    remaining = ledger.remaining(delta)
    assert remaining.answerable_delta == delta
    epsilon = remaining.answerable_epsilon
    assert epsilon is not None
    assert epsilon > 0.05

    def answers(asked: float) -> list[PrivacyLoss]:
        # Laplace noise whose epsilon at delta is the one asked for, by bisection from the accepted side.
        low, high = 0.5 / asked, 4.0 / asked
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if DiscreteLaplace(middle).epsilon(delta) > asked else (low, middle)
        laplace = DiscreteLaplace(high)
        if not delta:
            return [laplace]
        gaussian = mechanisms.Gaussian.calibrated(sensitivity=1, epsilon=asked, delta=delta)
        return [laplace, gaussian.privacy_loss]

    assert any(ledger.would_accept(loss, delta=delta) for loss in answers(epsilon))
    assert not any(ledger.would_accept(loss, delta=delta) for loss in answers(epsilon * (1 + 1e-5)))


def test_what_is_left_says_which_filter_still_accepts(open_ledger: Open) -> None:
    ledger = open_ledger(budget=APPROXIMATE)
    assert " or " in ledger.remaining(1e-8).amounts
    ledger.charge(Laplace(1.0), delta=1e-8)
    told = ledger.remaining(1e-8)
    assert told.amounts == "(1, 4e-08)-DP (rho is used up, epsilon still accepts)"
    with pytest.raises(
        BudgetExceeded, match=r"with \(1, 4e-08\)-DP \(rho is used up, epsilon still accepts\)"
    ):
        ledger.charge(Laplace(0.5), delta=1e-8)
    ledger.charge(Laplace(1.01), delta=1e-8)


@pytest.mark.parametrize(
    "budget", [Budget.pure(epsilon=1.0), Budget.zcdp(rho=0.1), Budget.approximate(epsilon=1.0, delta=1e-6)]
)
def test_a_refusal_shows_that_what_is_asked_for_is_more_than_what_is_left(
    open_ledger: Open, budget: Budget
) -> None:
    """A little more than a tenth: in six digits it would fit."""
    ledger = open_ledger(budget=budget)
    loss = PureDP(0.1 + 1e-14) if budget.kind != "zcdp" else ZCDP(0.01 + 1e-15)
    for _ in range(9):
        ledger.charge(loss, delta=0.0)
    with pytest.raises(BudgetExceeded) as caught:
        ledger.charge(loss, delta=0.0)
    asked, left = re.findall(r"got (0\.\d+).*with \(?(0\.\d+)", str(caught.value))[0]
    assert float(left) < float(asked)
    assert float(left) == pytest.approx(float(asked), rel=1e-11)
    # where six digits tell, there are six
    with pytest.raises(BudgetExceeded, match=r"got 0\.123457-DP"):
        open_ledger(budget=Budget.pure(epsilon=0.1)).charge(PureDP(0.1234567), delta=0.0)


def test_a_budget_in_mu_without_a_mass_offers_only_what_laplace_noise_can_have(open_ledger: Open) -> None:
    # Gaussian noise is drawn on the integers, where it is Gaussian DP up to a mass of 1e-120.
    for delta, fits in ((0.0, False), (1e-119, True)):
        ledger = open_ledger(budget=Budget.gaussian(mu=0.5, delta=delta))
        epsilon = ledger.remaining(1e-6).answerable_epsilon
        assert epsilon is not None
        answer = mechanisms.Gaussian.calibrated(sensitivity=1, epsilon=epsilon * 0.999, delta=1e-6)
        assert ledger.would_accept(answer.privacy_loss, delta=1e-6) == fits
        laplace = mechanisms.Laplace.calibrated(sensitivity=1, epsilon=epsilon * 0.999)
        assert ledger.would_accept(laplace.privacy_loss, delta=0.0) != fits


@pytest.mark.parametrize("budget", [Budget.zcdp(rho=1e300), Budget.approximate(epsilon=1e308, delta=1e-6)])
def test_what_is_left_of_an_enormous_budget_is_a_number(open_ledger: Open, budget: Budget) -> None:
    assert (open_ledger(budget=budget).remaining(1e-9).answerable_epsilon or 0.0) > 1e299


@pytest.mark.parametrize("budget", [Budget.zcdp(rho=0.1), Budget.gaussian(mu=0.5)], ids=str)
@pytest.mark.parametrize("sensitivity", [1, 7, 0.5])
def test_an_epsilon_that_is_offered_at_delta_0_fits_with_laplace_noise_as_it_is_drawn(
    open_ledger: Open, budget: Budget, sensitivity: float
) -> None:
    ledger = open_ledger(budget=budget)
    epsilon = ledger.remaining().answerable_epsilon
    assert epsilon is not None
    answer = mechanisms.Laplace.calibrated(sensitivity=sensitivity, epsilon=epsilon)
    assert ledger.would_accept(answer.privacy_loss, delta=0.0)


def test_what_is_left_of_an_epsilon_is_offered_exactly_also_to_an_analyst(open_ledger: Open) -> None:
    """No search: 2 less 0.5 is 1.5, in the dataset's account and in one within it, and fits as it is."""
    for budget in (Budget.pure(epsilon=2.0), APPROXIMATE):
        ledger = open_ledger(budget=budget)
        ledger.grant("ada", budget)
        ledger.charge(PureDP(0.5), delta=0.0, analyst="ada")
        for analyst in ("", "ada"):
            left = ledger.remaining(analyst=analyst)
            assert (left.epsilon, left.answerable_epsilon) == (1.5, 1.5)
            with pytest.raises(BudgetExceeded, match=r"ask for an epsilon of at most 1\.5$"):
                ledger.charge(PureDP(1.7), delta=0.0, analyst=analyst)
        answer = mechanisms.Laplace.calibrated(sensitivity=1, epsilon=1.5)
        ledger.charge(answer.privacy_loss, delta=0.0, analyst="ada")
        assert ledger.remaining(analyst="ada").answerable_epsilon == 0.0
