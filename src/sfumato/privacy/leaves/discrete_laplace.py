"""Discrete Laplace noise on the integers, priced as the discrete distribution that is sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato._wire import INTEGER, RATIONAL
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import above, below, times_above
from sfumato.privacy.conversion import pure_to_gdp
from sfumato.privacy.gaussian_profile import upper_quantile
from sfumato.privacy.leaves.leaf import Leaf, bounded_rdp, laplace_kl
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.noise.discrete_laplace import discrete_laplace_pair
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["DiscreteLaplace"]


@final
@serialized_as("discrete-laplace", scale=RATIONAL, sensitivity=INTEGER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class DiscreteLaplace(Leaf):
    r"""Discrete Laplace noise on an integer that moves by at most ``sensitivity``.

    ``DiscreteLaplace(scale, s) * l0`` prices a vector of which at most ``l0`` entries move, each by at most
    ``s``.

    Parameters
    ----------
    scale : int, float or Fraction
        The noise has mass proportional to ``exp(-abs(x) / scale)``; 0 is no noise.
    sensitivity : int
        At least 1.
    neighboring : Neighboring or Relation
        The relation that the sensitivity is about.

    Notes
    -----
    Guarantee: every view is that of the pair of two such distributions ``sensitivity`` apart, which dominates
    every smaller shift, under the relation that the sensitivity is stated for. Write :math:`t` = 1/scale,
    :math:`s` for the sensitivity, :math:`r = e^{-t}` and :math:`\epsilon_0 = st`.

    *Profile.* The loss at :math:`x \in [0, s]` is :math:`t(s - 2x)`, constant outside, so the worst event is
    :math:`x \le j`; its hockey-stick value is :math:`[(1 - r^{w}) + r (1 - r^j)]/(1 + r)`, :math:`w = s - j -
    \epsilon/t`.

    *Gaussian DP.* The trade-off vertices are :math:`\alpha = r^k/(1+r)`, :math:`\beta = r^{s+1-k}/(1+r)`,
    :math:`1 \le k \le s`. As the log of the normal upper tail is concave and :math:`\log\alpha + \log\beta`
    is constant, the sum of the two normal quantiles is at most that at the middle:
    :math:`\mu \le -2 \Phi^{-1}(r^{(s+1)/2}/(1+r))`.

    *zCDP.* With :math:`u = \alpha - 1/2` the divergence is the log of :math:`2 a T_s(\cosh ut) + U_s(\cosh
    ut)` (Chebyshev polynomials, :math:`a = r/(1-r)`) over :math:`\alpha - 1`, up to a constant. That
    polynomial is :math:`(1+a) (U_s - r U_{s-2})`, and on :math:`c = \cos\theta` it is proportional to the
    imaginary part of :math:`e^{i(s+1)\theta}(1 - r e^{-2i\theta})` over :math:`\sin\theta`, whose argument
    climbs by :math:`(s+1)\pi` on :math:`[0, \pi]`: all :math:`s` zeros lie in (-1, 1). As a function of
    :math:`v = u^2` it is therefore entire of order 1/2 with real negative zeros, and its log is concave by
    Hadamard's product. Hence :math:`D_\alpha / \alpha` is at most its limit at order 1, the Kullback-Leibler
    divergence :math:`\epsilon_0 - (1 - e^{-\epsilon_0})\, t / \sinh t`.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2012), the geometric mechanism; Canonne, Kamath, Steinke (2020), its
    sampling.

    Examples
    --------
    >>> DiscreteLaplace(2).epsilon(0.0), (DiscreteLaplace(10, 5) * 2).epsilon(0.0)
    (0.5, 1.0)
    """

    _any_relation = True

    scale: Fraction
    sensitivity: int
    neighboring: Relation
    # Rounded up: the inverse scale, the largest loss, and the Kullback-Leibler divergence.
    _rate: float = field(init=False, compare=False)
    _bound: float = field(init=False, compare=False)
    _rho: float = field(init=False, compare=False)

    def __init__(
        self,
        scale: float | Fraction,
        sensitivity: int = 1,
        *,
        neighboring: Relation = Neighboring.ADD_REMOVE,
    ) -> None:
        self._set_lattice("scale", scale, sensitivity, neighboring)
        rate = fraction_up(1 / self.scale) if self.scale else math.inf
        bound = times_above(1, self.pure_epsilon())
        rho = bound
        if math.isfinite(bound):
            rho = min(bound, above(laplace_kl(bound) - math.expm1(-bound) * _lattice_excess(rate), 4.0))
        self._set("_rate", rate)
        self._set("_bound", bound)
        self._set("_rho", rho)

    def pure(self) -> PureView:
        """Return sensitivity over scale.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        return PureView(self._bound, 0.0)

    def pure_epsilon(self) -> float | Fraction:
        """Return sensitivity over scale, exact.

        Returns
        -------
        float or Fraction
            The epsilon of `pure`: exact as a Fraction, rounded up as a float.
        """
        return self.sensitivity / self.scale if self.scale else math.inf

    def zcdp(self) -> ZCDPView:
        """Return the Kullback-Leibler divergence; the proof is in the class's notes.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return ZCDPView(self._rho, 0.0)

    def gdp(self) -> GDPView:
        """Return the Gaussian DP parameter of the middle vertex; the proof is in the class's notes.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        bound, rate = self._bound, self._rate
        if math.isinf(bound):
            return GDPView(math.inf, 0.0)
        log_vertex = below(-(bound + rate) / 2 - math.log1p(math.exp(-rate)), 8.0)
        return GDPView(max(0.0, min(2 * upper_quantile(log_vertex), pure_to_gdp(bound))), 0.0)

    def log_profile(self, epsilon: float) -> float:
        """Return the log of the exact profile on the lattice; see the class's notes.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """
        if not self.scale:
            return 0.0
        # The loss exceeds epsilon at x = 0, ..., j: the choice of j and the distance w to it are exact.
        reach = self.sensitivity - Fraction(epsilon) * self.scale
        if reach <= 0:
            return -math.inf
        j = math.ceil(reach / 2) - 1
        rate = self._rate
        near = -math.expm1(-above(rate * fraction_up(reach - j), 2.0))
        far = -math.expm1(-above(rate * j, 2.0)) * math.exp(-rate)
        return min(0.0, above(math.log((near + far) / (1 + math.exp(-rate))), 16.0, 1.0))

    def dominating_pair(self) -> Pair:
        """Return two such distributions ``sensitivity`` apart.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return discrete_laplace_pair(self._rate, self.sensitivity, self._bound)

    def lone_pass(self, threshold: Fraction) -> float:
        """Bound the chance that one sensitivity plus the noise is at least ``threshold`` from above.

        Parameters
        ----------
        threshold : Fraction
            In units of the noisy integer.

        Returns
        -------
        float
            The chance, rounded up.
        """
        distance = math.ceil(threshold) - self.sensitivity
        if not self.scale:
            return float(distance <= 0)
        return DiscreteLaplaceDistribution(self.scale).upper_tail(distance).upper

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the exact divergences, the sum over the lattice in closed form.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        bound, rate = self._bound, self._rate
        if math.isinf(bound):
            return np.full_like(orders, np.inf)
        odd = 2 * orders - 1
        r = math.exp(-rate)
        middle = np.expm1(-odd * (bound + rate)) / np.expm1(-odd * rate)
        moment = (r * (1 + np.exp(-odd * bound)) - math.expm1(-rate) * middle) / (1 + r)
        return bounded_rdp(bound, self._rho, orders, moment)

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return DiscreteLaplace(self.scale, self.sensitivity * steps, neighboring=relation)


def _lattice_excess(rate: float) -> float:
    """Return ``1 - rate / sinh(rate)``, rounded up."""
    if rate < 0.05:
        square = rate * rate
        return above(square * (1 / 6 - square * (7 / 360 - square * (31 / 15120))), 8.0)
    return min(1.0, above(1 + 2 * rate * math.exp(-rate) / math.expm1(-2 * rate), 8.0, 1.0))
