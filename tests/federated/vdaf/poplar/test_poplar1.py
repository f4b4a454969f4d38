"""Poplar1 against all vectors of draft 20, the bad one included, and against plain counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.crypto.fields.field import FIELD255
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.errors import ParameterError
from sfumato.federated import AggregationParameter, Poplar1, ShardedReports
from sfumato.federated.vdaf.poplar.sketch import SketchedReports
from tests.cases import cases

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("Poplar1*.json"))
KEY = bytes(range(32))
Row = np.ndarray[Any, np.dtype[np.uint8]]
asked = AggregationParameter.of


def row(text: str) -> Row:
    return np.frombuffer(bytes.fromhex(text), np.uint8)[None]


def batches(poplar: Poplar1, reports: ShardedReports) -> list[SketchedReports]:
    return [
        poplar.reports(j, reports.nonces, reports.public_shares, reports.input_shares[j]) for j in range(2)
    ]


def counted(
    poplar: Poplar1, parameter: AggregationParameter, sides: list[SketchedReports]
) -> tuple[list[int], list[bool]]:
    begun = [poplar.verify_init(KEY, parameter, side) for side in sides]
    messages, accepted = poplar.verifier_shares_to_message(parameter, [share for _, share in begun])
    answers = [poplar.verify_next(state, messages) for state, _ in begun]
    _, passed = poplar.verifier_shares_to_message(parameter, [share for share, _ in answers])
    accepted = accepted & passed & answers[0][1] & answers[1][1]
    totals = [poplar.aggregate(parameter, state.output_shares, accepted) for state, _ in begun]
    return poplar.unshard(parameter, totals), accepted.tolist()


def test_all_seven_files_are_here() -> None:
    assert [*(f"Poplar1_{i}" for i in range(6)), "Poplar1_bad_corr_inner"] == NAMES


@cases("name", NAMES)
def test_the_drafts_vectors(name: str) -> None:
    told = json.loads((DATA / f"{name}.json").read_text())
    poplar, key = Poplar1(told["bits"], bytes.fromhex(told["ctx"])), bytes.fromhex(told["verify_key"])
    parameter = AggregationParameter.from_bytes(bytes.fromhex(told["agg_param"]))
    assert parameter.to_bytes().hex() == told["agg_param"]
    states: dict[tuple[int, int], Any] = {}
    outputs: dict[int, list[Any]] = {0: [], 1: []}
    for step in told["operations"]:
        who, turn = step.get("aggregator_id"), step.get("round", 0)
        report = told["reports"][step["report_index"]] if "report_index" in step else {}
        match step["operation"], turn:
            case "shard", _:
                text = "".join("01"[bit] for bit in report["measurement"])
                made = poplar.shard([text], row(report["nonce"]), row(report["rand"]))
                assert made.public_shares.tobytes().hex() == report["public_share"]
                assert [share.tobytes().hex() for share in made.input_shares] == report["input_shares"]
            case "verify_init", _:
                messages = row(report["public_share"]), row(report["input_shares"][who])
                state, share = poplar.verify_init(
                    key, parameter, poplar.reports(who, row(report["nonce"]), *messages)
                )
                assert state.sound.all()
                states[step["report_index"], who] = state
                assert share.tobytes().hex() == report["verifier_shares"][0][who]
            case "verifier_shares_to_message", turn:
                shares = [row(share) for share in report["verifier_shares"][turn]]
                message, accepted = poplar.verifier_shares_to_message(parameter, shares)
                assert accepted.all() == step["success"]
                if step["success"]:
                    assert message.tobytes().hex() == report["verifier_messages"][turn]
            case "verify_next", 1:
                state = states[step["report_index"], who]
                share, sound = poplar.verify_next(state, row(report["verifier_messages"][0]))
                assert sound.all()
                assert share.tobytes().hex() == report["verifier_shares"][1][who]
            case "verify_next", 2:
                output = states[step["report_index"], who].output_shares
                encoded = poplar.field(parameter).encoded(output).tobytes().hex()
                assert encoded == "".join(report["out_shares"][who])
                outputs[who].append(output)
            case "aggregate", _:
                whole = np.concatenate(outputs[who])
                total = poplar.aggregate(parameter, whole, np.ones(len(whole), np.bool_))
                assert total.hex() == told["agg_shares"][who]
            case "unshard", _:
                totals = [bytes.fromhex(share) for share in told["agg_shares"]]
                assert poplar.unshard(parameter, totals) == told["agg_result"]
            case other:
                raise AssertionError(other)


@cases("bits", [1, 2, 9])
def test_counts_at_every_level(bits: int) -> None:
    poplar, rng = Poplar1(bits, b"app"), np.random.default_rng(bits)
    texts = ["".join(map(str, bit)) for bit in rng.integers(0, 2, (20, bits)).tolist()]
    sides = batches(poplar, poplar.shard(texts))
    known = [""]
    for level in range(bits):
        parameter = asked(*(prefix + bit for prefix in known for bit in "01"))
        plain = Counter(text[: level + 1] for text in texts)
        counts, accepted = counted(poplar, parameter, sides)
        assert accepted == [True] * 20
        assert counts == [plain[prefix] for prefix in parameter.prefixes]
        known = [prefix for prefix in parameter.prefixes if plain[prefix] > 1] or list(parameter.prefixes[:1])


def test_rows_of_bits_are_strings_too() -> None:
    poplar, nonces, rand = Poplar1(3), np.zeros((2, 16), np.uint8), np.zeros((2, 128), np.uint8)
    texts = poplar.shard(["011", "100"], nonces, rand)
    rows = poplar.shard(np.array([[0, 1, 1], [1, 0, 0]]), nonces, rand)
    assert (texts.public_shares == rows.public_shares).all()


def test_many_reports_are_sharded_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    poplar, nonces, rand = Poplar1(3), np.zeros((5, 16), np.uint8), np.zeros((5, 128), np.uint8)
    rand[:] = np.arange(5, dtype=np.uint8)[:, None]
    texts = ["011", "100", "000", "111", "010"]
    whole = poplar.shard(texts, nonces, rand)
    monkeypatch.setattr("sfumato.federated.vdaf.poplar.poplar1._BLOCK", 2)
    parts = poplar.shard(texts, nonces, rand)
    assert (parts.public_shares == whole.public_shares).all()
    assert all((a == b).all() for a, b in zip(parts.input_shares, whole.input_shares, strict=True))


def forged(poplar: Poplar1, level: int, data: int, authenticator: int) -> ShardedReports:
    """Return a report with numbers added to the values that are shared at its path's node of a level."""
    reports = poplar.shard(["0110"], np.zeros((1, 16), np.uint8), np.arange(128, dtype=np.uint8)[None])
    words = poplar.idpf.decoded(reports.public_shares)
    field = poplar.idpf.field(level)
    extra = field.vector([data, authenticator])
    start = 1 + 4 * 16 + level * 16
    part = words.inner[:, level] if level < 3 else words.leaf
    public = reports.public_shares.copy()
    public[:, start : start + 2 * field.size] = field.encoded(field.added(part, extra))
    return ShardedReports(reports.nonces, public, reports.input_shares)


