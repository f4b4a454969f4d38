"""The density of the minimum by its formula, in one dimension, on neighbors; and what the solver finds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from sfumato.errors import ParameterError
from sfumato.learning.estimators.objective_perturbation import ObjectivePerturbation
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.privacy.calibration import analytic_gaussian_stddev
from tests.run_time import run_time

if run_time(__name__):
    from sfumato.learning.estimators.logistic_regression import LogisticRegression


def density(
    weights: np.ndarray, rows: np.ndarray, answers: np.ndarray, solver: Any, stddev: float
) -> np.ndarray:
    """The density of the exact minimum, from that of the linear term."""
    chances = expit(weights[:, None] * rows)
    linear = -((chances - answers) * rows).sum(axis=1) - solver.ridge * weights
    slope = (chances * (1 - chances) * rows**2).sum(axis=1) + solver.ridge
    return np.asarray(np.exp(-((linear / stddev) ** 2) / 2) / (stddev * math.sqrt(2 * math.pi)) * slope)


def distance(near: Any, grid: np.ndarray, solver: Any, stddev: float) -> float:
    p, q = (density(grid, rows, answers, solver, stddev) for rows, answers in near)
    step = grid[1] - grid[0]
    assert p.sum() * step == pytest.approx(1.0, abs=1e-6)
    return float(np.maximum(p - math.exp(solver.epsilon) * q, 0).sum() * step)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_no_neighbor_is_further_than_the_guarantee(epsilon: float) -> None:
    solver = ObjectivePerturbation.calibrated(epsilon=epsilon, delta=1e-3, data_norm=1.5)
    grid = np.linspace(-60, 60, 100_001) * solver.stddev / solver.ridge / 8
    worst = tight = 0.0
    rng = np.random.default_rng(1)
    for count in (0, 6):
        rows, answers = rng.uniform(-1.5, 1.5, count), rng.integers(0, 2, count).astype(float)
        for row, answer in ((1.5, 1.0), (-1.5, 1.0), (0.7, 0.0)):
            more = np.append(rows, row), np.append(answers, answer)
            for near in (((rows, answers), more), (more, (rows, answers))):
                worst = max(worst, distance(near, grid, solver, solver.stddev))
                tight = max(tight, distance(near, grid, solver, solver.stddev / 2))
    assert worst <= solver.delta
    assert tight > solver.delta  # half the noise would be caught


def test_the_gradient_is_as_small_as_is_paid_for() -> None:
    rng = np.random.default_rng(2)
    solver = ObjectivePerturbation.calibrated(epsilon=1.0, delta=1e-6, data_norm=1.0)
    for count, size in ((0, 1.0), (5, 100.0), (3000, 0.5)):
        rows = rng.normal(size=(count, 4)) * size
        rows /= np.maximum(1, np.sqrt((rows**2).sum(axis=1, keepdims=True)))
        answers = (rng.random(count) < 0.3).astype(float)
        linear = rng.normal(size=4) * solver.stddev
        weights = solver._minimum(rows, answers, linear)
        gradient = rows.T @ (expit(rows @ weights) - answers) + solver.ridge * weights + linear
        assert np.sqrt((gradient**2).sum()) <= 1e-6


def test_long_rows_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []

    def kept(self: object, rows: np.ndarray, *rest: object) -> np.ndarray:
        seen.append(rows)
        return np.zeros(2)

    monkeypatch.setattr(ObjectivePerturbation, "_minimum", kept)
    solver = ObjectivePerturbation.calibrated(epsilon=1.0, delta=1e-6, data_norm=2.0)
    solver.fit(np.array([[30.0, 40.0], [0.0, 0.0], [1.0, 1.0]]), np.ones(3, bool), SimulatedSource(1))
    assert np.sqrt((seen[0] ** 2).sum(axis=1)) == pytest.approx([2.0, 0.0, math.sqrt(2)], rel=1e-8)
    assert np.sqrt((seen[0] ** 2).sum(axis=1)).max() <= 2.0


def test_it_learns_and_says_what_it_cost() -> None:
    rng = np.random.default_rng(0)
    data = rng.uniform(0, 10, size=(3000, 2))
    answer = data[:, 0] > data[:, 1]
    model = LogisticRegression(
        1.0, 1e-6, bounds=(0, 10), classes=[False, True], solver="objective", random_state=1
    ).fit(data, answer)
    assert model.score(data, answer) > 0.95
    assert 0.97 < model.privacy_loss_.epsilon(1e-6) <= 1.0
    assert not model.float_safe_
    with pytest.raises(ParameterError, match=r"^solver must"):
        model.set_params(solver="newton").fit(data, answer)


def test_the_gradient_is_one_that_floats_can_tell() -> None:
    for norm, epsilon in ((1e12, 1.0), (1.0, 1e-7)):
        solver = ObjectivePerturbation.calibrated(epsilon=epsilon, delta=1e-6, data_norm=norm)
        rows, answers = np.random.default_rng(3).random((50, 3)), np.zeros(50)
        linear = np.array([1.0, -2.0, 3.0]) * solver.stddev
        weights = solver._minimum(rows, answers, linear)
        gradient = rows.T @ (expit(rows @ weights) - answers) + solver.ridge * weights + linear
        # The shift that the blur hides is that of the gradient that is left.
        near = (
            analytic_gaussian_stddev(
                sensitivity=2 * math.sqrt((gradient**2).sum()) / solver.ridge,
                epsilon=solver.near_epsilon,
                delta=solver.near_delta,
            )
            if gradient.any()
            else 0.0
        )
        assert near <= solver.blur
