"""Outcomes of any kind become numbers, each by itself, and rounding forgets float bits only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Neighboring
from sfumato.audit.flattening import as_output_array
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


@settings(max_examples=150, deadline=None)
@given(st.lists(outcomes, min_size=2, max_size=12), st.lists(outcomes, min_size=2, max_size=12), st.data())
def test_what_is_made_of_an_outcome_does_not_depend_on_what_came_beside_it(
    first: list[Any], second: list[Any], data: st.DataObject
) -> None:
    encoder = OutcomeEncoder(2.0**-20)
    learned = encoder.learn(as_output_array(first), as_output_array(second))
    for raw, encoded in zip((first, second), learned, strict=True):
        again = encoder(as_output_array(raw))
        assert np.array_equal(again.keys, encoded.keys)
        assert np.array_equal(again.columns, encoded.columns, equal_nan=True)
        place = data.draw(st.integers(0, len(raw) - 1))
        alone = encoder(as_output_array([raw[place]]))
        assert alone.keys[0] == encoded.keys[place]


def test_numbers_as_far_apart_as_floats_are_learned_in_silence() -> None:
    far = np.array([1.7e308, -1.7e308, 1.0])
    first, second = OutcomeEncoder(2.0**-20).learn(far, far[::-1].copy())
    assert sorted(first.keys.tolist()) == sorted(second.keys.tolist())
    assert len(set(first.keys.tolist())) >= 2
    mixed: list[Any] = [None, 8.988465674996504e307]
    OutcomeEncoder(2.0**-20).learn(as_output_array(mixed), as_output_array([None, -8.988465673626654e307]))


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
    first, second = encoder.learn(as_output_array([one] * 3), as_output_array([other] * 3))
    assert len(set(first.keys.tolist())) == len(set(second.keys.tolist())) == 1
    assert first.keys[0] != second.keys[0]
    assert first.columns.shape[1] >= 1


def test_equal_outcomes_of_several_types_are_one() -> None:
    encoder = OutcomeEncoder(2.0**-20)
    first, second = encoder.learn(
        as_output_array([1, 1.0, np.float64(1), True]), as_output_array([np.int64(1), 2])
    )
    assert len(set(first.keys.tolist())) == 1
    assert first.keys[0] == second.keys[0] != second.keys[1]
    zeros, _ = OutcomeEncoder(1e-6).learn(
        as_output_array(np.array([0.0, -0.0])), as_output_array(np.array([1.0]))
    )
    assert zeros.keys[0] == zeros.keys[1]


def test_the_low_bits_of_floats_are_forgotten_and_nothing_else() -> None:
    generator = np.random.default_rng(1)
    values = generator.normal(1000.0, 3.0, 4000)
    encoder = OutcomeEncoder(2.0**-20)
    first, second = encoder.learn(values, values + 1e-9)
    assert np.mean(first.keys == second.keys) > 0.99
    third = encoder(values + 1e-4)
    assert not np.any(first.keys == third.keys)
    assert np.abs(first.columns[:, 0] - values).max() < 3.0 * 2.0**-19
    whole, other = OutcomeEncoder(0.5).learn(np.arange(1000), np.arange(1, 1001))
    assert not np.any(whole.keys == other.keys), "whole numbers are not rounded"


def test_an_object_without_a_print_of_its_own_is_its_type() -> None:
    encoder = OutcomeEncoder(2.0**-20)
    first, second = encoder.learn([object(), object()], [object(), 3])
    assert first.keys[0] == first.keys[1] == second.keys[0] != second.keys[1]


def test_what_was_never_seen_is_one_outcome() -> None:
    encoder = OutcomeEncoder(2.0**-20)
    encoder.learn(["a", "b"], ["a", "c"])
    later = encoder(["d", "e", "a"])
    assert later.keys[0] == later.keys[1] != later.keys[2]


def test_releases_are_their_values() -> None:
    releases = [Laplace(sensitivity=1, scale=1).release(5, rng=seed) for seed in range(5)]
    raw = as_output_array(releases)
    assert isinstance(raw, np.ndarray)
    assert raw.tolist() == [release.value for release in releases]


def test_huge_whole_numbers_do_not_fail() -> None:
    encoder = OutcomeEncoder(2.0**-20)
    first, second = encoder.learn(as_output_array([10**400, -(10**400)]), as_output_array([10**30, 0]))
    assert len({*first.keys.tolist(), *second.keys.tolist()}) == 4
