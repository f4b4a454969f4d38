"""Strings as symbols and back, cut by one rule, and hashes that are even, independent and always the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.local.device import Strings
from sfumato.local.device.domains.strings import hashed_rows
from tests.cases import cases
from tests.chance import accepts_only, rate

WORDS = Strings(length=5, alphabet="abcß€𝄞")
BYTES = Strings(length=3, alphabet=bytes(range(256)))


@settings(max_examples=40)
@given(st.lists(st.text(alphabet="abcß€𝄞", max_size=9)))
def test_strings_are_their_symbols_up_to_the_length(values: list[str]) -> None:
    assert WORDS.values(WORDS.symbols(values)) == [value[:5] for value in values]


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=5)))
def test_bytes_are_their_symbols_with_zeros_too(values: list[bytes]) -> None:
    assert BYTES.values(BYTES.symbols(values)) == [value[:3] for value in values]


def test_arrays_and_lists_are_alike() -> None:
    values = ["ab", "", "cab"]
    assert WORDS.symbols(np.array(values)).tolist() == WORDS.symbols(values).tolist()
    assert WORDS.symbols([]).shape == (0, 5)


@cases("values", ["ab", np.array("ab"), 3, [3], [b"ab"], ["abd"], ["ab\0"], [None], ["secretz", 1]])
def test_what_is_no_such_string_is_refused_and_not_shown(values: Any) -> None:
    with pytest.raises(ParameterError, match="values must be") as told:
        WORDS.symbols(values)
    assert "secretz" not in str(told.value)
    assert "abd" not in str(told.value)


@cases(
    ("parameters", "told"),
    [
        ({"length": 0}, "length must"),
        ({"length": 65}, "length must be at most 64"),
        ({"length": 2.0}, "length must"),
        ({"length": 2, "alphabet": "a"}, "alphabet must be from 2"),
        ({"length": 2, "alphabet": "aba"}, "alphabet must be from 2"),
        ({"length": 2, "alphabet": ["a", "b"]}, "alphabet must be from 2"),
    ],
)
def test_parameters_that_break_a_rule(parameters: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        Strings(**parameters)


def test_endings_are_all_that_strings_have() -> None:
    small = Strings(length=3, alphabet="ab")
    every = ["", *"ab", *(x + y for x in "ab" for y in "ab")]
    every += [x + y for x in every if len(x) == 2 for y in "ab"]
    for count in (1, 2, 3):
        rows = small.endings(count)
        expected = {tuple(row[:count]) for row in small.symbols(every).tolist()}
        assert sorted(map(tuple, rows.tolist())) == sorted(expected)
        assert len(rows) == small.number_of_endings(count)
        assert len(set(small.numbers(rows).tolist())) == len(rows)


@pytest.mark.parametrize("strings", [WORDS, BYTES, Strings(length=64, alphabet="01")])
def test_a_specification_makes_the_same_strings(strings: Strings) -> None:
    assert Strings.from_specification(strings.specification()) == strings
    wrong: list[Any] = [None, {}, {"length": 3}, {"length": 3, "bytes": "xyz"}, {"characters": "ab"}, [1]]
    for told in wrong:
        with pytest.raises(ParameterError):
            Strings.from_specification(told)


def test_hashes_are_fixed_even_and_independent() -> None:
    rows = WORDS.endings(5)
    assert hashed_rows(rows[:3], 7, "x", 16).tolist() == [7127, 56_312, 39_962]
    # Over families, any two strings are hashed alike with probability 2**-bits: 4,000 families, four bits.
    pairs = np.array([[0, 1], [1, 2], [5, 900], [2000, 2001]])
    alike = np.zeros(len(pairs))
    for key in range(4000):
        hashes = hashed_rows(rows[pairs.ravel()], key, "x", 4).reshape(-1, 2)
        alike += hashes[:, 0] == hashes[:, 1]
    for count in alike.astype(int).tolist():
        accepts_only(rate(count, 4000), 1 / 16, three_bits=1 / 8, five_bits=1 / 32)
    # A prefix is hashed as the string that ends there.
    ended = rows.copy()
    ended[:, 2:] = 0
    assert (hashed_rows(ended, 0, "y") == hashed_rows(rows[:, :2], 0, "y")).all()
    assert (hashed_rows(rows, 0, "y") != hashed_rows(rows, 0, "z")).mean() > 0.99
