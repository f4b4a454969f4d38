"""What protocols with memos cost: one report, several of one memo, all of them; against exact laws."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import (
    Domain,
    LongitudinalLocalHashing,
    LongitudinalRandomizedResponse,
    LongitudinalUnaryEncoding,
    MemoizedBitFlip,
    MemoizedOneBitMean,
    OptimalLocalHashing,
    RandomizedResponse,
)
from sfumato.privacy import Neighboring
from sfumato.privacy.nodes.shuffled import Shuffled
from tests.cases import cases
from tests.local.device.longitudinal.histories import law_of_one_value, permanent
from tests.local.laws import worst_odds

BOTH: dict[str, Any] = {"epsilon": 1.0, "permanent_epsilon": 2.5}
LAYERED: list[Any] = [
    LongitudinalRandomizedResponse(**BOTH, domain=Domain(range(4))),
    *(
        LongitudinalUnaryEncoding(**BOTH, domain=Domain(range(3)), chain=chain)
        for chain in ("SUE", "OUE", "OSUE", "SOUE")
    ),
    LongitudinalLocalHashing(**BOTH, domain=Domain(range(9)), buckets=3),
]
SENT: list[Any] = [
    MemoizedBitFlip(epsilon=1.0, domain=Domain(range(5)), asked=2),
    MemoizedBitFlip(epsilon=1.0, domain=Domain(range(5)), asked=1),
    MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 1.0)),
]


def name(oracle: Any) -> str:
    return f"{type(oracle).__name__}-{getattr(oracle, 'chain', '')}"


def values_of(oracle: Any) -> range:
    """Values that fall in different buckets under seed 0, or all."""
    device = oracle.device
    if not isinstance(oracle, LongitudinalLocalHashing):
        return range(len(oracle.domain))
    return range(device.max_keys)


def over_buckets(oracle: Any) -> Any:
    """The device, or its two layers over buckets: given the seed, they are all that there is."""
    return oracle.device.inner if isinstance(oracle, LongitudinalLocalHashing) else oracle.device


@cases("oracle", LAYERED, ids=name)
@cases("reports", [2, 3])
def test_several_reports_of_a_memo_have_the_stated_odds_exactly(oracle: Any, reports: int) -> None:
    device = over_buckets(oracle)
    values = [0, 1] if reports == 3 else values_of(oracle)
    odds = worst_odds(partial(law_of_one_value, device, reports), values)
    assert odds == oracle._odds_of(reports)
    loss = oracle.same_memo_loss(reports).epsilon(0.0)
    assert np.log(float(odds)) - 1e-9 <= loss <= np.log(float(odds)) + 1e-9


@cases("oracle", LAYERED, ids=name)
def test_losses_hold_for_the_exact_laws(oracle: Any) -> None:
    device = over_buckets(oracle)
    for loss, law in (
        (oracle.privacy_loss, device.probabilities),
        (oracle.permanent_loss, permanent(device).probabilities),
    ):
        one, other = law(0), law(1)
        for at in np.linspace(0.0, loss.epsilon(0.0), 5):
            true = sum(max(0.0, float(p) - np.exp(at) * float(other[row])) for row, p in one.items())
            assert true <= loss.delta(at) + 1e-12
            assert loss.delta(at) == pytest.approx(true, abs=1e-9)


AGAIN: list[Any] = [
    MemoizedBitFlip(**BOTH, domain=Domain(range(5)), asked=2),
    MemoizedBitFlip(**BOTH, domain=Domain(range(5)), asked=1),
    MemoizedOneBitMean(**BOTH, bounds=(0.0, 1.0)),
]


@cases("oracle", [*LAYERED, *AGAIN], ids=name)
def test_reports_of_a_memo_cost_more_and_more_up_to_the_memo(oracle: Any) -> None:
    costs = [oracle.same_memo_loss(t).epsilon(0.0) for t in (1, 2, 3, 10, 100, 512, 513, 10**9)]
    assert all(less <= more for less, more in pairwise(costs))
    assert costs[0] <= 1.0
    assert 2.49 < costs[-1] <= 2.5
    assert oracle.same_memo_loss(1) == oracle.privacy_loss
    assert oracle.unmemoized_loss(10).epsilon(0.0) == pytest.approx(10 * costs[0])
    assert costs[1] < oracle.unmemoized_loss(2).epsilon(0.0)


@cases("oracle", [*LAYERED, *SENT, *AGAIN], ids=name)
def test_a_lifetime_costs_as_many_memos_as_there_can_be(oracle: Any) -> None:
    memo = oracle.permanent_loss.epsilon(0.0)
    most = oracle.device.memo_limit
    costs = [oracle.longitudinal_loss(changes).epsilon(0.0) for changes in (0, 1, 2, 3, 100)]
    assert costs == pytest.approx([memo * min(most, count) for count in (1, 2, 3, 4, 101)])
    assert oracle.longitudinal_loss().epsilon(0.0) == costs[-1]
    assert oracle.longitudinal_loss().neighboring is Neighboring.REPLACE_ONE
    assert oracle.longitudinal_loss(1).epsilon(1e-3) < costs[1]
    assert Shuffled(oracle.privacy_loss, clients=100_000).epsilon(1e-6) < 0.1


def test_few_keys_bound_the_loss_better_than_the_cap() -> None:
    domain = Domain(range(1000))
    binary = LongitudinalLocalHashing(**BOTH, domain=domain, buckets=2, max_memos=1000)
    assert binary.longitudinal_loss().epsilon(0.0) == pytest.approx(5.0)
    flips = MemoizedBitFlip(epsilon=1.0, domain=domain, asked=3, max_memos=1000)
    assert flips.longitudinal_loss().epsilon(0.0) == pytest.approx(4.0)
    mean = MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 1.0), max_memos=1000)
    assert mean.longitudinal_loss().epsilon(0.0) == pytest.approx(2.0)
    response = LongitudinalRandomizedResponse(**BOTH, domain=Domain(range(3)), max_memos=1000)
    assert response.longitudinal_loss().epsilon(0.0) == pytest.approx(7.5)


def test_where_memos_are_sent_more_reports_cost_nothing() -> None:
    for oracle in SENT:
        assert oracle.same_memo_loss(100).epsilon(0.0) == pytest.approx(oracle.privacy_loss.epsilon(0.0))
        assert oracle.permanent_loss == oracle.privacy_loss


def test_memoizing_costs_no_error_in_one_round() -> None:
    domain = Domain(range(10))
    for layered, plain in (
        (LongitudinalRandomizedResponse, RandomizedResponse),
        (LongitudinalLocalHashing, OptimalLocalHashing),
    ):
        one, other = layered(**BOTH, domain=domain), plain(epsilon=1.0, domain=domain)
        assert one.variance(1, 0.3) == pytest.approx(other.variance(1, 0.3), rel=1e-12)
        assert type(one.privacy_loss) is type(other.privacy_loss)
    best = LongitudinalUnaryEncoding(**BOTH, domain=domain)
    others = [
        LongitudinalUnaryEncoding(**BOTH, domain=domain, chain=chain).variance(1)
        for chain in ("SUE", "OUE", "SOUE")
    ]
    assert best.variance(1) < min(others)


def test_odd_questions_are_refused() -> None:
    oracle = LAYERED[0]
    for ask, odd in (("longitudinal_loss", -1), ("same_memo_loss", 0), ("unmemoized_loss", 0)):
        with pytest.raises(ParameterError, match=r"(changes|reports) must be"):
            getattr(oracle, ask)(odd)
