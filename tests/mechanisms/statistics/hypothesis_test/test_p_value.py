"""Tests and intervals on noisy counts and distances: sizes and coverages by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtrc, comb

from sfumato.errors import NeighboringMismatch, ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Gaussian, Grid, KolmogorovSmirnov, Laplace, binomial_test, proportion_interval
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.hypothesis_test.binomial_test import reach_of_two
from sfumato.mechanisms.statistics.hypothesis_test.p_value import noisy_tail_probability
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_least, at_most

N = 12
COUNT = Laplace(sensitivity=1, scale=1.5, neighboring=Neighboring.REPLACE_ONE)
REACH = range(-60, 61)


def released(steps: int, mechanism: Laplace | Gaussian = COUNT) -> LatticeRelease:
    return LatticeRelease(
        steps=steps,
        step=1,
        distribution=mechanism.distribution,
        loss=mechanism.privacy_loss,
        neighboring=mechanism.neighboring,
    )


def masses(share: float) -> dict[int, float]:
    """The distribution of the noisy count."""
    noise = {z: COUNT.distribution.pmf(z).upper for z in REACH}
    found: dict[int, float] = {}
    for k in range(N + 1):
        p = float(comb(N, k)) * share**k * (1 - share) ** (N - k)
        for z, q in noise.items():
            found[k + z] = found.get(k + z, 0.0) + p * q
    return found


@cases(
    "distribution",
    [DiscreteLaplaceDistribution(2), DiscreteGaussianDistribution(3), DiscreteLaplaceDistribution(5000)],
)
@cases("x", [-5, 0, 30, 51, 80, 120])
def test_tails_hold_the_sum(distribution: SymmetricDistribution, x: int) -> None:
    def tail(at: Any) -> Any:
        whole = np.clip(np.asarray(at, dtype=float), -1, 101)
        return np.where(
            whole <= 0, 1.0, np.where(whole > 100, 0.0, bdtrc(np.clip(whole - 1, 0, 99), 100, 0.5))
        )

    truth = sum(
        float(bdtrc(k - 1, 100, 0.5) - bdtrc(k, 100, 0.5)) * distribution.upper_tail(x - k).upper
        for k in range(1, 101)
    )
    truth += 0.5**100 * distribution.upper_tail(x).upper
    lower, upper, _ = noisy_tail_probability(tail, distribution, x)
    assert lower <= truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) <= upper
    assert upper - lower <= 0.02 * truth + 1e-18


@cases("proportion", [0.0, 0.1, 0.5, 0.97])
@cases("alternative", ["greater", "less", "two-sided"])
def test_a_true_hypothesis_is_refused_as_rarely_as_promised(proportion: float, alternative: Any) -> None:
    distribution = masses(proportion)
    values = {
        x: binomial_test(released(x), n=N, proportion=proportion, alternative=alternative).p_value
        for x in distribution
    }
    for level in (0.001, 0.05, 0.3):
        size = sum(p for x, p in distribution.items() if values[x] <= level)
        assert size <= level * (1 + 1e-6)
    if alternative != "two-sided" and 0 < proportion < 1:
        for x in (-3, 2, 6, 11, 15):
            size = sum(p for y, p in distribution.items() if values[y] <= values[x])
            assert size == pytest.approx(values[x], rel=1e-6)


PAIR = Laplace(sensitivity=1, scale=1)


def pairs(size: int, share: float) -> dict[tuple[int, int], float]:
    """The distribution of two noisy counts, of those with a property and of those without."""
    noise = {z: PAIR.distribution.pmf(z).upper for z in range(-14, 15)}
    found: dict[tuple[int, int], float] = {}
    for k in range(size + 1):
        p = float(comb(size, k)) * share**k * (1 - share) ** (size - k)
        for (one, q), (two, r) in itertools.product(noise.items(), noise.items()):
            at = (k + one, size - k + two)
            found[at] = found.get(at, 0.0) + p * q * r
    return found


@pytest.mark.sharpest("0.3-4", "0.8-4")
@pytest.mark.parametrize("size", [4, 40])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_two_counts_say_how_many_records_there_may_be(share: float, size: int) -> None:
    """Under add/remove no size is public: a true hypothesis is refused, and a share missed, seldom enough."""
    seen = {at: p for at, p in pairs(size, share).items() if p > 1e-7}
    release = PAIR.release(np.zeros(2, int), rng=1)
    releases = {at: replace(release, steps=np.array(at)) for at in seen}
    missing, often = 1 - sum(seen.values()), 0.0
    for alternative in ("greater", "less"):
        tests = {
            at: binomial_test(one, proportion=share, alternative=alternative).p_value
            for at, one in releases.items()
        }
        for level in (0.01, 0.05, 0.3):
            assert sum(p for at, p in seen.items() if tests[at] <= level) + missing <= level
    for (one, _), p in seen.items():  # a test that forgets the noise is wrong
        often += p * (one > size or (one > 0 and bdtrc(one - 1, size, share) <= 0.01))
    assert often > 0.0115
    if size == 4:
        ends = {at: proportion_interval(one, level=0.9) for at, one in releases.items()}
        outside = sum(p for at, p in seen.items() if not ends[at].lower <= share <= ends[at].upper)
        assert outside + missing <= 0.1


@cases("scale", [0.7, 30])
def test_the_total_is_off_by_no_more_than_it_may_be(scale: float) -> None:
    noise = Laplace(sensitivity=1, scale=scale).distribution
    reach = reach_of_two(noise, 1e-3)
    mass = {z: noise.pmf(z).upper for z in range(round(-45 * scale), round(45 * scale) + 1)}
    beyond = {
        r: sum(p * noise.upper_tail(r + 1 - z).upper for z, p in mass.items())
        for r in (reach, reach - 1, round(0.9 * reach) - 1)
    }
    assert beyond[reach] <= 1e-3
    assert beyond[round(0.9 * reach) - 1] > 1e-3 if scale > 1 else beyond[reach - 1] > 0.5e-3


def test_a_private_size_costs_little_power() -> None:
    counts = {share: np.array([round(1000 * share), 1000 - round(1000 * share)]) for share in (0.5, 0.97)}
    for share, table in counts.items():
        known = proportion_interval(replace(COUNT.release(3, rng=1), steps=int(table[0])), n=1000)
        private = proportion_interval(replace(COUNT.release(table, rng=1), steps=table))
        assert private.lower < known.lower < known.upper < private.upper
        assert private.upper - private.lower < (1.25 if share == 0.5 else 1.6) * (known.upper - known.lower)
    assert binomial_test(replace(COUNT.release(table, rng=1), steps=np.array([560, 440])), proportion=0.5) < (
        (560, 0.01)
    )
    with pytest.raises(ParameterError, match="n must be given for one number, but it is None"):
        binomial_test(released(3), proportion=0.5)
    with pytest.raises(ParameterError, match="release must be of one noisy whole number where n is given"):
        binomial_test(COUNT.release(np.array([5, 6]), rng=1), n=11, proportion=0.5)


@pytest.mark.parametrize("level", [0.6, 0.9, 0.99])
def test_intervals_cover_every_share(level: float) -> None:
    intervals = {x: proportion_interval(released(x), n=N, level=level) for x in range(-60, N + 61)}
    for share in (0.0, 0.01, 0.2, 0.5, 0.77, 1.0):
        covered = sum(
            p for x, p in masses(share).items() if intervals[x].lower <= share <= intervals[x].upper
        )
        assert level <= covered * (1 + 1e-9)
    widths = [intervals[x].upper - intervals[x].lower for x in range(N + 1)]
    assert min(widths) < 0.8


def test_more_records_and_less_noise_narrow_the_interval() -> None:
    few = proportion_interval(released(50), n=100)
    many = proportion_interval(released(5000), n=10_000)
    assert many.upper - many.lower < few.upper - few.lower
    assert many.upper - many.lower == pytest.approx(2 * 1.96 * 0.5 / 100, rel=0.05)
    wide = Laplace(sensitivity=1, scale=1000, neighboring=Neighboring.REPLACE_ONE)
    noisy = proportion_interval(released(5000, wide), n=10_000)
    assert noisy.upper - noisy.lower == pytest.approx(2 * 1000 * math.log(20) / 10_000, rel=0.05)


def test_a_public_number_of_records_is_refused_under_add_remove() -> None:
    """Who publishes n protects nobody from being counted: the loss of such a release would be of nobody."""
    joining = released(3, Laplace(sensitivity=1, scale=1.5))
    query = KolmogorovSmirnov(cdf=lambda x: np.clip(x, 0, 1), n=5)
    calls: list[Callable[[], object]] = [
        lambda: binomial_test(joining, n=5, proportion=0.5),
        lambda: proportion_interval(joining, n=5),
        lambda: query.test(Laplace(sensitivity=1.0, scale=1.5, grid=Grid(exponent=-24)).release(3.0)),
    ]
    for call in calls:
        with pytest.raises(NeighboringMismatch, match="release must be under replace-one or zero-out where"):
            call()
    zeroed = released(3, Laplace(sensitivity=1, scale=1.5, neighboring=Neighboring.ZERO_OUT))
    assert proportion_interval(zeroed, n=5) == proportion_interval(released(3), n=5)
    assert binomial_test(zeroed, n=5, proportion=0.5) == binomial_test(released(3), n=5, proportion=0.5)


@pytest.mark.parametrize("n", [1, 60, 5000])
def test_a_true_distribution_is_refused_as_rarely_as_promised(n: int) -> None:
    query = KolmogorovSmirnov(cdf=lambda x: np.clip(x, 0, 1), n=n)
    measurement = Laplace.for_query(query, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    rng, runs = np.random.default_rng(n), 120 if n == 1 else 500
    values = np.array([query.test(measurement.release(rng.random(n), rng)).p_value for _ in range(runs)])
    for level in (0.05, 0.2):
        seen = int((values <= level).sum())
        at_most(seen, runs)(level)
        if n > 1:
            accepts_only(at_most(seen, runs), level, far_rarer=level / 20)
            accepts_only(at_least(seen, runs), 0.5 * level, as_often_as_not=0.5)
    wrong = query.test(measurement.release(np.linspace(0, 0.5, n), rng)).p_value
    assert wrong < 1e-4 or n == 1


def test_a_replaced_record_moves_the_distance_by_at_most_one() -> None:
    query = KolmogorovSmirnov(cdf=lambda x: np.clip(x, 0, 1), n=6)
    rng = np.random.default_rng(2)
    for _ in range(300):
        one = rng.random(6)
        other = one.copy()
        other[0] = rng.choice([0.0, 1.0, rng.random()])
        assert abs(query.steps(one) - query.steps(other)) <= 1 << 24
    exact = max(max((i + 1) / 6 - x, x - i / 6) for i, x in enumerate(np.sort(one)))
    assert query.steps(one) / (1 << 24) == pytest.approx(6 * exact, abs=1e-6)


def test_odd_data_and_wrong_arguments() -> None:
    query = KolmogorovSmirnov(cdf=lambda x: np.clip(x, 0, 1), n=4)
    for data in (np.zeros(0), np.array([math.nan, math.inf, -math.inf, 0.5, 0.1])):
        assert 0 <= query.steps(data) <= 4 << 24
    with pytest.raises(UnboundedSensitivity, match="neighboring must"):
        Laplace.for_query(query, epsilon=1.0)
    with pytest.raises(ParameterError, match="cdf must"):
        KolmogorovSmirnov(cdf=0.5, n=4)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="cdf must return"):
        KolmogorovSmirnov(cdf=lambda x: 0.5, n=4).steps(np.zeros(4))
    with pytest.raises(ParameterError, match="n must"):
        KolmogorovSmirnov(cdf=np.tanh, n=0)
    for arguments, message in (
        ({"n": 0, "proportion": 0.5}, "n must"),
        ({"n": 10**400, "proportion": 0.5}, "n must be at most"),
        ({"n": 5, "proportion": 1.5}, "proportion must"),
        ({"n": 5, "proportion": 0.5, "alternative": "more"}, "alternative must"),
        ({"n": 5, "proportion": 0.5, "alternative": ["less"]}, "alternative must"),
    ):
        with pytest.raises(ParameterError, match=message):
            binomial_test(released(3), **arguments)
    real = Laplace(sensitivity=1.0, scale=1.0, grid=Grid(exponent=1)).release(3.0, rng=1)
    with pytest.raises(ParameterError, match="release must be of a whole number"):
        proportion_interval(real, n=5)
    with pytest.raises(ParameterError, match="release must be of one noisy whole number"):
        proportion_interval(COUNT.release(np.arange(3), rng=1), n=5)
    with pytest.raises(ParameterError, match="release must be of this query, a KolmogorovSmirnov"):
        query.test(None)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="level must"):
        proportion_interval(released(3), n=5, level=1.0)
