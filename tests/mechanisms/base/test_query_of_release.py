"""A release names the query that it answers, and is read by no other."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import (
    BoundedSum,
    ContingencyTable,
    Count,
    Covariance,
    Gaussian,
    Histogram,
    KaplanMeier,
    KendallTau,
    KernelDensity,
    KolmogorovSmirnov,
    KruskalWallis,
    Laplace,
    LatticeRelease,
    LeastSquares,
    LinearWorkload,
    MannWhitney,
    Mean,
    OneWayAnova,
    Query,
    SecondMoments,
    SpearmanRho,
    Stability,
    TwoSampleKolmogorovSmirnov,
    Variance,
    WilcoxonSignedRank,
    binomial_test,
    goodness_of_fit,
    independence_test,
    proportion_interval,
    slope_test,
    t_test,
    variance_interval,
)
from sfumato.privacy import Neighboring
from tests.cases import cases

N = 30
ONES, PAIRS = np.ones(N), np.ones((N, 2))
VARIANCE, MEAN = Variance(bounds=(0, 100)), Mean(bounds=(0.0, 100.0))
COVARIANCE, LINE = Covariance(bounds=((0, 100), (0, 1))), LeastSquares(bounds=((0, 100), (0, 1)))
MOMENTS, FIXED = SecondMoments(columns=2, radius=100.0), Mean(bounds=(0.0, 100.0), n=N)
DISTANCE = KolmogorovSmirnov(cdf=np.tanh, n=N)
RANKS, SEVERAL = MannWhitney(sizes=(10, 20)), KruskalWallis(sizes=(10, 10, 10))
CURVE, TABLE = KaplanMeier(times=(1, 2, 3)), ContingencyTable(rows=(0, 1), columns=(0, 1))
DENSITY = KernelDensity(bounds=(0, 2), bandwidth=0.5)
ANOVA, CELLS = OneWayAnova(sizes=(10, 20), bounds=(0, 100)), Histogram(categories=(0, 1, 2))
SIGNED, TAU, RHO = WilcoxonSignedRank(), KendallTau(), SpearmanRho()
TWO_SAMPLES = TwoSampleKolmogorovSmirnov()

DATA: list[tuple[Query, Any]] = [
    (Count(), ONES),
    (BoundedSum(bounds=(0, 1)), ONES.astype(int)),
    (BoundedSum(bounds=(0, 100)), ONES.astype(int)),
    (BoundedSum(bounds=(0.0, 100.0)), ONES),
    (Mean(bounds=(0.0, 1.0)), ONES),
    (Variance(bounds=(0, 1)), ONES),
    (Covariance(bounds=((0, 1), (0, 1))), PAIRS),
    (LeastSquares(bounds=((0, 1), (0, 1))), PAIRS),
    (SecondMoments(columns=2, radius=1.0), PAIRS),
    (SecondMoments(columns=2, radius=100.0, centered=False), PAIRS),
    (KolmogorovSmirnov(cdf=np.sin, n=N), ONES),
    (MannWhitney(sizes=(20, 10)), ONES),
    (KruskalWallis(sizes=(10, 20)), ONES),
    (OneWayAnova(sizes=(10, 20), bounds=(0, 1)), ONES),
    (LinearWorkload(matrix=[[1, 0, 0], [0, 0, 1], [0, 1, 0]]), ONES.astype(int)),
    (LinearWorkload(matrix=[[1, 1, 0], [0, 1, 1], [1, 0, 1]]), ONES.astype(int)),
    (LinearWorkload(matrix=[[1, 2, 0], [0, 1, 1], [1, 0, 1]]), ONES.astype(int)),
    (VARIANCE, ONES),
    (MEAN, ONES),
    (COVARIANCE, PAIRS),
    (LINE, PAIRS),
    (MOMENTS, PAIRS),
    (FIXED, ONES),
    (DISTANCE, ONES),
    (RANKS, ONES),
    (SEVERAL, ONES),
    (ANOVA, ONES),
    (CELLS, ONES.astype(int)),
    (SIGNED, ONES),
    (TAU, PAIRS),
    (RHO, PAIRS),
    (TWO_SAMPLES, PAIRS),
    (KaplanMeier(times=(1, 2, 4)), PAIRS),
    (ContingencyTable(rows=(0, 1), columns=(1, 2)), PAIRS),
    (KernelDensity(bounds=(0, 4), bandwidth=1.0), ONES),
    (CURVE, PAIRS),
    (TABLE, PAIRS),
    (DENSITY, ONES),
]
READERS: list[tuple[Query | None, Callable[[LatticeRelease], Any]]] = [
    *((query, query.estimate) for query in (VARIANCE, MEAN, COVARIANCE, LINE, MOMENTS, FIXED, ANOVA, CELLS)),
    *((query, query.estimate) for query in (CURVE, TABLE, DENSITY)),
    (CURVE, lambda release: CURVE.survival_band(release, draws=19)),
    (TABLE, lambda release: TABLE.odds_ratio(release, draws=19)),
    (TABLE, lambda release: TABLE.independence(release, draws=19)),
    (DENSITY, lambda release: DENSITY.density_band(release, draws=19)),
    (VARIANCE, VARIANCE.estimate_interval),
    (VARIANCE, VARIANCE.mean_interval),
    (MEAN, MEAN.estimate_interval),
    (FIXED, FIXED.estimate_interval),
    (MOMENTS, lambda release: MOMENTS.principal_components(release, 1)),
    (DISTANCE, DISTANCE.test),
    (RANKS, lambda release: RANKS.test(release, draws=19)),
    (SEVERAL, lambda release: SEVERAL.test(release, draws=19)),
    (ANOVA, lambda release: ANOVA.test(release, draws=19)),
    *((query, query.estimate) for query in (SIGNED, TAU, RHO, TWO_SAMPLES)),
    *((query, partial(query.test, draws=19)) for query in (SIGNED, TAU, RHO, TWO_SAMPLES)),
    (LINE, lambda release: slope_test(release, query=LINE, draws=19)),
    (VARIANCE, lambda release: variance_interval(release, query=VARIANCE, draws=19)),
    (VARIANCE, lambda release: t_test(release, query=VARIANCE, mean=1.0, draws=19)),
    (None, lambda release: t_test(release, mean=1.0, draws=19)),
    (None, lambda release: binomial_test(release, n=N, proportion=0.5)),
    (None, lambda release: proportion_interval(release, n=N)),
    (None, lambda release: goodness_of_fit(release, shares=np.full(3, 1 / 3), draws=39)),
    (None, lambda release: independence_test(release, draws=19)),
]


def released(query: Query, data: Any) -> LatticeRelease:
    noisy = Laplace.for_query(query, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    return noisy.release(data, rng=1)


def counts(query: Query) -> int:
    """How many counts of records a query has, by the definition of each; 0 if it has others."""
    if isinstance(query, BoundedSum):
        return int(query.bounds == (0, 1))
    if isinstance(query, LinearWorkload):
        return 3 * int(np.asarray(query.matrix).sum(axis=0).max() == 1)  # none is counted twice
    return {Count: 1, Histogram: 3}.get(type(query), 0)


def test_every_reader_takes_the_releases_of_its_query_and_refuses_all_others_by_name() -> None:
    fitting = {"binomial": 1, "goodness": 3}
    taken, failures = 0, []
    releases = [(query, released(query, data)) for query, data in DATA]
    for number, (own, read) in enumerate(READERS):
        for query, release in releases:
            assert release.query is query
            code = read.__code__.co_names if hasattr(read, "__code__") else ()
            kind = "binomial" if {"binomial_test", "proportion_interval"} & set(code) else "goodness"
            if own is not None:
                expected = query is own
            elif "t_test" in code:
                expected = isinstance(query, Variance)
            elif "independence_test" in code:
                expected = isinstance(query, ContingencyTable)
            else:
                expected = counts(query) == fitting[kind]
            refusal = ""
            try:
                read(release)
            except ParameterError as error:
                refusal = str(error)
            found = not refusal
            assert found or refusal.startswith(("release must", "query must", "mean must"))
            taken += found
            if found != expected:
                failures.append((number, query, found))
    assert not failures
    assert taken > len(READERS)


def test_bounds_of_another_query_are_refused() -> None:
    wide = released(VARIANCE, np.full(200, 49.5))
    with pytest.raises(ParameterError, match=r"must be of this query, Variance\(bounds=\(0.0, 1.0\)\), "):
        Variance(bounds=(0, 1)).mean_interval(wide)
    with pytest.raises(ParameterError, match=r"but it is of Variance\(bounds=\(0.0, 100.0\)\); use"):
        t_test(wide, query=Variance(bounds=(0, 1)), mean=0.5)
    with pytest.raises(ParameterError, match="release must be of this query"):
        t_test(wide, released(Variance(bounds=(0, 1)), ONES))


@cases(
    "same",
    [
        (VARIANCE, Variance(bounds=(0.0, 100.0))),
        (LinearWorkload(matrix=np.eye(3)), LinearWorkload(matrix=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])),
        (VARIANCE.after(lambda data: data[:20], stability=1), VARIANCE),
        (VARIANCE, VARIANCE.after(stability=Stability.rows(3))),
    ],
)
def test_an_equal_query_and_one_before_a_transformation_are_the_same(same: tuple[Query, Query]) -> None:
    asked, other = same
    data = np.arange(3) if isinstance(asked, LinearWorkload) else ONES
    release = Laplace.for_query(asked, epsilon=1.0).release(data, rng=1)
    assert other.check_release(release) is release
    assert np.array_equal(np.asarray(other.estimate(release)), np.asarray(asked.estimate(release)))


def test_noise_that_names_no_query_must_fit_in_entries_and_step() -> None:
    sums, query = VARIANCE.steps(ONES), VARIANCE
    noise = Gaussian.for_query(query, epsilon=1.0, delta=1e-6).mechanism
    bare = noise.release(sums, rng=1)
    assert bare.query is None
    with pytest.raises(ParameterError, match="but it has other entries, or another step"):
        query.estimate(bare)  # in steps, not in records
    counted = Laplace.calibrated(sensitivity=1, epsilon=1.0).release(np.array([3, 4, 5]), rng=1)
    assert CELLS.estimate(counted).shape == (3,)
    with pytest.raises(ParameterError, match="other entries"):
        CELLS.estimate(Laplace.calibrated(sensitivity=1, epsilon=1.0).release(np.array([3, 4]), rng=1))
    with pytest.raises(ParameterError, match="got a value of type float"):
        CELLS.estimate(math.pi)  # type: ignore[arg-type]


def test_a_long_query_is_shown_by_its_class() -> None:
    wide = LinearWorkload(matrix=np.arange(1.0, 65.0).reshape(8, 8))
    with pytest.raises(ParameterError, match="be of this query, a LinearWorkload, but it is of Count"):
        wide.estimate(released(Count(), ONES))
