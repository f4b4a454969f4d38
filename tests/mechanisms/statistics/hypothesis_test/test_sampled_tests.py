"""Chi-square and t-tests: their sizes under the null hypothesis, their power, wrong arguments."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import chdtri

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import (
    Gaussian,
    Histogram,
    KolmogorovSmirnov,
    Laplace,
    LinearWorkload,
    Variance,
    goodness_of_fit,
    independence_test,
    t_interval,
    t_test,
    variance_interval,
)
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.privacy import Neighboring
from tests.chance import accepts_only, at_least, at_most, rate

RUNS = 200
COUNTS = Laplace.calibrated(sensitivity=1, l0=2, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
JOINING = Laplace.calibrated(sensitivity=1, epsilon=0.5)  # the same noise under add/remove


@pytest.mark.parametrize("n", [30, 2000])
def test_a_true_distribution_is_refused_as_rarely_as_promised(n: int) -> None:
    rng, runs = np.random.default_rng(n), 300
    shares = np.array([0.5, 0.3, 0.15, 0.05])
    values = [
        goodness_of_fit(
            COUNTS.release(rng.multinomial(n, shares), rng), n=n, shares=shares, draws=199, rng=rng
        ).p_value
        for _ in range(runs)
    ]
    for level in (0.05, 0.5):
        seen = sum(value <= level for value in values)
        accepts_only(rate(seen, runs), level, rarer=level / 20, more_often=level**0.5)
    release = COUNTS.release(rng.multinomial(n, shares[::-1]), rng)
    assert goodness_of_fit(release, n=n, shares=shares, rng=1).p_value < 0.01


@pytest.mark.parametrize(
    ("n", "epsilon", "runs"), [(0, 0.5, RUNS), (30, 0.5, RUNS), (2000, 0.5, RUNS), (500, 0.02, 60)]
)
def test_a_true_distribution_of_a_private_number_of_records_is_refused_as_rarely(
    n: int, epsilon: float, runs: int
) -> None:
    rng, shares = np.random.default_rng(n), np.array([0.5, 0.3, 0.15, 0.05])
    noisy = Laplace.calibrated(sensitivity=1, epsilon=epsilon)
    values = [
        goodness_of_fit(noisy.release(rng.multinomial(n, shares), rng), shares=shares, draws=199, rng=rng)
        for _ in range(runs)
    ]
    for level in (0.05, 0.5):
        seen = sum(value.p_value <= level for value in values)
        accepts_only(at_most(seen, runs), level, never=0.0)
    assert sum(value.p_value <= 0.5 for value in values) > 0.25 * runs


def test_no_number_of_records_is_taken_for_granted() -> None:
    """By enumeration of all tables: the level holds for two records, of which the noisy total tells little.

    Putting the noisy total in the place of their number refuses them 1.4 times as often as 0.04 allows;
    sampled p-values err by a twelfth of that.
    """
    noisy = Laplace.calibrated(sensitivity=1, epsilon=2.0)
    places = range(-5, 8)
    mass = {z: noisy.distribution.pmf(z).upper for z in range(-7, 8)}
    size, seen = {0.01: 0.0, 0.02: 0.0, 0.04: 0.0, 0.1: 0.0, 0.5: 0.0}, 0.0
    for table in itertools.product(places, places):
        chance = sum(
            part * mass[table[0] - k] * mass[table[1] - 2 + k] for k, part in enumerate((0.25, 0.5, 0.25))
        )
        release = LatticeRelease(
            steps=np.array(table),
            step=1,
            distribution=noisy.distribution,
            loss=noisy.privacy_loss,
            neighboring=noisy.neighboring,
        )
        value = goodness_of_fit(release, shares=[0.5, 0.5], draws=3999, rng=7).p_value
        size = {level: part + chance * (value <= level) for level, part in size.items()}
        seen += chance
    assert seen > 1 - 1e-4
    assert all(part + 1 - seen <= level for level, part in size.items())


def test_other_distributions_are_refused_whatever_is_known_of_the_number_of_records() -> None:
    rng = np.random.default_rng(5)
    counts = np.array([60, 80, 90, 100, 120, 150])
    for noisy in (JOINING, COUNTS, Gaussian.calibrated(sensitivity=1, epsilon=1.0, delta=1e-6)):
        assert goodness_of_fit(noisy.release(counts, rng), shares=np.full(6, 1 / 6), rng=1).p_value < 0.001
        table = noisy.release(np.array([[200, 0], [0, 200]]), rng)
        assert independence_test(table, rng=1).p_value < 0.001
    # One category is what every record is in: there is nothing to refuse.
    assert goodness_of_fit(JOINING.release(np.array([40]), rng), shares=[1.0], rng=1).p_value == 1.0


@pytest.mark.parametrize("private", [False, True])
def test_independence_is_refused_as_rarely_as_promised(private: bool) -> None:
    rng, n = np.random.default_rng(3), 500
    shares = np.outer([0.6, 0.4], [0.2, 0.5, 0.3])
    noisy = JOINING if private else COUNTS
    given = None if private else n
    values = [
        independence_test(
            noisy.release(rng.multinomial(n, shares.ravel()).reshape(2, 3), rng), n=given, draws=199, rng=rng
        ).p_value
        for _ in range(RUNS)
    ]
    accepts_only(at_most(sum(value <= 0.05 for value in values), RUNS), 0.05, never=0.0)
    assert sum(value <= 0.5 for value in values) > 0.25 * RUNS
    far = noisy.release(np.array([[200, 0], [0, 200]]), rng)
    assert independence_test(far, n=None if private else 400, rng=1).p_value < 0.001


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_true_means_are_refused_as_rarely_as_promised(kind: Any) -> None:
    query, rng = Variance(bounds=(-10.0, 10.0)), np.random.default_rng(4)
    budget = {"epsilon": 1.0} if kind is Laplace else {"epsilon": 1.0, "delta": 1e-6}
    noisy = kind.for_query(query, **budget)
    one, two = [], []
    for _ in range(RUNS):
        first = noisy.release(rng.normal(1.5, 2, 400), rng)
        second = noisy.release(rng.normal(1.5, 1, 300), rng)
        one.append(t_test(first, query=query, mean=1.5, draws=199, rng=rng).p_value)
        two.append(t_test(first, second, query=query, draws=199, rng=rng).p_value)
    for values in (one, two):
        accepts_only(at_most(sum(value <= 0.05 for value in values), RUNS), 0.05, never=0.0)
        assert sum(value <= 0.5 for value in values) > 0.25 * RUNS
    far = noisy.release(rng.normal(4, 2, 2000), rng)
    near = noisy.release(rng.normal(1.5, 2, 2000), rng)
    assert t_test(far, query=query, mean=1.5, rng=1).p_value < 0.001
    assert t_test(far, near, rng=1).p_value < 0.001


@pytest.mark.sharpest("20")
@pytest.mark.parametrize("n", [20, 1000])
def test_intervals_hold_means_and_differences_as_often_as_promised(n: int) -> None:
    query, rng = Variance(bounds=(0.0, 100.0)), np.random.default_rng(n)
    noisy = Laplace.for_query(query, epsilon=1.0)
    held, wrong, refused = np.zeros(2), 0, 0
    for _ in range(RUNS):
        one, two = (noisy.release(rng.normal(mean, 20, n), rng) for mean in (50.0, 45.0))
        for place, (ends, truth) in enumerate(
            (
                (t_interval(one, level=0.8, draws=99, rng=rng), 50.0),
                (t_interval(one, two, level=0.8, draws=99, rng=rng), 5.0),
            )
        ):
            held[place] += ends.lower <= truth <= ends.upper
            assert -100 <= ends.lower <= ends.upper <= 100
        without = 1.2816 * query.estimate(one) ** 0.5 / n**0.5  # an interval that forgets the noise
        wrong += abs(float(query_mean(one)) - 50.0) <= without
        refused += t_test(one, mean=50.0, alternative="greater", draws=99, rng=rng).p_value <= 0.1
    for hits in held:
        accepts_only(at_least(int(hits), RUNS), 0.8, too_narrow=0.97)
    accepts_only(at_most(refused, RUNS), 0.1, never=0.0)
    assert wrong < 0.7 * RUNS or n > 20


@pytest.mark.sharpest("30-15")
@pytest.mark.parametrize(("n", "deviation"), [(30, 15), (1000, 15), (1000, 4)])
def test_intervals_hold_variances_as_often_as_promised(n: int, deviation: int) -> None:
    query, rng, runs = Variance(bounds=(0.0, 100.0)), np.random.default_rng(n), 110
    noisy, truth, held, wrong = Laplace.for_query(query, epsilon=1.0), deviation**2, 0, 0
    for _ in range(runs):
        release = noisy.release(rng.normal(50, deviation, n), rng)
        lower, upper, _ = variance_interval(release, level=0.8, draws=99, rng=rng)
        assert 0 <= lower <= upper <= 2500
        held += lower <= truth <= upper
        seen = query.estimate(release)  # an interval that forgets the noise
        wrong += seen * (1 - 1.8 / n**0.5) <= truth <= seen * (1 + 1.8 / n**0.5)
    accepts_only(at_least(held, runs), 0.8, too_narrow=0.99)
    assert wrong < 0.6 * runs or n > 30


def test_without_noise_the_interval_for_a_variance_is_that_of_the_books() -> None:
    exact = Laplace.for_query(Variance(bounds=(0.0, 100.0)), epsilon=1e6)
    data = np.random.default_rng(1).normal(50, 10, 40)
    lower, upper, _ = variance_interval(exact.release(data, rng=1), rng=1)
    squares = 40 * data.var()
    assert lower == pytest.approx(squares / chdtri(39, 0.025), rel=0.04)
    assert upper == pytest.approx(squares / chdtri(39, 0.975), rel=0.04)


def query_mean(release: LatticeRelease) -> float:
    high, cross, low = np.asarray(release.value)
    return float(100 * (high + cross / 2) / (high + cross + low))


def test_sides_of_the_t_test() -> None:
    noisy = Laplace.for_query(Variance(bounds=(0.0, 100.0)), epsilon=1.0)
    release = noisy.release(np.random.default_rng(0).normal(52, 10, 2000), rng=1)
    found = {
        side: t_test(release, mean=51.0, alternative=side, draws=999, rng=2)
        for side in ("greater", "less", "two-sided")
    }
    assert found["greater"].p_value < 0.05
    assert found["less"].p_value > 0.9
    assert found["greater"].p_value < found["two-sided"].p_value < 3 * found["greater"].p_value + 0.01
    assert found["less"].statistic == found["greater"].statistic > 0
    with pytest.raises(ParameterError, match="alternative must be 'two-sided', 'greater' or 'less'"):
        t_test(release, mean=51.0, alternative="more")  # type: ignore[arg-type]
    for interval in (t_interval, variance_interval):
        with pytest.raises(ParameterError, match="level must"):
            interval(release, level=1.0)


def test_no_data_refuses_nothing_certain() -> None:
    query = Variance(bounds=(0.0, 1.0))
    release = Laplace.for_query(query, epsilon=1.0).release(np.zeros(0), rng=1)
    assert 0 < t_test(release, query=query, mean=0.5, draws=99, rng=1).p_value <= 1
    empty = COUNTS.release(np.zeros(3, np.int64), rng=1)
    assert 0 < goodness_of_fit(empty, n=1, shares=np.full(3, 1 / 3), draws=99, rng=1).p_value <= 1
    for counts in (np.full((2, 2), -(10**6)), np.zeros((2, 2), np.int64), np.full((2, 2), 10**18)):
        strange = JOINING.release(counts, rng=1)
        assert 0 < independence_test(strange, draws=99, rng=1).p_value <= 1
        flat = JOINING.release(counts.ravel(), rng=1)
        assert 0 < goodness_of_fit(flat, shares=np.full(4, 1 / 4), draws=99, rng=1).p_value <= 1


def test_the_same_seed_tells_the_same() -> None:
    release = COUNTS.release(np.array([10, 20]), rng=1)
    for n in (30, None):
        values = [goodness_of_fit(release, n=n, shares=[0.5, 0.5], rng=7).p_value for _ in range(2)]
        assert values[0] == values[1]


def test_a_public_number_of_records_is_refused_under_add_remove() -> None:
    """A replaced record costs such a release up to twice its epsilon, and nobody is added or removed."""
    histogram = Laplace.for_query(Histogram(categories=(1, 2)), epsilon=1.0)
    rule = "replace-one or zero-out where n is public, but it is for add/remove one unit; pass"
    for mechanism in (JOINING, histogram.mechanism):
        table = mechanism.release(np.array([10, 20]), rng=1)
        with pytest.raises(NeighboringMismatch, match=rule):
            goodness_of_fit(table, n=30, shares=[0.5, 0.5])
    with pytest.raises(NeighboringMismatch, match=rule):
        independence_test(JOINING.release(np.array([[10, 20], [5, 5]]), rng=1), n=40)
    zeroed = Laplace.for_query(Histogram(categories=(1, 2)), epsilon=1.0, neighboring=Neighboring.ZERO_OUT)
    release = zeroed.release(np.repeat([1, 2], [10, 20]), rng=1)
    assert 0 < goodness_of_fit(release, n=30, shares=[0.5, 0.5], draws=99, rng=1).p_value <= 1


def test_wrong_arguments_are_refused() -> None:
    query = Variance(bounds=(0.0, 1.0))
    table, scalar = COUNTS.release(np.array([10, 20]), rng=1), COUNTS.release(3, rng=1)
    moments = Laplace.for_query(query, epsilon=1.0).release(np.zeros(5), rng=1)
    wrong: list[tuple[Any, str]] = [
        (lambda: goodness_of_fit(scalar, n=3, shares=[1.0]), "release must"),
        (lambda: goodness_of_fit(table, n=0, shares=[0.5, 0.5]), "n must"),
        (lambda: goodness_of_fit(table, n=10**400, shares=[0.5, 0.5]), "n must be at most"),
        (lambda: KolmogorovSmirnov(cdf=np.tanh, n=10**400), "n must be at most"),
        (lambda: goodness_of_fit(table, n=30, shares=[0.5, 0.6]), "shares must"),
        (lambda: goodness_of_fit(table, n=30, shares=[1.0]), "shares must"),
        (lambda: goodness_of_fit(table, n=30, shares=[0.5, 0.5], draws=5), "draws must"),
        (
            lambda: goodness_of_fit(table, shares=[0.5, 0.5], draws=38),
            "draws must be an integer of at least 39",
        ),
        (lambda: goodness_of_fit(table, n=30, shares=[0.5, 0.5], rng="x"), "rng must"),  # type: ignore[arg-type]
        (lambda: goodness_of_fit(table, n=30, shares="half"), "shares must"),
        (lambda: goodness_of_fit(table, n=30, shares={"a": 1}), "shares must"),
        (lambda: t_test(table, mean=0.5), "query must"),
        (lambda: t_test(3, mean=0.5), "release must"),  # type: ignore[arg-type]
        (lambda: t_test(moments, query=query, mean=1e308), "mean must lie within"),
        (lambda: independence_test(table, n=30), "release must"),
        (lambda: independence_test(COUNTS.release(np.array([[1, 2]]), rng=1), n=3), "release must have"),
        (lambda: t_test(table, query=query, mean=0.5), "release must"),
        (lambda: t_test(moments, query=query), "mean must"),
        (lambda: t_test(moments, moments, query=query, mean=0.5), "mean must"),
        (lambda: t_test(moments, query=query, mean=math.nan), "mean must"),
    ]
    for call, message in wrong:
        with pytest.raises(ParameterError, match=message):
            call()


def test_counts_that_overlap_are_not_those_of_cells() -> None:
    for matrix in ([[1, 0, 0], [0, 1, 1]], [[1, 1, 0], [0, 1, 1]]):
        noisy = Gaussian.for_query(LinearWorkload(matrix=matrix), epsilon=1.0, delta=1e-6)
        release = noisy.release(np.arange(900) % 3, rng=1)
        if max(map(sum, zip(*matrix, strict=True))) == 1:
            assert goodness_of_fit(release, shares=[1 / 3, 2 / 3], draws=199, rng=2).p_value > 0.01
        else:
            with pytest.raises(
                ParameterError, match="release must be of counts of records, but it is of a Line"
            ):
                goodness_of_fit(release, shares=[0.5, 0.5])
