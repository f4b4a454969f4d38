"""Compositions of few runs, with delta near 1 or epsilon near 0, against sums of all outcomes."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.numerics.interval import Interval
from sfumato.privacy import (
    ApproximateDP,
    DiscretePair,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    Precision,
    PrivacyLoss,
    PureDP,
    compose,
)
from sfumato.privacy.accountant import certified, enumeration
from sfumato.privacy.accountant.composed_losses import ComposedLosses
from sfumato.privacy.accountant.loss_distribution import LossDistribution, Sums
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss, Ray, Tilted
from tests.cases import cases

DIGITS = 60
EPSILONS = (0.0, 1e-6, 1e-3, 0.3, 2.0)
DELTAS = (1e-9, 0.01, 0.3, 0.5, 0.9, 0.99)
Table = dict[tuple[Fraction, Fraction], int]


def table(rng: random.Random, size: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return two laws on so many outcomes; one of them may miss an outcome."""

    def distribution() -> list[Fraction]:
        weights = [rng.randrange(1, 1000) for _ in range(size)]
        if rng.random() < 0.2:
            weights[rng.randrange(size)] = 0
        return [Fraction(weight, sum(weights)) for weight in weights]

    return distribution(), distribution()


def outcomes(tables: Sequence[tuple[list[Fraction], list[Fraction]]]) -> Table:
    """Return the masses of all outcomes of a composition, and how many have them."""
    distribution: Table = {(Fraction(1), Fraction(1)): 1}
    for p, q in tables:
        after: Table = {}
        for (a, b), times in distribution.items():
            for x, y in zip(p, q, strict=True):
                if x or y:
                    after[a * x, b * y] = after.get((a * x, b * y), 0) + times
        distribution = after
    return distribution


def divergence(distribution: Table, epsilon: float) -> mpmath.mpf:
    """Return the greater divergence of both orders."""
    factor = mpmath.exp(mpmath.mpf(epsilon))

    def number(x: Fraction) -> mpmath.mpf:
        return mpmath.mpf(x.numerator) / x.denominator

    return max(
        mpmath.fsum(
            times * max(mpmath.mpf(0), number(one) - factor * number(other)) for one, other, times in order
        )
        for order in (
            [(a, b, n) for (a, b), n in distribution.items()],
            [(b, a, n) for (a, b), n in distribution.items()],
        )
    )


@pytest.mark.filterwarnings("error::sfumato.errors.PrecisionWarning")
@cases("seed", range(6))
def test_few_tables_are_exact(seed: int) -> None:
    rng = random.Random(seed)
    tables = [table(rng, rng.randrange(2, 5)) for _ in range(rng.randrange(1, 4))]
    counts = [rng.randrange(1, 5) for _ in tables]
    loss = compose(DiscretePair(p, q) * count for (p, q), count in zip(tables, counts, strict=True))
    distribution = outcomes([one for one, count in zip(tables, counts, strict=True) for _ in range(count)])
    precision = Precision(1e-8)
    with mpmath.workdps(DIGITS):
        for epsilon in EPSILONS:
            lower, upper, _ = loss.delta_interval(epsilon, precision)
            truth = divergence(distribution, epsilon)
            assert lower <= truth <= upper
            assert upper - lower <= 1e-9 * upper + 1e-300
        for delta in DELTAS:
            low, high, _ = loss.epsilon_interval(delta, precision)
            assert math.isinf(high) or divergence(distribution, high) <= delta
            assert low == 0 or divergence(distribution, min(low, 1e6) * (1 - 1e-15)) >= delta * (1 - 1e-15)
            assert math.isinf(low) or high - low <= max(1e-7, 1e-8 * high)


