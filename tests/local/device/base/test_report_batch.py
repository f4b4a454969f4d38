"""Records and batches: what is written is read again, and nothing else is."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.local import RandomizedResponse
from sfumato.local.device import Domain, RandomizedResponseRandomizer, ReportBatch
from sfumato.local.device.base.record_layout import Layout


@given(
    st.integers(1, 56), st.binary(min_size=32, max_size=32), st.integers(0, 2**32), st.sampled_from([0, 32])
)
def test_payloads_come_back_and_tags_fill_the_rest(bits: int, digest: bytes, seed: int, tag: int) -> None:
    layout = Layout(bits, digest, tag)
    spare = 8 * layout.width - bits
    assert tag <= spare <= tag + 7
    assert Layout(bits, digest).tag_bits == 32
    written = int.from_bytes(digest, "little") & (1 << spare) - 1
    payloads = np.random.default_rng(seed).integers(0, 1 << bits, 20, dtype=np.uint64)
    records = layout.pack(payloads)
    assert records.shape == (20, layout.width)
    assert (layout.unpack(records) == payloads).all()
    assert {int.from_bytes(row.tobytes(), "little") >> bits for row in records} == {written}
    assert layout.genuine(records).all()
    for bit in range(bits, 8 * layout.width):
        changed = records.copy()
        changed[:, bit // 8] ^= 1 << bit % 8
        assert not layout.genuine(changed).any()
        layout.stamp(changed)
        assert (changed == records).all()
    for bit in range(bits):
        changed = records.copy()
        changed[:, bit // 8] ^= 1 << bit % 8
        assert layout.genuine(changed).all()


def test_no_record_of_another_question_is_counted() -> None:
    # Tags of 4 bits let 1 in 16 of these pass. With 32 none of 600 does, as all digests are fixed.
    asked = RandomizedResponse(epsilon=1.0, domain=Domain([f"question 0, answer {i}" for i in range(10)]))
    for number in range(1, 601):
        others = Domain([f"question {number}, answer {i}" for i in range(10)])
        client = RandomizedResponseRandomizer(epsilon=1.0, domain=others)
        aggregator = asked.aggregator()
        assert not aggregator.add(client.randomize(others.values[3], 1))
        assert aggregator.add_batch(client.randomize_batch(others.values, 1).records) == 0
        assert aggregator.refused == {"width": 0, "specification": 11, "encoding": 0}


def test_a_record_within_another_has_no_tag_of_its_own() -> None:
    alone = RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(range(200)))
    inside = alone.within()
    assert (alone.width, inside.width) == (5, 1)
    assert inside == alone
    assert inside.digest == alone.digest
    values = np.arange(200)
    both = [one.randomize_batch(values, 1).records for one in (alone, inside)]
    assert (both[0][:, :1] == both[1]).all()


def batch(n: int = 5, seed: int = 1) -> ReportBatch:
    return RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(range(1000))).randomize_batch(
        np.arange(n), seed
    )


def test_a_batch_comes_back() -> None:
    given = batch()
    again = ReportBatch.from_bytes(given.to_bytes(), digest=given.digest)
    assert again.records.tolist() == given.records.tolist()
    assert again.simulated
    assert [again[i] for i in range(5)] == list(given)
    assert len(again[0]) == again.width == 6
    assert len(ReportBatch.from_bytes(batch(0).to_bytes())) == 0
    assert not given.records.flags.writeable


def test_a_part_of_a_batch_is_a_batch() -> None:
    given = batch()
    part = given[1:4]
    assert isinstance(part, ReportBatch)
    assert (list(part), part.digest, part.simulated) == (list(given)[1:4], given.digest, True)
    assert list(ReportBatch.concatenated([given[:2], given[2:]])) == list(given)
    assert list(given[::-1]) == list(given)[::-1]
    assert len(given[7:]) == 0
    assert given[-1] == list(given)[-1]
    with pytest.raises(IndexError):
        given[5]
    with pytest.raises(TypeError):
        given[[0, 1]]  # type: ignore[call-overload]


def test_other_bytes_are_refused() -> None:
    whole = batch().to_bytes()
    for data in (b"", whole[:-1], whole + b"x", whole + whole, whole[:20], b"x" + whole, whole[1:]):
        with pytest.raises(ParameterError, match="data must be"):
            ReportBatch.from_bytes(data)
    for version, remedy in ((1, "ask those devices again"), (3, "use a newer sfumato")):
        with pytest.raises(ParameterError, match=f"data must be of version 2, got {version}; {remedy}"):
            ReportBatch.from_bytes(whole[:8] + version.to_bytes(2, "little") + whole[10:])
    with pytest.raises(ParameterError, match="data must have the header"):
        ReportBatch.from_bytes(whole[:11] + b"\x01" + whole[12:])
    with pytest.raises(ParameterError, match="data must be of this specification"):
        ReportBatch.from_bytes(whole, digest=bytes(32))


@given(st.binary(max_size=120), st.integers(0, 60))
def test_hostile_bytes_raise_one_error(data: bytes, at: int) -> None:
    whole = bytearray(batch().to_bytes())
    whole[at : at + len(data)] = data
    for candidate in (data, bytes(whole)):
        with contextlib.suppress(ParameterError):
            assert isinstance(ReportBatch.from_bytes(candidate), ReportBatch)


def test_batches_are_joined_and_shuffled() -> None:
    one, other = batch(50), batch(30, 2)
    joined = ReportBatch.concatenated([one, other])
    assert list(joined) == [*one, *other]
    mixed = joined.shuffled(3)
    assert sorted(mixed) == sorted(joined)
    assert list(mixed) != list(joined)
    stranger = RandomizedResponseRandomizer(epsilon=1.5, domain=Domain(range(1000))).randomize_batch([1], 1)
    for odd in ([], [one, stranger]):
        with pytest.raises(ParameterError, match="batches must be"):
            ReportBatch.concatenated(odd)


class Words:
    """A source of the words that a test gives it."""

    simulated = True

    def __init__(self, *given: Sequence[int]) -> None:
        self.left = list(given)

    def words(self, count: int) -> np.ndarray:
        return np.array(self.left.pop(0), np.uint64)

    def bytes(self, count: int) -> bytes:
        raise AssertionError


def test_every_order_is_as_likely() -> None:
    """All orders of the words, which are as likely as one another, give another order of the reports each."""
    given = RandomizedResponseRandomizer(epsilon=9.0, domain=Domain(range(100))).randomize_batch([1, 2, 3], 1)
    for words in ((0, 1, 2), (3, 2**63, 2**64 - 1)):
        orders = Counter(tuple(given.shuffled(Words(order))) for order in permutations(words))
        assert orders == Counter(permutations(given))


def test_words_that_are_alike_are_drawn_anew() -> None:
    source = Words([5, 1, 1], [7, 9, 8])
    given = ReportBatch(np.array([[1], [2], [3]], np.uint8), bytes(32))
    assert given.shuffled(source).records.tolist() == [[1], [3], [2]]
    assert not source.left
