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


def test_either_way_to_sum_is_the_same() -> None:
    sizes = np.array([1, 1, 2, 5] * 50)
    for theta, alpha in ((3.0, 0.4), (-0.3, 0.4), (99_000.0, 1 - 1e-3), (101_000.0, 1 - 1e-3), (2.0, 0.0)):
        size, many = np.unique(sizes, return_counts=True)
        opened = math.fsum(math.log(theta + alpha * i) for i in range(1, len(sizes)))
        drawn = math.fsum(math.log(theta + i) for i in range(1, int(sizes.sum())))
        inside = math.fsum(
            math.log(j - alpha) * int(k) for i, k in zip(size, many, strict=True) for j in range(1, i)
        )
        assert log_likelihood(sizes, theta, alpha) == pytest.approx(opened - drawn + inside, rel=1e-8)


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
    assert fit_pitman(np.array([1, 1, 2])) is not None
    assert fit_pitman(np.array([5])) is None
