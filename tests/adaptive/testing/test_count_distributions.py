"""Distributions of counts against exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.adaptive.testing.count_distributions import binomial, discrete_laplace
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution


def test_binomial_probabilities() -> None:
    for size, share in ((1, 0.3), (12, 0.5), (40, 0.01), (300, 0.97)):
        found = binomial(size, share)
        for place, mass in enumerate(found.masses):
            k = found.first + place
            exact = math.comb(size, k) * share**k * (1 - share) ** (size - k)
            assert mass == pytest.approx(exact, abs=1e-13)
    large = binomial(10**7, 0.25)
    places = large.first + np.arange(len(large.masses))
    mean = float(places @ large.masses)
    assert mean == pytest.approx(2.5e6, abs=1e-3)
    assert float((places - mean) ** 2 @ large.masses) == pytest.approx(1.875e6, rel=1e-8)
    assert len(large.masses) < 40_000
    for share in (0.0, 1.0):
        assert binomial(7, share).first == 7 * share
        assert binomial(7, share).masses.tolist() == [1.0]


def test_discrete_laplace_probabilities() -> None:
    noise = DiscreteLaplaceDistribution(2.5)
    found = discrete_laplace(2.5)
    for k in (0, 1, -7, 60):
        assert found.masses[k - found.first] == pytest.approx(noise.pmf(k).upper, rel=1e-9)
    assert noise.upper_tail(-found.first + 1).upper < 1e-17


def test_sums_negatives_and_tails() -> None:
    one, other = binomial(5, 0.3), discrete_laplace(0.5)
    both = one.plus(other)
    assert both.first == one.first + other.first
    assert both.masses == pytest.approx(np.convolve(one.masses, other.masses), abs=1e-15)
    assert one.negated().first == -5
    assert one.negated().masses.tolist() == one.masses[::-1].tolist()
    assert one.at_least(-3) == pytest.approx(1.0)
    assert one.at_least(5) == pytest.approx(0.3**5)
    assert one.at_least(6) == 0.0
    assert one.cumulated()[:2] == pytest.approx([0.7**5, 0.7**5 + 5 * 0.3 * 0.7**4])
    assert one.first_rarer(0.3**5 * 1.001) == 5
    assert one.first_rarer(0.3**5 * 0.999) == 6
    assert one.first_rarer(1.0 + 1e-9) == 0
