"""Divergences of a Poisson sample from those of the mechanism alone, against integrals and exact sums."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import NeighboringMismatch
from sfumato.privacy import ZCDP, Gaussian, Neighboring, PoissonSubsampled, PureDP, RDPCurve
from sfumato.privacy.accountant.sampled_renyi import sampled_renyi

ORDERS = (1.01, 1.5, 2.0, 2.5, 3.0, 7.0, 32.0, 64.5, 300.0, 5000.0)


def exact_moment(p: list[mpmath.mpf], base: list[mpmath.mpf], order: float) -> mpmath.mpf:
    """The Renyi divergence of two distributions on a few outcomes."""
    total = mpmath.fsum(a**order * b ** (1 - mpmath.mpf(order)) for a, b in zip(p, base, strict=True))
    return mpmath.log(total) / (order - 1)


def test_every_pair_of_distributions_is_bounded_on_both_sides() -> None:
    """Random pairs, most of them not symmetric: their own curve is what is passed."""
    random = np.random.default_rng(7)
    with mpmath.workdps(50):
        for _ in range(12):
            shape = float(random.choice([0.2, 1.0, 5.0]))
            p, base = (
                [mpmath.mpf(float(x)) + mpmath.mpf(10) ** -9 for x in random.dirichlet([shape] * 4)]
                for _ in range(2)
            )
            p, base = [x / mpmath.fsum(p) for x in p], [x / mpmath.fsum(base) for x in base]

            def curve(
                orders: NDArray[np.float64], p: list[mpmath.mpf] = p, base: list[mpmath.mpf] = base
            ) -> NDArray[np.float64]:
                worst = [max(exact_moment(p, base, a), exact_moment(base, p, a)) for a in orders.tolist()]
                return np.array([float(x) * (1 + 1e-12) for x in worst])

            for q in (0.001, 0.1, 0.7):
                mixed = [q * a + (1 - mpmath.mpf(q)) * b for a, b in zip(p, base, strict=True)]
                orders = np.array([1.2, 2.0, 3.0, 4.7])
                found = sampled_renyi(curve, q, orders)
                for order, bound in zip(orders.tolist(), found.tolist(), strict=True):
                    exact = max(exact_moment(mixed, base, order), exact_moment(base, mixed, order))
                    assert exact <= bound, (q, order)


def test_whole_orders_of_a_gaussian_are_the_exact_sums() -> None:
    for q, noise in ((0.001, 0.7), (0.01, 1.0)):
        step = PoissonSubsampled(ZCDP(1 / (2 * noise * noise)), q)
        with mpmath.workdps(60):
            for order in (2, 16, 100):
                terms = (
                    mpmath.binomial(order, k)
                    * mpmath.mpf(q) ** k
                    * (1 - mpmath.mpf(q)) ** (order - k)
                    * mpmath.exp(mpmath.mpf(k * (k - 1)) / (2 * mpmath.mpf(noise) ** 2))
                    for k in range(order + 1)
                )
                exact = mpmath.log(mpmath.fsum(terms)) / (order - 1)
                # The other side, by the proof for all mechanisms, is greater at the lowest order.
                room = mpmath.mpf("1e-6") if order > 2 else q / (1 - mpmath.mpf(q)) + mpmath.mpf("1e-6")
                assert exact <= step.rdp(order) <= exact * (1 + room)


def test_no_order_lies_below_that_of_the_pair_that_has_the_curve() -> None:
    for q, noise in ((0.001, 0.7), (0.1, 1.0), (0.5, 4.0), (0.9, 1.0)):
        pair = PoissonSubsampled(Gaussian(noise), q)
        curve = PoissonSubsampled(ZCDP(1 / (2 * noise * noise)), q)
        for order in ORDERS:
            # The pair's own bound is wider than its truth by less than a thousandth.
            assert curve.rdp(order) >= pair.rdp(order) * (1 - 1e-3), (q, noise, order)
    run = PoissonSubsampled(ZCDP(0.5), 0.01) * 1000
    truth = (PoissonSubsampled(Gaussian(1.0), 0.01) * 1000).epsilon_interval(1e-5)
    lower, upper, tight = run.epsilon_interval(1e-5)
    assert (lower, tight) == (0.0, False)
    assert truth.upper < upper < 1.3 * truth.upper


def test_ends_and_what_is_no_sample() -> None:
    base = ZCDP(0.5)
    assert PoissonSubsampled(base, 1.0).rdp(3.0) == base.rdp(3.0)
    assert PoissonSubsampled(base, 0.0).rdp(3.0) <= 1e-13
    assert PoissonSubsampled(ZCDP(0.0), 0.3).rdp(3.0) <= 1e-13
    for q in (1e-9, 0.5, 0.999):
        assert PoissonSubsampled(base, q).rdp(3.0) <= base.rdp(3.0)
    curve = RDPCurve([2.0, 4.0], [0.5, 1.0])
    assert math.isinf(PoissonSubsampled(curve, 0.1).rdp(8.0))
    assert PoissonSubsampled(curve, 0.1).rdp(4.0) < 0.1
    # Of a divergence of 2 alone no more is known than at order 2.
    assert PoissonSubsampled(RDPCurve([2.0], [0.5]), 0.1).rdp(1.5) < 0.1
    with pytest.raises(NeighboringMismatch):
        PoissonSubsampled(ZCDP(0.5, neighboring=Neighboring.REPLACE_ONE), 0.1)


def test_a_sampled_zero_noise_is_infinite_and_no_error() -> None:
    for base in (Gaussian(0.0), Gaussian(1e-200), PureDP(1e300)):
        for q in (0.5, 1.0):
            assert PoissonSubsampled(base, q).rdp(2.0) >= 1e290
