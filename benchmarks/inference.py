"""Inference on private releases: coverage of intervals, clamped data too; records that an A/B test needs."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato import adaptive
from sfumato.mechanisms import BoundedSum, Gaussian, Laplace, LeastSquares
from sfumato.privacy import Neighboring

REPLACE = Neighboring.REPLACE_ONE
ROWS = 200
MEAN = 2.0


def clamped_mean(mean: float, _upper: float) -> float:
    """Take the mean of what was clamped for that of the population."""
    return max(1e-3, mean)


def modelled_mean(mean: float, upper: float) -> float:
    """Return the mean of the exponential population whose clamped mean is given."""
    seen, low, high = min(max(mean, 1e-3), 0.99 * upper), 1e-4, 1e4
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if -middle * math.expm1(-upper / middle) < seen else (low, middle)
    return low


def coverage(upper: float, estimate: Callable[[float, float], float], runs: int) -> float:
    """Return how often a bootstrap interval at 0.95 holds the mean of an exponential population."""
    noisy = Laplace.for_query(BoundedSum(bounds=(0.0, upper)), epsilon=1.0, neighboring=REPLACE)
    rng, inside = np.random.default_rng(1), 0
    for _ in range(runs):
        found = adaptive.parametric_bootstrap(
            noisy.release(rng.exponential(MEAN, ROWS), rng=rng),
            estimate=lambda release: estimate(release.value / ROWS, upper),
            simulate=lambda mean, generator: generator.exponential(mean, ROWS),
            draws=199,
            rng=rng,
        )
        inside += bool(found.lower <= MEAN <= found.upper)
    return inside / runs


def bootstrap(runs: int) -> None:
    """Print coverage under bounds that cut more and more."""
    print(f"95 % intervals of the mean of {ROWS} exponential records, epsilon 1, {runs} runs")
    print("upper bound  records cut  clamped mean  by the model")
    for upper in (20.0, 8.0, 5.0, 3.0):
        shares = [coverage(upper, estimate, runs) for estimate in (clamped_mean, modelled_mean)]
        print(f"{upper:11}  {math.exp(-upper / MEAN):11.2%}  {shares[0]:12.2f}  {shares[1]:12.2f}")


def regression(runs: int) -> None:
    """Print coverage, width and speed of intervals of a slope: posterior, bootstrap, and noise ignored."""
    query = LeastSquares(bounds=((0, 10), (0, 10)))
    noisy: Any = Gaussian.for_query(query, epsilon=1.0, delta=1e-6)
    rng, inside, widths = np.random.default_rng(2), np.zeros(3), np.zeros(3)
    spent, worth = 0.0, 0.0
    for _ in range(runs):
        x = rng.normal(5, 1.5, 2000)
        release = noisy.release(np.stack([x, 3 + 0.5 * x + rng.normal(0, 0.5, 2000)], axis=1), rng=rng)
        began = time.process_time()
        draws = adaptive.regression_posterior(release, draws=1000, burn_in=200, rng=rng)
        spent += time.process_time() - began
        worth += float(draws.effective_draws[1])
        lower, upper, _ = draws.credible_interval(0.95)
        errors = query.coefficient_errors(release, draws=299, rng=rng)
        slope = float(query.estimate(release).slopes[0])
        half = 1.96 * 0.5 / (1.5 * math.sqrt(2000))
        ends = [(lower[1], upper[1]), (errors.lower[1], errors.upper[1]), (slope - half, slope + half)]
        inside += [low <= 0.5 <= high for low, high in ends]
        widths += [high - low for low, high in ends]
    print(f"\n95 % intervals of a slope, 2,000 records, epsilon 1, {runs} runs\n{'':20}coverage  width")
    for name, share, width in zip(
        ("posterior", "parametric bootstrap", "noise ignored"), inside / runs, widths / runs, strict=True
    ):
        print(f"{name:20}{share:8.2f}  {width:5.2f}")
    print(f"posterior: {worth / runs:.0f} effective draws of 1,000 in {spent / runs:.1f} CPU s")


def experiments() -> None:
    """Print how many records an arm an A/B test needs."""
    print(
        "\nrecords in each arm for .10 against .14, power .8, level .05 (normal limit without noise: 1,035)"
    )
    for epsilon in (10.0, 1.0, 0.5, 0.1, 0.05, 0.01):
        began = time.process_time()
        plan = adaptive.ABTest.planned(first=0.10, second=0.14, epsilon=epsilon)
        print(f"epsilon {epsilon:5}: {plan.records:6,}  ({time.process_time() - began:.2f} CPU s)")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks inference", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="of each coverage (200)")
    parser.add_argument("--regressions", type=int, default=40, help="runs of the regression (40)")
    arguments = parser.parse_args(argv)
    bootstrap(arguments.runs)
    regression(arguments.regressions)
    experiments()
    return 0
