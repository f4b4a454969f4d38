"""Tails for many arguments: against certified probabilities, and sums against the exact convolution."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.queries.release.tails.noise_tails import noise_tail, sum_tail
from tests.cases import cases

NOISES: list[SymmetricDistribution] = [
    DiscreteLaplaceDistribution(Fraction(1, 3)),
    DiscreteLaplaceDistribution(2),
    DiscreteLaplaceDistribution(1_000_003),
    TruncatedLaplaceDistribution(2, 14),
    TruncatedLaplaceDistribution(300, 100),
    DiscreteGaussianDistribution(Fraction(7, 10)),
    DiscreteGaussianDistribution(30),
    DiscreteGaussianDistribution(257),
    DiscreteGaussianDistribution(1_000_003),
]


@cases("noise", NOISES, ids=repr)
def test_both_bounds_hold_the_certified_tail_and_are_near(noise: SymmetricDistribution) -> None:
    tail, spread = noise_tail(noise), noise.stddev
    whole = np.unique(np.round(np.linspace(-6 * spread - 2, 8 * spread + 2, 41)))
    certified = [noise.upper_tail(int(k)) for k in whole]
    upper, lower = tail.upper(whole), tail.lower(whole)
    for above, below, bounds in zip(upper, lower, certified, strict=True):
        assert below <= bounds.upper
        assert bounds.lower <= above
        assert above - below <= 1.2e-3 * min(above, 1.0) + 1e-19


@cases("noise", NOISES, ids=repr)
def test_between_whole_numbers_the_bound_falls_and_is_that_of_the_next_or_more(
    noise: SymmetricDistribution,
) -> None:
    tail = noise_tail(noise)
    x = np.linspace(-3 * noise.stddev - 2, 3 * noise.stddev + 2, 301)
    found = tail.upper(x)
    assert (np.diff(found) <= 0).all()
    assert (found >= tail.lower(np.ceil(x))).all()


@cases("noise", NOISES, ids=repr)
def test_nodes_stand_for_a_magnitude_that_is_no_smaller(noise: SymmetricDistribution) -> None:
    magnitudes, masses = noise_tail(noise).nodes()
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    assert magnitudes.size < 300
    assert magnitudes[-1] == np.inf
    assert masses[-1] < 1e-6
    beyond = np.cumsum(masses[::-1])[::-1]  # of at least each magnitude
    exact = [min(1.0, 2 * noise.upper_tail(int(k)).lower) if k else 1.0 for k in magnitudes[:-1]]
    assert (beyond[:-1] >= np.array(exact) - 1e-12).all()


def test_a_sum_is_bounded_by_little_more_than_the_convolution() -> None:
    noises = (
        DiscreteLaplaceDistribution(3),
        TruncatedLaplaceDistribution(2, 9),
        DiscreteGaussianDistribution(4),
    )
    weights, reach = (1.0, -2.0, 0.5), 240
    # in halves of a step
    law = np.zeros(2 * reach + 1)
    law[reach] = 1.0
    for noise, weight in zip(noises, weights, strict=True):
        apart = round(2 * abs(weight))
        single = np.zeros(2 * reach + 1)
        for k in range(-reach // apart, reach // apart + 1):
            single[reach + apart * k] = noise.pmf(k).lower
        law = np.convolve(law, single)[reach:-reach]
    tail = sum_tail(noises, weights)
    assert tail.stddev == pytest.approx(np.sqrt(law @ (np.arange(-reach, reach + 1) / 2) ** 2), rel=1e-6)
    for x in (0.5, 3.0, 9.5, 20.0, 35.0):
        exact, found = law[reach + round(2 * x) :].sum(), float(tail.upper(np.array([x]))[0])
        assert exact <= found <= 1.05 * law[reach + round(2 * x) - 1 :].sum()
        assert float(tail.upper(np.array([-x]))[0]) >= 1 - exact - 1e-12
