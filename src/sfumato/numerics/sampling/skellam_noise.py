"""An exact sampler of Skellam noise: the difference of two Poisson numbers of one mean.

Guarantee: given uniform random bits, the output distribution is exactly the stated one, for the rational
number that the variance is. Poisson numbers are looked up in tables as in
`sfumato.numerics.sampling.integer_noise`; one of a large mean is a sum of several. These functions add noise
to nothing and charge no ledger.

References
----------
Skellam (1946), "The frequency distribution of the difference between two Poisson variates".
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato._check import fraction, integer, refuse
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.sampling.plans import SamplingPlan, poisson_plan

__all__ = ["LARGEST_VARIANCE", "skellam"]

LARGEST_VARIANCE: Final = 1 << 22
"""Largest variance that is drawn: so many Poisson numbers are added."""

_LARGEST_MEAN: Final = 1 << 13
_BLOCK: Final = 1 << 13
_MINIMUM: Final = 256


def skellam(variance: int | float | Fraction, size: int, rng: Rng = None) -> NDArray[np.int64]:
    """Draw from the symmetric Skellam distribution, the difference of two Poisson numbers, exactly.

    Parameters
    ----------
    variance : int, float or Fraction
        Twice the mean of each Poisson number. Positive, at most 2**22; a float means the rational it is.
    size : int
        How many draws.
    rng : int, numpy.random.Generator, RandomSource or None
        None for noise that protects; anything else simulates.

    Returns
    -------
    ndarray of int64
        Independent draws. Sums of them have the Skellam distribution of the sum of the variances.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Examples
    --------
    >>> skellam(100, 4, rng=1).dtype
    dtype('int64')
    """
    exact = fraction("variance", variance, "pass the variance of the noise")
    if exact > LARGEST_VARIANCE:
        refuse("variance", "be at most 2**22", variance, "measure the value in larger steps")
    count = integer("size", size, remedy="pass how many draws are wanted")
    parts = ceil(exact / 2 / _LARGEST_MEAN)
    plan, source = poisson_plan(exact / 2 / parts), random_source(rng)
    total = np.zeros(count, np.int64)
    for _ in range(parts):
        total += _poisson(plan, count, source)
        total -= _poisson(plan, count, source)
    return total


def _poisson(plan: SamplingPlan, count: int, source: RandomSource) -> NDArray[np.int64]:
    """Return draws of a plan without their signs, in blocks whose sizes follow no draw."""
    out = np.empty(max(count, _MINIMUM if count else 0), np.int64)
    for start in range(0, len(out), _BLOCK):
        plan.fill(out[start : start + _BLOCK], source)
    return np.abs(out[:count])
