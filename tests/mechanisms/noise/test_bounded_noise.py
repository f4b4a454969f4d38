"""Staircase, truncated and bounded Laplace: exact distributions against losses, calibration, edges."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import BoundedLaplace, Grid, Laplace, Staircase, TruncatedLaplace
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, rate


def divergence(one: dict[int, Any], other: dict[int, Any], epsilon: float) -> float:
    with mpmath.workdps(40):
        factor = mpmath.exp(mpmath.mpf(epsilon))
        return float(mpmath.fsum(max(mpmath.mpf(0), p - factor * other.get(k, 0)) for k, p in one.items()))


def pmf(mechanism: Staircase | TruncatedLaplace, reach: int) -> dict[int, mpmath.mpf]:
    """The noise's distribution by its definition."""

    def weight(k: int) -> mpmath.mpf:
        if isinstance(mechanism, TruncatedLaplace):
            return mpmath.exp(-mpmath.mpf(abs(k)) / mpmath.mpf(float(mechanism.scale)))
        distribution = mechanism.distribution
        fallen = 0 if abs(k) < distribution.first else 1 + (abs(k) - distribution.first) // distribution.width
        return mpmath.exp(-fallen * mpmath.mpf(float(mechanism.epsilon)))

    with mpmath.workdps(40):
        weights = {k: weight(k) for k in range(-reach, reach + 1)}
        total = mpmath.fsum(weights.values())
        return {k: w / total for k, w in weights.items()}


def moved(distribution: dict[int, Any], shift: int) -> dict[int, Any]:
    return {k + shift: p for k, p in distribution.items()}


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 8])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("gamma", [None, 0.01, 0.8])
def test_staircase_profile_is_that_of_the_worst_shift(
    sensitivity: int, epsilon: float, gamma: float | None
) -> None:
    mechanism = Staircase(sensitivity=sensitivity, epsilon=epsilon, gamma=gamma)
    distribution, loss = pmf(mechanism, 60 * sensitivity * math.ceil(1 / epsilon)), mechanism.privacy_loss
    assert loss.epsilon(0.0) == epsilon
    for share in (0.0, 0.5, 0.9):
        truths = [
            divergence(distribution, moved(distribution, d), share * epsilon)
            for d in range(1, sensitivity + 1)
        ]
        assert max(truths) <= loss.delta(share * epsilon) * (1 + 1e-12)
        assert loss.delta(share * epsilon) <= max(truths) * (1 + 1e-6) + 1e-9


def test_staircase_noise_is_least_at_the_default_gamma() -> None:
    def magnitude(gamma: float | None) -> float:
        distribution = pmf(Staircase(sensitivity=20, epsilon=3.0, gamma=gamma), 400)
        return float(mpmath.fsum(abs(k) * p for k, p in distribution.items()))

    best = magnitude(None)
    assert all(best <= magnitude(gamma) * (1 + 1e-3) for gamma in np.linspace(0.05, 1, 8))
    plain = Laplace.calibrated(sensitivity=20, epsilon=3.0)
    assert Staircase(sensitivity=20, epsilon=3.0).distribution.stddev < plain.distribution.stddev


def test_staircase_of_whole_numbers_that_move_by_one_is_laplace() -> None:
    stairs, plain = Staircase(sensitivity=1, epsilon=0.5), Laplace(sensitivity=1, scale=2)
    for k in range(10):
        assert stairs.distribution.pmf(k).lower == pytest.approx(plain.distribution.pmf(k).lower, rel=1e-12)


@cases("sensitivity", [1, 2, 5])
@cases(("scale", "limit"), [(2.0, 5), (1.0, 12), (8.0, 9)])
def test_truncated_loss_is_the_exact_one_at_its_epsilon(sensitivity: int, scale: float, limit: int) -> None:
    mechanism = TruncatedLaplace(sensitivity=sensitivity, scale=scale, limit=limit)
    distribution, loss = pmf(mechanism, limit), mechanism.privacy_loss
    for epsilon in (0.0, 0.5 * sensitivity / scale, sensitivity / scale, 3.0):
        truths = [
            divergence(distribution, moved(distribution, d), epsilon) for d in range(1, sensitivity + 1)
        ]
        assert max(truths) <= loss.delta(epsilon) * (1 + 1e-12)
    truth = divergence(distribution, moved(distribution, sensitivity), sensitivity / scale)
    assert loss.delta(sensitivity / scale) == pytest.approx(truth, rel=1e-9)


