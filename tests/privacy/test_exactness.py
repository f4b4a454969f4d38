"""The numbers of single losses against sums over the lattice and integrals at 60 digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import mpmath
import pytest
from mpmath import mp, mpf

from sfumato.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PrivacyLoss,
    PureDP,
    analytic_gaussian_stddev,
    gdp_epsilon,
    pure_to_gdp,
    pure_to_zcdp,
)
from sfumato.privacy.gaussian_profile import log_profile, upper_quantile
from tests.cases import cases

Pair = tuple[list[mpf], list[mpf]]


@pytest.fixture(autouse=True)
def _digits() -> object:
    with mp.workdps(60):
        yield


def exact(value: Fraction | float | int) -> mpf:
    ratio = Fraction(value)
    return mpf(ratio.numerator) / ratio.denominator


@cache
def gaussian_pair(stddev: Fraction, shift: int) -> Pair:
    """The discrete Gaussian and its shift, on a lattice wide enough for 60 digits."""
    with mp.workdps(60):
        width = math.ceil(20 * float(stddev)) + 20 + shift
        masses = {x: mpmath.exp(-(mpf(x) ** 2) / (2 * exact(stddev) ** 2)) for x in range(-width, width + 1)}
        norm = mpmath.fsum(masses.values())
        points = range(-width + shift, width + 1)
        return [masses[x - shift] / norm for x in points], [masses[x] / norm for x in points]


@cache
def laplace_pair(scale: Fraction, shift: int) -> Pair:
    """The discrete Laplace law and its shift; the two outer tails, of constant loss, are lumped together."""
    with mp.workdps(60):
        r = mpmath.exp(-1 / exact(scale))
        mass = [(1 - r) / (1 + r) * r ** abs(x) for x in range(shift + 1)]
        tail = r / (1 + r)
        p = [tail, *mass, tail * r**shift]
        return p, p[::-1]


def randomized_response(epsilon: float) -> Pair:
    a = 1 / (1 + mpmath.exp(exact(epsilon)))
    return [1 - a, a], [a, 1 - a]


def hockey_stick(pair: Pair, epsilon: float) -> mpf:
    scale = mpmath.exp(exact(epsilon))
    return mpmath.fsum(max(p - scale * q, mpf(0)) for p, q in zip(*pair, strict=True))


def renyi(pair: Pair, order: float) -> mpf:
    a = exact(order)
    return mpmath.log(mpmath.fsum(p**a * q ** (1 - a) for p, q in zip(*pair, strict=True))) / (a - 1)


DISCRETE: list[tuple[PrivacyLoss, Callable[[], Pair]]] = [
    *(
        (DiscreteLaplace(Fraction(b), s), lambda b=b, s=s: laplace_pair(Fraction(b), s))
        for b, s in [
            ("1", 1),
            ("2", 1),
            ("7/3", 5),
            ("10", 4),
            ("1/5", 3),
            ("1000", 7),
            ("1e6", 2),
            ("3", 40),
        ]
    ),
    *(
        (DiscreteGaussian(Fraction(d), s), lambda d=d, s=s: gaussian_pair(Fraction(d), s))
        for d, s in [("1", 1), ("1/2", 1), ("1/4", 2), ("3", 1), ("7/3", 5), ("20", 3), ("2", 30), ("40", 1)]
    ),
    *((PureDP(e), lambda e=e: randomized_response(e)) for e in [1e-5, 0.3, 2.0, 40.0]),
]


@cases(("loss", "pair"), DISCRETE, ids=lambda value: repr(value) if isinstance(value, PrivacyLoss) else "")
def test_profile_is_that_of_the_law_that_is_drawn(loss: PrivacyLoss, pair: Callable[[], Pair]) -> None:
    top = float(loss.zcdp().rho)
    for epsilon in [0.0, 1e-7, 1e-3, 0.1, 0.29, 0.5, 0.75, 1.0, 1.9, 5.0, top, 2 * top + 1, 6 * top + 3]:
        truth = hockey_stick(pair(), epsilon)
        if truth > mpf(10) ** -55:
            assert truth <= exact(math.exp(loss.log_profile(epsilon))) * (1 + mpf(2) ** -50)
            # Near the end of a bounded loss the last digits of epsilon decide.
            assert exact(loss.delta(epsilon)) <= truth * (1 + mpf(10) ** -8)


@cases(("loss", "pair"), DISCRETE, ids=lambda value: repr(value) if isinstance(value, PrivacyLoss) else "")
def test_divergences_bound_the_law_that_is_drawn(loss: PrivacyLoss, pair: Callable[[], Pair]) -> None:
    rho = exact(loss.zcdp().rho)
    bounded = not isinstance(loss, DiscreteGaussian)
    for order in [1.001, 1.5, 2.0, 8.0, 33.3, 500.0]:
        truth = renyi(pair(), order)
        if order < 30:  # the lattice of the reference is too short for the tilted law beyond
            assert truth <= exact(loss.rdp(order)) * (1 + mpf(2) ** -50)
            assert truth <= rho * exact(order)
        if bounded:
            assert exact(loss.rdp(order)) <= truth * (1 + mpf(10) ** -7) + mpf(10) ** -13


@cases(("loss", "pair"), DISCRETE, ids=lambda value: repr(value) if isinstance(value, PrivacyLoss) else "")
def test_rho_is_the_divergence_at_order_one(loss: PrivacyLoss, pair: Callable[[], Pair]) -> None:
    p, q = pair()
    divergence = mpmath.fsum(a * mpmath.log(a / b) for a, b in zip(p, q, strict=True))
    rho = exact(loss.zcdp().rho)
    # The discrete Gaussian's bound is the continuous one, an equality only in the limit of much noise.
    assert divergence <= rho + mpf(10) ** -50
    assert isinstance(loss, DiscreteGaussian) or rho <= divergence * (1 + mpf(10) ** -9)


def quantile(probability: mpf) -> mpf:
    """The z with upper normal tail ``probability``, by Newton's method on logs."""
    if probability > mpf(1) / 2:
        return -quantile(1 - probability)
    z = mpmath.sqrt(-2 * mpmath.log(probability) + mpf(10) ** -20)
    for _ in range(80):
        upper = mpmath.erfc(z / mpmath.sqrt(2)) / 2
        step = (mpmath.log(upper) - mpmath.log(probability)) * upper / mpmath.npdf(z)
        z += step
        if abs(step) < mpf(10) ** -40:
            break
    return z


