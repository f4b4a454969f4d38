"""Percentiles at the noisy sums: against the exact law of linear functions, and measured coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.queries.release.percentile_intervals import noise_points, percentile_interval
from sfumato.queries.release.tails.noise_tails import noise_tail, sum_tail
from tests.cases import cases
from tests.queries.release.noised_group import drawn, exact_integers, priced_query

ROW = "contribution_bounds_per_row => (0, 100)"
TWO = "contribution_bounds_per_row => ((0, 100), (0, 100))"
CALLS = {
    "VAR_POP": f"VAR_POP(x, {ROW})",
    "STDDEV_SAMP": f"STDDEV_SAMP(x, {ROW})",
    "COVAR_SAMP": f"COVAR_SAMP(x, y, {TWO})",
    "CORR": f"CORR(x, y, {TWO})",
}
COMMON = "epsilon=1, max_rows_per_group=1"
NOISES = {
    "Laplace": f"{COMMON}, delta=0, max_groups_contributed=1",
    "Gaussian, threshold": f"{COMMON}, delta=1e-6, max_groups_contributed=50",
    "Laplace, threshold": f"{COMMON}, delta=1e-6, max_groups_contributed=1",
}


def rows(units: int, kind: str) -> dict[str, NDArray[np.float64]]:
    """Rows within (0, 100): spread, of no variance, on a line, or near the bounds."""
    one, other = np.random.default_rng(4).standard_normal((2, units))
    made = {
        "spread": (50 + 15 * one, 50 + 15 * (0.5 * one + 0.87 * other)),
        "constant": (np.full(units, 50.0), np.full(units, 50.0)),
        "constant at a bound": (np.full(units, 100.0), np.zeros(units)),
        "on a line": (50 + 15 * one, 50 + 15 * one),
        "near the bounds": (100 - 5 * np.abs(one), 5 * np.abs(other)),
        "at both bounds": (np.where(one > 0, 100.0, 0.0), np.where(one > 0, 0.0, 100.0)),
    }[kind]
    return {name: np.clip(values, 0, 100) for name, values in zip("xy", made, strict=True)}


@cases("noise", [DiscreteLaplaceDistribution(50_000), DiscreteGaussianDistribution(50_000)])
@cases("others", [2, 3, 5])
def test_a_linear_function_has_about_its_exact_central_interval(
    noise: SymmetricDistribution, others: int
) -> None:
    tail, rng = noise_tail(noise), np.random.default_rng(others)
    points = noise_points([tail] * others)
    for factor in (0.1, 0.5, 1.0):
        weights = factor * rng.uniform(-1, 1, others)
        moved = sum(weight * each for weight, each in zip(weights, points, strict=True))
        height = 7e4 + np.asarray(moved)[None, :]
        low, high = percentile_interval(tail, (np.ones_like(height), height), np.array([0.05]), (-1e9, 1e9))
        exact, middle = sum_tail([noise] * (others + 1), [1.0, *weights]), -7e4
        for end in (high[0] - middle, middle - low[0]):
            assert 0.021 <= float(exact.upper(np.array([end]))[0]) <= 0.0275


def test_what_is_undefined_too_often_has_the_bounds() -> None:
    tail = noise_tail(DiscreteLaplaceDistribution(5))
    slope, height = np.ones((2, 100)), np.zeros((2, 100))
    slope[0, :3] = np.nan
    slope[1, :2] = -1.0
    low, high = percentile_interval(tail, (slope, height), np.full(2, 0.05), (-70.0, 90.0))
    assert (low[0], high[0]) == (-70, 90)
    assert -70 < low[1] < -15 < 15 < high[1] < 90


def _covered(name: str, noise: str, kind: str, units: int, draws: int) -> None:
    """Check coverage to within four standard errors, and the width where the law is spread."""
    priced = priced_query(f"{CALLS[name]} AS v", NOISES[noise], grouped=noise != "Laplace")
    exact = exact_integers(priced, rows(units, kind))
    held, width = drawn(priced, exact, draws, 9).covered("v", 0.95)
    if kind == "spread" and units == 3000:
        low, high = np.quantile(drawn(priced, exact, 4000, 9).values("v"), (0.025, 0.975))
        assert np.median(width) <= 1.1 * (high - low), name
    assert held >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / len(width))


@cases(
    "name, noise, kind, units",
    [
        ("VAR_POP", "Laplace", "spread", 3000),
        ("STDDEV_SAMP", "Laplace", "constant at a bound", 300),
        ("COVAR_SAMP", "Gaussian, threshold", "near the bounds", 3000),
        ("CORR", "Laplace", "on a line", 3000),
        ("CORR", "Gaussian, threshold", "spread", 3000),
        ("VAR_POP", "Laplace, threshold", "spread", 60),
    ],
)
def test_coverage_of_a_few_shapes(name: str, noise: str, kind: str, units: int) -> None:
    _covered(name, noise, kind, units, 400)  # half of the noise has a coverage of two thirds


@cases(
    "name, kind, most",
    [("COVAR_SAMP", "constant at a bound", 1.2), ("COVAR_SAMP", "at both bounds", 1.2)],
)
def test_what_means_leave_possible_makes_intervals_narrow(name: str, kind: str, most: float) -> None:
    priced = priced_query(f"{CALLS[name]} AS v", NOISES["Laplace"], grouped=False)
    exact = exact_integers(priced, rows(1000, kind))
    held, width = drawn(priced, exact, 400, 9).covered("v", 0.95)
    low, high = np.quantile(drawn(priced, exact, 4000, 9).values("v"), (0.025, 0.975))
    assert np.median(width) <= most * (high - low)  # were 1.8 and 2.1
    assert held >= 0.95


SHAPES = ("spread", "constant", "constant at a bound", "on a line", "near the bounds", "at both bounds")


@pytest.mark.exhaustive
@cases("shape", range(len(SHAPES)))
@cases("call", range(len(CALLS)))
def test_coverage_over_the_grid(call: int, shape: int) -> None:
    """Every function with every shape, each with one noise and one number of units of all their pairs."""
    name, kind = list(CALLS)[call], SHAPES[shape]
    if name == "CORR" and kind.startswith("constant"):
        pytest.skip("a correlation without variance has no value")
    units = (60, 300, 3000)[(call + shape) % 3]
    choices = [noise for noise in NOISES if units > 60 or noise != "Gaussian, threshold"]  # hardly ever shown
    _covered(name, choices[(2 * call + shape // 3 + shape) % len(choices)], kind, units, 1000)
