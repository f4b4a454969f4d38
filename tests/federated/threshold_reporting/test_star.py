"""STAR: fewer than k reports are never opened, and forged ones are refused with a reason."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.crypto.oprf import OprfKey, blind, finalize
from sfumato.crypto.secret_sharing import combine
from sfumato.errors import ParameterError
from sfumato.federated import Star
from tests.cases import cases

PLAN = Star(threshold=3, epoch=b"one", value_bytes=6, data_bytes=4)
HEAD = 1 + 8 + 16


def report(value: bytes, data: bytes = b"", plan: Star = PLAN) -> bytes:
    return plan.report(value, randomness=plan.local_randomness(value), data=data)


@given(st.lists(st.sampled_from([b"", b"a", b"bb", b"\0", b"cccccc"]), max_size=30))
@settings(max_examples=40, deadline=None)
def test_exactly_the_values_of_k_reports_are_opened(values: list[bytes]) -> None:
    found = PLAN.aggregate([report(value, b"%d" % at) for at, value in enumerate(values)])
    held = Counter(values)
    assert {value: each.count for value, each in found.revealed.items()} == {
        value: count for value, count in held.items() if count >= 3
    }
    assert found.hidden == tuple(sorted((count for count in held.values() if count < 3), reverse=True))
    assert not found.refused
    for value, each in found.revealed.items():
        assert each.data == tuple(b"%d" % at for at, other in enumerate(values) if other == value)
    assert list(found.revealed) == sorted(found.revealed, key=lambda value: -held[value])


STORED = (
    "0141a1536e7e47997255720071fd92ff439a7ee33cd7da70eefffffff90563adbb880aae94142f846cc60d1bcc0ea106fa4c3139"
    "3fff04668ff8bae0e366be53870aad1959866f875127666c8f827984b3308a"
)


def test_a_stored_report_is_read_and_written_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [report(b"ab", b"%d" % at) for at in range(2)]
    found = PLAN.aggregate([bytes.fromhex(STORED), *others])
    assert found.revealed[b"ab"].data == (b"xyz", b"0", b"1")
    monkeypatch.setattr("secrets.randbelow", lambda bound: bound - 7)
    assert report(b"ab", b"xyz").hex() == STORED


@cases("threshold", [2, 3, 5])
def test_fewer_shares_than_the_threshold_combine_to_something_else(
    monkeypatch: pytest.MonkeyPatch, threshold: int
) -> None:
    # So each limb's polynomial has the whole degree: with one coefficient less, fewer reports would open it.
    plan = Star(threshold=threshold, epoch=b"one", value_bytes=6)
    draws = iter(range(10, 20))
    monkeypatch.setattr("secrets.randbelow", lambda _: next(draws))
    shares = np.stack(
        [
            np.frombuffer(report(b"a", plan=plan)[HEAD + 4 : HEAD + 28], ">u8").astype(np.uint64)
            for _ in range(threshold + 1)
        ]
    )

    def combined(first: int, last: int) -> bytes:
        return combine([[*range(first + 11, last + 11)]], shares[None, first:last], width=16)[0]

    seed = combined(0, threshold)
    assert combined(1, threshold + 1) == seed != bytes(16)
    assert all(combined(0, few) != seed for few in range(1, threshold))


def test_two_shares_of_three_say_nothing_of_the_seed() -> None:
    # For any other value at 0 there is a polynomial through both shares: each guess is as good.
    randomness = PLAN.local_randomness(b"a")
    pair = [PLAN.report(b"a", randomness=randomness) for _ in range(2)]
    doubled = PLAN.aggregate([*pair, pair[0]])  # one report twice is no third share
    assert not doubled.revealed
    assert doubled.hidden == (3,)


def test_reports_through_the_oblivious_function() -> None:
    key = OprfKey.generate()
    reports = []
    for value in (b"x", b"x", b"x", b"y"):
        blinding = blind(PLAN.oprf_input(value))
        answers, proof = key.evaluate([blinding.element])
        (randomness,) = finalize([blinding], answers, proof, key.public)
        reports.append(PLAN.report(value, randomness=randomness))
    # A report with local randomness of the same value has another tag.
    found = PLAN.aggregate([*reports, report(b"x")])
    assert found.revealed[b"x"].count == 3
    assert found.hidden == (1, 1)


def test_a_forged_share_is_refused_and_the_honest_reports_still_count() -> None:
    honest = [report(b"a") for _ in range(4)]
    forged = bytearray(report(b"a"))
    forged[HEAD + 4 + 9] ^= 1
    found = PLAN.aggregate([bytes(forged), *honest])
    assert found.revealed[b"a"].count == 4
    assert found.refused == {"its share is forged": 1}
    beyond = bytearray(report(b"a"))
    beyond[HEAD + 4 : HEAD + 12] = b"\xff" * 8  # no element of the field
    assert PLAN.aggregate([bytes(beyond), *honest]).refused == {"its share is forged": 1}
    few = PLAN.aggregate([bytes(forged), *honest[:2]])
    assert not few.revealed


def test_a_forged_ciphertext_does_not_count_towards_the_threshold() -> None:
    forged = bytearray(report(b"a"))
    forged[-1] ^= 1
    found = PLAN.aggregate([report(b"a"), report(b"a"), bytes(forged)])
    assert not found.revealed
    assert found.refused == {"its ciphertext is forged": 1}
    assert found.hidden == (3,)


def test_padding_is_zero_and_lengths_fit() -> None:
    right = b"\0\2ab" + bytes(4) + b"\0\1x" + bytes(3)
    assert PLAN._parsed(right) == (b"ab", b"x")
    padding = [4, 5, 6, 7, 11, 12, 13]
    for at in range(len(right)):
        changed = bytearray(right)
        changed[at] = 200
        if at in padding or at in (0, 1, 8, 9):
            with pytest.raises(ValueError, match="padding"):
                PLAN._parsed(bytes(changed))
        else:
            assert PLAN._parsed(bytes(changed)) != (b"ab", b"x")
    for place, longest in ((1, 6), (9, 4)):
        changed = bytearray(right)
        changed[place] = longest
        PLAN._parsed(bytes(changed))
        changed[place] = longest + 1
        with pytest.raises(ValueError, match="padding"):
            PLAN._parsed(bytes(changed))


def test_another_value_under_a_tag_is_refused() -> None:
    liar = PLAN.report(b"b", randomness=PLAN.local_randomness(b"a"))
    found = PLAN.aggregate([liar, *(report(b"a") for _ in range(3))])
    assert found.revealed[b"a"].count == 3
    assert found.refused == {"its value is not that of its tag": 1}
    assert b"b" not in found.revealed


def test_mutated_bytes_never_stop_a_batch_nor_open_a_rare_value() -> None:
    rng = random.Random(5)
    honest = [report(b"a") for _ in range(5)]
    rare = [report(b"secret"), report(b"secret")]
    for _ in range(150):
        broken = bytearray(rng.choice([*honest, *rare]))
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        cut = bytes(broken[: rng.choice([len(broken), rng.randrange(len(broken))])])
        found = PLAN.aggregate([*honest, *rare, cut])
        assert found.revealed[b"a"].count == 5
        assert list(found.revealed) == [b"a"]
        assert sum(found.refused.values()) + sum(found.hidden) == 3


def test_reports_have_one_length_and_hide_their_value() -> None:
    sizes = {len(report(value)) for value in (b"", b"a", b"cccccc")}
    assert sizes == {PLAN.report_bytes}
    assert b"cccccc" not in report(b"cccccc")
    one, other = report(b"a"), report(b"a")
    assert one[:HEAD] == other[:HEAD]
    assert one[HEAD : HEAD + 4] != other[HEAD : HEAD + 4]
    later = Star(threshold=3, epoch=b"two", value_bytes=6, data_bytes=4)
    assert report(b"a", plan=later)[9:HEAD] != one[9:HEAD]
    assert PLAN.aggregate([report(b"a", plan=later)]).refused == {"it is of another plan": 1}
    assert PLAN.aggregate([one[1:], "text"]).refused == {  # type: ignore[list-item]
        "it is not bytes of the plan's length": 2
    }


def test_the_largest_plans_and_parts_are_allowed() -> None:
    plan = Star(threshold=65536, epoch=bytes(255), value_bytes=65535, data_bytes=65535)
    assert plan.report_bytes == 1 + 8 + 16 + 4 + 24 + 16 + 4 + 2 * 65535
    assert plan.oprf_input(b"a") == b"\xff" + bytes(255) + b"a"
    plan = Star(threshold=2, epoch=b"", value_bytes=65535, data_bytes=65535)
    found = plan.aggregate([report(bytes(65535), b"\1" * 65535, plan) for _ in range(2)])
    assert found.revealed[bytes(65535)].data == (b"\1" * 65535,) * 2


def test_bad_plans_and_parts_are_refused() -> None:
    for change, words in (
        ({"threshold": 1}, "at least 2"),
        ({"threshold": 65537}, "at most 65536"),
        ({"epoch": bytes(256)}, "at most 255 bytes"),
        ({"epoch": "one"}, "at most 255 bytes"),
        ({"value_bytes": 0}, "at least 1"),
        ({"value_bytes": 65536}, "below 65536"),
        ({"data_bytes": -1}, "at least 0"),
        ({"data_bytes": 65536}, "below 65536"),
    ):
        with pytest.raises(ParameterError, match=words):
            Star(**{"threshold": 3, "epoch": b"", "value_bytes": 4, **change})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="at most 6 bytes"):
        report(b"toolong")
    with pytest.raises(ParameterError, match="at most 4 bytes"):
        report(b"a", b"extra")
    with pytest.raises(ParameterError, match="32 bytes"):
        PLAN.report(b"a", randomness=b"short")
    with pytest.raises(ParameterError, match="32 bytes"):
        PLAN.report(b"a", randomness="r" * 32)  # type: ignore[arg-type]
