"""Measurements: the query's sensitivity is the mechanism's, and estimates cover the truth."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import (
    BoundedSum,
    Count,
    Gaussian,
    Histogram,
    Laplace,
    LinearWorkload,
    LipschitzMap,
    Mean,
    Measurement,
    Norm,
    Query,
    Stability,
)
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_least

PUBLIC_SIZE = Mean(bounds=(0.0, 8.0), n=1000)  # it refuses add/remove
QUERIES: list[Query] = [
    Count(),
    BoundedSum(bounds=(0, 10)),
    BoundedSum(bounds=(-0.5, 2.0)),
    PUBLIC_SIZE,
    Mean(bounds=(0.0, 8.0)),
    Histogram(edges=(0.0, 1.0, 2.0)),
    LinearWorkload(matrix=[[1.0, -2.0], [0.25, 3.0], [1.0, 1.0]]),
    LipschitzMap(query=Count(), function=np.sqrt, constant=1, norm=Norm.L2),
    Count().after(stability=Stability.rows(3)),
]


def exact_of(shift_norm: Fraction, query: Query) -> float:
    return float(shift_norm * query.step)


def relation_of(query: Mean) -> Neighboring:
    return Neighboring.ADD_REMOVE if query.n is None else Neighboring.REPLACE_ONE


@cases(
    ("query", "neighboring"),
    [
        (query, n)
        for query in QUERIES
        for n in Neighboring
        if n is not Neighboring.ADD_REMOVE or query is not PUBLIC_SIZE
    ],
    ids=lambda value: str(value) if isinstance(value, Neighboring) else type(value).__name__,
)
def test_for_query_meets_the_request_with_the_right_norm(query: Query, neighboring: Neighboring) -> None:
    laplace = Laplace.for_query(query, epsilon=0.5, neighboring=neighboring)
    assert laplace.privacy_loss.epsilon(0.0) <= 0.5
    assert laplace.neighboring is laplace.privacy_loss.neighboring is neighboring
    # Scale = L1 sensitivity / epsilon, in the query's own unit.
    release = laplace.release(np.array([0, 1, 1]), rng=1)
    scale = float(Fraction(laplace.mechanism.scale) * query.step)  # type: ignore[attr-defined]
    assert scale == pytest.approx(query.sensitivity(neighboring, Norm.L1) / 0.5, rel=1e-8)
    assert release.stddev == pytest.approx(2**0.5 * scale, rel=0.1)
    gaussian = Gaussian.for_query(query, epsilon=0.5, delta=1e-6, neighboring=neighboring)
    assert gaussian.privacy_loss.epsilon(1e-6) <= 0.5
    stddev = float(Fraction(gaussian.mechanism.stddev) * query.step)  # type: ignore[attr-defined]
    # Analytic calibration at sensitivity 1; zCDP, where it is all that is known, takes up to a tenth more.
    ratio = stddev / (8.058 * query.sensitivity(neighboring, Norm.L2))
    assert 0.999 < ratio < 1.15


def test_one_norm_is_used_where_it_is_smaller() -> None:
    mean = Laplace.for_query(Mean(bounds=(0.0, 1.0)), epsilon=1.0)
    assert mean.mechanism.scale == 2**24  # type: ignore[attr-defined]  # not twice that, though two entries move
    replaced = Gaussian.for_query(Mean(bounds=(0.0, 1.0)), epsilon=1.0, delta=1e-6)
    assert replaced.mechanism.l2 == 2**24  # type: ignore[attr-defined]


def test_gaussian_noise_for_a_query_needs_a_delta() -> None:
    with pytest.raises(ParameterError, match=r"delta must be strictly .*, got 0\.0; use Laplace"):
        Gaussian.for_query(Count(), epsilon=1.0)


@cases(
    "mechanism",
    [
        Laplace(sensitivity=1, scale=1),
        Laplace(sensitivity=1, scale=1, l0=2, neighboring=Neighboring.ADD_REMOVE),
        Laplace(l1=1, scale=1, neighboring=Neighboring.REPLACE_ONE),
        Gaussian(l2=1, stddev=1, neighboring=Neighboring.REPLACE_ONE),
        Gaussian(sensitivity=1, stddev=1, neighboring=Neighboring.REPLACE_ONE),
    ],
    ids=repr,
)
def test_too_small_a_sensitivity_is_refused(mechanism: Laplace | Gaussian) -> None:
    query = Histogram(categories=(0, 1, 2))
    if mechanism.neighboring is Neighboring.ADD_REMOVE:
        query_of_two_rows = query.after(stability=Stability.rows(2))
        with pytest.raises(ParameterError, match="mechanism must cover"):
            Measurement(query=query_of_two_rows, mechanism=mechanism)
        assert Measurement(query=query, mechanism=mechanism).privacy_loss == mechanism.privacy_loss
    else:
        with pytest.raises(ParameterError, match="mechanism must cover"):
            Measurement(query=query, mechanism=mechanism)


def test_noise_for_reals_is_refused() -> None:
    with pytest.raises(ParameterError, match="mechanism must work on whole numbers"):
        Measurement(query=Count(), mechanism=Laplace(sensitivity=1.0, scale=1))


@cases("query", QUERIES, ids=lambda query: type(query).__name__)
def test_answers_are_lattice_points_near_the_truth(query: Query) -> None:
    data = np.array([0, 1, 1, 0, 1])
    relation = Neighboring.REPLACE_ONE if query is PUBLIC_SIZE else Neighboring.ADD_REMOVE
    measurement = Laplace.for_query(query, epsilon=2.0, neighboring=relation)
    release = measurement.release(data, rng=11)
    truth = query(data)
    assert np.all(np.abs(release.value - truth) <= 40 * release.stddev)
    assert np.shape(release.value) == np.shape(truth)
    steps = np.atleast_1d(release.value) / float(query.step)
    assert np.allclose(steps, np.rint(steps), rtol=1e-12, atol=1e-6)


def hits_of(query: Mean, measure: Callable[[np.ndarray], object], data: np.ndarray) -> int:
    truth = float(np.clip(data, *query.bounds).mean())
    hits, noisy = 0, Laplace.for_query(query, epsilon=0.05, neighboring=relation_of(query))
    for seed in range(150):
        release = noisy.release(data, rng=seed)
        lower, upper, _ = query.estimate_interval(release, 0.9)
        hits += lower <= truth <= upper
        assert query.bounds[0] <= lower <= query.estimate(release) <= upper <= query.bounds[1]
    return hits


@pytest.mark.parametrize("n", [None, 10**5])
def test_intervals_hold_the_mean_of_records_that_are_rounded(n: int | None) -> None:
    for value in (0.3, 1 / 3, 0.1, 0.77):
        # So little noise that each record's rounding, all to one side, exceeds it.
        query = Mean(bounds=(0.0, 1.0), n=n)
        mean = Laplace.for_query(query, epsilon=1e7, neighboring=relation_of(query))
        release = mean.release(np.full(10**5, value), rng=1)
        lower, upper, _ = mean.query.estimate_interval(release, 0.999)  # type: ignore[attr-defined]
        assert lower <= value <= upper
        assert upper - lower < 1e-7


@pytest.mark.parametrize("n", [None, 300])
def test_mean_intervals_cover(n: int | None) -> None:
    data = np.random.default_rng(1).uniform(-1, 9, 300)
    query = Mean(bounds=(0.0, 8.0), n=n)
    accepts_only(at_least(hits_of(query, query, data), 150), 0.9, always=1.0)


def test_mean_of_nothing_is_an_answer() -> None:
    query = Mean(bounds=(2.0, 4.0))
    for seed in range(20):
        release = Laplace.for_query(query, epsilon=1.0).release(np.array([]), rng=seed)
        assert 2.0 <= query.estimate(release) <= 4.0
        assert (
            query.estimate_interval(release)[:2] == (2.0, 4.0)
            or query.estimate_interval(release).lower >= 2.0
        )


def test_private_mean_is_accurate() -> None:
    data = np.random.default_rng(2).uniform(0, 100, 100_000)
    query = Mean(bounds=(0.0, 100.0))
    release = Laplace.for_query(query, epsilon=1.0).release(data, rng=3)
    # Two sums with noise of standard deviation 1.4 beside 50,000: an error of 0.01 is 70 standard errors.
    assert query.estimate(release) == pytest.approx(data.mean(), abs=0.01)
