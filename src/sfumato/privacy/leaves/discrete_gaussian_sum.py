"""The sum of discrete Gaussian noise that several parties draw, on integers that move in the L2 norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato._wire import INTEGER, RATIONAL
from sfumato.numerics.rounding import add_up, fraction_up, sqrt_up
from sfumato.privacy._outward import above, times_above
from sfumato.privacy.leaves.discrete_gaussian_sum_views import closeness, gdp_rate
from sfumato.privacy.leaves.discrete_gaussian_views import GDP_MASS
from sfumato.privacy.leaves.leaf import ConcentratedLeaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.noise.discrete_gaussian_sum import (
    MAX_SUMMANDS,
    MAX_VARIANCE,
    discrete_gaussian_sum_pair,
)
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.pairs.wrapped import FailureMassPair
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, ZCDPView

__all__ = ["DiscreteGaussianSum"]


@final
@serialized_as(
    "discrete-gaussian-sum",
    stddev=RATIONAL,
    summands=INTEGER,
    l2_squared=INTEGER,
    dimension=INTEGER,
    neighboring=RELATION,
)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class DiscreteGaussianSum(ConcentratedLeaf):
    r"""Independent discrete Gaussian noise of several parties, added up on integers that move.

    A sum of discrete Gaussians is no discrete Gaussian. Noise of one party is a `DiscreteGaussianVector`.

    Parameters
    ----------
    stddev : int, float or Fraction
        Each party's noise has mass proportional to ``exp(-x**2 / (2 * stddev**2))``; 0 is no noise.
    summands : int
        How many parties add such noise to every integer, at least 1; those that might not, or that tell
        their noise to the adversary, do not count.
    l2_squared : int
        The most that the squares of the integers' moves add up to; at least 1.
    dimension : int
        How many integers there are, at least 1.
    neighboring : Neighboring or Relation
        The relation that the moves are about. Under add/remove a party that is gone adds no noise either:
        count it out, or use zero-out.

    Notes
    -----
    Guarantee: as stated for each view, under the relation that the moves are stated for. Let n be the
    summands, v the square of ``stddev``, S of ``l2_squared``; the integers may be chosen one after another
    with regard to the answers so far, as long as the squares of their moves add up to at most S on every
    path. At most :math:`l = \min(d, S)` of the d integers move. By `discrete_gaussian_sum_views` the noise is
    R times the discrete Gaussian of variance :math:`nv`, where R varies by no more than a factor of
    :math:`e^\tau`.

    *zCDP.* For a shift by t the loss at x is that of the discrete Gaussian, :math:`(t^2 - 2xt)/2nv`, plus
    :math:`\log R(x) - \log R(x-t) \le \tau`. A discrete Gaussian of variance v is subgaussian with v
    (Canonne, Kamath, Steinke 2020), so the sum is with :math:`nv`, and for :math:`s = \alpha - 1`

    .. math:: \log E e^{sL} \le s \tau + s \frac{t^2}{2nv} + \frac{s^2 t^2}{2nv}
              = s \Bigl(\tau + \alpha \frac{t^2}{2nv}\Bigr).

    So the divergence is at most :math:`\alpha t^2/2nv + \tau`; along a path these add up, as in
    `DiscreteGaussianVector`, to :math:`\alpha S/2nv + \tau l \le \alpha (S/2nv + \tau l)`.

    *Gaussian DP.* There is a rate r, little above :math:`1/\sqrt{nv}`, such that a shift by t is
    :math:`rt`-Gaussian DP up to a mass of 1e-120 (`discrete_gaussian_sum_views.gdp_rate`); the rest is as
    in `DiscreteGaussianVector`.

    *One dimension.* The pair is that of the sum's own distribution, by convolution, and not by R.

    References
    ----------
    Kairouz, Liu, Steinke (2021), "The distributed discrete Gaussian mechanism for federated learning with
    secure aggregation": concentrated DP of the sum with a term in tau; Canonne, Kamath, Steinke (2020), "The
    discrete Gaussian for differential privacy".

    Examples
    --------
    >>> from sfumato.privacy import Neighboring
    >>> loss = DiscreteGaussianSum(16, 100, 160**2, 4096, neighboring=Neighboring.ZERO_OUT)
    >>> round(loss.zcdp().rho, 9), round(loss.epsilon(1e-6), 4)
    (0.5, 4.8866)
    """

    _any_relation = True

    stddev: Fraction
    summands: int
    l2_squared: int
    dimension: int
    neighboring: Relation
    _rho: float = field(init=False, compare=False)
    _tau: float = field(init=False, compare=False)

    def __init__(
        self,
        stddev: float | Fraction,
        summands: int,
        l2_squared: int,
        dimension: int,
        *,
        neighboring: Relation = Neighboring.ADD_REMOVE,
    ) -> None:
        self._set_exact("stddev", stddev)
        remedy = "count the parties whose noise is sure and secret"
        self._set("summands", _check.integer("summands", summands, minimum=1, remedy=remedy))
        remedy = "integers that no unit can move need neither noise nor a loss"
        self._set("l2_squared", _check.integer("l2_squared", l2_squared, minimum=1, remedy=remedy))
        self._set("dimension", _check.integer("dimension", dimension, minimum=1, remedy=remedy))
        self._set_relation(neighboring)
        self._set("_rho", math.inf)
        self._set("_tau", math.inf)
        if self.stddev:
            self._set("_tau", closeness(self.stddev**2, self.summands))
            moved = times_above(min(self.dimension, self.l2_squared), self._tau)
            self._set("_rho", add_up(fraction_up(self.l2_squared / self._variance / 2), moved))

    @property
    def _variance(self) -> Fraction:
        return self.summands * self.stddev**2

    @property
    def _convolved(self) -> bool:
        return 0 < self._variance <= MAX_VARIANCE and self.summands <= MAX_SUMMANDS

    def zcdp(self) -> ZCDPView:
        """Return ``l2_squared / (2 * summands * stddev**2)`` and the term in tau; proof in the class's notes.

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
        rate = gdp_rate(self._variance, math.isqrt(self.l2_squared), self._tau) if self.stddev else math.inf
        mass = times_above(self.l2_squared, GDP_MASS)
        if math.isinf(rate) or mass > 1e-90:
            return GDPView(math.inf, 0.0)
        return GDPView(above(rate * sqrt_up(fraction_up(self.l2_squared)), 4.0), mass)

    def dominating_pair(self) -> Pair:
        """Return the two sums in one dimension, else two normal distributions from the Gaussian DP view.

        In one dimension the pair is exact up to a mass of 1e-140, for sums of a standard deviation up to 64.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        if self.dimension == 1 and self._convolved:
            return discrete_gaussian_sum_pair(self.stddev, self.summands, math.isqrt(self.l2_squared))
        mu, mass = self.gdp()
        return FailureMassPair(NormalPair(mu), mass) if mu < math.inf else two_points(mu)

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return DiscreteGaussianSum(
            self.stddev, self.summands, self.l2_squared * steps**2, self.dimension, neighboring=relation
        )
