"""Two discrete Laplace distributions an integer apart: their losses one by one, or cut into bins."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT, below
from sfumato.privacy.pairs.bins import Bins, Points
from sfumato.privacy.pairs.pair import AtomicPair, Pair, two_points

__all__ = ["discrete_laplace_pair"]

_Array = NDArray[np.float64]

_COARSE: Final = 96
_MAX_ATOMS: Final = 2048
_MAX_SHIFT: Final = 2**50
"""Sums of larger integers are not exact in floats."""
_MIN_RATE: Final = 1e-280
"""Products of a smaller number lose their relative accuracy."""


def discrete_laplace_pair(rate: float, shift: int, bound: float) -> Pair:
    r"""Return the pair with masses as ``exp(-rate * abs(y - shift))`` and ``exp(-rate * abs(y))``.

    Parameters
    ----------
    rate : float
        The inverse scale, rounded up.
    shift : int
        Positive.
    bound : float
        The largest loss, ``rate * shift``, rounded up; infinity for no noise.

    Notes
    -----
    Write :math:`t` for the rate, :math:`s` for the shift and :math:`r = e^{-t}`. The loss at :math:`y` is
    :math:`t(|y| - |y - s|)`: :math:`\pm st` outside, with the P-mass :math:`1/(1 + r)` at :math:`y \ge s` and
    :math:`r^s/(1 + r)` at :math:`y \le 0`, and :math:`t(2y - s)` between, with the P-mass :math:`r^{s-y}
    (1 - r)/(1 + r)` each. The reflection :math:`y \to s - y` exchanges the two distributions.

    Where the rate or the shift leaves what floats can follow, randomized response of the same largest loss
    stands in; it dominates.
    """
    if math.isinf(bound) or bound == 0:
        return two_points(bound)
    if rate < _MIN_RATE or shift > _MAX_SHIFT:
        return two_points(bound, tight=False)
    if shift > _MAX_ATOMS:
        return _CutPair(rate, shift)
    y = np.arange(1.0, shift)
    ends = _ends(rate, shift)
    mass_error = float(ends.mass_error.max()) + 4 * UNIT * (16 + abs(math.log(-math.expm1(-rate))))
    log_p = math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate)) - rate * (shift - y)
    loss = rate * (2 * y - shift)
    points = Points(
        np.concatenate([ends.log_p[:1], log_p, ends.log_p[1:]]),
        np.concatenate([ends.loss[:1], loss, ends.loss[1:]]),
        np.full(shift + 1, mass_error),
        np.full(shift + 1, float(ends.loss_error.max())),
    )
    return AtomicPair(points, symmetric=True)


def _ends(rate: float, shift: int) -> Points:
    """Return the losses below 0 and above the shift."""
    top = -math.log1p(math.exp(-rate))
    bound = rate * shift
    error = np.full(2, UNIT * (8 + 4 * bound))
    return Points(
        np.array([top - bound, top]), np.array([-bound, bound]), error, np.full(2, 4 * UNIT * bound)
    )


class _CutPair(Pair):
    r"""Many losses, cut by y.

    Notes
    -----
    The bin between the cuts :math:`i` and :math:`j` holds :math:`i, \dots, j - 1`. They have the P-mass
    :math:`r^{s-j+1}(1 - r^{j-i})/(1 + r)` and the Q-mass :math:`r^i(1 - r^{j-i})/(1 + r)`, so together the
    loss :math:`t(i + j - 1 - s)`, and their losses lie between those of :math:`i` and :math:`j`. A bin of one
    integer has the loss of its left end, so that nothing is lost there.
    """

    __slots__ = ("_rate", "_shift")

    def __init__(self, rate: float, shift: int) -> None:
        self._rate, self._shift = rate, shift

    @property
    def supremum(self) -> float:
        """The largest loss."""
        return below(self._rate * self._shift, 8.0)

    def cuts(self, reach: float) -> _Array:
        """Return cuts of all integers between 0 and the shift."""
        del reach
        return self.snapped(np.linspace(1.0, self._shift, _COARSE + 1))

    def snapped(self, cuts: _Array) -> _Array:
        """Return integers."""
        return np.unique(np.rint(cuts))

    def rate(self, cuts: _Array) -> _Array:
        """Return a few bins in all: every cut is exact."""
        return np.full(len(cuts) - 1, 16 / self._shift)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the masses in closed form."""
        t, s = self._rate, self._shift
        cuts = self.snapped(cuts)
        left, right = cuts[:-1], cuts[1:]
        log_mass = np.log(-np.expm1(-t * (right - left))) - math.log1p(math.exp(-t))
        log_p = log_mass - t * (s + 1 - right)
        loss = t * ((left - s) + (right - 1))
        error = UNIT * (16 + 4 * t * s)
        points = Points(
            log_p,
            loss,
            error + 4 * UNIT * np.abs(log_mass),
            np.full(len(loss), 8 * UNIT * t * s),
        )
        edges = t * (2 * cuts - s)
        edge_error = np.full(len(cuts), 8 * UNIT * t * s)
        bins = Bins(points=points, edges=edges, edge_error=edge_error, atoms=_ends(t, s))
        return bins.swapped() if swapped else bins
