"""Continuous Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from sfumato._wire import NUMBER
from sfumato.numerics.rounding import exp_up, fraction_down
from sfumato.privacy._outward import below, times_above
from sfumato.privacy.conversion import pure_to_gdp
from sfumato.privacy.gaussian_profile import upper_quantile
from sfumato.privacy.leaves.leaf import Leaf, bounded_log_profile, bounded_rdp, laplace_kl
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.bins import Number
from sfumato.privacy.pairs.noise.bounded_loss import LaplacePair
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["Laplace"]


@final
@serialized_as("laplace", noise_multiplier=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class Laplace(Leaf):
    r"""Real Laplace noise on a value that moves by at most one sensitivity.

    Parameters
    ----------
    noise_multiplier : float
        Scale over L1 sensitivity; 0 is no noise.
    neighboring : Neighboring or Relation
        The relation that the sensitivity is about.

    Notes
    -----
    Guarantee: with :math:`\epsilon_0` = 1/noise_multiplier, every view is that of the pair of two Laplace
    distributions one sensitivity apart, under the relation that the sensitivity is stated for. A vector whose
    L1 norm moves by one sensitivity has no greater loss only in the pure sense: price it as
    ``PureDP(1 / noise_multiplier)``.

    *Gaussian DP.* Between its linear ends the trade-off function satisfies :math:`\log\alpha + \log\beta =
    -\epsilon_0 - \log 4`. As the log of the normal upper tail is concave, the sum of the two normal quantiles
    is largest at :math:`\alpha = \beta`, so :math:`\mu = -2\Phi^{-1}(e^{-\epsilon_0/2}/2)`; the linear ends
    are chords between points where the Gaussian curve is not above.

    *zCDP.* With :math:`u = \alpha - 1/2` and :math:`v = u^2`, :math:`(\alpha - 1)D_\alpha = F(v) - F(1/4)`
    for :math:`F(v) = \log(\cosh w + \epsilon_0 \sinh w / (2w))`, :math:`w = \epsilon_0\sqrt v`. The argument
    is entire of order 1/2 in :math:`v`, and its zeros are the negated eigenvalues of a Sturm-Liouville
    problem (:math:`-f'' = y^2 f`, :math:`f(0) = 0`, :math:`f'(1) + (\epsilon_0/2) f(1) = 0`), real and
    negative; by Hadamard's product :math:`F` is concave. Hence :math:`D_\alpha / \alpha \le F'(1/4)`, the
    Kullback-Leibler divergence :math:`\epsilon_0 + e^{-\epsilon_0} - 1`.

    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), the Laplace mechanism; Mironov (2017), its Rényi divergences.

    Examples
    --------
    >>> Laplace(2.0).epsilon(0.0)
    0.5
    """

    _any_relation = True

    noise_multiplier: float
    neighboring: Relation = field(default=Neighboring.ADD_REMOVE, kw_only=True)
    # Rounded up: the largest loss.
    _bound: float = field(init=False, compare=False)

    def __post_init__(self) -> None:
        self._set_rounded("noise_multiplier", self.noise_multiplier, up=False)
        self._set_relation(self.neighboring)
        self._set("_bound", times_above(1, self.pure_epsilon()))

    def pure(self) -> PureView:
        """Return the inverse noise multiplier.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        return PureView(self._bound, 0.0)

    def pure_epsilon(self) -> float | Fraction:
        """Return the inverse noise multiplier, exact.

        Returns
        -------
        float or Fraction
            The epsilon of `pure`: exact as a Fraction, rounded up as a float.
        """
        return 1 / Fraction(self.noise_multiplier) if self.noise_multiplier > 0 else math.inf

    def zcdp(self) -> ZCDPView:
        """Return the Kullback-Leibler divergence; the proof is in the class's notes.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return ZCDPView(laplace_kl(self._bound), 0.0)

    def gdp(self) -> GDPView:
        """Return the exact Gaussian DP parameter; the proof is in the class's notes.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        bound = self._bound
        if math.isinf(bound):
            return GDPView(math.inf, 0.0)
        quantile = upper_quantile(below(-bound / 2 - math.log(2), 4.0))
        return GDPView(max(0.0, min(2 * quantile, pure_to_gdp(bound))), 0.0)

    def log_profile(self, epsilon: float) -> float:
        r"""Return :math:`\log(1 - e^{(\epsilon - \epsilon_0)/2})`, the exact profile.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """
        return bounded_log_profile((self._bound - epsilon) / 2)

    def dominating_pair(self) -> Pair:
        """Return two Laplace distributions one sensitivity apart.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return LaplacePair(self._bound) if 0 < self._bound < math.inf else two_points(self._bound)

    def lone_pass(self, threshold: Fraction) -> float:
        """Bound the chance that one sensitivity plus the noise is at least ``threshold`` from above.

        Parameters
        ----------
        threshold : Fraction
            In units of the sensitivity.

        Returns
        -------
        float
            The chance, rounded up.
        """
        distance, noise = threshold - 1, Fraction(self.noise_multiplier)
        if not noise or distance <= 0:
            return float(distance <= 0)
        return exp_up(-fraction_down(distance / noise)) / 2 + 5e-324

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the exact divergences (Mironov 2017, Proposition 6).

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        bound = self._bound
        return np.full_like(orders, np.inf) if math.isinf(bound) else _curve(bound, self.zcdp().rho, orders)

    @classmethod
    def rdp_curves(cls, losses: Sequence[Self], orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the exact divergences of several losses; see `rdp_curve`.

        Parameters
        ----------
        losses : sequence of Laplace
            At least one.
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (losses, n)
            Upper bounds on the Rényi divergences, a row for each loss.
        """
        bounds, rhos = np.array([(loss.pure().epsilon, loss.zcdp().rho) for loss in losses]).T[..., None]
        # Of no noise the arithmetic of infinities says nothing.
        some = np.where(np.isinf(bounds), 1.0, bounds)
        return np.where(np.isinf(bounds), np.inf, _curve(some, rhos, orders))

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return Laplace(fraction_down(Fraction(self.noise_multiplier) / steps), neighboring=relation)


def _curve(bound: Number, rho: Number, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    odd = 2 * orders - 1
    moment = (orders + (orders - 1) * np.exp(-odd * bound)) / odd
    return bounded_rdp(bound, rho, orders, moment)
