"""An aggregator counts every report once, whatever is sent again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import Prio3Aggregator, ShardedReports, UsedVerifyKeys, prio3_histogram

PRIO3 = prio3_histogram(3, 2)
KEY = bytes(range(32))
Flags = np.ndarray[Any, np.dtype[np.bool_]]


def pair() -> list[Prio3Aggregator]:
    return [Prio3Aggregator(PRIO3, KEY, j, UsedVerifyKeys()) for j in range(2)]


def part(reports: ShardedReports, rows: list[int]) -> ShardedReports:
    shares = tuple(share[rows] for share in reports.input_shares)
    return ShardedReports(reports.nonces[rows], reports.public_shares[rows], shares)


def decided(sides: list[Prio3Aggregator], reports: ShardedReports) -> list[Flags]:
    shares = [
        side.begin(reports.nonces, reports.public_shares, reports.input_shares[j])
        for j, side in enumerate(sides)
    ]
    messages, passed = PRIO3.verifier_shares_to_message(shares)
    return [side.decide(messages, passed) for side in sides]


def run(sides: list[Prio3Aggregator], reports: ShardedReports) -> list[bool]:
    agreed = np.logical_and.reduce(decided(sides, reports))
    for side in sides:
        side.count(agreed)
    return list(agreed.tolist())


def test_overlapping_batches_count_each_report_once() -> None:
    sides, reports = pair(), PRIO3.shard([0, 1, 2, 2])
    assert run(sides, part(reports, [0, 1, 1])) == [True, True, False]
    assert run(sides, part(reports, [1, 2, 3, 0])) == [False, True, True, False]
    assert PRIO3.unshard([side.aggregate_share() for side in sides]) == [1, 1, 2]
    assert [side.reports for side in sides] == [4, 4]


def test_no_report_is_in_two_sums() -> None:
    sides, reports = pair(), PRIO3.shard([0, 1, 2])
    run(sides, part(reports, [0, 1]))
    assert PRIO3.unshard([side.aggregate_share() for side in sides]) == [1, 1, 0]
    run(sides, part(reports, [0, 1, 2]))
    assert PRIO3.unshard([side.aggregate_share() for side in sides]) == [0, 0, 1]


def test_a_nonce_of_a_rejected_report_is_used_up() -> None:
    sides, reports = pair(), PRIO3.shard([0])
    good = reports.input_shares[0].copy()
    reports.input_shares[0][0, 0] ^= 1
    assert run(sides, reports) == [False]
    assert run(
        sides, ShardedReports(reports.nonces, reports.public_shares, (good, reports.input_shares[1]))
    ) == [False]


def test_a_second_share_under_a_nonce_shows_nothing() -> None:
    side, reports = pair()[0], PRIO3.shard([0, 1])
    first = side.begin(reports.nonces[:1], reports.public_shares[:1], reports.input_shares[0][:1])
    assert first.any()
    messages = np.zeros((1, PRIO3.message_size), np.uint8)
    assert not side.decide(messages, np.ones(1, np.bool_)).any()
    side.count(np.zeros(1, np.bool_))
    second = side.begin(reports.nonces[:1], reports.public_shares[1:], reports.input_shares[0][1:])
    assert not second.any()


def test_a_key_serves_once() -> None:
    used = UsedVerifyKeys()
    Prio3Aggregator(PRIO3, KEY, 0, used)
    with pytest.raises(ParameterError, match="used before"):
        Prio3Aggregator(PRIO3, KEY, 0, used)
    Prio3Aggregator(PRIO3, bytes(32), 0, used)


def test_steps_out_of_order_and_reports_that_were_not_accepted() -> None:
    sides, reports = pair(), PRIO3.shard([0, 1])
    one = np.ones(2, np.bool_)
    messages = np.zeros((2, PRIO3.message_size), np.uint8)
    with pytest.raises(ParameterError, match="follow begin"):
        sides[0].decide(messages, one)
    with pytest.raises(ParameterError, match="follow decide"):
        sides[0].count(one)
    reports.input_shares[0][1, :16] = 255
    assert decided(sides, reports)[0].tolist() == [True, False]
    with pytest.raises(ParameterError, match="follow count"):
        sides[0].begin(reports.nonces, reports.public_shares, reports.input_shares[0])
    with pytest.raises(ParameterError, match="accepted here"):
        sides[0].count(one)
    with pytest.raises(ParameterError, match="one boolean"):
        sides[0].count(one[:1])
    sides[0].count(np.array([True, False]))
    assert sides[0].reports == 1
