"""Prio3 against all vectors of draft 20, those of bad reports included, and against plain sums."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.crypto.fields.ntt_field import FIELD64, FIELD128
from sfumato.errors import ParameterError
from sfumato.federated import (
    Prio3,
    ShardedReports,
    prio3_count,
    prio3_histogram,
    prio3_l1_bound_sum,
    prio3_multihot_count_vec,
    prio3_sum,
    prio3_sum_vec,
    prio3_sum_vec_with_multiproof,
)
from sfumato.federated.vdaf.circuits.chunked import Histogram, L1BoundSum, MultihotCountVec, SumVec
from sfumato.federated.vdaf.circuits.scalar import Count, Sum
from sfumato.federated.vdaf.proof_system import ProofSystem
from tests.cases import cases
from tests.federated.vdaf.special_circuits import Forged, HigherDegree

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("Prio3*.json"))
Row = np.ndarray[Any, np.dtype[np.uint8]]


def row(text: str) -> Row:
    return np.frombuffer(bytes.fromhex(text), np.uint8)[None]


def function(name: str, told: dict[str, Any]) -> Prio3:
    shared = {"shares": told["shares"], "context": bytes.fromhex(told["ctx"])}
    sizes = [
        told[size] for size in ("length", "max_weight", "max_measurement", "chunk_length") if size in told
    ]
    makers: dict[str, Callable[..., Prio3]] = {
        "Count": prio3_count,
        "Sum": prio3_sum,
        "SumVec": prio3_sum_vec,
        "SumVecWithMultiproof": functools.partial(prio3_sum_vec_with_multiproof, proofs=3),
        "Histogram": prio3_histogram,
        "MultihotCountVec": prio3_multihot_count_vec,
        "HigherDegree": functools.partial(Prio3, HigherDegree(), 0xFFFFFFFF),
    }
    return makers[name.split("_", maxsplit=1)[0].removeprefix("Prio3")](*sizes, **shared)


@cases("name", NAMES)
def test_the_drafts_vectors(name: str) -> None:
    told = json.loads((DATA / f"{name}.json").read_text())
    prio3, key = function(name, told), bytes.fromhex(told["verify_key"])
    states: dict[tuple[int, int], Any] = {}
    outputs: dict[int, list[Any]] = {j: [] for j in range(prio3.shares)}
    for step in told["operations"]:
        who = step.get("aggregator_id")
        report = told["reports"][step["report_index"]] if "report_index" in step else {}
        match step["operation"]:
            case "shard":
                rand = row(report["rand"])
                made = prio3.shard([report["measurement"]], row(report["nonce"]), rand)
                assert made.public_shares.tobytes().hex() == report["public_share"]
                assert [share.tobytes().hex() for share in made.input_shares] == report["input_shares"]
            case "verify_init":
                messages = row(report["public_share"]), row(report["input_shares"][who])
                state, share = prio3.verify_init(key, who, row(report["nonce"]), *messages)
                assert state.sound.all()
                states[step["report_index"], who] = state
                assert share.tobytes().hex() == report["verifier_shares"][0][who]
            case "verifier_shares_to_message":
                shares = [row(share) for share in report["verifier_shares"][0]]
                message, accepted = prio3.verifier_shares_to_message(shares)
                assert accepted.all() == step["success"]
                if step["success"]:
                    assert message.tobytes().hex() == report["verifier_messages"][0]
            case "verify_next":
                state = states[step["report_index"], who]
                output, accepted = prio3.verify_next(state, row(report["verifier_messages"][0]))
                assert accepted.all() == step["success"]
                if step["success"]:
                    encoded = prio3.circuit.field.encoded(output).tobytes().hex()
                    assert encoded == report["out_shares"][who]
                    outputs[who].append(output)
            case "aggregate":
                whole = np.concatenate(outputs[who])
                total = prio3.aggregate(whole, np.ones(len(whole), np.bool_))
                assert total.hex() == told["agg_shares"][who]
            case "unshard":
                totals = [bytes.fromhex(share) for share in told["agg_shares"]]
                assert prio3.unshard(totals) == told["agg_result"]
            case other:
                raise AssertionError(other)


def verified(prio3: Prio3, reports: ShardedReports) -> tuple[Any, list[bool]]:
    key = bytes(range(32))
    sides = [
        prio3.verify_init(key, j, reports.nonces, reports.public_shares, reports.input_shares[j])
        for j in range(prio3.shares)
    ]
    messages, passed = prio3.verifier_shares_to_message([share for _, share in sides])
    ends = [prio3.verify_next(state, messages) for state, _ in sides]
    for _, agreed in ends:
        passed = passed & agreed
    return prio3.unshard([prio3.aggregate(outputs, passed) for outputs, _ in ends]), passed.tolist()


MULTIPROOF = functools.partial(prio3_sum_vec_with_multiproof, 3, 5, 2, proofs=3)


@cases(
    "prio3, measurements, total",
    [
        (prio3_count(shares=3), [1, 0, 1, 1], 3),
        (prio3_sum(1000, context=b"app"), [0, 1000, 489, 511], 2000),
        (prio3_sum_vec(3, 5, 2), [[0, 5, 3], [1, 4, 5]], [1, 9, 8]),
        (MULTIPROOF(field=FIELD64), [[0, 5, 3], [1, 4, 5]], [1, 9, 8]),
        (MULTIPROOF(field=FIELD128, shares=4), [[0, 5, 3], [1, 4, 5]], [1, 9, 8]),
        (prio3_histogram(7, 3, shares=5), [6, 0, 6, 2], [1, 0, 1, 0, 0, 0, 2]),
        (prio3_multihot_count_vec(4, 3, 2), [[1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]], [1, 2, 1, 1]),
        (prio3_l1_bound_sum(3, 6, 2), [[6, 0, 0], [1, 2, 3], [0, 0, 0]], [7, 2, 3]),
        (Prio3(HigherDegree(calls=5), 0xFFFFFFFF), [2, 0, 1], 3),
    ],
)
def test_sums_of_valid_reports(prio3: Prio3, measurements: list[Any], total: Any) -> None:
    assert verified(prio3, prio3.shard(measurements)) == (total, [True] * len(measurements))


@cases(
    "prio3",
    [
        Prio3(Forged(Count(), [2]), 1),
        Prio3(Forged(Sum(6), [0, 2, 0]), 2),
        Prio3(Forged(SumVec(2, 3, 2), [0, 0, 0, 2]), 3),
        Prio3(Forged(SumVec(2, 3, 2, FIELD64), [0, -1, 0, 0]), 3, proofs=2),
        Prio3(Forged(Histogram(4, 2), [1, 0, 0, 1]), 4),
        Prio3(Forged(Histogram(4, 2), [0, 0, 0, 0]), 4),
        Prio3(Forged(Histogram(4, 2), [2, -1, 0, 0]), 4),
        Prio3(Forged(MultihotCountVec(3, 2, 2), [1, 1, 1, 1, 1]), 5),
        Prio3(Forged(L1BoundSum(2, 3, 2), [1, 1, 1, 0, 1, 1]), 9),
    ],
)
def test_encodings_that_no_measurement_has(prio3: Prio3) -> None:
    _, accepted = verified(prio3, prio3.shard([0] * 3))
    assert accepted == [False] * 3


def test_every_changed_byte_of_a_message_is_noticed() -> None:
    prio3 = prio3_histogram(3, 2)
    reports = prio3.shard([1], np.zeros((1, 16), np.uint8), np.zeros((1, prio3.rand_size), np.uint8))
    parts = [reports.nonces, reports.public_shares, *reports.input_shares]
    for part, original in enumerate(parts):
        size = original.shape[1]
        changed = [rows.repeat(size, 0) for rows in parts]
        changed[part][np.arange(size), np.arange(size)] ^= 1
        _, accepted = verified(prio3, ShardedReports(changed[0], changed[1], tuple(changed[2:])))
        assert not any(accepted), part


def test_a_malformed_share_harms_no_other_report() -> None:
    prio3 = prio3_histogram(3, 2)
    reports = prio3.shard([0, 1, 2])
    reports.input_shares[0][1, :16] = 255
    assert verified(prio3, reports) == ([1, 0, 1], [True, False, True])


def test_a_point_that_would_show_an_input_is_refused() -> None:
    system, field = ProofSystem(Count()), FIELD64
    share, proof = field.zeros(2, 1), field.zeros(2, 5)
    points = field.vector([field.root(2), 5])[:, None]
    verifier, hidden = system.query(share, proof, points, field.zeros(2, 0), 2)
    assert hidden.tolist() == [False, True]
    assert not verifier[0].any()


def test_negative_totals_and_batches() -> None:
    prio3 = prio3_sum_vec(2, 5, 2)
    zero = bytes(prio3.aggregate_share_size)
    shares = [prio3.added(zero, [7, -9]), prio3.added(zero, [-2, 1])]
    assert prio3.unshard(shares, signed=True) == [5, -8]
    assert prio3.unshard([prio3.merged(shares), zero]) == [5, FIELD128.modulus - 8]


def test_no_report_at_all() -> None:
    prio3 = prio3_histogram(3, 2)
    assert verified(prio3, prio3.shard([])) == ([0, 0, 0], [])


@cases(
    "call, message",
    [
        (lambda: prio3_count(shares=1), "shares"),
        (lambda: prio3_count(shares=256), "255"),
        (lambda: Prio3(Count(), 1, proofs=0), "proofs"),
        (lambda: Prio3(Count(), 1 << 32), "algorithm"),
        (lambda: Prio3(Count(), 1, draft=19), "draft"),
        (lambda: prio3_count(context=bytes(1 << 16)), "context"),
        (lambda: prio3_count().shard([2]), "from 0 to 1"),
        (lambda: prio3_count().shard([0.5]), "from 0 to 1"),
        (lambda: prio3_histogram(4, 2).shard([4]), "from 0 to 3"),
        (lambda: prio3_sum_vec(2, 5, 2).shard([[1, 2, 3]]), "shape"),
        (lambda: prio3_sum_vec(2, 5, 2).shard([[1], [2, 3]]), "shape"),
        (lambda: prio3_multihot_count_vec(3, 1, 2).shard([[1, 1, 0]]), "ones"),
        (lambda: prio3_multihot_count_vec(3, 4, 2), "max_weight"),
        (lambda: prio3_l1_bound_sum(2, 3, 2).shard([[2, 2]]), "sum to at most 3"),
        (lambda: prio3_sum(1 << 63), "2\\*\\*62"),
        (lambda: prio3_histogram(4, 0), "chunk_length"),
        (lambda: prio3_count().shard([1], np.zeros((1, 15), np.uint8)), "nonces"),
        (lambda: prio3_count().verify_init(b"", 0, *[np.zeros((1, 16), np.uint8)] * 3), "verify_key"),
        (lambda: prio3_count().verify_init(bytes(32), 2, *[np.zeros((1, 16), np.uint8)] * 3), "aggregator"),
        (lambda: prio3_count().verifier_shares_to_message([]), "verifier_shares"),
        (lambda: prio3_count().unshard([bytes(8)]), "aggregate_shares"),
        (lambda: prio3_count().unshard([bytes(8), b"\xff" * 8]), "elements of the field"),
        (lambda: prio3_count().unshard([bytes(8), bytes(9)]), "aggregate_share"),
        (lambda: prio3_count().added(bytes(8), [1, 2]), "numbers"),
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