def least_mu(pair: Pair) -> mpf:
    """The least mu whose Gaussian trade-off curve is below every vertex whose two errors exceed 1e-60."""
    alpha, beta, best = mpf(0), mpf(1), mpf(0)
    for p, q in zip(*pair, strict=True):  # the loss falls along the list: reject the first points
        alpha, beta = alpha + q, beta - p
        if min(alpha, beta) > mpf(10) ** -35:
            best = max(best, quantile(alpha) + quantile(beta))
    return best


@pytest.mark.parametrize(
    ("loss", "pair"),
    [entry for entry in DISCRETE if "1/4" not in repr(entry[0])],
    ids=lambda value: repr(value) if isinstance(value, PrivacyLoss) else "",
)
def test_mu_is_above_every_vertex(loss: PrivacyLoss, pair: Callable[[], Pair]) -> None:
    p, q = pair()
    if isinstance(loss, DiscreteGaussian):  # centred at the shift, its loss rises along the lattice
        p, q = p[::-1], q[::-1]
    mu, truth = exact(loss.gdp().mu), least_mu((p, q))
    assert truth <= mu
    even = isinstance(loss, DiscreteLaplace) and loss.sensitivity % 2 == 0
    assert mu <= truth * (1 + (mpf(1) / 4 if even else mpf(10) ** -8))


