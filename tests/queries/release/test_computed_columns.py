"""Intervals of computed columns: exact coverage over all noise of a lattice, and how wide they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.cases import cases
from tests.queries.release.noised_group import as_floats, drawn, priced_query, whole_lattice

SUM = "SUM(i, contribution_bounds_per_group => (0, 3))"
OPTIONS = "epsilon=2, max_groups_contributed=1"
PUBLIC, GAUSSIAN = f"{OPTIONS}, delta=0", "epsilon=2, delta=1e-3, max_groups_contributed=30"
RATIOS = [
    f"{SUM} / COUNT(*)",
    f"ROUND(100 * {SUM} / COUNT(*), 2)",
    f"{SUM} + COUNT(*)",
    f"COUNT(*) - 2 * {SUM}",
    f"{SUM} / (COUNT(*) + {SUM})",
    f"({SUM} - COUNT(*)) / {SUM}",
    f"1 - {SUM} / COUNT(*)",
    f"EXP({SUM} / COUNT(*))",
    f"-{SUM} / NULLIF(COUNT(*), 0)",
]


@cases("place, call", list(enumerate(RATIOS)))
def test_a_sum_or_a_ratio_is_covered_over_all_noise_of_the_lattice(place: int, call: str) -> None:
    priced = priced_query(f"{call} AS v", PUBLIC)
    total, count = ((60, 40), (12, 5))[place % 2]
    values = [total if "sum" in request.title else count for request in priced.requests]
    held, _ = whole_lattice(priced, values).covered("v", 0.9)
    assert 0.9 <= held < 0.985


def test_a_whole_sum_has_the_exact_central_interval() -> None:
    both = "COUNT(*) + COUNT(i, contribution_bounds_per_group => (0, 3))"
    priced = priced_query(f"{both} AS v", PUBLIC)
    group = whole_lattice(priced, [60, 40], outside=1e-7)
    held, width = group.covered("v", 0.95)
    off = np.abs(group.values("v") - 100)
    smallest = next(half for half in range(99) if group.masses[off <= half].sum() >= 0.95)
    assert set(width) == {2 * smallest}
    assert held == pytest.approx(group.masses[off <= width[0] / 2].sum())


@cases("units", [5, 12])
def test_three_kinds_of_noise_are_covered_over_all_of_a_lattice(units: int) -> None:
    call = f"({SUM} - COUNT(*)) / (COUNT(*) + SUM(j, contribution_bounds_per_group => (0, 3)))"
    priced = priced_query(f"{call} AS v", "epsilon=9, max_groups_contributed=1, delta=0")
    values = {"i": 3 * units // 2, "j": units}
    exact = [
        next((value for name, value in values.items() if f"`{name}`" in request.title), units)
        for request in priced.requests
    ]
    group = whole_lattice(priced, exact, outside=1e-4)
    held, width = group.covered("v", 0.9)
    assert 0.9 <= held < 0.94
    assert np.isfinite(width).all() or units == 5


def test_three_kinds_of_noise_are_tested_as_one() -> None:
    call = f"({SUM} - COUNT(*)) / (COUNT(*) + SUM(j, contribution_bounds_per_group => (0, 3)))"
    group = drawn(priced_query(f"{call} AS v", PUBLIC), [60, 400, 70], 3000, 3)
    held, width = group.covered("v", 0.9)
    low, high = np.quantile(group.values("v"), (0.05, 0.95))
    assert held > 0.9 - 4 * math.sqrt(0.9 * 0.1 / 3000)
    assert np.median(width) < 1.1 * (high - low)


@cases("units", [3, 7, 9, 12, 30])
def test_a_ratio_is_covered_given_that_its_count_passed_the_threshold(units: int) -> None:
    priced = priced_query(f"{SUM} / COUNT(*) AS v", f"{OPTIONS}, delta=1e-3", grouped=True)
    assert priced.threshold is not None
    assert 7 <= priced.threshold.units <= 12
    group = whole_lattice(priced, [units, 2 * units], outside=1e-6)
    held, _ = group.covered("v", 0.9)
    assert held >= 0.9 - 1e-6


@cases("options", [PUBLIC, GAUSSIAN])
def test_the_median_width_is_that_of_the_law(options: str) -> None:
    call = "SUM(x, contribution_bounds_per_group => (0, 100)) / COUNT(*) AS v"
    priced = priced_query(call, options)
    step = 2.0 ** -priced.measures[0].exponent
    group = drawn(priced, [round(150_000 * step), 3000], 4000, 11)
    held, width = group.covered("v", 0.95)
    low, high = np.quantile(group.values("v"), (0.025, 0.975))
    assert np.median(width) < 1.1 * (high - low)
    assert held > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 4000)


def test_a_ratio_whose_denominator_may_be_zero_says_so() -> None:
    priced = priced_query(f"COUNT(*) / {SUM} AS v, {SUM} / COUNT(*) AS w", PUBLIC)
    values = [40 if "number" in request.title else 1 for request in priced.requests]
    table = drawn(priced, values, 50, 5).release.to_arrow(intervals=True)
    low, high = (as_floats(table[f"v{end}"]) for end in ("_lower", "_upper"))
    assert np.isinf(low).any()
    assert np.isinf(high).any()
    assert not np.isnan(low).any()
    # a sum over the number of units is within the bounds of one of them
    low, high = (as_floats(table[f"w{end}"]) for end in ("_lower", "_upper"))
    assert (low >= 0).all()
    assert (high <= 3).all()