def response(epsilons: Sequence[float], counts: Sequence[int], infinite: float, at: float) -> mpmath.mpf:
    """Delta of repeated randomized responses, each told in full with some chance."""
    distributions = []
    for epsilon, count in zip(epsilons, counts, strict=True):
        e = mpmath.mpf(epsilon)
        p = 1 / (1 + mpmath.exp(-e))
        distributions.append(
            [
                ((2 * k - count) * e, mpmath.binomial(count, k) * p**k * (1 - p) ** (count - k))
                for k in range(count + 1)
            ]
        )
    inside = mpmath.mpf(0)
    for choice in itertools.product(*distributions):
        rest = sum(loss for loss, _ in choice) - at
        if rest > 0:
            inside += mpmath.fprod(mass for _, mass in choice) * -mpmath.expm1(-rest)
    selected = (1 - mpmath.mpf(infinite)) ** sum(counts)
    return 1 - selected + selected * inside


@pytest.mark.filterwarnings("error::sfumato.errors.PrecisionWarning")
@cases(
    ("epsilons", "counts", "infinite"),
    [
        ((0.1,), (1,), 0.0),
        ((5.67,), (5,), 1e-4),
        ((1.0, 0.3), (60, 15), 0.0),
        ((0.01, 2.2, 0.5), (20, 5, 7), 1e-9),
        ((3.0, 3.0000001), (20, 20), 1e-40),
        ((1e-6, 4.0), (3, 4), 0.0),
    ],
)
def test_few_responses_are_exact(
    epsilons: tuple[float, ...], counts: tuple[int, ...], infinite: float
) -> None:
    loss = compose(
        (ApproximateDP(e, infinite) if infinite else PureDP(e)) * n
        for e, n in zip(epsilons, counts, strict=True)
    )
    reach = sum(e * n for e, n in zip(epsilons, counts, strict=True))
    with mpmath.workdps(DIGITS):
        for epsilon in (*EPSILONS, 0.5 * reach, 0.99 * reach):
            lower, upper, _ = loss.delta_interval(epsilon, Precision(1e-6))
            truth = response(epsilons, counts, infinite, epsilon)
            assert lower <= truth <= upper
            assert upper - lower <= 1e-6 * upper
        for delta in DELTAS:
            low, high, _ = loss.epsilon_interval(delta, Precision(1e-6))
            if infinite and response(epsilons, counts, infinite, reach) > delta:
                assert math.isinf(low)
                continue
            assert response(epsilons, counts, infinite, high) <= delta
            assert low == 0 or response(epsilons, counts, infinite, low) >= delta
            assert high - low <= max(1e-7, 1e-6 * high)


def test_sums_are_moved_to_the_safe_side() -> None:
    rng = np.random.default_rng(5)
    loss, mass = np.sort(rng.normal(size=(2, 6)), axis=1), rng.dirichlet(np.ones(6), size=2)
    distributions = [
        (DiscreteLoss(x, np.log(m), 0.0), np.array(float(n)))
        for x, m, n in zip(loss, mass, (2, 2), strict=True)
    ]
    with mpmath.workdps(DIGITS):
        terms = [
            [
                [
                    (mpmath.mpf(x), mpmath.exp(mpmath.mpf(y)))
                    for x, y in zip(distribution.loss, distribution.log_mass, strict=True)
                ]
            ]
            * int(n)
            for distribution, n in distributions
        ]
        sums = [
            (sum(x for x, _ in choice), mpmath.fprod(m for _, m in choice))
            for choice in itertools.product(*terms[0], *terms[1])
        ]
        found = [
            enumeration.enumerated(ComposedLosses(distributions, 0.0), upper=upper, exact=True)
            for upper in (False, True)
        ]
        for x in (0.0, 0.1, 1.7, 4.0):
            truth = mpmath.fsum(m * -mpmath.expm1(x - y) for y, m in sums if y > x)
            low, high = (bound.log_bound(x)[0] for bound in found if bound)
            assert mpmath.exp(low) <= truth <= mpmath.exp(high)
            assert high - low < 1e-11


