"""Large samples against the laws' certified probabilities, of scales whose words are too many to enumerate.

Over the choice of seed each check would raise a false alarm with probability at most 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.sampling.integer_noise import geometric
from tests.cases import cases
from tests.chance import accepts_only, moments

COUNT = 1_000_000
LAWS: list[SymmetricDistribution] = [
    DiscreteLaplaceDistribution(99.9),
    DiscreteLaplaceDistribution(200),
    DiscreteLaplaceDistribution(10**6),
    DiscreteLaplaceDistribution(2**40),
    DiscreteGaussianDistribution(5),
    DiscreteGaussianDistribution(1000),
    DiscreteGaussianDistribution(1025),
    DiscreteGaussianDistribution(10**6),
    DiscreteGaussianDistribution(2**40),
]


def chi_square(observed: NDArray[np.float64]) -> Callable[[NDArray[np.float64]], None]:
    """Return a check of counts against expected ones, by the cube root of Wilson and Hilferty."""

    def check(expected: NDArray[np.float64]) -> None:
        freedom = observed.size - 1
        statistic = float(((observed - expected) ** 2 / expected).sum())
        spread = 2 / (9 * freedom)
        assert ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread) <= 7

    return check


@pytest.fixture(scope="module", params=LAWS, ids=repr)
def drawn(request: pytest.FixtureRequest) -> tuple[SymmetricDistribution, NDArray[np.int64]]:
    sample = request.param.sample(COUNT, 20261121)
    return request.param, sample


def narrower(distribution: SymmetricDistribution) -> SymmetricDistribution:
    """A law of the same kind with a fiftieth less spread."""
    if isinstance(distribution, DiscreteLaplaceDistribution):
        return DiscreteLaplaceDistribution(Fraction(distribution.scale) * Fraction(49, 50))
    assert isinstance(distribution, DiscreteGaussianDistribution)
    return DiscreteGaussianDistribution(Fraction(distribution.sigma) * Fraction(49, 50))


def test_bins_hold_what_the_law_says(drawn: tuple[SymmetricDistribution, NDArray[np.int64]]) -> None:
    distribution, sample = drawn
    edges = sorted(
        {distribution.quantile_above(p) for p in np.linspace(0.01, 0.99, 99)}
        | {distribution.quantile_above(1e-4)}
    )
    observed = np.histogram(sample, [-np.inf, *[e - 0.5 for e in edges], np.inf])[0].astype(np.float64)
    assert observed.sum() == COUNT

    def expected(distribution: SymmetricDistribution) -> NDArray[np.float64]:
        return np.asarray(
            -np.diff([1.0, *[distribution.upper_tail(edge).upper for edge in edges], 0.0]) * COUNT
        )

    assert expected(distribution).min() > 20
    accepts_only(chi_square(observed), expected(distribution), narrower=expected(narrower(distribution)))


def test_moments(drawn: tuple[SymmetricDistribution, NDArray[np.int64]]) -> None:
    distribution, sample = drawn
    accepts_only(
        moments(
            sample / distribution.stddev,
            kurtosis=6.0 if isinstance(distribution, DiscreteLaplaceDistribution) else 3.0,
        ),
        (0, 1),
        to_the_right=(0.02, 1),
        narrower=(0, (narrower(distribution).stddev / distribution.stddev) ** 2),
    )


@cases("distribution", [distribution for distribution in LAWS if distribution.stddev > 50], ids=repr)
def test_low_bits_are_even(distribution: SymmetricDistribution) -> None:
    sample = np.asarray(distribution.sample(COUNT, 7))
    # Beyond a standard deviation of 50 the remainder by 16 is uniform to far less than one draw here.
    accepts_only(
        chi_square(np.bincount(sample & 15, minlength=16).astype(np.float64)),
        np.full(16, COUNT / 16),
        odd_ones_too_often=np.tile([0.98, 1.02], 8) * COUNT / 16,
    )


def test_draws_are_independent_of_their_neighbours(
    drawn: tuple[SymmetricDistribution, NDArray[np.int64]],
) -> None:
    distribution, sample = drawn
    standard = sample / distribution.stddev
    for x, y in ((standard[:-1], standard[1:]), (np.abs(standard[:-256]), np.abs(standard[256:]))):
        # Of independent draws, the products have the product of the variances, which these are near to.
        product = (x - x.mean()) * (y - y.mean()) / (x.std() * y.std())

        def correlated(coefficient: float, product: NDArray[np.float64] = product) -> None:
            assert abs(product.mean() - coefficient) < 6.5 * product.std() / math.sqrt(product.size)

        accepts_only(correlated, 0.0, correlated=0.02, opposed=-0.02)


@cases("scale", [0.3, 1, 99.9, 200, 10**6, 2**40])
def test_geometric_bins_hold_what_the_law_says(scale: float) -> None:
    sample = np.asarray(geometric(scale, COUNT, 11))
    assert sample.min() >= 0
    edges = np.unique(np.ceil(-scale * np.log(np.linspace(0.01, 0.99, 99)))).astype(np.int64)
    edges = edges[edges > 0]
    observed = np.histogram(sample, [-0.5, *(edges - 0.5), np.inf])[0].astype(np.float64)

    def expected(scale: float) -> NDArray[np.float64]:
        return np.asarray(-np.diff(np.exp(-np.concatenate([[0], edges, [math.inf]]) / scale)) * COUNT)

    accepts_only(
        chi_square(observed), expected(scale), wider=expected(1.02 * scale), narrower=expected(0.98 * scale)
    )


def test_a_geometric_draw_of_any_shape() -> None:
    assert isinstance(geometric(3), int)
    assert geometric(3, 0).shape == (0,)
    assert geometric(3, (40, 500), rng=1).shape == (40, 500)
