"""Adaptive clipping: the norm finds the quantile, and its count is paid for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from tests.chance import accepts_only
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.clipping.adaptive_quantile import AdaptiveQuantile
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.noise.keyed import SimulatedNoise


@given(noise=st.floats(1e-3, 50), count=st.floats(0.1, 1000))
def test_gradients_and_count_together_cost_the_multiplier(noise: float, count: float) -> None:
    if noise >= 1.99 * count:
        return
    clipping = AdaptiveQuantile(clip_norm=0.3, count_stddev=count)
    stddev = clipping.stddevs(noise, ["a"], [5])[0]
    moved = (Fraction(clipping.sensitivity) / Fraction(stddev)) ** 2 + 1 / (2 * Fraction(count)) ** 2
    assert moved <= 1 / Fraction(noise) ** 2
    assert float(moved) > (1 - 1e-9) / noise**2


def test_an_example_moves_the_count_by_a_half() -> None:
    """What is handed to the noise, with and without each example."""

    def centred(squared: torch.Tensor) -> float:
        clipping = AdaptiveQuantile(clip_norm=1.0, count_stddev=1e-9, learning_rate=1.0)
        after = clipping.after(
            squared, noise_multiplier=0.0, expected_batch_size=50.0, step=0, noise=SimulatedNoise(0)
        )
        return float((0.5 - torch.tensor(after.clip_norm, dtype=torch.float64).log() - 0.5) * 50)

    squared = torch.tensor([[0.1, 3.0, 1.0, float("nan"), float("inf"), 0.0]])
    whole = centred(squared)
    for left_out in range(6):
        rest = torch.cat([squared[:, :left_out], squared[:, left_out + 1 :]], 1)
        assert abs(whole - centred(rest)) == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
def test_the_norm_finds_the_quantile(quantile: float) -> None:
    noise = SimulatedNoise(4)
    norms = torch.linspace(0.0, 10.0, 1000)
    clipping = AdaptiveQuantile(clip_norm=0.1, count_stddev=50.0, quantile=quantile)
    for step in range(200):
        clipping = clipping.after(
            norms.square()[None], noise_multiplier=1.0, expected_batch_size=1000.0, step=step, noise=noise
        )

    def check(found: float) -> None:
        assert clipping.clip_norm == pytest.approx(10 * found, rel=0.2)

    accepts_only(check, quantile, higher=1.3 * quantile, lower=0.7 * quantile)


def test_the_count_is_noised_by_step() -> None:
    clipping = AdaptiveQuantile(clip_norm=1.0, count_stddev=5.0)
    seen = {
        clipping.after(
            torch.ones(1, 10),
            noise_multiplier=1.0,
            expected_batch_size=10.0,
            step=step,
            noise=SimulatedNoise(1),
        ).clip_norm
        for step in (0, 1, 2, 0)
    }
    assert len(seen) == 3


def test_other_clippings_stay_as_they_are() -> None:
    clipping = Flat(clip_norm=1.0)
    after = clipping.after(
        torch.ones(1, 3), noise_multiplier=1.0, expected_batch_size=3.0, step=0, noise=SimulatedNoise(1)
    )
    assert after is clipping


def test_a_count_with_too_little_noise_is_told() -> None:
    with pytest.raises(ParameterError, match="noise_multiplier must be below twice count_stddev"):
        AdaptiveQuantile(clip_norm=1.0, count_stddev=0.5).stddevs(1.0, ["a"], [1])
    with pytest.raises(ParameterError, match="quantile must be strictly between 0 and 1"):
        AdaptiveQuantile(clip_norm=1.0, count_stddev=0.5, quantile=1.0)
    with pytest.raises(ParameterError, match="count_stddev must be positive"):
        AdaptiveQuantile(clip_norm=1.0, count_stddev=0.0)


@pytest.mark.parametrize("part", [0.5, 1 - 1e-9, 1 - 1e-13, 1 - 4e-16])
def test_both_releases_together_cost_no_more_than_is_charged_to_the_last_bit(part: float) -> None:
    """1/z_g^2 + 1/(2 s)^2 <= 1/z^2 in exact arithmetic, also where the count has nearly all of it."""
    for count in np.random.default_rng(3).uniform(1, 50, 200).tolist():
        noise = 2 * count * part
        alone = Fraction(AdaptiveQuantile(clip_norm=1.0, count_stddev=count).gradient_multiplier(noise))
        assert 1 / alone**2 + 1 / (2 * Fraction(count)) ** 2 <= 1 / Fraction(noise) ** 2
