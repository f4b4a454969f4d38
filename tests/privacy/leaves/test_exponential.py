"""Bounded range: its profile, pair and Rényi curve against exact sums over mechanisms of two outputs."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.privacy import Exponential, Neighboring, PureDP
from sfumato.privacy.accountant import certified
from sfumato.privacy.accountant.precision import STANDARD
from tests.cases import cases

mpmath.mp.dps = 40


def member(epsilon: float, t: mpmath.mpf) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """The two outputs (probability with the unit, loss) of the worst mechanism with losses t, t - epsilon."""
    p = (mpmath.exp(epsilon) - mpmath.exp(t)) / mpmath.expm1(epsilon)
    return [(p, t), (1 - p, t - epsilon)]


def divergence(distribution: list[tuple[mpmath.mpf, mpmath.mpf]], x: float) -> mpmath.mpf:
    return mpmath.fsum(p * max(0, 1 - mpmath.exp(x - loss)) for p, loss in distribution)


def shifts(epsilon: float, count: int = 80) -> list[mpmath.mpf]:
    return [mpmath.mpf(epsilon) * i / count for i in range(count + 1)]


@cases("epsilon", [0.01, 0.3, 1.0, 4.0, 40.0])
def test_the_profile_is_the_worst_of_all_members(epsilon: float) -> None:
    leaf = Exponential(epsilon)
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        x = share * epsilon
        worst = max(
            divergence(member(epsilon, t), x) for t in [*shifts(epsilon), mpmath.mpf(epsilon + x) / 2]
        )
        delta = math.exp(leaf.log_profile(x))
        assert worst <= delta <= float(worst) * (1 + 1e-9)
        # The pair by itself, inverted: where the profile is known, it alone would be read.
        found = certified.delta_interval([(leaf.dominating_pair(), 1)], x, STANDARD)
        assert found.lower <= delta * (1 + 1e-9)
        assert delta <= found.upper * (1 + 1e-9)
        assert found.upper <= delta * (1 + 1e-3) or share > 0.5
    assert leaf.delta(epsilon) == 0.0
    assert leaf.epsilon(0.0) == epsilon


def test_no_pair_of_two_points_dominates() -> None:
    # The worst member at x = 0 is beaten at x = 0.5 by another one, so it must not be taken for the pair.
    middle, other = member(1.0, mpmath.mpf(0.5)), member(1.0, mpmath.mpf(0.75))
    assert divergence(middle, 0.0) > divergence(other, 0.0)
    assert divergence(middle, 0.5) < divergence(other, 0.5)
    assert not Exponential(1.0).epsilon_interval(0.01).tight
    assert Exponential(1.0).epsilon_interval(0.01).lower == 0.0


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_two_adaptive_rounds_are_below_the_composed_pair(epsilon: float) -> None:
    # The second member may depend on the first answer: for each, the best second one is taken separately.
    both = Exponential(epsilon) * 2
    grid = shifts(epsilon, 24)
    for x in (0.0, 0.3 * epsilon, epsilon, 1.7 * epsilon):
        worst = max(
            mpmath.fsum(
                p * max(divergence(member(epsilon, s), x - loss) for s in grid) for p, loss in distribution
            )
            for distribution in (member(epsilon, t) for t in grid)
        )
        # A divergence below its range is that of the same pair: 1 - exp(x - loss) on average.
        assert worst <= both.delta(x) * (1 + 1e-12)
        assert both.delta(x) <= 1.6 * float(worst) + 1e-12 or x > 1.5 * epsilon


@cases("epsilon", [1e-4, 0.1, 1.0, 6.0, 30.0])
@cases("order", [1.001, 1.5, 2.0, 16.0, 300.0])
def test_the_renyi_curve_is_the_worst_of_all_members(epsilon: float, order: float) -> None:
    def moment(t: mpmath.mpf) -> mpmath.mpf:
        return mpmath.fsum(p * mpmath.exp((order - 1) * loss) for p, loss in member(epsilon, t))

    a, gap = mpmath.exp(epsilon), mpmath.mpf(order) - 1
    best = mpmath.log(gap / order * (a**order - 1) / (a**gap - 1))
    truth = mpmath.log(moment(best)) / gap
    assert all(mpmath.log(moment(t)) / gap <= truth + mpmath.mpf(10) ** -25 for t in shifts(epsilon, 40))
    found = Exponential(epsilon).rdp(order)
    assert truth <= found <= float(truth) * (1 + 1e-9) + 2e-14 / (order - 1) + 1e-13
    assert found <= np.nextafter(epsilon**2 / 8 * order, np.inf) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_gaussian_and_concentrated_views_hold_every_member(epsilon: float) -> None:
    mu, rho = Exponential(epsilon).gdp().mu, Exponential(epsilon).zcdp().rho
    needed = []
    for t in shifts(epsilon)[1:-1]:
        (p, _), (rest, loss) = member(epsilon, t)
        needed.append(
            mpmath.sqrt(2) * (mpmath.erfinv(2 * p - 1) - mpmath.erfinv(1 - 2 * rest * mpmath.exp(-loss)))
        )
    assert max(needed) <= mu <= float(max(needed)) * (1 + 1e-6)
    assert rho <= PureDP(epsilon).zcdp().rho
    y = epsilon / math.expm1(epsilon)
    assert rho == pytest.approx(y - 1 - math.log(y), rel=1e-11)
    assert rho < epsilon**2 / 8


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.3, 1.0, 5.0, 40.0, 600.0])
def test_zero_concentrated_privacy_is_the_largest_divergence_over_all_orders(epsilon: float) -> None:
    """Against the closed Rényi curve in 60 digits: no order needs more, and orders near 1 need it all."""
    a, rho = mpmath.exp(epsilon), Exponential(epsilon).zcdp().rho
    with mpmath.workdps(60):
        needed = []
        for order in (1 + mpmath.mpf(10) ** k for k in (-8, -4, -2, -1, 0, 1, 2)):
            gap = order - 1
            z = gap / order * (a**order - 1) / (a**gap - 1)
            moment = z**gap * (a - a**-gap - z * (1 - a**-gap)) / (a - 1)
            needed.append(mpmath.log(moment) / gap / order)
        assert needed == sorted(needed, reverse=True)
        assert needed[0] <= rho <= needed[0] * (1 + 1e-6) + 1e-14


def test_an_exponential_mechanism_is_within_and_reaches_its_range() -> None:
    generator = np.random.default_rng(20260101)
    sensitivity, c = 2.0, 0.35
    leaf, worst = Exponential(2 * c * sensitivity), 0.0
    for _ in range(400):
        scores = generator.normal(scale=5, size=4)
        moved = scores + generator.choice([-sensitivity, sensitivity], size=4)
        p, q = (np.exp(c * s) / np.exp(c * s).sum() for s in (scores, moved))
        for x in (0.0, 0.4, 1.0):
            share = float(np.maximum(p - math.exp(x) * q, 0).sum()) / leaf.delta(x)
            assert share <= 1 + 1e-9
            worst = max(worst, share)
    assert worst > 0.95


def test_many_choices_cost_less_than_pure_ones() -> None:
    for epsilon, count in itertools.product((0.01, 0.1, 1.0), (10, 1000)):
        many = (Exponential(epsilon) * count).epsilon(1e-6)
        assert many < (PureDP(epsilon) * count).epsilon(1e-6)
        assert many <= (Exponential(epsilon) * count).quick_epsilon(1e-6)


def test_bad_ranges_are_refused() -> None:
    for bad in (-1.0, math.inf, math.nan):
        with pytest.raises(ParameterError, match=r"^epsilon must"):
            Exponential(bad)
    with pytest.raises(NeighboringMismatch):
        _ = Exponential(1.0) + PureDP(1.0, neighboring=Neighboring.REPLACE_ONE)
    assert Exponential(0.0).epsilon(0.0) == 0.0


@cases("epsilon", [1e-300, 1e-12, 1e-3, 1.0, 30.0])
def test_masses_between_cuts_are_known_to_their_stated_error(epsilon: float) -> None:
    pair = Exponential(epsilon).dominating_pair()
    cuts = np.sort(epsilon * np.random.default_rng(3).uniform(-1, 1, 400))
    points = pair.bins(cuts, swapped=False).points
    with mpmath.workdps(400):
        whole = mpmath.log(-mpmath.expm1(-mpmath.mpf(epsilon)))
        for k, (low, high) in enumerate(itertools.pairwise(map(mpmath.mpf, cuts.tolist()))):
            exact = (high - epsilon) / 2 + mpmath.log(-mpmath.expm1((low - high) / 2)) - whole
            assert abs(points.log_p[k] - exact) <= points.mass_error[k], k