@pytest.mark.parametrize("stddev", [Fraction(513), Fraction(600), Fraction(5000, 3)])
def test_closed_form_mu_is_above_the_visited_vertices(
    stddev: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.privacy.leaves import discrete_gaussian_views  # noqa: PLC0415

    for shift in (1, 50, 4000):
        discrete_gaussian_views.gdp.cache_clear()
        closed = discrete_gaussian_views.gdp(stddev, shift)
        with monkeypatch.context() as patch:
            patch.setattr(discrete_gaussian_views, "_VISITED", 10**4)
            discrete_gaussian_views.gdp.cache_clear()
            visited = discrete_gaussian_views.gdp(stddev, shift)
        discrete_gaussian_views.gdp.cache_clear()
        assert shift / float(stddev) < visited.mu < closed.mu < visited.mu * (1 + 1e-3)


def test_discrete_gaussian_is_not_the_continuous_one() -> None:
    epsilon = gdp_epsilon(1.0, 1e-5)
    assert Gaussian(1.0).delta(epsilon) == pytest.approx(1e-5, rel=1e-9)
    assert DiscreteGaussian(1).delta(epsilon) == pytest.approx(1.65e-5, rel=2e-3)


def gaussian_delta(mu: float | mpf, epsilon: float | mpf) -> mpf:
    m, e = (
        exact(mu) if isinstance(mu, float) else mu,
        exact(epsilon) if isinstance(epsilon, float) else epsilon,
    )
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@cases("mu", [1e-8, 1e-5, 3.9e-3, 4.1e-3, 0.05, 0.3, 1.0, 2.5, 10.0, 60.0])
def test_gaussian_profile_at_any_size(mu: float) -> None:
    for x in [-30.0, -5.0, -1.01, -0.99, 0.0, 0.7, 2.0, 6.0, 15.0, 37.0]:
        epsilon = mu * (x + mu / 2)
        if epsilon < 0:
            continue
        with mp.workdps(60 + int(x * x / 4)):
            truth = mpmath.log(gaussian_delta(mu, epsilon))
        bound = log_profile(mu, epsilon)
        assert truth <= exact(bound)
        assert bound - float(truth) <= 2e-9 + 2e-14 * x * x / min(mu, 1.0)


def test_gaussian_profile_beyond_exp() -> None:
    assert Gaussian(0.01).epsilon(1e-300) > 700
    with mp.workdps(200):
        truth = mpmath.findroot(
            lambda e: mpmath.log(gaussian_delta(100.0, e)) - mpmath.log(mpf(1e-300)), 8700
        )
    assert truth <= exact(Gaussian(0.01).epsilon(1e-300)) <= truth * (1 + mpf(10) ** -12)
    assert Gaussian(1.0).delta(1e200) > 0
    assert Gaussian(1e-3).delta(0.0) == pytest.approx(1.0)


@cases("noise", [0.1, 1.0, 3.0, 250.0, 1e6])
def test_laplace_by_its_integrals(noise: float) -> None:
    loss, bound = Laplace(noise), 1 / exact(noise)
    for share in [0.0, 0.2, 0.9, 0.999]:
        epsilon = float(share * bound)
        truth = -mpmath.expm1((exact(epsilon) - bound) / 2)
        assert truth <= exact(loss.delta(epsilon)) <= truth * (1 + mpf(10) ** -9)
    for order in [1.0001, 2.0, 40.0]:
        a = exact(order)
        inner = a / (2 * a - 1) * mpmath.exp((a - 1) * bound) + (a - 1) / (2 * a - 1) * mpmath.exp(-a * bound)
        truth = mpmath.log(inner) / (a - 1)
        assert truth <= exact(loss.rdp(order)) <= truth * (1 + mpf(10) ** -7) + mpf(10) ** -13
        assert truth <= exact(loss.zcdp().rho) * a
    assert exact(loss.zcdp().rho) <= (bound + mpmath.expm1(-bound)) * (1 + mpf(10) ** -9)
    middle = 2 * quantile(mpmath.exp(-bound / 2) / 2)
    assert middle <= exact(loss.gdp().mu) <= middle * (1 + mpf(10) ** -7)


@cases("epsilon", [1e-12, 1e-3, 1.0, 30.0, 600.0])
def test_pure_conversions_are_those_of_randomized_response(epsilon: float) -> None:
    with mp.workdps(320):
        e = exact(epsilon)
        mu, rho = 2 * quantile(1 / (1 + mpmath.exp(e))), e * mpmath.tanh(e / 2)
        assert rho <= exact(pure_to_zcdp(epsilon)) <= rho * (1 + mpf(10) ** -14)
        assert mu <= exact(pure_to_gdp(epsilon)) <= mu * (1 + mpf(10) ** -10)
    assert pure_to_zcdp(0.0) == pure_to_gdp(0.0) == 0.0
    assert pure_to_zcdp(math.inf) == pure_to_gdp(math.inf) == math.inf


@cases("log_probability", [-1e-9, -0.1, -0.6931471805599, -0.7, -2.0, -30.0, -690.0])
def test_normal_quantiles(log_probability: float) -> None:
    truth = quantile(mpmath.exp(exact(log_probability)))
    assert truth <= exact(upper_quantile(log_probability)) <= truth + (1 + abs(truth)) * mpf(10) ** -13


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (0.0, 0.3),
        (0.0, 1e-300),
        (1e-6, 1e-10),
        (0.01, 1e-5),
        (0.5, 1e-50),
        (1.0, 1e-3),
        (1.0, 1e-300),
        (4.0, 0.3),
        (30.0, 1e-5),
        (30.0, 1e-50),
        (1000.0, 0.3),
        (1000.0, 1e-300),
    ],
)
def test_analytic_calibration(epsilon: float, delta: float) -> None:
    stddev = analytic_gaussian_stddev(sensitivity=1.0, epsilon=epsilon, delta=delta)
    with mp.workdps(340):

        def gap(logarithm: mpf) -> mpf:
            return mpmath.log(gaussian_delta(1 / mpmath.exp(logarithm), epsilon) / exact(delta))

        truth = mpmath.exp(
            mpmath.findroot(gap, (mpmath.log(exact(stddev)), mpmath.log(exact(stddev)) + mpf("1e-9")))
        )
    # The log of 1e-300 is widened by 8 ulp, which the flat curve at epsilon 0 hands on in full.
    room = 1e-12 if delta > 1e-100 else 3e-12
    assert truth <= exact(stddev) <= truth * (1 + exact(room))
    assert analytic_gaussian_stddev(sensitivity=3.0, epsilon=epsilon, delta=delta) == pytest.approx(
        3 * stddev
    )
