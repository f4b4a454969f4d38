"""The privacy loss as a random variable, against exact laws."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from sfumato.errors import ParameterError, PrecisionWarning, UnsupportedView
from sfumato.numerics.interval import Interval
from sfumato.privacy import (
    ZCDP,
    Composed,
    DiscreteGaussian,
    DiscretePair,
    FixedSizeSampled,
    Gaussian,
    GaussianDP,
    Laplace,
    LossVariable,
    Mixture,
    Neighboring,
    PoissonSubsampled,
    Precision,
    PrivacyLoss,
    PureDP,
    RandomizedResponse,
    Shuffled,
    compose,
)
from sfumato.privacy.interpretation.one_direction import OneDirection
from tests.cases import cases
from tests.chance import accepts_only, at_least, at_most, moments

Density: TypeAlias = Callable[[mpf], mpf]
ORDERS = [-3.5, -1.0, -0.4, 0.5, 2.0, 9.0]


@pytest.fixture(autouse=True)
def _digits() -> object:
    with mp.workdps(20):
        yield


def holds(found: Interval, truth: Fraction | mpf, width: float) -> bool:
    """Whether a truth lies inside, and the interval is no wider than a share of it."""
    return found.lower <= truth <= found.upper and found.upper - found.lower <= width * abs(float(truth))


class Continuous:
    """A pair on the line, by quadrature: log densities and the points where to cut."""

    def __init__(self, loss: PrivacyLoss, log_p: Density, log_q: Density, cuts: list[mpf]) -> None:
        self.loss, self.log_p, self.log_q, self.cuts = loss, log_p, log_q, cuts

    def mean(self, function: Density, *, reverse: bool) -> mpf:
        first, second = (self.log_q, self.log_p) if reverse else (self.log_p, self.log_q)
        return mpmath.quad(lambda x: mpmath.exp(first(x)) * function(first(x) - second(x)), self.cuts)


def power(order: float, loss: mpf) -> mpf:
    return mpmath.exp(order * loss)


def normal(centre: float, stddev: float = 1.0) -> Density:
    return lambda x: -(((x - centre) / stddev) ** 2) / 2 - mpmath.log(stddev * mpmath.sqrt(2 * mpmath.pi))


def mixed(q: float, p: Density, base: Density) -> Density:
    return lambda x: mpmath.log((1 - mpf(q)) * mpmath.exp(base(x)) + mpf(q) * mpmath.exp(p(x)))


def laplace(centre: float, scale: float) -> Density:
    return lambda x: -abs(x - centre) / mpf(scale) - mpmath.log(2 * mpf(scale))


LINE = [mpf(x) for x in (-60, -20, -8, -4, -2, -1, 0, 1, 2, 3, 5, 9, 20, 60)]
WIDE = [mpf(x) for x in (-400, -100, -20, -4, 0, 1, 4, 20, 100, 400)]
CONTINUOUS = [
    Continuous(
        PoissonSubsampled(Gaussian(1.0), 0.25), mixed(0.25, normal(1.0), normal(0.0)), normal(0.0), LINE
    ),
    Continuous(Laplace(2.0), laplace(1.0, 2.0), laplace(0.0, 2.0), WIDE),
    Continuous(
        PoissonSubsampled(Laplace(0.5), 0.125),
        mixed(0.125, laplace(1.0, 0.5), laplace(0.0, 0.5)),
        laplace(0.0, 0.5),
        LINE,
    ),
]


@pytest.mark.sharpest("True-Laplace(noise_multiplier=2.0)")
@pytest.mark.parametrize("case", CONTINUOUS, ids=lambda case: repr(case.loss))
@pytest.mark.parametrize("reverse", [False, True])
def test_moments_hold_the_integrals_and_add(case: Continuous, reverse: bool) -> None:
    mean = case.mean(lambda loss: loss, reverse=reverse)
    variance = case.mean(lambda loss: (loss - mean) ** 2, reverse=reverse)
    logs = {order: mpmath.log(case.mean(partial(power, order), reverse=reverse)) for order in ORDERS[:5]}
    for count in (1, 1000):
        found = (case.loss * count).loss_variable(reverse=reverse)
        assert holds(found.mean, mean * count, 1e-4)
        assert holds(found.variance, variance * count, 2e-4)
        for order, one in logs.items():
            moment, bounds = one * count, found.cgf(order)
            assert bounds.lower <= moment <= bounds.upper
            assert bounds.upper - bounds.lower < 1e-3 * abs(moment) + 1e-8 * count


def exact(p: list[Fraction], q: list[Fraction], count: int) -> dict[mpf, Fraction]:
    """The law of the loss of repeated pairs, by enumeration; None is an infinite loss."""
    one: dict[Any, Fraction] = defaultdict(Fraction)
    for a, b in zip(p, q, strict=True):
        if a:
            one[Fraction(a, b) if b else None] += a
    distribution: dict[Any, Fraction] = {Fraction(1): Fraction(1)}
    for _ in range(count):
        total: dict[Any, Fraction] = {}
        for x, mass in distribution.items():
            for y, more in one.items():
                key = None if x is None or y is None else x * y
                total[key] = total.get(key, Fraction(0)) + mass * more
        distribution = total
    return {
        (mpf("inf") if x is None else mpmath.log(mpf(x.numerator) / x.denominator)): m
        for x, m in distribution.items()
    }


P = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
Q = [Fraction(1, 5), Fraction(3, 10), Fraction(1, 2)]
LONE = (
    [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6), 0],
    [Fraction(1, 4), Fraction(1, 4), 0, Fraction(1, 2)],
)


@cases(("distributions", "count"), [((P, Q), 1), ((P, Q), 7), (LONE, 4), (LONE, 1)])
@cases("reverse", [False, True])
@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
def test_tails_hold_the_exact_sums_at_and_between_the_masses(
    distributions: Any, count: int, reverse: bool
) -> None:
    found = (DiscretePair(*distributions) * count).loss_variable(reverse=reverse)
    distribution = exact(distributions[reverse], distributions[not reverse], count)
    places = sorted(place for place in distribution if place < mpf("inf"))
    between = [(a + b) / 2 for a, b in pairwise(places) if b - a > 1e-6]
    for place in [places[0] - 1, *places, *between, places[-1] + 1]:
        x = float(place)
        above = sum(mass for loss, mass in distribution.items() if loss > place + mpf(10) ** -12)
        at = sum(mass for loss, mass in distribution.items() if abs(loss - place) < mpf(10) ** -12)
        tail, cdf = found.tail(x), found.cdf(x)
        assert tail.lower <= above
        assert above + at <= tail.upper * (1 + 1e-15)
        assert cdf.lower <= 1 - above - at
        assert 1 - above <= cdf.upper * (1 + 1e-15)
        if not at and place > 0:
            assert tail.upper - tail.lower <= 0.01 * tail.upper
    lone = distribution.get(mpf("inf"), Fraction(0))
    assert holds(found.infinite, lone, 1e-12)
    assert found.support.lower <= float(places[0]) + 1e-12
    assert float(places[-1]) - 1e-12 <= found.support.upper <= float(places[-1]) + 1e-9
    if lone:
        assert found.mean == Interval(math.inf, math.inf)
        assert found.quantile(1 - float(lone) / 2).lower == math.inf


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
@pytest.mark.parametrize("level", [0.003, 0.2, 0.5, 0.93])
def test_quantiles_hold_the_exact_ones(level: float) -> None:
    distribution = exact(P, Q, 12)
    total, truth = Fraction(0), mpf(0)
    for place in sorted(distribution):
        total += distribution[place]
        if total >= Fraction(level):
            truth = place
            break
    found = (DiscretePair(P, Q) * 12).loss_variable().quantile(level)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower < 0.2


def test_a_continuous_composition_agrees_with_its_integral() -> None:
    # A Gaussian and a Laplace loss: the tail is a normal one, averaged over the other loss.
    loss, scale = Gaussian(1.5) + Laplace(2.0), mpf(2)
    mu, bound = 1 / mpf(1.5), 1 / scale

    def tail(x: mpf, rest: mpf) -> mpf:
        return mpmath.ncdf(-(x - rest - mu**2 / 2) / mu)

    def inner(y: mpf, x: float) -> mpf:
        return mpmath.exp((y - bound) / 2) / 4 * tail(mpf(x), y)

    for place in (-1.5, -0.3, 0.0, 0.4, 2.5):
        inside = mpmath.quad(partial(inner, x=place), [-bound, 0, bound])
        truth = inside + tail(mpf(place), bound) / 2 + tail(mpf(place), -bound) * mpmath.exp(-bound) / 2
        for reverse in (False, True):
            found = loss.loss_variable(reverse=reverse)
            assert found.tail(place).lower <= truth <= found.tail(place).upper
            assert found.cdf(place).lower <= 1 - truth <= found.cdf(place).upper
            small, bounds = (truth, found.tail(place)) if place >= 0 else (1 - truth, found.cdf(place))
            assert bounds.upper - bounds.lower <= 0.01 * float(small)


def test_gaussians_are_normal() -> None:
    loss = Gaussian(2.0) * 3 + GaussianDP(0.5)
    variance = mpf(1)
    for reverse in (False, True):
        found = loss.loss_variable(reverse=reverse)
        assert holds(found.mean, variance / 2, 1e-13)
        assert holds(found.variance, variance, 1e-13)
        assert holds(found.cgf(3.0), mpf(6), 1e-13)
        for x in (-20.0, -2.0, 0.0, 0.5, 7.0, 30.0):
            assert holds(found.tail(x), mpmath.ncdf(mpf(0.5) - x), 1e-10)
            assert holds(found.cdf(x), mpmath.ncdf(x - mpf(0.5)), 1e-10)
        for level in (1e-9, 0.4, 0.999):
            bounds = found.quantile(level)
            assert mpmath.ncdf(bounds.lower - mpf(0.5)) <= level <= mpmath.ncdf(bounds.upper - mpf(0.5))
            assert bounds.upper - bounds.lower < 0.2


def test_the_moments_of_a_lattice_law_are_its_sums() -> None:
    loss, span = DiscreteGaussian(2, 3), range(-60, 64)
    weights = {k: mpmath.exp(-(mpf(k) ** 2) / 8) for k in span}
    total = mpmath.fsum(weights.values())
    losses = {k: mpf(3 * (2 * k - 3)) / 8 for k in range(-57, 64)}
    distribution = {losses[k]: weights.get(k - 3, mpf(0)) / total for k in losses}
    mean = mpmath.fsum(y * m for y, m in distribution.items())
    found = loss.loss_variable()
    assert holds(found.mean, mean, 1e-12)
    assert holds(found.variance, mpmath.fsum((y - mean) ** 2 * m for y, m in distribution.items()), 1e-12)
    assert holds(
        found.cgf(1.5),
        mpmath.log(mpmath.fsum(mpmath.exp(1.5 * y) * m for y, m in distribution.items())),
        1e-11,
    )


def test_what_only_dominates_keeps_the_ends_that_hold_for_all_it_dominates() -> None:
    base = PureDP(1.0, neighboring=Neighboring.REPLACE_ONE)
    loss = Shuffled(base, 50)
    found = loss.loss_variable()
    for bounds in (found.mean, found.cgf(2.0), found.cgf(-2.5), found.infinite):
        assert not bounds.tight
        assert bounds.lower == 0
    assert found.cgf(-0.5).upper == 0 > found.cgf(-0.5).lower
    assert found.cgf(2.0).upper >= 2 * loss.rdp(3.0) * (1 - 1e-6)
    assert found.variance.upper == math.inf
    tail = found.tail(0.3)
    assert tail.lower == 0
    assert loss.delta(0.3) <= tail.upper < 0.5
    assert found.quantile(0.99).lower == found.support.lower


def test_the_upper_tail_of_what_dominates_holds_for_what_is_dominated() -> None:
    # A mixture that tells its index is dominated by one that does not say so; both are known exactly.
    parts = (Laplace(1.0), Laplace(4.0))
    public = Mixture(parts, (0.5, 0.5), index_public=True)
    for place in (0.2, 0.5, 0.9):
        truth = math.fsum(0.5 * part.loss_variable().tail(place).lower for part in parts)
        assert truth <= public.loss_variable().tail(place).upper


@pytest.mark.parametrize("size", [10, 98])
def test_moments_of_a_tail_beyond_atoms_agree_with_divergences(size: int) -> None:
    loss = FixedSizeSampled(Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE), size, 100)
    variable = loss.loss_variable()
    assert 0.999 * loss.rdp(1.0001) < variable.mean.upper < loss.rdp(1.0001)
    assert variable.cgf(1.0).upper == pytest.approx(loss.rdp(2.0), rel=1e-4)
    assert variable.cgf(-0.5).lower == pytest.approx(-0.25 * variable.mean.upper, rel=0.1)


def test_nothing_has_no_loss() -> None:
    found = Composed(()).loss_variable()
    assert found.mean == found.variance == found.infinite == found.support == Interval(0.0, 0.0)
    assert found.tail(1e-9).upper == found.cdf(-1e-9).upper == 0
    with pytest.warns(PrecisionWarning):
        assert found.tail(0.0) == Interval(0.0, 1.0)
    with pytest.warns(PrecisionWarning, match="distribution of the loss"):
        (DiscretePair(P, Q) * 2).loss_variable().tail(0.0)


def test_a_simulated_loss_is_as_often_large() -> None:
    runs, count = 100_000, 20
    generator = np.random.default_rng(11)
    answers = 1 + generator.laplace(scale=2.0, size=(runs, count))
    losses = ((np.abs(answers) - np.abs(answers - 1)) / 2).sum(axis=1)

    def check(loss: PrivacyLoss) -> None:
        found = loss.loss_variable()
        for place in (0.3, 2.1, 3.9):
            hits, bounds = int((losses > place).sum()), found.tail(place)
            at_least(hits, runs)(bounds.lower)
            at_most(hits, runs)(bounds.upper)
        moments(losses)((found.mean.upper, found.variance.upper))

    accepts_only(
        check,
        Laplace(2.0) * count,
        one_less=Laplace(2.0) * (count - 1),
        wider=Laplace(2.04) * count,
        narrower=Laplace(1.96) * count,
    )


def test_curves_and_pictures() -> None:
    found = compose([Laplace(1.0) * 4, Gaussian(2.0)]).loss_variable()
    curve = found.curve(9)
    assert curve.kind == "loss"
    assert (np.diff(curve.upper) >= -0.05).all()
    assert (curve.lower <= curve.upper).all()
    assert curve.lower[-1] > 0.99
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = found.plot(points=5)
    assert axes.get_xlabel() == "privacy loss"
    pyplot.close(axes.figure)


def test_bad_input_is_refused() -> None:
    found = Laplace(1.0).loss_variable()
    assert isinstance(found, LossVariable)
    for wrong in (0.0, 1.0, -0.2, math.nan):
        with pytest.raises(ParameterError, match="level must"):
            found.quantile(wrong)
    with pytest.raises(ParameterError, match="value must"):
        found.tail(math.inf)
    with pytest.raises(ParameterError, match="order must"):
        found.cgf(math.nan)
    with pytest.raises(UnsupportedView, match="dominating pair"):
        (ZCDP(1.0) + Laplace(1.0)).loss_variable()
    with pytest.raises(ParameterError, match="points must"):
        found.curve(1)
    assert found.tail(0.3, Precision(0.1)).lower <= found.tail(0.3).upper


@pytest.mark.parametrize("reverse", [False, True])
def test_both_orders_of_a_pair_are_cut_where_their_own_mass_lies(reverse: bool) -> None:
    """Cut on the wrong side, the lower tail of a training run was four times wider than asked, after 20 s."""
    variable = (PoissonSubsampled(Gaussian(1.0), 0.01) * 10_000).loss_variable(reverse=reverse)
    share = variable.cdf(-2.0)
    assert 0 < share.upper - share.lower <= 0.01 * share.upper


# A law that jumps where it is asked has no narrow interval.
@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
def test_all_mass_at_one_place_is_on_both_sides_of_it() -> None:
    # The ends of the support are outcomes themselves: here both are 0, with all of the mass.
    for loss in (PureDP(0.0), PureDP(0.0) * 5):
        for reverse in (False, True):
            found = loss.loss_variable(reverse=reverse)
            assert found.tail(0.0).upper == found.cdf(0.0).upper == 1.0
            assert found.tail(5e-324).upper == found.cdf(-5e-324).upper == 0.0
            assert min(found.tail(-5e-324).lower, found.cdf(5e-324).lower) > 1 - 1e-15


@pytest.mark.parametrize("loss", [PureDP(1.0), Laplace(1.0), RandomizedResponse(2.0, 5)], ids=repr)
def test_the_ends_of_the_support_are_in_it(loss: PrivacyLoss) -> None:
    found = loss.loss_variable()
    greatest = loss.epsilon(0.0)
    # Each end has mass of its own, which a place just beyond it has not.
    assert found.support.lower <= -greatest < greatest <= found.support.upper
    assert found.tail(greatest * 0.99).lower > 0.1
    assert found.cdf(-greatest * 0.99).lower > 0.01
    assert found.tail(found.support.upper * (1 + 1e-15)).upper == 0.0
    assert found.cdf(found.support.lower * (1 + 1e-15)).upper == 0.0


@cases("place", [-800.0, -50.0, -3.0, -1.0, -0.3, -0.125, -1e-9, -1e-17, 0.0, 1e-9, 0.125, 0.25, 1.0])
@cases("reverse", [False, True])
@cases("name", ["nothing", "pure", "three losses", "lone"])
def test_divergences_of_either_sign_are_enclosed(name: str, reverse: bool, place: float) -> None:
    """Below the least loss nothing but 1 - u is in 1 - u + u h(1/u), and it is no float."""
    more = mpmath.exp(mpf(0.125))
    loss, distributions = {
        "nothing": (PureDP(0.0), ([mpf(1)], [mpf(1)])),
        "pure": (PureDP(0.125), ([more / (1 + more), 1 / (1 + more)], [1 / (1 + more), more / (1 + more)])),
        "three losses": (DiscretePair(P, Q), (P, Q)),
        "lone": (DiscretePair(*LONE), LONE),  # type: ignore[arg-type]
    }[name]
    first, second = (
        [mpf(1) * x for x in distribution]
        for distribution in (reversed(distributions) if reverse else distributions)
    )
    u = mpmath.exp(mpf(place))
    truth = mpmath.fsum(max(mpf(0), a - u * b) for a, b in zip(first, second, strict=True))
    lower, upper, tight = OneDirection.of(loss * 1, reverse=reverse).divergence(place, 1e-6)
    assert tight
    assert 0 <= lower <= truth * (1 + mpf(10) ** -18)
    assert truth * (1 - mpf(10) ** -18) <= upper <= 1
    assert upper - lower <= 2e-6 * truth + 1e-14