@cases("level", [0, 2, 3])
@cases("data, authenticator", [(1, 0), (0, 1), (-1, 0), (5, 3)])
def test_values_other_than_one_are_refused(level: int, data: int, authenticator: int) -> None:
    poplar = Poplar1(4)
    prefix = "0110"[: level + 1]
    counts, accepted = counted(
        poplar, asked(prefix), batches(poplar, forged(poplar, level, data, authenticator))
    )
    assert (counts, accepted) == ([0], [False])
    off = prefix[:-1] + "01"["0" in prefix[-1]]
    assert counted(poplar, asked(off), batches(poplar, forged(poplar, level, data, authenticator)))[1] == [
        True
    ]


def test_a_report_at_two_prefixes_is_refused() -> None:
    # The first party's key of one report with the second's of another: every node gets random shares.
    poplar = Poplar1(4)
    reports = poplar.shard(["0110", "1011"])
    mixed = ShardedReports(
        reports.nonces, reports.public_shares, (reports.input_shares[0], reports.input_shares[1][::-1])
    )
    assert counted(poplar, asked("0", "1"), batches(poplar, mixed))[1] == [False, False]


def test_every_changed_byte_is_noticed_at_the_leaves() -> None:
    poplar = Poplar1(2)
    reports = poplar.shard(["10"], np.zeros((1, 16), np.uint8), np.arange(128, dtype=np.uint8)[None])
    leaf = 2 * FIELD255.size
    for j in range(2):
        size = poplar.input_share_size
        changed = [share.repeat(size, 0) for share in reports.input_shares]
        changed[j][np.arange(size), np.arange(size)] ^= 1
        many = ShardedReports(
            reports.nonces.repeat(size, 0), reports.public_shares.repeat(size, 0), tuple(changed)
        )
        _, accepted = counted(poplar, asked("00", "01", "10", "11"), batches(poplar, many))
        inner = list(range(48, size - leaf))  # what masks the level above is not used here
        assert [i for i, passed in enumerate(accepted) if passed] == inner
        _, accepted = counted(poplar, asked("0", "1"), batches(poplar, many))
        assert [i for i, passed in enumerate(accepted) if passed] == list(range(size - leaf, size))


