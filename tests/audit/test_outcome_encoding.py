"""Outcomes of any kind become numbers, each by itself, and rounding forgets float bits only."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Neighboring
from sfumato.audit.flattening import Raised, as_outputs
from sfumato.audit.outcome_encoding import OutcomeEncoder
from sfumato.mechanisms import Laplace
from tests.cases import cases


@dataclass
class Point:
    x: float
    name: str


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.text(max_size=3),
    st.binary(max_size=2),
)
outcomes = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
        st.frozensets(st.integers(0, 5), max_size=3),
    ),
    max_leaves=5,
)


@settings(max_examples=25, deadline=None)
@given(st.lists(outcomes, min_size=2, max_size=8), st.lists(outcomes, min_size=2, max_size=8), st.data())
def test_what_is_made_of_an_outcome_does_not_depend_on_what_came_beside_it(
    first: list[Any], second: list[Any], data: st.DataObject
) -> None:
    encoder = OutcomeEncoder(2.0**-20)
    learned = encoder.learn(as_outputs(first), as_outputs(second))
    for raw, encoded in zip((first, second), learned, strict=True):
        again = encoder(as_outputs(raw))
        assert np.array_equal(again.keys, encoded.keys)
        assert np.array_equal(again.columns, encoded.columns, equal_nan=True)
        place = data.draw(st.integers(0, len(raw) - 1))
        alone = encoder(as_outputs([raw[place]]))
        assert alone.keys[0] == encoded.keys[place]


def test_numbers_as_far_apart_as_floats_are_learned_in_silence() -> None:
    far = np.array([1.7e308, -1.7e308, 1.0])
    first, second = OutcomeEncoder(2.0**-20).learn(as_outputs(far), as_outputs(far[::-1].copy()))
    assert sorted(first.keys.tolist()) == sorted(second.keys.tolist())
    assert len(set(first.keys.tolist())) >= 2
    mixed: list[Any] = [None, 8.988465674996504e307]
    OutcomeEncoder(2.0**-20).learn(as_outputs(mixed), as_outputs([None, -8.988465673626654e307]))


@cases(
    ("one", "other"),
    [
        (1.0, 2.0),
        ("a", "b"),
        (None, "a"),
        (math.nan, 1.0),
        (math.inf, 1.0),
        ([1, 2], [1, 3]),
        ([1, 2], [1, 2, 3]),
        ([[1], 2], [1, [2]]),
        ({"a": 1}, {"a": 2}),
        pytest.param({"a"}, {"a", "b"}, id="sets"),
        ((1, "x"), (1, "y")),
        (np.array([1.0, 2.0]), np.array([2.0, 1.0])),
        (b"x", "x"),
        (Point(1.0, "a"), Point(1.0, "b")),
        (Point(1.0, "a"), Point(1.5, "a")),
        (True, False),
        (Neighboring.ADD_REMOVE, Neighboring.ZERO_OUT),
    ],
    ids=repr,
)
def test_outcomes_that_differ_are_released_apart(one: Any, other: Any) -> None:
    encoder = OutcomeEncoder(2.0**-20)
    first, second = encoder.learn(as_outputs([one] * 3), as_outputs([other] * 3))
    assert len(set(first.keys.tolist())) == len(set(second.keys.tolist())) == 1
    assert first.keys[0] != second.keys[0]
    assert first.columns.shape[1] >= 1


IGNORED = [
    ("type", 1, 1.0),
    ("type", 1, True),
    ("type", 1.0, np.float64(1)),
    ("type", np.int32(1), np.int64(1)),
    ("type", [1, 2], (1, 2)),
    ("type", [1, 2.0], [1.0, 2.0]),
    ("type", np.zeros(2), np.zeros(2, np.float32)),
    ("type", np.zeros(2), [0.0, 0.0]),
    ("type", {1, 2}, frozenset({1, 2})),
    ("type", Counter(a=1), {"a": 1}),
    ("order", {"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ("order", [{"a": 1, "b": 2}], [{"b": 2, "a": 1}]),
    ("order", Counter("ab"), Counter("ba")),
    ("zero sign", 0.0, -0.0),
    ("zero sign", [1, "x", 0.0], [1, "x", -0.0]),
    ("zero sign", np.array([0.0, 1.0]), np.array([-0.0, 1.0])),
    ("zero sign", ["a"] * 64 + [0.0], ["a"] * 64 + [-0.0]),
    ("type", ["a"] * 64 + [1], ["a"] * 64 + [1.0]),
    ("message", Raised("ValueError", "31 rows"), Raised("ValueError", "32 rows")),
]


@cases(("what", "one", "other"), IGNORED, ids=repr)
def test_what_an_outcome_looks_like_is_seen_unless_it_is_ignored(what: str, one: Any, other: Any) -> None:
    for ignored in ((), (what,)):
        encoder = OutcomeEncoder(2.0**-20, ignored)
        first, second = encoder.learn(as_outputs([one] * 3, ignored), as_outputs([other] * 3, ignored))
        assert (first.keys[0] == second.keys[0]) == bool(ignored)
        mixed = as_outputs([one, other], ignored)
        found, _ = OutcomeEncoder(2.0**-20, ignored).learn(mixed, mixed)
        assert (found.keys[0] == found.keys[1]) == bool(ignored)


APART = {
    "the 65th number": ([0] * 64 + [1], [0] * 64 + [2]),
    "the 65th number of a tuple": ((0.5,) * 64 + (1,), (0.5,) * 64 + (2,)),
    "the 65th of several kinds": (["a"] * 64 + [1], ["a"] * 64 + [2]),
    "the 65th text": (["a"] * 65, ["a"] * 64 + ["b"]),
    "the 65th zero": (["a"] * 64 + [0.0], ["a"] * 64 + [-0.0]),
    "a whole number beyond floats": (2**60, 2**60 + 1),
    "one of 400 digits": (10**400, 10**400 + 1),
    "one in a list": ([2**60, 0], [2**60 + 1, 0]),
    "one in an array": (np.array([2**60, 0]), np.array([2**60 + 1, 0])),
    "one below zero": (np.array([0, -(2**60)]), np.array([0, -(2**60) - 1])),
    "one without a sign": (np.uint64(2**63), np.uint64(2**63 + 1)),
    "a fraction": (Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)),
    "shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "an axis": (np.zeros(1), np.zeros((1, 1))),
    "keys": ({"a": 1}, {"b": 1}),
    "a complex number": (1j, 2j),
    "an error and its name": (Raised("ValueError", ""), "raised ValueError"),
}


@cases("name", list(APART))
def test_nothing_is_cut_off(name: str) -> None:
    one, other = APART[name]
    first, second = OutcomeEncoder(2.0**-20).learn(as_outputs([one] * 3), as_outputs([other] * 3))
    assert first.keys[0] != second.keys[0]
    mixed = as_outputs([one, other])
    found, _ = OutcomeEncoder(2.0**-20).learn(mixed, mixed)
    assert found.keys[0] != found.keys[1]


@pytest.mark.parametrize("number", [2**60, -(2**60)])
def test_whole_numbers_beyond_floats_stay_apart_in_an_array_of_outputs(number: int) -> None:
    outputs = as_outputs(np.array([number, number + 1]))
    found, _ = OutcomeEncoder(2.0**-20).learn(outputs, outputs)
    assert found.keys[0] != found.keys[1]


def test_rows_of_numbers_are_columns_and_whole_ones_are_not_rounded() -> None:
    rows = [[index, index + 0.125, 10**6 * index] for index in range(100)]
    encoder = OutcomeEncoder(2.0**-10)
    first, _ = encoder.learn(as_outputs(rows), as_outputs(rows))
    assert encoder.names == ["output[0]", "output[1]", "output[2]"]
    assert first.columns[:, [0, 2]].tolist() == [[float(row[0]), float(row[2])] for row in rows]
    long = [[0] * 200 + [index] for index in range(100)]
    first, _ = OutcomeEncoder(2.0**-10).learn(as_outputs(long), as_outputs(long))
    assert first.columns[:, -1].tolist() == list(range(100))


def test_the_low_bits_of_floats_are_forgotten_and_nothing_else() -> None:
    generator = np.random.default_rng(1)
    values = generator.normal(1000.0, 3.0, 4000)
    for size in (2.0**70, 1.0):  # all floats of the former are whole numbers
        encoder = OutcomeEncoder(2.0**-20)
        first, second = encoder.learn(as_outputs(size * values), as_outputs(size * (values + 1e-9)))
        assert np.mean(first.keys == second.keys) > 0.99
    third = encoder(as_outputs(values + 1e-4))
    assert not np.any(first.keys == third.keys)
    assert np.abs(first.columns[:, 0] - values).max() < 3.0 * 2.0**-19
    whole, other = OutcomeEncoder(0.5).learn(as_outputs(np.arange(1000)), as_outputs(np.arange(1, 1001)))
    assert not np.any(whole.keys == other.keys), "whole numbers are not rounded"


def test_an_object_without_a_print_of_its_own_is_its_type() -> None:
    encoder = OutcomeEncoder(2.0**-20)
    first, second = encoder.learn(as_outputs([object(), object()]), as_outputs([object(), 3]))
    assert first.keys[0] == first.keys[1] == second.keys[0] != second.keys[1]


def test_what_was_never_seen_is_one_outcome() -> None:
    encoder = OutcomeEncoder(2.0**-20)
    encoder.learn(as_outputs(["a", "b"]), as_outputs(["a", "c"]))
    later = encoder(as_outputs(["d", "e", "a"]))
    assert later.keys[0] == later.keys[1] != later.keys[2]


def test_releases_are_their_values() -> None:
    releases = [Laplace(sensitivity=1, scale=1).release(5, rng=seed) for seed in range(5)]
    values = as_outputs(releases).values
    assert isinstance(values, np.ndarray)
    assert values.tolist() == [release.value for release in releases]


def test_huge_whole_numbers_do_not_fail() -> None:
    encoder = OutcomeEncoder(2.0**-20)
    first, second = encoder.learn(as_outputs([10**400, -(10**400)]), as_outputs([10**30, 0]))
    assert len({*first.keys.tolist(), *second.keys.tolist()}) == 4


def test_whole_numbers_beside_fractions_lose_nothing_where_types_are_ignored() -> None:
    outputs = as_outputs([(1, 2), (1.5, 2.5)], ["type"])
    assert np.asarray(outputs.values).tolist() == [[1.0, 2.0], [1.5, 2.5]]
