"""Aggregators count whatever comes, merge exactly, and tell accepted from refused."""

from __future__ import annotations

import pickle
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.local import (
    BitFlip,
    Domain,
    OptimizedUnaryEncoding,
    ProjectiveGeometryResponse,
    RandomizedResponse,
    ReportBatch,
)
from sfumato.local.base.aggregator import REASONS
from sfumato.local.baselines import SummationHistogram
from tests.cases import cases

ORACLE = RandomizedResponse(epsilon=1.0, domain=Domain(range(1000)))
VALUES = np.arange(3000) % 1000


def filled(seed: int, n: int = 3000) -> Any:
    made = ORACLE.aggregator()
    made.add_batch(ORACLE.randomize_batch(VALUES[:n], seed))
    return made


def test_one_by_one_or_in_batches_or_as_bytes() -> None:
    batch = ORACLE.randomize_batch(VALUES, 1)
    whole, single, raw, written = (ORACLE.aggregator() for _ in range(4))
    assert whole.add_batch(batch) == 3000
    assert all(single.add(record) for record in batch)
    assert raw.add_batch(batch.records) == 3000
    assert written.add_batch(batch.to_bytes()) == 3000
    for other in (single, raw, written):
        assert other.totals.tolist() == whole.totals.tolist()
        assert other.accepted == 3000
    assert whole.simulated
    assert written.simulated
    assert not raw.simulated
    assert whole.estimate().simulated
    assert not ORACLE.aggregator().simulated


def test_merging_is_associative_and_state_comes_back() -> None:
    a, b, c = filled(1), filled(2, 7), filled(3, 0)
    b.add(b"x")
    left = ORACLE.aggregator().merge(a).merge(b).merge(c)
    right = ORACLE.aggregator(a.to_bytes()).merge(ORACLE.aggregator(b.to_bytes()).merge(c.to_bytes()))
    assert left.to_bytes() == right.to_bytes()
    assert left.accepted == 3007
    assert left.refused == {"width": 1, "specification": 0, "encoding": 0}
    assert left.simulated


def test_oracles_and_reports_travel_between_processes() -> None:
    oracle, batch = pickle.loads(pickle.dumps((ORACLE, ORACLE.randomize_batch(VALUES, 1))))
    assert oracle == ORACLE
    assert oracle.aggregator(filled(1).to_bytes()).add_batch(batch) == 3000


def test_states_of_others_are_refused() -> None:
    state = filled(1).to_bytes()
    other = RandomizedResponse(epsilon=1.1, domain=Domain(range(1000)))
    for oracle, data in [
        (ORACLE, state[:-1]),
        (ORACLE, state + b"x"),
        (ORACLE, b""),
        (ORACLE, b"x" + state[1:]),
        (ORACLE, state[:8] + b"\x09" + state[9:]),
        (other, state),
    ]:
        with pytest.raises(ParameterError, match="state must be"):
            oracle.aggregator(data)
    mine = other.aggregator()
    with pytest.raises(ParameterError, match="other must count the same"):
        mine.merge(filled(1))
    assert mine.accepted == 0


def test_what_is_refused_is_counted_by_reason() -> None:
    made = ORACLE.aggregator()
    good = ORACLE.randomize(5, 1)
    other = RandomizedResponse(epsilon=2.0, domain=Domain(range(1000))).randomize_batch(VALUES[:40], 1)
    beyond = ORACLE.device.layout.pack(np.arange(1000, 1024, dtype=np.uint64))
    assert all(made.add(kind(good)) for kind in (bytes, bytearray, memoryview))
    for record in (b"", good + good, good[:1], good + b"\0", "text", None):
        assert not made.add(record)  # type: ignore[arg-type]
    assert made.refused["width"] == 6
    assert made.add_batch(other) == 0
    assert made.refused["specification"] == 40
    assert made.add_batch(beyond) == 0
    assert made.refused["encoding"] == 24
    assert made.add_batch(np.zeros((7, 3), np.uint8)) == 0
    assert made.add_batch(ORACLE.randomize_batch(VALUES, 1).to_bytes()[:-1]) == 0
    assert made.refused == {"width": 14, "specification": 40, "encoding": 24}
    assert made.accepted == 3
    with pytest.raises(ParameterError, match="reports must be"):
        made.add_batch([1, 2])  # type: ignore[arg-type]


def test_a_tag_tells_most_single_records_of_others() -> None:
    made = ORACLE.aggregator()
    for epsilon in np.linspace(1.1, 3, 60):
        made.add(RandomizedResponse(epsilon=epsilon, domain=Domain(range(1000))).randomize(1, 1))
    assert made.refused["specification"] >= 50  # 6 bits of tag


@given(st.binary(max_size=200), st.integers(0, 4), st.integers(0, 40))
def test_no_bytes_are_a_crash(data: bytes, width: int, at: int) -> None:
    made = ORACLE.aggregator()
    made.add(data)
    made.add_batch(data)
    whole = bytearray(ORACLE.randomize_batch(VALUES[:20], 1).to_bytes())
    whole[at : at + len(data)] = data
    made.add_batch(bytes(whole))
    rows = len(data) // width if width else 0
    made.add_batch(np.frombuffer(data[: rows * width], np.uint8).reshape(rows, width))
    assert made.accepted == made.totals.sum()
    assert set(made.refused) == set(REASONS)
    estimate = made.estimate()
    assert len(estimate.frequencies) == 1000
    assert len(estimate.interval().lower) == 1000


