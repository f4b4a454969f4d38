"""Pairs of finite distributions with rational probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

import numpy as np

from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import Points
from sfumato.privacy.pairs.pair import AtomicPair

__all__ = ["log_of", "rational_pair"]

_UNITS: Final = 16
"""Roundings in `log_of`."""
_MINIMUM: Final = 1e-300


def rational_pair(masses: Iterable[tuple[Fraction, Fraction]], *, symmetric: bool = False) -> AtomicPair:
    """Return the pair of two distributions.

    Parameters
    ----------
    masses : iterable of (Fraction, Fraction)
        Of each outcome under P and under Q; both add up to 1. Outcomes of one loss are merged.
    symmetric : bool
        Whether both orders are known to have the same distribution of the loss.
    """
    by_ratio: dict[Fraction, Fraction] = {}
    only_p = only_q = Fraction(0)
    for p, q in masses:
        if p and q:
            by_ratio[p / q] = by_ratio.get(p / q, Fraction(0)) + p
        else:
            only_p, only_q = only_p + p, only_q + q
    ratios = sorted(by_ratio)
    log_p = np.array([log_of(by_ratio[ratio]) for ratio in ratios])
    loss = np.array([log_of(ratio) for ratio in ratios])
    points = Points(log_p, loss, _UNITS * UNIT * np.abs(log_p), _UNITS * UNIT * np.abs(loss))
    return AtomicPair(points, only_p=fraction_up(only_p), only_q=fraction_up(only_q), symmetric=symmetric)


def log_of(value: Fraction) -> float:
    """Return the natural logarithm of a positive rational, its relative error below 16 roundings."""
    if 1 < 2 * value < 4:
        return math.log1p(float(value - 1))
    power = value.numerator.bit_length() - value.denominator.bit_length()
    nearest = float(value) if power < 1000 else 0.0
    if nearest > _MINIMUM:
        return math.log(nearest)
    # Beyond the range of floats: what is left without the power of two lies between a half and two, however
    # long both integers are.
    return power * math.log(2.0) + math.log(float(value / Fraction(2) ** power))
