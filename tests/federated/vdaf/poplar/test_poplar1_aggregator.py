"""An aggregator of Poplar1 counts every report once at a level, whatever is sent again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import (
    AggregationParameter,
    AggregatorNoise,
    Poplar1,
    Poplar1Aggregator,
    ShardedReports,
    UsedVerifyKeys,
)
from sfumato.federated.vdaf.poplar.poplar1_aggregator import PREFIX_SHIFT
from sfumato.mechanisms import Laplace
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.privacy import Neighboring

POPLAR = Poplar1(4, b"app")
KEY = bytes(range(32))
TEXTS = ["0110", "0111", "1010", "0110"]
asked = AggregationParameter.of
Flags = np.ndarray[Any, np.dtype[np.bool_]]


def pair(**options: Any) -> list[Poplar1Aggregator]:
    return [Poplar1Aggregator(POPLAR, KEY, j, UsedVerifyKeys(), **options) for j in range(2)]


def receive(sides: list[Poplar1Aggregator], reports: ShardedReports) -> None:
    for j, side in enumerate(sides):
        side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])


def decided(sides: list[Poplar1Aggregator], parameter: AggregationParameter) -> Flags:
    begun = [side.begin(parameter) for side in sides]
    opened, sound = POPLAR.verifier_shares_to_message(parameter, begun)
    answers = [side.answer(opened, sound) for side in sides]
    messages, passed = POPLAR.verifier_shares_to_message(parameter, answers)
    agreed: Flags = np.logical_and.reduce([side.decide(messages, passed) for side in sides])
    return agreed


def counts(sides: list[Poplar1Aggregator], parameter: AggregationParameter) -> list[int]:
    agreed = decided(sides, parameter)
    for side in sides:
        side.count(agreed)
    return POPLAR.unshard(parameter, [side.aggregate_share() for side in sides])


def test_another_string_moves_two_counts_by_one() -> None:
    parameter, worst = asked("00", "01", "11"), np.zeros(4, np.int64)
    rows = []
    for text in ("0000", "0100", "1000", "1100"):
        sides = pair()
        receive(sides, POPLAR.shard([text]))
        rows.append(counts(sides, parameter))
    for first in rows:
        for second in rows:
            move = np.abs(np.subtract(first, second))
            worst = np.maximum(worst, [(move > 0).sum(), move.sum(), (move**2).sum(), move.max()])
    told = (PREFIX_SHIFT.l0, PREFIX_SHIFT.l1, PREFIX_SHIFT.l2_squared, PREFIX_SHIFT.linf)
    assert told == tuple(worst.tolist())


def test_overlapping_batches_count_each_report_once() -> None:
    sides, reports = pair(), POPLAR.shard(TEXTS)
    assert [side.reports for side in sides] == [0, 0]
    receive(sides, reports)
    half = ShardedReports(
        reports.nonces[:2], reports.public_shares[:2], tuple(each[:2] for each in reports.input_shares)
    )
    receive(sides, half)
    assert decided(sides, asked("0", "1")).tolist() == [True] * 4 + [False] * 2
    for side in sides:
        side.count(np.array([True] * 4 + [False] * 2))
    assert POPLAR.unshard(asked("0", "1"), [side.aggregate_share() for side in sides]) == [3, 1]
    assert counts(sides, asked("011", "101")) == [3, 1]
    assert [side.reports for side in sides] == [4, 4]


def test_batches_of_unequal_rows_are_refused_and_leave_nothing() -> None:
    sides, reports = pair(), POPLAR.shard(TEXTS)
    parts = (reports.nonces, reports.public_shares, reports.input_shares[0])
    for short in range(3):
        with pytest.raises(ParameterError, match="one row for each report"):
            sides[0].receive(*(part[: 2 + (i == short)] for i, part in enumerate(parts)))
    receive(sides, reports)
    assert counts(sides, asked("0", "1")) == [3, 1]


def test_no_prefixes_are_no_counts() -> None:
    sides = pair()
    receive(sides, POPLAR.shard(TEXTS))
    assert counts(sides, AggregationParameter.from_bytes(bytes(6))) == []
    assert sides[0].reports == 4


def test_a_second_report_under_a_nonce_shows_nothing() -> None:
    side, reports = pair()[0], POPLAR.shard(TEXTS[:2])
    nonces = reports.nonces[[0, 0]]
    side.receive(nonces, reports.public_shares, reports.input_shares[0])
    shares = side.begin(asked("0"))
    assert shares[0].any()
    assert not shares[1].any()
    answers = side.answer(np.zeros((2, 24), np.uint8), np.ones(2, np.bool_))
    assert not answers[1].any()
    assert side.decide(np.zeros((2, 0), np.uint8), np.ones(2, np.bool_)).tolist() == [True, False]


def test_a_report_that_was_refused_is_out_at_later_levels() -> None:
    sides, reports = pair(), POPLAR.shard(TEXTS)
    reports.input_shares[0][1, 48] ^= 1  # what masks the first level
    receive(sides, reports)
    assert counts(sides, asked("0", "1")) == [2, 1]
    shares = [side.begin(asked("011")) for side in sides]
    assert all(not share[1].any() and share[0].any() for share in shares)
    opened, sound = POPLAR.verifier_shares_to_message(asked("011"), shares)
    assert not any(side.answer(opened, sound)[1].any() for side in sides)


def test_a_report_that_failed_the_first_round_gets_no_answer() -> None:
    side, reports = pair()[1], POPLAR.shard(TEXTS[:2])
    side.receive(reports.nonces, reports.public_shares, reports.input_shares[1])
    opened = side.begin(asked("0"))
    answers = side.answer(opened, np.array([False, True]))
    assert not answers[0].any()
    assert answers[1].any()


def test_parameters_must_follow_one_another() -> None:
    sides = pair(levels=(0, 2, 3))
    receive(sides, POPLAR.shard(TEXTS))
    with pytest.raises(ParameterError, match="one of"):
        sides[0].begin(asked("01"))
    assert counts(sides, asked("0")) == [3]
    for wrong in (asked("0"), asked("1"), asked("011", "100")):
        with pytest.raises(ParameterError, match="follow the last"):
            sides[0].begin(wrong)
    assert counts(sides, asked("010", "011")) == [0, 3]
    with pytest.raises(ParameterError, match="level"):
        sides[0].begin(asked("01101"))


def test_a_share_is_given_out_once_with_noise_and_above_the_minimum() -> None:
    one = Laplace(sensitivity=1, scale=9, l0=2, neighboring=Neighboring.REPLACE_ONE)
    noise = AggregatorNoise(mechanism=one, shift=Shift.entries(2, 1))
    sides, parameter = pair(noise=noise, minimum_reports=4), asked("0", "1")
    receive(sides, POPLAR.shard(TEXTS))
    agreed = decided(sides, parameter)
    for side in sides:
        side.count(agreed)
    shares = [side.aggregate_share(rng=j) for j, side in enumerate(sides)]
    drawn = [noise.draw(2, rng=j) for j in range(2)]
    assert any(drawn[0])
    assert any(drawn[1])
    assert POPLAR.unshard(parameter, shares, signed=True) == [
        count + a + b for count, a, b in zip([3, 1], *drawn, strict=True)
    ]
    with pytest.raises(ParameterError, match="no share waits"):
        sides[0].aggregate_share()
    few = pair(minimum_reports=5)
    receive(few, POPLAR.shard(TEXTS))
    with pytest.raises(ParameterError, match="at least 5"):
        counts(few, parameter)


def test_steps_out_of_order() -> None:
    side, reports = pair()[0], POPLAR.shard(TEXTS[:2])
    one, none = np.ones(2, np.bool_), np.zeros((2, 0), np.uint8)
    with pytest.raises(ParameterError, match="follow count"):
        side.aggregate_share()
    with pytest.raises(ParameterError, match="follow begin"):
        side.answer(none, one)
    with pytest.raises(ParameterError, match="public_shares"):
        side.receive(reports.nonces, reports.public_shares[:, 1:], reports.input_shares[0])
    side.receive(reports.nonces, reports.public_shares, reports.input_shares[0])
    shares = side.begin(asked("0"))
    with pytest.raises(ParameterError, match="before begin"):
        side.receive(reports.nonces, reports.public_shares, reports.input_shares[0])
    with pytest.raises(ParameterError, match="follow answer"):
        side.decide(none, one)
    with pytest.raises(ParameterError, match="one boolean"):
        side.answer(shares, one[:1])
    side.answer(shares, np.array([True, False]))
    with pytest.raises(ParameterError, match="follow begin"):
        side.answer(shares, one)
    with pytest.raises(ParameterError, match="follow decide"):
        side.count(one)
    assert side.decide(none, one).tolist() == [True, False]
    with pytest.raises(ParameterError, match="follow answer"):
        side.decide(none, one)
    with pytest.raises(ParameterError, match="follow count"):
        side.begin(asked("01"))
    with pytest.raises(ParameterError, match="accepted here"):
        side.count(one)
    side.count(np.array([True, False]))
    assert side.reports == 1


def test_without_reports_there_is_no_share() -> None:
    with pytest.raises(ParameterError, match="at least 1"):
        counts(pair(), asked("0", "1"))


def test_keys_and_parameters() -> None:
    used = UsedVerifyKeys()
    Poplar1Aggregator(POPLAR, KEY, 0, used)
    with pytest.raises(ParameterError, match="used before"):
        Poplar1Aggregator(POPLAR, KEY, 1, used)
    with pytest.raises(ParameterError, match="verify_key"):
        Poplar1Aggregator(POPLAR, bytes(31), 1, used)
    with pytest.raises(ParameterError, match="aggregator"):
        Poplar1Aggregator(POPLAR, bytes(32), 2, used)
    with pytest.raises(ParameterError, match="minimum_reports"):
        Poplar1Aggregator(POPLAR, bytes(32), 0, used, minimum_reports=0)
    with pytest.raises(ParameterError, match="poplar1"):
        Poplar1Aggregator(1, bytes(32), 0, used)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="used_keys"):
        Poplar1Aggregator(POPLAR, bytes(32), 0, set())  # type: ignore[arg-type]
    one = Laplace(sensitivity=1, scale=9, neighboring=Neighboring.REPLACE_ONE)
    both = Laplace(sensitivity=1, scale=9, l0=2, neighboring=Neighboring.REPLACE_ONE)
    weak = AggregatorNoise(mechanism=one, shift=Shift.entries(1, 1))
    three = AggregatorNoise(mechanism=both, shift=Shift.entries(2, 1), shares=3)
    for noise in (weak, three):
        with pytest.raises(ParameterError, match="cover"):
            Poplar1Aggregator(POPLAR, bytes(32), 0, used, noise=noise)
    with pytest.raises(ParameterError, match="noise"):
        Poplar1Aggregator(POPLAR, bytes(32), 0, used, noise=one)  # type: ignore[arg-type]
    Poplar1Aggregator(POPLAR, bytes(32), 0, used)  # what was refused has claimed nothing
