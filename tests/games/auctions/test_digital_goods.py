"""Digital goods: the price's epsilon by enumeration, the revenue guarantee, and the best lie."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.errors import BudgetExceeded, ParameterError
from sfumato.games import DigitalGoods, ReservePrice, revenue_guarantee
from sfumato.games.auctions.price_curve import STEPS as FULL
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring

from .few_prices import FEW, probabilities, use_few_prices


@pytest.mark.parametrize("supply", [None, 2])
def test_the_price_is_of_range_epsilon_and_not_of_two(
    monkeypatch: pytest.MonkeyPatch, supply: int | None
) -> None:
    use_few_prices(monkeypatch)
    auction = DigitalGoods(upper=1, epsilon=0.8, supply=supply)
    grid = [0.0, 0.25, 0.5, 1.0]
    rows = {bids: probabilities(auction, bids) for bids in product(grid, repeat=3)}
    widest = largest = 0.0
    for bids, row in rows.items():
        for lie in grid:
            losses = np.log(row / rows[(lie, *bids[1:])])
            largest = max(largest, float(np.abs(losses).max()))
            widest = max(widest, float(losses.max() - losses.min()))
    assert largest <= 0.8
    assert widest > 0.78
    assert widest <= 0.8 + 1e-12
    assert auction.privacy_loss.epsilon() == 0.8


def test_no_more_is_drawn_than_the_decimal_that_is_charged() -> None:
    assert DigitalGoods(upper=1, epsilon=0.1).curve([0.5]).rate * FULL == Fraction(1, 10)
    assert ReservePrice(upper=1, epsilon=0.1).curve([[0.5, 0.25]]).rate * 2 * FULL == Fraction(1, 10)


def test_expected_revenue_is_at_least_what_the_theorems_say() -> None:
    rng = np.random.default_rng(7)
    adversarial = [
        np.ones(200),
        np.zeros(5),
        np.array([1.0]),
        1 / np.arange(1, 400),  # every price earns about the same
        np.append(np.full(300, 0.01), np.ones(3)),
        np.full(50, 0.5 + 2**-36),
    ]
    shapes = rng.uniform(0.2, 5, (1000, 2)).tolist()
    drawn = [rng.beta(a, b, size=int(rng.integers(1, 300))) for a, b in shapes]
    nearest = np.inf
    for bids in adversarial + drawn:
        epsilon = float(rng.choice([0.05, 0.5, 3.0]))
        auction = DigitalGoods(upper=1, epsilon=epsilon)
        earned, best = auction.expected_revenue(bids), auction.optimum(bids)
        bound = auction.revenue_guarantee(bids)
        assert bound.mcsherry_talwar <= earned * (1 + 1e-12)
        assert bound.partition_function <= earned * (1 + 1e-12)
        assert earned <= best.revenue * (1 + 1e-12)
        if best.revenue * epsilon > 1:
            assert bound.partition_function > bound.mcsherry_talwar
            nearest = min(nearest, (earned - bound.partition_function) / best.revenue)
    assert 0 < nearest < 0.02  # the bound is not far from what is attained


def test_the_guarantees_are_their_formulas() -> None:
    bound = revenue_guarantee(optimum=30.0, sold=20, epsilon=0.5, upper=2.0)
    assert bound.mcsherry_talwar == pytest.approx(30 - 3 * 2 / 0.5 * np.log(np.e + 0.25 * 15 * 20), rel=1e-12)
    inside = 0.5 * 20 / (1 - np.exp(-0.5 * 15))
    assert bound.partition_function == pytest.approx(30 - 2 / 0.5 * np.log(inside), rel=1e-12)
    assert bound.revenue == bound.partition_function
    nothing = revenue_guarantee(optimum=0.0, sold=0, epsilon=1.0)
    assert nothing.mcsherry_talwar == pytest.approx(-3.0)
    assert nothing.partition_function == nothing.revenue == 0.0
    assert revenue_guarantee(optimum=1.0, sold=4, epsilon=0.1).revenue == 0.0
    with pytest.raises(ParameterError, match=r"optimum must be at most sold \* upper"):
        revenue_guarantee(optimum=3.0, sold=2, epsilon=1.0)


def test_the_optimum_is_the_best_of_all_bids() -> None:
    bids = np.random.default_rng(1).uniform(0, 4, 50)
    revenues = [bid * (bids >= bid).sum() for bid in bids]
    best = DigitalGoods(upper=4, epsilon=1).optimum(bids)
    assert best.revenue == pytest.approx(max(revenues), rel=1e-9)
    assert best.price * best.sold == pytest.approx(best.revenue, rel=1e-12)
    few = DigitalGoods(upper=4, epsilon=1, supply=3).optimum(bids)
    assert few.sold == 3
    assert few.price == pytest.approx(np.sort(bids)[-3], rel=1e-9)


@pytest.mark.parametrize("supply", [None, 2])
def test_expected_utility_against_enumeration(monkeypatch: pytest.MonkeyPatch, supply: int | None) -> None:
    use_few_prices(monkeypatch)
    auction = DigitalGoods(upper=1, epsilon=2, supply=supply)
    others, value = [0.3, 0.9, 0.5], 0.8
    prices = np.arange(1, FEW + 1) / FEW
    for bid in (0.0, 0.2, 0.5, 0.8, 1.0):
        chances = probabilities(auction, [*others, bid])
        steps = np.floor(np.array([*others, bid]) * FEW) / FEW
        wanted = (steps[None] >= prices[:, None]).sum(axis=1)
        served = 1.0 if supply is None else np.minimum(1, supply / np.maximum(wanted, 1))
        utility = (chances * served * (value - prices) * (prices <= steps[-1])).sum()
        assert auction.expected_utility(bid, others, value=value) == pytest.approx(
            utility, rel=1e-9, abs=1e-12
        )


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 20.0])
def test_the_best_bid_is_the_best_of_all_bids(monkeypatch: pytest.MonkeyPatch, epsilon: float) -> None:
    use_few_prices(monkeypatch)
    auction = DigitalGoods(upper=1, epsilon=epsilon)
    for others in ([0.3, 0.9, 0.5], [], [0.75] * 4, [0.1, 0.2, 0.99]):
        for value in (0.0, 0.4, 0.75, 1.0):
            utilities = [auction.expected_utility(bid / FEW, others, value=value) for bid in range(FEW + 1)]
            best = auction.best_bid(value, others)
            assert best.lie_utility == pytest.approx(max(utilities), abs=1e-12)
            assert best.truth_utility == pytest.approx(utilities[int(value * FEW)], abs=1e-12)
            assert best.gain <= auction.truthfulness.gain
            assert best.bid <= value
            assert best.lie_utility <= auction.truthfulness.utility_of_lie(best.truth_utility)


def test_a_lie_does_gain_something() -> None:
    best = DigitalGoods(upper=1, epsilon=5).best_bid(1.0, [])
    assert best.gain > 0.1
    assert best.bid < 0.7


def test_a_price_sells_to_who_bids_as_much() -> None:
    auction = DigitalGoods(upper=3, epsilon=4)
    bids = np.random.default_rng(2).uniform(0, 3, 200)
    price = auction.release(bids, rng=3)
    assert price.simulated
    assert price.value == pytest.approx(3 * price.steps / 2**36)
    assert [price.buys(bid) for bid in bids] == (np.floor(bids * (2**36 / 3)) >= price.steps).tolist()
    assert not price.buys(float("nan"))
    assert price.neighboring is Neighboring.REPLACE_ONE


def test_a_ledger_is_charged() -> None:
    auction = DigitalGoods(upper=1, epsilon=0.5)
    with Ledger.open(
        None,
        budget=Budget.pure(epsilon=0.6),
        privacy_unit="bidder",
        neighboring=Neighboring.REPLACE_ONE,
        dataset=Dataset(schema="bids(x DOUBLE)", fingerprint=lambda key: "0" * 64),
    ) as ledger:
        price = auction.release([0.5] * 9, ledger=ledger, description="a song")
        assert price.receipt is not None
        assert [entry.description for entry in ledger.entries()] == ["a song"]
        with pytest.raises(BudgetExceeded):
            auction.release([0.5] * 9, ledger=ledger)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ParameterError, match="supply must be an integer of at least 1"):
        DigitalGoods(upper=1, epsilon=1, supply=0)
    with pytest.raises(ParameterError, match="supply must be left out"):
        DigitalGoods(upper=1, epsilon=1, supply=1).best_bid(0.5, [1.0])
    with pytest.raises(ParameterError, match=r"value must be from 0 to 1.0"):
        DigitalGoods(upper=1, epsilon=1).best_bid(2.0, [1.0])
    for upper in (2.0**-901, 5e-324, 2.0**901, 1e308):
        with pytest.raises(ParameterError, match=r"upper must be from 2\*\*-900 to 2\*\*900"):
            DigitalGoods(upper=upper, epsilon=1)
    for end in (2.0**-900, 2.0**900):
        auction = DigitalGoods(upper=end, epsilon=5)
        best = auction.optimum([end / 2, end])
        assert (best.price, best.sold, best.revenue) == (end / 2, 2, end)
        assert 0 < auction.expected_revenue([end / 2, end]) < end
    with pytest.raises(ParameterError, match=r"epsilon must be at least 2\*\*-30"):
        DigitalGoods(upper=1, epsilon=5e-324)
    with pytest.raises(ParameterError, match=r"epsilon must be at most 2\*\*40"):
        DigitalGoods(upper=1, epsilon=2**40 + 1)
    assert DigitalGoods(upper=1, epsilon=2**40).best_bid(0.5, [0.25]).truth_utility >= 0
    with pytest.raises(ParameterError, match="bids must be a one-dimensional array"):
        DigitalGoods(upper=1, epsilon=1).release([[1.0]])
