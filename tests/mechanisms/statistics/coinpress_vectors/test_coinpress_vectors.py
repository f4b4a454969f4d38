"""CoinPress for vectors: sensitivities by search, costs, accuracy, odd data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import CoinPressCovariance, CoinPressVectorMean, Gaussian, Norm
from sfumato.mechanisms.statistics.coinpress_vectors.clipped_moments import ClippedMoments
from sfumato.mechanisms.statistics.coinpress_vectors.stepwise_moments import StepwiseMoments
from sfumato.privacy.loss import compose
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases

PRIVACY: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def made(order: Any, columns: int, factors: Any = 0.5) -> ClippedMoments:
    return ClippedMoments(columns=columns, order=order, center=(1.0,) * columns, factors=factors)


def records(columns: int) -> np.ndarray:
    """Far along axes and diagonals, within the ball, odd ones."""
    rng = np.random.default_rng(columns)
    found = [sign * 1e9 * row for sign in (1, -1) for row in np.eye(columns)]
    found += [np.ones(columns) * 1e9, np.full(columns, np.nan), np.full(columns, np.inf), -np.ones(columns)]
    found += [rng.normal(size=columns) * size for size in (0.5, 2.0, 1e300, 1e307)]
    return np.array(found)


@cases("neighboring", list(Neighboring))
@cases("order", [1, 2])
@cases("columns", [1, 2, 7])
def test_records_move_the_sums_by_no_more_than_is_claimed(neighboring: Any, order: Any, columns: int) -> None:
    query = made(order, columns)
    bound, points = query.shift(neighboring), records(columns)
    moves = [query.steps(point[None]) for point in points]
    if neighboring is Neighboring.REPLACE_ONE:
        moves = [one - other for one in moves for other in moves]
    exact = np.array(moves, dtype=object)
    assert max((move**2).sum() for move in exact) <= bound.l2_squared
    assert max(np.abs(move).sum() for move in exact) <= bound.l1
    assert max(np.abs(move).max() for move in exact) <= bound.linf
    if columns > 1 or order == 1:
        assert max((move**2).sum() for move in exact) > 0.99 * bound.l2_squared
    assert query.entries == len(moves[0])


@cases("order", [1, 2])
def test_a_record_adds_the_same_whatever_the_others(order: Any) -> None:
    rng = np.random.default_rng(1)
    huge = np.array([[1e200, -1e200, 1e-200], [1e308, 1e308, -1e308], [3.0, 1e250, -1e250]])
    for factors in (0.3, rng.normal(size=(3, 3)), huge):
        query = made(order, 3, factors)
        for count in (1, 2, 9, 33, 100):
            data = np.concatenate([rng.normal(size=(count, 3)) * 3, records(3)])
            alone = sum(query.steps(row[None]) for row in data)
            np.testing.assert_array_equal(query.steps(data), alone)


def test_the_sums_are_those_of_clipped_vectors() -> None:
    data = np.random.default_rng(2).normal(size=(50, 3))
    factors = np.array([[0.5, 0.2, 0.0], [0.0, 0.4, 0.1], [0.1, 0.0, 0.3]])
    z = (data - 1) @ factors.T
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1)
    assert made(1, 3, factors)(data) == pytest.approx(z.sum(axis=0), abs=1e-4)
    triangle = np.triu_indices(3)
    weights = np.where(triangle[0] == triangle[1], 1, math.sqrt(2))
    assert made(2, 3, factors)(data) == pytest.approx((z.T @ z)[triangle] * weights, abs=1e-4)
    assert 1 <= made(1, 3).sensitivity(Neighboring.ADD_REMOVE, Norm.L2) < 1 + 1e-5


def mechanisms(relation: Neighboring, steps: int | None = None) -> list[StepwiseMoments]:
    given: dict[str, Any] = {"columns": 3, "neighboring": relation, "steps": steps}
    return [
        CoinPressVectorMean.calibrated(**PRIVACY, **given, radius=1e4, stddev=1.0),
        CoinPressCovariance.calibrated(**PRIVACY, **given, stddevs=(0.5, 50.0)),
    ]


@cases("relation", list(Neighboring))
@cases("steps", [1, 3])
def test_what_a_release_measures_costs_what_is_stated(
    relation: Neighboring, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = StepwiseMoments._measurement
    for mechanism in mechanisms(relation, steps):
        loss, spent = mechanism.privacy_loss, []

        def measured(self: Any, query: Any, times: float) -> Any:
            spent.append(measure(self, query, times).privacy_loss)  # noqa: B023
            return measure(self, query, times)

        assert 1 - 1e-3 < loss.epsilon(1e-6) <= 1 + 1e-6
        with monkeypatch.context() as patched:
            patched.setattr(StepwiseMoments, "_measurement", measured)
            release = mechanism.release(np.random.default_rng(3).normal(size=(200, 3)), 1)
        paid = steps + (relation is not Neighboring.REPLACE_ONE)
        assert compose(spent[:paid]).epsilon(1e-6) == pytest.approx(loss.epsilon(1e-6), rel=1e-9)
        assert release.loss == loss


def test_the_mean_is_found_in_a_wide_ball() -> None:
    rng, errors = np.random.default_rng(4), np.zeros((8, 3))
    press = CoinPressVectorMean.calibrated(**PRIVACY, columns=10, radius=1e4, stddev=1.0)
    assert press.steps == 6
    once = CoinPressVectorMean.calibrated(**PRIVACY, columns=10, radius=1e4, stddev=1.0, steps=1)
    for run in errors:
        data = rng.normal(700, 1, (2000, 10))
        found = [press.release(data, rng).value, once.release(data, rng).value, data.mean(axis=0)]
        run[:] = [np.linalg.norm(each - 700) for each in found]
    ours, single, exact = errors.mean(axis=0)
    assert ours < 2 * exact
    assert single > 100 * exact


@cases("relation", [Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE])
def test_the_covariance_is_found_from_wide_bounds(relation: Neighboring) -> None:
    rng, deviations = np.random.default_rng(5), np.array([1.5, 6.0, 40.0])
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    truth = turn @ np.diag(deviations**2) @ turn.T
    whiten = turn / deviations
    data = (rng.normal(size=(60_000, 3)) * deviations) @ turn.T + 7.0
    errors = []
    for steps in (None, 1):
        mechanism = CoinPressCovariance.calibrated(
            **PRIVACY, columns=3, stddevs=(1.0, 100.0), center=(7.0,) * 3, steps=steps, neighboring=relation
        )
        found = mechanism.release(data, rng).value
        np.testing.assert_array_equal(found, found.T)
        errors.append(np.linalg.norm(whiten.T @ (found - truth) @ whiten))
    assert errors[0] < 0.1
    assert errors[1] > 1


@cases("relation", list(Neighboring))
def test_odd_data_is_answered_within_the_bounds(relation: Neighboring) -> None:
    odd = [
        np.zeros((0, 3)),
        np.full((4, 3), np.nan),
        np.full((900, 3), np.inf),
        records(3),
        np.zeros((5000, 3)),
    ]
    for mechanism in mechanisms(relation):
        for data in odd:
            release = mechanism.release(data, 1)
            assert release.loss == mechanism.privacy_loss
            if isinstance(mechanism, CoinPressVectorMean):
                assert np.linalg.norm(release.value) <= 1e4 * (1 + 1e-9)
            else:
                values = np.linalg.eigvalsh(release.value)
                assert 0.2 < values[0] <= values[-1] < 2501


@cases(
    ("kind", "change", "message"),
    [
        (CoinPressVectorMean, {"columns": 0}, "columns must"),
        (CoinPressVectorMean, {"columns": 257}, "columns must be at most"),
        (CoinPressVectorMean, {"radius": 0.0}, "radius must"),
        (CoinPressVectorMean, {"radius": 1e200}, "radius must be from"),
        (CoinPressVectorMean, {"stddev": -1.0}, "stddev must"),
        (CoinPressVectorMean, {"center": (1.0,)}, "center must hold 2"),
        (CoinPressVectorMean, {"noise": 0}, "noise must"),
        (CoinPressVectorMean, {"steps": 0}, "steps must"),
        (CoinPressCovariance, {"stddevs": (2.0, 1.0)}, "stddevs must"),
        (CoinPressCovariance, {"stddevs": 3.0}, "stddevs must"),
        (CoinPressCovariance, {"stddevs": (1e-9, 1e9)}, "stddevs must"),
        (CoinPressCovariance, {"center": "no"}, "center must"),
    ],
)
def test_bad_parameters_are_refused(kind: Any, change: dict[str, Any], message: str) -> None:
    bounds: dict[str, Any] = {"stddevs": (0.1, 1.0)}
    if kind is CoinPressVectorMean:
        bounds = {"radius": 1.0, "stddev": 1.0}
    with pytest.raises(ParameterError, match=message):
        kind(**{"columns": 2, "noise": 3} | bounds | change)


def test_data_of_another_shape_is_refused() -> None:
    for mechanism in mechanisms(Neighboring.ADD_REMOVE):
        for data in (np.zeros(3), np.zeros((3, 2)), {1.0: 2.0}):
            with pytest.raises(ParameterError, match="data must"):
                mechanism.release(data)
    assert isinstance(Gaussian.for_query(made(1, 2), **PRIVACY).query, ClippedMoments)
