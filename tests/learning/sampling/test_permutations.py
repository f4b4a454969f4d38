"""Uniform orders and subsets: every choice of the words counted, and the whole law by simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato.learning.sampling.permutations import Allocated, LastValue, permutation, subset, subsets
from sfumato.learning.sampling.seed import Seed
from tests.cases import cases
from tests.chance import FALSE_ALARM, accepts_only
from tests.learning.sampling.schedules import fits


class _Words:
    """Gives chosen words in turn."""

    simulated = True

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def words(self, count: int) -> NDArray[np.uint64]:
        taken, self._words = self._words[:count], self._words[count:]
        assert len(taken) == count
        return np.array(taken, np.uint64)

    def bytes(self, count: int) -> bytes:
        raise NotImplementedError


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_order_comes_from_as_many_orders_of_the_words(count: int) -> None:
    orders = Counter(tuple(permutation(count, _Words(list(w)))) for w in permutations(range(5, 5 + count)))
    assert len(orders) == len(set(permutations(range(count))))
    assert set(orders.values()) == {1}


def test_words_that_are_equal_are_all_drawn_again() -> None:
    assert permutation(3, _Words([1, 2, 1, 9, 8, 7])).tolist() == [2, 1, 0]


@cases(("count", "size"), [(4, 1), (4, 2), (5, 2), (6, 3), (5, 3), (5, 4), (4, 4)])
def test_each_subset_comes_from_as_many_choices(count: int, size: int) -> None:
    drawn = size if 2 * size <= count else count - size
    bounds = range(count - drawn + 1, count + 1)
    counts = Counter(
        tuple(sorted(subsets(1, count, size, _Words(list(choice)))[:, 0].tolist()))
        for choice in product(*(range(bound) for bound in bounds))
    )
    assert set(counts) == set(combinations(range(count), size))
    assert len(set(counts.values())) == 1


def test_units_draw_their_subsets_independently() -> None:
    stream = Seed.of(1).stream("test", 0)
    counts: Counter[Hashable] = Counter()
    drawn = subsets(20_000, 4, 2, stream)
    for i in range(0, 20_000, 2):
        counts[tuple(frozenset(drawn[:, i + j].tolist()) for j in (0, 1))] += 1
    sets = [frozenset(pair) for pair in combinations(range(4), 2)]

    def law(alike: Fraction) -> dict[Hashable, Fraction]:
        """Two units get one subset with some chance, instead of two."""
        return {
            pair: (1 - alike) / 36 + (alike / 6 if pair[0] == pair[1] else 0) for pair in product(sets, sets)
        }

    accepts_only(
        fits(counts), law(Fraction(0)), sometimes_alike=law(Fraction(1, 12)), apart=law(Fraction(-1, 5))
    )


@cases("size", [1, 3, 5, 200, 700])
def test_many_units_each_get_distinct_numbers(size: int) -> None:
    drawn = subsets(3000, 1000, size, Seed.of(1).stream("test", 0))
    assert drawn.shape == (size, 3000)
    assert drawn.min() >= 0
    assert drawn.max() < 1000
    assert (np.diff(np.sort(drawn, axis=0), axis=0) > 0).all()
    counts = np.bincount(drawn.ravel(), minlength=1000)

    def check(chances: NDArray[np.float64]) -> None:
        """How many units have a number is binomial, for each of 1,000 numbers."""
        tail = np.minimum(binom.cdf(counts, 3000, chances), binom.sf(counts - 1, 3000, chances))
        assert (2 * tail > FALSE_ALARM / 1000).all()

    right = np.full(1000, size / 1000)
    others = np.append(np.full(999, size / 999), 0.0)
    accepts_only(check, right, last_never=others, first_never=others[::-1])


@cases(("count", "size"), [(6, 2), (6, 3), (6, 5)])
def test_all_subsets_are_equally_likely(count: int, size: int) -> None:
    stream = Seed.of(2).stream("test", 0)
    counts: Counter[Hashable] = Counter(tuple(subset(count, size, stream).tolist()) for _ in range(2000))

    def law(weight: Fraction) -> dict[tuple[int, ...], Fraction]:
        """Sets that hold the first number are so many times as likely as others."""
        weights = {s: weight if 0 in s else Fraction(1) for s in combinations(range(count), size)}
        return {chosen: each / sum(weights.values()) for chosen, each in weights.items()}

    accepts_only(
        fits(counts), law(Fraction(1)), first_often=law(Fraction(5, 2)), first_seldom=law(Fraction(2, 5))
    )


def test_none_and_all_are_one_subset() -> None:
    stream = Seed.of(2).stream("test", 0)
    for count in (6, 1):
        assert subset(count, 0, stream).tolist() == []
        assert subset(count, count, stream).tolist() == list(range(count))


def test_a_large_subset_draws_on_until_it_is_full() -> None:
    stream = Seed.of(3).stream("test", 0)
    for size in (49_000, 51_000):
        chosen = subset(100_000, size, stream)
        assert chosen.size == size
        assert (np.diff(chosen) > 0).all()
        assert 0 <= chosen[0] <= chosen[-1] < 100_000


def test_allocated_units_are_sorted_by_step() -> None:
    allocated = Allocated.of(np.array([[2, 0, 2], [0, 3, 3]]), 5)
    batches = [allocated.batch(step).tolist() for step in range(5)]
    assert batches == [[0, 1], [], [0, 2], [1, 2], []]


def test_held_values_are_made_once_for_a_key() -> None:
    last: LastValue[int] = LastValue()
    made: list[int] = []

    def make(value: int) -> int:
        made.append(value)
        return value

    assert [last.of(key, lambda key=key: make(key)) for key in (1, 1, 2, 2, 1)] == [1, 1, 2, 2, 1]  # type: ignore[misc]
    assert made == [1, 2, 1]
