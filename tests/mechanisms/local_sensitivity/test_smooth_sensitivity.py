"""Smooth sensitivity and depth, against their definitions over all datasets of a few records."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Grid
from sfumato.mechanisms.local_sensitivity.bounded_column import BoundedColumn, RankNeighborhood
from sfumato.mechanisms.local_sensitivity.smooth_sensitivity import (
    maximum_depth,
    smooth_sensitivity_of_rank,
    stable_depth,
)
from tests.cases import cases

TOP = 5
COLUMN = BoundedColumn.settle((0, TOP), None)
Data = tuple[int, ...]


def spread(data: Data, quantile: Fraction, smoothness: Fraction, column: BoundedColumn = COLUMN) -> Fraction:
    ranks = column.ranks(np.array(data, np.int64))
    lower, upper = column.ends
    return smooth_sensitivity_of_rank(
        column.around(ranks, quantile, maximum_depth(smoothness)), smoothness, upper - lower
    )


def value(data: Data, quantile: Fraction) -> int:
    rank = math.ceil(quantile * len(data))
    return sorted(data)[rank - 1] if rank else 0


def by_definition(data: Data, quantile: Fraction, smoothness: float, top: int) -> float:
    rank, n = math.ceil(quantile * len(data)), len(data)

    def x(i: int) -> int:
        return 0 if i < 1 else top if i > n else sorted(data)[i - 1]

    spans = itertools.product(range(-1, rank + 1), range(rank, n + 3))
    return max((x(j) - x(i)) * math.exp(-(j - i - 1) * smoothness) for i, j in spans if i < j)


@cases("quantile", [Fraction(1, 2), Fraction(1, 10), Fraction(3, 4)])
@cases("smoothness", [0.1, 0.7])
def test_it_is_the_smooth_sensitivity_over_all_datasets(quantile: Fraction, smoothness: float) -> None:
    # The greatest local sensitivity at each Hamming distance, over the whole space.
    for size in (1, 3):
        space = list(itertools.product(range(TOP + 1), repeat=size))
        local = {
            x: max(
                abs(value(x, quantile) - value((*x[:i], new, *x[i + 1 :]), quantile))
                for i in range(size)
                for new in (0, TOP)
            )
            for x in space
        }
        for x in itertools.combinations_with_replacement(range(TOP + 1), size):
            wanted = max(
                local[y] * math.exp(-smoothness * sum(a != b for a, b in zip(x, y, strict=True)))
                for y in space
            )
            found = float(spread(x, quantile, Fraction(smoothness)))
            assert wanted * (1 - 1e-14) <= found <= wanted * (1 + 1e-9)


@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(1, 10), Fraction(2, 3), Fraction(9, 10)])
def test_neighbors_of_any_relation_are_smooth_and_covered(quantile: Fraction) -> None:
    smoothness = Fraction(1, 5)
    factor = math.exp(0.2) * (1 + 1e-13)
    spread_of = functools.cache(lambda data: spread(data, quantile, smoothness))
    for size in range(5):
        for x in itertools.combinations_with_replacement(range(TOP + 1), size):
            here, f = spread_of(x), value(x, quantile)
            removed = [x[:i] + x[i + 1 :] for i in range(size)]
            replaced = [(*y, new) for y in removed for new in range(TOP + 1)]
            for y in removed + replaced:
                there = spread_of(tuple(sorted(y)))
                assert abs(f - value(y, quantile)) <= min(here, there)
                assert max(here, there) <= factor * min(here, there)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(0, 1000), max_size=60).map(tuple),
    st.sampled_from([0.003, 0.05, 0.4, 3.0]),
    st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=60),
)
def test_the_search_finds_the_greatest(data: Data, smoothness: float, quantile: Fraction) -> None:
    found = float(spread(data, quantile, Fraction(smoothness), BoundedColumn.settle((0, 1000), None)))
    wanted = by_definition(data, quantile, smoothness, 1000)
    assert wanted * (1 - 1e-14) <= found <= wanted * (1 + 1e-9)


@pytest.mark.parametrize("size", [700, 2000])
def test_the_search_finds_the_greatest_among_many(size: int) -> None:
    rng = np.random.default_rng(size)
    column = BoundedColumn.settle((-1.0, 30.0), None)
    for smoothness in (Fraction(1, 1000), Fraction(1, 100)):
        for data in (rng.exponential(size=size), np.cumsum(rng.random(size) ** 8), rng.random(size)):
            around = column.around(column.ranks(data), Fraction(1, 3), maximum_depth(smoothness))
            left, right = around
            depths = np.arange(len(left))[:, None] + np.arange(len(right)) - 1
            with np.errstate(invalid="ignore"):
                all_spans = (right - left[:, None]) * np.exp(-float(smoothness) * depths)
            wanted = all_spans[depths >= 0].max()
            lower, upper = column.ends
            found = float(smooth_sensitivity_of_rank(around, smoothness, upper - lower))
            assert wanted * (1 - 1e-12) <= found <= wanted * (1 + 1e-7)


@pytest.mark.parametrize(
    ("size", "epsilon", "wanted"),
    [(101, 0.5, 0.250), (101, 1.0, 0.132), (1001, 0.5, 0.0267), (1001, 1.0, 0.0119)],
)
def test_the_published_figures(size: int, epsilon: float, wanted: float) -> None:
    # Median of uniform numbers at delta 1e-6; the published ones are means of five draws.
    rng, column = np.random.default_rng(0), BoundedColumn.settle((0.0, 1.0), None)
    smoothness = Fraction(epsilon / (2 * math.log(2e6)))
    found = []
    for _ in range(60):
        around = column.around(column.ranks(rng.random(size)), Fraction(1, 2), maximum_depth(smoothness))
        found.append(float(smooth_sensitivity_of_rank(around, smoothness, 1 << 40) * column.grid.step))
    spread_of_five = np.std(found) / math.sqrt(5)
    assert abs(np.mean(found) - wanted) < 4 * spread_of_five


def test_equal_records_leave_only_the_distant_bounds() -> None:
    column = BoundedColumn.settle((0.0, 1.0), None)
    around = column.around(column.ranks(np.full(10_000, 0.5)), Fraction(1, 2), maximum_depth(Fraction(1)))
    assert smooth_sensitivity_of_rank(around, Fraction(1), 1 << 40) == Fraction(1 << 40, 1 << 64)


def test_depth_is_the_least_of_wide_spans() -> None:
    for size in range(5):
        for x in itertools.combinations_with_replacement(range(TOP + 1), size):
            for quantile, bound in itertools.product([Fraction(1, 2), Fraction(1, 5)], range(TOP + 1)):
                rank = math.ceil(quantile * size)
                padded = dict(enumerate(x, 1))
                spans = [
                    j - i - 1
                    for i, j in itertools.product(range(-1, rank + 1), range(rank, size + 2))
                    if i < j
                    and padded.get(j, 0 if j < 1 else TOP) - padded.get(i, 0 if i < 1 else TOP) > bound
                ]
                around = COLUMN.around(COLUMN.ranks(np.array(x, np.int64)), quantile, 100)
                assert stable_depth(around, bound, 50) == min(spans, default=50)


def test_depth_where_none_is_wide() -> None:
    assert stable_depth(RankNeighborhood(np.array([3, 0]), np.array([3, 9])), 9, 7) == 7
    assert stable_depth(RankNeighborhood(np.array([3, 0]), np.array([3, 9])), 8, 7) == 1
    assert stable_depth(RankNeighborhood(np.array([3, 0]), np.array([3, 9])), 5, 7) == 0


@cases(
    ("bounds", "grid", "error"),
    [
        ((1, 1), None, ParameterError),
        ((2.0, 1.0), None, ParameterError),
        ((0.0, math.inf), None, UnboundedSensitivity),
        ((0.0, 0.1), Grid(exponent=0), ParameterError),
        ((-1.0, 1.0), Grid(exponent=-61), ParameterError),
        (None, None, ParameterError),
        ((0, 1), 3, ParameterError),
    ],
)
def test_bad_bounds_are_refused(bounds: object, grid: Grid | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        BoundedColumn.settle(bounds, grid)
