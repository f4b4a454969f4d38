"""Sums by attribute: exact but for the noise, charged first, counts only where they are paid for."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import BudgetExceeded, ParameterError
from sfumato.federated import (
    AggregatorNoise,
    MasticAggregator,
    MasticAttributeMetrics,
    MasticNoise,
    MasticParameter,
    ShardedReports,
    UsedVerifyKeys,
    attribute_bits,
    mastic_histogram,
    mastic_sum,
)
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.mechanisms import Gaussian
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.privacy import Neighboring
from tests.cases import cases

KEY = bytes(range(32))
REPLACE = Neighboring.REPLACE_ONE
GROUPS = {name: attribute_bits(name, 12) for name in ("US", "GR", "IN")}


def quiet(l0: int, linf: int) -> AggregatorNoise:
    mechanism = Gaussian(sensitivity=linf, stddev=0.1, l0=l0, neighboring=REPLACE)
    return AggregatorNoise(mechanism=mechanism, shift=Shift.entries(l0, linf))


def sides(plan: MasticAttributeMetrics, reports: ShardedReports) -> list[MasticAggregator]:
    made = [plan.aggregator(KEY, j, UsedVerifyKeys()) for j in range(2)]
    for j, side in enumerate(made):
        side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
    return made


@cases("counts", [False, True])
def test_sums_and_means_of_each_attribute(counts: bool) -> None:
    noise = MasticNoise(weights=quiet(2, 9), counts=quiet(2, 1) if counts else None)
    plan = MasticAttributeMetrics(mastic=mastic_sum(12, 9), attributes=GROUPS, noise=noise)
    names, values = ["GR", "US", "GR", "FR", "GR"], [4, 9, 6, 9, 5]
    reports = plan.mastic.shard([attribute_bits(name, 12) for name in names], values)
    metrics = plan.run(sides(plan, reports), rng=1)
    # Noise of standard deviation 0.1 is not 0 with a probability below 1e-20.
    assert metrics.attributes == ("US", "GR", "IN")
    assert metrics.sums == (9, 15, 0)
    assert metrics.of("GR") == 15
    assert metrics.reports == 5
    assert metrics.simulated
    assert metrics.stddev == noise.weights.stddev
    if counts:
        assert metrics.counts == (1, 3, 0)
        assert metrics.mean("GR") == 5.0
        assert math.isnan(metrics.mean("IN"))
    else:
        assert metrics.counts is None
        with pytest.raises(ParameterError, match="not paid for"):
            metrics.mean("GR")
    with pytest.raises(ParameterError, match="asked for"):
        metrics.of("FR")


def test_vectors_have_means_too() -> None:
    noise = MasticNoise(weights=quiet(2, 1), counts=quiet(2, 1))
    plan = MasticAttributeMetrics(mastic=mastic_histogram(12, 3, 2), attributes=GROUPS, noise=noise)
    reports = plan.mastic.shard([GROUPS["IN"]] * 4 + [GROUPS["US"]], [0, 2, 2, 2, 1])
    metrics = plan.run(sides(plan, reports), rng=1)
    assert metrics.sums == ([0, 1, 0], [0, 0, 0], [1, 0, 3])
    assert metrics.mean("IN") == [0.25, 0.0, 0.75]


@cases("delta, counts", [(0.0, False), (0.0, True), (1e-6, True)])
def test_plans_meet_their_target_and_are_charged_first(delta: float, counts: bool) -> None:
    plan = MasticAttributeMetrics.calibrated(
        mastic_sum(12, 9), GROUPS, epsilon=1.0, delta=delta, counts=counts
    )
    assert 0.99 < plan.privacy_loss.epsilon(delta) <= 1.0
    assert plan.neighboring is REPLACE
    reports = plan.mastic.shard([GROUPS["US"]] * 3, [1, 2, 3])
    pair = sides(plan, reports)
    budget = Budget.zcdp(rho=1.0) if delta else Budget.pure(epsilon=1.5)
    with Ledger.open(
        None,
        budget=budget,
        privacy_unit="client",
        neighboring=REPLACE,
        dataset=Dataset(schema="reports(attribute, value)", fingerprint=lambda key: "0" * 64),
    ) as paid:
        assert not plan.run(pair, ledgers=[paid], delta=delta).simulated
        if not delta:
            again = sides(plan, reports)
            with pytest.raises(BudgetExceeded):
                plan.run(again, ledgers=[paid])
            again[0].receive(reports.nonces, reports.public_shares, reports.input_shares[0])


def test_only_this_plans_aggregators_and_whole_strings_are_answered() -> None:
    plan = MasticAttributeMetrics.calibrated(mastic_sum(12, 9), GROUPS, epsilon=1.0)
    reports = plan.mastic.shard([GROUPS["US"]] * 3, [1, 2, 3])
    exact = [MasticAggregator(plan.mastic, KEY, j, UsedVerifyKeys()) for j in range(2)]
    with pytest.raises(ParameterError, match="of this plan"):
        plan.run(exact)
    with pytest.raises(ParameterError, match="one of"):
        sides(plan, reports)[0].begin(MasticParameter.of("0", check_weights=True))


def test_attributes_are_the_first_bits_of_their_hash() -> None:
    digest = hashlib.sha256("Ελλάδα".encode()).digest()
    assert attribute_bits("Ελλάδα", 256) == "".join(f"{byte:08b}" for byte in digest)
    assert attribute_bits("Ελλάδα", 1) == str(digest[0] >> 7)


def made(**changed: Any) -> MasticAttributeMetrics:
    chosen = {
        "mastic": mastic_sum(2, 1),
        "attributes": {"a": "00"},
        "noise": MasticNoise(weights=quiet(2, 1)),
    }
    return MasticAttributeMetrics(**{**chosen, **changed})


@cases(
    "call, message",
    [
        (lambda: made(attributes={"a": "00", "b": "00"}), "different strings"),
        (lambda: made(attributes={"a": "001"}), "strings of 2 bits"),
        (lambda: made(attributes={"a": "0"}), "strings of 2 bits"),
        (lambda: made(attributes={}), "not be empty"),
        (lambda: made(attributes={"a": ""}), "strings of 2 bits"),
        (lambda: made(attributes={"a": "0x"}), "characters 0 and 1"),
        (lambda: made(attributes={"a": 5}), "attribute_bits"),
        (lambda: made(attributes={"a": None}), "attribute_bits"),
        (lambda: made(attributes={"a": ["0", "0"]}), "attribute_bits"),
        (lambda: made(attributes={5: "00"}), "name each"),
        (lambda: attribute_bits("\ud800", 2), "UTF-8"),
        (lambda: made(attributes=["00"]), "attributes"),
        (lambda: made(mastic=mastic_sum(2, 2)), "cover"),
        (lambda: made(mastic=1), "mastic"),
        (lambda: made(noise=quiet(2, 1)), "noise"),
        (lambda: made(minimum_reports=0), "minimum_reports"),
        (lambda: made().run([]), "sides"),
        (lambda: attribute_bits("a", 257), "256"),
        (lambda: attribute_bits(b"a", 2), "attribute"),  # type: ignore[arg-type]
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
