"""The sparse vector technique with Gaussian noise, against its exact law by quadrature."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from sfumato.errors import ParameterError, UnsupportedView
from sfumato.privacy import (
    Gaussian,
    GaussianSparseVector,
    Laplace,
    Neighboring,
    loss_from_json,
)
from sfumato.privacy.gaussian_profile import log_profile

Law = dict[tuple[bool, ...], float]
EPSILONS = (0.0, 0.1, 0.4, 1.0, 2.0, 4.0)
THRESHOLD = np.linspace(-9, 9, 1201)
WEIGHTS = np.exp(-(THRESHOLD**2) / 2)
WEIGHTS /= WEIGHTS.sum()


def distribution(answers: NDArray[np.float64], loss: GaussianSparseVector) -> Law:
    """The chance of each sequence of answers; the threshold is 0."""
    noisy = loss.threshold_noise * THRESHOLD
    chance = ndtr((answers[:, None] - noisy) / loss.query_noise)
    found: Law = {}

    def walk(told: tuple[bool, ...], so_far: NDArray[np.float64]) -> None:
        if len(told) == len(answers) or sum(told) == loss.positives:
            found[told] = float(WEIGHTS @ so_far)
            return
        up = chance[len(told)]
        walk((*told, True), so_far * up)
        walk((*told, False), so_far * (1 - up))

    walk((), np.ones(len(THRESHOLD)))
    return found


def divergence(p: Law, q: Law, epsilon: float) -> float:
    return math.fsum(max(0.0, mass - math.exp(epsilon) * q[key]) for key, mass in p.items())


def changes(length: int, *, monotone: bool) -> list[tuple[int, ...]]:
    if monotone:
        return [(1,) * length, (0,) * (length - 1) + (1,), (1, 0) * (length // 2) + (1,) * (length % 2)]
    late = (-1,) * (length - 1) + (1,)
    return [late, tuple(-x for x in late), (1,) * length, (1, -1) * (length // 2) + (1,) * (length % 2)]


@pytest.mark.parametrize(
    ("length", "noises", "positives", "monotone"),
    [
        (1, (1.0, 1.0), 1, False),
        (1, (4.0, 6.0), 3, True),
        (2, (3.0, 2.0), 1, True),
        (2, (0.7, 2.5), 2, False),
        (3, (1.0, 1.0), 1, True),
        (3, (4.0, 6.0), 3, False),
        (5, (0.7, 2.5), 2, True),
        (5, (3.0, 2.0), 1, False),
        (8, (4.0, 6.0), 3, False),
        (8, (1.0, 1.0), 1, True),
    ],
)
def test_no_neighbors_are_farther_apart(
    length: int, noises: tuple[float, float], positives: int, monotone: bool
) -> None:
    loss = GaussianSparseVector(*noises, length, positives=positives, monotone=monotone)
    deltas = [loss.delta(epsilon) for epsilon in EPSILONS]
    order = loss.rdp(3.0)
    for level in (-8.0, -3.0, -1.0, 0.0, 2.0):
        first = np.full(length, level)
        p = distribution(first, loss)
        for change in changes(length, monotone=monotone):
            q = distribution(first + np.array(change), loss)
            for one, other in ((p, q), (q, p)):
                for epsilon, delta in zip(EPSILONS, deltas, strict=True):
                    assert divergence(one, other, epsilon) <= delta + 1e-12
                moment = math.fsum(m**3 / other[key] ** 2 for key, m in one.items() if m > 1e-30)
                assert math.log(moment) / 2 <= order + 1e-9


@pytest.mark.parametrize("noises", [(1.0, 1.0), (3.0, 2.0)])
def test_a_single_answer_is_priced_exactly(noises: tuple[float, float]) -> None:
    loss, deviation = GaussianSparseVector(*noises, 1), math.hypot(*noises)
    assert loss.gdp().mu == pytest.approx(1 / deviation, rel=1e-12)
    for epsilon in EPSILONS:
        # The best threshold is where the likelihood ratio is the bound.
        level = -epsilon * deviation**2 - 0.5
        p, q = distribution(np.array([level + 1]), loss), distribution(np.array([level]), loss)
        assert divergence(p, q, epsilon) == pytest.approx(
            math.exp(log_profile(1 / deviation, epsilon)), rel=1e-6
        )
        assert loss.delta(epsilon) == pytest.approx(divergence(p, q, epsilon), rel=1e-6)


def test_told_in_full_the_first_bound_is_reached() -> None:
    # All differences told, with the changes that cost most.
    for length, monotone in itertools.product((1, 2, 3, 6, 7), (False, True)):
        loss = GaussianSparseVector(1.5, 2.5, length, monotone=monotone)
        precision = np.linalg.inv(2.5**2 * np.eye(length) + 1.5**2 * np.ones((length, length)))
        signs = (0, 1) if monotone else (-1, 1)
        worst = max(np.array(d) @ precision @ np.array(d) for d in itertools.product(signs, repeat=length))
        assert loss.gdp().mu == pytest.approx(math.sqrt(worst), rel=1e-9)


def stopping_divergence(m: float, length: int, epsilon: float) -> float:
    """The greatest divergence of two stopping times, by dynamic programming over the chances of stopping."""
    line = np.linspace(-8, 12, 1001)
    h, h2 = ndtr(-line), ndtr(-line - m)
    ratios = np.linspace(0, 12, 1001)
    value = np.maximum(0.0, 1 - np.exp(ratios))
    for _ in range(length):
        # After going on, the odds are changed by what going on told.
        later = np.minimum(ratios[:, None] + np.log1p(-h2) - np.log1p(-h), 12.0)
        stop = np.maximum(0.0, h - np.exp(ratios)[:, None] * h2)
        value = (stop + (1 - h) * np.interp(later, ratios, value)).max(axis=1)
    return float(np.interp(epsilon, ratios, value))


@pytest.mark.parametrize("length", [1, 4, 12])
def test_given_the_threshold_the_second_bound_is_nearly_reached(length: int) -> None:
    noise = 2.0
    for epsilon in (1.0, 2.0, 4.0):
        bound = -math.expm1(length * math.log1p(-math.exp(log_profile(2 / noise, epsilon))))
        truth = stopping_divergence(2 / noise, length, epsilon)
        assert truth <= bound * (1 + 1e-3)
        assert truth >= 0.5 * bound or bound > 0.3
        # A threshold that is all but told: the same, by the leaf.
        loss = GaussianSparseVector(1e6, noise, length)
        assert loss.delta(epsilon) <= bound * 1.06 + 1e-5


def test_length_counts_by_its_logarithm() -> None:
    costs = [GaussianSparseVector(20.0, 40.0, 10**n).epsilon(1e-6) for n in (2, 4, 6, 8)]
    assert costs == sorted(costs)
    assert costs[-1] < 2 * costs[1] < 0.02 * GaussianSparseVector(20.0, 40.0, 10**8).gdp().mu
    many = GaussianSparseVector(20.0, 40.0, 10**6, positives=10)
    assert many.epsilon(1e-6) < 10 * costs[2]
    assert many.rdp(8.0) < 10 * GaussianSparseVector(20.0, 40.0, 10**6).rdp(8.0)
    # The cost of the threshold alone is a floor of the second bound.
    assert costs[0] > Gaussian(20.0).epsilon(1e-6)
    assert GaussianSparseVector(20.0, 40.0, 10**6, monotone=True).epsilon(1e-6) < costs[2]


def test_the_threshold_has_its_own_share() -> None:
    # Noise so wide that "above" tells next to nothing: the rest is two thresholds one sensitivity apart.
    loss = GaussianSparseVector(1.0, 1e4, 10**10)
    for epsilon in (0.5, 2.0, 5.0):
        assert loss.delta(epsilon) == pytest.approx(Gaussian(1.0).delta(epsilon), rel=0.05)


def test_it_composes_and_reads_back() -> None:
    loss = GaussianSparseVector(10.0, 20.0, 1000)
    assert loss_from_json(loss.to_json()) == loss
    both = loss * 5 + Laplace(3.0)
    assert loss.epsilon(1e-6) < (loss * 5).epsilon(1e-6) < both.epsilon(1e-6) < math.inf
    assert not both.epsilon_interval(1e-6).tight
    with pytest.raises(UnsupportedView, match="pure"):
        loss.pure()


def test_parameters_are_checked() -> None:
    assert GaussianSparseVector(1.0, 0.0, 5).epsilon(0.5) == math.inf
    known = GaussianSparseVector(0.0, 2.0, 4)
    assert known.gdp().mu == pytest.approx(1.0)
    assert known.epsilon(1e-6) <= Gaussian(1.0).epsilon(1e-6) * 1.001
    for wrong in (0, -1, 1.5):
        with pytest.raises(ParameterError, match="length must"):
            GaussianSparseVector(1.0, 1.0, wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="length must"):
        GaussianSparseVector(1.0, 1.0, 2**51)
    with pytest.raises(ParameterError, match="positives must"):
        GaussianSparseVector(1.0, 1.0, 3, positives=0)
    with pytest.raises(ParameterError, match="monotone must"):
        GaussianSparseVector(1.0, 1.0, 3, monotone=True, neighboring=Neighboring.REPLACE_ONE)
