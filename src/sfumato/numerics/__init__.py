"""Numerics: secure randomness, exact noise, certified probabilities, outward rounding.

Samplers of noise add no privacy by themselves and charge no ledger: `sfumato.mechanisms` and a session do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.numerics.distributions.discrete import (
        DiscreteGaussianDistribution,
        DiscreteLaplaceDistribution,
    )
    from sfumato.numerics.interval import Interval
    from sfumato.numerics.randomness.source import (
        RandomSource,
        Rng,
        SecureSource,
        SimulatedSource,
        random_source,
    )
    from sfumato.numerics.sampling.choice import choose, flip
    from sfumato.numerics.sampling.exponential_race import choose_distinct
    from sfumato.numerics.sampling.integer_noise import discrete_gaussian, discrete_laplace, geometric, polya

__all__ = [
    "DiscreteGaussianDistribution",
    "DiscreteLaplaceDistribution",
    "Interval",
    "RandomSource",
    "Rng",
    "SecureSource",
    "SimulatedSource",
    "choose",
    "choose_distinct",
    "discrete_gaussian",
    "discrete_laplace",
    "flip",
    "geometric",
    "polya",
    "random_source",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "DiscreteGaussianDistribution": "sfumato.numerics.distributions.discrete",
        "DiscreteLaplaceDistribution": "sfumato.numerics.distributions.discrete",
        "Interval": "sfumato.numerics.interval",
        "RandomSource": "sfumato.numerics.randomness.source",
        "Rng": "sfumato.numerics.randomness.source",
        "SecureSource": "sfumato.numerics.randomness.source",
        "SimulatedSource": "sfumato.numerics.randomness.source",
        "choose": "sfumato.numerics.sampling.choice",
        "choose_distinct": "sfumato.numerics.sampling.exponential_race",
        "discrete_gaussian": "sfumato.numerics.sampling.integer_noise",
        "discrete_laplace": "sfumato.numerics.sampling.integer_noise",
        "geometric": "sfumato.numerics.sampling.integer_noise",
        "polya": "sfumato.numerics.sampling.integer_noise",
        "flip": "sfumato.numerics.sampling.choice",
        "random_source": "sfumato.numerics.randomness.source",
    },
)
