"""Two points and packings against the best mechanism, found by linear programming or written down."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from sfumato import bounds
from sfumato.errors import ParameterError
from sfumato.mechanisms import Laplace
from sfumato.privacy import ApproximateDP, Gaussian, PureDP


def least_failure(answers: list[float], distances: np.ndarray, epsilon: float, error: float) -> float:
    """Return the least worst-case failure of any mechanism on finite outputs, by linear programming."""
    outputs = np.array(sorted({a + shift for a in answers for shift in (-error / 2, 0, error / 2)}))
    count, size = len(answers), len(outputs)
    at = np.arange(count * size).reshape(count, size)
    rows, limits = [], []
    for i, j, y in itertools.product(range(count), range(count), range(size)):
        if i != j:
            row = np.zeros(count * size + 1)
            row[at[i, y]], row[at[j, y]] = 1, -math.exp(epsilon * distances[i, j])
            rows.append(row)
            limits.append(0.0)
    for i in range(count):
        row = np.zeros(count * size + 1)
        row[at[i][np.abs(outputs - answers[i]) >= error]], row[-1] = 1, -1
        rows.append(row)
        limits.append(0.0)
    sums = np.zeros((count, count * size + 1))
    for i in range(count):
        sums[i, at[i]] = 1
    goal = np.zeros(count * size + 1)
    goal[-1] = 1
    found = linprog(goal, A_ub=np.array(rows), b_ub=limits, A_eq=sums, b_eq=np.ones(count), bounds=(0, 1))
    return float(np.asarray(found.x)[-1])


def test_packing_is_below_every_mechanism_and_tight_at_equal_distances() -> None:
    line = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    apart = 2 * (1 - np.eye(4, dtype=int))
    for distances, tight in ((line, False), (apart, True)):
        bound = bounds.packing_bound(np.arange(4.0), distances, epsilon=0.7, error=0.5)
        least = least_failure([0.0, 1.0, 2.0, 3.0], distances, 0.7, 0.5)
        assert 0 < bound.failure <= least + 1e-9
        assert bound.packing == (0, 1, 2, 3)
        if tight:
            assert bound.failure == pytest.approx(least, rel=1e-8)
            assert bound.failure == pytest.approx(3 / (3 + math.exp(1.4)), rel=1e-12)


def test_packing_takes_answers_that_are_apart_only() -> None:
    apart = 1 - np.eye(3, dtype=int)
    assert bounds.packing_bound([0.0, 0.9, 1.0], apart, epsilon=1.0, error=0.5).packing == (0, 2)
    assert bounds.packing_bound([0.0, 0.1, 0.2], apart, epsilon=1.0, error=0.5).failure == 0
    # 1 - 2^-60 rounds to 1, but the answers lie nearer than 1.
    near = bounds.packing_bound([2.0**-60, 1.0], apart[:2, :2], epsilon=1.0, error=0.5)
    assert near.failure == 0
    plane = [[0.0, 0.0], [0.6, 0.8]]
    for norm, found in ((1, True), (2, False), (np.inf, False)):
        bound = bounds.packing_bound(plane, apart[:2, :2], epsilon=1.0, error=0.6, norm=norm)
        assert (bound.failure > 0) is found
    for error, found in ((0.6, False), (0.2, True)):  # a length of 1/2
        bound = bounds.packing_bound(np.array(plane) / 2, apart[:2, :2], epsilon=1.0, error=error, norm=2)
        assert (bound.failure > 0) is found
    # Rounded lengths within 2^-40 of the limit prove nothing.
    assert bounds.packing_bound(plane, apart[:2, :2], epsilon=1.0, error=0.5, norm=2).failure == 0


def test_packing_starts_from_several_datasets() -> None:
    """From the first dataset, in the middle, only one other fits; from the second more do."""
    answers = [1.0, 0.5, 1.5, 2.5]
    distances = 1 - np.eye(4, dtype=int)
    assert bounds.packing_bound(answers, distances, epsilon=1.0, error=0.5).packing == (1, 2, 3)


def test_two_points_are_attained_by_randomized_response() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        flip = 1 / (1 + math.exp(epsilon))
        bound = bounds.two_point_bound(PureDP(epsilon), separation=3.0)
        assert bound.failure == pytest.approx(flip, rel=1e-9)
        assert bound.absolute_error == pytest.approx(3 * flip, rel=1e-9)
        assert bound.absolute_error <= 3 * flip
        # Answers in the middle have a squared error of 9/4 without any data.
        assert bound.squared_error == pytest.approx(9 * flip / 2, rel=1e-9)
        assert bound.squared_error <= 9 / 4


def test_two_points_hold_for_exact_noise_by_enumeration() -> None:
    for scale in (1, 3):
        mechanism = Laplace(sensitivity=1, scale=scale)
        steps = np.arange(-400, 401)
        masses = np.array([mechanism.distribution.pmf(int(k)).lower for k in steps])
        absolute, squared = float(np.abs(steps) @ masses), float(steps**2 @ masses)
        for units in (1, 2, 5):
            bound = bounds.two_point_bound(mechanism.privacy_loss, separation=float(units), units=units)
            assert 0 < bound.absolute_error <= absolute
            assert 0 < bound.squared_error <= squared
            missed = float(masses[np.abs(steps) >= units / 2].sum())
            assert bound.failure <= missed
            shared = np.minimum(masses[units:], masses[:-units]).sum()
            assert bound.overlap == pytest.approx(shared, rel=1e-6)


def test_best_number_of_units() -> None:
    best = bounds.best_two_point_bound(PureDP(0.1), separation=1.0)
    tried = [bounds.two_point_bound(PureDP(0.1), separation=float(k), units=k) for k in (1, 8, 16, 32)]
    assert best.absolute_error == max(one.absolute_error for one in tried)
    assert best.units == 16
    assert bounds.best_two_point_bound(PureDP(0.1), separation=1.0, most=1).units == 1
    assert bounds.best_two_point_bound(PureDP(0.1), separation=1.0, most=4096).units == 16
    assert "16 apart" in str(best)
    assert bounds.two_point_bound(Gaussian(1.0), separation=1.0).overlap == pytest.approx(
        math.erfc(1 / math.sqrt(8)), rel=1e-6
    )
    assert bounds.two_point_bound(ApproximateDP(0.0, 0.25), separation=1.0).overlap == pytest.approx(0.75)


def test_local_model_is_what_randomized_response_reaches() -> None:
    for epsilon in (0.2, 1.0, 3.0, 60.0):
        found = bounds.local_against_central(rows=400, epsilon=epsilon)
        right = math.exp(epsilon) / (1 + math.exp(epsilon))
        reached = 0.5 / (2 * right - 1) / math.sqrt(400)
        assert found.local == pytest.approx(reached, rel=1e-12)
        assert found.sampling == 0.025
        deviation = Laplace(sensitivity=1, scale=1 / epsilon).distribution.stddev
        assert found.central == pytest.approx(math.hypot(0.025, deviation / 400), rel=1e-9)
        assert found.sampling <= found.central <= found.local * (1 + 1e-9)
    assert bounds.local_against_central(rows=1, epsilon=1.0).local <= 0.5 / math.tanh(0.5)


def test_what_is_no_packing_is_refused() -> None:
    square = 1 - np.eye(2, dtype=int)
    for answers, distances, rule in (
        ([0.0, math.nan], square, "answers must be a finite answer"),
        ([], square[:0, :0], "answers must be a finite answer"),
        ([0.0, 1.0], square[:1], "distances must be a square"),
        ([0.0, 1.0], square.astype(float), "distances must be a square"),
        ([0.0, 1.0], -square, "distances must be a square"),
        ([0.0, 1.0], np.array([[0, 1], [2, 0]]), "distances must be symmetric"),
        ([0.0, 1.0], np.ones((2, 2), dtype=int), "distances must be symmetric"),
        (np.zeros(4097), square, "answers must be of at most 4096"),
    ):
        with pytest.raises(ParameterError, match=rule):
            bounds.packing_bound(answers, distances, epsilon=1.0, error=0.5)
    with pytest.raises(ParameterError, match="norm must be at least 1"):
        bounds.packing_bound([0.0, 1.0], square, epsilon=1.0, error=0.5, norm=0.5)
    with pytest.raises(ParameterError, match="units must be an integer of at least 1"):
        bounds.two_point_bound(PureDP(1.0), separation=1.0, units=0)
    with pytest.raises(ParameterError, match="most must be at most 4096"):
        bounds.best_two_point_bound(PureDP(1.0), separation=1.0, most=5000)
