"""Moments that are shrunk by the known noise: against integrals, in the limits, and by what they predict."""

from __future__ import annotations

import numpy as np
import pytest

from tests.run_time import run_time

if run_time(__name__):
    from scipy.stats import truncnorm
    from sklearn.datasets import load_breast_cancer

    from sfumato.learning.estimators.gaussian_nb import GaussianNB
    from sfumato.learning.estimators.moments import (
        MomentSums,
        mean_and_variance_part,
        mean_and_variance_rows,
    )
    from sfumato.learning.estimators.shrinkage import positive_mean, shrunk_moments
    from sfumato.learning.estimators.vector_sums import planned


def test_the_mean_of_a_positive_normal_variable_is_its_integral() -> None:
    for ratio in (-15.0, -3.0, -0.5, 0.0, 0.7, 4.0, 60.0):
        for deviation in (1e-6, 1.0, 40.0):
            mean = ratio * deviation
            expected = truncnorm.mean(-ratio, np.inf, loc=mean, scale=deviation)
            assert float(positive_mean(mean, deviation)) == pytest.approx(expected, rel=1e-6)
    far = positive_mean(np.array([-1e300, -20.0, -19.9]), 1.0)
    assert (far > 0).all()
    assert far[1] == pytest.approx(far[2], rel=0.01)
    assert float(positive_mean(3.0, 0.0)) == 3.0


def _sums(rows: np.ndarray, labels: np.ndarray, noise: float, rng: np.random.Generator) -> MomentSums:
    groups = [rows[labels == one] for one in range(3)]
    first = np.array([group.sum(axis=0) for group in groups])
    second = np.array([(2 * group**2 - 1).sum(axis=0) for group in groups])
    return MomentSums(
        rows=np.array([len(group) for group in groups]) + rng.normal(0, noise, 3),
        first=first + rng.normal(0, noise, first.shape),
        second=second + rng.normal(0, noise, second.shape),
        rows_deviation=noise,
        deviation=noise,
    )


def test_moments_are_plain_without_noise_and_nearer_the_truth_with_it() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 600)
    center = np.array([[-0.2, 0.0, 0.3], [0.1, 0.1, -0.3], [0.4, -0.1, 0.0]])
    rows = (center[labels] + rng.normal(0, 0.15, (600, 3))).clip(-1, 1)
    mean = np.array([rows[labels == one].mean(axis=0) for one in range(3)])
    variance = np.array([rows[labels == one].var(axis=0) for one in range(3)])
    plain = shrunk_moments(_sums(rows, labels, 0.0, rng))
    assert plain.mean == pytest.approx(mean, abs=1e-9)
    assert plain.variance == pytest.approx(variance, abs=1e-9)
    off = {"shrunk": 0.0, "raw": 0.0}
    for _ in range(50):
        sums = _sums(rows, labels, 20.0, rng)
        shrunk = shrunk_moments(sums)
        assert (shrunk.variance > 0).all()
        number = np.maximum(1, sums.rows)[:, None]
        raw = (sums.second / number + 1) / 2 - (sums.first / number) ** 2
        off["shrunk"] += float(((shrunk.variance - variance) ** 2).mean())
        off["raw"] += float(((raw - variance) ** 2).mean())
    assert off["shrunk"] < 0.5 * off["raw"]


def test_no_row_is_longer_than_its_price_says() -> None:
    rng = np.random.default_rng(2)
    for columns in (1, 4, 30, 301):
        corners = rng.choice([-1.0, 0.0, 1.0], (50, columns))
        inside = rng.uniform(-1, 1, (50, columns))
        rows = mean_and_variance_rows(np.concatenate([corners, inside, np.ones((1, columns))]))
        part = mean_and_variance_part(columns)
        norms = np.linalg.norm(rows, axis=1)
        assert norms.max() <= part.norm * (1 + 1e-12)
        assert norms[-1] == pytest.approx(part.norm)  # the bound is met: no noise is wasted
        (total,), loss = planned([part], epsilon=1.0, delta=1e-6)
        assert np.abs(total.total(rows[-1:])).max() > 0  # such a row is counted, not left out
        assert loss.epsilon(1e-6) <= 1.0


def test_accuracy_does_not_fall_as_epsilon_rises() -> None:
    rows, labels = load_breast_cancer(return_X_y=True)
    bounds = rows.min(axis=0), rows.max(axis=0)
    accuracy = []
    for epsilon in (1.0, 10.0):
        scores = []
        for seed in range(10):
            chosen = np.random.default_rng(seed).random(len(rows)) < 0.7
            model = GaussianNB(epsilon=epsilon, bounds=bounds, classes=[0, 1], random_state=seed)
            model.fit(rows[chosen], labels[chosen])
            scores.append(model.score(rows[~chosen], labels[~chosen]))
        accuracy.append(np.mean(scores))
    assert accuracy[0] > 0.88  # 0.85 before the noise was allowed for
    assert accuracy[1] > 0.92  # 0.82 before
