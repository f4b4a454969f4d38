"""The pair that dominates every mechanism of bounded range, such as the exponential mechanism."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import Bins, Points
from sfumato.privacy.pairs.bounded import BoundedPair

__all__ = ["BoundedRangePair"]

_Array = NDArray[np.float64]


class BoundedRangePair(BoundedPair):
    r"""The smallest pair above every two distributions whose losses lie within ``bound`` of one another.

    Parameters
    ----------
    bound : float
        The range :math:`\epsilon`, positive and finite.

    Notes
    -----
    *One pair for each t.* Let the loss :math:`L = \log(dP/dQ)` lie in :math:`[t - \epsilon, t]`; as :math:`R
    = e^{-L}` has mean 1 under :math:`P`, :math:`0 \le t \le \epsilon`. Moving the mass to the two ends with
    its mean preserved is a mean-preserving spread of :math:`R`, so the pair is dominated by the one with the
    losses :math:`t` and :math:`t - \epsilon` only, where :math:`P(L = t) = (e^\epsilon - e^t)/(e^\epsilon
    - 1)` (Dong, Durfee, Rogers 2020). For :math:`|x| \le \epsilon` its hockey-stick divergence at :math:`x`
    is at most that of :math:`t = (\epsilon + x)/2`, which is

    .. math:: H(x) = \frac{(e^{\epsilon/2} - e^{x/2})^2}{e^\epsilon - 1}.

    *No t is the worst one* for all :math:`x`, and which one it is may depend on the datasets, and in an
    adaptive composition on earlier answers: no single pair of two points dominates. :math:`H` does, and as a
    function of :math:`s = e^x` it is convex, falls, and meets :math:`1 - s` at :math:`e^{-\epsilon}` and 0 at
    :math:`e^\epsilon` with their slopes: it is the profile of a pair. Its derivative in :math:`s` is minus
    the :math:`Q`-mass above :math:`x`, so the loss has, on :math:`[-\epsilon, \epsilon]`, the density
    proportional to :math:`e^{x/2}` under :math:`P` and to :math:`e^{-x/2}` under :math:`Q`. Dominating pairs
    compose under adaptive choice (Zhu, Dong, Wang 2022), so this one does; and it is the smallest one that
    does, as :math:`H` is attained at every :math:`x`. It is not the pair of two neighbors, so it is not
    tight.
    """

    __slots__ = ()

    @property
    def tight(self) -> bool:
        """False: it dominates a family of which no member attains it everywhere."""
        return False

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        r"""Return the masses in closed form; both orders are the same.

        Between the losses :math:`y_1 < y_2` lies the P-mass :math:`e^{(y_2 - \epsilon)/2}(1 - e^{(y_1 -
        y_2)/2})/(1 - e^{-\epsilon})`, and the ratio of both masses is :math:`e^{(y_1 + y_2)/2}`.
        """
        del swapped
        bound, left, right = self._bound, cuts[:-1], cuts[1:]
        with np.errstate(divide="ignore"):
            log_fraction = np.log(-np.expm1(0.5 * (left - right)))
        whole = math.log(-math.expm1(-bound))
        log_p = 0.5 * (right - bound) + log_fraction - whole
        error = UNIT * (16 + 4 * np.abs(log_p) + 4 * np.abs(log_fraction) + 4 * abs(whole) + 4 * bound)
        middle = 0.5 * (left + right)
        points = Points(log_p, middle, error, 2 * UNIT * np.abs(middle))
        return Bins(points=points, edges=cuts, edge_error=np.zeros(len(cuts)))
