"""The field of 2^61 - 1 against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.crypto.prime_field import PRIME, inverse, multiply, product, reduced, subtract, uniform

EDGES = [0, 1, 2, 7, (1 << 29) - 1, 1 << 29, (1 << 32) - 1, 1 << 32, PRIME // 2, PRIME - 2, PRIME - 1]


def elements(count: int) -> list[int]:
    drawn = np.random.default_rng(1).integers(0, PRIME, count, dtype=np.uint64)
    return [*EDGES, *drawn.tolist()]


def test_products_and_differences_are_exact() -> None:
    values = elements(50)
    left = np.array(values, np.uint64)[:, None]
    right = np.array(values, np.uint64)[None, :]
    assert multiply(left, right).tolist() == [[a * b % PRIME for b in values] for a in values]
    assert subtract(left, right).tolist() == [[(a - b) % PRIME for b in values] for a in values]


def test_every_word_is_reduced() -> None:
    words = [0, PRIME - 1, PRIME, PRIME + 1, 2 * PRIME, 2 * PRIME + 1, 7 * PRIME, (1 << 64) - 1]
    assert reduced(np.array(words, np.uint64)).tolist() == [word % PRIME for word in words]


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8])
def test_inverses_and_long_products(width: int) -> None:
    values = np.random.default_rng(width).integers(1, PRIME, (3, width), dtype=np.uint64)
    assert inverse(values).tolist() == [[pow(v, -1, PRIME) for v in row] for row in values.tolist()]
    for row, found in zip(values.tolist(), product(values).tolist(), strict=True):
        whole = 1
        for value in row:
            whole = whole * value % PRIME
        assert found == whole


class Words:
    """A source that first gives the one word that is no element."""

    simulated = True

    def __init__(self) -> None:
        self.asked: list[int] = []

    def words(self, count: int) -> np.ndarray:
        self.asked.append(count)
        return np.full(count, (1 << 64) - 1 if len(self.asked) == 1 else (5 << 61) + 3, np.uint64)

    def bytes(self, count: int) -> bytes:
        raise AssertionError


def test_a_draw_that_is_no_element_is_drawn_again() -> None:
    source = Words()
    assert uniform((2, 2), source).tolist() == [[3, 3], [3, 3]]
    assert source.asked == [4, 4]
