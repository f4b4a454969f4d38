"""Noisy maxima and the sparse vector technique against exact integrals over their secret noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.integrate import trapezoid

from sfumato.errors import ParameterError
from sfumato.privacy import MaxNoise, Neighboring, ReportNoisyMax, SparseVector, loss_from_json
from tests.cases import cases

Law = tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]
LINE = np.linspace(-60.0, 90.0, 100_001)
EXPONENTIAL: Law = (
    lambda z: np.where(z >= 0, np.exp(-np.maximum(z, 0)), 0.0),
    lambda z: -np.expm1(-np.maximum(z, 0)),
)
LAPLACE: Law = (
    lambda z: 0.5 * np.exp(-np.abs(z)),
    lambda z: np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0))),
)
GUMBEL: Law = (
    lambda z: np.exp(-z - np.exp(-np.maximum(z, -40))),
    lambda z: np.exp(-np.exp(-np.maximum(z, -40))),
)
LAWS = {MaxNoise.EXPONENTIAL: EXPONENTIAL, MaxNoise.LAPLACE: LAPLACE, MaxNoise.GUMBEL: GUMBEL}


def winners(distribution: Law, scores: np.ndarray, scale: float) -> np.ndarray:
    """The probability of each winner: its density times the others' distribution functions, integrated."""
    density, below = distribution
    points = [(LINE - score) / scale for score in scores]
    functions = [below(z) for z in points]
    chances = []
    for i, z in enumerate(points):
        others = functools.reduce(np.multiply, (f for j, f in enumerate(functions) if j != i))
        chances.append(float(trapezoid(density(z) / scale * others, LINE)))
    return np.array(chances)


@cases("noise", MaxNoise)
@cases("monotone", [False, True])
def test_winners_move_by_at_most_epsilon(noise: MaxNoise, monotone: bool) -> None:
    generator = np.random.default_rng(5)
    scale, greatest = 2.0, 0.0
    leaf = ReportNoisyMax(scale, noise=noise, monotone=monotone)
    trials = [(np.array([0.0] + [8.0] * 5), np.array([1.0] + [8.0 - (not monotone)] * 5))]
    for _ in range(6):
        scores = generator.normal(scale=4, size=5)
        move = generator.choice([0.0, 1.0] if monotone else [-1.0, 1.0], size=5)
        trials.append((scores, scores + move))
    for before, after in trials:
        p, q = winners(LAWS[noise], before, scale), winners(LAWS[noise], after, scale)
        assert p.sum() == pytest.approx(1, abs=1e-3)
        losses = np.log(p / q)
        greatest = max(greatest, float(np.abs(losses).max()))
        if noise is MaxNoise.GUMBEL:
            assert losses.max() - losses.min() <= leaf.pure().epsilon + 1e-3
            for x in (0.0, 0.3):
                assert np.maximum(p - math.exp(x) * q, 0).sum() <= leaf.delta(x) + 1e-4
    assert greatest <= leaf.pure().epsilon + 1e-3
    # What is claimed is needed: no smaller epsilon would hold these trials.
    assert greatest > 0.9 * leaf.pure().epsilon


def test_a_bounded_range_is_claimed_for_gumbel_noise_only() -> None:
    gumbel, flip = ReportNoisyMax(2.0), ReportNoisyMax(2.0, noise=MaxNoise.EXPONENTIAL)
    assert gumbel.epsilon(0.0) == flip.epsilon(0.0) == 1.0
    assert gumbel.zcdp().rho < 0.3 * flip.zcdp().rho
    assert (gumbel * 50).epsilon(1e-6) < (flip * 50).epsilon(1e-6)
    for leaf in (gumbel, flip):
        assert not leaf.epsilon_interval(0.1).tight
        assert loss_from_json(leaf.to_json()) == leaf


def vector(
    scale: tuple[float, float], distribution: Law, queries: Sequence[tuple[float, bool, int]]
) -> float:
    """The probability of given answers: an integral over the threshold's noise; thresholds are 0."""
    density, below = distribution
    total = density(LINE / scale[0]) / scale[0]
    for value, above, times in queries:
        under = below((LINE - value) / scale[1])
        total = total * (1 - under if above else under) ** times
    return float(trapezoid(total, LINE))


@pytest.mark.parametrize("distribution", [LAPLACE, EXPONENTIAL], ids=["laplace", "exponential"])
@pytest.mark.parametrize("positives", [1, 3])
def test_sparse_vectors_move_by_at_most_epsilon(distribution: Law, positives: int) -> None:
    scale = (1.5, 3.0)
    leaf = SparseVector(*scale, positives=positives)
    greatest = 0.0
    for base in (-4.0, 0.0, 6.0):
        for lows in (0, 3, 40, 400):
            first = [(base, False, lows), (-1.0, True, positives)]
            second = [(base + 1, False, lows), (-2.0, True, positives)]
            one, other = vector(scale, distribution, first), vector(scale, distribution, second)
            if min(one, other) > 1e-9:
                greatest = max(greatest, abs(math.log(one / other)))
    assert greatest <= leaf.pure().epsilon + 1e-3
    assert greatest > 0.93 * leaf.pure().epsilon
    # The half price of monotone queries would not hold these, which move in both directions.
    assert greatest > SparseVector(*scale, positives=positives, monotone=True).pure().epsilon * 1.02


@pytest.mark.parametrize("distribution", [LAPLACE, EXPONENTIAL], ids=["laplace", "exponential"])
def test_monotone_sparse_vectors_cost_half(distribution: Law) -> None:
    scale = (1.5, 3.0)
    epsilon = SparseVector(*scale, positives=2, monotone=True).pure().epsilon
    for base, above in ((-3.0, -2.0), (0.0, 2.0), (4.0, -6.0)):
        for lows in (0, 5, 100):
            answers = [(base, False, lows), (above, True, 2)]
            moved = [(value + 1, answer, times) for value, answer, times in answers]
            one, other = vector(scale, distribution, answers), vector(scale, distribution, moved)
            if min(one, other) > 1e-9:
                assert abs(math.log(one / other)) <= epsilon + 1e-3


def test_counts_and_directions_are_checked() -> None:
    assert SparseVector(1.0, 0.0).epsilon(0.5) == math.inf
    assert ReportNoisyMax(0.0).epsilon(0.5) == math.inf
    assert (SparseVector(4.0, 8.0) * 3).epsilon(0.0) == 1.5
    for build in (
        lambda: ReportNoisyMax(1.0, monotone=True, neighboring=Neighboring.REPLACE_ONE),
        lambda: SparseVector(1.0, 1.0, monotone=True, neighboring=Neighboring.REPLACE_ONE),
        lambda: SparseVector(1.0, 1.0, monotone=1),  # type: ignore[arg-type]
    ):
        with pytest.raises(ParameterError, match=r"^monotone must"):
            build()
    with pytest.raises(ParameterError, match=r"^noise must"):
        ReportNoisyMax(1.0, noise="gumbel")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^positives must"):
        SparseVector(1.0, 1.0, positives=0)
