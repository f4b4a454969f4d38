"""Exact choices against their laws: every decision by an independent reference, then the laws by counting."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.numerics.certified.exponentials import RELATIVE_ERROR, powers
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.randomness.uniform import UniformBits, uniform_integers
from sfumato.numerics.sampling import choice
from sfumato.numerics.sampling.choice import choose, flip
from tests.cases import cases
from tests.chance import accepts_only, frequencies, rate
from tests.numerics.enumeration import enumerated, residues
from tests.numerics.sources import ListedSource

TOP = 2**64 - 1


def weights(gaps: Any, rate: Fraction, multiplicity: Any = None) -> list[mp.mpf]:
    counts = [1] * len(gaps) if multiplicity is None else multiplicity
    scale = mp.mpf(rate.numerator) / rate.denominator
    least = min(gap for gap, count in zip(gaps, counts, strict=True) if count)
    return [
        int(count) * mp.exp(-scale * (int(gap) - int(least))) for gap, count in zip(gaps, counts, strict=True)
    ]


def reference(words: list[int], weighted: list[mp.mpf]) -> int:
    """The choice that a uniform with these leading bits makes; they must decide."""
    value = joined(words)
    place = mp.mpf(value) / mp.mpf(2) ** (64 * len(words)) * mp.fsum(weighted)
    border = mp.mpf(0)
    for index, weight in enumerate(weighted):
        border += weight
        if place < border:
            return index
    raise AssertionError("the uniform is at most the whole")


def joined(words: list[int]) -> int:
    value = 0
    for word in words:
        value = value << 64 | word
    return value


@pytest.mark.parametrize("rate", [Fraction(1, 10**6), Fraction(1, 3), Fraction(50), Fraction(1, 2**70)])
def test_powers_enclose_the_exponential(rate: Fraction) -> None:
    limit = min(int(180 / rate) + 2, 2**62)
    k = np.unique(
        np.array([0, 1, 2, 5, 1000, 2**20 + 3, limit // 7, limit // 2, limit - 1, limit, 2**62], np.int64)
    )
    with mp.workdps(200):
        truths = [mp.exp(-mp.mpf(rate.numerator) * int(x) / rate.denominator) for x in k]
        for value, truth in zip(powers(rate).floats(k), truths, strict=True):
            assert abs(mp.mpf(float(value)) - truth) <= truth * RELATIVE_ERROR + mp.mpf(2) ** -254
        for bits in (64, 192, 320):
            table = powers(rate, bits)
            for low, truth in zip(table.exact(k), truths, strict=True):
                assert low <= truth * mp.mpf(2) ** bits <= low + table.error


@cases(
    ("gaps", "rate", "multiplicity"),
    [
        ([0, 1, 2, 3], Fraction(1, 2), None),
        ([7, 7, 7], Fraction(3), None),
        ([0, 40, 1], Fraction(1), [1, 10**18, 3]),
        ([5, 2**62, 4, 9], Fraction(1, 3), [0, 1, 2, 0]),
        ([0, 10**6, 10**6 + 1], Fraction(1), [0, 1, 1]),
    ],
)
def test_borders_are_decided_exactly(gaps: list[int], rate: Fraction, multiplicity: list[int] | None) -> None:
    """Words at, just below and just above each border; further words decide the first of these."""
    array = np.array(gaps)
    counts = None if multiplicity is None else np.array(multiplicity)
    with mp.workdps(150):
        weighted = weights(gaps, rate, multiplicity)
        whole = mp.fsum(weighted)
        for cut in itertools.accumulate(weighted[:-1]):
            word = int(mp.floor(cut / whole * mp.mpf(2) ** 64))
            exact = int(mp.floor(cut / whole * mp.mpf(2) ** 128)) - (word << 64)
            near = [[word, exact - 1], [word, exact + 1], [word - 1, TOP - 1], [word + 1, 1], [word, 0]]
            for words in near:
                if all(0 <= each <= TOP for each in words):
                    listed = [*words, *SimulatedSource(1).words(4).tolist()]
                    drawn = choose(array, rate, multiplicity=counts, rng=ListedSource(listed))
                    assert drawn == reference(listed, weighted)


def test_open_draws_and_closed_ones_agree() -> None:
    generator = np.random.default_rng(3)
    gaps, counts = generator.integers(0, 400, 3000), generator.integers(0, 5, 3000)
    rate = Fraction(1, 37)
    usual = choice._Candidates(gaps, rate, counts).draw(200, SimulatedSource(5))
    words = SimulatedSource(5).words(200)
    forced = choice._Candidates(gaps, rate, counts)
    exact = [forced.resolve(UniformBits(int(word), 64, SimulatedSource(1))) for word in words]
    assert usual.tolist() == exact


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=6),
    st.fractions(Fraction(1, 10**6), 100, max_denominator=10**6),
    st.integers(0, 2**64 - 1),
)
def test_any_word_is_decided_as_the_reference_does(gaps: list[int], rate: Fraction, word: int) -> None:
    further = SimulatedSource(word % 1000).words(6).tolist()
    with mp.workdps(200):
        expected = reference([word, *further], weights(gaps, rate))
    assert choose(np.array(gaps), rate, rng=ListedSource([word, *further])) == expected


@cases("size", [1, 5, 1024, 1025, 5000])
def test_choices_follow_the_law(size: int) -> None:
    generator = np.random.default_rng(size)
    gaps, counts = generator.integers(0, 50, size), generator.integers(0, 4, size)
    counts[0] = 1
    draws = choose(gaps, Fraction(1, 20), multiplicity=counts, size=(1000, 200), rng=11)
    assert draws.shape == (1000, 200)

    def distribution(counts: np.ndarray, rate: float) -> dict[int, float]:
        weights = counts * np.exp(-gaps * rate)
        return dict(enumerate(weights / weights.sum()))

    check = frequencies(Counter(draws.ravel().tolist()))
    if size == 1:
        accepts_only(check, {0: 1.0}, never={0: 0.0})
        return
    accepts_only(
        check,
        distribution(counts, 1 / 20),
        twice_the_rate=distribution(counts, 1 / 10),
        a_place_off=distribution(np.roll(counts, 1), 1 / 20),
        one_of_each=distribution(np.ones_like(counts), 1 / 20),
    )


def test_coins_follow_their_law() -> None:
    gaps = np.repeat(np.arange(0, 60, 6), 100_000)
    heads = flip(gaps, Fraction(1, 10), rng=4).reshape(10, -1).sum(axis=1)
    assert heads[0] == 100_000
    for gap, hits in zip(range(6, 60, 6), heads[1:].tolist(), strict=True):
        chance = math.exp(-gap / 10)
        accepts_only(rate(hits, 100_000), chance, more=1.5 * chance, fewer=chance / 1.5)


@pytest.mark.parametrize("gap", [1, 3, 40])
def test_coins_at_their_border_are_decided_exactly(gap: int) -> None:
    rate = Fraction(2, 7)
    with mp.workdps(80):
        chance = mp.exp(-mp.mpf(2 * gap) / 7)
        word = int(mp.floor(chance * mp.mpf(2) ** 64))
        exact = int(mp.floor(chance * mp.mpf(2) ** 128)) - (word << 64)
    assert flip(np.array([gap]), rate, ListedSource([word, exact - 1])).tolist() == [True]
    assert flip(np.array([gap]), rate, ListedSource([word, exact + 1])).tolist() == [False]
    assert flip(np.array([gap]), rate, ListedSource([word - 1])).tolist() == [True]
    assert flip(np.array([gap]), rate, ListedSource([word + 1])).tolist() == [False]
    assert flip(np.array([0, gap]), rate, ListedSource([TOP, 0])).tolist() == [True, True]


def test_uniform_integers_are_even() -> None:
    distribution = enumerated(lambda word: int(uniform_integers(7, 1, ListedSource([word]))[0]), residues(7))
    assert distribution == dict.fromkeys(range(7), Fraction(1, 7))
    bound = 3 * 2**60
    refused = (1 << 64) - (1 << 64) % bound
    assert uniform_integers(bound, 2, ListedSource([refused, 5, 8])).tolist() == [8, 5]
    assert uniform_integers(1, 3, SimulatedSource(1)).tolist() == [0, 0, 0]


@cases(
    ("call", "message"),
    [
        (lambda: choose(np.array([], int), 1), "gaps must hold at least one candidate, but it is empty"),
        (lambda: choose(np.array([1.5]), 1), "gaps must be a one-dimensional array of integers"),
        (lambda: choose(np.array([[1]]), 1), "gaps must be a one-dimensional"),
        (lambda: choose(np.array([1]), 0), "rate must be positive"),
        (
            lambda: choose(np.array([1]), 1, multiplicity=np.array([1, 2])),
            r"multiplicity must have the shape",
        ),
        (
            lambda: choose(np.array([1]), 1, multiplicity=np.array([0])),
            "multiplicity must have a positive sum, but all its entries are 0",
        ),
        (lambda: choose(np.array([1]), 1, size=-1), "size must be an integer"),
    ],
)
def test_bad_parameters_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
