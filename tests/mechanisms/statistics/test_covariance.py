"""Variance and covariance: one record counts for one, estimates are the data's, intervals hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Covariance, Gaussian, Laplace, LatticeRelease, Mean, Norm, Variance
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only
from tests.mechanisms.statistics.coverage import covers

ONE = 1 << 24
REALS = st.floats(allow_nan=True, allow_infinity=True)


@settings(max_examples=100)
@given(REALS, REALS, st.sampled_from([(0.0, 1.0), (-5.0, 1e-3), (1e-200, 1e100)]))
def test_every_record_adds_one_in_whole_parts(x: float, y: float, bounds: tuple[float, float]) -> None:
    for query, record in (
        (Variance(bounds=bounds), np.array([x])),
        (Covariance(bounds=(bounds, (0.0, 1.0))), np.array([[x, y]])),
    ):
        steps = query.steps(record)
        assert steps.sum() == ONE
        assert (steps >= 0).all()


def test_whole_data_sums_its_records() -> None:
    rng = np.random.default_rng(1)
    data = rng.random((500, 2))
    for query, columns in (
        (Variance(bounds=(0.0, 1.0)), data[:, 0]),
        (Covariance(bounds=((0.0, 1.0),) * 2), data),
    ):
        one_by_one = sum(query.steps(columns[i : i + 1]) for i in range(500))
        assert (query.steps(columns) == one_by_one).all()


@pytest.mark.parametrize("relation", list(Neighboring))
def test_sensitivities(relation: Neighboring) -> None:
    expected = {Norm.L1: 1.0, Norm.L2: 1.0, Norm.LINF: 1.0}
    if relation is Neighboring.REPLACE_ONE:
        expected = {Norm.L1: 2.0, Norm.L2: math.sqrt(2), Norm.LINF: 1.0}
    for query in (Variance(bounds=(0, 1)), Covariance(bounds=((0, 1), (0, 1)))):
        for norm, bound in expected.items():
            assert query.sensitivity(relation, norm) == pytest.approx(bound, rel=1e-12)


def test_estimates_are_those_of_the_data() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(3, 2, 200_000)
    y = 0.5 * x + rng.normal(0, 1, 200_000)
    variance = Laplace.for_query(Variance(bounds=(-9.0, 15.0)), epsilon=1.0)
    estimate = variance.query.estimate(variance.release(x, rng=3))
    assert estimate == pytest.approx(np.var(np.clip(x, -9, 15)), rel=1e-2)
    query = Covariance(bounds=((-9.0, 15.0), (-9.0, 15.0)))
    covariance = Gaussian.for_query(query, epsilon=1.0, delta=1e-6)
    estimate = query.estimate(covariance.release(np.stack([x, y], axis=1), rng=3))
    assert estimate == pytest.approx(np.cov(x, y)[0, 1], rel=2e-2)


@cases("size", [0, 1, 12, 300])
@cases("spread", [0.0, 0.1, 0.5])
def test_intervals_hold_the_variance(size: int, spread: float) -> None:
    rng = np.random.default_rng(size)
    data = np.clip(0.5 + spread * rng.choice([-1.0, 1.0], size), 0, 1)
    measurement = Laplace.for_query(Variance(bounds=(0.0, 1.0)), epsilon=1.0)
    query = measurement.query
    truth = float(np.var(data)) if size else None
    released = []
    for _ in range(120):
        release = measurement.release(data, rng)
        interval = query.estimate_interval(release, 0.9)  # type: ignore[attr-defined]
        assert 0 <= interval.lower <= query.estimate(release) * (1 + 1e-9) + 1e-9
        assert query.estimate(release) <= interval.upper + 1e-9 or interval.upper == 0.25
        released.append((query.estimate(release), *interval[:2]))
    if truth is not None:
        accepts_only(covers(truth, released, 0.9), 1, point=0)


def test_intervals_hold_the_variance_of_records_that_are_rounded() -> None:
    measurement = Laplace.for_query(Variance(bounds=(0.0, 1.0)), epsilon=1e8)
    for one, other in ((0.3, 0.3), (0.1, 0.7), (1 / 3, 0.9), (0.2, 0.21)):
        release = measurement.release(np.tile([one, other], 50_000), rng=1)
        truth = ((one - other) / 2) ** 2
        lower, upper, _ = Variance(bounds=(0.0, 1.0)).estimate_interval(release, 0.999)
        assert lower <= truth <= upper
        assert upper - lower < 5e-7


@cases("share", [0.02, 0.5])
@cases("size", [3, 100, 5000])
def test_the_population_mean_is_held(share: float, size: int) -> None:
    rng = np.random.default_rng(size)
    measurement = Laplace.for_query(Variance(bounds=(-1.0, 3.0)), epsilon=1.0)
    query, released = Variance(bounds=(-1.0, 3.0)), list[tuple[float, float, float]]()
    for _ in range(120):
        release = measurement.release(np.where(rng.random(size) < share, 3.0, -1.0), rng)
        lower, upper, _ = query.mean_interval(release, 0.9)
        assert -1 <= lower <= upper <= 3
        released.append((upper, lower, upper))
    accepts_only(covers(4 * share - 1, released, 0.9), 1, upper_tenth=1 / 10)
    if size == 5000 and share == 0.5:
        widths = [upper - lower for _, lower, upper in released]
        assert np.mean(widths) < 8 * 4 * math.sqrt(share * (1 - share) / size)


UNIT = Variance(bounds=(0.0, 1.0))
NOISY = Laplace.for_query(UNIT, epsilon=1.0)


@settings(max_examples=60)
@given(st.lists(st.floats(0, 100), min_size=6, max_size=6), st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_no_point_of_the_box_has_a_variance_outside(ends: list[float], at: list[float]) -> None:
    lower, upper = np.minimum(ends[:3], ends[3:]), np.maximum(ends[:3], ends[3:])

    def of_sums(_: LatticeRelease, level: float) -> Any:
        assert level > 0.9
        return lower, upper, True

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LatticeRelease, "interval", of_sums)
        interval = UNIT.estimate_interval(NOISY.release(np.zeros(1), rng=1), 0.9)
    a, b, c = lower + np.array(at) * (upper - lower)
    if a + b + c > 1e-100:
        truth = (a * c - b * b / 4) / (a + b + c) ** 2
        assert interval.lower <= max(truth, 0) + 1e-12
        assert truth <= interval.upper + 1e-12


def test_no_data_and_odd_data_are_answered() -> None:
    measurement = Laplace.for_query(Variance(bounds=(0.0, 2.0)), epsilon=1.0)
    for data in (np.zeros(0), np.array([math.nan, math.inf, -math.inf, 1e308])):
        release = measurement.release(data)
        assert 0 <= measurement.query.estimate(release) <= 1
    query = Covariance(bounds=((0.0, 1.0), (0.0, 1.0)))
    release = Laplace.for_query(query, epsilon=1.0).release(np.zeros((0, 2)))
    assert abs(query.estimate(release)) <= 0.25


@cases(
    ("kind", "bounds", "error"),
    [
        (Variance, (1, 1), ParameterError),
        (Variance, (2, 1), ParameterError),
        (Variance, (1e-300, 2e-300), ParameterError),
        (Variance, (2**53, 2**53 + 1), ParameterError),
        (Mean, (2**53, 2**53 + 1), ParameterError),
        (Variance, (0, math.inf), UnboundedSensitivity),
        (Variance, (-1e200, 1e200), ParameterError),
        (Variance, "01", ParameterError),
        (Covariance, (0, 1), ParameterError),
        (Covariance, ((0, 1), (1, 0)), ParameterError),
        (Covariance, ((0, 1),), ParameterError),
    ],
)
def test_bad_bounds_are_refused(kind: Any, bounds: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="bounds must"):
        kind(bounds=bounds)


def test_data_of_another_shape_is_refused() -> None:
    with pytest.raises(ParameterError, match="data must"):
        Variance(bounds=(0, 1)).steps(np.zeros((2, 2)))
    with pytest.raises(ParameterError, match="data must"):
        Covariance(bounds=((0, 1), (0, 1))).steps(np.zeros(4))


@pytest.mark.parametrize(
    ("sums", "covariance"),
    [
        ((0.0, 0.0, 0.0, 0.0), 0.0),
        ((-3.0, -0.5, -(2.0**-24), -8.0), 0.0),
        ((0.25, 0.0, 0.0, 0.25), 0.25),
        ((2.0**-24, 0.0, 0.0, 2.0**-24), 0.25),
        ((0.0, 4.0, 4.0, 0.0), -0.25),
        ((1.0, 1.0, 1.0, 1.0), 0.0),
        ((5.0, -7.0, 1.0, 2.0), 10 / 64),
        ((3.0, 1.0, 2.0, 6.0), 16 / 144),
    ],
)
def test_the_covariance_is_that_of_the_sums_that_are_left(sums: tuple[float, ...], covariance: float) -> None:
    # In sums below 0 only the noise is left, and where there is nothing else, no data.
    for scale, bounds in ((1.0, ((0.0, 1.0), (-2.0, -1.0))), (6.0, ((0.0, 2.0), (-1.0, 2.0)))):
        query = Covariance(bounds=bounds)
        noisy = Laplace.for_query(query, epsilon=1.0).release(np.zeros((1, 2)), rng=1)
        estimate = query.estimate(replace(noisy, steps=np.array(sums) * 2**24))
        assert estimate == pytest.approx(scale * covariance, rel=1e-15, abs=0.0)
