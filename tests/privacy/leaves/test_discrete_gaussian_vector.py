"""Discrete Gaussian noise on vectors: the claim covers every shift, also one that answers steer."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import DiscreteGaussian, DiscreteGaussianVector, Gaussian
from sfumato.privacy.leaves import discrete_gaussian_views
from tests.cases import cases

Pmf = dict[int, float]


def noise(stddev: Fraction, reach: int) -> Pmf:
    weights = {
        k: float(mpmath.exp(-mpmath.mpf(k * k) / (2 * stddev * stddev))) for k in range(-reach, reach + 1)
    }
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def shifts(squares: int, entries: int) -> set[tuple[int, ...]]:
    far = math.isqrt(squares)
    every = itertools.product(range(far + 1), repeat=entries)
    return {tuple(sorted(shift)) for shift in every if 0 < sum(d * d for d in shift) <= squares}


@cases(("stddev", "squares"), [(Fraction(1), 5), (Fraction(2), 9), (Fraction(5, 2), 6)])
@cases("epsilon", [0.2, 1.0, 3.0])
def test_it_covers_every_shift(stddev: Fraction, squares: int, epsilon: float) -> None:
    pmf = noise(stddev, 16)
    claimed = DiscreteGaussianVector(stddev, squares).delta(epsilon)
    greatest = 0.0
    for shift in shifts(squares, 2):
        truth = 0.0
        for a, b in itertools.product(pmf, repeat=2):
            there = pmf.get(a - shift[0], 0.0) * pmf.get(b - shift[1], 0.0)
            if a - shift[0] in pmf and b - shift[1] in pmf:
                truth += max(0.0, pmf[a] * pmf[b] - math.exp(epsilon) * there)
        greatest = max(greatest, truth)
    assert greatest <= claimed


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_it_covers_an_adversary_who_steers_by_the_first_answer(epsilon: float) -> None:
    """The first answer decides how the rest of the squares is used: the best of all such plans, exactly."""
    stddev, squares = Fraction(2), 8
    pmf = noise(stddev, 26)
    grid = range(-16, 17)
    greatest = 0.0
    for first in range(math.isqrt(squares) + 1):
        rest = math.isqrt(squares - first * first)
        truth = 0.0
        for a in grid:
            here, there = pmf[a], pmf[a - first]
            # Given the answer a, the best second move, of every sign.
            truth += max(
                math.fsum(max(0.0, here * pmf[b] - math.exp(epsilon) * there * pmf[b - second]) for b in grid)
                for second in range(-rest, rest + 1)
            )
        greatest = max(greatest, truth)
    assert 0 < greatest <= DiscreteGaussianVector(stddev, squares).delta(epsilon)


@cases("stddev", [Fraction(1), Fraction(7, 2), Fraction(40), Fraction(511), Fraction(4000)])
@cases("largest", [1, 2, 9])
def test_the_rate_holds_for_every_shift(stddev: Fraction, largest: int) -> None:
    rate = discrete_gaussian_views.gdp_rate(stddev, largest)
    for shift in range(1, largest + 1):
        assert DiscreteGaussian(stddev, shift).gdp().mu <= rate * shift * (1 + 1e-15)
    assert 1 <= rate * float(stddev) <= 1 + 0.3 / float(stddev) ** 2 + 2e-3


def test_on_a_fine_lattice_it_is_the_continuous_loss() -> None:
    fine = DiscreteGaussianVector(3 << 20, 1 << 40)
    assert fine.epsilon(1e-6) == pytest.approx(Gaussian(3.0).epsilon(1e-6), rel=1e-8)
    assert fine.epsilon(1e-6) >= Gaussian(3.0).epsilon(1e-6)
    assert fine.zcdp().rho == pytest.approx(1 / 18, rel=1e-15)
    assert fine.group(3) == DiscreteGaussianVector(3 << 20, 9 << 40)


def test_where_gaussian_dp_is_not_proven_zcdp_is_left() -> None:
    for loss in (DiscreteGaussianVector(Fraction(1, 10), 4), DiscreteGaussianVector(1, 10**6)):
        assert loss.gdp().mu == math.inf
        assert loss.zcdp().rho < loss.epsilon(1e-6) < math.inf
    assert DiscreteGaussianVector(0, 1).epsilon(1e-6) == math.inf


@pytest.mark.parametrize("squares", [0, -1, 1.5, True])
def test_bad_input(squares: object) -> None:
    with pytest.raises(ParameterError, match="l2_squared must be an integer of at least 1"):
        DiscreteGaussianVector(1, squares)  # type: ignore[arg-type]