def test_batches_of_batches_count_alike() -> None:
    parts = [ORACLE.randomize_batch(VALUES, seed) for seed in range(3)]
    one, many = ORACLE.aggregator(), ORACLE.aggregator()
    one.add_batch(ReportBatch.concatenated(parts).shuffled(9))
    for part in parts:
        many.add_batch(part)
    assert one.totals.tolist() == many.totals.tolist()


HEADER = struct.Struct("<8sHB32sQ3QQ")


def forged(made: Any, place: int, value: int, totals: object = None) -> bytes:
    """The state of an aggregator with one entry of its header exchanged, and other totals."""
    state = made.to_bytes()
    header = list(HEADER.unpack_from(state))
    header[place] = value
    rest = state[HEADER.size :] if totals is None else np.asarray(totals, "<i8").tobytes()
    return HEADER.pack(*header) + rest


@cases(("place", "value"), [(2, 2), (2, 255), (4, 2**64 - 1), (4, 2**62), (5, 2**63), (7, 2**62), (4, 0)])
def test_forged_counts_are_refused(place: int, value: int) -> None:
    with pytest.raises(ParameterError, match="state must hold counts that reports add up to"):
        ORACLE.aggregator(forged(filled(1), place, value))


@cases("total", [-1, 3001, 2**63 - 1, -(2**63)])
@cases("kind", [RandomizedResponse, OptimizedUnaryEncoding, ProjectiveGeometryResponse, BitFlip])
def test_forged_totals_are_refused(kind: Any, total: int) -> None:
    oracle = kind(epsilon=1.0, domain=Domain(range(5)))
    made = oracle.aggregator()
    made.add_batch(oracle.randomize_batch(VALUES % 5, 1))
    totals = made.totals
    totals[-1] = total
    with pytest.raises(ParameterError, match="state must hold counts that reports add up to"):
        oracle.aggregator(forged(made, 4, 3000, totals))


def test_sums_that_would_overflow_are_refused_and_nothing_is_added() -> None:
    oracle = SummationHistogram(epsilon=1.0, domain=Domain(range(5)))
    huge = forged(oracle.aggregator(), 4, 2**40, [2**62 - 1, 0, 0, 0, 1 - 2**62])
    made = oracle.aggregator(huge)
    with pytest.raises(ParameterError, match="other must leave all totals below"):
        made.merge(huge)
    many = oracle.aggregator(forged(oracle.aggregator(), 4, 2**62 - 1, [0] * 5))
    before = many.to_bytes()
    with pytest.raises(ParameterError, match="other must leave all counts below"):
        many.merge(made)
    assert many.to_bytes() == before
    assert made.to_bytes() == huge


@cases("other", [None, 5, "x" * 200, ORACLE, [b""]])
def test_what_is_no_state_is_refused(other: Any) -> None:
    with pytest.raises(ParameterError, match="other must be an aggregator"):
        ORACLE.aggregator().merge(other)
    if other is not None:
        with pytest.raises(ParameterError, match="state must be bytes"):
            ORACLE.aggregator(other)
    assert ORACLE.aggregator(memoryview(filled(1).to_bytes())).accepted == 3000  # type: ignore[arg-type]


def test_refused_records_do_not_mark_the_others_as_simulated() -> None:
    made = ORACLE.aggregator()
    wrong = np.full((4, ORACLE.device.width + 1), 255, np.uint8)
    assert made.add_batch(ReportBatch(wrong, ORACLE.device.digest, simulated=True)) == 0
    assert made.add_batch(ReportBatch(wrong[:, 1:], ORACLE.device.digest, simulated=True)) == 0
    assert made.refused == {"width": 4, "specification": 4, "encoding": 0}
    assert not made.simulated


@pytest.mark.parametrize("size", [2**45, 2**56])
def test_totals_that_no_memory_holds_are_refused(size: int) -> None:
    oracle = RandomizedResponse(epsilon=1.0, domain=Domain(range(size)))
    assert len(oracle.randomize(size - 1)) == oracle.device.width  # a device needs no memory for it
    with pytest.raises(ParameterError, match=r"oracle must have totals that fit into memory.*; ask"):
        oracle.aggregator()


@pytest.mark.parametrize("reports", [[b"1"], "x", None, np.zeros(3, np.uint8)])
def test_what_is_no_batch_is_refused_with_the_way_for_single_records(reports: Any) -> None:
    with pytest.raises(ParameterError, match=r"reports must be a ReportBatch.*; call add\(\)"):
        ORACLE.aggregator().add_batch(reports)


@cases("frequency", [-0.1, 1.1, float("nan"), "x", True])
def test_a_share_is_from_0_to_1(frequency: Any) -> None:
    with pytest.raises(ParameterError, match="frequency must be from 0 to 1, got"):
        ORACLE.variance(10, frequency)
