"""The helper that enumerates: exact shares of words, and no two words of a piece that are told apart."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.numerics.enumeration import WORDS, enumerated, pieces, residues


def test_borders_are_found_to_the_word() -> None:
    borders = [1, 12345, 1 << 63, WORDS - 1]
    found = pieces(lambda word: sum(word >= border for border in borders))
    assert [ends for ends, _ in found] == [
        (low, high - 1) for low, high in zip([0, *borders], [*borders, WORDS], strict=True)
    ]
    assert [share for _, share in found] == [Fraction(ends[1] + 1 - ends[0], WORDS) for ends, _ in found]
    assert sum(share for _, share in found) == 1


def test_shares_of_independent_words_are_multiplied() -> None:
    third = pieces(lambda word: word < WORDS // 4)
    distribution = enumerated(lambda one, other: (one < WORDS // 4, other % 3), third, residues(3))
    assert distribution[True, 0] == Fraction(1, 12)
    assert distribution[False, 2] == Fraction(1, 4)
    assert sum(distribution.values()) == 1


def test_words_of_one_piece_that_are_told_apart_are_noticed() -> None:
    with pytest.raises(AssertionError, match="told apart"):
        enumerated(lambda word: word % 2, [((0, 1), Fraction(1))])
    with pytest.raises(AssertionError, match="told apart"):
        enumerated(lambda word: word % 4, residues(2))
