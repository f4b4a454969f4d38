"""Intervals of ratios: exact coverage on whole lattices of noise, width, and what has no bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.queries.release.ratio_intervals import NoiseTerm, ratio_interval
from sfumato.queries.release.tails.noise_tails import noise_tail, sum_tail
from tests.cases import cases
from tests.queries.release.noise_lattice import lattice

PAIRS: list[tuple[SymmetricDistribution, SymmetricDistribution]] = [
    (DiscreteLaplaceDistribution(4), DiscreteLaplaceDistribution(2)),
    (DiscreteLaplaceDistribution(Fraction(1, 2)), DiscreteLaplaceDistribution(3)),
    (DiscreteGaussianDistribution(6), DiscreteGaussianDistribution(2)),
    (DiscreteLaplaceDistribution(4), TruncatedLaplaceDistribution(2, 14)),
]


@cases("above, below", PAIRS)
@cases("level", [0.5, 0.95])
def test_coverage_is_at_least_the_level_for_every_noise_of_the_lattice(
    above: SymmetricDistribution, below: SymmetricDistribution, level: float
) -> None:
    (one, other), masses = lattice(above, below)
    terms = [NoiseTerm(noise_tail(above), 1.0, 0.0), NoiseTerm(noise_tail(below), 0.0, 1.0)]
    miss = np.full(masses.size, 1 - level)
    for total, count in ((3, 1) if level == 0.5 else (-40, 10), (500, 40)):
        low, high = ratio_interval(total + one, count + other, terms, miss)
        held = masses[(low <= total / count) & (total / count <= high)].sum()
        assert held >= level - 1e-9, (total, count)
        if count >= 40:
            low, high = np.clip(low, -1e6, 1e6), np.clip(high, -1e6, 1e6)
            cut = 0.2 * (high - low)
            narrower = (low + cut <= total / count) & (total / count <= high - cut)
            assert masses[narrower].sum() < level, (total, count)


def test_a_sum_over_itself_and_another_is_covered() -> None:
    noise = DiscreteLaplaceDistribution(2)
    (one, other), masses = lattice(noise, noise)
    terms = [NoiseTerm(noise_tail(noise), 1.0, 1.0), NoiseTerm(noise_tail(noise), 0.0, 1.0)]
    low, high = ratio_interval(30 + one, 90 + one + other, terms, np.full(masses.size, 0.05))
    held = masses[(low <= 1 / 3) & (high >= 1 / 3)].sum()
    assert 0.95 <= held < 0.98


def _law_width(above: SymmetricDistribution, below: SymmetricDistribution, exact: tuple[int, int]) -> float:
    (one, other), masses = lattice(above, below)
    ratios = (exact[0] + one) / (exact[1] + other)
    order = np.argsort(ratios)
    below_each: NDArray[np.float64] = np.cumsum(masses[order])
    low, high = (ratios[order][np.searchsorted(below_each, share)] for share in (0.025, 0.975))
    return float(high - low)


def test_the_median_width_is_that_of_the_exact_law() -> None:
    for (above, below), exact in zip(PAIRS, [(500, 90), (200, 400), (500, 90), (500, 90)], strict=True):
        (one, other), masses = lattice(above, below)
        terms = [NoiseTerm(noise_tail(above), 1.0, 0.0), NoiseTerm(noise_tail(below), 0.0, 1.0)]
        low, high = ratio_interval(exact[0] + one, exact[1] + other, terms, np.full(masses.size, 0.05))
        width = high - low
        order = np.argsort(width)
        median = width[order][np.searchsorted(np.cumsum(masses[order]), 0.5)]
        assert median <= 1.1 * _law_width(above, below, exact)


def test_wide_noise_has_the_interval_of_its_closed_form() -> None:
    # without noise below, the end is where the tail of the noise above is
    noise = DiscreteLaplaceDistribution(1_000_000)
    half = noise.half_width(0.95)[0]
    low, high = ratio_interval(
        np.array([5e7]), np.array([10.0]), [NoiseTerm(noise_tail(noise), 1.0, 0.0)], np.array([0.05])
    )
    assert low[0] == pytest.approx((5e7 - half) / 10, rel=1e-3 * half / 5e7)
    assert high[0] == pytest.approx((5e7 + half) / 10, rel=1e-3 * half / 5e7)
    assert low[0] <= (5e7 - half) / 10
    assert high[0] >= (5e7 + half) / 10


def test_where_the_denominator_may_be_zero_the_ends_are_the_bounds() -> None:
    terms = [
        NoiseTerm(noise_tail(DiscreteLaplaceDistribution(5)), 1.0, 0.0),
        NoiseTerm(noise_tail(DiscreteLaplaceDistribution(5)), 0.0, 1.0),
    ]
    above, below = np.array([100.0, 2.0, 0.0, -100.0]), np.array([1.0, -3.0, 0.0, 2.0])
    miss = np.full(4, 0.05)
    low, high = ratio_interval(above, below, terms, miss)
    assert low.tolist() == [-math.inf] * 4
    assert high.tolist() == [math.inf] * 4
    low, high = ratio_interval(above, below, terms, miss, (-5.0, 50.0))
    assert (low >= -5).all()
    assert (high <= 50).all()
    # 100 over about 1: large numbers of either sign, of which only the positive ones are within the bounds
    assert low[0] > 2
    assert high[0] == 50


def test_a_thousand_groups_are_the_groups_one_by_one() -> None:
    rng = np.random.default_rng(3)
    above, below = rng.integers(-900, 900, 2100).astype(float), rng.integers(1, 900, 2100).astype(float)
    terms = [
        NoiseTerm(noise_tail(DiscreteGaussianDistribution(40)), 1.0, 0.0),
        NoiseTerm(sum_tail([DiscreteGaussianDistribution(3)] * 2, [1.0, 1.0]), 0.0, 1.0),
    ]
    together = ratio_interval(above, below, terms, np.full(2100, 0.1))
    for index in (0, 2047, 2048, 2099):
        alone = ratio_interval(above[[index]], below[[index]], terms, np.array([0.1]))
        assert alone[0][0] == pytest.approx(together[0][index])
        assert alone[1][0] == pytest.approx(together[1][index])
