"""Exact orders: the law of peeling, and decisions that the first words leave open against mpmath."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.numerics.sampling.exponential_race import choose_distinct
from tests.cases import cases
from tests.chance import accepts_only, frequencies
from tests.numerics.sources import ListedSource

TOP = 2**64 - 1


def time_of(word: int, further: int, gap: int, rate: Fraction, factor: int) -> mp.mpf:
    """The log of the time of arrival of a candidate with a uniform of 128 bits."""
    uniform = (mp.mpf(word) + mp.mpf(further) / mp.mpf(2) ** 64) / mp.mpf(2) ** 64
    return mp.log(-mp.log1p(-uniform)) + mp.mpf(rate.numerator) * gap / rate.denominator - mp.log(factor)


@pytest.mark.parametrize("rate", [Fraction(1, 4), Fraction(12)])
@pytest.mark.parametrize("factors", [[1, 1, 1, 1], [1, 7, 2, 10**15]])
def test_orders_have_the_law_of_peeling(rate: Fraction, factors: list[int]) -> None:
    gaps, trials = np.array([0, 2, 1, 1]), 8_000
    source = SimulatedSource(9)
    observed = Counter[tuple[int, ...]]()
    for _ in range(trials):
        drawn = choose_distinct(gaps, rate, 3, multiplicity=np.array(factors), rng=source)
        observed[tuple(drawn.tolist())] += 1

    def peeling(rate: float, factors: list[int]) -> dict[tuple[int, ...], float]:
        weights = np.array(factors) * np.exp(-rate * gaps)
        distribution: dict[tuple[int, ...], float] = {}
        for order in itertools.permutations(range(4), 3):
            left, chance = list(range(4)), 1.0
            for index in order:
                chance *= weights[index] / weights[left].sum()
                left.remove(index)
            distribution[order] = chance
        return distribution

    accepts_only(
        frequencies(observed),
        peeling(float(rate), factors),
        slower=peeling(float(rate) / 4, factors),
        more_of_the_second=peeling(float(rate), [factors[0], 10**9, *factors[2:]]),
        backwards={tuple(reversed(order)): p for order, p in peeling(float(rate), factors).items()},
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 10**18), st.integers(0, TOP)), min_size=1, max_size=7
    ),
    st.fractions(Fraction(1, 10**4), 40, max_denominator=10**4),
)
def test_any_words_are_ordered_as_the_reference_orders_them(
    candidates: list[tuple[int, int, int]], rate: Fraction
) -> None:
    gaps, factors, words = (np.array(column, dtype=object) for column in zip(*candidates, strict=True))
    further = SimulatedSource(3).words(200).tolist()
    with mp.workdps(80):
        # No further word is needed but where times agree to 64 bits: a test below has those.
        times = [time_of(int(w), 0, int(g), rate, int(f)) for g, f, w in candidates]
        apart = [abs(x - y) for x, y in itertools.combinations(times, 2)]
    sharp = all(2**40 < word < TOP - 2**40 for word in words) and min(apart, default=1) > 1e-5
    drawn = choose_distinct(
        gaps.astype(np.int64),
        rate,
        len(candidates),
        multiplicity=factors.astype(np.int64),
        rng=ListedSource([*words.tolist(), *further]),
    ).tolist()
    assert sorted(drawn) == list(range(len(candidates)))
    if sharp:
        assert drawn == sorted(range(len(candidates)), key=lambda i: times[i])


@cases("word", [0, 1, 12345, 2**40, 2**63 + 17, TOP - 5, TOP])
def test_equal_words_are_told_apart_by_further_ones(word: int) -> None:
    gaps = np.array([4, 4])
    for further, first in (([5, 9], 0), ([9, 5], 1), ([7, 7, 1, 9], 0), ([7, 7, 9, 1], 1)):
        drawn = choose_distinct(gaps, 1, 1, rng=ListedSource([word, word, *further]))
        assert drawn.tolist() == [first]


@cases("word", [3, 10**6, 2**50 + 1, 2**62 + 99, 2**64 - 2**40])
@cases(("gap", "factor"), [(1, 1), (3, 5), (0, 3)])
def test_times_that_nearly_meet_are_told_apart_exactly(word: int, gap: int, factor: int) -> None:
    """The second candidate's words are those at which it arrives with the first, one unit up or down."""
    rate = Fraction(1, 3)
    with mp.workdps(120):
        time = time_of(word, 2**63, 0, rate, 1) - mp.mpf(gap) / 3 + mp.log(factor)
        uniform = -mp.expm1(-mp.exp(time))
        bits = int(mp.floor(uniform * mp.mpf(2) ** 128))
        # By how many units the second uniform moves where the first one moves by one.
        moved = (1 - uniform) / (1 - mp.mpf(word) / 2**64) * mp.exp(-mp.mpf(gap) / 3) * factor
    for step, first in ((-1, 1), (1, 0)):
        second = bits + step * (2 + int(mp.ceil(moved)))
        if 0 < second < 2**128 - 1:
            listed = [word, second >> 64, 2**63, second & TOP, *[2**63] * 20]
            drawn = choose_distinct(
                np.array([0, gap]), rate, 2, multiplicity=np.array([1, factor]), rng=ListedSource(listed)
            )
            # The first candidate's further words make it arrive at the time above; the second's are known.
            assert drawn[0] == first


