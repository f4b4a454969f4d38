"""Valuations: substitutes by their definition, demand by enumeration, and a market of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import PrivateAllocation, Valuation, optimal_welfare, welfare_ceiling
from sfumato.games.joint.valuations import Demand

from .test_turns import check_acts, check_measurements, check_parts

SETS = [frozenset(each) for size in range(4) for each in combinations(range(3), size)]
GIVEN: dict[str, Any] = {
    "agents": 2400,
    "supply": (700, 500, 600),
    "epsilon": 200.0,
    "delta": 1e-3,
    "rounds": 24,
    "blocks": 48,
}


def drawn(rng: np.random.Generator) -> Valuation:
    """Return a valuation of three goods in quarters, of any kind."""
    table = rng.integers(0, 4, 8) / 4
    table[0] = 0.0
    for mask in range(1, 8):
        table[mask] = max(table[mask], *(table[mask & ~(1 << good)] for good in range(3)))
    return Valuation(values=table)


def demanded(valuation: Valuation, prices: Iterable[float]) -> list[frozenset[int]]:
    """Return all favorite sets."""
    costs = list(prices)
    gains = {each: valuation.worth(each) - sum(costs[good] for good in each) for each in SETS}
    return [each for each, gain in gains.items() if gain == max(gains.values())]


def substitutes_by_definition(valuation: Valuation) -> bool:
    """Raise the price of one good, from and to all multiples of 1/8: what is wanted of the others stays."""
    grid = np.arange(0, 7) / 8
    for prices in product(grid, repeat=3):
        before = demanded(valuation, prices)
        for good, price in product(range(3), grid):
            if price <= prices[good]:
                continue
            after = demanded(valuation, (*prices[:good], price, *prices[good + 1 :]))
            if any(all(not one - {good} <= other for other in after) for one in before):
                return False
    return True


def check_definition(seed: int, wanted: int) -> None:
    rng = np.random.default_rng(seed)
    found = {True: 0, False: 0}
    while min(found.values()) < wanted:
        valuation = drawn(rng)
        if found[valuation.gross_substitutes] < wanted:
            found[valuation.gross_substitutes] += 1
            assert substitutes_by_definition(valuation) == valuation.gross_substitutes


def test_the_local_conditions_are_the_definition() -> None:
    check_definition(1, 2)


@pytest.mark.exhaustive
def test_the_local_conditions_are_the_definition_for_more() -> None:
    check_definition(2, 8)


def test_what_complements_is_found() -> None:
    budget = Valuation.of_sets(lambda goods: min(1.0, sum((0.5, 0.5, 1.0)[good] for good in goods)), goods=3)
    where = budget.complements
    assert where == ((), (0, 1, 2))
    assert str(where) == "goods 0, 1, 2 are no substitutes, beside the set ()"
    pair = Valuation.of_sets(lambda goods: 0.5 * ({0, 2} <= set(goods)) + 0.1 * (1 in goods), goods=3)
    assert pair.complements == ((), (0, 2))
    late = Valuation.of_sets(
        lambda goods: 0.25 * len(goods) + 0.25 * (len(goods) == 3) - 0.25 * (len(goods) > 1), goods=3
    )
    assert late.complements in {((0,), (1, 2)), ((2,), (0, 1))}
    assert not late.gross_substitutes
    # Values whose floats are off by roundings: 0.1 + 0.2 is no 0.3.
    assert Valuation.of_sets(lambda goods: 0.1 * len(goods), goods=6).gross_substitutes


def test_assignments_are_the_best_and_substitutes() -> None:
    rng = np.random.default_rng(3)
    for places, goods in ((1, 3), (2, 4), (3, 3), (4, 2)):
        table = rng.random((places, goods))
        valuation = Valuation.assignment(table)
        for mask in range(1 << goods):
            chosen = [good for good in range(goods) if mask >> good & 1]
            best = 0.0
            for size in range(min(places, len(chosen)) + 1):
                for rows, columns in product(permutations(range(places), size), combinations(chosen, size)):
                    best = max(
                        best, sum(table[row, column] for row, column in zip(rows, columns, strict=True))
                    )
            assert valuation.worth(chosen) == pytest.approx(best, abs=1e-8)
        assert valuation.gross_substitutes
        assert valuation.rank == min(places, goods)
        assert valuation.largest == valuation.values[-1]
    two = Valuation.additive([0.5, 0.25, 0.75], capacity=2)
    assert [two.worth([0]), two.worth([0, 1]), two.worth(range(3))] == [0.5, 0.75, 1.25]
    assert Valuation.additive([0.5, 0.25]).rank == 2
    assert Valuation.additive([0.5, 0.25], capacity=9).worth([0, 1]) == 0.75
    assert Valuation.additive([0.0, 0.0]).rank == 1


def test_demand_is_the_best_set_and_the_smallest() -> None:
    rng = np.random.default_rng(4)
    valuation = Valuation.assignment(rng.random((2, 4)).round(2))
    sets = [each for size in range(5) for each in combinations(range(4), size)]
    for _ in range(30):
        prices = rng.random(4) * rng.choice((0.1, 1.0))
        for holding in ((), (1,), (0, 3)):
            gains = {
                each: valuation.worth(each) - prices[list(each)].sum()
                for each in sets
                if set(holding) <= set(each)
            }
            found = valuation.demand(prices, holding)
            assert gains[found] == pytest.approx(max(gains.values()), abs=1e-12)
    assert Valuation.additive([0.5, 0.5]).demand([0.5, 0.5]) == ()
    assert Valuation.additive([0.5, 0.5], capacity=1).demand([0.25, 0.25]) == (0,)
    surplus = Demand([valuation]).surplus(np.array([0, 0]), np.full(4, 9.0))
    assert surplus.tolist() == [0.0, 0.0]


def test_unit_demand_as_rows_and_as_valuations_is_one_market() -> None:
    rng = np.random.default_rng(5)
    rows = rng.random((6, 3)).round(6)
    types = rng.integers(0, 6, 2400)
    plain = PrivateAllocation(**GIVEN)
    kinds = [Valuation.additive(row, capacity=1) for row in rows]
    sets = PrivateAllocation(**GIVEN, valuations=kinds)
    one, other = plain.release(rows[types], rng=3), sets.release(types, rng=3)
    assert (one.value == other.value).all()
    assert (one.parts(rows[types]) == other.parts(types)).all()
    assert sets.privacy_loss == plain.privacy_loss
    assert optimal_welfare(types, sets.supply, valuations=kinds) == pytest.approx(
        optimal_welfare(rows[types], sets.supply), rel=1e-6
    )


def test_a_market_of_substitutes_step_by_step() -> None:
    # What the notes say of each agent, where noise is within its bound, as this seed's is.
    rng = np.random.default_rng(6)
    kinds = [Valuation.assignment(rng.random((2, 3))) for _ in range(8)]
    kinds += [Valuation.of_sets(lambda goods: [0.0, 0.6, 0.9, 1.1][len(goods)], goods=3)]
    market = PrivateAllocation(**GIVEN, valuations=kinds)
    assert market.capacity == 3
    types = rng.integers(0, len(kinds), 2400)
    release = market.release(types, rng=7)
    goods = release.parts(types)
    assert (goods.sum(axis=0) <= market.supply).all()
    assert goods.sum(axis=1).max() > 1
    masks = goods @ (1 << np.arange(3))
    worth = np.stack([each.values for each in kinds])[types, masks]
    prices, error = market.prices(release.value), market.counter.error(market.beta)
    assert prices.max() > 0
    short = Demand(kinds).surplus(types, prices) - (worth - goods @ prices)
    unsatisfied = np.count_nonzero(short > 2 * market.step * goods.sum(axis=1) + 1e-9)
    assert unsatisfied <= release.value[-1, -1] + error
    guarantee, best = market.guarantee(release.value), optimal_welfare(types, market.supply, valuations=kinds)
    assert best - guarantee.gap <= worth.sum() <= best * (1 + 1e-6)
    assert worth.sum() > 0.75 * best
    assert best <= welfare_ceiling(types, market.supply, prices, valuations=kinds) * (1 + 1e-9)
    assert market.largest_value == max(each.largest for each in kinds)
    assert market.most_held == 1800
    assert PrivateAllocation(**GIVEN | {"supply": (9000,) * 3}, valuations=kinds).most_held == 7200


def test_the_optimum_of_sets_is_that_of_enumeration() -> None:
    rng = np.random.default_rng(8)
    kinds = [Valuation.assignment(rng.random((2, 3))) for _ in range(3)]
    for supply in ((1, 2, 1), (2, 2, 3), (1, 1, 1)):
        types = rng.integers(0, 3, 4)
        best = 0.0
        for chosen in product(range(8), repeat=4):
            counts = np.sum([[mask >> good & 1 for good in range(3)] for mask in chosen], axis=0)
            if (counts <= supply).all():
                best = max(
                    best, sum(kinds[kind].values[mask] for kind, mask in zip(types, chosen, strict=True))
                )
        assert optimal_welfare(types, supply, valuations=kinds) == pytest.approx(best, rel=1e-7)


def test_one_report_moves_the_counts_no_more_than_is_priced() -> None:
    rng = np.random.default_rng(9)
    kinds = [Valuation.assignment(rng.random((2, 3))) for _ in range(5)]
    market = PrivateAllocation(
        agents=30,
        supply=(90, 90, 90),
        epsilon=60.0,
        delta=0.01,
        rounds=6,
        blocks=4,
        turns=3,
        valuations=kinds,
    )
    case = market, rng.integers(0, 5, 30), lambda: rng.integers(0, 5)
    assert market.counter.step_squared == 2
    checks: tuple[Callable[..., None], ...] = (check_measurements, check_acts, check_parts)
    for check in checks:
        check(*case)


def test_what_is_no_valuation_is_refused() -> None:
    for values, message in (
        ([0.0, 0.5, 0.25], "values must have a length of 2 to a power from 1 to 12"),
        ([0.0], "values must have a length of 2"),
        ([[0.0, 1.0]], "values must have a length of 2"),
        ([0.0] * 8192, "values must have a length of 2"),
        ([0.0, np.nan], "values must be from 0 to 1"),
        ([0.0, np.inf], "values must be from 0 to 1"),
        ([0.25, 0.5], "values must be 0 for no good and at most 1 for one"),
        ([0.0, 1.25, 0.5, 1.25], "values must be 0 for no good and at most 1 for one"),
        ([0.0, 0.5, 0.5, 0.25], "values must not fall as goods are added"),
    ):
        with pytest.raises(ParameterError, match=message):
            Valuation(values=values)
    assert Valuation(values=[0.0, 5e-324]).largest == 0.0
    for goods in (0, 13):
        with pytest.raises(ParameterError, match="goods must be"):
            Valuation.of_sets(len, goods=goods)
    for table in ([[0.5, 1.5]], [0.5], [[np.nan]], [[-0.5]]):
        with pytest.raises(ParameterError, match="table must be numbers from 0 to 1"):
            Valuation.assignment(table)
    with pytest.raises(ParameterError, match="capacity must be"):
        Valuation.additive([0.5], capacity=0)
    valuation = Valuation.additive([0.5, 0.5])
    with pytest.raises(ParameterError, match="goods must be less than 2, got 2"):
        valuation.worth([2])
    for prices in ([0.5], [-1.0, 0.0], [np.nan, 0.0]):
        with pytest.raises(ParameterError, match="prices must be non-negative"):
            valuation.demand(prices)


def test_what_no_market_takes_is_refused() -> None:
    fine = Valuation.additive([0.5, 0.5, 0.5])
    shoes = Valuation.of_sets(lambda goods: float({0, 1} <= set(goods)), goods=3)
    for change, message in (
        ({"valuations": [fine, shoes]}, "must be gross substitutes, but in that at position 1 goods 0 and 1"),
        ({"valuations": []}, "valuations must be a list that is not empty"),
        ({"valuations": fine}, "valuations must be a list"),
        ({"valuations": [len]}, "valuations must be a Valuation"),
        ({"valuations": [Valuation.additive([0.5])]}, "valuations must be of 3 goods"),
        ({"valuations": [fine], "capacity": 2}, "capacity must be left out where valuations are given"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=message):
            PrivateAllocation(**GIVEN | change)
    market = PrivateAllocation(**GIVEN, valuations=[fine])
    for reports, message in (
        (np.zeros(2400), "reports must be whole numbers"),
        (np.zeros(2399, int), "reports must be whole numbers"),
        (np.ones(2400, int), "reports must be positions of valuations"),
        (np.full(2400, -1), "reports must be positions of valuations"),
    ):
        with pytest.raises(ParameterError, match=message):
            market.release(reports)
    with pytest.raises(ParameterError, match="valuations must be gross substitutes"):
        optimal_welfare(np.zeros(3, int), (1, 1, 1), valuations=[shoes])
