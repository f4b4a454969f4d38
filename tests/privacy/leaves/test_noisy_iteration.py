"""Amplification by iteration, against chains of densities on a grid and closed forms."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError, UnsupportedView
from sfumato.privacy import Gaussian, GaussianDP, Mixture, Neighboring, NoisyIteration, loss_from_json
from tests.cases import cases

mpmath.mp.dps = 40
REPLACE, ZERO = Neighboring.REPLACE_ONE, Neighboring.ZERO_OUT
GRID = np.linspace(-8.0, 8.0, 1201)


@cases("noise", [0.3, 1.0, 7.0])
@cases("after", [0, 1, 2, 99, 10**6])
def test_parameters_are_those_of_the_theorem(noise: float, after: int) -> None:
    for relation, shift in ((REPLACE, 2), (ZERO, 1)):
        loss = NoisyIteration(noise, after, neighboring=relation)
        exact = shift / (mpmath.mpf(noise) * mpmath.sqrt(after + 1))
        assert exact <= loss.gdp().mu <= exact * (1 + 1e-14)
        # Feldman, Mironov, Talwar, Thakurta (2018): 2 a L**2 / (sigma**2 m) under replace-one.
        for order in (1.5, 8.0):
            assert order * exact**2 / 2 <= loss.rdp(order) <= order * exact**2 / 2 * (1 + 1e-13)
        assert loss.epsilon(1e-6) == pytest.approx(GaussianDP(loss.gdp().mu).epsilon(1e-6))
        assert not loss.epsilon_interval(1e-6).tight


def transition(slope: float, offset: float, noise: float, bound: float) -> np.ndarray:
    """Return the kernel of a step: clip to the bound, then a linear map, then noise."""
    means = slope * np.clip(GRID, -bound, bound) + offset
    kernel = np.exp(-0.5 * ((GRID[None, :] - means[:, None]) / noise) ** 2)
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def run(first: float, steps: list[tuple[float, float]], noise: float, bound: float) -> np.ndarray:
    """Return the law of the last iterate, which is clipped at the end."""
    distribution = np.exp(-0.5 * ((GRID - first) / noise) ** 2)
    distribution /= distribution.sum()
    for slope, offset in steps:
        distribution = distribution @ transition(slope, offset, noise, bound)
    inside = np.abs(GRID) < bound
    return np.concatenate(
        [[distribution[bound <= GRID].sum()], distribution[inside], [distribution[-bound >= GRID].sum()]]
    )


def runs(steps: list[tuple[float, float]], noise: float, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the laws of two runs whose first steps are one sensitivity each away from 0."""
    return run(1.0, steps, noise, bound), run(-1.0, steps, noise, bound)


def worst(laws: tuple[np.ndarray, np.ndarray], epsilon: float) -> float:
    """Return the greater divergence of two laws."""
    gaps = (a - math.exp(epsilon) * b for a, b in (laws, laws[::-1]))
    return max(float(np.maximum(0, gap).sum()) for gap in gaps)


@pytest.mark.parametrize("after", [0, 1, 4])
def test_contractions_lie_below_and_constant_losses_attain_it(after: int) -> None:
    noise, rng = 0.8, np.random.default_rng(after)
    loss = NoisyIteration(noise, after)
    random = [
        (float(a), float(b))
        for a, b in zip(rng.uniform(-1, 1, after), rng.uniform(-1, 1, after), strict=True)
    ]
    several = ([(1.0, 0.0)] * after, [(-1.0, 0.5)] * after, [(0.7, 0.0)] * after, random)
    laws = [runs(steps, noise, radius) for steps in several for radius in (0.5, 1.5, 7.9)]
    constant = laws[2]
    for epsilon in (0.0, 0.3, 1.0):
        bound = loss.delta(epsilon)
        assert max(worst(both, epsilon) for both in laws) <= bound * (1 + 1e-5) + 1e-12
        assert worst(constant, epsilon) >= bound * (1 - 1e-4)


def test_steps_that_expand_are_not_covered() -> None:
    loss = NoisyIteration(0.8, 4)
    assert worst(runs([(1.3, 0.0)] * 4, 0.8, 7.9), 0.3) > loss.delta(0.3)


def test_without_steps_after_it_is_gaussian_noise() -> None:
    assert NoisyIteration(4.0, 0).epsilon(1e-6) == pytest.approx(Gaussian(2.0).epsilon(1e-6))
    assert NoisyIteration(4.0, 0, neighboring=ZERO).epsilon(1e-6) == pytest.approx(
        Gaussian(4.0).epsilon(1e-6)
    )
    assert NoisyIteration(0.0, 9).epsilon(0.5) == math.inf
    assert NoisyIteration(0.0, 9).group(3).epsilon(0.5) == math.inf


def test_groups_and_relations_scale_the_noise() -> None:
    zero = NoisyIteration(4.0, 24, neighboring=ZERO)
    assert zero.under(REPLACE) == NoisyIteration(4.0, 24)
    assert NoisyIteration(4.0, 24).group(4) == NoisyIteration(1.0, 24)
    assert zero.group(2).under(REPLACE).gdp().mu == pytest.approx(4 / (4 * 5))


def test_a_secret_place_is_a_mixture() -> None:
    # Of 200 places drawn evenly, those from a to 1.3 a count as a.
    ends, shares = [0], []
    while ends[-1] < 200:
        ends.append(min(200, max(ends[-1] + 1, math.ceil(1.3 * (ends[-1] + 1)) - 1)))
        shares.append((ends[-1] - ends[-2]) / 200)
    losses = tuple(NoisyIteration(4.0, after) for after in ends[:-1])
    mixed = Mixture(losses, tuple(shares), index_public=True)
    exact = sum(NoisyIteration(4.0, after).delta(1.0) for after in range(200)) / 200
    assert exact <= mixed.delta(1.0) <= 1.01 * exact
    assert mixed.epsilon(1e-6) < NoisyIteration(4.0, 0).epsilon(1e-6)


def test_text_and_refusals() -> None:
    loss = NoisyIteration(2.0, 10, neighboring=ZERO)
    assert loss_from_json(loss.to_json()) == loss
    with pytest.raises(NeighboringMismatch, match="neighboring must be replace-one or zero-out"):
        NoisyIteration(1.0, 1, neighboring=Neighboring.ADD_REMOVE)
    for after in (-1, 1.5, True):
        with pytest.raises(ParameterError, match="steps_after must be an integer"):
            NoisyIteration(1.0, after)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="noise_multiplier"):
        NoisyIteration(-1.0, 1)
    with pytest.raises(UnsupportedView, match="has no pure view"):
        loss.pure()
