"""Reports about strings in pieces, hostile bytes, losses, and what fixed hash functions add."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import (
    Bitstogram,
    CountMeanSketch,
    Domain,
    HadamardCountMeanSketch,
    OneBitHadamard,
    PrefixExtending,
    SequenceFragmentPuzzle,
    Strings,
    TreeHist,
)
from sfumato.local.strings.code_counts import NumberedAnswers, SketchedAnswers, answers_of
from sfumato.local.strings.significance import judged
from sfumato.privacy import Neighboring
from sfumato.privacy.nodes.shuffled import Shuffled
from tests.cases import cases
from tests.chance import accepts_only, at_most

KINDS: list[Any] = [PrefixExtending, TreeHist, Bitstogram, SequenceFragmentPuzzle]
STRINGS = Strings(length=4, alphabet="abcd")
VALUES = ["abba", "dada", "c", ""] * 300


def made(kind: Any, weight: int, **shape: Any) -> Any:
    sketch = {} if kind is PrefixExtending else {"hashes": 16, "size": 64}
    return kind(**{"epsilon": 5.0, "strings": STRINGS, "weight": weight, **sketch, **shape})


@cases("kind", KINDS)
@cases("weight", [0, 2])
def test_pieces_merge_and_states_come_back(kind: Any, weight: int) -> None:
    protocol = made(kind, weight)
    batches = [protocol.randomize_batch(VALUES, seed) for seed in range(3)]
    whole, left, right = (protocol.aggregator() for _ in range(3))
    for batch in batches:
        whole.add_batch(batch)
    left.add_batch(batches[2].to_bytes())
    right.add_batch(batches[0].shuffled(4))
    right.add_batch(batches[1])
    merged = protocol.aggregator(left.to_bytes()).merge(right.to_bytes())
    assert merged.accepted == whole.accepted == 3600
    told, same = whole.estimate(), merged.estimate()
    assert told.found == same.found
    assert told.frequencies.tolist() == same.frequencies.tolist()
    assert told.found[:2]
    single, few = protocol.aggregator(), protocol.aggregator()
    assert all(single.add(record) for record in list(batches[0])[:50])
    few.add_batch(batches[0].records[:50])
    assert single.estimate().frequencies.tolist() == few.estimate().frequencies.tolist()


@cases("kind", KINDS)
@cases("weight", [0, 2])
def test_whatever_bytes_come_are_counted(kind: Any, weight: int) -> None:
    protocol = made(kind, weight)
    hostile = protocol.aggregator()
    noise = np.random.default_rng(5).integers(0, 256, (20_000, protocol.device.width), dtype=np.uint8)
    hostile.add_batch(noise)
    hostile.add(b"x")
    hostile.add_batch(made(kind, weight, epsilon=4.0).randomize_batch(VALUES, 1))
    assert hostile.refused["specification"] > 10_000
    before = hostile.refused["encoding"]
    protocol.device.layout.stamp(noise)
    hostile.add_batch(noise)
    assert hostile.refused["encoding"] > before + 15_000
    assert hostile.accepted + sum(hostile.refused.values()) == 40_001 + len(VALUES)
    estimate = hostile.estimate()
    assert np.isfinite(estimate.frequencies).all()
    state = hostile.to_bytes()
    for data in (state[:-1], state + b"\0", b"", state[:40], state[:8] + b"\xff" + state[9:]):
        with pytest.raises(ParameterError, match="state must"):
            protocol.aggregator(data)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_states_that_nobody_counted_tell_something_and_never_crash(kind: Any) -> None:
    protocol = made(kind, 2)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(VALUES, 1))
    state, generator = bytearray(aggregator.to_bytes()), np.random.default_rng(1)
    for _ in range(5):
        forged = generator.integers(-1000, 1000, protocol.totals).astype("<i8").tobytes()
        state[-len(forged) :] = forged
        told = protocol.aggregator(bytes(state)).estimate()
        assert len(told.candidates) == len(told.frequencies)


def test_records_that_are_kept_must_be_sound() -> None:
    protocol = made(PrefixExtending, 2)
    keeper = protocol.aggregator()
    keeper.add_batch(protocol.randomize_batch(VALUES, 1))
    state = bytearray(keeper.to_bytes())
    state[-1] ^= 0x80
    with pytest.raises(ParameterError, match="state must"):
        protocol.aggregator(bytes(state))
    before = keeper.to_bytes()
    with pytest.raises(ParameterError, match="state must"):
        keeper.load(bytes(state))
    assert keeper.to_bytes() == before
    with pytest.raises(ParameterError, match="other must"):
        keeper.merge(made(PrefixExtending, 3).aggregator())
    assert keeper.records.shape == (len(VALUES), protocol.device.width)


@cases("kind", KINDS)
@cases("weight", [0, 2])
@cases("epsilon", [0.5, 1.0, 4.0])
def test_losses_are_close_to_epsilon_and_never_above(kind: Any, weight: int, epsilon: float) -> None:
    protocol = made(kind, weight, epsilon=epsilon)
    loss = protocol.privacy_loss
    assert loss.neighboring is Neighboring.REPLACE_ONE
    assert 0.98 * epsilon <= loss.epsilon(0.0) <= epsilon * (1 + 1e-12)
    assert Shuffled(loss, clients=100_000).epsilon(1e-6) < epsilon / 2


def test_two_losses_that_differ_are_mixed() -> None:
    # In the puzzle both are by one sketch; a domain of two codes in all makes no difference to its law.
    protocol = made(SequenceFragmentPuzzle, 3)
    assert protocol.privacy_loss == protocol.part.loss == protocol.whole.loss
    split = made(SequenceFragmentPuzzle, 0)
    assert split.part.loss.epsilon(0.0) + split.whole.loss.epsilon(0.0) <= 5.0
    assert split.privacy_loss.epsilon(0.0) == pytest.approx(2 * split.part.loss.epsilon(0.0))


@pytest.mark.parametrize("kind", [CountMeanSketch, HadamardCountMeanSketch, OneBitHadamard])
def test_answers_are_those_of_the_oracle(kind: Any) -> None:
    shape = {} if kind is OneBitHadamard else {"size": 16, "hashes": 40, "key": 3}
    oracle = kind(epsilon=1.0, domain=Domain(range(90)), **shape)
    answers = NumberedAnswers(oracle) if kind is OneBitHadamard else SketchedAnswers(oracle)
    assert answers_of(oracle.device) == answers
    batches = [oracle.randomize_batch(np.arange(700) % 90, seed).records for seed in (1, 2)]
    told = answers.tally(batches[0]) + answers.tally(batches[1])
    counted = oracle.tally(batches[0]) + oracle.tally(batches[1])
    assert len(told) == answers.totals
    codes = np.array([3, 89, 3, 0])
    expected = oracle.supports(counted) if kind is OneBitHadamard else counted
    assert answers.supports(told, 1400, codes).tolist() == expected[codes].tolist()
    with pytest.raises(ParameterError, match="device must be"):
        answers_of(made(TreeHist, 1).device)


@pytest.mark.parametrize("kind", [CountMeanSketch, HadamardCountMeanSketch])
def test_what_frequent_strings_add_by_collisions_is_taken_off(kind: Any) -> None:
    oracle = kind(epsilon=4.0, domain=Domain(range(1000)), size=16, hashes=8, key=1)
    answers, codes, shares = SketchedAnswers(oracle), np.arange(40), np.zeros(40)
    shares[[2, 7, 30]] = 0.5, 0.2, 0.1  # a fifth have strings beyond the candidates
    places = oracle.device.indices(np.arange(8)[:, None], codes[None, :])
    alike = (places[:, :, None] == places[:, None, :]).mean(axis=0)
    support, n = oracle.support, 10**12
    other = float(support.other) - float(support.gap) / 15  # what a report supports without collisions
    chance = other + float(support.gap) * 16 / 15 * (alike @ shares + 0.2 / 16)
    counts = np.rint(chance * n).astype(np.int64)
    # With fixed functions so few, raw estimates are off by tenths, and all seems to be there.
    assert abs(support.shares(counts, n) - shares).max() > 0.05
    told = judged(answers, counts, n, codes, 0.05)
    assert set(np.flatnonzero(told.found)) >= {2, 7, 30}
    assert (np.diag(answers.collisions(codes, codes)) == 0).all()
    some = np.array([7, 2, 30, 7])  # one of them twice, as two strings with one fingerprint are
    added = answers.added(codes, some, np.array([0.3, 0.2, 0.1, 0.4]))
    assert added == pytest.approx(answers.collisions(codes, some) @ [0.3, 0.2, 0.1, 0.4], abs=1e-12)
    assert told.shares[[2, 7, 30]] == pytest.approx([0.5, 0.2, 0.1], abs=1e-6)
    assert told.shares[shares == 0] == pytest.approx(np.zeros(37), abs=1e-6)


def test_without_that_small_sketches_would_make_strings_up() -> None:
    # One string has half of all people; none has another. Forty families of few functions.
    false = raw_false = 0
    for key in range(40):
        protocol = made(TreeHist, 4, key=key, epsilon=6.0, hashes=8)
        records = protocol.randomize_batch(["abba"] * 4000, key).records
        aggregator = protocol.aggregator()
        aggregator.add_batch(records)
        told = aggregator.estimate()
        false += bool(set(told.found) - {"abba"})
        assert "abba" in told.found
        whole = protocol.whole
        pieces = protocol.device.cut(
            records[protocol.device.asked(records) == protocol.device.questions], whole=True
        )
        codes = protocol.device.whole_codes(STRINGS.symbols(told.candidates))
        raw = whole.support.shares(whole.supports(whole.tally(pieces), len(pieces), codes), len(pieces))
        deviation = np.sqrt(whole.support.variance(np.zeros(1))[0] / len(pieces))
        others = np.array([text != "abba" for text in told.candidates])
        raw_false += bool((raw[others] > 4 * deviation).any())
    accepts_only(lambda count: at_most(count, 40)(0.05), false, without_collisions=raw_false)


def test_a_spread_is_an_inner_one_and_more() -> None:
    protocol = made(TreeHist, 4, hashes=8)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(VALUES, 1))
    estimate = aggregator.estimate()
    inner = estimate.error_model.inner
    shares = np.clip(estimate.frequencies, 0, 1)
    more = estimate.error_model.variance(shares) - inner.variance(shares)
    assert (more > 0).all()
    rows = np.array([0, 2])
    difference = estimate.error_model.covariance(shares, rows) - inner.covariance(shares, rows)
    assert difference[[0, 1], rows] == pytest.approx(more[rows])
    assert np.count_nonzero(difference) == 2


def test_records_that_come_one_by_one_are_kept_together() -> None:
    protocol = made(PrefixExtending, 2)
    batch = protocol.randomize_batch(["abba", "c"] * 3000, 1)
    keeper = protocol.aggregator()
    assert all(keeper.add(record) for record in batch)
    assert keeper.records.tolist() == batch.records.tolist()
    assert keeper.merge(keeper.to_bytes()).accepted == 12_000
    assert keeper.records.tolist() == batch.records.tolist() * 2
