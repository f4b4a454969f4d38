"""Numerics: secure randomness, exact noise, certified probabilities, outward rounding.

Raw samplers live here: they add no privacy by themselves and charge no ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.numerics.choice import choose, flip
    from sfumato.numerics.interval import Interval
    from sfumato.numerics.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw
    from sfumato.numerics.race import choose_distinct
    from sfumato.numerics.samplers import discrete_gaussian, discrete_laplace, geometric, polya
    from sfumato.numerics.source import RandomSource, Rng, SecureSource, SimulatedSource, random_source

__all__ = [
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
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
        "DiscreteGaussianLaw": "sfumato.numerics.laws",
        "DiscreteLaplaceLaw": "sfumato.numerics.laws",
        "Interval": "sfumato.numerics.interval",
        "RandomSource": "sfumato.numerics.source",
        "Rng": "sfumato.numerics.source",
        "SecureSource": "sfumato.numerics.source",
        "SimulatedSource": "sfumato.numerics.source",
        "choose": "sfumato.numerics.choice",
        "choose_distinct": "sfumato.numerics.race",
        "discrete_gaussian": "sfumato.numerics.samplers",
        "discrete_laplace": "sfumato.numerics.samplers",
        "geometric": "sfumato.numerics.samplers",
        "polya": "sfumato.numerics.samplers",
        "flip": "sfumato.numerics.choice",
        "random_source": "sfumato.numerics.source",
    },
)
