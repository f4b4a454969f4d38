from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.anonymity.risk.pitman import fit_pitman, log_likelihood, pitman_uniques
from tests.run_time import run_time

if run_time(__name__):
    from mpmath import mp


def restaurant(rng: np.random.Generator, rows: int, theta: float, alpha: float) -> np.ndarray:
    """Class sizes drawn by Pitman's sequence: each row joins a class or opens one."""
    sizes: list[int] = []
    for row in range(rows):
        if rng.random() * (row + theta) < theta + alpha * len(sizes):
            sizes.append(1)
        else:
            weights = np.array(sizes) - alpha
            sizes[int(rng.choice(len(sizes), p=weights / weights.sum()))] += 1
    return np.array(sizes)


def test_the_likelihood_is_that_of_the_sequence() -> None:
    theta, alpha, sizes = 2.5, 0.3, [3, 1, 2]
    logarithm, classes, row = 0.0, 0, 0
    for size in sizes:
        for member in range(size):
            weight = theta + alpha * classes if member == 0 else member - alpha
            logarithm += math.log(weight / (theta + row))
            classes += member == 0
            row += 1
    assert log_likelihood(np.array(sizes), theta, alpha) == pytest.approx(logarithm, rel=1e-12)


def test_the_fit_has_no_better_neighbor_and_is_near_the_truth() -> None:
    sizes = restaurant(np.random.default_rng(8), 3000, 20.0, 0.5)
    fitted = fit_pitman(sizes)
    assert fitted is not None
    theta, alpha = fitted
    best = log_likelihood(sizes, theta, alpha)
    for factor, shift in ((1.01, 0), (0.99, 0), (1, 0.005), (1, -0.005)):
        assert log_likelihood(sizes, theta * factor, alpha + shift) < best
    assert alpha == pytest.approx(0.5, abs=0.06)


def test_the_expected_uniques_are_exact() -> None:
    mp.dps = 40
    for theta, alpha, n in ((2.5, 0.3, 50), (100.0, 0.7, 10**6), (-0.2, 0.5, 1000), (5.0, 0.0, 300)):
        exact = mp.mpf(n)
        exact *= mp.gamma(theta + alpha + n - 1) / mp.gamma(theta + n)
        exact *= mp.gamma(theta + 1) / mp.gamma(theta + alpha)
        assert pitman_uniques(theta, alpha, n) == pytest.approx(float(exact), rel=1e-8)
    # By the sequence: of two rows both are alone with probability (theta + alpha) / (theta + 1).
    assert pitman_uniques(2.5, 0.3, 2) == pytest.approx(2 * 2.8 / 3.5, rel=1e-12)


def test_what_has_no_fit_is_none() -> None:
    assert fit_pitman(np.array([1, 1, 1])) is None
    assert fit_pitman(np.array([5])) is None
