"""The certified intervals against exact references and against numbers that other accountants got wrong."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError, PrecisionWarning
from sfumato.numerics.interval import Interval
from sfumato.privacy import (
    ApproximateDP,
    Gaussian,
    GaussianDP,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    Precision,
    PrivacyLoss,
    PureDP,
    SampledWithReplacement,
)
from sfumato.privacy.accountant import certified, inversion
from tests.cases import cases

mpmath.mp.dps = 60

# DP-SGD: sampling probability, noise multiplier, steps; epsilon by delta, from inverting the characteristic
# function on a grid of 24,000 points, to six decimals; one row was confirmed with 40 digits.
SGD: dict[tuple[float, float, int], dict[float, float]] = {
    (0.01, 1.0, 10_000): {1e-5: 6.187712, 1e-8: 8.185123, 1e-10: 9.316139, 1e-15: 11.759979},
    (0.001, 0.7, 100_000): {1e-5: 3.648429, 1e-10: 5.973935, 1e-15: 8.379152},
    (256 / 60_000, 1.1, 14_062): {1e-5: 2.381597, 1e-15: 4.771674},
    (4096 / 50_000, 3.0, 2_000): {1e-5: 5.774272, 1e-10: 8.584426},
    (16_384 / 1.28e6, 2.5, 72_000): {1e-5: 6.680164, 1e-10: 9.785232},
    (1e-5, 0.5, 1_000_000): {1e-5: 0.494160, 1e-8: 2.158506, 1e-10: 3.504581, 1e-15: 6.550794},
    (0.5, 20.0, 1_000): {1e-5: 3.347777, 1e-10: 5.081899},
}
ROWS = [(*job, delta, epsilon) for job, row in SGD.items() for delta, epsilon in row.items()]
# "Pessimistic" epsilons of dp-accounting 0.6.0, which are too low: no interval may hold them.
TOO_LOW = {
    (0.01, 1.0, 10_000, 1e-10): 9.31505,
    (0.001, 0.7, 100_000, 1e-10): 5.96005,
    (4096 / 50_000, 3.0, 2_000, 1e-10): 8.58433,
    (16_384 / 1.28e6, 2.5, 72_000, 1e-10): 9.78408,
    (1e-5, 0.5, 1_000_000, 1e-10): 3.39580,
    (0.5, 20.0, 1_000, 1e-10): 5.08189,
}
# What others report: Opacus 1.6 (the limit in Gaussian DP, which is no bound), then opake 0.16.
NO_BOUNDS = {
    (0.01, 1.0, 10_000, 1e-5): 6.007,
    (0.001, 0.7, 100_000, 1e-5): 3.476,
    (256 / 60_000, 1.1, 14_062, 1e-5): 2.324,
    (4096 / 50_000, 3.0, 2_000, 1e-5): 5.711,
    (16_384 / 1.28e6, 2.5, 72_000, 1e-5): 6.664,
    (1e-5, 0.5, 1_000_000, 1e-5): 0.2426,
    (0.5, 20.0, 1_000, 1e-5): 3.3438,
    (1e-5, 0.5, 1_000_000, 1e-15): 0.540,
    (256 / 60_000, 1.1, 14_062, 1e-15): 4.34016,
}


def sgd(q: float, noise: float, steps: int) -> PrivacyLoss:
    return PoissonSubsampled(Gaussian(noise), sampling_probability=q) * steps


@cases(("q", "noise", "steps", "delta", "epsilon"), ROWS)
def test_the_interval_of_dp_sgd_holds_the_truth(
    q: float, noise: float, steps: int, delta: float, epsilon: float
) -> None:
    lower, upper, tight = sgd(q, noise, steps).epsilon_interval(delta)
    assert lower - 6e-7 <= epsilon <= upper + 6e-7
    assert tight
    assert upper - lower <= 1e-3 * upper


@cases(("job", "reported"), TOO_LOW.items())
def test_under_counts_of_peers_lie_below_the_interval(
    job: tuple[float, float, int, float], reported: float
) -> None:
    q, noise, steps, delta = job
    precision = Precision(1e-4 if q <= 0.001 else 2e-6)
    assert reported < sgd(q, noise, steps).epsilon_interval(delta, precision).lower


@cases(("job", "reported"), NO_BOUNDS.items())
def test_approximations_of_peers_lie_below_the_interval(
    job: tuple[float, float, int, float], reported: float
) -> None:
    q, noise, steps, delta = job
    assert reported < sgd(q, noise, steps).epsilon_interval(delta).lower


def test_a_lower_bound_of_peers_lies_above_the_truth() -> None:
    # dp-accounting 0.6.0's "optimistic" epsilon, whose losses beyond 745 underflow.
    reported = 2269.685
    upper = (Gaussian(0.5) * 1000).epsilon_interval(1e-5).upper
    assert upper < 2268.769
    assert upper < reported


@pytest.mark.parametrize(
    ("noise", "count", "truth"), [(4.0, 1, 0.926), (4.0, 1000, 64.17), (50.0, 10**5, 46.2)]
)
def test_a_negative_epsilon_of_peers_is_far_from_the_truth(noise: float, count: int, truth: float) -> None:
    # autodp 0.2.3 on scipy 1.17 says -0.0048 of each.
    lower, upper, _ = (Gaussian(noise) * count).epsilon_interval(1e-5)
    assert 0 < lower <= upper
    assert upper == pytest.approx(truth, rel=1e-3)


def test_nothing_finite_is_proven_with_a_warning_that_says_why() -> None:
    once = SampledWithReplacement(
        Gaussian(2.0, neighboring=Neighboring.REPLACE_ONE), sample_size=200, population_size=50
    )
    assert once.epsilon_interval(1e-6).upper < 45
    many = SampledWithReplacement(
        Gaussian(2.0, neighboring=Neighboring.REPLACE_ONE), sample_size=2000, population_size=10
    )
    with pytest.warns(PrecisionWarning, match="no finite bound"):
        assert many.epsilon_interval(1e-6).upper == math.inf


@pytest.mark.parametrize("job", [(0.01, 1.0, 10_000), (0.5, 20.0, 1_000)])
def test_the_interval_narrows_on_demand(job: tuple[float, float, int]) -> None:
    lower, upper, _ = sgd(*job).epsilon_interval(1e-5, Precision(relative=1e-6))
    assert upper - lower <= 1e-6 * upper
    assert lower - 6e-7 <= SGD[job][1e-5] <= upper + 6e-7


@cases("job", SGD)
def test_tiny_deltas_have_narrow_intervals(job: tuple[float, float, int]) -> None:
    lower, upper, _ = sgd(*job).epsilon_interval(1e-30)
    assert max(SGD[job].values()) < lower <= upper <= lower * 1.001


def gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@cases(
    ("noise", "count", "epsilon"),
    [
        (1.0, 1, 0.5),
        (4.0, 100, 12.0),
        (0.5, 1000, 2268.768),
        (50.0, 10**5, 60.0),
        (1.0, 1, 12.0),
        (3.0, 2, 0.0),
    ],
)
def test_gaussians_are_exact(noise: float, count: int, epsilon: float) -> None:
    truth = gaussian_delta(mpmath.sqrt(count) / mpmath.mpf(noise), epsilon)
    lower, upper, _ = (Gaussian(noise) * count).delta_interval(epsilon, Precision(1e-6))
    assert lower <= truth <= upper <= float(truth) * (1 + 1e-6)


def response_delta(epsilon_0: float, count: int, epsilon: float, infinite: float = 0.0) -> mpmath.mpf:
    """Delta of repeated randomized response, possibly with a telltale output (Kairouz, Oh, Viswanath)."""
    e0, e = mpmath.mpf(epsilon_0), mpmath.mpf(epsilon)
    p = 1 / (1 + mpmath.exp(-e0))
    total = mpmath.mpf(0)
    for k in range(count + 1):
        loss = (2 * k - count) * e0
        if loss > e:
            total += mpmath.binomial(count, k) * p**k * (1 - p) ** (count - k) * (1 - mpmath.exp(e - loss))
    selected = (1 - mpmath.mpf(infinite)) ** count
    return 1 - selected + selected * total


@cases(
    ("epsilon_0", "count", "epsilon", "infinite"),
    [
        (1.0, 100, 79.8, 0.0),
        (1.0, 100, 98.5, 0.0),
        (0.1, 1, 0.05, 0.0),
        (0.1, 1, 0.099999, 0.0),
        (0.01, 1000, 1.7, 0.0),
        (0.3, 20, 2.0, 1e-7),
        (2.0, 3, 5.5, 1e-30),
    ],
)
def test_randomized_response_holds_the_exact_sum(
    epsilon_0: float, count: int, epsilon: float, infinite: float
) -> None:
    loss = (ApproximateDP(epsilon_0, infinite) if infinite else PureDP(epsilon_0)) * count
    truth = response_delta(epsilon_0, count, epsilon, infinite)
    lower, upper, _ = loss.delta_interval(epsilon)
    assert lower <= truth <= upper <= float(truth) * 1.001
    low, high, _ = loss.epsilon_interval(upper)
    assert low <= epsilon <= high * (1 + 1e-3) + 1e-9


def test_laplace_holds_its_closed_form() -> None:
    for noise, epsilon in itertools.product([0.5, 2.0, 30.0], [0.0, 0.01, 0.4]):
        if epsilon < 1 / noise:
            truth = 1 - mpmath.exp((mpmath.mpf(epsilon) - 1 / mpmath.mpf(noise)) / 2)
            lower, upper, _ = Laplace(noise).delta_interval(epsilon)
            assert lower <= truth <= upper <= float(truth) * 1.001


def subsampled_delta(mu: float, q: float, epsilon: float) -> mpmath.mpf:
    """Delta of one Poisson-subsampled Gaussian, both orders, by solving for where the loss is epsilon."""
    mu, q, e = mpmath.mpf(mu), mpmath.mpf(q), mpmath.mpf(epsilon)
    threshold = (mpmath.log((mpmath.exp(e) - 1 + q) / q) + mu**2 / 2) / mu
    there = (1 - q) * mpmath.ncdf(-threshold) + q * mpmath.ncdf(mu - threshold)
    removed = there - mpmath.exp(e) * mpmath.ncdf(-threshold)
    rest = mpmath.exp(-e) - 1 + q
    if rest <= 0:
        return removed
    below = (mpmath.log(rest / q) + mu**2 / 2) / mu
    mixed = (1 - q) * mpmath.ncdf(below) + q * mpmath.ncdf(below - mu)
    return max(removed, mpmath.ncdf(below) - mpmath.exp(e) * mixed)


@pytest.mark.parametrize("delta_of", [(1.0, 0.01, 0.1), (2.0, 0.5, 1.0), (0.05, 0.3, 0.001), (1.0, 0.2, 5.0)])
def test_one_subsampled_gaussian_holds_its_closed_form(delta_of: tuple[float, float, float]) -> None:
    mu, q, epsilon = delta_of
    truth = subsampled_delta(mu, q, epsilon)
    lower, upper, _ = PoissonSubsampled(Gaussian(1 / mpmath.mpf(mu)), q).delta_interval(epsilon)
    assert lower <= float(truth) * (1 + 1e-12)
    assert float(truth) * (1 - 1e-12) <= upper
    assert upper <= float(truth) * 1.001


def test_sampling_everybody_or_nobody() -> None:
    base = Gaussian(1.3)
    everybody = PoissonSubsampled(base, 1.0).epsilon_interval(1e-6)
    assert everybody.lower <= base.epsilon(1e-6) <= everybody.upper <= base.epsilon(1e-6) * (1 + 1e-6)
    assert (PoissonSubsampled(base, 0.0) * 1000).epsilon(0.0) == 0.0


def test_mixed_jobs_lie_between_their_parts_and_their_sum() -> None:
    step, extra = sgd(0.02, 1.2, 500), Laplace(5.0) * 4
    both = (step + extra).epsilon_interval(1e-6)
    assert step.epsilon_interval(1e-6).lower < both.lower <= both.upper < step.epsilon(1e-6) + 0.8


def test_what_cannot_be_as_narrow_as_asked_says_so_and_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    proportion = certified._proportion
    # A first plan that is too coarse, of which no finer one is affordable.
    monkeypatch.setattr(certified, "_proportion", lambda look: 1e3 * proportion(look))
    monkeypatch.setattr(certified, "_MAX_COST", 1.0)
    run = sgd(0.01, 1.0, 64)
    with pytest.warns(PrecisionWarning, match="wider than asked"):
        lower, upper, _ = run.epsilon_interval(1e-5, Precision(1e-7))
    assert lower <= 0.6260217 <= upper
    with pytest.warns(PrecisionWarning, match="wider than asked"):
        lower, upper, _ = run.delta_interval(0.6260217, Precision(1e-7))
    assert lower <= 1e-5 <= upper


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
@pytest.mark.exhaustive
@pytest.mark.parametrize("most", [2, 16])
def test_a_line_that_is_cut_short_is_right(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 5 + most  # another job each time: nothing may be remembered
    truth = sgd(0.1, 2.0, steps).epsilon_interval(1e-5, Precision(1e-5))
    pairs = [(PoissonSubsampled(Gaussian(2.0), 0.1).dominating_pair(), steps)]
    monkeypatch.setattr(inversion, "_MAX_POINTS", most)
    found = certified.epsilon_interval(pairs, 1e-5, Precision(1e-4))
    assert found.lower <= truth.upper
    assert found.upper >= truth.lower
    delta = certified.delta_interval(pairs, 0.5, Precision(1e-4))
    assert delta.lower <= sgd(0.1, 2.0, steps).delta(0.5)


def test_where_delta_is_used_up_by_what_fails_for_certain_the_closed_bound_is_met() -> None:
    # With no delta to spare nothing finite follows from the pairs, but the lower end does.
    found = (Laplace(1.0) * 3 + ApproximateDP(0.0, 1e-6)).epsilon_interval(1e-6)
    assert found.tight
    assert 3.0 * (1 - 1e-3) <= found.lower <= 3.0 <= found.upper <= 3.0 * (1 + 1e-12)


@pytest.mark.parametrize("mu", [1e-17, 1e-14, 1e-15, 1e-16, 1e-100])
def test_no_lower_end_is_above_a_delta_that_is_next_to_nothing(mu: float) -> None:
    with mpmath.workdps(400):
        truth = 2 * mpmath.ncdf(mpmath.mpf(mu) / 2) - 1
        found = certified.delta_interval([(GaussianDP(mu).dominating_pair(), 1)], 0.0, Precision().of_delta())
        assert found.lower <= truth <= found.upper


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(ParameterError, match="sampling_probability must be from 0 to 1"):
        PoissonSubsampled(Gaussian(1.0), 1.5)
    with pytest.raises(NeighboringMismatch, match="under add/remove"):
        PoissonSubsampled(Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE), 0.5)
    with pytest.raises(ParameterError, match="neither repeated nor composed"):
        PoissonSubsampled(Gaussian(1.0) * 2, 0.5)
    with pytest.raises(ParameterError, match="relative must"):
        Precision(relative=0.0)
    assert math.isinf(Gaussian(1.0).epsilon_interval(0.0).lower)


def test_an_interval_up_to_infinity_is_never_narrow_enough() -> None:
    assert not Precision().met(3.0, math.inf)
    assert Precision().met(math.inf, math.inf)
    loss = ApproximateDP(0.0, 1e-6) + Gaussian(1.0)
    with pytest.warns(PrecisionWarning, match="no finite bound"):
        lower, upper, _ = loss.epsilon_interval(1e-6)  # all of which the part that fails wholly takes
    assert 9 < lower < upper == math.inf
    # Where no epsilon is enough for certain there is nothing to warn of, and infinity alone says enough.
    assert loss.epsilon_interval(1e-7) == Interval(math.inf, math.inf)
    assert loss.epsilon(1e-6) == loss.epsilon() == math.inf
    assert loss.epsilon(2e-6) < 10


def test_where_no_delta_is_given_nothing_may_fail() -> None:
    loss = PureDP(0.5) * 3
    assert loss.quick_epsilon() == loss.quick_epsilon(0.0) == 1.5
    assert loss.epsilon() == loss.epsilon(0.0) == 1.5
    assert Gaussian(1.0).quick_epsilon() == math.inf