def test_too_many_sums_are_left_to_the_line() -> None:
    distribution = DiscreteLoss(np.array([-0.1, 0.1]), np.log([0.4, 0.6]), 0.0)
    assert (
        enumeration.enumerated(
            ComposedLosses([(distribution, np.array(10.0**9))], 0.0), upper=True, exact=True
        )
        is None
    )
    assert (
        enumeration.enumerated(ComposedLosses([(distribution, np.array(2.0))], 0.1), upper=True, exact=True)
        is None
    )


def sampled(mu: float, q: float, epsilon: float) -> mpmath.mpf:
    """Delta of one Poisson-subsampled Gaussian, both orders; the loss rises with the outcome."""
    m, p, e = mpmath.mpf(mu), mpmath.mpf(q), mpmath.mpf(epsilon)

    def threshold(ratio: mpmath.mpf) -> mpmath.mpf:
        return (mpmath.log(ratio / p) + m * m / 2) / m

    t = threshold(mpmath.exp(e) - 1 + p)
    with_unit = (1 - p) * mpmath.ncdf(-t) + p * mpmath.ncdf(m - t) - mpmath.exp(e) * mpmath.ncdf(-t)
    rest = mpmath.exp(-e) - 1 + p
    if rest <= 0:
        return with_unit
    s = threshold(rest)
    return max(
        with_unit, mpmath.ncdf(s) - mpmath.exp(e) * ((1 - p) * mpmath.ncdf(s) + p * mpmath.ncdf(s - m))
    )


@pytest.mark.filterwarnings("error::sfumato.errors.PrecisionWarning")
@pytest.mark.parametrize(("noise", "q"), [(0.25, 1e-6), (1.0, 0.01), (3.0, 0.5), (0.3, 0.9)])
def test_one_sampled_run_is_narrow_at_the_edges(noise: float, q: float) -> None:
    loss = PoissonSubsampled(Gaussian(noise), q)
    with mpmath.workdps(DIGITS):
        for epsilon in (0.0, 1e-9, 1e-6, 1e-3, 0.5):
            truth = sampled(1 / noise, q, epsilon)
            lower, upper, _ = loss.delta_interval(epsilon, Precision(1e-5))
            assert lower <= truth <= upper
            assert upper - lower <= 1e-5 * upper + 1e-300
        for share in (0.3, 0.9, 0.9999):
            delta = float(share * sampled(1 / noise, q, 0.0))
            low, high, _ = loss.epsilon_interval(delta, Precision(1e-5))
            assert sampled(1 / noise, q, high) <= delta <= sampled(1 / noise, q, low)
            assert high - low <= max(1e-7, 1e-5 * high)
        assert loss.epsilon_interval(min(q, 0.99)).upper < 20 / noise**2


def test_what_is_below_all_floats_takes_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    points, walk = [0], Tilted.ray

    def counted(distribution: Tilted, step: float, count: int) -> Ray:
        points[0] += count * distribution.weights.shape[-1]
        return walk(distribution, step, count)

    # Of all that is done for an interval, this grows with the precision: products along a line.
    monkeypatch.setattr(Tilted, "ray", counted)
    assert (PoissonSubsampled(Gaussian(1.1), 0.1) * 10).delta_interval(0.5).upper > 0
    assert points[0] > 10_000
    points[0] = 0
    for loss in (
        PoissonSubsampled(Gaussian(382.0), 0.5),
        PureDP(0.01) + PoissonSubsampled(Gaussian(430.0), 0.5),
    ):
        assert loss.delta_interval(0.5) <= Interval(0.0, 1e-300)
    certain = ApproximateDP(0.02, 8e-9) + PoissonSubsampled(Gaussian(287.0), 0.1)
    lower, upper, _ = certain.delta_interval(0.5, Precision(1e-8))
    assert 8e-9 * (1 - 1e-8) <= lower <= 8e-9 <= upper <= 8e-9 * (1 + 1e-8)
    assert points[0] == 0


