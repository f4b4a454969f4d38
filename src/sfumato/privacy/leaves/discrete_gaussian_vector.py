"""Discrete Gaussian noise on a vector of integers that moves in the L2 norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato._wire import INTEGER, RATIONAL
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import above, times_above
from sfumato.privacy.leaves import discrete_gaussian_views
from sfumato.privacy.leaves.leaf import ConcentratedLeaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.pairs.wrapped import FailureMassPair
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, ZCDPView

__all__ = ["DiscreteGaussianVector"]


@final
@serialized_as("discrete-gaussian-vector", stddev=RATIONAL, l2_squared=INTEGER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class DiscreteGaussianVector(ConcentratedLeaf):
    r"""Independent discrete Gaussian noise on integers that move by at most so much all together.

    Parameters
    ----------
    stddev : int, float or Fraction
        Each noise has mass proportional to ``exp(-x**2 / (2 * stddev**2))``; 0 is no noise.
    l2_squared : int
        The most that the squares of the integers' moves add up to; at least 1.
    neighboring : Neighboring or Relation
        The relation that the moves are about.

    Notes
    -----
    Guarantee: as stated for each view, under the relation that the moves are stated for. The integers may be
    chosen one after another with regard to the answers so far, as long as the squares of their moves
    :math:`d_1, d_2, \dots` add up to at most ``l2_squared``, :math:`S`, on every path.

    *zCDP.* Given the answers so far, the next one is the distribution of the noise shifted by the integer
    :math:`d_t`, whose Rényi divergence is at most :math:`\alpha d_t^2/2\sigma^2` (Canonne, Kamath, Steinke
    2020). So :math:`E_P \exp((\alpha - 1) \sum_t (L_t - \alpha d_t^2/2\sigma^2))`, over the losses
    :math:`L_t`, is at most 1: each factor's expectation given the past is. As the sum of the squares is at
    most :math:`S` on every path, the divergence of all answers is at most :math:`\alpha S/2\sigma^2`.

    *Gaussian DP.* By `discrete_gaussian_views.gdp_rate` there is a rate :math:`r`, little above
    :math:`1/\sigma`, so that a shift by any :math:`d \le \sqrt S` is :math:`rd`-Gaussian DP up to a mass of
    1e-120. Squares of mu and masses add, for parameters that depend on earlier answers too as long as their
    sum is bounded (Smith, Thakurta 2022): so all answers are :math:`r \sqrt S`-Gaussian DP. At most :math:`S`
    integers move, each by 1 or more, which bounds the mass.

    References
    ----------
    Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy"; Denisov, McMahan, Rush,
    Smith, Thakurta (2022), continuous noise on adaptive streams; Smith, Thakurta (2022), "Fully adaptive
    composition for Gaussian differential privacy".

    Examples
    --------
    >>> from sfumato.privacy import ZCDP
    >>> loss = DiscreteGaussianVector(2**20, 2**40)
    >>> loss.zcdp().rho, round(loss.epsilon(1e-6), 4), round(ZCDP(0.5).epsilon(1e-6), 4)
    (0.5, 4.8866, 5.2215)
    """

    _any_relation = True

    stddev: Fraction
    l2_squared: int
    neighboring: Relation
    _rho: float = field(init=False, compare=False)

    def __init__(
        self,
        stddev: float | Fraction,
        l2_squared: int = 1,
        *,
        neighboring: Relation = Neighboring.ADD_REMOVE,
    ) -> None:
        self._set_exact("stddev", stddev)
        remedy = "integers that no unit can move need neither noise nor a loss"
        self._set("l2_squared", _check.integer("l2_squared", l2_squared, minimum=1, remedy=remedy))
        self._set_relation(neighboring)
        rho = fraction_up(self.l2_squared / self.stddev**2 / 2) if self.stddev else math.inf
        self._set("_rho", rho)

    def zcdp(self) -> ZCDPView:
        """Return ``l2_squared / (2 * stddev**2)``; proof in the class's notes.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return ZCDPView(self._rho, 0.0)

    def gdp(self) -> GDPView:
        """Return a proven Gaussian DP parameter up to a mass under 1e-90; proof in the class's notes.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        rate = (
            discrete_gaussian_views.gdp_rate(self.stddev, math.isqrt(self.l2_squared))
            if self.stddev
            else math.inf
        )
        mass = times_above(self.l2_squared, discrete_gaussian_views.GDP_MASS)
        if math.isinf(rate) or mass > 1e-90:
            return GDPView(math.inf, 0.0)
        return GDPView(above(rate * math.sqrt(above(float(self.l2_squared))), 4.0), mass)

    def dominating_pair(self) -> Pair:
        """Return two normal distributions, and the mass, from the Gaussian DP view.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        mu, mass = self.gdp()
        return FailureMassPair(NormalPair(mu), mass) if mu < math.inf else two_points(mu)

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return DiscreteGaussianVector(self.stddev, self.l2_squared * steps**2, neighboring=relation)
