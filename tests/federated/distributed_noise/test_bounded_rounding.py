"""Rounding is unbiased, and its norm is within the bound whatever the coins are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato.federated.distributed_noise.bounded_rounding import (
    ROUNDING_FAILURE,
    largest_norm_squared,
    round_within,
)
from sfumato.numerics.randomness.source import SimulatedSource
from tests.numerics.sources import ListedSource

UP, DOWN = 0, 2**64 - 1
"""Words whose uniforms are 0 and nearly 1: they round up and down."""


def test_the_bound_is_the_papers() -> None:
    for norm, dimension in ((100.0, 16), (3.0, 1024), (0.5, 4)):
        deviation = math.sqrt(2 * math.log(1 / ROUNDING_FAILURE))
        likely = norm**2 + dimension / 4 + deviation * (norm + math.sqrt(dimension) / 2)
        exact = min(likely, (norm + math.sqrt(dimension)) ** 2)
        assert exact - 1 <= largest_norm_squared(norm, dimension) <= exact + 1e-9
    assert largest_norm_squared(1e-9, 1) == 1


def test_every_outcome_is_a_neighbor_and_the_mean_is_the_value() -> None:
    """Each entry goes up with the chance of its fraction: by all words that decide it."""
    values = np.array([0.25, -1.75, 3.0])
    quarter = 2**62
    for first, second in itertools.product((0, quarter - 2048, quarter, DOWN), repeat=2):
        source = ListedSource([first, second, DOWN])
        expected = [int(first < quarter), -2 + int(second < quarter), 3]
        assert round_within(values, 100, source).tolist() == expected


def test_a_vector_that_got_too_long_is_rounded_towards_zero() -> None:
    values = np.array([1.5, -1.5, 0.5, 2.0])
    assert round_within(values, 10, ListedSource([UP] * 4)).tolist() == [2, -1, 1, 2]
    assert round_within(values, 9, ListedSource([UP] * 4)).tolist() == [1, -1, 0, 2]
    assert round_within(values, 5, ListedSource([UP] * 4)).tolist() == [0, 0, 0, 0]


def test_the_bound_holds_and_is_hardly_ever_met() -> None:
    """Where every entry is a half, which lengthens most."""
    source = SimulatedSource(3)
    for norm, dimension in ((10.0, 256), (60.0, 1024), (2.0, 16)):
        values = np.full(dimension, norm / math.sqrt(dimension))
        bound = largest_norm_squared(norm, dimension)
        lengths = [int((round_within(values, bound, source) ** 2).sum()) for _ in range(200)]
        assert max(lengths) <= bound
        assert float(np.mean(lengths)) >= norm**2
        mean = np.mean([round_within(values, bound, source) for _ in range(200)])
        assert mean == pytest.approx(norm / math.sqrt(dimension), abs=7 * 0.5 / math.sqrt(200 * dimension))


def test_large_norms_are_exact() -> None:
    values = np.array([2.0**30, -(2.0**30), 1.0])
    assert round_within(values, 2**61 + 1, ListedSource([DOWN] * 3)).tolist() == [2**30, -(2**30), 1]
    assert round_within(values, 2**61, ListedSource([DOWN] * 3)).tolist() == [0, 0, 0]
