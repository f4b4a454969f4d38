"""Leaves known by few masses, by a curve or by two laws, against enumerations of their own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from sfumato.errors import ParameterError
from sfumato.privacy import (
    CDP,
    ZCDP,
    ApproximateDP,
    DiscretePair,
    Gaussian,
    GaussianDP,
    PrivacyLoss,
    Profile,
    PureDP,
    RandomizedResponse,
    RDPCurve,
    Staircase,
    SupportResponse,
    TradeOff,
    gdp_delta,
    loss_from_json,
)
from tests.cases import cases
from tests.privacy.test_neighboring import NEAR

Laws = tuple[list[mpf], list[mpf]]
ORDERS = (1.001, 1.5, 2.0, 7.0, 40.0, 1000.0)


@pytest.fixture(autouse=True)
def _digits() -> object:
    with mp.workdps(50):
        yield


def exact(value: float | Fraction) -> mpf:
    return mpf(Fraction(value).numerator) / Fraction(value).denominator


def hockey_stick(distributions: Laws, epsilon: float, count: int = 1) -> mpf:
    """The greater of both orders, of as many independent runs as asked, over all their outcomes."""
    scale = mpmath.exp(exact(epsilon))
    found = [mpf(0), mpf(0)]
    for outcome in itertools.product(range(len(distributions[0])), repeat=count):
        p, q = (mpmath.fprod(distribution[i] for i in outcome) for distribution in distributions)
        found[0] += max(p - scale * q, mpf(0))
        found[1] += max(q - scale * p, mpf(0))
    return max(found)


def renyi(distributions: Laws, order: float) -> mpf:
    a = exact(order)
    both = [
        mpmath.fsum(x**a * y ** (1 - a) for x, y in zip(p, q, strict=True) if x and y)
        for p, q in (distributions, distributions[::-1])
    ]
    return mpmath.log(max(both)) / (a - 1)


def response(epsilon: float, categories: int) -> Laws:
    weights = [mpmath.exp(exact(epsilon)), *[mpf(1)] * (categories - 1)]
    p = [weight / mpmath.fsum(weights) for weight in weights]
    return p, [p[1], p[0], *p[2:]]


def support(epsilon: float, chance: Fraction, overlap: Fraction) -> Laws:
    """Masses of what supports the one datum only, the other only, both, and neither."""
    odds, a, c = mpmath.exp(exact(epsilon)), exact(chance), exact(overlap)
    scale, rest = 1 / (1 - a + a * odds), 1 - 2 * a + c
    return (
        [odds * (a - c) * scale, (a - c) * scale, odds * c * scale, rest * scale],
        [(a - c) * scale, odds * (a - c) * scale, odds * c * scale, rest * scale],
    )


def staircase(epsilon: float, gamma: float, shift: Fraction = Fraction(1)) -> Laws:
    """Masses of the noise, and of the shifted noise, on the pieces between all near steps of both."""
    e, last = exact(epsilon), 12
    steps = {sign * (Fraction(gamma) + n) for n in range(last) for sign in (1, -1)}
    cuts = sorted(steps | {step + shift for step in steps})
    height = -mpmath.expm1(-e) / (2 * (exact(gamma) + mpmath.exp(-e) * (1 - exact(gamma))))

    def mass(left: Fraction, right: Fraction, centre: Fraction) -> mpf:
        level = max(0, math.floor(abs((left + right) / 2 - centre) - Fraction(gamma)) + 1)
        return height * mpmath.exp(-level * e) * exact(right - left)

    p, q = ([mass(a, b, at) for a, b in itertools.pairwise(cuts)] for at in (Fraction(0), shift))
    return p, q


FEW: list[tuple[PrivacyLoss, Laws]] = []
with mp.workdps(50):
    FEW += [(RandomizedResponse(e, k), response(e, k)) for e in (0.01, 1.0, 6.0) for k in (2, 3, 40)]
    parts = [
        (Fraction(1, 2), Fraction(1, 4)),
        (Fraction(1, 2), Fraction(0)),
        (Fraction(2, 7), Fraction(1, 9)),
    ]
    FEW += [(SupportResponse(e, *part), support(e, *part)) for e in (0.01, 1.0, 6.0) for part in parts]
    FEW += [(Staircase(e, g), staircase(e, g)) for e in (1.5, 6.0, 12.0) for g in (0.0, 0.2, 0.5, 0.9, 1.0)]
    distributions = [Fraction(n, 20) for n in (9, 6, 4, 1)], [Fraction(n, 20) for n in (2, 6, 5, 7)]
    FEW.append(
        (
            DiscretePair(*distributions),
            ([exact(p) for p in distributions[0]], [exact(q) for q in distributions[1]]),
        )
    )


@cases(("loss", "distributions"), FEW, ids=[str(loss) for loss, _ in FEW])
def test_views_hold_the_masses_and_are_exact(loss: PrivacyLoss, distributions: Laws) -> None:
    # What the enumeration of a staircase leaves out, far away.
    left_out = 1 - min(mpmath.fsum(distribution) for distribution in distributions) + mpf(10) ** -30
    bound = loss.pure().epsilon
    for share in (0.0, 0.1, 0.5, 0.99):
        epsilon = share * bound
        truth = hockey_stick(distributions, epsilon)
        found = mpmath.exp(loss.log_profile(epsilon))
        assert truth * (1 - mpf(10) ** -30) <= found <= (truth + left_out) * (1 + 1e-11)
        mu, _ = loss.gdp()
        assert truth <= gdp_delta(mu, epsilon)
    for order in ORDERS:
        truth, found = renyi(distributions, order), loss.rdp(order)
        assert truth - 2 * left_out / (order - 1) <= found
        if left_out < 1e-25:
            assert found <= truth * (1 + 1e-9) + 1e-12 / (order - 1)
        assert truth <= loss.zcdp().rho * order


@pytest.mark.parametrize(
    ("loss", "distributions", "epsilon"),
    [(FEW[1][0], FEW[1][1], 0.015), (FEW[4][0], FEW[4][1], 2.5), (FEW[-1][0], FEW[-1][1], 1.7)],
    ids=str,
)
def test_compositions_hold_the_exact_sum(loss: PrivacyLoss, distributions: Laws, epsilon: float) -> None:
    truth = hockey_stick(distributions, epsilon, 4)
    lower, upper, tight = (loss * 4).delta_interval(epsilon)
    assert tight
    assert lower <= truth <= upper <= truth * (1 + 1e-3)


def test_the_zcdp_of_many_categories_is_far_below_that_of_pure_dp() -> None:
    loss = RandomizedResponse(1.0, 10_000)
    rho = loss.zcdp().rho
    assert rho < 0.1 * PureDP(1.0).zcdp().rho
    assert all(loss.rdp(order) <= rho * order * (1 + 1e-12) for order in np.linspace(1.01, 200, 300))


@cases("epsilon", [1e-3, 0.5, 1.0, 4.0, 40.0, 900.0])
def test_the_default_staircase_has_the_least_expected_noise(epsilon: float) -> None:
    """Geng, Kairouz, Oh, Viswanath (2015): the least is e^(epsilon / 2) / (e^epsilon - 1)."""
    e, found = exact(epsilon), Staircase(epsilon).gamma
    best = 1 / (1 + mpmath.exp(e / 2))
    assert abs(found - best) <= 1e-15 * best
    share, gamma = mpmath.exp(-e), exact(found)
    height = (1 - share) / (2 * (gamma + share * (1 - gamma)))
    # Twice the integral of x over [0, gamma], then over steps [gamma + n, gamma + n + 1] of falling height.
    steps = (gamma + mpf(1) / 2) * share / (1 - share) + (share / (1 - share)) ** 2
    noise = 2 * height * (gamma**2 / 2 + steps)
    assert mpmath.almosteq(noise, mpmath.exp(e / 2) / mpmath.expm1(e), rel_eps=1e-15)


@cases("shift", [Fraction(1, 3), Fraction(2, 3)])
@cases("gamma", [0.1, 0.5, 0.8])
def test_smaller_shifts_of_the_staircase_are_dominated(shift: Fraction, gamma: float) -> None:
    loss, distributions = Staircase(4.0, gamma), staircase(4.0, gamma, shift)
    for epsilon in (0.0, 1.0, 3.9):
        assert hockey_stick(distributions, epsilon) <= mpmath.exp(loss.log_profile(epsilon))


def test_gaussian_dp_is_the_gaussian() -> None:
    for delta in (1e-3, 1e-9):
        assert GaussianDP(0.5).epsilon(delta) == pytest.approx(Gaussian(2.0).epsilon(delta), rel=1e-12)
        both = (GaussianDP(0.3) + Gaussian(2.5)).epsilon(delta)
        assert both == pytest.approx(Gaussian(2.0).epsilon(delta), rel=1e-9)
    assert GaussianDP(0.0).epsilon(0.0) == 0.0


def test_an_rdp_curve_is_never_below_a_law_that_meets_it() -> None:
    distributions = response(2.0, 3)
    known = [1.2, 2.0, 5.0, 30.0]
    curve = RDPCurve(known, [float(renyi(distributions, order)) * (1 + 1e-15) for order in known])
    for order in (1.0001, 1.1, 1.2, 1.5, 2.0, 3.0, 4.9, 5.0, 12.0, 30.0):
        assert (
            renyi(distributions, order)
            <= curve.rdp(order)
            <= renyi(distributions, min(o for o in known if o >= order)) * (1 + 1e-9)
        )
    # A chord is better than the next order's bound.
    assert curve.rdp(3.0) < curve.rdp(5.0)
    assert curve.rdp(30.1) == math.inf
    # A bound that others imply does not matter.
    assert RDPCurve([2, 4, 8], [0.1, 9.0, 0.4]).rdp(4.0) <= 0.4
    assert curve.epsilon_interval(1e-6).tight is False


@pytest.mark.parametrize("count", [1, 3])
def test_a_profile_is_that_of_a_law_which_has_it(count: int) -> None:
    distributions = response(1.2, 4)
    p = [Fraction(int(x * 10**15), 10**15) for x in distributions[0]]
    p[0] += 1 - sum(p)
    q = [p[1], p[0], *p[2:]]
    pair = ([exact(x) for x in p], [exact(x) for x in q])
    ends = [0.0, math.log(p[0] / p[1])]
    exactly = Profile(ends, [float(hockey_stick(pair, e)) for e in ends]) * count
    coarse = Profile([0.3, 0.9], [float(hockey_stick(pair, e)) * (1 + 1e-15) for e in (0.3, 0.9)]) * count
    for epsilon in (0.0, 0.2, 0.5, 0.9):
        truth = hockey_stick(pair, epsilon, count)
        lower, upper, _ = exactly.delta_interval(epsilon)
        assert lower * (1 - 1e-12) <= truth <= upper * (1 + 1e-12)
        assert upper <= truth * (1 + 1e-3)
        assert truth <= coarse.delta(epsilon)


def test_a_profile_keeps_what_was_declared() -> None:
    profile = Profile([0.1, 1.0, 2.0], [0.01, 1e-4, 1e-6])
    assert profile.delta(0.1) == pytest.approx(0.01, rel=1e-12)
    assert profile.delta(1.0) == pytest.approx(1e-4, rel=1e-12)
    assert profile.delta(50.0) == pytest.approx(1e-6, rel=1e-12)
    # Between the points: the chord over exp(epsilon).
    s, left, right = (math.exp(x) for x in (1.5, 1.0, 2.0))
    chord = (1e-4 * (right - s) + 1e-6 * (s - left)) / (right - left)
    assert profile.delta(1.5) == pytest.approx(chord, rel=1e-9)
    assert profile.epsilon(1e-6) == pytest.approx(2.0, rel=1e-12)
    assert profile.epsilon(1e-7) == math.inf
    assert Profile([0.0], [1.0]).epsilon(0.5) == math.inf


def test_a_trade_off_curve_is_that_of_a_law_which_has_it() -> None:
    p = [Fraction(n, 20) for n in (8, 6, 5, 1)]
    q = [Fraction(n, 20) for n in (1, 5, 6, 8)]
    ratios = sorted(zip(p, q, strict=True), key=lambda pair: -pair[0] / pair[1])
    alphas = [sum((b for _, b in ratios[:i]), Fraction(0)) for i in range(5)]
    betas = [1 - sum((a for a, _ in ratios[:i]), Fraction(0)) for i in range(5)]
    found, wanted = TradeOff(alphas, betas), DiscretePair(p, q)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        assert found.log_profile(epsilon) == pytest.approx(wanted.log_profile(epsilon), rel=1e-12)
        assert (found * 9).delta(epsilon) == pytest.approx((wanted * 9).delta(epsilon), rel=1e-9)
    # A point above the curve of the others says nothing; mass that only one law has is a mass beside it.
    assert TradeOff([0, 0.25, 0.5, 1], [1, 0.25, 0.25, 0]).epsilon(0.1) == TradeOff(
        [0, 0.25, 1], [1, 0.25, 0]
    ).epsilon(0.1)
    assert TradeOff([0, 0.5, 1], [0.9, 0.4, 0]).pure().delta == pytest.approx(0.1)


def test_laws_with_lone_outcomes_split_off_a_mass() -> None:
    loss = DiscretePair(
        [Fraction(1, 100), Fraction(2, 3), Fraction(97, 300)], [0, Fraction(1, 3), Fraction(2, 3)]
    )
    truth = [mpf(1) / 100, mpf(2) / 3, mpf(97) / 300], [mpf(0), mpf(1) / 3, mpf(2) / 3]
    for epsilon in (0.0, 0.5, 2.5):
        assert hockey_stick(truth, epsilon, 3) <= (loss * 3).delta(epsilon) * (1 + 1e-12)
        assert hockey_stick(truth, epsilon, 3) <= (loss * 3).quick_delta(epsilon)
    assert loss.epsilon(0.001) == math.inf
    assert loss.epsilon(0.011) < math.inf


@cases(
    "loss",
    [
        FEW[4][0],
        FEW[12][0],
        FEW[-1][0],
        GaussianDP(0.1),
        RDPCurve([2, 3], [0.1, 0.2]),
        Profile([0.1], [1e-3]),
        TradeOff([0, Fraction(1, 3), 1], [1, Fraction(1, 3), 0]),
    ],
    ids=str,
)
def test_text_keeps_them(loss: PrivacyLoss) -> None:
    assert loss_from_json(loss.to_json()) == loss
    assert hash(loss_from_json(loss.to_json())) == hash(loss)


BAD: Sequence[tuple[object, str]] = [
    (lambda: RandomizedResponse(1.0, 1), "categories"),
    (lambda: RandomizedResponse(-1.0), "epsilon"),
    (lambda: SupportResponse(-1.0, 0.5), "epsilon"),
    (lambda: SupportResponse(1.0, 0), "chance"),
    (lambda: SupportResponse(1.0, 0.51), "chance"),
    (lambda: SupportResponse(1.0, 0.25, 0.25), "overlap"),
    (lambda: SupportResponse(1.0, 0.25, -0.1), "overlap"),
    (lambda: Staircase(0.0), "epsilon"),
    (lambda: Staircase(1.0, 1.5), "gamma"),
    (lambda: GaussianDP(-1.0), "mu"),
    (lambda: RDPCurve([1.0], [0.1]), "orders"),
    (lambda: RDPCurve([3, 2], [0.1, 0.1]), "orders"),
    (lambda: RDPCurve([2, 3], [0.1]), "epsilons"),
    (lambda: RDPCurve("23", [0.1]), "orders"),  # type: ignore[arg-type]
    (lambda: DiscretePair([0.5, 0.4], [0.5, 0.5]), "p"),
    (lambda: DiscretePair([0.5, 0.5], [1.0]), "q"),
    (lambda: DiscretePair([1.5, -0.5], [0.5, 0.5]), "p"),
    (lambda: Profile([0.1, 0.1], [0.1, 0.1]), "epsilons"),
    (lambda: Profile([0.1], [1.5]), "deltas"),
    (lambda: Profile([1e9], [0.5]), "epsilons"),
    (lambda: Profile([], []), "deltas"),
    (lambda: TradeOff([0, 1], [1, 0.1]), "betas"),
    (lambda: TradeOff([0.1, 1], [0.5, 0]), "alphas"),
    (lambda: TradeOff([0, 0.5, 0.5, 1], [1, 0.2, 0.1, 0]), "alphas"),
    (lambda: TradeOff([0, 0.2, 0.5, 1], [0.5, 0.1, 0.2, 0]), "betas"),
]


@cases(("build", "name"), BAD)
def test_bad_parameters_are_refused(build: object, name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must"):
        build()  # type: ignore[operator]


def test_the_worse_order_is_followed_where_the_other_one_ends() -> None:
    # Beyond log(9 / 4) + 8 * 5 the first order has no loss, and the other one all of delta.
    loss = TradeOff([0, 0.4, 1], [1, 0.1, 0]) + PureDP(5.0) * 8
    lower, upper, _ = loss.delta_interval(41.0)
    top = 1 / (1 + math.exp(-5.0))
    truth = 0.6 * top**8 * -math.expm1(41.0 - 40.0 - math.log(6.0))
    assert lower <= truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) <= upper <= truth * (1 + 1e-3)


def test_reports_that_lose_as_much_in_either_order_are_priced_once() -> None:
    for loss in (RandomizedResponse(1.0, 3), SupportResponse(1.0, Fraction(1, 4), overlap=Fraction(1, 16))):
        assert loss.dominating_pair().symmetric


def test_a_declared_guarantee_may_be_of_any_relation() -> None:
    for declared in (
        PureDP(1.0, neighboring=NEAR),
        ApproximateDP(1.0, 1e-6, neighboring=NEAR),
        ZCDP(0.5, neighboring=NEAR),
        CDP(0.1, 0.2, neighboring=NEAR),
    ):
        assert declared.neighboring is NEAR
        assert loss_from_json(declared.to_json()) == declared
