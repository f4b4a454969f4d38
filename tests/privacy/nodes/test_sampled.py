"""Truncated Poisson samples and samples with replacement, against enumeration and the theorems."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from sfumato.errors import NeighboringMismatch, ParameterError, UnsupportedView
from sfumato.privacy import (
    ZCDP,
    AdaptiveChoice,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    PureDP,
    SampledWithReplacement,
    TruncatedPoisson,
    loss_from_json,
)
from sfumato.privacy.accountant.moments import approximate_rdp
from tests.cases import cases

mpmath.mp.dps = 40
REPLACE = Neighboring.REPLACE_ONE


@cases("epsilon", [0.0, 0.05, 0.5, 2.0])
@cases(("draws", "units"), [(1, 10), (20, 1000), (50, 60), (3, 2)])
def test_draws_with_replacement_meet_the_theorem(epsilon: float, draws: int, units: int) -> None:
    loss = SampledWithReplacement(Gaussian(1.5, neighboring=REPLACE), draws, units)
    p = 1 / mpmath.mpf(units)
    drawn = 1 - (1 - p) ** draws
    inner = mpmath.log(1 + (mpmath.exp(epsilon) - 1) / drawn)
    exact = mpmath.mpf(0)
    for times in range(1, draws + 1):
        mu = times / mpmath.mpf(1.5)
        one = mpmath.ncdf(mu / 2 - inner / mu) - mpmath.exp(inner) * mpmath.ncdf(-mu / 2 - inner / mu)
        exact += mpmath.binomial(draws, times) * p**times * (1 - p) ** (draws - times) * one
    assert exact <= loss.delta(epsilon) <= exact * mpmath.mpf(1.003) + 1e-22


def report(epsilon: float, bit: int) -> list[float]:
    truth = 1 / (1 + math.exp(-epsilon))
    return [truth, 1 - truth] if bit == 0 else [1 - truth, truth]


def test_enumerated_draws_lie_below_the_bound() -> None:
    epsilon_0, units, draws = 1.0, 3, 2
    loss = SampledWithReplacement(PureDP(epsilon_0, neighboring=REPLACE), draws, units)

    # The mechanism tells a count of two entries by randomized response on whether both are 1.
    def distribution(bits: tuple[int, ...]) -> np.ndarray:
        out = np.zeros(2)
        for chosen in itertools.product(bits, repeat=draws):
            out += np.array(report(epsilon_0, int(all(chosen)))) / units**draws
        return out

    for rest in itertools.product((0, 1), repeat=units - 1):
        first, second = distribution((0, *rest)), distribution((1, *rest))
        for epsilon in (0.0, 0.1, 0.3):
            for one, other in ((first, second), (second, first)):
                assert np.maximum(0, one - math.exp(epsilon) * other).sum() <= loss.delta(epsilon) + 1e-14


def truncated(records: list[int], q: float, selected: int, epsilon: float) -> dict[tuple[int, ...], float]:
    """Return the law of a noisy sorted release: each record of the kept sample as randomized response."""
    distribution: dict[tuple[int, ...], float] = defaultdict(float)
    for drawn in itertools.product((0, 1), repeat=len(records)):
        chance = math.prod(q if d else 1 - q for d in drawn)
        sample = [r for r, d in zip(records, drawn, strict=True) if d]
        sets = list(itertools.combinations(sample, min(selected, len(sample))))
        for chosen in sets:
            # One count of the ones, told by two-sided geometric noise on -3..3 (clamped): epsilon-DP.
            for value in range(-4, 8):
                distribution[(value,)] += chance / len(sets) * geometric(value - sum(chosen), epsilon)
    return distribution


def geometric(distance: int, epsilon: float) -> float:
    share = math.exp(-epsilon)
    return (1 - share) / (1 + share) * share ** abs(distance)


def test_enumerated_truncated_samples_lie_below_the_bound() -> None:
    epsilon_0, q, selected = 1.0, 0.3, 2
    records = [1, 0, 1, 1]
    loss = TruncatedPoisson(PureDP(epsilon_0), q, sample_size=selected, population_size=5)
    for new in (0, 1):
        there, gone = (
            truncated([*records, new], q, selected, epsilon_0),
            truncated(records, q, selected, epsilon_0),
        )
        for one, other in ((there, gone), (gone, there)):
            for epsilon in (0.0, 0.1, 0.3, 0.6):
                true = sum(max(0.0, one[key] - math.exp(epsilon) * other[key]) for key in one)
                assert true <= loss.delta(epsilon) + 1e-14


@pytest.mark.parametrize(
    ("q", "selected", "units"), [(0.01, 160, 10_000), (0.5, 70, 100), (0.1, 3, 4), (0.2, 5, 6)]
)
def test_the_mass_bounds_the_chance_of_a_full_sample(q: float, selected: int, units: int) -> None:
    loss = TruncatedPoisson(Gaussian(1.0), q, sample_size=selected, population_size=units)
    mass = loss.split()[0]
    exact = q * float(binom.sf(selected - 1, units - 1, q))
    assert exact <= mass <= 30 * exact


def test_truncation_costs_its_mass_and_no_more() -> None:
    base = PoissonSubsampled(Gaussian(1.0), 0.01)
    roomy = TruncatedPoisson(Gaussian(1.0), 0.01, sample_size=10_000, population_size=10_000)
    assert (roomy * 100).epsilon(1e-6) == pytest.approx((base * 100).epsilon(1e-6), rel=2e-3)
    tight = TruncatedPoisson(Gaussian(1.0), 0.01, sample_size=165, population_size=10_000)
    mass = tight.split()[0]
    assert 0 < mass < 1e-8
    upper = (tight * 100).epsilon(1e-6)
    assert (
        (base * 100).epsilon_interval(1e-6).lower <= upper <= (base * 100).epsilon(1e-6 - 101 * mass) * 1.002
    )
    full = TruncatedPoisson(Gaussian(1.0), 0.1, sample_size=5, population_size=10_000)
    assert full.split()[0] == 0.1
    assert full.epsilon(0.05) == math.inf


def test_text_and_refusals() -> None:
    for loss in (
        TruncatedPoisson(Laplace(1.0), 0.1, sample_size=40, population_size=100),
        SampledWithReplacement(Laplace(1.0, neighboring=REPLACE), 5, 50),
    ):
        assert loss_from_json(loss.to_json()) == loss
        assert (loss * 3).epsilon(1e-3) < math.inf
        assert not loss.epsilon_interval(1e-3).tight
    with pytest.raises(NeighboringMismatch):
        SampledWithReplacement(Laplace(1.0), 5, 50)
    with pytest.raises(NeighboringMismatch):
        TruncatedPoisson(Laplace(1.0, neighboring=REPLACE), 0.1, sample_size=4, population_size=10)
    with pytest.raises(ParameterError, match="population_size must be an integer of at least 2"):
        SampledWithReplacement(Laplace(1.0, neighboring=REPLACE), 5, 1)
    with pytest.raises(ParameterError, match="sample_size must be an integer of at least 1"):
        TruncatedPoisson(Laplace(1.0), 0.1, sample_size=0, population_size=10)


@pytest.mark.parametrize(("drawn", "noise"), [(10, 1.0), (300, 2.0), (1, 0.5)])
def test_divergences_of_fixed_samples_meet_the_mirrored_mixture(drawn: int, noise: float) -> None:
    loss = FixedSizeSampled(Gaussian(noise, neighboring=REPLACE), drawn, 1000)
    q, mu = mpmath.mpf(drawn) / 1000, 1 / mpmath.mpf(noise)
    orders = [1.5, 2.0, 4.0, 16.0, 64.0]
    bounds = loss.rdp_curve(np.array(orders))
    for order, bound in zip(orders, bounds, strict=True):
        # The losses above 0 are those of the mixture; each comes with its negative, and the rest has none.
        def moment(x: mpmath.mpf, order: float = order) -> mpmath.mpf:
            ratio = 1 - q + q * mpmath.exp(mu * x - mu * mu / 2)
            return mpmath.npdf(x) * (ratio**order + ratio ** (1 - order) - ratio - 1)

        cuts = sorted([mu / 2, mu / 2 + 3, order * mu, order * mu + 8, order * mu + 40])
        with mpmath.workdps(20):
            exact = mpmath.log(1 + mpmath.quad(moment, cuts)) / (order - 1)
        assert exact * (1 - 1e-12) <= bound <= exact * (1 + 1e-3)


def test_divergences_of_enumerated_draws_lie_below() -> None:
    epsilon_0, units, draws = 1.0, 3, 2
    loss = SampledWithReplacement(PureDP(epsilon_0, neighboring=REPLACE), draws, units)
    distributions = []
    for first in (0, 1):
        distribution = np.zeros(2)
        for chosen in itertools.product((first, 1, 1), repeat=draws):
            distribution += np.array(report(epsilon_0, int(all(chosen)))) / units**draws
        distributions.append(distribution)
    for order, bound in zip((1.1, 3.0, 50.0), loss.rdp_curve(np.array([1.1, 3.0, 50.0])), strict=True):
        for one, other in (distributions, distributions[::-1]):
            assert math.log(float((one**order * other ** (1 - order)).sum())) / (order - 1) <= bound


def test_one_draw_is_a_sample_of_one() -> None:
    base, orders = Laplace(0.7, neighboring=REPLACE), np.array([1.5, 8.0])
    single = SampledWithReplacement(base, 1, 50).rdp_curve(orders)
    assert single == pytest.approx(FixedSizeSampled(base, 1, 50).rdp_curve(orders), rel=1e-6)
    few, many = (SampledWithReplacement(base, n, 50).rdp_curve(orders) for n in (3, 500))
    assert (single < few).all()
    assert (few < many).all()
    assert (many <= 500 / 0.7).all()


def test_masses_are_parted_off_where_divergences_are_asked_for() -> None:
    told = SampledWithReplacement(Gaussian(1.0, neighboring=REPLACE), 100, 1000)
    choice = AdaptiveChoice((Gaussian(1.0, neighboring=REPLACE), Laplace(1.0, neighboring=REPLACE)))
    for loss in (told, FixedSizeSampled(choice, 10, 1000)):
        with pytest.raises(UnsupportedView, match="has no rdp view"):
            loss.rdp(2.0)
        curve, mass = approximate_rdp(loss.terms, (1.5, 2.0))
        assert 0 < curve[0] <= curve[1] < math.inf
        assert 0 < mass < 1e-20
    truncated = TruncatedPoisson(Gaussian(1.0), 0.01, sample_size=165, population_size=10_000) * 100
    base, extra = PoissonSubsampled(Gaussian(1.0), 0.01) * 100, ZCDP(0.01)
    together = (truncated + extra).epsilon(1e-6)
    mass = truncated.split()[0]
    assert 0 < mass < 1e-7
    assert (base + extra).epsilon(1e-6) <= together <= (base + extra).epsilon(1e-6 - 2 * mass)
    fixed = FixedSizeSampled(Gaussian(1.0, neighboring=REPLACE), 10, 1000) * 100
    assert (fixed + ZCDP(0.01, neighboring=REPLACE)).epsilon(1e-6) < fixed.epsilon(5e-7) + 0.9


def test_many_draws_of_few_units_end_in_a_bound() -> None:
    # As often as not is 10,000 times each: beyond what is followed, and no crash.
    assert SampledWithReplacement(Gaussian(1.0, neighboring=REPLACE), 100_000, 10).epsilon(1e-6) == math.inf
    pure = SampledWithReplacement(PureDP(1e-5, neighboring=REPLACE), 100_000, 10)
    assert pure.epsilon(1e-6) <= 1.0 + 1e-9


def test_draws_beyond_those_that_are_followed_count_in_full() -> None:
    """One unit is drawn 80 times in the mean, hardly ever once; more than 100 times is a total loss."""
    draws, units, noise = 8000, 100, 60.0
    loss = SampledWithReplacement(Gaussian(noise, neighboring=REPLACE), draws, units)
    p = 1 / mpmath.mpf(units)
    chances = [mpmath.binomial(draws, times) * p**times * (1 - p) ** (draws - times) for times in range(400)]
    beyond = mpmath.fsum(chances[101:])
    for epsilon in (0.0, 2.0):
        inner = mpmath.log(1 + (mpmath.exp(epsilon) - 1) / (1 - chances[0]))
        exact = mpmath.mpf(0)
        for times in range(1, 101):
            mu = times / mpmath.mpf(noise)
            below, above = mpmath.ncdf(mu / 2 - inner / mu), mpmath.ncdf(-mu / 2 - inner / mu)
            exact += chances[times] * (below - mpmath.exp(inner) * above)
        assert exact + beyond <= loss.delta(epsilon) <= exact + 1.2 * beyond