def test_malformed_messages_harm_no_other_report() -> None:
    poplar = Poplar1(4)
    reports = poplar.shard(["0110"] * 4)
    reports.public_shares[1, -32:] = 255
    reports.input_shares[0][2, 48:56] = 255
    reports.input_shares[1][3, -32:] = 255
    assert counted(poplar, asked("0"), batches(poplar, reports)) == ([1], [True, False, False, False])


def test_messages_of_either_round_that_are_no_elements() -> None:
    poplar, parameter = Poplar1(4), asked("0", "1")
    begun = [poplar.verify_init(KEY, parameter, side) for side in batches(poplar, poplar.shard(["0110"] * 2))]
    shares = [share.copy() for _, share in begun]
    shares[1][0] = 255
    messages, passed = poplar.verifier_shares_to_message(parameter, shares)
    assert passed.tolist() == [False, True]
    messages[1, :8] = 255
    answer, sound = poplar.verify_next(begun[0][0], messages)
    assert sound.tolist() == [True, False]
    answer[:] = 255
    assert not poplar.verifier_shares_to_message(parameter, [answer, answer])[1].any()


def test_counts_above_half_of_the_modulus_are_negative() -> None:
    poplar, asked = Poplar1(bits=4), AggregationParameter.of("01")
    half, zero = FIELD64.modulus // 2, bytes(8)
    for number, expected in ((half, half), (half + 1, -half)):
        assert poplar.unshard(asked, [number.to_bytes(8, "little"), zero], signed=True) == [expected]


def test_negative_counts_and_no_report_at_all() -> None:
    poplar = Poplar1(3)
    for parameter in (asked("01", "11"), asked("011", "110")):
        zero = bytes(poplar.aggregate_share_size(parameter))
        shares = [poplar.added(parameter, zero, [7, -9]), poplar.added(parameter, zero, [-2, 1])]
        assert poplar.unshard(parameter, shares, signed=True) == [5, -8]
        modulus = (FIELD255 if parameter.level == 2 else FIELD64).modulus
        assert poplar.unshard(parameter, shares) == [5, modulus - 8]
        assert counted(poplar, parameter, batches(poplar, poplar.shard([]))) == ([0, 0], [])


@cases(
    "call, message",
    [
        (lambda: Poplar1(0), "bits"),
        (lambda: Poplar1(65537), "65,536"),
        (lambda: Poplar1(4, "app"), "context"),  # type: ignore[arg-type]
        (lambda: Poplar1(4, bytes(65001)), "65,000"),
        (lambda: Poplar1(4, draft=19), "draft"),
        (lambda: Poplar1(4).shard(["012x"]), "characters 0 and 1"),
        (lambda: Poplar1(4).shard(["01"]), "4 characters"),
        (lambda: Poplar1(2).shard(np.array([[0, 2]])), "zeros and ones"),
        (lambda: Poplar1(2).shard(np.array([[0, 1, 1]])), "zeros and ones"),
        (lambda: Poplar1(2).shard(["01"], np.zeros((1, 15), np.uint8)), "nonces"),
        (lambda: Poplar1(2).shard(["01"], None, np.zeros((1, 15), np.uint8)), "rand"),
        (lambda: Poplar1(2).reports(2, *[np.zeros((0, 0), np.uint8)] * 3), "aggregator"),
        (lambda: Poplar1(2).reports(0, *[np.zeros((1, 16), np.uint8)] * 3), "public_shares"),
        (lambda: Poplar1(2).field(asked("010")), "level"),
        (lambda: Poplar1(2).verifier_shares_to_message(asked("0"), []), "verifier_shares"),
        (
            lambda: Poplar1(2).verifier_shares_to_message(asked("0"), [np.zeros((1, 9), np.uint8)] * 2),
            "24 columns",
        ),
        (lambda: Poplar1(2).unshard(asked("0"), [bytes(8)]), "aggregate_shares"),
        (lambda: Poplar1(2).unshard(asked("0"), [bytes(8), b"\xff" * 8]), "elements of the field"),
        (lambda: Poplar1(2).unshard(asked("0"), [bytes(8), bytes(9)]), "aggregate_share"),
        (lambda: Poplar1(2).added(asked("0"), bytes(8), [1, 2]), "numbers"),
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


def test_the_longest_strings_and_names() -> None:
    assert Poplar1(1 << 16, bytes(65_000)).input_share_size == 16 + 32 + 16 * 65_535 + 64


def test_a_key_of_another_size_is_refused() -> None:
    poplar = Poplar1(2)
    side = batches(poplar, poplar.shard(["01"]))[0]
    with pytest.raises(ParameterError, match="verify_key"):
        poplar.verify_init(bytes(31), asked("0"), side)
