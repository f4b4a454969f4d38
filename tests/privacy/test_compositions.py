"""Compositions against the exact divergence of their product laws, enumerated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.privacy import (
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    PrivacyLoss,
    PureDP,
    compose,
    zcdp_epsilon,
)
from tests.cases import cases

Law = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Privacy losses with their probabilities; what is missing to 1 is the mass of total failure."""


def distribution(loss: PrivacyLoss) -> Law:
    """The distribution of the privacy loss of one leaf, written down from its definition."""
    values = loss.parameters()
    if isinstance(loss, DiscreteLaplace):
        s, b = int(loss.sensitivity), float(loss.scale)
        x = np.arange(-600.0, 601.0)
        return (np.abs(x - s) - np.abs(x)) / b, np.asarray(
            math.tanh(0.5 / b) * np.exp(-np.abs(x) / b), dtype=np.float64
        )
    if isinstance(loss, DiscreteGaussian):
        s, variance = int(loss.sensitivity), float(loss.stddev) ** 2
        x = np.arange(-600.0, 601.0)
        weights = np.exp(-(x**2) / (2 * variance))
        return np.asarray((s * s - 2 * s * x) / (2 * variance), dtype=np.float64), np.asarray(
            weights / weights.sum(), dtype=np.float64
        )
    epsilon = float(values["epsilon"])  # type: ignore[arg-type]
    selected = 1 - float(values.get("delta", 0.0))  # type: ignore[arg-type]
    share = 1 / (1 + math.exp(-epsilon))
    return np.array([epsilon, -epsilon]), selected * np.array([share, 1 - share])


def product(distributions: Sequence[Law]) -> Law:
    losses, weights = np.zeros(1), np.ones(1)
    for values, shares in distributions:
        losses = np.add.outer(losses, values).ravel()
        weights = np.multiply.outer(weights, shares).ravel()
        keep = weights > 1e-22
        merged, index = np.unique(np.round(losses[keep], 11), return_inverse=True)
        losses, weights = merged, np.bincount(index, weights[keep]).astype(np.float64)
    return losses, weights


def exact_delta(distribution: Law, epsilon: float) -> float:
    losses, weights = distribution
    above = losses > epsilon
    failure = max(0.0, 1 - math.fsum(weights)) if weights.sum() < 1 - 1e-12 else 0.0
    return failure + math.fsum(-weights[above] * np.expm1(epsilon - losses[above]))


TREES: list[list[PrivacyLoss]] = [
    [DiscreteLaplace(2)] * 3,
    [DiscreteLaplace(10, 3)] * 6,
    [DiscreteLaplace(3, 2), DiscreteLaplace(7, 5), PureDP(0.3)],
    [DiscreteGaussian(1)] * 2,
    [DiscreteGaussian(1)] * 9,
    [DiscreteGaussian(Fraction(1, 2))] * 3,
    [DiscreteGaussian(4)] * 30,
    [DiscreteGaussian(8, 3), DiscreteGaussian(5), DiscreteLaplace(4), PureDP(0.1)],
    [PureDP(0.4)] * 10,
    [PureDP(1.0), PureDP(0.2), PureDP(0.2)],
    [ApproximateDP(0.3, 1e-4)] * 4,
    [ApproximateDP(0.3, 1e-2), DiscreteGaussian(2), DiscreteLaplace(5)],
]


@pytest.mark.parametrize("parts", TREES, ids=lambda parts: repr(compose(parts)))
def test_compositions_are_never_under_stated(parts: list[PrivacyLoss]) -> None:
    loss, truth = compose(parts), product([distribution(part) for part in parts])
    for epsilon in np.linspace(0, 1.2 * zcdp_epsilon(min(loss.zcdp().rho, 50.0), 1e-10), 25):
        exact = exact_delta(truth, float(epsilon))
        assert loss.delta(float(epsilon)) >= exact * (1 - 1e-9) - 1e-13
    for delta in (0.2, 1e-2, 1e-4, 1e-6, 1e-9):
        epsilon = loss.epsilon(delta)
        assert math.isinf(epsilon) or exact_delta(truth, epsilon) <= delta * (1 + 1e-6) + 1e-11


@cases("parts", TREES, ids=lambda parts: repr(compose(parts)))
def test_compositions_are_not_far_above(parts: list[PrivacyLoss]) -> None:
    loss, truth = compose(parts), product([distribution(part) for part in parts])
    epsilon = loss.epsilon(2e-2 + loss.split()[0])
    # Valid bounds, not the accountant: half of the answer is still needed for the truth.
    assert exact_delta(truth, epsilon / 2) > 2e-2


def test_many_discrete_gaussians_approach_the_continuous_ones() -> None:
    discrete = (DiscreteGaussian(40) * 100).epsilon(1e-6)
    continuous = (Gaussian(40.0) * 100).epsilon(1e-6)
    assert continuous < discrete < continuous * (1 + 1e-4)
