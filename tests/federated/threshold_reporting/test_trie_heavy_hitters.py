"""Heavy hitters in a trie: rounds, votes, and the loss against an enumeration of all tries."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from sfumato.errors import ParameterError
from sfumato.federated import TrieHeavyHitters
from sfumato.federated.threshold_reporting.sample_and_threshold import sampled
from sfumato.federated.threshold_reporting.trie_heavy_hitters import END
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.privacy import ThresholdedSampling

PLAN = TrieHeavyHitters(sampling_probability=0.5, threshold=2, levels=2)
Law = dict[tuple[object, ...], Fraction]


def tries(words: list[str]) -> Law:
    """The exact distribution of both rounds' survivors and votes, over all samples of both rounds."""
    law: Law = {}
    coins = [*itertools.product((False, True), repeat=len(words))]
    each = Fraction(1, len(coins) ** 2)
    for first in coins:
        one = Counter(word[:1] for word, coin in zip(words, first, strict=True) if coin)
        trie = {prefix: votes for prefix, votes in one.items() if votes >= 2}
        for second in coins:
            two = Counter(
                (word + END)[:2]
                for word, coin in zip(words, second, strict=True)
                if coin and word[:1] in trie
            )
            kept = {prefix: votes for prefix, votes in two.items() if votes >= 2}
            key = (*sorted(trie.items()), "|", *sorted(kept.items()))
            law[key] = law.get(key, Fraction(0)) + each
    return law


def divergence(p: Law, q: Law, ratio: Fraction) -> Fraction:
    none = Fraction(0)
    return sum((max(none, mass - ratio * q.get(key, none)) for key, mass in p.items()), none)


def test_the_loss_covers_every_enumerated_trie() -> None:
    nearest = 0.0
    for words in (["ab"] * 3, ["ab"] * 4, ["ab", "ab", "a", "b"], ["ab", "ab", "ac", "ac"]):
        with_unit, without = tries(words), tries(words[:-1])
        for epsilon in (0.1, 0.4, 0.8):
            ratio = Fraction(math.exp(epsilon))
            worst = max(divergence(with_unit, without, ratio), divergence(without, with_unit, ratio))
            claimed = PLAN.privacy_loss.delta(epsilon)
            assert float(worst) <= claimed
            nearest = max(nearest, float(worst) / claimed)
    # The second round's worst case needs a first round that survives, so the sum is not reached.
    assert 0.6 < nearest < 0.62


def test_release_finds_the_words_that_many_hold() -> None:
    plan = TrieHeavyHitters(sampling_probability=0.25, threshold=12, levels=4)
    words = ["sun"] * 300 + ["star"] * 200 + ["su"] * 160 + ["moon"] * 20
    found = plan.release(words, rng=3)
    assert found.value.keys() == {"sun", "star", "su"}
    assert found.loss == ThresholdedSampling(0.25, 12) * 4
    assert all(count >= 12 for count in found.value.values())
    assert abs(found.value["star"] - 50) < 40


def test_there_are_as_many_rounds_as_levels() -> None:
    plan = TrieHeavyHitters(sampling_probability=0.25, threshold=1, levels=1)
    for seed in range(5):
        coins = sampled(400, 0.25, SimulatedSource(seed))
        assert plan.release(["a"] * 400, rng=SimulatedSource(seed)).value == {"a": int(coins.sum())}


def test_who_is_drawn_votes() -> None:
    for probability in (0.05, 0.95):
        plan = TrieHeavyHitters(sampling_probability=probability, threshold=2, levels=2)
        votes = sum(plan.vote("a", [], 1, rng=seed) is not None for seed in range(200))
        assert abs(votes - 200 * probability) < 30


def test_rounds_over_messages_reach_the_same_words() -> None:
    plan = TrieHeavyHitters(sampling_probability=0.5, threshold=10, levels=3)
    words = ["sun"] * 80 + ["sea"] * 80 + ["x"] * 4
    trie: list[str] = []
    for level in (1, 2, 3):
        votes = [plan.vote(word, trie, level, rng=level * 1000 + i) for i, word in enumerate(words)]
        assert all(vote is None or len(vote) == level for vote in votes)
        release = plan.tally(votes, rng=1)
        assert release.loss == plan.round.privacy_loss
        trie = list(release.value)
    assert sorted(trie) == ["sea", "sun"]


def test_a_vote_needs_its_parent_and_a_place() -> None:
    votes = {PLAN.vote("ab", ["x"], 2, rng=seed) for seed in range(20)}
    assert votes == {None}
    assert {PLAN.vote("a", ["a"], 2, rng=seed) for seed in range(20)} == {None, "a" + END}
    long = TrieHeavyHitters(sampling_probability=0.5, threshold=2, levels=5)
    assert {long.vote("a", ["a" + END], 3, rng=seed) for seed in range(20)} == {None}


def test_bad_words_and_levels_are_refused() -> None:
    for act, words in (
        (lambda: PLAN.vote("ab", [], 3, rng=1), "at most the 2 levels"),
        (lambda: PLAN.vote("ab", [], 0, rng=1), "level must be an integer of at least 1"),
        (lambda: [PLAN.vote("a\0", [], 1, rng=seed) for seed in range(40)], "without the character 0"),
        (lambda: PLAN.release("ab"), "list of words"),
        (lambda: PLAN.release([3]), "without the character 0"),
        (lambda: TrieHeavyHitters(sampling_probability=0.5, threshold=2, levels=0), "at least 1"),
    ):
        with pytest.raises(ParameterError, match=words):
            act()
