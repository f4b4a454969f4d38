"""Uniform integers: where words are refused, to the word."""

from __future__ import annotations

import pytest

from sfumato.numerics.randomness.uniform import uniform_integers
from tests.numerics.sources import ListedSource

WORDS = 1 << 64


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 1000, 3 << 40, (1 << 62) - 1, 1 << 62])
def test_all_words_below_the_last_multiple_are_taken_and_no_other(bound: int) -> None:
    multiple = WORDS - WORDS % bound
    taken = ListedSource([multiple - 1])
    assert uniform_integers(bound, 1, taken).tolist() == [bound - 1]
    assert taken.requests == [1]
    if multiple == WORDS:
        return
    for word in (multiple, WORDS - 1):
        refused = ListedSource([word, 0])
        assert uniform_integers(bound, 1, refused).tolist() == [0]
        assert refused.requests == [1, 1]


def test_only_the_refused_are_drawn_again_and_as_often_as_they_are_refused() -> None:
    last = WORDS - WORDS % 3
    source = ListedSource([last, 4, last, last, 5, 7])
    assert uniform_integers(3, 3, source).tolist() == [1, 1, 2]
    assert source.requests == [3, 2, 1]
