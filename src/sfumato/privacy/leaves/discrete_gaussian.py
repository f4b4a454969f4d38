"""Discrete Gaussian noise on the integers, priced as the discrete distribution that is sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from sfumato._wire import INTEGER, RATIONAL
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves import discrete_gaussian_views
from sfumato.privacy.leaves.leaf import ConcentratedLeaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.noise.discrete_gaussian import discrete_gaussian_pair
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, ZCDPView

__all__ = ["DiscreteGaussian"]


@final
@serialized_as("discrete-gaussian", stddev=RATIONAL, sensitivity=INTEGER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class DiscreteGaussian(ConcentratedLeaf):
    """Discrete Gaussian noise on an integer that moves by at most ``sensitivity``.

    ``DiscreteGaussian(stddev, s) * l0`` prices a vector of which at most ``l0`` entries move, each by at
    most ``s``. It is not a continuous Gaussian: at a standard deviation of 1 its delta is up to 1.65 times
    larger, and it does not merge.

    Parameters
    ----------
    stddev : int, float or Fraction
        The noise has mass proportional to ``exp(-x**2 / (2 * stddev**2))``; 0 is no noise.
    sensitivity : int
        At least 1.
    neighboring : Neighboring or Relation
        The relation that the sensitivity is about.

    Notes
    -----
    Guarantee: every view bounds the pair of two such distributions ``sensitivity`` apart, under the relation
    that the sensitivity is stated for. The distribution is log-concave, so threshold tests are the best ones
    and their power grows with the shift: the pair dominates every smaller shift. The profile is exact, from
    certified tails on the lattice; `lattice_normal` proves the Gaussian DP view.

    References
    ----------
    Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy": its zCDP, and its
    profile as a difference of two tails.

    Examples
    --------
    >>> DiscreteGaussian(2).zcdp()
    ZCDPView(rho=0.125, delta=0.0)
    >>> round(DiscreteGaussian(100, 3).epsilon(1e-9), 6)
    0.153044
    """

    _any_relation = True

    stddev: Fraction
    sensitivity: int
    neighboring: Relation
    _rho: float = field(init=False, compare=False)

    def __init__(
        self,
        stddev: float | Fraction,
        sensitivity: int = 1,
        *,
        neighboring: Relation = Neighboring.ADD_REMOVE,
    ) -> None:
        self._set_lattice("stddev", stddev, sensitivity, neighboring)
        rho = fraction_up((self.sensitivity / self.stddev) ** 2 / 2) if self.stddev else math.inf
        self._set("_rho", rho)

    def zcdp(self) -> ZCDPView:
        """Return ``sensitivity**2 / (2 * stddev**2)`` (Canonne, Kamath and Steinke 2020).

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return ZCDPView(self._rho, 0.0)

    def gdp(self) -> GDPView:
        """Return a proven Gaussian DP parameter up to a mass of 1e-120; see `discrete_gaussian_views.gdp`.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        return discrete_gaussian_views.gdp(self.stddev, self.sensitivity)

    def log_profile(self, epsilon: float) -> float:
        """Return the log of the exact profile on the lattice; see `discrete_gaussian_views.log_profile`.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """
        return discrete_gaussian_views.log_profile(self.stddev, self.sensitivity, Fraction(epsilon))

    def dominating_pair(self) -> Pair:
        """Return two such distributions ``sensitivity`` apart.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return discrete_gaussian_pair(self.stddev, self.sensitivity)

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
        if not self.stddev:
            return float(distance <= 0)
        return DiscreteGaussianDistribution(self.stddev).upper_tail(distance).upper

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return DiscreteGaussian(self.stddev, self.sensitivity * steps, neighboring=relation)
