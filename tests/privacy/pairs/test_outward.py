"""Every bound errs on the private side, against the exact value of its own formula to 60 digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from sfumato.errors import UnsupportedView
from sfumato.privacy import (
    CDP,
    ZCDP,
    AdaptiveChoice,
    ApproximateDP,
    DiscreteGaussian,
    DiscreteGaussianVector,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianDP,
    GroupPrivacy,
    Laplace,
    Mixture,
    Neighboring,
    NoisyIteration,
    Parallel,
    PoissonSubsampled,
    PrivacyLoss,
    PureDP,
    RDPCurve,
    ReportNoisyMax,
    SmoothSensitivity,
    SparseVector,
)
from sfumato.privacy.pairs.derived import fine_cuts
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss
from sfumato.privacy.pairs.noise.above_threshold import _back, _going_on
from sfumato.privacy.pairs.pair import Pair
from tests.privacy.edges import ONE, leaves, nodes

DIGITS = 60
PLACES = (-40.0, -1.0, 0.0, 1e-9, 0.3, 1.0, 20.0)
"""Logs of the s at which E(1 - sR)_+ is compared."""


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mp.workdps(DIGITS):
        yield


def pairs() -> Iterator[tuple[PrivacyLoss, Pair]]:
    for loss in (*leaves(), *nodes()):
        try:
            yield loss, loss.dominating_pair()
        except UnsupportedView:
            continue


def exact(distribution: DiscreteLoss) -> tuple[list[mpf], list[mpf], mpf]:
    """Return P-masses and their ratios R, of finite losses, and the mass of an infinite one."""
    selected = np.isfinite(distribution.log_mass)
    masses = [mpmath.exp(mpf(log)) for log in distribution.log_mass[selected].tolist()]
    ratios = [mpmath.exp(-mpf(loss)) for loss in distribution.loss[selected].tolist()]
    return masses, ratios, mpf(float(distribution.infinite))


def divergence(distribution: tuple[list[mpf], list[mpf], mpf], place: float) -> mpf:
    masses, ratios, infinite = distribution
    s = mpmath.exp(mpf(place))
    return infinite + mpmath.fsum(
        mass * (1 - s * r) for mass, r in zip(masses, ratios, strict=True) if s * r < 1
    )


SEEN_OF_A_KIND = 6


def cut() -> Iterator[tuple[PrivacyLoss, Pair, DiscreteLoss, DiscreteLoss]]:
    """Cut some pairs of every class, in both orders, into a law from above and one from below."""
    seen: dict[str, int] = {}
    for loss, pair in pairs():
        name = f"{type(loss).__name__} {type(pair).__name__}"
        # What is no use to cut: losses beyond floats take as many bins.
        if seen.get(name, 0) == SEEN_OF_A_KIND or not 1e-9 < loss.delta(0.0) < 1 - 1e-9:
            continue
        seen[name] = seen.get(name, 0) + 1
        for swapped in (False, True):
            with np.errstate(all="ignore"):
                bins = pair.bins(fine_cuts(pair, 9.0, 200), swapped=swapped)
                yield loss, pair, bins.split(), bins.merged()


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
def test_every_pair_is_cut_outward() -> None:
    names = set()
    for loss, pair, upper, lower in cut():
        names.add(type(pair).__name__)
        above, below = exact(upper), exact(lower)
        assert mpmath.fsum(above[0]) + above[2] >= 1, loss
        if not pair.enclosed:
            continue
        assert mpmath.fsum(below[0]) + below[2] <= 1, loss
        if len(lower.loss) == len(upper.loss):  # single losses, each between what is said of it on both sides
            some = np.minimum(np.abs(lower.loss), np.abs(upper.loss)) > 1e-300
            assert (lower.loss < upper.loss)[some & np.isfinite(lower.loss)].all(), loss
        for place in (*PLACES, *lower.loss[:: max(1, len(lower.loss) // 4)].tolist()):
            assert divergence(below, place) <= divergence(above, place), (loss, place)
    assert len(names) >= 15


def test_what_left_the_range_of_floats_is_told_in_full() -> None:
    # The masses of seven such steps overflow; a choice that may run them is no better than they are.
    chained = GroupPrivacy(PureDP(745.0), 7, neighboring=ONE)
    for swapped in (False, True):
        with np.errstate(all="ignore"):
            distribution = chained.dominating_pair().bins(np.array([9.0]), swapped=swapped).split()
        assert distribution.infinite == 1
    mixed = Mixture((chained, PureDP(0.5)), (0.5, 0.5), index_public=True)
    for loss in (chained, mixed, AdaptiveChoice((chained, PureDP(0.5))), Parallel((PureDP(0.5), chained))):
        for node in (loss, loss * 2, PoissonSubsampled(loss, 0.5)):
            assert node.delta(1.0) >= 0.2
            assert node.epsilon(1e-6) > 5000


# Among so many, each formula rounds the wrong way somewhere, if it is not rounded up in the end.
MANY = np.exp(np.random.default_rng(5).uniform(-7, 4, 150)).tolist()


def losses() -> Iterator[float]:
    yield from (5e-324, 1e-310, 1e-30, 1e-8, 0.001, 0.1, 1 / 3, 1.0, 2.7, 30.0, 740.0, 1e6)
    yield from MANY


def noises() -> Iterator[float]:
    yield from (1e-6, 0.01, 0.3, 1.0, 1 / 3, 7.7, 1e4, 1e100, 1.7e308)
    yield from MANY


def of_pure(epsilon: mpf) -> mpf:
    return epsilon * mpmath.tanh(epsilon / 2)


def of_bounded_range(epsilon: mpf) -> mpf:
    """The divergence of order one of the worst pair of bounded range, which no other order exceeds."""
    with mpmath.workdps(60 + 4 * max(0, -int(mpmath.log10(epsilon)))):
        odds = epsilon / mpmath.expm1(epsilon)
        return odds - 1 - mpmath.log(odds)


def views() -> Iterator[tuple[PrivacyLoss, str, float, mpf]]:
    """List what a view says, and the exact value of its theorem."""
    for size in losses():
        e = mpf(size)
        for leaf in (PureDP(size), ApproximateDP(size, 1e-9)):
            yield leaf, "pure", leaf.pure().epsilon, e
            yield leaf, "zcdp", leaf.zcdp().rho, of_pure(e)
            if size < 50:
                yield leaf, "gdp", leaf.gdp().mu, -2 * quantile(1 / (1 + mpmath.exp(e)))
        gdp = GaussianDP(size)
        yield gdp, "zcdp", gdp.zcdp().rho, e * e / 2
        yield Exponential(size), "zcdp", Exponential(size).zcdp().rho, of_bounded_range(e)
        yield ZCDP(size), "rdp", ZCDP(size).rdp(2.5), e * mpf("2.5")
        yield CDP(size, 0.3), "rdp", CDP(size, 0.3).rdp(2.5), e + mpf("1.5") * mpf(0.3) ** 2 / 2
        yield CDP(size, 0.3), "zcdp", CDP(size, 0.3).zcdp().rho, max(e, mpf(0.3) ** 2 / 2)
        yield CDP(5e-324, size), "zcdp", CDP(5e-324, size).zcdp().rho, max(mpf(5e-324), e * e / 2)
        curve = RDPCurve([1.7, 9.0], [size, 2 * size])
        yield curve, "rdp", curve.rdp(1.7), e
        yield curve, "rdp", curve.rdp(9.0), 2 * e
        steep = (mpf(1.7) - 1) * e + (mpf(5) - mpf(1.7)) / (9 - mpf(1.7)) * (16 * e - (mpf(1.7) - 1) * e)
        yield curve, "rdp", curve.rdp(5.0), steep / 4
        for share in (1e-300, 0.01, 1 / 3) if size < 700 else ():
            node = PoissonSubsampled(PureDP(size), share)
            yield node, "pure", node.pure().epsilon, mpmath.log1p(mpf(share) * mpmath.expm1(e))
        chained = GroupPrivacy(Exponential(size), 3, neighboring=ONE)
        yield chained, "pure", chained.pure().epsilon, 3 * e
        yield chained, "zcdp", chained.zcdp().rho, 9 * of_bounded_range(e)
        several = GroupPrivacy(ApproximateDP(size, 1e-9), 3, neighboring=ONE)
        if size < 100:
            powers = 1 + mpmath.exp(e) + mpmath.exp(2 * e)
            yield several, "pure", several.pure().delta, min(mpf(1), mpf(1e-9) * powers)
    for noise in noises():
        z = mpf(noise)
        yield Gaussian(noise), "gdp", Gaussian(noise).gdp().mu, 1 / z
        yield Gaussian(noise), "zcdp", Gaussian(noise).zcdp().rho, 1 / (2 * z * z)
        yield Laplace(noise), "pure", Laplace(noise).pure().epsilon, 1 / z
        with mp.workdps(1000):
            yield Laplace(noise), "zcdp", Laplace(noise).zcdp().rho, 1 / z + mpmath.expm1(-1 / z)
        yield ReportNoisyMax(noise), "pure", ReportNoisyMax(noise).pure().epsilon, 2 / z
        vector = SparseVector(noise, 3.0, positives=7)
        yield vector, "pure", vector.pure().epsilon, 1 / z + mpf(14) / 3
        smooth = SmoothSensitivity(noise, smoothness=0.1, degrees=3.0)
        yield (
            smooth,
            "pure",
            smooth.pure().epsilon,
            3 * mpf(0.1) + (mpmath.sqrt(3) + 1 / mpmath.sqrt(3)) / (2 * z),
        )
        run = NoisyIteration(noise, 6, neighboring=Neighboring.ZERO_OUT)
        yield run, "gdp", run.gdp().mu, 1 / (z * mpmath.sqrt(7))
        yield run, "zcdp", run.zcdp().rho, 1 / (2 * z * z * 7)
    for scale in (Fraction(1, 3), Fraction(7, 3), Fraction(10**9)):
        b = mpf(scale.numerator) / scale.denominator
        yield DiscreteLaplace(scale, 5), "pure", DiscreteLaplace(scale, 5).pure().epsilon, 5 / b
        yield DiscreteGaussian(scale, 5), "zcdp", DiscreteGaussian(scale, 5).zcdp().rho, 25 / (2 * b * b)
        vector_rho = DiscreteGaussianVector(scale, 5).zcdp().rho
        yield DiscreteGaussianVector(scale, 5), "zcdp", vector_rho, 5 / (2 * b * b)


def quantile(probability: mpf) -> mpf:
    """The z with lower normal tail ``probability``, below 1/2."""
    return -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * probability)


def test_every_view_is_its_theorem_rounded_up() -> None:
    for loss, view, number, truth in views():
        assert mpf(number) >= truth, (loss, view)
        close = math.isinf(number) or number <= truth * (1 + mpf(10) ** -9) + mpf(10) ** -305
        assert close or view == "gdp", (loss, view)


@pytest.mark.parametrize("deltas", [(0.0, 1e-6), (1e-6, 0.0), (1e-9, 1e-3), (1e-300, 0.5), (0.25, 0.25)])
@pytest.mark.parametrize("weight", [1e-12, 1 / 3, 0.5, 1 - 1e-12])
def test_a_mixture_has_the_mean_of_the_masses(deltas: tuple[float, float], weight: float) -> None:
    parts = tuple(ApproximateDP(1.0, delta) for delta in deltas)
    weights = (weight, 1 - weight)
    node = Mixture(parts, weights, index_public=True)
    total = sum(map(Fraction, weights))
    mean = sum(Fraction(w) * Fraction(d) for w, d in zip(weights, deltas, strict=True)) / total
    view = node.pure()
    assert mean <= Fraction(view.delta) <= Fraction(max(deltas))
    assert Fraction(view.delta) <= mean * (1 + Fraction(1, 10**11)) + Fraction(1, 10**320)
    assert mean <= Fraction(node.delta(1.0))
    assert view.epsilon == 1.0


@pytest.mark.parametrize(("distance", "length"), [(0.05, 1), (0.5, 30), (3.0, 3000)])
def test_the_steps_of_a_stopping_time_are_summed_up(distance: float, length: int) -> None:
    m = mpf(distance)
    x, y = _going_on(distance, length)
    places, found = _back(distance, length)
    rising = np.flatnonzero((np.diff(y, prepend=0.0) > 0) & (y <= 600.0))[::16]
    assert places[1:] == y[rising].tolist()
    step = [mpf(b) - mpf(a) for a, b in zip(y[:-1].tolist(), y[1:].tolist(), strict=True)]
    chance = [mpmath.exp(-mpf(value)) for value in x.tolist()]
    terms = [a * b for a, b in zip(step, chance, strict=False)] + [chance[-1] * mpf(y[-1]) / mpf(x[-1])]
    tails = [mpf(0)]
    for term in reversed(terms):
        tails.append(tails[-1] + term)
    tails.reverse()
    for index, bound in zip(rising.tolist(), found[1:], strict=True):
        assert bound >= min(mpf(1), tails[index])
    assert found[0] >= min(mpf(1), mpf(y[0]) + min(mpf(1), tails[0]))
    # Each point of the curve is on the private side of the curve itself.
    for at in range(0, len(x), 200):
        if not 1e-3 < x[at] / length < 20:
            continue
        z = quantile_of_log(-mpf(float(x[at])) / length)
        assert mpf(float(y[at])) >= length * mpmath.log(mpmath.ncdf(z) / mpmath.ncdf(z - m))


def quantile_of_log(log: mpf) -> mpf:
    """The z at which the log of the normal distribution is ``log``."""
    return mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z)) - log, mpf(0))
