"""Pairs with a bounded loss, cut by it: of Laplace noise, and of every mechanism of bounded range."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT, below
from sfumato.privacy.pairs.bins import Bins, Number, Points
from sfumato.privacy.pairs.pair import Pair

__all__ = ["BoundedRangePair", "LaplacePair"]

_Array = NDArray[np.float64]

_COARSE: Final = 96


class _BoundedPair(Pair):
    """A pair with losses from minus ``bound`` to ``bound``, whose masses between any two are exact.

    Parameters
    ----------
    bound : float
        The largest loss, positive and finite; a column for pairs that are side by side.
    """

    __slots__ = ("_bound",)

    def __init__(self, bound: Number) -> None:
        self._bound = bound

    @property
    def kind(self) -> Hashable:
        """All pairs of the class."""
        return type(self)

    @property
    def parameters(self) -> Sequence[float | _Array]:
        """The bound."""
        return [self._bound]

    def stacked(self, parameters: _Array) -> Pair:
        """Return pairs with these bounds."""
        return type(self)(parameters[0])

    @property
    def supremum(self) -> float:
        """The largest loss."""
        return below(self._bound)

    def cuts(self, reach: float) -> _Array:
        """Return cuts of all losses."""
        del reach
        return np.asarray(self._bound * np.linspace(-1.0, 1.0, _COARSE + 1))

    def rate(self, cuts: _Array) -> _Array:
        """Return a few bins in all: every cut is exact."""
        return np.asarray(8 / self._bound * np.ones_like(cuts[..., 1:]))


class LaplacePair(_BoundedPair):
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
        bound, left, right = self._bound, cuts[..., :-1], cuts[..., 1:]
        with np.errstate(divide="ignore"):
            log_p = 0.5 * (right - bound) + np.log(-np.expm1(0.5 * (left - right))) - math.log(2)
        middle = 0.5 * (left + right)
        points = Points(log_p, middle, UNIT * (16 + 4 * np.abs(log_p) + 4 * bound), 2 * UNIT * np.abs(middle))
        ends = bound * np.array([-1.0, 0.0]) - math.log(2)
        losses = bound * np.array([-1.0, 1.0])
        atoms = Points(ends, losses, 4 * UNIT * np.abs(ends), np.zeros(losses.shape))
        return Bins(points=points, edges=cuts, edge_error=np.zeros(cuts.shape), atoms=atoms)


class BoundedRangePair(_BoundedPair):
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

    tight = False
    """False: it dominates a family of which no member attains it everywhere."""

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        r"""Return the masses in closed form; both orders are the same.

        Between the losses :math:`y_1 < y_2` lies the P-mass :math:`e^{(y_2 - \epsilon)/2}(1 - e^{(y_1 -
        y_2)/2})/(1 - e^{-\epsilon})`, and the ratio of both masses is :math:`e^{(y_1 + y_2)/2}`.
        """
        del swapped
        bound, left, right = self._bound, cuts[..., :-1], cuts[..., 1:]
        with np.errstate(divide="ignore"):
            log_fraction = np.log(-np.expm1(0.5 * (left - right)))
        whole = np.log(-np.expm1(-bound))
        log_p = 0.5 * (right - bound) + log_fraction - whole
        error = UNIT * (16 + 4 * np.abs(log_p) + 4 * np.abs(log_fraction) + 4 * np.abs(whole) + 4 * bound)
        middle = 0.5 * (left + right)
        points = Points(log_p, middle, error, 2 * UNIT * np.abs(middle))
        return Bins(points=points, edges=cuts, edge_error=np.zeros(cuts.shape))
