"""Rényi divergences read off dominating pairs, against quadrature at high precision and closed curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp

from sfumato.errors import UnsupportedView
from sfumato.privacy import (
    ApproximateDP,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    PrivacyLoss,
    PureDP,
    compose,
)
from sfumato.privacy.accountant.moments import approximate_rdp, pair_rdp
from sfumato.privacy.composition import loss_moments
from sfumato.privacy.conversion import rdp_epsilon
from tests.cases import cases

ORDERS = (1.05, 1.5, 2.0, 4.0, 10.0)


def exact_subsampled(q: float, noise: float, order: float) -> mp.mpf:
    """The greater of both orders' divergences, where the pair's bins reach."""
    end = 24 + 1 / noise

    def ratio(x: mp.mpf) -> mp.mpf:
        return (1 - q) + q * mp.exp((2 * x - 1 / mp.mpf(noise)) / (2 * mp.mpf(noise)))

    places = [-24, -10, -5, -2, 0, 1, 2, 4, 7, 11, 16, end]
    sums = [mp.quad(lambda x, p=power: mp.npdf(x) * ratio(x) ** p, places) for power in (order, 1 - order)]
    return max(mp.log(total) for total in sums) / (mp.mpf(order) - 1)


@pytest.mark.parametrize(("q", "noise"), [(0.01, 1.0), (1e-5, 0.5), (0.5, 20.0), (0.2, 0.8)])
def test_subsampled_gaussians_meet_the_integral_from_above(q: float, noise: float) -> None:
    pair = PoissonSubsampled(Gaussian(noise), q).dominating_pair()
    curve, mass = pair_rdp(pair, ORDERS)
    assert 0 < mass < 1e-120
    with mp.workdps(20):
        for order, bound in zip(ORDERS, curve, strict=True):
            exact = exact_subsampled(q, noise, order)
            assert exact <= bound <= exact * (1 + mp.mpf(1) / 1000)


@cases("loss", [Laplace(0.7), Laplace(30.0), DiscreteLaplace(3, 2), PureDP(1.3), PureDP(1e-3)])
def test_bounded_losses_meet_their_closed_curves(loss: PrivacyLoss) -> None:
    curve, mass = pair_rdp(loss.dominating_pair(), ORDERS)
    closed = loss.rdp_curve(np.array(ORDERS))
    assert mass == 0
    assert np.array(curve) == pytest.approx(closed, rel=1e-4)
    assert (np.array(curve) >= closed * (1 - 1e-9)).all()


def test_parts_add_up_with_their_masses() -> None:
    loss = compose([ApproximateDP(0.3, 1e-6) * 5, PoissonSubsampled(Laplace(1.0), 0.1) * 7, Gaussian(4.0)])
    curve, mass = approximate_rdp(loss.terms, ORDERS)
    assert 5e-6 <= mass <= 5.00001e-6
    single = [approximate_rdp(((term, 1),), ORDERS).curve for term, _ in loss.terms]
    counts = np.array([count for _, count in loss.terms])
    assert np.array(curve) == pytest.approx(counts @ np.array(single), rel=1e-12)
    assert approximate_rdp((), ORDERS) == ((0.0,) * len(ORDERS), 0.0)


def test_the_epsilon_of_the_divergences_is_above_the_truth() -> None:
    loss = compose([PoissonSubsampled(Gaussian(1.0), 0.02) * 500, PoissonSubsampled(Laplace(2.0), 0.3) * 20])

    def curve(orders: np.ndarray) -> np.ndarray:
        return np.array(approximate_rdp(loss.terms, tuple(orders.tolist())).curve)

    epsilon = rdp_epsilon(curve, math.log(1e-6))
    truth = loss.epsilon_interval(1e-6)
    assert truth.lower <= epsilon <= 1.3 * truth.upper


def test_a_total_loss_is_a_mass_of_one() -> None:
    assert pair_rdp(Gaussian(0.0).dominating_pair(), ORDERS).delta == 1.0


def test_a_part_without_curve_or_pair_is_named() -> None:
    class Silent(PrivacyLoss):
        @property
        def neighboring(self) -> None:
            return None

        def __repr__(self) -> str:
            return "Silent()"

    with pytest.raises(UnsupportedView, match=r"Silent\(\)"):
        approximate_rdp(((Silent(), 1),), ORDERS)


def test_means_and_variances_of_losses() -> None:
    mean, variance = loss_moments(Gaussian(2.0).dominating_pair())
    assert mean == pytest.approx(0.125, rel=1e-5)
    assert variance == pytest.approx(0.25, rel=1e-4)
    e = 0.7
    mean, variance = loss_moments(PureDP(e).dominating_pair())
    assert mean == pytest.approx(e * math.tanh(e / 2))
    assert variance == pytest.approx(e * e * (1 - math.tanh(e / 2) ** 2))
