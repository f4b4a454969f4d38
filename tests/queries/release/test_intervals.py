"""Intervals: exact conditional coverage of thresholded counts, rectangles of means."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from sfumato.queries.pricing.price import NoiseDistribution
from sfumato.queries.release.intervals import central_interval, mean_interval, thresholded_interval
from sfumato.queries.release.record import NoisyMeasure


@pytest.mark.parametrize("law", [DiscreteLaplaceDistribution(3), DiscreteGaussianDistribution(5)])
@pytest.mark.parametrize("count", [1, 5, 25, 30, 36, 60])
def test_coverage_given_that_the_group_is_shown(
    law: DiscreteLaplaceDistribution | DiscreteGaussianDistribution, count: int
) -> None:
    threshold = 30
    shown = np.arange(threshold, count + 80)
    lower, upper = thresholded_interval(law, shown, threshold, 0.9)
    mass = np.array([law.pmf(int(value) - count).lower for value in shown])
    held = (lower <= count) & (count <= upper)
    assert mass[held].sum() / mass.sum() >= 0.9 - 1e-6


def test_a_count_just_over_the_threshold_may_be_tiny() -> None:
    lower, upper = thresholded_interval(DiscreteLaplaceDistribution(3), np.array([30, 90]), 30, 0.95)
    assert lower[0] == 1
    assert lower[1] > 75
    assert upper[1] > 90


def test_mean_interval_holds_the_quotients_of_both_intervals() -> None:
    total = NoisyMeasure(NoiseDistribution.LAPLACE, Fraction(10), 0, 0, 100, 50)
    count = NoisyMeasure(NoiseDistribution.LAPLACE, Fraction(2), 0, 0, 1, 0)
    sums, counts = np.array([-300, 300]), np.array([20, 20])
    lower, upper = mean_interval(
        total, central_interval(total, sums, 0.95), central_interval(count, counts, 0.95)
    )
    assert lower[0] < 50 - 300 / 20 < upper[0]
    assert lower[1] < 50 + 300 / 20 < upper[1]
    assert (lower >= 0).all()
    assert (upper <= 100).all()
