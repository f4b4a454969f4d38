"""The weighted descent: what it finds, its noise, and that it is charged before it reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.errors import BudgetExceeded, ParameterError, SimulatedCharge
from sfumato.federated import (
    MasticAggregator,
    MasticHeavyHitters,
    ShardedReports,
    UsedVerifyKeys,
    mastic_count,
    mastic_histogram,
    mastic_sum,
    mastic_sum_vec,
)
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.numerics.randomness.source import random_source
from sfumato.privacy import Neighboring
from tests.cases import cases

KEY = bytes(range(32))
REPLACE = Neighboring.REPLACE_ONE
QUIET = Gaussian(sensitivity=9, stddev=0.1, l0=2, neighboring=REPLACE)
LOUD = Gaussian(sensitivity=9, stddev=90, l0=2, neighboring=REPLACE)
TEXTS = ["011010"] * 9 + ["011011"] * 5 + ["110001"] * 7 + ["000000"] * 2 + ["111111"]
WEIGHTS = [1] * 9 + [9] * 5 + [3] * 7 + [0] * 2 + [9]
TOTALS = Counter[str]()
for text, weight in zip(TEXTS, WEIGHTS, strict=True):
    TOTALS[text] += weight


def plan(**changed: Any) -> MasticHeavyHitters:
    chosen = {"mastic": mastic_sum(6, 9), "mechanism": QUIET, "threshold": 9, "max_prefixes": 3, **changed}
    return MasticHeavyHitters(**chosen)


def sides(chosen: MasticHeavyHitters, reports: ShardedReports) -> list[MasticAggregator]:
    made = [chosen.aggregator(KEY, j, UsedVerifyKeys()) for j in range(2)]
    for j, side in enumerate(made):
        side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
    return made


@cases("bits_per_level", [1, 4, 6])
def test_the_descent_finds_what_is_heavy_not_what_is_frequent(bits_per_level: int) -> None:
    chosen = plan(bits_per_level=bits_per_level)
    answer = chosen.run(sides(chosen, chosen.mastic.shard(TEXTS, WEIGHTS)), rng=1)
    # Noise of standard deviation 0.1 is not 0 with a probability below 1e-20.
    assert answer.top(2) == [("011011", 45), ("110001", 21)]
    assert answer.of("011011") == 45
    assert answer.reports == len(TEXTS)
    assert list(answer.counts) == [TOTALS[string] for string in answer.prefixes]
    assert answer.simulated
    lower, upper, _ = answer.bands(0.95)
    assert (lower >= 0).all()
    assert upper.max() <= 9 * len(TEXTS)
    assert upper.max() >= 45  # of 24 reports, which a bound by reports would deny


def test_every_sum_has_the_noise_of_both_aggregators() -> None:
    one = Laplace(sensitivity=9, scale=20, l0=2, neighboring=REPLACE)
    chosen = plan(mastic=mastic_sum(2, 9), mechanism=one, bits_per_level=2)
    answer = chosen.run(sides(chosen, chosen.mastic.shard(["00", "10", "10"], [5, 9, 2])), rng=7)
    source = random_source(7)
    first, second = (chosen.noise.draw(4, source) for _ in range(2))
    assert first != second
    assert list(answer.counts) == [x + a + b for x, a, b in zip([5, 0, 11, 0], first, second, strict=True)]


def test_a_report_with_an_invalid_weight_adds_nothing_at_any_level() -> None:
    chosen = plan()
    reports = chosen.mastic.shard(TEXTS, WEIGHTS)
    for row in np.flatnonzero(np.array(TEXTS) == "011011"):
        reports.input_shares[0][row, 20] ^= 1
    answer = chosen.run(sides(chosen, reports), rng=1)
    assert "011011" not in answer.found
    assert answer.reports == len(TEXTS) - 5


@cases("mastic, step, epsilon", [(mastic_sum(8, 9), 1, 1.0), (mastic_count(10), 4, 0.5)])
def test_the_whole_descent_meets_its_target(mastic: Any, step: int, epsilon: float) -> None:
    chosen = MasticHeavyHitters.calibrated(
        mastic, bits_per_level=step, threshold=9, max_prefixes=2, epsilon=epsilon, delta=1e-6
    )
    assert 0.99 * epsilon < chosen.privacy_loss.epsilon(1e-6) <= epsilon
    assert chosen.privacy_loss.neighboring is chosen.neighboring is REPLACE


def test_sums_that_could_wrap_are_refused_before_the_charge() -> None:
    mechanism = Laplace(sensitivity=1 << 62, scale=1 << 40, l0=2, neighboring=REPLACE)
    chosen = plan(mastic=mastic_sum(1, 1 << 62), mechanism=mechanism)
    pair = sides(chosen, chosen.mastic.shard(["1"] * 3, [1 << 62] * 3))  # the sum would be read as -2**62
    with ledger(1.0) as paid, pytest.raises(ParameterError, match="received reports must be at most 0"):
        chosen.run(pair, ledgers=[paid])


def ledger(rho: float) -> Ledger:
    return Ledger.open(
        None,
        budget=Budget.zcdp(rho=rho),
        privacy_unit="client",
        neighboring=REPLACE,
        dataset=Dataset(schema="reports(string, weight)", fingerprint=lambda key: "0" * 64),
    )


def test_ledgers_are_charged_before_a_report_is_read_and_by_this_plan_only() -> None:
    chosen = plan(mechanism=LOUD, bits_per_level=3)  # two levels of two sums at a tenth: rho is 0.02
    reports = chosen.mastic.shard(TEXTS, WEIGHTS)
    pair = sides(chosen, reports)
    exact = [MasticAggregator(chosen.mastic, KEY, j, UsedVerifyKeys()) for j in range(2)]
    with ledger(0.03) as paid:
        for wrong in (exact, pair[::-1], [pair[0], pair[0]], sides(plan(bits_per_level=3), reports)):
            with pytest.raises(ParameterError, match="aggregators 0 and 1 of this plan"):
                chosen.run(wrong, ledgers=[paid], delta=1e-6)
        with pytest.raises(ParameterError, match="open ledger"):
            chosen.run(pair, ledgers=[paid, "ledger.db"])
        with pytest.raises(SimulatedCharge):
            chosen.run(pair, ledgers=[paid], delta=1e-6, rng=1)
        with ledger(0.019) as small, pytest.raises(BudgetExceeded):
            chosen.run(pair, ledgers=[small], delta=1e-6)
        pair[0].receive(
            reports.nonces, reports.public_shares, reports.input_shares[0]
        )  # counting has not begun
        chosen.run(sides(chosen, reports), ledgers=[paid], delta=1e-6)
        assert not paid.would_accept(chosen.privacy_loss, delta=1e-6)


@cases(
    "call, message",
    [
        (lambda: plan(mastic=mastic_histogram(6, 3, 2)), "sum one number"),
        (lambda: plan(mastic=mastic_sum_vec(6, 1, 9, 2)), "sum one number"),
        (lambda: plan(mastic=1), "mastic"),
        (lambda: plan(threshold=0), "threshold"),
        (lambda: plan(max_prefixes=0), "max_prefixes"),
        (lambda: plan(bits_per_level=7), "bits_per_level"),
        (lambda: plan(minimum_reports=0), "minimum_reports"),
        (lambda: plan(mastic=mastic_sum(6, 10)), "cover"),
        (
            lambda: MasticHeavyHitters.calibrated(
                mastic_count(4), threshold=1, max_prefixes=1, epsilon=1.0, delta=0.0
            ),
            "delta",
        ),
        (lambda: plan().run([]), "sides"),
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
