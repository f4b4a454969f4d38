"""Two Laplace distributions one sensitivity apart, cut by their loss."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import Bins, Points
from sfumato.privacy.pairs.bounded import BoundedPair

__all__ = ["LaplacePair"]

_Array = NDArray[np.float64]


class LaplacePair(BoundedPair):
    r"""Laplace distributions of scale 1 that lie ``bound`` apart.

    Parameters
    ----------
    bound : float
        The largest loss, positive and finite.

    Notes
    -----
    The loss is :math:`\pm\epsilon_0` outside of the two centres and falls evenly between them. Between the
    losses :math:`y_1 < y_2` lies the P-mass :math:`\frac12 e^{(y_2 - \epsilon_0)/2}(1 - e^{(y_1 - y_2)/2})`,
    and the ratio of the two masses there is :math:`e^{(y_1 + y_2)/2}`.
    """

    __slots__ = ()

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Return the masses in closed form; both orders are the same."""
        del swapped
        bound, left, right = self._bound, cuts[:-1], cuts[1:]
        with np.errstate(divide="ignore"):
            log_p = 0.5 * (right - bound) + np.log(-np.expm1(0.5 * (left - right))) - math.log(2)
        middle = 0.5 * (left + right)
        points = Points(log_p, middle, UNIT * (16 + 4 * np.abs(log_p) + 4 * bound), 2 * UNIT * np.abs(middle))
        ends = np.array([-bound - math.log(2), -math.log(2)])
        atoms = Points(ends, np.array([-bound, bound]), 4 * UNIT * np.abs(ends), np.zeros(2))
        return Bins(points=points, edges=cuts, edge_error=np.zeros(len(cuts)), atoms=atoms)
