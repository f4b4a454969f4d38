"""Rényi divergences of dominating pairs, against closed forms and exact sums."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from sfumato.errors import UnsupportedView
from sfumato.privacy import ZCDP, ApproximateDP, Gaussian, Laplace, PoissonSubsampled, PrivacyLoss, PureDP
from sfumato.privacy.accountant.renyi import renyi
from tests.cases import cases

mpmath.mp.dps = 50
ORDERS = np.array([1.001, 1.5, 2.0, 3.0, 8.0, 33.0, 250.0, 4000.0])


@cases(("q", "noise"), [(0.01, 1.0), (0.001, 0.7), (1e-5, 0.5), (0.5, 20.0), (0.1, 0.1), (1e-3, 100.0)])
def test_integer_orders_of_subsampled_gaussians_are_exact_sums(q: float, noise: float) -> None:
    # Mironov, Talwar, Zhang (2019), Section 3.3: the binomial expansion.
    orders = [2, 3, 4, 8, 16, 32, 64, 256]
    bounds = PoissonSubsampled(Gaussian(noise), q).rdp_curve(np.array(orders, dtype=float))
    p, mu = mpmath.mpf(q), 1 / mpmath.mpf(noise)
    for order, bound in zip(orders, bounds, strict=True):
        moment = mpmath.fsum(
            mpmath.binomial(order, k) * (1 - p) ** (order - k) * p**k * mpmath.exp((k * k - k) * mu**2 / 2)
            for k in range(order + 1)
        )
        exact = mpmath.log(moment) / (order - 1)
        assert exact <= float(bound) <= exact * (1 + 1e-4) + 1e-12


@pytest.mark.parametrize("loss", [Laplace(0.3), Laplace(20.0), PureDP(0.7), PureDP(4.0)])
def test_bounds_from_pairs_meet_closed_forms(loss: PrivacyLoss) -> None:
    bounds, closed = renyi(loss.dominating_pair(), ORDERS), loss.rdp_curve(ORDERS)
    assert (bounds >= closed * (1 - 1e-12)).all()
    assert (bounds <= closed * (1 + 1e-4) + 1e-10).all()


def test_sampled_response_is_exact_in_both_orders() -> None:
    q, e = mpmath.mpf("0.2"), mpmath.e ** mpmath.mpf(1.5)
    p = [e / (1 + e), 1 / (1 + e)]
    mixed = [(1 - q) * b + q * a for a, b in zip(p, p[::-1], strict=True)]
    bounds = PoissonSubsampled(PureDP(1.5), 0.2).rdp_curve(ORDERS)
    for order, bound in zip(map(mpmath.mpf, ORDERS.tolist()), bounds, strict=True):
        exact = max(
            mpmath.log(sum(a**order * b ** (1 - order) for a, b in zip(left, right, strict=True)))
            / (order - 1)
            for left, right in ((mixed, p[::-1]), (p[::-1], mixed))
        )
        assert exact <= float(bound) <= exact * (1 + 1e-9) + 1e-9


def test_divergences_rise_with_their_order_in_any_sequence() -> None:
    loss, orders = PoissonSubsampled(Gaussian(0.8), 0.05), np.geomspace(1.01, 1e6, 40)
    bounds = loss.rdp_curve(orders)
    assert (np.diff(bounds) >= 0).all()
    assert (loss.rdp_curve(orders[::-1]) == bounds[::-1]).all()
    assert (bounds <= np.nextafter(Gaussian(0.8).rdp_curve(orders) * (1 + 1e-9), np.inf)).all()


def test_masses_of_total_failure_are_infinite_and_nobody_is_nothing() -> None:
    assert np.isinf(PoissonSubsampled(ApproximateDP(1.0, 1e-9), 0.5).rdp_curve(ORDERS)).all()
    assert (PoissonSubsampled(Gaussian(1.0), 0.0).rdp_curve(ORDERS) < 1e-9).all()


def test_parts_without_pairs_compose_by_divergences() -> None:
    step = PoissonSubsampled(Gaussian(2.0), 0.01) * 1000
    loss = step + ZCDP(0.01)
    together = loss.epsilon(1e-6)
    assert step.epsilon(1e-6) < together < step.epsilon(5e-7) + ZCDP(0.01).epsilon(5e-7)
    assert loss.delta(together) <= 1e-6 * (1 + 1e-6)
    with pytest.raises(UnsupportedView, match="no rdp view in closed form"):
        loss.quick_epsilon(1e-6)
    assert math.isfinite(step.rdp(8.0))
