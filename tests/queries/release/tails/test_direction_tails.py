"""Tails of three noises in every direction: against their enumeration, and never below it."""

from __future__ import annotations

import math

import numpy as np

from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from sfumato.queries.release.tails.direction_tails import direction_tails
from sfumato.queries.release.tails.noise_tails import noise_tail
from tests.queries.release.noise_lattice import lattice


def test_no_tail_is_below_the_enumerated_one_nor_far_above() -> None:
    noises = DiscreteLaplaceDistribution(3), DiscreteLaplaceDistribution(2), DiscreteGaussianDistribution(4)
    weights = [(1.0, 0.0), (0.0, 1.0), (-0.5, 0.8)]
    terms = [(noise_tail(noise), *weight) for noise, weight in zip(noises, weights, strict=True)]
    tails = direction_tails(terms, 0.05)
    values, masses = lattice(*noises)
    for angle in np.linspace(-1.5, 1.5, 9):
        cosine, sine = math.cos(angle), math.sin(angle)
        total = np.abs(
            sum((cosine * a - sine * b) * each for (a, b), each in zip(weights, values, strict=True))
        )
        for seen in (0.5, 5.0, 9.0, 13.0):
            exact = masses[total >= seen - 1e-9].sum()
            (found,) = tails.beyond(np.array([seen]), np.array([cosine]), np.array([sine]))
            further = masses[total >= 0.97 * seen - 0.5].sum()
            assert exact - 1e-4 <= found <= min(1.0, 1.06 * further + 1e-3), (angle, seen)