@pytest.mark.filterwarnings("error::sfumato.errors.PrecisionWarning")
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1e-3])
def test_both_orders_are_cut_where_it_counts(epsilon: float) -> None:
    loss: PrivacyLoss = PoissonSubsampled(Laplace(0.16), 0.1) * 20
    pairs = [(loss.terms[0][0].dominating_pair(), 20)]
    wide = certified.delta_interval(pairs, epsilon, Precision(1e-3))
    narrow = certified.delta_interval(pairs, epsilon, Precision(1e-4))
    assert wide.upper - wide.lower <= 1e-3 * wide.upper
    assert narrow.upper - narrow.lower <= 1e-4 * narrow.upper
    assert max(wide.lower, narrow.lower) <= min(wide.upper, narrow.upper)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_losses_taken_for_one_lie_at_its_safe_end(side: float) -> None:
    near = 1 + 2.0**-46
    distribution = Sums(side, 100).distribution(np.array([near, 2.0, 1.0]), np.log([0.2, 0.5, 0.3]))
    assert distribution.loss.tolist() == [near if side > 0 else 1.0, 2.0]
    assert side * (distribution.log_mass - np.log([0.5, 0.5])).min() > 0
    assert np.abs(np.exp(distribution.log_mass) - 0.5).max() < 1e-12


def exact(distributions: Sequence[LossDistribution], x: float) -> mpmath.mpf:
    """Return the divergence of the sum of losses."""
    terms = [
        [(mpmath.mpf(y), mpmath.exp(mpmath.mpf(m))) for y, m in zip(*distribution, strict=True)]
        for distribution in distributions
    ]
    sums = [
        (sum(y for y, _ in choice), mpmath.fprod(m for _, m in choice))
        for choice in itertools.product(*terms)
    ]
    return mpmath.fsum(m * -mpmath.expm1(x - y) for y, m in sums if y > x)


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("spread", [1.0, 1e-7, 30.0])
def test_laws_that_lose_detail_stay_safe(side: float, spread: float) -> None:
    rng = np.random.default_rng(7)
    sums = Sums(side, 256, 1.0)
    distributions = [
        sums.distribution(
            np.append(rng.normal(size=30) * spread, [-1e-6, 3.0]),
            np.log(rng.dirichlet(np.full(32, 0.3)) + 1e-30),
        )
        for _ in range(2)
    ]
    slight, rough = Sums(side, 10**6).plus(*distributions), sums.plus(*distributions)
    assert slight is not None
    assert rough is not None
    assert len(rough.loss) <= 256 < len(slight.loss)
    with mpmath.workdps(DIGITS):
        for x in (-1.0, 0.0, 1e-8, 0.1, 2.9, 5.0):
            truth, close, far = exact(distributions, x), exact([slight], x), exact([rough], x)
            assert side * (close - truth) >= 0
            assert side * (far - close) >= 0
            assert abs(close - truth) <= 1e-12 * truth
            assert abs(far - truth) <= 0.7 * truth + 1e-3


@pytest.mark.parametrize("count", [2, 3, 10])
def test_rare_runs_are_bounded_where_lines_are_of_no_use(count: int) -> None:
    loss = PoissonSubsampled(Gaussian(0.25), 1e-6) * count
    one = sampled(4.0, 1e-6, 0.0)
    lower, upper, _ = loss.delta_interval(0.0)
    # Total variation adds up to nearly as much: the sum less its square and what the signs may cancel.
    assert upper - lower <= 2e-3 * upper
    assert 0.9 * float(one) * count <= upper
    assert lower <= float(one) * count


def test_sums_that_are_too_many_are_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, log_mass = np.random.default_rng(3), np.full(244, -math.log(244))
    sums, lattice = Sums(1.0, 1 << 18), LossDistribution(0.25 * np.arange(-122.0, 122.0), log_mass)
    # 32 runs on a lattice have 7,777 sums; two of them are added up in steps that are small enough.
    found = sums.times(lattice, 4)
    assert found is not None
    assert len(found.loss) == 4 * 243 + 1
    monkeypatch.setattr(Sums, "plus", None)
    scattered = LossDistribution(np.sort(rng.normal(size=244)), log_mass)
    assert sums.times(scattered, 3) is sums.times(scattered, 32) is None
