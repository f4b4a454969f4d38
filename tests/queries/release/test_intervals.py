"""Intervals: exact coverage of counts and of means, also given that a threshold showed the group."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.queries.pricing.price import NoiseDistribution
from sfumato.queries.release.intervals import mean_interval, shown_counts, thresholded_interval
from sfumato.queries.release.record import NoisyMeasure
from tests.cases import cases
from tests.queries.release.noise_lattice import lattice

LAWS = (
    DiscreteLaplaceDistribution(3),
    DiscreteGaussianDistribution(5),
    TruncatedLaplaceDistribution(3, 29, Fraction(3, 4)),
)


def _at_threshold(law: SymmetricDistribution, probability: Fraction, count: int) -> float:
    """The probability of the coin for a noisy count of 30: truncated noise at its lowest has another."""
    lowest = isinstance(law, TruncatedLaplaceDistribution) and count == 30 + law.limit
    return (
        min(1.0, float(probability / (1 - probability))) if lowest and probability < 1 else float(probability)
    )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("probability", [Fraction(1), Fraction(3, 8), Fraction(1, 1024)])
def test_coverage_given_that_the_group_is_shown(law: SymmetricDistribution, probability: Fraction) -> None:
    shown = np.arange(30, 140)
    lower, upper = thresholded_interval(law, shown, RandomizedThreshold(30, probability), 0.9)
    odds = [law.pmf(off).lower for off in range(140)]
    for count in (1, 5, 25, 30, 36, 59, 60):
        mass = np.array([odds[abs(int(value) - count)] for value in shown])
        mass[0] *= _at_threshold(law, probability, count)
        held = (lower <= count) & (count <= upper)
        assert mass[held].sum() / mass.sum() >= 0.9 - 1e-6, count


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("probability", [Fraction(3, 8), Fraction(1, 1024)])
def test_an_interval_is_the_inversion_of_two_exact_tests(
    law: SymmetricDistribution, probability: Fraction
) -> None:
    values, level = range(30, 60, 3), 0.9
    odds = {k: law.pmf(k).lower for k in range(200)}
    lower, upper = thresholded_interval(
        law, np.array(values), RandomizedThreshold(30, probability), level, minimum=2
    )

    def tails(count: int, value: int) -> tuple[float, float]:
        mass = np.array([odds[abs(each - count)] for each in range(30, 200)])
        mass[0] *= _at_threshold(law, probability, count)
        whole = mass.sum()
        return float(mass[value - 30 :].sum() / whole), float(mass[: value - 29].sum() / whole)

    for value, low, high in zip(values, lower.tolist(), upper.tolist(), strict=True):
        possible = [n for n in range(2, 120) if min(tails(n, value)) >= (1 - level) / 2 * (1 - 1e-9)]
        # A noisy count that is hardly ever shown may be too small for any count.
        assert (low, high) == ((min(possible), max(possible)) if possible else (2, 2)), value


def test_a_count_just_over_the_threshold_may_be_tiny() -> None:
    threshold = RandomizedThreshold(30, Fraction(1))
    lower, upper = thresholded_interval(DiscreteLaplaceDistribution(3), np.array([30, 90]), threshold, 0.95)
    assert lower[0] == 1
    assert lower[1] > 75
    assert upper[1] > 90


MEANS = [
    (NoiseDistribution.LAPLACE, Fraction(4), Fraction(3, 2)),
    (NoiseDistribution.GAUSSIAN, Fraction(5), Fraction(2)),
]


def _mean(
    distribution: NoiseDistribution, sums: Fraction, counts: Fraction
) -> tuple[NoisyMeasure, NoisyMeasure]:
    """A mean within (0, 10), whose sum is of values less 5, and the number of units."""
    return NoisyMeasure(distribution, sums, 0, 0, 10, 5), NoisyMeasure(distribution, counts, 0, 0, 1, 0)


@cases("distribution, sums, counts", MEANS)
@cases("units, mean", [(1, 10.0), (4, 0.0), (4, 5.0), (20, 9.5), (80, 1.0)])
def test_a_mean_is_covered_over_the_whole_lattice_of_its_noise(
    distribution: NoiseDistribution, sums: Fraction, counts: Fraction, units: int, mean: float
) -> None:
    total, count = _mean(distribution, sums, counts)
    (one, other), masses = lattice(total.noise, count.noise)
    exact = round((mean - 5) * units)
    noisy = (exact + one).astype(np.int64), (units + other).astype(np.int64)
    low, high = mean_interval(total, count, noisy, 0.95)
    truth = 5 + exact / units
    assert (low >= 0).all()
    assert (high <= 10).all()
    assert masses[(low <= truth) & (truth <= high)].sum() >= 0.95


@cases("distribution, sums, counts", MEANS)
@cases("units", [1, 14, 40])
def test_a_mean_is_covered_given_that_its_count_passed_the_threshold(
    distribution: NoiseDistribution, sums: Fraction, counts: Fraction, units: int
) -> None:
    total, count = _mean(distribution, sums, counts)
    threshold, exact = 14, 4 * units
    reach = max(units, 14) + 60
    # given that the group is shown: each noisy count from the threshold on
    shown = np.arange(threshold, reach + 1)
    given = np.array([count.noise.pmf(int(k) - units).lower for k in shown])
    (one,), law = lattice(total.noise)
    noisy_sums, noisy_counts = (grid.ravel() for grid in np.meshgrid(exact + one, shown, indexing="ij"))
    masses = np.multiply.outer(law, given / given.sum()).ravel()
    noisy = noisy_sums.astype(np.int64), noisy_counts.astype(np.int64)
    counted = shown_counts(count.noise, noisy[1], RandomizedThreshold(threshold, Fraction(1)), 0.9, 1)
    low, high = mean_interval(total, count, noisy, 0.9, counted)
    assert masses[(low <= 9) & (high >= 9)].sum() >= 0.9 - 1e-6
    if units < 14:
        # without the condition it would be covered too seldom
        low, high = mean_interval(total, count, noisy, 0.9)
        assert masses[(low <= 9) & (high >= 9)].sum() < 0.9


def test_far_above_the_threshold_a_shown_count_is_like_any_other() -> None:
    total, count = _mean(*MEANS[0])
    noisy = np.array([400]), np.array([200])
    counted = shown_counts(count.noise, noisy[1], RandomizedThreshold(14, Fraction(1)), 0.95, 1)
    assert not counted.small.any()
    shown, plain = mean_interval(total, count, noisy, 0.95, counted), mean_interval(total, count, noisy, 0.95)
    assert plain[1] - plain[0] <= shown[1] - shown[0] <= 1.02 * (plain[1] - plain[0])


def test_many_counts_are_each_alone() -> None:
    law = DiscreteLaplaceDistribution(3)
    threshold = RandomizedThreshold(30, Fraction(3, 8))
    lower, upper = thresholded_interval(law, np.array([90, 30, 41, 30]), threshold, 0.95)
    for index, value in enumerate([90, 30, 41, 30]):
        alone = thresholded_interval(law, np.array([value]), threshold, 0.95)
        assert (lower[index], upper[index]) == (alone[0][0], alone[1][0])
