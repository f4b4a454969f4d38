from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.location import PlaceMetric, exponential_mechanism, heat_map
from tests.chance import accepts_only

CELLS = PlaceMetric.grid(2, 3)
MECHANISM = exponential_mechanism(CELLS, epsilon=2.0)


def test_estimates_have_no_bias_and_the_errors_that_they_state() -> None:
    true = np.array([400, 0, 100, 250, 50, 200])
    places = np.repeat(np.arange(6), true)
    runs = [heat_map(MECHANISM.release(places, rng=seed), MECHANISM) for seed in range(300)]
    counts = np.array([run.counts for run in runs])
    errors = np.sqrt(np.mean([run.standard_errors**2 for run in runs], axis=0))

    def have_mean(expected: NDArray[np.int64]) -> None:
        assert (abs(counts.mean(axis=0) - expected) < 7 * errors / np.sqrt(300)).all()

    accepts_only(have_mean, true, moved=true + 20, another_order=true[::-1])
    # A variance of 300 runs is known to 8 %.
    np.testing.assert_allclose(counts.std(axis=0), errors, rtol=0.3)
    np.testing.assert_allclose(counts.sum(axis=1), 1000)
    # The exact variance, from the table.
    inverse = np.linalg.inv(MECHANISM.probabilities)
    exact = true @ MECHANISM.probabilities @ inverse**2 - true
    np.testing.assert_allclose(errors, np.sqrt(exact), rtol=0.05)


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="reports must be indices below 6"):
        heat_map([6], MECHANISM)
    squeezed = MECHANISM.post_process(np.array([0, 0, 1, 2, 3, 4]))
    with pytest.raises(ParameterError, match="have a table that can be inverted"):
        heat_map([0], squeezed)
