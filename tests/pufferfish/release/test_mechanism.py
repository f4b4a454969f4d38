from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ParameterError
from sfumato.pufferfish import MarkovChain, MarkovQuilt
from tests.chance import accepts_only

CHAIN = MarkovChain(transition=[[0.5, 0.5], [0.5, 0.5]])
WHOLE = MarkovQuilt(chain=CHAIN, length=10, lipschitz=1, epsilon=1.0)
REAL = MarkovQuilt(chain=CHAIN, length=10, lipschitz=1.0, epsilon=1.0)


def test_noise_has_the_scale_that_is_stated() -> None:
    for mechanism in (WHOLE, REAL):
        zeros = np.zeros(200_000, dtype=int if mechanism is WHOLE else float)
        noise = np.abs(mechanism.release(zeros, rng=5).value)

        def has(scale: float, noise: NDArray[np.float64] = noise, whole: bool = mechanism is WHOLE) -> None:
            mean = 2 * np.exp(-1 / scale) / (1 - np.exp(-2 / scale)) if whole else scale
            assert abs(noise.mean() - mean) < 7 * scale / np.sqrt(len(noise))

        scale = float(mechanism.scale)
        accepts_only(has, scale, doubled=2 * scale, five_percent_less=0.95 * scale)


def test_intervals_cover_the_exact_answer() -> None:
    for mechanism, answer in ((WHOLE, 40), (REAL, 40.123456789)):
        released = [mechanism.release(answer, rng=seed) for seed in range(400)]
        covered = [r.interval(0.9).lower <= answer <= r.interval(0.9).upper for r in released]
        assert np.mean(covered) > 0.8  # 400 draws of at least .9: below .8 with probability 1e-9
        assert released[0].simulated
    array = REAL.release(np.full(1000, 2.5), rng=9)
    interval = array.interval(0.95)
    assert np.mean((interval.lower <= 2.5) & (interval.upper >= 2.5)) > 0.9
    assert not array.value.flags.writeable


def test_real_randomness_is_no_simulation() -> None:
    assert not WHOLE.release(3).simulated
    assert "simulated" in repr(WHOLE.release(3, rng=1))
    assert "simulated" not in repr(WHOLE.release(3))


def test_whole_numbers_are_asked_for() -> None:
    with pytest.raises(ParameterError):
        WHOLE.release(0.5)
    assert isinstance(REAL.release(float("nan"), rng=1).value, float)
