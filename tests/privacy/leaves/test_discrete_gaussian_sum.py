"""A sum of discrete Gaussians: its comparison with one, and its claims, against exact convolutions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import DiscreteGaussianSum, DiscreteGaussianVector, Neighboring
from sfumato.privacy.leaves.discrete_gaussian_sum_views import closeness, gdp_rate
from tests.cases import cases

Pmf = dict[int, float]


def one(variance: Fraction, reach: int) -> Pmf:
    weights = {k: float(mpmath.exp(-mpmath.mpf(k * k) / (2 * variance))) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def of_sum(stddev: Fraction, summands: int) -> Pmf:
    """The distribution of the sum by convolution, term by term."""
    base = one(stddev**2, math.ceil(14 * stddev) + 2)
    total = base
    for _ in range(summands - 1):
        added: Pmf = {}
        for (a, p), (b, q) in itertools.product(total.items(), base.items()):
            added[a + b] = added.get(a + b, 0.0) + p * q
        total = added
    return total


def divergence(pmf: Pmf, shift: tuple[int, ...], epsilon: float) -> float:
    points = [x for x in pmf if pmf[x] > 1e-18]
    total = 0.0
    for x in itertools.product(points, repeat=len(shift)):
        here = math.prod(pmf[a] for a in x)
        there = math.prod(pmf.get(a - d, 0.0) for a, d in zip(x, shift, strict=True))
        total += max(0.0, here - math.exp(epsilon) * there)
    return total


@cases(
    ("stddev", "summands"), [(Fraction(1, 2), 2), (Fraction(1, 2), 7), (Fraction(3, 4), 4), (Fraction(1), 9)]
)
def test_the_sum_is_as_close_to_a_discrete_gaussian_as_is_proved(stddev: Fraction, summands: int) -> None:
    pmf = of_sum(stddev, summands)
    beside = one(summands * stddev**2, max(pmf))
    near = [x for x in pmf if abs(x) <= 7 * stddev * math.sqrt(summands)]
    logs = [math.log(pmf[x] / beside[x]) for x in near]
    tau = closeness(stddev**2, summands)
    assert max(logs) - min(logs) <= tau
    assert summands > 2 or max(logs) - min(logs) >= tau / 5
    assert min(logs) <= 0 <= max(logs) + 1e-12


def test_the_closeness_is_that_of_a_long_sum() -> None:
    variance, summands = Fraction(9, 10), 2000
    with mpmath.workdps(40):
        each = [
            2
            * mpmath.nsum(
                lambda j, k=k: mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf("0.9") * k / (k + 1) * j**2), [1, 9]
            )
            for k in range(1, summands)
        ]
        truth = mpmath.fsum(mpmath.log((1 + e) / (1 - e)) for e in each)
    found = closeness(variance, summands)
    assert float(truth) <= found <= float(truth) * 1.08
    assert closeness(variance, 1) == 0.0
    assert closeness(Fraction(1, 100), 2) == math.inf


@cases(
    ("stddev", "summands", "squares"), [(Fraction(1, 2), 6, 3), (Fraction(1), 3, 5), (Fraction(4, 5), 2, 2)]
)
@cases("epsilon", [0.2, 1.0, 3.0])
def test_it_covers_every_shift_in_two_dimensions(
    stddev: Fraction, summands: int, squares: int, epsilon: float
) -> None:
    pmf = of_sum(stddev, summands)
    loss = DiscreteGaussianSum(stddev, summands, squares, 2, neighboring=Neighboring.ZERO_OUT)
    far = math.isqrt(squares)
    shifts = [s for s in itertools.product(range(far + 1), repeat=2) if 0 < s[0] ** 2 + s[1] ** 2 <= squares]
    truth = max(divergence(pmf, shift, epsilon) for shift in shifts)
    assert truth <= loss.delta(epsilon)
    assert loss.delta(epsilon) <= (40 * truth if stddev > 0.5 else 0.95)


@cases(
    ("stddev", "summands", "shift"), [(Fraction(1, 2), 6, 2), (Fraction(3, 10), 5, 1), (Fraction(1), 4, 3)]
)
@cases("epsilon", [0.1, 1.0, 4.0])
def test_it_is_exact_in_one_dimension(stddev: Fraction, summands: int, shift: int, epsilon: float) -> None:
    pmf = of_sum(stddev, summands)
    claimed = DiscreteGaussianSum(stddev, summands, shift * shift, 1).delta(epsilon)
    truth = divergence(pmf, (shift,), epsilon)
    assert truth * (1 - 1e-9) <= claimed <= truth * (1 + 1e-6)
    for smaller in range(1, shift):
        assert divergence(pmf, (smaller,), epsilon) <= claimed


def test_a_sum_is_not_priced_as_one_discrete_gaussian() -> None:
    """The wrong price, of one draw with the variance of the sum, is below the truth."""
    stddev, summands, epsilon = Fraction(3, 10), 4, 2.0
    truth = divergence(of_sum(stddev, summands), (1,), epsilon)
    wrong = divergence(one(summands * stddev**2, 12), (1,), epsilon)
    assert wrong < 0.95 * truth
    assert truth <= DiscreteGaussianSum(stddev, summands, 1, 1).delta(epsilon)


@cases(("stddev", "summands", "shift"), [(Fraction(1), 3, 1), (Fraction(3, 4), 4, 2)])
@cases("order", [1.2, 2.0, 8.0])
def test_its_renyi_divergences_are_covered(stddev: Fraction, summands: int, shift: int, order: float) -> None:
    pmf = of_sum(stddev, summands)
    moment = math.fsum(
        pmf[x] ** order * pmf[x - shift] ** (1 - order)
        for x in pmf
        if x - shift in pmf and min(pmf[x], pmf[x - shift]) > 1e-35
    )
    truth = math.log(moment) / (order - 1)
    assert truth <= DiscreteGaussianSum(stddev, summands, shift * shift, 1).rdp(order) <= 1.2 * truth


def test_the_rate_covers_each_step_of_the_quantiles() -> None:
    """Against quantiles of the exact sum, in 30 digits."""
    stddev, summands = Fraction(3, 4), 4
    pmf = of_sum(stddev, summands)
    tau = closeness(stddev**2, summands)
    rate = gdp_rate(summands * stddev**2, 1, tau)
    quantiles = []
    with mpmath.workdps(30):
        for k in range(1, 9):
            tail = math.fsum(p for x, p in pmf.items() if x >= k)
            quantiles.append(float(-mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(tail) - 1)))
    steps = [2 * quantiles[0], *(b - a for a, b in itertools.pairwise(quantiles))]
    assert max(steps) <= rate <= 1.1 * max(steps)


def test_many_small_parts_are_the_vector() -> None:
    loss = DiscreteGaussianSum(16, 100, 160**2, 4096)
    vector = DiscreteGaussianVector(160, 160**2)
    assert vector.zcdp().rho <= loss.zcdp().rho <= vector.zcdp().rho * (1 + 1e-12)
    assert vector.epsilon(1e-6) * (1 - 1e-9) <= loss.epsilon(1e-6) <= vector.epsilon(1e-6) * (1 + 1e-9)
    wide = DiscreteGaussianSum(200, 100, 2000**2, 4096)
    assert wide.gdp().mu == pytest.approx(1.0, abs=4e-5)
    assert wide.gdp().mu >= 1.0


def test_a_variance_beyond_floats() -> None:
    loss = DiscreteGaussianSum(10**300, 10**8, 1, 2)
    assert 0 < loss.gdp().mu < 1e-161
    assert loss.epsilon(1e-6) < 1e-150


def test_nothing_is_proved_beyond_the_comparison() -> None:
    coarse = DiscreteGaussianSum(Fraction(1, 10), 3, 4, 2)
    assert coarse.zcdp().rho == coarse.gdp().mu == math.inf
    assert DiscreteGaussianSum(0, 3, 4, 2).epsilon(1e-6) == math.inf
    assert DiscreteGaussianSum(2, 9, 4, 2).group(3) == DiscreteGaussianSum(2, 9, 36, 2)
    assert not DiscreteGaussianSum(1, 4, 1, 1).dominating_pair().tight
    for shift in (
        90,
        120,
        150,
        400,
    ):  # beyond all masses that are followed, by less than their width and more
        assert DiscreteGaussianSum(1, 4, shift**2, 1).delta(1.0) == pytest.approx(1.0, abs=1e-9)
    assert DiscreteGaussianSum(Fraction(1, 16), 1, 16, 1).delta(0.0) == 1.0


def test_parameters_are_checked() -> None:
    for change in ({"stddev": -1}, {"summands": 0}, {"l2_squared": 0}, {"dimension": 0}, {"dimension": 1.5}):
        given = {"stddev": 1, "summands": 2, "l2_squared": 3, "dimension": 4} | change
        with pytest.raises(ParameterError, match=f"^{next(iter(change))} must be"):
            DiscreteGaussianSum(**given)
