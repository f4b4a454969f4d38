"""Uniform orders and subsets: every choice of the words counted, and the whole law by simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.learning.sampling.orders import Allocated, Held, permutation, subset, subsets
from sfumato.learning.sampling.seed import Seed
from tests.cases import cases
from tests.learning.sampling.laws import assert_law


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
    assert_law(counts, {pair: Fraction(1, 36) for pair in product(sets, sets)})


@cases("size", [1, 3, 5, 200, 700])
def test_many_units_each_get_distinct_numbers(size: int) -> None:
    drawn = subsets(3000, 1000, size, Seed.of(1).stream("test", 0))
    assert drawn.shape == (size, 3000)
    assert drawn.min() >= 0
    assert drawn.max() < 1000
    assert (np.diff(np.sort(drawn, axis=0), axis=0) > 0).all()
    counts = np.bincount(drawn.ravel(), minlength=1000)
    share = size / 1000
    assert np.abs(counts - 3000 * share).max() < 7.5 * np.sqrt(3000 * share * (1 - share)) + 15


@cases(("count", "size"), [(6, 0), (6, 2), (6, 3), (6, 5), (6, 6), (1, 1)])
def test_all_subsets_are_equally_likely(count: int, size: int) -> None:
    stream = Seed.of(2).stream("test", 0)
    counts: Counter[Hashable] = Counter(tuple(subset(count, size, stream).tolist()) for _ in range(2000))
    law: dict[Hashable, Fraction] = {
        chosen: Fraction(1, comb(count, size)) for chosen in combinations(range(count), size)
    }
    assert_law(counts, law)


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
    held: Held[int] = Held()
    made: list[int] = []

    def make(value: int) -> int:
        made.append(value)
        return value

    assert [held.of(key, lambda key=key: make(key)) for key in (1, 1, 2, 2, 1)] == [1, 1, 2, 2, 1]  # type: ignore[misc]
    assert made == [1, 2, 1]
