"""The private descent: what it finds, what each level's noise is, and that it is charged before it reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.errors import BudgetExceeded, ParameterError, SimulatedCharge
from sfumato.federated import (
    AggregationParameter,
    Poplar1Aggregator,
    Poplar1HeavyHitters,
    ShardedReports,
    UsedVerifyKeys,
)
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.numerics.randomness.source import random_source
from sfumato.privacy import Neighboring
from tests.cases import cases

KEY = bytes(range(32))
QUIET = Gaussian(sensitivity=1, stddev=0.1, l0=2, neighboring=Neighboring.REPLACE_ONE)
TEXTS = ["011010"] * 9 + ["011011"] * 5 + ["110001"] * 7 + ["000000"] * 2 + ["111111"]


def plan(**changed: Any) -> Poplar1HeavyHitters:
    chosen = {"bits": 6, "mechanism": QUIET, "threshold": 4, "max_prefixes": 3, **changed}
    return Poplar1HeavyHitters(**chosen)


def sides(chosen: Poplar1HeavyHitters, reports: ShardedReports) -> list[Poplar1Aggregator]:
    made = [chosen.aggregator(KEY, j, UsedVerifyKeys()) for j in range(2)]
    for j, side in enumerate(made):
        side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
    return made


@cases("bits_per_level", [1, 2, 4, 6])
def test_the_descent_finds_what_is_frequent(bits_per_level: int) -> None:
    chosen = plan(bits_per_level=bits_per_level)
    answer = chosen.run(sides(chosen, chosen.poplar1.shard(TEXTS)), rng=1)
    # Noise of standard deviation 0.1 is not 0 with a probability below 1e-20.
    assert answer.top(9) == [("011010", 9), ("110001", 7), ("011011", 5)]
    assert answer.found == ["011010", "110001", "011011"]
    assert answer.reports == len(TEXTS)
    assert answer.of("011010") == 9
    plain = Counter(TEXTS)
    assert list(answer.counts) == [plain[string] for string in answer.prefixes]
    assert answer.simulated


def test_levels_end_at_whole_strings() -> None:
    assert plan(bits_per_level=1).levels == (0, 1, 2, 3, 4, 5)
    assert plan(bits_per_level=4).levels == (1, 5)
    assert plan(bits_per_level=6).levels == (5,)
    assert plan(bits=7, bits_per_level=3).levels == (0, 3, 6)


def test_only_the_largest_are_extended() -> None:
    chosen = plan(max_prefixes=1, threshold=1)
    answer = chosen.run(sides(chosen, chosen.poplar1.shard(TEXTS)), rng=1)
    assert answer.found == ["011010", "011011"]
    chosen = plan(max_prefixes=1, bits=2, threshold=1)
    answer = chosen.run(sides(chosen, chosen.poplar1.shard(["10", "01"])), rng=1)
    assert answer.prefixes == ("00", "01")  # of equal counts the first


def test_a_descent_that_ends_early_finds_nothing() -> None:
    chosen = plan(threshold=8)
    answer = chosen.run(sides(chosen, chosen.poplar1.shard(TEXTS[14:])), rng=1)
    assert dict(zip(answer.prefixes, answer.counts, strict=True)) == {"110": 7, "111": 1}
    whole = plan(threshold=15)
    early = whole.run(sides(whole, whole.poplar1.shard(TEXTS)), rng=1)
    assert len(early.prefixes[0]) < 6
    assert (early.found, early.top(3)) == ([], [])
    assert early.loss.epsilon(1e-6) == whole.privacy_loss.epsilon(1e-6)


def test_every_count_has_the_noise_of_both_aggregators() -> None:
    one = Laplace(sensitivity=1, scale=4, l0=2, neighboring=Neighboring.REPLACE_ONE)
    chosen = plan(mechanism=one, bits=2, bits_per_level=2)
    answer = chosen.run(sides(chosen, chosen.poplar1.shard(["00", "10", "10"])), rng=7)
    source = random_source(7)
    first, second = (chosen.noise.draw(4, source) for _ in range(2))
    assert first != second
    assert list(answer.counts) == [x + a + b for x, a, b in zip([1, 0, 2, 0], first, second, strict=True)]
    assert answer.stddev == pytest.approx(2**0.5 * one.stddev)


def test_aggregators_of_another_plan_are_refused_before_the_charge() -> None:
    one = Gaussian(sensitivity=1, stddev=10, l0=2, neighboring=Neighboring.REPLACE_ONE)
    chosen = plan(mechanism=one, bits_per_level=3)
    reports = chosen.poplar1.shard(TEXTS)
    mine = sides(chosen, reports)
    exact = [Poplar1Aggregator(chosen.poplar1, KEY, j, UsedVerifyKeys()) for j in range(2)]
    others = [
        exact,
        [mine[0], exact[1]],
        [mine[1], mine[0]],
        [mine[0], mine[0]],
        sides(plan(bits_per_level=3), reports),
        sides(plan(mechanism=one), reports),
        sides(plan(mechanism=one, bits_per_level=3, minimum_reports=2), reports),
        sides(plan(mechanism=one, bits_per_level=3, context=b"app"), reports),
    ]
    with ledger(0.03) as paid:
        for pair in others:
            with pytest.raises(ParameterError, match="aggregators 0 and 1 of this plan"):
                chosen.run(pair, ledgers=[paid], delta=1e-6)
        chosen.run(mine, ledgers=[paid], delta=1e-6)  # rho of 0.02, which is still there


def test_fresh_noise_without_a_seed() -> None:
    chosen = Poplar1HeavyHitters.calibrated(
        bits=8, bits_per_level=8, threshold=1, max_prefixes=1, epsilon=0.01, delta=1e-9
    )
    chosen_sides = [sides(chosen, chosen.poplar1.shard(["0" * 8])) for _ in range(2)]
    first, second = (chosen.run(pair) for pair in chosen_sides)
    assert first.counts != second.counts  # alike with a probability below 1e-500
    assert not first.simulated


@cases("bits, step, epsilon", [(8, 1, 1.0), (10, 4, 1.0), (64, 8, 0.5)])
def test_the_whole_descent_meets_its_target(bits: int, step: int, epsilon: float) -> None:
    chosen = Poplar1HeavyHitters.calibrated(
        bits=bits, bits_per_level=step, threshold=9, max_prefixes=2, epsilon=epsilon, delta=1e-6
    )
    assert 0.99 * epsilon < chosen.privacy_loss.epsilon(1e-6) <= epsilon
    assert chosen.privacy_loss.neighboring is chosen.neighboring is Neighboring.REPLACE_ONE
    # Each level moves two counts by one: the same noise on as many entries of one vector.
    both = Gaussian(
        sensitivity=1,
        stddev=chosen.mechanism.stddev if isinstance(chosen.mechanism, Gaussian) else 0,
        l0=2 * len(chosen.levels),
        neighboring=Neighboring.REPLACE_ONE,
    )
    assert chosen.privacy_loss.epsilon(1e-6) == pytest.approx(both.privacy_loss.epsilon(1e-6), rel=1e-9)


def ledger(rho: float) -> Ledger:
    return Ledger.open(
        None,
        budget=Budget.zcdp(rho=rho),
        privacy_unit="client",
        neighboring=Neighboring.REPLACE_ONE,
        dataset=Dataset(schema="reports(string)", fingerprint=lambda key: "0" * 64),
    )


def test_ledgers_are_charged_before_a_report_is_read() -> None:
    one = Gaussian(sensitivity=1, stddev=10, l0=2, neighboring=Neighboring.REPLACE_ONE)
    chosen = plan(mechanism=one, bits_per_level=3)  # two levels of two counts: rho is 0.02
    reports = chosen.poplar1.shard(TEXTS)
    pair = sides(chosen, reports)
    with pytest.raises(ParameterError, match="open ledger"):
        chosen.run(pair, ledgers=["ledger.db"])
    with ledger(0.019) as small, pytest.raises(BudgetExceeded):
        chosen.run(pair, ledgers=[small], delta=1e-6)
    with ledger(1.0) as real, pytest.raises(SimulatedCharge):
        chosen.run(pair, ledgers=[real], delta=1e-6, rng=1)
    pair[0].receive(reports.nonces, reports.public_shares, reports.input_shares[0])  # counting has not begun
    with ledger(0.03) as first, ledger(0.05) as second:
        chosen.run(sides(chosen, reports), ledgers=[first, second], delta=1e-6)
        assert not first.would_accept(chosen.privacy_loss, delta=1e-6)
        assert second.would_accept(chosen.privacy_loss, delta=1e-6)


def test_an_aggregator_answers_at_the_plans_levels_only() -> None:
    chosen = plan(bits_per_level=3)
    side = sides(chosen, chosen.poplar1.shard(TEXTS))[0]
    with pytest.raises(ParameterError, match="one of"):
        side.begin(AggregationParameter.of("01"))
    few = plan(minimum_reports=len(TEXTS) + 1)
    with pytest.raises(ParameterError, match="at least 25"):
        few.run(sides(few, few.poplar1.shard(TEXTS)), rng=1)


def test_bands_hold_all_counts_at_once() -> None:
    one = Laplace(sensitivity=1, scale=3, l0=2, neighboring=Neighboring.REPLACE_ONE)
    chosen = plan(mechanism=one, bits=2, bits_per_level=2, threshold=1)
    exact, missed = np.array([5, 0, 9, 2]), 0
    reports = chosen.poplar1.shard(["00"] * 5 + ["10"] * 9 + ["11"] * 2)
    for seed in range(60):
        answer = chosen.run(sides(chosen, reports), rng=seed)
        lower, upper, _ = answer.bands(0.9)
        assert (lower >= 0).all()
        assert (upper <= 16).all()
        missed += not ((lower <= exact) & (exact <= upper)).all()
    assert missed <= 22  # of 60 draws with fixed seeds, of which one in ten may miss
    table = answer.to_dict(0.9)
    assert table["string"] == answer.found
    rows = [answer.prefixes.index(string) for string in answer.found]
    assert table["count"] == [answer.counts[row] for row in rows]
    assert table["lower"] == lower[rows].tolist()
    assert table["upper"] == upper[rows].tolist()
    assert set(table["stddev"]) == {answer.stddev}
    margin = chosen.noise.margin(1 - 0.1 / 4)
    middle = [row for row, count in enumerate(answer.counts) if margin <= count <= 16 - margin]
    assert all(upper[row] - lower[row] == 2 * margin for row in middle)


@cases(
    "call, message",
    [
        (lambda: plan(bits=0), "bits"),
        (lambda: plan(threshold=0), "threshold"),
        (lambda: plan(max_prefixes=0), "max_prefixes"),
        (lambda: plan(bits_per_level=0), "bits_per_level"),
        (lambda: plan(bits_per_level=7), "bits_per_level"),
        (lambda: plan(bits=32, bits_per_level=17), "at most 16"),
        (lambda: plan(minimum_reports=0), "minimum_reports"),
        (lambda: plan(context="app"), "context"),
        (
            lambda: plan(mechanism=Laplace(sensitivity=1, scale=4, neighboring=Neighboring.REPLACE_ONE)),
            "cover",
        ),
        (lambda: plan(mechanism=Laplace(sensitivity=1, scale=4, l0=2)), "replace-one"),
        (lambda: plan().run([]), "sides"),
        (lambda: plan().run(sides(plan(), plan().poplar1.shard(TEXTS)), rng=1).of("01"), "asked for"),
        (lambda: plan().run(sides(plan(), plan().poplar1.shard(TEXTS)), rng=1).top(-1), "k"),
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