def test_uniforms_that_start_with_zeros_or_ones_have_no_bound_yet() -> None:
    # The first arrives at 2^-128 for all its first word tells, or later than at 2400, 55 words of ones on.
    early = choose_distinct(np.array([5, 0]), 1, 1, rng=ListedSource([0, 1, 1, 0]))
    assert early.tolist() == [0]
    words = [TOP, 2**63, *[TOP, 0] * 60]
    late = choose_distinct(np.array([0, 817]), Fraction(1, 100), 1, rng=ListedSource(words))
    assert late.tolist() == [1]
    sooner = choose_distinct(np.array([0, 817]), Fraction(1, 100), 1, rng=ListedSource([TOP, 2**63, 5, 0]))
    assert sooner.tolist() == [0]


def test_orders_take_every_candidate_once() -> None:
    steep = np.arange(3000) * 10**15
    assert choose_distinct(steep, 1, 40, rng=1).tolist() == list(range(40))
    counts = np.array([0, 2, 0, 5, 1])
    assert sorted(choose_distinct(np.zeros(5, int), 1, 3, multiplicity=counts, rng=1).tolist()) == [1, 3, 4]
    assert choose_distinct(np.array([-9, 5]), 10, 1, multiplicity=np.array([0, 1]), rng=1).tolist() == [1]
    assert choose_distinct(np.zeros(5, int), 1, 0, rng=1).tolist() == []
    whole = choose_distinct(np.random.default_rng(1).integers(0, 9, 100_000), 1, 100_000, rng=2)
    assert np.array_equal(np.sort(whole), np.arange(100_000))


@cases(
    ("call", "message"),
    [
        (lambda: choose_distinct(np.zeros(2, int), 1, 3), "count must be at most the number of candidates"),
        (lambda: choose_distinct(np.zeros(2, int), 1, -1), "count must be an integer"),
        (lambda: choose_distinct(np.zeros(2, int), 2**65, 1), r"rate must be at most 2\*\*64"),
        (lambda: choose_distinct(np.array([], int), 1, 0), "gaps must hold at least one candidate, but"),
        (
            lambda: choose_distinct(np.zeros(2, int), 1, 2, multiplicity=np.array([0, 1])),
            "count must be at most the number of candidates",
        ),
    ],
)
def test_bad_parameters_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


@cases(
    ("one", "other", "factors"),
    [
        (TOP - 1, TOP - 2**38, None),
        (TOP - 1, TOP - 2**38, (1, 3)),
        (TOP - 2**38, TOP - 1, (10**9, 7)),
        (TOP - 2**38, 5, (1, 3)),
        (2**50 + 3, TOP - 2**40 - 7, (5, 7)),
        (7 * 2**61 + 9, 7 * 2**61 + 9, None),
        (5 * 2**61 + 9, 5 * 2**61 + 9, None),
    ],
)
@cases("order", [(0, 1), (1, 0)])
@cases("overlap", [2.0**-140, -(2.0**-140)])
def test_ranges_of_times_that_all_but_touch_are_not_confused(
    one: int, other: int, factors: tuple[int, int] | None, order: tuple[int, int], overlap: float
) -> None:
    """One's word leaves times open up to so much after the first that the other's leaves open."""
    with mp.workdps(150):
        ends = [time_of(one + 1, 0, 0, Fraction(1), 1), time_of(other, 0, 0, Fraction(1), 1)]
        if factors:
            ends = [end - mp.log(factor) for end, factor in zip(ends, factors, strict=True)]
        apart = ends[0] - ends[1] - overlap
        rate = Fraction(int(mp.floor(abs(apart) * mp.mpf(2) ** 400)), 2**400)
    # All further bits put the one as late as its word allows, and the other as early.
    words = [[one, *[TOP] * 8], [other, *[0] * 8]]
    drawn = choose_distinct(
        np.array([0, 1] if apart > 0 else [1, 0])[list(order)],
        rate,
        2,
        multiplicity=np.array(factors)[list(order)] if factors else None,
        rng=ListedSource(turn[index] for turn in zip(*words, strict=True) for index in order),
    )
    assert order[drawn[0]] == (1 if overlap > 0 else 0)
