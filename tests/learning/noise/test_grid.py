"""Noise on a grid: every released number is a grid point, exactly as priced, and the law is normal."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import ParameterError
from sfumato.numerics.randomness.keyed_normal import rounded_normals
from tests.cases import cases
from tests.chance import FALSE_ALARM, accepts_only, moments
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.noise.grid import GridNoise


KEY = bytes(range(32))


def drawn(noise: GridNoise, value: torch.Tensor, stddev: float = 1.0, step: int = 0) -> torch.Tensor:
    noise.add_([value], step=step, stddevs=[stddev])
    return value


def grid_of(stddev: float) -> float:
    return float(2.0 ** (np.floor(np.log2(stddev)) - 30))


@cases("stddev", [1e-12, 0.37, 1.0, 1.999, 3e9])
def test_what_is_released_is_a_rounded_sum_and_a_whole_number(stddev: float) -> None:
    values = torch.tensor(np.random.default_rng(0).normal(size=3000) * 20 * stddev)
    noisy = drawn(GridNoise(KEY), values.clone(), stddev)
    more = stddev * (1 + 2.0**-20 * 3000**0.5)
    grid = grid_of(more)
    steps = (noisy / grid).numpy()
    assert (steps == np.rint(steps)).all()
    whole = steps - np.rint(values.numpy() / grid)
    again = (drawn(GridNoise(KEY), torch.zeros(3000, dtype=torch.float64), stddev) / grid).numpy()
    assert (whole == again).all()
    # The deviation is that which pays for the rounding, to the last bit but one.
    own = rounded_normals(3000, GridNoise(KEY)._entries, scale=more / grid)
    assert (whole == own).mean() > 0.999
    accepts_only(
        moments(whole * grid / more), (0, 1), wider=(0, 1.15**2), narrower=(0, 0.87**2), shifted=(0.2, 1)
    )

    def shaped(law: Any) -> None:
        assert stats.kstest(whole * grid / more, law.cdf).pvalue > FALSE_ALARM

    accepts_only(
        shaped, stats.norm, even=stats.uniform(-(3**0.5), 12**0.5), laplace=stats.laplace(0, 0.5**0.5)
    )
    assert (np.diff(np.sort(whole)) == 0).mean() < 0.01


def test_two_sums_on_one_grid_point_have_the_same_release() -> None:
    """Nothing of a sum is left but its grid point: the low bits are gone, not hidden."""
    first = torch.full((500,), 0.3, dtype=torch.float64)
    second = first + 2.0**-40
    assert torch.equal(drawn(GridNoise(KEY), first), drawn(GridNoise(KEY), second))


def test_tensors_of_other_types_and_orders() -> None:
    plain = drawn(GridNoise(KEY), torch.zeros(6, 4, dtype=torch.float64))
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        other = drawn(GridNoise(KEY), torch.zeros(4, 6, dtype=dtype).t())
        assert torch.allclose(other.double(), plain, atol=0.02)
    assert torch.equal(drawn(GridNoise(KEY), torch.zeros(6, 4)), plain.float())


def test_long_tensors_are_drawn_in_parts() -> None:
    size = (1 << 18) + 5000
    noisy = drawn(GridNoise(KEY), torch.zeros(size, dtype=torch.float64))
    assert np.unique(noisy.numpy()).size > size - 100
    more = 1 + 2.0**-20 * size**0.5
    accepts_only(
        moments(noisy.numpy()),
        (0, more**2),
        wider=(0, (1.02 * more) ** 2),
        narrower=(0, (0.98 * more) ** 2),
        shifted=(0.02, more**2),
    )


@given(noise=st.floats(1e-3, 1e8), entries=st.integers(1, 10**12))
def test_what_is_charged_covers_the_rounding(noise: float, entries: int) -> None:
    root = Fraction(isqrt(entries * 10**20) + 1, 10**10)
    moved = (1 / Fraction(noise) + root / 2**30) / (1 + root / 2**20)
    charged = GridNoise(KEY).charged(noise, entries)
    assert charged <= noise
    assert moved <= (1 + Fraction(1, 10**8)) / Fraction(charged)
    assert noise > 1024 or charged == noise


def test_the_grid_is_as_fine_as_the_deviation_asked_for_says() -> None:
    """What is drawn is a little wider: just above a power of two here, whose grid would be too coarse."""
    found = drawn(GridNoise(KEY), torch.zeros(1000, dtype=torch.float64), stddev=1 - 2.0**-22)
    steps = found * 2.0**31
    assert bool((steps == steps.round()).all())
    assert bool((steps % 2 == 1).any())


def test_sums_that_are_no_numbers_or_too_large_are_held() -> None:
    values = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e300], dtype=torch.float64)
    noisy = drawn(GridNoise(KEY), values)
    assert noisy.isfinite().all()
    assert abs(float(noisy[0])) < 10
    assert float(noisy[1]) == pytest.approx(2.0**22, rel=1e-6)
    assert float(noisy[2]) == pytest.approx(-(2.0**22), rel=1e-6)


def test_no_noise_changes_nothing() -> None:
    values = torch.tensor([0.1, 0.2])
    assert torch.equal(drawn(GridNoise(KEY), values.clone(), 0.0), values)


def test_a_count_keeps_its_place_on_the_grid() -> None:
    noise = GridNoise(KEY)
    value = noise.scalar(step=3, stddev=12.0)
    assert value * 2**27 == round(value * 2**27)
    assert value == noise.scalar(step=3, stddev=12.0) != noise.scalar(step=4, stddev=12.0)
    assert noise.scalar(step=3, stddev=0.0) == 0.0
    many = [noise.scalar(step=step, stddev=12.0) for step in range(500)]
    accepts_only(moments(many), (0, 12**2), wider=(0, 17**2), narrower=(0, 9**2), shifted=(5, 12**2))


def test_the_mark_and_the_key() -> None:
    assert GridNoise().float_safe
    assert not GridNoise().simulated
    assert GridNoise(seed=1).simulated
    assert GridNoise().key != GridNoise().key
    with pytest.raises(ParameterError, match="seed must be left out beside a key"):
        GridNoise(KEY, seed=1)
    with pytest.raises(ParameterError, match="key must be 32 bytes"):
        GridNoise(b"")
    with pytest.raises(ParameterError, match=r"stddevs must be 0, or between 2\*\*-400"):
        drawn(GridNoise(KEY), torch.zeros(2), 1e-200)


def test_it_is_not_the_noise_of_other_kinds_with_the_same_key() -> None:
    noisy = drawn(GridNoise(KEY), torch.zeros(100, dtype=torch.float64))
    plain = rounded_normals(100, KEY, scale=2.0**30) * 2.0**-30
    assert np.abs(noisy.numpy() - plain).min() > 1e-6
