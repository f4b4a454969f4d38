"""The supply condition: its numbers by hand, what it bounds for every signal, and welfare where it holds."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games import PrivateAllocation, SupplyCondition, Valuation, optimal_welfare, welfare_ceiling
from sfumato.games.joint.supply_condition import supply_condition

N = 20_000
GIVEN: dict[str, Any] = {
    "agents": N,
    "supply": (6000, 6000),
    "epsilon": 8.0,
    "delta": 1e-3,
    "step": 0.06,
    "rounds": 10,
    "blocks": 64,
}


def test_welfare_is_at_least_the_optimum_less_alpha_n_where_the_condition_holds() -> None:
    market = PrivateAllocation(**GIVEN)
    condition = market.supply_condition(0.25)
    assert condition.holds
    rng = np.random.default_rng(1)
    drawn = rng.random((N, 2)) ** rng.choice((1, 3), (N, 1)) * (1.0, 0.6)
    for values in (drawn, np.ones((N, 2)), np.repeat([[0.9, 0.3]], N, axis=0)):
        release = market.release(values, rng=1)
        welfare = float((values * release.parts(values)).sum())
        assert condition.met(release.value)
        assert market.guarantee(release.value).per_agent <= 0.25
        best = welfare_ceiling(values, market.supply, market.prices(release.value))
        assert welfare >= best - 0.25 * N


def test_the_condition_for_sets_of_goods() -> None:
    kinds = [Valuation.additive(row) for row in np.random.default_rng(2).random((5, 2))]
    market = PrivateAllocation(**GIVEN, valuations=kinds)
    condition = market.supply_condition(0.3)
    types = np.random.default_rng(3).integers(0, 5, N)
    release = market.release(types, rng=1)
    held = release.parts(types) @ (1, 2)
    welfare = float(np.stack([each.values for each in kinds])[types, held].sum())
    assert condition.met(release.value)
    assert welfare >= optimal_welfare(types, market.supply, valuations=kinds) - 0.3 * N


def test_too_few_bids_leave_agents_unsatisfied_and_the_theorem_unmet() -> None:
    few = PrivateAllocation(**GIVEN | {"turns": 1, "rounds": 4})
    condition = few.supply_condition(0.25)
    assert condition.holds
    assert not condition.met(few.release(np.ones((N, 2)), rng=1).value)


def test_the_numbers_by_hand() -> None:
    market = PrivateAllocation(**GIVEN)
    error, reserve, third = market.counter.error(0.05), market.reserve, 0.3 * N / 3
    found = market.supply_condition(0.3)
    assert found.supply == 6000
    assert found.largest_step == pytest.approx(third / (2 * 12_000))
    assert found.unsatisfied == pytest.approx(third - error)
    # At most two goods have a price, and both together cost less than a third here: any supply that sells.
    assert 2 * 1.06 * (2 * error + reserve) < third
    assert found.needed == math.ceil(2 * reserve)
    many = PrivateAllocation(**GIVEN | {"supply": (1200,) * 40})
    error, reserve = many.counter.error(0.05), many.reserve
    each = 1.06 * (2 * error + reserve)
    assert 40 * each > third
    assert many.supply_condition(0.3).needed == math.ceil(reserve + 2 * error + N * each / third)
    assert str(found).startswith("The supply condition holds for a loss of 0.3 an agent: 6000 copies, of ")


def test_where_it_does_not_hold() -> None:
    for alpha, change in ((0.02, {}), (0.25, {"step": 0.2}), (0.25, {"supply": (1200,) * 30})):
        found = PrivateAllocation(**GIVEN | change).supply_condition(alpha)
        assert not found.holds
        assert not found.met(np.zeros(found.shape))
        assert "does not hold" in str(found)


def test_prices_need_twice_the_reserve_however_few_goods_are_held() -> None:
    given: dict[str, Any] = {
        "agents": 1000,
        "supply": (300, 300, 300),
        "step": 0.1,
        "largest_value": 1.0,
        "error": 1.0,
        "reserve": 101.7,
        "shape": (1, 4),
    }
    # Three goods with a price could cost 3 * 1.1 * 103.7, more than a third of 0.9 * 1000.
    assert supply_condition(0.9, most_held=100, **given).needed == math.ceil(2 * 101.7)
    assert supply_condition(0.9, most_held=900, **given).needed == math.ceil(103.7 + 900 * 1.1 * 103.7 / 300)


@pytest.mark.parametrize("alpha", [5e-324, 1e-320, 1e-300])
def test_an_alpha_near_0_needs_a_supply_without_end(alpha: float) -> None:
    found = PrivateAllocation(**GIVEN).supply_condition(alpha)
    assert found.needed > 1e290
    assert not found.holds
    assert str(found).startswith("The supply condition does not hold")


def test_each_of_the_three_is_needed() -> None:
    fine = SupplyCondition(
        alpha=0.1, supply=10, needed=10, step=0.1, largest_step=0.1, unsatisfied=5.0, shape=(1, 2)
    )
    assert fine.holds
    assert fine.met([[9.0, 5.0]])
    assert not fine.met([[9.0, 5.5]])
    assert dataclasses.replace(fine, unsatisfied=0.0).holds
    changes: tuple[dict[str, Any], ...] = ({"supply": 9}, {"step": 0.11}, {"unsatisfied": -0.1})
    for change in changes:
        assert not dataclasses.replace(fine, **change).holds
    for alpha in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ParameterError, match="alpha must be positive"):
            PrivateAllocation(**GIVEN).supply_condition(alpha)
    nothing = PrivateAllocation(**GIVEN, valuations=[Valuation.additive([0.0, 0.0])])
    assert nothing.supply_condition(0.3).unsatisfied == math.inf


def test_prices_of_any_run_are_within_the_proof() -> None:
    # Everybody wants both goods at any price below 1: the highest prices that there can be.
    market = PrivateAllocation(**GIVEN | {"step": 0.3})
    values = np.ones((N, 2))
    release = market.release(values, rng=4)
    prices, parts = market.prices(release.value), release.parts(values)
    assert 1 <= prices.max() < 1 + market.step
    error = market.counter.error(market.beta)
    assert (parts.sum(axis=0) >= market.widths.min() - 2 * error).all()
