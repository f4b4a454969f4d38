"""Large samples against the laws' certified probabilities.

Seeds are fixed, so a test passes always or never; over the choice of seed each threshold would raise a false
alarm with probability at most 1e-10, the whole file with at most 1e-8.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.numerics.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, SymmetricLaw
from sfumato.numerics.samplers import geometric
from tests.cases import cases

FALSE_ALARM_SDS = 6.5
COUNT = 1_000_000
LAWS: list[SymmetricLaw] = [
    DiscreteLaplaceLaw(0.3),
    DiscreteLaplaceLaw(1),
    DiscreteLaplaceLaw(99.9),
    DiscreteLaplaceLaw(200),
    DiscreteLaplaceLaw(10**6),
    DiscreteLaplaceLaw(2**40),
    DiscreteGaussianLaw(0.4),
    DiscreteGaussianLaw(1),
    DiscreteGaussianLaw(1000),
    DiscreteGaussianLaw(1025),
    DiscreteGaussianLaw(10**6),
    DiscreteGaussianLaw(2**40),
]


def chi_square_alarm(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> bool:
    """Wilson and Hilferty's cube root, normal to good accuracy from a few degrees of freedom on."""
    freedom = observed.size - 1
    statistic = float(((observed - expected) ** 2 / expected).sum())
    spread = 2 / (9 * freedom)
    return bool(((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread) > 7)


@pytest.fixture(scope="module", params=LAWS, ids=repr)
def drawn(request: pytest.FixtureRequest) -> tuple[SymmetricLaw, NDArray[np.int64]]:
    sample = request.param.sample(COUNT, 20261121)
    return request.param, sample


def test_bins_hold_what_the_law_says(drawn: tuple[SymmetricLaw, NDArray[np.int64]]) -> None:
    law, sample = drawn
    edges = sorted({law.quantile_above(p) for p in np.linspace(0.01, 0.99, 99)} | {law.quantile_above(1e-4)})
    above = [1.0, *[law.upper_tail(edge).upper for edge in edges], 0.0]
    expected = -np.diff(above) * COUNT
    observed = np.histogram(sample, [-np.inf, *[e - 0.5 for e in edges], np.inf])[0].astype(np.float64)
    busy = expected > 20
    pooled = [np.append(x[busy], x[~busy].sum()) for x in (observed, expected)]
    if pooled[1][-1] < 20:
        pooled = [np.append(x[:-2], x[-2:].sum()) for x in pooled]
    assert pooled[0].sum() == COUNT
    assert not chi_square_alarm(*pooled)


def test_moments(drawn: tuple[SymmetricLaw, NDArray[np.int64]]) -> None:
    law, sample = drawn
    standard = sample / law.stddev
    assert abs(standard.mean()) < FALSE_ALARM_SDS / math.sqrt(COUNT)
    square = standard**2
    assert abs(square.mean() - 1) < FALSE_ALARM_SDS * square.std() / math.sqrt(COUNT)


@cases("law", [law for law in LAWS if law.stddev > 50], ids=repr)
def test_low_bits_are_even(law: SymmetricLaw) -> None:
    sample = np.asarray(law.sample(COUNT, 7))
    # Beyond a standard deviation of 50 the remainder by 16 is uniform to far less than one draw here.
    observed = np.bincount(sample & 15, minlength=16).astype(np.float64)
    assert not chi_square_alarm(observed, np.full(16, COUNT / 16))


def test_draws_are_independent_of_their_neighbours(drawn: tuple[SymmetricLaw, NDArray[np.int64]]) -> None:
    law, sample = drawn
    standard = sample / law.stddev
    for x, y in ((standard[:-1], standard[1:]), (np.abs(standard[:-256]), np.abs(standard[256:]))):
        product = (x - x.mean()) * (y - y.mean())
        assert abs(product.mean()) < FALSE_ALARM_SDS * product.std() / math.sqrt(product.size)


@cases("scale", [0.3, 1, 99.9, 200, 10**6, 2**40])
def test_geometric_bins_hold_what_the_law_says(scale: float) -> None:
    sample = np.asarray(geometric(scale, COUNT, 11))
    assert sample.min() >= 0
    edges = np.unique(np.ceil(-scale * np.log(np.linspace(0.01, 0.99, 99)))).astype(np.int64)
    edges = edges[edges > 0]
    above = np.exp(-np.concatenate([[0], edges, [math.inf]]) / scale)
    observed = np.histogram(sample, [-0.5, *(edges - 0.5), np.inf])[0].astype(np.float64)
    assert not chi_square_alarm(observed, -np.diff(above) * COUNT)


def test_a_geometric_draw_of_any_shape() -> None:
    assert isinstance(geometric(3), int)
    assert geometric(3, 0).shape == (0,)
    assert geometric(3, (40, 500), rng=1).shape == (40, 500)
