"""Mastic against all nine vectors of its draft, against plain sums, and against reports that cheat."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.crypto.vidpf.verifiable_tree import VerifiableTree
from sfumato.errors import ParameterError
from sfumato.federated import (
    Mastic,
    MasticParameter,
    ShardedReports,
    mastic_count,
    mastic_histogram,
    mastic_multihot_count_vec,
    mastic_sum,
    mastic_sum_vec,
)
from sfumato.federated.vdaf.mastic.evaluated_reports import EvaluatedReports
from tests.cases import cases
from tests.federated.vdaf.special_circuits import Forged

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("Mastic*.json"))
KEY = bytes(range(32))
Row = np.ndarray[Any, np.dtype[np.uint8]]
MAKERS: dict[str, Callable[[dict[str, Any]], Mastic]] = {
    "MasticCount": lambda told: mastic_count(told["vidpf_bits"], context=bytes.fromhex(told["ctx"])),
    "MasticSum": lambda told: mastic_sum(
        told["vidpf_bits"], told["max_measurement"], context=bytes.fromhex(told["ctx"])
    ),
    "MasticSumVec": lambda told: mastic_sum_vec(
        told["vidpf_bits"],
        told["length"],
        told["max_measurement"],
        told["chunk_length"],
        context=bytes.fromhex(told["ctx"]),
    ),
    "MasticHistogram": lambda told: mastic_histogram(
        told["vidpf_bits"], told["length"], told["chunk_length"], context=bytes.fromhex(told["ctx"])
    ),
    "MasticMultihotCountVec": lambda told: mastic_multihot_count_vec(
        told["vidpf_bits"],
        told["length"],
        told["max_weight"],
        told["chunk_length"],
        context=bytes.fromhex(told["ctx"]),
    ),
}


def asked(*prefixes: str, first: bool = True) -> MasticParameter:
    return MasticParameter.of(*prefixes, check_weights=first)


def row(text: str) -> Row:
    return np.frombuffer(bytes.fromhex(text), np.uint8)[None]


def batches(mastic: Mastic, reports: ShardedReports) -> list[EvaluatedReports]:
    return [
        mastic.reports(j, reports.nonces, reports.public_shares, reports.input_shares[j]) for j in range(2)
    ]


def summed(
    mastic: Mastic, parameter: MasticParameter, sides: list[EvaluatedReports]
) -> tuple[list[Any], list[int], list[bool]]:
    begun = [mastic.verify_init(KEY, parameter, side) for side in sides]
    messages, accepted = mastic.verifier_shares_to_message(parameter, [share for _, share in begun])
    ended = [mastic.verify_next(state, messages) for state, _ in begun]
    accepted = accepted & ended[0][1] & ended[1][1]
    totals = [mastic.aggregate(parameter, outputs, accepted) for outputs, _ in ended]
    return mastic.unshard(parameter, totals), mastic.counts(parameter, totals), accepted.tolist()


def test_all_nine_files_are_here() -> None:
    others = ["MasticHistogram_0", "MasticMultihotCountVec_0", "MasticSumVec_0", "MasticSum_0", "MasticSum_1"]
    assert [*(f"MasticCount_{i}" for i in range(4)), *others] == NAMES


@cases("name", NAMES)
def test_the_drafts_vectors(name: str) -> None:
    told = json.loads((DATA / f"{name}.json").read_text())
    mastic, key = MAKERS[name.rsplit("_", 1)[0]](told), bytes.fromhex(told["verify_key"])
    parameter = MasticParameter.from_bytes(bytes.fromhex(told["agg_param"]))
    assert parameter.to_bytes().hex() == told["agg_param"]
    states: dict[tuple[int, int], Any] = {}
    outputs: dict[int, list[Any]] = {0: [], 1: []}
    for step in told["operations"]:
        who, index = step.get("aggregator_id"), step.get("report_index")
        report = told["reports"][index] if index is not None else {}
        match step["operation"]:
            case "shard":
                path, weight = report["measurement"]
                text = "".join("01"[bit] for bit in path)
                made = mastic.shard([text], [weight], row(report["nonce"]), row(report["rand"]))
                assert made.public_shares.tobytes().hex() == report["public_share"]
                assert [share.tobytes().hex() for share in made.input_shares] == report["input_shares"]
            case "verify_init":
                messages = row(report["public_share"]), row(report["input_shares"][who])
                state, share = mastic.verify_init(
                    key, parameter, mastic.reports(who, row(report["nonce"]), *messages)
                )
                assert state.sound.all()
                states[index, who] = state
                assert share.tobytes().hex() == report["verifier_shares"][0][who]
            case "verifier_shares_to_message":
                shares = [row(share) for share in report["verifier_shares"][0]]
                message, accepted = mastic.verifier_shares_to_message(parameter, shares)
                assert accepted.all()
                assert message.tobytes().hex() == report["verifier_messages"][0]
            case "verify_next":
                output, passed = mastic.verify_next(states[index, who], row(report["verifier_messages"][0]))
                assert passed.all()
                encoded = mastic.circuit.field.encoded(output).tobytes().hex()
                assert encoded == report["out_shares"][who]
                outputs[who].append(output)
            case "aggregate":
                whole = np.concatenate(outputs[who])
                total = mastic.aggregate(parameter, whole, np.ones(len(whole), np.bool_))
                assert total.hex() == told["agg_shares"][who]
            case "unshard":
                totals = [bytes.fromhex(share) for share in told["agg_shares"]]
                assert mastic.unshard(parameter, totals) == told["agg_result"]
            case other:
                raise AssertionError(other)


@cases("bits", [1, 2, 9])
def test_sums_at_every_level(bits: int) -> None:
    mastic, rng = mastic_sum(bits, 7, context=b"app"), np.random.default_rng(bits)
    texts = ["".join(map(str, path)) for path in rng.integers(0, 2, (20, bits)).tolist()]
    weights = rng.integers(0, 8, 20).tolist()
    sides = batches(mastic, mastic.shard(texts, weights))
    known = [""]
    for level in range(bits):
        parameter = asked(*(prefix + bit for prefix in known for bit in "01"), first=level == 0)
        plain: Counter[str] = Counter()
        for text, weight in zip(texts, weights, strict=True):
            plain[text[: level + 1]] += weight
        many = Counter(text[: level + 1] for text in texts)
        sums, counts, accepted = summed(mastic, parameter, sides)
        assert accepted == [True] * 20
        assert sums == [plain[prefix] for prefix in parameter.prefixes]
        assert counts == [many[prefix] for prefix in parameter.prefixes]
        known = [prefix for prefix in parameter.prefixes if many[prefix] > 1] or list(parameter.prefixes[:1])


@cases(
    "mastic, weights, sums",
    [
        (mastic_count(3), [1, 0, 1], [1, 1]),
        (mastic_sum_vec(3, 2, 5, 3), [[1, 2], [0, 5], [4, 4]], [[1, 7], [4, 4]]),
        (mastic_histogram(3, 4, 2), [3, 0, 3], [[1, 0, 0, 1], [0, 0, 0, 1]]),
        (mastic_multihot_count_vec(3, 3, 2, 2), [[1, 1, 0], [0, 1, 0], [0, 0, 0]], [[1, 2, 0], [0, 0, 0]]),
    ],
)
def test_weights_of_every_kind(mastic: Mastic, weights: list[Any], sums: list[Any]) -> None:
    reports = mastic.shard(["011", "010", "110"], weights)
    first = summed(mastic, asked("01", "11"), batches(mastic, reports))
    assert first == (sums, [2, 1], [True] * 3)


def test_prefixes_need_not_begin_with_earlier_ones() -> None:
    mastic = mastic_count(4)
    sides = batches(mastic, mastic.shard(["0110", "1011"], [1, 1]))
    for number, prefixes in enumerate([("00", "01"), ("101", "110"), ("0110", "1011", "1111")]):
        parameter = asked(*prefixes, first=not number)
        wanted = [sum(text.startswith(prefix) for text in ("0110", "1011")) for prefix in parameter.prefixes]
        assert summed(mastic, parameter, sides) == (wanted, wanted, [True, True])


def test_many_reports_are_computed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    mastic, nonces = mastic_histogram(3, 4, 2), np.zeros((5, 16), np.uint8)
    rand = np.arange(5 * 128, dtype=np.uint8).reshape(5, 128)
    texts, weights, parameter = ["011", "100", "000", "111", "010"], [0, 1, 2, 3, 3], asked("01", "10", "11")

    def everything() -> list[bytes]:
        reports = mastic.shard(texts, weights, nonces, rand)
        shares = [mastic.verify_init(KEY, parameter, side)[1] for side in batches(mastic, reports)]
        return [part.tobytes() for part in (reports.public_shares, *reports.input_shares, *shares)]

    whole = everything()
    monkeypatch.setattr("sfumato.federated.vdaf.mastic.mastic._BLOCK", 2)
    monkeypatch.setattr("sfumato.federated.vdaf.proof_system._BLOCK_BYTES", 1)
    monkeypatch.setattr("sfumato.crypto.vidpf.verifiable_tree._BLOCK_BYTES", 800)
    assert everything() == whole


@cases(
    "mastic, encoding",
    [(mastic_count(2), [2]), (mastic_sum(2, 3), [1, 5]), (mastic_histogram(2, 2, 1), [1, 1])],
)
def test_invalid_weights_are_refused(mastic: Mastic, encoding: list[int]) -> None:
    cheat = Mastic(Forged(mastic.circuit, encoding), mastic.algorithm, 2)
    assert summed(mastic, asked("0", "1"), batches(mastic, cheat.shard(["01"], [0])))[2] == [False]


def forged(mastic: Mastic, levels: list[int], entry: int, change: int) -> ShardedReports:
    """Return a report with a number added to an element of its values at some levels."""
    rand = np.arange(mastic.rand_size, dtype=np.uint8)[None]
    reports = mastic.shard(["0110"], [5], np.zeros((1, 16), np.uint8), rand)
    words, field, length = mastic.vidpf.decoded(reports.public_shares), mastic.circuit.field, 1 + 3
    control = {0: reports.input_shares[0][:, :16], 1: reports.input_shares[1][:, :16]}
    public = reports.public_shares.copy()
    for level in levels:
        # The word is added by the party whose control bit is set: its sign is that of the party.
        tree = VerifiableTree(mastic.vidpf, 0, reports.nonces, reports.public_shares, control[0])
        tree.values(asked("0110"[: level + 1]).asked.bits)
        sign = 1 if tree._control[0, int("0110"[level])] else -1
        word = field.added(words.values[:, level, entry], field.vector([sign * change]))
        start = 1 + 4 * 16 + (level * length + entry) * 8
        public[:, start : start + 8] = field.encoded(word[:, None])
    return ShardedReports(reports.nonces, public, reports.input_shares)


@cases(
    "levels, entry, change, passes",
    [
        ([], 1, 0, [True, True, True, True]),
        ([0, 1, 2, 3], 0, 1, [False, False, False, False]),  # the counter is two on the whole path
        ([0, 1, 2, 3], 2, 1, [True, True, True, True]),  # a valid weight, but its proof is of another
        ([0], 1, 1, [True, False, False, False]),
        ([2], 1, 1, [True, True, False, False]),
        ([2, 3], 0, -1, [True, True, False, False]),  # nothing below, where a weight is above
        ([3], 3, 5, [True, True, True, False]),
    ],
)
def test_values_that_differ_along_the_path_are_refused(
    levels: list[int], entry: int, change: int, passes: list[bool]
) -> None:
    mastic = mastic_sum(4, 7)
    reports = forged(mastic, levels, entry, change)
    for level, wanted in enumerate(passes):
        unchecked = MasticParameter.of("0110"[: level + 1], check_weights=False)
        assert summed(mastic, unchecked, batches(mastic, reports))[2] == [wanted]
    _, _, accepted = summed(mastic, asked("0110"), batches(mastic, reports))
    assert accepted == [not levels]


def test_a_report_at_two_prefixes_is_refused() -> None:
    mastic = mastic_count(4)
    reports = mastic.shard(["0110", "1011"], [1, 1])
    mixed = ShardedReports(
        reports.nonces, reports.public_shares, (reports.input_shares[0], reports.input_shares[1][::-1])
    )
    unchecked = MasticParameter.of("0", "1", check_weights=False)
    assert summed(mastic, unchecked, batches(mastic, mixed))[2] == [False, False]


def halved(mastic: Mastic, proof_word: int) -> ShardedReports:
    """Return a report of one bit with half of a weight of one below either prefix, modulo the prime.

    Both parties have the same key, and so the same seed at both nodes, but another control bit at each: the
    value's word is added by one of them, at both nodes by the same one.
    """
    field, parts = mastic.circuit.field, mastic.components
    nonces, drawn = np.zeros((1, 16), np.uint8), np.zeros((1, 2, 32), np.uint8)
    for number in range(256):
        key = np.full((1, 16), number, np.uint8)
        bits = mastic.vidpf.steps(nonces).extend(key.view(np.uint64)[:, None])[1][0, 0]
        if bits[0] == bits[1]:
            break
    half = (1 if bits[0] else -1) * (field.modulus + 1) // 2
    public = np.zeros((1, mastic.public_share_size), np.uint8)
    public[:, 0], public[:, 17:33] = 3, field.encoded(field.vector([half, half])[None])
    public[:, -1] = proof_word
    encoded = mastic.circuit.encode([1])
    random = parts.seeds.prove_randomness(drawn[:, 0], parts.proof.prove_length)
    whole = parts.proof.prove(encoded, random, field.zeros(1, 0))
    leader = field.subtracted(whole, parts.seeds.proof_share(drawn[:, 1], parts.proof.proof_length))
    inputs = np.concatenate([key, field.encoded(leader)], axis=1), np.concatenate([key, drawn[:, 1]], axis=1)
    return ShardedReports(nonces, public, inputs)


def test_a_weight_that_is_split_among_prefixes_is_refused() -> None:
    mastic = mastic_count(1)
    for proof_word in (0, 1):
        assert summed(mastic, asked("0", "1"), batches(mastic, halved(mastic, proof_word)))[2] == [False]
    # But for the word of zeros it is a report like others: all that both aggregators compare is equal.
    sides = batches(mastic, halved(mastic, 0))
    begun = [mastic.verify_init(KEY, asked("0", "1"), side) for side in sides]
    passed = mastic.verifier_shares_to_message(asked("0", "1"), [share for _, share in begun])[1]
    assert passed.tolist() == [True]
    assert [state.sound.tolist() for state, _ in begun] == [[False]] * 2


@cases("mastic, weight", [(mastic_sum(2, 3), 2), (mastic_histogram(2, 2, 1), 1)])
def test_every_changed_byte_is_noticed_at_the_leaves(mastic: Mastic, weight: int) -> None:
    rand = np.arange(mastic.rand_size, dtype=np.uint8)[None]
    reports = mastic.shard(["10"], [weight], np.zeros((1, 16), np.uint8), rand)
    parts = [reports.public_shares, *reports.input_shares]
    for j, part in enumerate(parts):
        size = part.shape[1]
        changed = [each.repeat(size, 0) for each in parts]
        changed[j][np.arange(size), np.arange(size)] ^= 1
        many = ShardedReports(reports.nonces.repeat(size, 0), changed[0], tuple(changed[1:]))
        assert not any(summed(mastic, asked("00", "01", "10", "11"), batches(mastic, many))[2])


def test_wrong_joint_randomness_is_refused_by_who_was_misled() -> None:
    mastic = mastic_histogram(2, 2, 1)
    reports, parameter = mastic.shard(["10"], [1]), asked("1")
    for misled in range(2):
        inputs = [share.copy() for share in reports.input_shares]
        inputs[misled][:, -1] ^= 1
        sides = batches(mastic, ShardedReports(reports.nonces, reports.public_shares, tuple(inputs)))
        begun = [mastic.verify_init(KEY, parameter, side) for side in sides]
        messages, _ = mastic.verifier_shares_to_message(parameter, [share for _, share in begun])
        passed = [mastic.verify_next(state, messages)[1].tolist() for state, _ in begun]
        assert passed == [[misled != j] for j in range(2)]


def test_malformed_messages_harm_no_other_report() -> None:
    mastic = mastic_count(4)
    reports = mastic.shard(["0110"] * 5, [1] * 5)
    start = 1 + 4 * 16
    reports.public_shares[1, start : start + 8] = 255
    reports.input_shares[0][2, 16:24] = 255
    assert summed(mastic, asked("0"), batches(mastic, reports))[1:] == ([3], [True, False, False, True, True])
    odd = mastic_count(3)
    padded = odd.shard(["011"] * 2, [1] * 2)
    padded.public_shares[1, 0] |= 64
    assert summed(odd, asked("0"), batches(odd, padded))[1:] == ([1], [True, False])
    begun = [
        mastic.verify_init(KEY, asked("0"), side)
        for side in batches(mastic, mastic.shard(["0110"] * 2, [1] * 2))
    ]
    shares = [share for _, share in begun]
    shares[1][0, 32:] = 255
    assert mastic.verifier_shares_to_message(asked("0"), shares)[1].tolist() == [False, True]


def test_another_key_level_or_name_gives_other_proofs() -> None:
    mastic = mastic_count(2)
    reports = mastic.shard(["01"], [1])
    first = mastic.verify_init(KEY, asked("0"), batches(mastic, reports)[0])[1]
    others = [
        (mastic, bytes(32), asked("0")),
        (mastic, KEY, asked("01")),
        (mastic_count(2, context=b"app"), KEY, asked("0")),
    ]
    for function, key, parameter in others:
        share = function.verify_init(key, parameter, batches(function, reports)[1])[1]
        assert not mastic.verifier_shares_to_message(asked("0"), [first, share])[1].any()


def test_negative_sums_and_no_report_at_all() -> None:
    mastic, parameter = mastic_sum(3, 7), asked("01", "11")
    zero = bytes(mastic.aggregate_share_size(parameter))
    shares = [
        mastic.added(parameter, zero, [7, -9, 0, 1]),
        mastic.added(parameter, zero, [-2, 1, -3, 0]),
    ]
    assert mastic.counts(parameter, shares, signed=True) == [5, -3]
    assert mastic.unshard(parameter, shares, signed=True) == [-8, 1]
    assert mastic.unshard(parameter, shares) == [mastic.circuit.field.modulus - 8, 1]
    none = mastic.shard([], [])
    assert summed(mastic, parameter, batches(mastic, none)) == ([0, 0], [0, 0], [])


@cases(
    "call, message",
    [
        (lambda: mastic_count(0), "bits"),
        (lambda: mastic_count(65_536), "65,535"),
        (lambda: mastic_count(4, context="app"), "context"),  # type: ignore[arg-type]
        (lambda: mastic_count(4, context=bytes(65_001)), "65,000"),
        (lambda: mastic_sum(4, 0), "maximum"),
        (lambda: Mastic(mastic_count(2).circuit, 1 << 32, 2), "algorithm"),
        (lambda: Mastic(mastic_count(2).circuit, 1, 2, version=1), "version"),
        (lambda: Mastic(1, 1, 2), "circuit"),  # type: ignore[arg-type]
        (lambda: mastic_count(4).shard(["012x"], [1]), "characters 0 and 1"),
        (lambda: mastic_count(2).shard(["01"], [2]), "measurements"),
        (lambda: mastic_count(2).shard(["01"], [1, 1]), "weights"),
        (lambda: mastic_count(2).shard(["01"], [1], np.zeros((1, 15), np.uint8)), "nonces"),
        (lambda: mastic_count(2).shard(["01"], [1], None, np.zeros((1, 15), np.uint8)), "rand"),
        (lambda: mastic_count(2).reports(2, *[np.zeros((0, 0), np.uint8)] * 3), "aggregator"),
        (lambda: mastic_count(2).reports(0, *[np.zeros((1, 16), np.uint8)] * 3), "public_shares"),
        (lambda: mastic_count(2).aggregate_share_size(asked("010")), "level"),
        (lambda: mastic_count(2).verifier_shares_to_message(asked("0"), []), "verifier_shares"),
        (
            lambda: mastic_count(2).verifier_shares_to_message(asked("0"), [np.zeros((1, 9), np.uint8)] * 2),
            "64 columns",
        ),
        (lambda: mastic_count(2).unshard(asked("0"), [bytes(16)]), "aggregate_shares"),
        (lambda: mastic_count(2).unshard(asked("0"), [bytes(16), b"\xff" * 16]), "elements of the field"),
        (lambda: mastic_count(2).unshard(asked("0"), [bytes(16), bytes(9)]), "aggregate_share"),
        (lambda: mastic_count(2).added(asked("0"), bytes(16), [1]), "numbers"),
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


def test_a_key_of_another_size_is_refused() -> None:
    mastic = mastic_count(2)
    side = batches(mastic, mastic.shard(["01"], [1]))[0]
    with pytest.raises(ParameterError, match="verify_key"):
        mastic.verify_init(bytes(31), asked("0"), side)
