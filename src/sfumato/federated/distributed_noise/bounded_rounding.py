r"""Rounding to integers at random, with a bound on the L2 norm that always holds.

Each entry is rounded up or down so that its mean stays the same. That can lengthen the vector by up to
:math:`\sqrt d`, but hardly ever does: the square of the new length is at most
:math:`\|x\|^2 + d/4 + \sqrt{2 \log(1/\beta)} (\|x\| + \sqrt d/2)` but for a probability of :math:`\beta`
(Kairouz, Liu, Steinke 2021, conditional rounding). Here :math:`\beta = 2^{-40}`; the vector is rounded once,
and if it is longer than the bound nevertheless, every entry is rounded towards zero instead, which lengthens
nothing. So the bound holds always, the mean moves by no more than the probability of that, and there is one
try whatever the vector is.

>>> import numpy as np
>>> from sfumato.numerics.randomness.source import SimulatedSource
>>> bound = largest_norm_squared(10.0, 4)
>>> rounded = round_within(np.full(4, 4.9), bound, SimulatedSource(1))
>>> rounded.tolist(), int((rounded**2).sum()) <= bound
([5, 4, 5, 4], True)
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy._outward import above

__all__ = ["ROUNDING_FAILURE", "largest_norm_squared", "round_within"]

ROUNDING_FAILURE: Final = 2.0**-40
"""The most probable that the norm is above its bound before it is enforced."""

_DEVIATION: Final = 7.4467  # the root of 80 log 2, rounded up; a number, so that no library's log decides
_Vector = NDArray[np.float64]


def largest_norm_squared(norm: float, dimension: int) -> int:
    """Return the bound on the squared L2 norm of a rounded vector.

    Parameters
    ----------
    norm : float
        The most that the vector's L2 norm is before it is rounded.
    dimension : int
        Entries.

    Returns
    -------
    int
        At least 1.
    """
    root = math.sqrt(dimension)
    likely = norm * norm + dimension / 4 + _DEVIATION * (norm + root / 2)
    return max(1, math.floor(above(min(likely, (norm + root) ** 2), 32.0)))


def round_within(values: _Vector, largest: int, source: RandomSource) -> NDArray[np.int64]:
    """Return a vector rounded to integers, its squared L2 norm at most ``largest``.

    Parameters
    ----------
    values : ndarray of float
        Each below 2^31 in magnitude.
    largest : int
        From `largest_norm_squared`.
    source : RandomSource

    Returns
    -------
    ndarray of int64
    """
    floors = np.floor(values)
    uniform = (source.words(len(values)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    rounded = (floors + (uniform < values - floors)).astype(np.int64)
    for candidate in (rounded, np.trunc(values).astype(np.int64)):
        if _norm_squared(candidate) <= largest:
            return candidate
    return np.zeros_like(rounded)


def _norm_squared(values: NDArray[np.int64]) -> int:
    # Blocks of 2^16 squares, each below 2^62 only if the norm is: so sums go over halves of 32 bits.
    squares = values * values
    low, high = squares & 0xFFFFFFFF, squares >> 32
    return int(low.sum()) + (int(high.sum()) << 32)