@cases("sensitivity", [1, 3])
@cases("weight", [Fraction(1, 5), Fraction(9, 10)])
@cases("limit", [4, 11])
def test_the_loss_of_two_limits_is_that_of_their_mixture(
    sensitivity: int, weight: Fraction, limit: int
) -> None:
    mechanism = TruncatedLaplace(sensitivity=sensitivity, scale=2, limit=limit, weight=weight)
    parts = [
        pmf(TruncatedLaplace(sensitivity=sensitivity, scale=2, limit=each), limit)
        for each in (limit - 1, limit)
    ]
    parts[0].update({limit: mpmath.mpf(0), -limit: mpmath.mpf(0)})
    inside = mpmath.fsum(parts[0].values())
    share = mpmath.mpf(weight.numerator) / weight.denominator
    mixture = {k: share * parts[0][k] / inside + (1 - share) * p for k, p in parts[1].items()}
    for k, p in mixture.items():
        assert mechanism.distribution.pmf(k).lower == pytest.approx(float(p), rel=1e-12)
    for moved_by in range(1, sensitivity + 1):
        for epsilon in (0.5 * sensitivity / 2, sensitivity / 2, 4.0):
            truth = divergence(mixture, moved(mixture, moved_by), epsilon)
            assert truth <= mechanism.privacy_loss.delta(epsilon) * (1 + 1e-12)
    truth = divergence(mixture, moved(mixture, sensitivity), sensitivity / 2)
    assert mechanism.privacy_loss.delta(sensitivity / 2) == pytest.approx(truth, rel=1e-9)
    assert mechanism.delta == pytest.approx(truth, rel=1e-9)


@cases("sensitivity", [1, 4, 0.3, Fraction(2, 3)])
@cases(("epsilon", "delta", "l0"), [(1.0, 1e-6, 1), (0.01, 1e-9, 3), (5.0, 0.01, 1), (1e-3, 0.1, 1)])
def test_truncated_calibration_is_tight(sensitivity: Any, epsilon: float, delta: float, l0: int) -> None:
    mechanism = TruncatedLaplace.calibrated(sensitivity=sensitivity, epsilon=epsilon, delta=delta, l0=l0)
    assert mechanism.privacy_loss.delta(epsilon) <= delta
    step = mechanism.grid.step
    shorter = Fraction(mechanism.limit) * (1 - Fraction(1, 10**6)) - step
    if shorter >= Fraction(mechanism.sensitivity) + step:
        tighter = TruncatedLaplace(
            sensitivity=sensitivity,
            scale=mechanism.scale,
            limit=shorter,
            l0=l0,
            grid=None if mechanism.integral else mechanism.grid,  # type: ignore[arg-type]
        )
        assert tighter.privacy_loss.delta(epsilon) > delta
    noise = np.asarray(mechanism.release(np.zeros(1000, np.int64 if mechanism.integral else float)).value)
    assert np.abs(noise).max() <= float(mechanism.limit) + float(step)


@cases("sensitivity", [1, 2, 7])
@cases("scale", [0.7, 3.0, 50.0])
@cases("width", [3, 8])
def test_bounded_loss_is_the_worst_ratio(sensitivity: int, scale: float, width: int) -> None:
    mechanism = BoundedLaplace(sensitivity=sensitivity, scale=scale, bounds=(-2, width - 2))
    distributions = []
    for centre in range(width + 1):
        weights = np.exp(-np.abs(np.arange(width + 1) - centre) / scale)
        distributions.append(np.log(weights / weights.sum()))
    worst = max(
        float(np.abs(distributions[i] - distributions[j]).max())
        for i, j in itertools.product(range(width + 1), repeat=2)
        if abs(i - j) <= sensitivity
    )
    assert worst * (1 - 1e-12) <= mechanism.privacy_loss.epsilon(0.0) <= worst * (1 + 1e-12)


@pytest.mark.parametrize(("sensitivity", "bounds"), [(1, (0, 10)), (0.5, (-1.0, 1.0)), (3, (0, 2))])
def test_bounded_calibration_is_tight_and_answers_stay_inside(
    sensitivity: Any, bounds: tuple[Any, Any]
) -> None:
    mechanism = BoundedLaplace.calibrated(sensitivity=sensitivity, epsilon=1.0, bounds=bounds)
    assert 1 - 1e-5 < mechanism.privacy_loss.epsilon(0.0) <= 1.0
    values: list[Any] = [bounds[0], bounds[1], 10**6, -(10**6)]
    if isinstance(sensitivity, float):
        values += [math.nan, math.inf, -math.inf]
    for value in values:
        release = mechanism.release(value)
        assert bounds[0] <= release.value <= bounds[1]
        assert isinstance(release.value, type(sensitivity))


