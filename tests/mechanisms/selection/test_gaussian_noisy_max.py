"""Noisy maxima with Gaussian noise: their distribution against the price of the vector."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Gaussian, GaussianNoisyMax, Laplace
from tests.chance import accepts_only, frequencies
from tests.mechanisms.selection import distributions

REACH = 20


def gaussian_max(scores: list[int], sigma: float) -> np.ndarray:
    """The distribution of the winner of three, by enumerating all noise."""
    k = np.arange(-REACH, REACH + 1)
    pmf = np.exp(-(k**2) / (2 * sigma**2))
    pmf /= pmf.sum()
    a, b, c = (
        k.reshape(shape) + score
        for shape, score in zip(((-1, 1, 1), (1, -1, 1), (1, 1, -1)), scores, strict=True)
    )
    mass = pmf[:, None, None] * pmf[None, :, None] * pmf[None, None, :]
    top = np.maximum(np.maximum(a, b), c)
    wins = np.stack([np.broadcast_to(x == top, mass.shape) for x in (a, b, c)])
    return np.asarray((wins / wins.sum(axis=0) * mass).sum(axis=(1, 2, 3)))


def test_the_loss_covers_the_exact_distribution() -> None:
    mechanism = GaussianNoisyMax(mechanism=Gaussian(sensitivity=1, stddev=2, l0=3))
    for scores in ([0, 0, 0], [0, 2, 5]):
        here = gaussian_max(scores, 2.0)
        for move in ([1, -1, -1], [-1, 1, 0], [1, 1, -1]):
            there = gaussian_max([x + y for x, y in zip(scores, move, strict=True)], 2.0)
            for epsilon in (0.0, 0.3, 1.0):
                assert distributions.hockey_stick(here, there, epsilon) <= mechanism.privacy_loss.delta(
                    epsilon
                )


def test_choices_follow_the_distribution() -> None:
    mechanism = GaussianNoisyMax(mechanism=Gaussian(sensitivity=1, stddev=2, l0=3))
    source = np.random.default_rng(3)
    draws = Counter(mechanism.release([0, 1, 2], rng=source).value for _ in range(4_000))

    def distribution(sigma: float) -> dict[int, float]:
        return dict(enumerate(gaussian_max([0, 1, 2], sigma)))

    accepts_only(frequencies(draws), distribution(2.0), flatter=distribution(2.8), steeper=distribution(1.5))


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_the_utility_bound_holds(beta: float) -> None:
    mechanism = GaussianNoisyMax(mechanism=Gaussian(sensitivity=1, stddev=2, l0=3), candidates=["abc"])
    bound = GaussianNoisyMax(mechanism=mechanism.mechanism).utility_bound(beta, candidates=3)
    assert gaussian_max([0, 0, int(bound) + 1], 2.0)[:2].sum() <= beta
    assert bound <= 12 * math.sqrt(math.log(2 / beta)) + 1


def test_calibration_names_and_odd_scores() -> None:
    mechanism = GaussianNoisyMax.calibrated(
        sensitivity=1.0, l0=2, epsilon=1.0, delta=1e-6, candidates=("a", "b", "c")
    )
    assert 0.99 < mechanism.privacy_loss.epsilon(1e-6) <= 1.0
    assert mechanism.privacy_loss == mechanism.mechanism.privacy_loss
    assert mechanism.release([math.nan, 1e4, -math.inf], rng=1).value == "b"
    assert mechanism.release([math.nan] * 3, rng=1).value in ("a", "b", "c")
    assert GaussianNoisyMax(mechanism=Gaussian(sensitivity=1, stddev=1)).release([5], rng=1).value == 0
    assert mechanism.utility_bound(0.1) > 0
    for call in (
        lambda: GaussianNoisyMax(mechanism=Laplace(sensitivity=1, scale=1)),  # type: ignore[arg-type]
        lambda: GaussianNoisyMax(mechanism=mechanism.mechanism, candidates=[]),
        lambda: GaussianNoisyMax(mechanism=mechanism.mechanism).release([]),
        lambda: mechanism.release([1.0]),
    ):
        with pytest.raises(ParameterError, match="must"):
            call()
