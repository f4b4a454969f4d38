"""The test of fit: its law exactly, how often honest reports fail it, and which forged ones do."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import local
from sfumato.errors import ParameterError
from sfumato.local import Domain
from tests.local.frequency.test_exact_variance import DRAWN, KINDS, oracle_of

SKETCHES: Final = {local.CountMeanSketch, local.HadamardCountMeanSketch}
EXACT: Final = [kind for kind in KINDS if kind not in DRAWN]
OUE: Final = local.OptimizedUnaryEncoding(epsilon=1.0, domain=Domain(range(100)))


def estimates(oracle: Any, records: Any) -> list[Any]:
    """The estimate of each report by itself."""
    return [oracle.estimate(oracle.tally(record[None]), 1) for record in records]


def test_the_sum_has_the_stated_mean_and_variance_whatever_is_true() -> None:
    for kind in EXACT:
        oracle = oracle_of(kind, 2.0)
        name = kind.__name__
        for code in (0, 1, len(oracle.domain) - 1):
            distribution = oracle.device.probabilities(code)
            records = np.frombuffer(b"".join(distribution), np.uint8).reshape(len(distribution), -1)
            chances = np.array([float(chance) for chance in distribution.values()])
            found = estimates(oracle, records)
            totals = np.array([one.error_model.total(one.raw) for one in found])
            assert chances @ totals == pytest.approx(1.0, abs=1e-9), name
            variance = chances @ (totals - 1) ** 2
            stated = found[0].error_model.sum_variance(len(oracle.domain))
            assert variance <= stated + 1e-9, name
            if kind is not local.ProjectiveGeometryResponse:
                assert variance == pytest.approx(stated, rel=1e-9, abs=1e-9), name
            parts = np.array([one.raw for one in found])
            assert oracle.error_model.reach == pytest.approx((parts.min(), parts.max()), rel=1e-9), name


def test_the_sum_of_drawn_reports_has_the_stated_variance() -> None:
    each, groups = 20, 1500
    for kind in sorted(DRAWN - SKETCHES, key=lambda one: str(one.__name__)):
        oracle = oracle_of(kind, 2.0)
        records = oracle.randomize_batch(np.full(each * groups, 3), 5).records.reshape(groups, each, -1)
        sums = np.array([oracle.shares(oracle.tally(group), each).sum() for group in records])
        stated = oracle.error_model.sum_variance(len(oracle.domain))
        assert sums.var() * each == pytest.approx(stated, rel=0.2), kind.__name__
        assert sums.mean() == pytest.approx(1.0, abs=6 * np.sqrt(stated / each / groups)), kind.__name__


def test_honest_reports_rarely_fail() -> None:
    # Of 40 estimates each 2 fail on average at 5 %: 11 or more are less likely than 1 in a million.
    for kind in KINDS:
        oracle = oracle_of(kind, 1.0)
        counts = np.zeros(len(oracle.domain), np.int64)
        counts[[1, 3]] = 6000, 4000
        found = [oracle.simulate(counts, seed).fit for seed in range(40)]
        if kind in SKETCHES:
            assert found == [None] * 40
        else:
            assert sum(fit.rejected(0.05) for fit in found) <= 10, kind.__name__
            assert min(fit.p_value for fit in found) < 1
            assert not found[0].rejected()


def counted(oracle: Any, honest: NDArray[np.int64], forged: NDArray[np.uint8]) -> Any:
    aggregator = oracle.aggregator()
    aggregator.add_batch(oracle.randomize_batch(honest, 1))
    oracle.device.layout.stamp(forged)
    assert aggregator.add_batch(forged) == len(forged)  # all of them are well-formed
    return aggregator.estimate()


def test_reports_with_all_bits_set_do_not_pass_in_silence() -> None:
    honest = np.arange(9500) % 100
    estimate = counted(OUE, honest, np.full((500, OUE.device.width), 255, np.uint8))
    assert estimate.reports == 10_000
    assert estimate.fit.total > 15
    assert estimate.fit.rejected(1e-9)
    assert str(estimate.fit).startswith("reports do not fit the protocol: the shares sum to 1")
    none = counted(OUE, honest, np.zeros((500, OUE.device.width), np.uint8))
    assert none.fit.total < -4
    assert none.fit.rejected(1e-9)
    assert not counted(OUE, honest, np.zeros((0, OUE.device.width), np.uint8)).fit.rejected()


def test_forged_columns_and_categories_are_found_by_the_sum_or_the_lowest_share() -> None:
    hadamard = local.HadamardResponse(epsilon=3.0, domain=Domain(range(100)))
    first = np.zeros((500, hadamard.device.width), np.uint8)  # column 0 of the first matrix: all its rows
    estimate = counted(hadamard, np.arange(9500) % 100, first)
    assert estimate.fit.rejected(1e-9)
    assert estimate.fit.total > 2
    response = local.RandomizedResponse(epsilon=1.0, domain=Domain(range(4)))
    named = counted(response, np.full(5000, 1), np.zeros((5000, response.device.width), np.uint8))
    assert named.fit.stddev == 0.0
    assert named.fit.total == pytest.approx(1.0)
    assert named.fit.lowest < -10
    assert named.fit.rejected(1e-9)
    assert "always 1" in str(named.fit)


def test_who_reports_as_an_honest_device_passes() -> None:
    honest = np.arange(9500) % 100
    forged = OUE.randomize_batch(np.full(500, 7), 2).records.copy()
    estimate = counted(OUE, honest, forged)
    assert not estimate.fit.rejected()
    # It moved the share of its choice by 500 people, which no test sees.
    assert estimate.raw[7] == pytest.approx(0.06, abs=7 * estimate.stddev[7])


def test_the_bias_of_forgers_is_what_the_worst_reports_add() -> None:
    people = np.where(np.arange(10_000) < 500, 7, np.arange(10_000) % 100)  # the forgers come first
    reports = OUE.randomize_batch(people, 1).records
    honest = OUE.aggregator()
    honest.add_batch(reports)
    before = honest.estimate()
    low, high, _ = before.forged_bias(500)
    one = before.forged_bias()
    assert (500 * one.lower, 500 * one.upper) == pytest.approx((low, high))
    others = np.arange(100) != 7
    for byte in (255, 0):
        changed = OUE.aggregator()
        changed.add_batch(reports[500:])
        forged = np.full((500, OUE.device.width), byte, np.uint8)
        OUE.device.layout.stamp(forged)
        changed.add_batch(forged)
        moved = changed.estimate().raw - before.raw
        spare = 7 * before.stddev * np.sqrt(500 / 10_000)
        assert (moved <= high + spare).all()
        assert (moved >= low - spare).all()
        if byte:
            assert moved[others].mean() == pytest.approx(high, rel=0.03)
        else:
            assert moved[7] == pytest.approx(low, abs=spare[7])
            assert moved[7] < 1.3 * moved[others].min()
    assert before.forged_bias(0).upper == 0
    with pytest.raises(ParameterError, match="forgers must be at most the reports, got 10001"):
        before.forged_bias(10_001)
    table = local.SampledAttribute(epsilon=1.0, domains=(Domain(range(2)), Domain(range(3))))
    part = table.aggregator().estimate()[0]
    assert part.fit is None
    with pytest.raises(ParameterError, match="forged_bias must be of a protocol with known parts"):
        part.forged_bias(0)
    nobody = OUE.aggregator().estimate()
    assert nobody.fit is None
    assert nobody.forged_bias(0).upper == 0
    assert before.fit is not None
    with pytest.raises(ParameterError, match="false_positive_rate"):
        before.fit.rejected(0.0)


def test_p_values_are_bounds_for_one_report_and_for_few() -> None:
    rates = (1e-4, 1e-3, 0.01, 0.05, 0.2)
    for epsilon in (0.3, 9.0):
        for kind in EXACT:
            oracle = oracle_of(kind, epsilon)
            distribution = oracle.device.probabilities(1)
            records = np.frombuffer(b"".join(distribution), np.uint8).reshape(len(distribution), -1)
            chances = np.array([float(chance) for chance in distribution.values()])
            found = np.array([one.fit.p_value for one in estimates(oracle, records)])
            for rate in rates:
                assert chances[found < rate].sum() <= rate, (kind.__name__, epsilon, rate)
    # Of five reports too: by the normal distribution 11 of 400 were rejected at one in a thousand.
    asked = local.BitFlip(epsilon=1.0, domain=Domain(range(60)), asked=3)
    few = [asked.simulate([5] + [0] * 59, seed).fit for seed in range(400)]
    assert sum(one is not None and one.rejected() for one in few) <= 2