@pytest.mark.parametrize("grid", [None, Grid(exponent=-2), Grid(exponent=-30)])
def test_bounds_that_are_no_lattice_points_are_not_passed(grid: Grid | None) -> None:
    mechanism = BoundedLaplace(sensitivity=0.5, scale=2.0, bounds=(0.1, 0.85), grid=grid)  # type: ignore[arg-type]
    # So flat a distribution has a quarter of its mass on either end of the coarse grid.
    drawn = [mechanism.release(value, rng=seed).value for seed in range(40) for value in (-1.0, 2.0)]
    assert 0.1 <= min(drawn) <= max(drawn) <= 0.85
    narrow = BoundedLaplace(sensitivity=0.5, scale=2.0**-20, bounds=(0.1, 0.85), grid=grid)  # type: ignore[arg-type]
    assert 0.1 <= narrow.release(-1.0).value <= narrow.release(2.0).value <= 0.85


def test_arrays_keep_their_shape_and_intervals_hold() -> None:
    for mechanism in (
        Staircase(sensitivity=2, epsilon=1.0),
        TruncatedLaplace(sensitivity=2, scale=2, limit=9),
    ):
        values = np.arange(60_000).reshape(200, 300)
        release = mechanism.release(values, rng=9)
        assert release.value.shape == (200, 300)
        lower, upper = release.interval(0.9)[:2]
        inside = int(((lower <= values) & (values <= upper)).sum())
        coverage = release.coverage(0.9)
        accepts_only(rate(inside, 60_000), coverage, wider=coverage + 0.02, narrower=coverage - 0.02)


BAD: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (Staircase, {"sensitivity": 1, "epsilon": 0}, ParameterError, "epsilon must"),
    (Staircase, {"sensitivity": 1, "epsilon": 2000.0}, ParameterError, "epsilon must be from"),
    (Staircase, {"sensitivity": 1, "epsilon": 1.0, "gamma": 0.0}, ParameterError, "gamma must"),
    (Staircase, {"sensitivity": 1, "epsilon": 1.0, "gamma": math.nan}, ParameterError, "gamma must"),
    (Staircase, {"sensitivity": math.inf, "epsilon": 1.0}, UnboundedSensitivity, "sensitivity must"),
    (TruncatedLaplace, {"sensitivity": 3, "scale": 1, "limit": 2}, ParameterError, "limit must be at least"),
    (TruncatedLaplace, {"sensitivity": 1, "scale": 1, "limit": 0}, ParameterError, "limit must"),
    (TruncatedLaplace, {"sensitivity": 1, "scale": -1, "limit": 3}, ParameterError, "scale must"),
    (
        TruncatedLaplace,
        {"sensitivity": 1, "scale": 1, "limit": 2**61},
        ParameterError,
        "limit must be at most",
    ),
    (Staircase, {"sensitivity": 2**50, "epsilon": 2.0**-30}, ParameterError, "epsilon must be at least"),
    (Staircase, {"sensitivity": 2**61, "epsilon": 1.0}, ParameterError, "epsilon must be at least"),
    (BoundedLaplace, {"sensitivity": 1, "scale": 1, "bounds": (3, 1)}, ParameterError, "bounds must"),
    (BoundedLaplace, {"sensitivity": 1, "scale": 1, "bounds": (3, 3)}, ParameterError, "bounds must"),
    (
        BoundedLaplace,
        {"sensitivity": 1, "scale": 1, "bounds": (0, math.inf)},
        UnboundedSensitivity,
        "bounds must",
    ),
    (BoundedLaplace, {"sensitivity": 0, "scale": 1, "bounds": (0, 1)}, ParameterError, "sensitivity must"),
    (BoundedLaplace, {"sensitivity": 1, "scale": 0.0, "bounds": (0, 1)}, ParameterError, "scale must"),
    (
        BoundedLaplace,
        {"sensitivity": 1, "scale": 1, "bounds": (0, 9), "grid": Grid(exponent=1), "integral": True},
        ParameterError,
        "grid must",
    ),
]


@cases(("kind", "parameters", "error", "message"), BAD)
def test_bad_parameters_are_refused(
    kind: Any, parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind(**parameters)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(ParameterError, match="delta must be strictly between 0 and 1, got 0"):
        TruncatedLaplace.calibrated(sensitivity=1, epsilon=1.0, delta=0.0)
    with pytest.raises(ParameterError, match="epsilon must"):
        BoundedLaplace.calibrated(sensitivity=1, epsilon=-1.0, bounds=(0, 1))
    with pytest.raises(ParameterError, match="one number"):
        BoundedLaplace(sensitivity=1, scale=1, bounds=(0, 9)).release(np.zeros(3, np.int64))


def test_the_relation_is_that_of_the_loss() -> None:
    for mechanism in (
        Staircase(sensitivity=1, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE),
        TruncatedLaplace(sensitivity=1, scale=1, limit=3, neighboring=Neighboring.REPLACE_ONE),
        BoundedLaplace(sensitivity=1, scale=1, bounds=(0, 3), neighboring=Neighboring.REPLACE_ONE),
    ):
        assert mechanism.neighboring is mechanism.privacy_loss.neighboring is Neighboring.REPLACE_ONE
