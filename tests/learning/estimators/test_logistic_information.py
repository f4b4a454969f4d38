"""Errors of logistic coefficients: what a row adds, the price, and how often intervals hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms.statistics.upper_triangle import triangle
from tests.chance import accepts_only, at_least
from tests.run_time import run_time

if run_time(__name__):
    from sfumato.learning import LogisticRegression
    from sfumato.learning.estimators.logistic_information import LogisticInformation, information_part
    from sfumato.learning.estimators.objective_perturbation import ObjectivePerturbation
    from sfumato.learning.estimators.vector_sums import VectorSum, planned
    from sfumato.numerics.randomness.source import SimulatedSource

TRUTH = np.array([-2.0, 0.4, -0.1])


def model(**given: Any) -> Any:
    settings = {"bounds": (0, 10), "classes": [False, True], "solver": "objective", "random_state": 1}
    return LogisticRegression(**{**settings, **given})


def sample(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    features = np.column_stack([rng.uniform(0, 10, n), rng.normal(5, 2, n).clip(0, 10)])
    return features, rng.random(n) < 1 / (1 + np.exp(-(TRUTH[0] + features @ TRUTH[1:])))


def test_no_row_adds_more_than_its_part_states() -> None:
    rng, size = np.random.default_rng(1), 4
    part = information_part(size)
    i, j, weight = triangle(size)
    total, worst = VectorSum(part=part, stddev=1), 0.0
    rows = np.vstack([rng.choice([0.0, 1.0], (40, 3)), rng.random((40, 3))])
    for row in np.column_stack([rows, np.ones(len(rows))]) * rng.choice([1.0, 0.3], (80, 1)):
        z = np.append(2 * row[:-1] - row[-1], row[-1])
        moved = total.total((z[i] * z[j] * weight / 4)[None])[0].astype(object)
        assert (moved**2).sum() <= part.max_squared_norm
        worst = max(worst, float((moved**2).sum()))
        assert np.abs(moved).max() > 0  # no row was left out
    assert worst > 0.999 * part.max_squared_norm


def test_without_noise_they_are_those_of_maximum_likelihood() -> None:
    rng = np.random.default_rng(2)
    features, answers = sample(4000, rng)
    fitted = model(epsilon=1e5, delta=1e-3, error_share=0.5).fit(features, answers)
    design = np.column_stack([np.ones(4000), features])
    found = TRUTH.copy()
    for _ in range(20):
        chances = 1 / (1 + np.exp(-design @ found))
        information = (design * (chances * (1 - chances))[:, None]).T @ design
        found = found + np.linalg.solve(information, design.T @ (answers - chances))
    errors = fitted.coefficient_errors(draws=4999, rng=3)
    assert (errors.lower + errors.upper) / 2 == pytest.approx(found, abs=2e-3)
    assert errors.standard_errors == pytest.approx(np.sqrt(np.diag(np.linalg.inv(information))), rel=0.05)
    assert (errors.upper - errors.lower) / errors.standard_errors == pytest.approx(np.full(3, 3.92), rel=0.06)


def test_the_share_is_in_the_price_and_in_nothing_more() -> None:
    features, answers = sample(200, np.random.default_rng(4))
    for share in (0.0, 0.3):
        loss = model(error_share=share).fit(features, answers).privacy_loss_
        assert 0.9 < loss.epsilon(1e-6) <= 1.0
    _, information = planned([information_part(3)], epsilon=0.3, delta=0.3 * 1e-6)
    solver = ObjectivePerturbation.calibrated(epsilon=0.7, delta=0.7 * 1e-6, data_norm=math.sqrt(3))
    assert loss.epsilon(1e-6) == (solver.privacy_loss + information).epsilon(1e-6)


def test_intervals_hold_as_often_as_promised() -> None:
    rng, runs, held, found, errors = np.random.default_rng(5), 50, np.zeros(3), [], []
    for seed in range(runs):
        fitted = model(epsilon=2.0, error_share=0.2, random_state=seed).fit(*sample(2500, rng))
        one = fitted.coefficient_errors(0.7, draws=39, rng=rng)
        held += (one.lower <= TRUTH) & (one.upper >= TRUTH)
        found.append((one.lower + one.upper) / 2)
        errors.append(one.standard_errors)
    for hits in held:
        accepts_only(at_least(int(hits), runs), 0.7, too_narrow=0.995)
    assert (np.abs(np.mean(found, axis=0) - TRUTH) < 4 * np.std(found, axis=0) / math.sqrt(runs)).all()
    ratio = np.median(errors, axis=0) / np.std(found, axis=0)
    assert ((ratio > 0.7) & (ratio < 1.5)).all()


def test_what_noise_hides_has_infinite_intervals() -> None:
    for data in (sample(30, np.random.default_rng(6)), (np.zeros((0, 2)), np.zeros(0, bool))):
        errors = model(epsilon=0.5, error_share=0.1).fit(*data).coefficient_errors(draws=19, rng=1)
        assert np.isinf(errors.upper).all()
        assert np.isinf(errors.standard_errors).all()


def test_the_debiased_weights_solve_the_equations_without_ridge() -> None:
    rng = np.random.default_rng(7)
    rows = np.column_stack([rng.random((3000, 1)), np.ones(3000)])
    answers = rng.random(3000) < 0.4
    weights = np.zeros(2)
    for _ in range(50):  # the minimum with a ridge of 40 and no noise
        chances = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (chances - answers) + 40 * weights
        weights -= np.linalg.solve(
            (rows * (chances * (1 - chances))[:, None]).T @ rows + 40 * np.eye(2), slope
        )
    total = VectorSum(part=information_part(2), stddev=1)
    given = LogisticInformation.released(
        weights, rows, total, SimulatedSource(1), ridge=40.0, stddev=0.0, blur=0.0
    )
    left = rows.T @ (1 / (1 + np.exp(-rows @ given.debiased)) - answers)
    assert np.abs(left).max() < 0.1 * np.abs(40 * weights).max()
    assert given.informative


def test_what_makes_no_sense_is_refused() -> None:
    features, answers = sample(20, np.random.default_rng(8))
    with pytest.raises(ParameterError, match="error_share must be 0 but for two classes"):
        model(error_share=0.2, solver="descent").fit(features, answers)
    with pytest.raises(ParameterError, match="error_share must be 0 but for two classes"):
        model(error_share=0.2, classes=[0, 1, 2]).fit(features, answers.astype(int))
    with pytest.raises(ParameterError, match=r"error_share must be in \[0, 1\)"):
        model(error_share=1.0).fit(features, answers)
    with pytest.raises(ParameterError, match="error_share must be positive, but the fit had none"):
        model().fit(features, answers).coefficient_errors()
