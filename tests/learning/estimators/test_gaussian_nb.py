"""Naive Bayes of normal features: what is predicted follows from the private means and variances."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from tests.run_time import run_time

if run_time(__name__):
    from sfumato.learning.estimators.gaussian_nb import GaussianNB


def test_probabilities_are_those_of_independent_normal_features() -> None:
    generator = np.random.default_rng(1)
    rows = generator.normal([[0.3, -0.5]], [[0.5, 0.8]], (400, 2)).clip(-2, 2)
    model = GaussianNB(epsilon=3.0, bounds=(-2, 2), classes=[0, 1], random_state=1)
    model.fit(rows, (rows.sum(axis=1) > 0).astype(int))
    for row, found in zip(rows[:5], model.predict_proba(rows[:5]), strict=True):
        joint = [
            prior
            * math.prod(
                statistics.NormalDist(m, v**0.5).pdf(x) for x, m, v in zip(row, mean, var, strict=True)
            )
            for prior, mean, var in zip(model.class_prior_, model.theta_, model.var_, strict=True)
        ]
        assert found == pytest.approx(np.array(joint) / sum(joint), rel=1e-9)
