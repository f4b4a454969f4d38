"""Log probabilities of noise against its own certified ones, and draws against what they are drawn from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.adaptive.inference.noise_density import draw_counts, noise_log_density
from sfumato.mechanisms import Gaussian, Laplace, Staircase, TruncatedLaplace
from tests.chance import accepts_only, frequencies


def test_log_densities_differ_from_the_certified_ones_by_a_constant() -> None:
    for mechanism in (
        Laplace(sensitivity=1, scale=2.5),
        Gaussian(sensitivity=1, stddev=3.0),
        Staircase(sensitivity=3, epsilon=0.7),
        TruncatedLaplace.calibrated(sensitivity=1, epsilon=1.0, delta=1e-3),
    ):
        noise = mechanism.release(0, rng=1).distribution
        places = np.arange(-6, 7)
        exact = np.log([noise.pmf(int(k)).upper for k in places])
        found = noise_log_density(noise)(places)
        assert found - found[6] == pytest.approx(exact - exact[6], abs=1e-9)


def test_where_there_is_no_probability_the_log_is_that_of_the_smallest_float() -> None:
    noise = TruncatedLaplace.calibrated(sensitivity=1, epsilon=1.0, delta=1e-3).release(0, rng=1).distribution
    assert noise_log_density(noise)(np.array([[10**6]])).tolist() == [[math.log(5e-324)]]


def test_draws_follow_the_density_wherever_they_start() -> None:
    weights = {k: math.exp(-((k - 40) ** 2) / 3) for k in range(36, 44)}
    law = {k: weight / sum(weights.values()) for k, weight in weights.items()}
    for ends in ((0, 2), (60, 90), (41, 41), (-50, 500)):
        found = draw_counts(
            lambda k: -((k - 40.0) ** 2) / 3, ends, (36, 43), 20_000, np.random.default_rng(3)
        )
        counts = {int(k): int((found == k).sum()) for k in np.unique(found)}
        accepts_only(frequencies(counts), law, shifted={k: law[79 - k] for k in law})
    far = draw_counts(lambda k: -np.abs(k - 900.0) * 50, (0, 3), (0, 10_000), 3, np.random.default_rng(3))
    assert far.tolist() == [900, 900, 900]
