"""Skellam noise on integers that move in the L1 and the L2 norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import INTEGER, RATIONAL
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import UNIT
from sfumato.privacy.leaves.leaf import Leaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.serialization import serialized_as

__all__ = ["Skellam"]


@final
@serialized_as("skellam", variance=RATIONAL, l1=INTEGER, l2_squared=INTEGER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class Skellam(Leaf):
    r"""Independent Skellam noise, the difference of two Poisson numbers of one mean, on integers that move.

    Independent Skellam noise of several parties adds up to Skellam noise of the sum of the variances.

    Parameters
    ----------
    variance : int, float or Fraction
        Of the noise on each integer, twice the mean of a Poisson number; 0 is no noise.
    l1 : int
        The most that the magnitudes of the integers' moves add up to; at least 1.
    l2_squared : int
        The most that the squares of the integers' moves add up to; at least 1.
    neighboring : Neighboring or Relation
        The relation that the moves are about. Under add/remove a party that is gone adds no noise either:
        leave its variance out, or use zero-out.

    Notes
    -----
    Guarantee: Rényi DP, an upper bound. For whole orders :math:`\alpha \ge 2`, with V the variance,
    :math:`S` and :math:`L` the bounds on the moves,

    .. math:: D_\alpha \le \frac{\alpha S}{2V}
              + \min\Bigl(\frac{(2\alpha - 1) S + 6 L}{4 V^2}, \frac{3 L}{2 V}\Bigr)

    (Agarwal, Kairouz, Liu 2021, for one integer; divergences of independent ones add up). Since
    :math:`(\alpha - 1) D_\alpha` is convex and 0 at order 1, the other orders have the chords between whole
    ones. A whole number is at most its square, so that L is never above S.

    It states no zCDP, which is a bound at all orders: a largest ratio over orders up to some cap is none. The
    theorem begins at order 2, and its chord down to order 1 is twice a Gaussian's divergence there. The rho
    that the curve does prove is therefore about :math:`S/V`, twice what one expects.

    References
    ----------
    Agarwal, Kairouz, Liu (2021), "The Skellam mechanism for differentially private federated learning".

    Examples
    --------
    >>> loss = Skellam(10**4, l1=500, l2_squared=10**4)
    >>> round(loss.rdp(2.0), 4), round(loss.epsilon(1e-6), 3)
    (1.0001, 5.223)
    """

    _any_relation = True

    variance: Fraction
    l1: int
    l2_squared: int
    neighboring: Relation
    _rates: tuple[float, float, float, float] = field(init=False, compare=False)

    def __init__(
        self,
        variance: float | Fraction,
        l1: int,
        l2_squared: int,
        *,
        neighboring: Relation = Neighboring.ADD_REMOVE,
    ) -> None:
        self._set_exact("variance", variance)
        remedy = "integers that no unit can move need neither noise nor a loss"
        self._set("l1", _check.integer("l1", l1, minimum=1, remedy=remedy))
        self._set("l2_squared", _check.integer("l2_squared", l2_squared, minimum=1, remedy=remedy))
        self._set_relation(neighboring)
        rates = math.inf, math.inf, math.inf, math.inf
        if self.variance:
            v, length = self.variance, min(self.l1, self.l2_squared)
            rates = (
                fraction_up(self.l2_squared / (2 * v)),
                fraction_up(self.l2_squared / (4 * v * v)),
                fraction_up(6 * length / (4 * v * v)),
                fraction_up(3 * length / (2 * v)),
            )
        self._set("_rates", rates)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the theorem's bounds at whole orders, and their chords between them.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        below = np.maximum(np.floor(orders), 1.0)
        part = orders - below
        low = np.where(below > 1, (below - 1) * self._whole(np.maximum(below, 2.0)), 0.0)
        chord = (1 - part) * low + part * below * self._whole(below + 1)
        return np.asarray(np.nextafter(chord / (orders - 1) * (1 + 32 * UNIT), np.inf))

    def _whole(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        main, square, cross, linear = self._rates
        return np.asarray(orders * main + np.minimum((2 * orders - 1) * square + cross, linear))

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return Skellam(self.variance, self.l1 * steps, self.l2_squared * steps**2, neighboring=relation)
