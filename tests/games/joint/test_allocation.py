"""Private allocation: never more copies than there are, and the welfare that is guaranteed."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.games.joint.allocation import PrivateAllocation
from sfumato.games.joint.welfare import optimal_welfare, welfare_ceiling

GIVEN: dict[str, Any] = {
    "agents": 2400,
    "supply": (700, 500, 600),
    "epsilon": 200.0,
    "delta": 1e-3,
    "rounds": 12,
    "blocks": 48,
}


def played(
    market: PrivateAllocation, values: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], float]:
    release = market.release(values, rng=seed)
    goods = release.parts(values)
    return release.value, goods, float((np.clip(np.nan_to_num(values), 0, 1) * goods).sum())


def test_welfare_against_the_best_allocation() -> None:
    rng = np.random.default_rng(2)
    market = PrivateAllocation(**GIVEN)
    values = rng.random((2400, 3)) * (1.0, 0.8, 0.6)
    signal, goods, welfare = played(market, values, 1)
    guarantee = market.guarantee(signal)
    best = optimal_welfare(values, market.supply)
    assert guarantee.supply_condition is False
    assert (goods.sum(axis=0) <= market.supply).all()
    assert goods.sum(axis=1).max() == 1
    assert best - guarantee.gap <= welfare <= best * (1 + 1e-6)
    assert welfare > 0.85 * best
    parts = guarantee.prices + guarantee.unsatisfied + guarantee.reserve
    assert guarantee.gap == pytest.approx(parts)
    assert guarantee.per_agent == pytest.approx(parts / 2400)


def test_the_supply_condition_and_its_theorem() -> None:
    rng = np.random.default_rng(3)
    market = PrivateAllocation(
        agents=30000, supply=(9000, 9000), epsilon=30.0, delta=1e-3, rounds=6, blocks=100
    )
    values = rng.random((30000, 2))
    signal, _goods, welfare = played(market, values, 2)
    guarantee = market.guarantee(signal)
    assert guarantee.supply_condition
    prices = market.prices(signal)
    assert guarantee.reserve <= market.step * (prices * market.supply).sum()
    ceiling = welfare_ceiling(values, market.supply, prices)
    assert welfare <= ceiling
    assert welfare >= ceiling - guarantee.gap
    assert guarantee.gap < 0.6 * ceiling


def test_the_proof_step_by_step() -> None:
    # The notes' claims about every agent and good, where noise is within its bound, as the seeds' runs are.
    rng = np.random.default_rng(5)
    for capacity, seed in ((1, 1), (2, 2)):
        market = PrivateAllocation(**GIVEN | {"capacity": capacity, "rounds": 20})
        values = rng.random((2400, 3))
        signal, goods, _ = played(market, values, seed)
        prices, gains = market.prices(signal), values - market.prices(signal)
        error = market.counter.error(market.beta)
        holders = goods.sum(axis=0)
        assert (holders <= market.supply).all()
        assert (holders[prices > 0] >= market.widths[prices > 0] - 2 * error).all()
        got = np.where(goods, gains, 0).sum(axis=1)
        best = np.sort(np.maximum(gains, 0), axis=1)[:, -capacity:].sum(axis=1)
        short = best - got > 2 * market.step * goods.sum(axis=1) + 1e-9
        unsatisfied = signal[-1, -1]
        assert np.count_nonzero(short) <= unsatisfied + error
        guarantee = market.guarantee(signal)
        left = np.maximum(unsatisfied + error, 0) * capacity
        assert guarantee.unsatisfied == pytest.approx(left)
        assert guarantee.prices == pytest.approx(2 * market.step * min(2400 * capacity, 1800))
        assert guarantee.reserve == pytest.approx(prices.sum() * (4 * error + market.block_size))


def test_agents_who_run_out_of_bids_are_counted() -> None:
    values = np.random.default_rng(6).random((2400, 3))
    few = PrivateAllocation(**GIVEN | {"turns": 1, "rounds": 6})
    many = PrivateAllocation(**GIVEN | {"rounds": 20})
    left = [played(market, values, 4)[0][-1, -1] for market in (few, many)]
    assert left[0] > 300 > left[1] + few.counter.error(0.05)


def test_prices_and_counts_before_anyone_bids() -> None:
    assert PrivateAllocation(**GIVEN | {"turns": 40}).turns == 12
    market = PrivateAllocation(**GIVEN)
    signal, goods, welfare = played(market, np.full((2400, 3), -1.0), 3)
    assert welfare == 0
    assert not goods.any()
    assert (market.prices(signal) == 0).all()
    odd = np.full((2400, 3), np.nan)
    odd[:, 1] = np.inf
    goods = played(market, odd, 3)[1]
    assert goods[:, 1].any()
    assert not goods[:, [0, 2]].any()
    assert market.reserve == 2 * market.counter.error(0.05) + 50
    assert market.widths.tolist() == [supply - market.reserve for supply in (700, 500, 600)]


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"supply must be at least twice the reserve, \d+ copies"):
        PrivateAllocation(**GIVEN | {"epsilon": 0.5})
    for supply in ((), (3, 0), (1.5, 2.0), 7):
        with pytest.raises(ParameterError, match="supply must be positive whole numbers"):
            PrivateAllocation(**GIVEN | {"supply": supply})
    for step in (0, 1.5):
        with pytest.raises(ParameterError, match="step must be"):
            PrivateAllocation(**GIVEN | {"step": step})
    for capacity in (0, 4):
        with pytest.raises(ParameterError, match="capacity must be"):
            PrivateAllocation(**GIVEN | {"capacity": capacity})
    with pytest.raises(ParameterError, match="turns must be"):
        PrivateAllocation(**GIVEN | {"turns": 0})
    with pytest.raises(ParameterError, match="beta must be"):
        PrivateAllocation(**GIVEN | {"beta": 1.0})
    market = PrivateAllocation(**GIVEN)
    with pytest.raises(ParameterError, match="reports must be an array"):
        market.release([[1.0, 0.5, 0.0]] * 2399 + [[1.0]])
    for values in (np.zeros((2400, 2)), np.zeros((2399, 3)), [["a"] * 3] * 2400):
        with pytest.raises(ParameterError, match="reports must be numbers"):
            market.release(values)
