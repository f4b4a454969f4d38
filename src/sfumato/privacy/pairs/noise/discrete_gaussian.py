r"""Two discrete Gaussian distributions a whole number apart, loss by loss.

Throughout, P has mass proportional to :math:`e^{-(x-s)^2/2\sigma^2}` on the integers, and Q the same with
:math:`s = 0`: the loss at :math:`x` is :math:`(2xs - s^2)/2\sigma^2`, and the reflection :math:`x \to s - x`
exchanges the two.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.certified.discrete_gaussian_tail import normaliser
from sfumato.numerics.rounding import log_down, log_up
from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import NO_ATOMS, Bins, Mass, Points
from sfumato.privacy.pairs.noise.wide_discrete_gaussian import (
    MAX_SHIFT,
    MAX_STDDEV,
    MIN_STDDEV,
    WideDiscreteGaussianPair,
    log_tilted_tail,
    log_upper_tail,
)
from sfumato.privacy.pairs.pair import Pair, two_points

__all__ = ["DiscreteGaussianPair", "discrete_gaussian_pair"]

_Array = NDArray[np.float64]

_MAX_ATOMS: Final = 2048
_FARTHEST: Final = 40.0
"""What lies farther out, in standard deviations, is not worth an atom at any delta."""


def discrete_gaussian_pair(stddev: Fraction, shift: int) -> Pair:
    """Return the pair of two discrete Gaussian distributions.

    Parameters
    ----------
    stddev : Fraction
        Non-negative; 0 is no noise.
    shift : int
        Positive.

    Notes
    -----
    Far outside of what is ever drawn (a standard deviation beyond ``2**46``, a shift of many standard
    deviations that is also large) a pair that reveals everything stands in: it dominates.
    """
    if not stddev:
        return two_points(math.inf)
    if stddev <= MIN_STDDEV and shift <= _MAX_ATOMS:
        return DiscreteGaussianPair(stddev, shift)
    if MIN_STDDEV < stddev <= MAX_STDDEV and shift <= MAX_SHIFT * stddev:
        return WideDiscreteGaussianPair(stddev, shift)
    return two_points(math.inf, tight=False)


class DiscreteGaussianPair(Pair):
    """The integers within a reach, each with its loss, and two tails.

    Parameters
    ----------
    stddev : Fraction
        Positive.
    shift : int
        Positive.

    Notes
    -----
    The one cut is the last integer on the right whose loss is followed; on the left it is its mirror image.
    What lies to the right is a tail to which no loss is given; what lies to the left has at most the loss of
    the mirror image.
    """

    __slots__ = ("_shift", "_stddev")

    def __init__(self, stddev: Fraction, shift: int) -> None:
        self._stddev, self._shift = stddev, shift

    supremum = math.inf
    """Infinity."""

    continuous = False
    """Nothing is cut but the tails."""

    def cuts(self, reach: float) -> _Array:
        """Return the last integer on the right."""
        return np.array([float(self._shift + math.ceil(min(reach, _FARTHEST) * self._stddev))])

    def rate(self, cuts: _Array) -> _Array:
        """Return nothing: bins are not needed."""
        return np.zeros(len(cuts) - 1)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the losses that are followed; both orders are the same."""
        del swapped
        return _bins(self._stddev, self._shift, int(cuts[-1]))

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        """Bound the tilted tail; see `log_tilted_tail`."""
        del swapped
        return log_tilted_tail(self._stddev, self._shift, int(cuts[-1]) + 1, tilts)


@lru_cache(maxsize=256)
def _bins(stddev: Fraction, shift: int, last: int) -> Bins:
    rate = float(1 / (2 * stddev * stddev))
    x = np.arange(shift - last, last + 1.0)
    exponents = (x - shift) ** 2 * rate
    norm = normaliser(stddev)
    log_norm = log_down(norm.lower), log_up(norm.upper)
    loss = (2 * x - shift) * shift * rate
    points = Points(
        -exponents - log_norm[1],
        loss,
        4 * UNIT * exponents + 8 * UNIT * abs(log_norm[1]) + (log_norm[1] - log_norm[0]),
        4 * UNIT * np.abs(loss),
    )
    near, far = log_upper_tail(stddev, last + 1 - shift), log_upper_tail(stddev, last + 1)
    edge = float(2 * last + 2 - shift) * shift * rate
    return Bins(
        NO_ATOMS,
        edges=np.array([-edge]),
        edge_error=np.array([4 * UNIT * edge]),
        atoms=points,
        low=Mass(far, near),
        high=Mass(near, far),
    )
