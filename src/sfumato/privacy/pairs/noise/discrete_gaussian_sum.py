r"""The sum of n discrete Gaussian draws and the same moved by a whole number: an exact sum over the integers.

The mass function of the sum is the n-fold convolution of one draw's. All its terms are positive, so that
each convolution of m terms loses at most m + 1 roundings, relative to the result. One draw is followed to 30
of its standard deviations and a sum to 30 of its own and 30 of a draw's; what is left out has a mass below
1e-190 for each addition, by the tail :math:`2 e^{-x^2/2nv}` of a subgaussian sum (Canonne, Kamath, Steinke
2020). Only masses above 1e-150 are used, of which that is a part below 1e-30 for up to 2^20 draws, less than
a rounding. All that lies outside counts as revealed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.certified.discrete_gaussian_tail import normaliser
from sfumato.numerics.rounding import sqrt_up
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.pairs.bins import NO_ATOMS, Points
from sfumato.privacy.pairs.pair import AtomicPair

__all__ = ["MAX_SUMMANDS", "MAX_VARIANCE", "discrete_gaussian_sum_pair"]

_Array = NDArray[np.float64]

MAX_VARIANCE: Final = 64**2
"""Of the sum; above, its convolutions take long and the discrete Gaussian beside it is as good."""
MAX_SUMMANDS: Final = 1 << 20
_REACH: Final = 30
_SMALLEST: Final = 1e-150


def discrete_gaussian_sum_pair(stddev: Fraction, summands: int, shift: int) -> AtomicPair:
    """Return the pair of the sum of draws and the same moved by ``shift``.

    Parameters
    ----------
    stddev : Fraction
        Of each draw; positive, and ``summands * stddev**2`` at most `MAX_VARIANCE`.
    summands : int
        From 1 to `MAX_SUMMANDS`.
    shift : int
        Positive.

    Returns
    -------
    AtomicPair
        The sum is log-concave and symmetric: thresholds are the best tests, the pair dominates every smaller
        shift, and both orders are alike.
    """
    masses, each = _masses(stddev, summands)
    logs = np.log(masses)
    log_q, log_p = logs[shift:], logs[: max(0, len(logs) - shift)]
    error = np.full(len(log_p), each)
    rounded = UNIT * (8 + 4 * (np.abs(log_p) + np.abs(log_q)))
    loss_error = 2 * (error + rounded)
    points = Points(log_p, log_p - log_q, error + rounded, loss_error) if len(log_p) else NO_ATOMS
    # The masses of what is not followed: next to nothing, and of the ends that only one of the two reaches.
    outside = 1e-140 + math.fsum(masses[:0:-1][:shift].tolist()) if len(log_p) else 1.0
    revealed = min(1.0, above(outside * (1 + 4 * each), 64.0))
    return AtomicPair(points, only_p=revealed, only_q=revealed, symmetric=True, tight=False)


@lru_cache(maxsize=64)
def _masses(stddev: Fraction, summands: int) -> tuple[_Array, float]:
    """Return the masses of the sum above `_SMALLEST`, and a bound on the errors of their logarithms."""
    variance = stddev * stddev
    reach = math.ceil(_REACH * stddev) + 1
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    exponents = x * x * float(1 / (2 * variance))
    norm = normaliser(stddev)
    one = np.exp(-exponents) / norm.upper
    # Up to 450 and a step beyond, each exponent is off by four roundings of itself.
    units = 16.0 + 4 * min(float(exponents.max()), 700.0) + (norm.upper - norm.lower) / norm.lower / UNIT
    total, total_units, count = one, units, 1
    for bit in bin(summands)[3:]:
        total, total_units, count = *_added(total, total_units, total, total_units), 2 * count
        if bit == "1":
            total, total_units, count = *_added(total, total_units, one, units), count + 1
        most = math.ceil(_REACH * (sqrt_up(float(count * variance)) + float(stddev))) + 1
        cut = max(0, len(total) // 2 - most)
        total = total[cut : len(total) - cut]
    return total[total > _SMALLEST], above(1.01 * UNIT * total_units, 4.0)


def _added(one: _Array, units: float, other: _Array, more: float) -> tuple[_Array, float]:
    shorter = min(len(one), len(other))
    return np.convolve(one, other), units + more + shorter + 2
