"""An aggregator of Mastic sums every report once at a level, checks weights first, and hides counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import (
    MasticAggregator,
    MasticNoise,
    MasticParameter,
    ShardedReports,
    UsedVerifyKeys,
    mastic_count,
    mastic_sum,
)
from sfumato.numerics.randomness.source import random_source

MASTIC = mastic_sum(4, 7, context=b"app")
KEY = bytes(range(32))
TEXTS, WEIGHTS = ["0110", "0111", "1010", "0110"], [3, 7, 5, 1]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


def asked(*prefixes: str, first: bool = False) -> MasticParameter:
    return MasticParameter.of(*prefixes, check_weights=first)


def pair(**options: Any) -> list[MasticAggregator]:
    return [MasticAggregator(MASTIC, KEY, j, UsedVerifyKeys(), **options) for j in range(2)]


def receive(sides: list[MasticAggregator], reports: ShardedReports) -> None:
    for j, side in enumerate(sides):
        side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])


def decided(sides: list[MasticAggregator], parameter: MasticParameter) -> Flags:
    messages, passed = MASTIC.verifier_shares_to_message(parameter, [side.begin(parameter) for side in sides])
    agreed: Flags = np.logical_and.reduce([side.decide(messages, passed) for side in sides])
    return agreed


def shares(sides: list[MasticAggregator], parameter: MasticParameter) -> list[bytes]:
    agreed = decided(sides, parameter)
    for side in sides:
        side.count(agreed)
    return [side.aggregate_share() for side in sides]


def test_overlapping_batches_and_replayed_nonces_count_once() -> None:
    sides, reports = pair(), MASTIC.shard(TEXTS, WEIGHTS)
    receive(sides, reports)
    half = ShardedReports(
        reports.nonces[:2], reports.public_shares[:2], tuple(each[:2] for each in reports.input_shares)
    )
    receive(sides, half)
    first = asked("0", "1", first=True)
    assert decided(sides, first).tolist() == [True] * 4 + [False] * 2
    for side in sides:
        side.count(np.array([True] * 4 + [False] * 2))
    assert MASTIC.unshard(first, [side.aggregate_share() for side in sides]) == [11, 5]
    assert [side.reports for side in sides] == [4, 4]
    later = asked("011", "101")
    begun = [side.begin(later) for side in sides]
    assert all(not share[4:].any() and share[:4].any(axis=1).all() for share in begun)


def test_a_report_that_was_refused_is_out_at_later_levels() -> None:
    sides, reports = pair(), MASTIC.shard(TEXTS, WEIGHTS)
    reports.input_shares[0][1, 16] ^= 1  # the proof of its weight
    receive(sides, reports)
    first = asked("0", "1", first=True)
    assert MASTIC.unshard(first, shares(sides, first)) == [4, 5]
    begun = [side.begin(asked("011", "101")) for side in sides]
    assert all(not share[1].any() and share[0].any() for share in begun)


def test_weights_are_checked_first_and_levels_rise() -> None:
    sides = pair(levels=(0, 2, 3))
    receive(sides, MASTIC.shard(TEXTS, WEIGHTS))
    with pytest.raises(ParameterError, match="check weights first"):
        sides[0].begin(asked("0"))
    with pytest.raises(ParameterError, match="one of"):
        sides[0].begin(asked("01", first=True))
    first = asked("0", first=True)
    assert MASTIC.unshard(first, shares(sides, first)) == [11]
    for wrong in (asked("0"), asked("011", first=True), first):
        with pytest.raises(ParameterError, match="follow the last"):
            sides[0].begin(wrong)
    assert MASTIC.unshard(asked("101"), shares(sides, asked("101"))) == [5]
    with pytest.raises(ParameterError, match="level"):
        sides[0].begin(asked("01101"))


def test_shares_have_noise_and_counters_only_where_they_are_paid_for() -> None:
    parameter = asked("0", "1", first=True)
    for counts in (True, False):
        noise = MasticNoise.calibrated(MASTIC, epsilon=1.0, counts=counts)
        sides = pair(noise=noise, minimum_reports=4)
        receive(sides, MASTIC.shard(TEXTS, WEIGHTS))
        agreed = decided(sides, parameter)
        for side in sides:
            side.count(agreed)
        with pytest.raises(ParameterError, match="rng"):
            sides[0].aggregate_share(rng="0")  # type: ignore[arg-type]
        given = [side.aggregate_share(rng=j) for j, side in enumerate(sides)]
        sums = MASTIC.unshard(parameter, given, signed=True)
        drawn = [noise.weights.draw(2, source) for source in map(random_source, range(2))]
        assert sums == [exact + a + b for exact, a, b in zip([11, 5], *drawn, strict=True)]
        found = MASTIC.counts(parameter, given, signed=True)
        if counts:
            assert max(abs(number) for number in found) < 1000
        else:  # uniform among 2^64: below 1,000 with a probability of 2^-52
            assert min(abs(number) for number in found) > 1000
        with pytest.raises(ParameterError, match="no share waits"):
            sides[0].aggregate_share()


def test_hidden_counters_are_fresh_each_time_though_the_noise_has_a_seed() -> None:
    parameter, seen = asked("0", first=True), set()
    noise = MasticNoise.calibrated(MASTIC, epsilon=1.0)
    for _ in range(2):
        sides = pair(noise=noise)
        receive(sides, MASTIC.shard(TEXTS, WEIGHTS))
        agreed = decided(sides, parameter)
        for side in sides:
            side.count(agreed)
        seen.add(MASTIC.counts(parameter, [side.aggregate_share(rng=5) for side in sides])[0])
    assert len(seen) == 2  # alike with a probability of 2^-64


def test_steps_out_of_order() -> None:
    side, reports = pair()[0], MASTIC.shard(TEXTS[:2], WEIGHTS[:2])
    one, none = np.ones(2, np.bool_), np.zeros((2, 0), np.uint8)
    with pytest.raises(ParameterError, match="follow count"):
        side.aggregate_share()
    with pytest.raises(ParameterError, match="follow begin"):
        side.decide(none, one)
    side.receive(reports.nonces, reports.public_shares, reports.input_shares[0])
    side.begin(asked("0", first=True))
    with pytest.raises(ParameterError, match="before begin"):
        side.receive(reports.nonces, reports.public_shares, reports.input_shares[0])
    with pytest.raises(ParameterError, match="follow decide"):
        side.count(one)
    assert side.decide(none, np.array([True, False])).tolist() == [True, False]
    with pytest.raises(ParameterError, match="follow begin"):
        side.decide(none, one)
    with pytest.raises(ParameterError, match="follow count"):
        side.begin(asked("01"))
    with pytest.raises(ParameterError, match="accepted here"):
        side.count(one)
    side.count(np.array([True, False]))
    assert side.reports == 1


def test_too_few_reports_give_no_share() -> None:
    sides = pair(minimum_reports=5)
    receive(sides, MASTIC.shard(TEXTS, WEIGHTS))
    with pytest.raises(ParameterError, match="at least 5"):
        shares(sides, asked("0", first=True))
    with pytest.raises(ParameterError, match="at least 1"):
        shares(pair(), asked("0", first=True))


def test_keys_and_parameters() -> None:
    used = UsedVerifyKeys()
    MasticAggregator(MASTIC, KEY, 0, used)
    with pytest.raises(ParameterError, match="used before"):
        MasticAggregator(MASTIC, KEY, 1, used)
    with pytest.raises(ParameterError, match="aggregator"):
        MasticAggregator(MASTIC, bytes(32), 2, used)
    with pytest.raises(ParameterError, match="mastic"):
        MasticAggregator(1, bytes(32), 0, used)  # type: ignore[arg-type]
    for levels in (5, "01", [0.5]):
        with pytest.raises(ParameterError, match="levels"):
            MasticAggregator(MASTIC, bytes(32), 0, used, levels=levels)  # type: ignore[arg-type]
    weak = MasticNoise.calibrated(mastic_count(4), epsilon=1.0)
    with pytest.raises(ParameterError, match="cover"):
        MasticAggregator(MASTIC, bytes(32), 0, used, noise=weak)
    with pytest.raises(ParameterError, match="noise"):
        MasticAggregator(MASTIC, bytes(32), 0, used, noise=weak.weights)  # type: ignore[arg-type]
    MasticAggregator(MASTIC, bytes(32), 0, used)  # what was refused has claimed nothing
