"""Continuous Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from scipy.special import ndtr

from sfumato._wire import NUMBER
from sfumato.numerics.rounding import fraction_down
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.leaves.leaf import ConcentratedLeaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.noise.normal_mixture import NormalMixturePair, log_binomial
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.pairs.sampling.subsampled import SubsampledPair
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, ZCDPView

__all__ = ["Gaussian"]


@final
@serialized_as("gaussian", noise_multiplier=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class Gaussian(ConcentratedLeaf):
    """Real Gaussian noise on a vector whose L2 norm moves by at most one sensitivity.

    Compositions of continuous Gaussians are priced exactly: the inverse squares of their noise multipliers
    add.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over L2 sensitivity; 0 is no noise.
    neighboring : Neighboring or Relation
        The relation that the sensitivity is about.

    Notes
    -----
    Guarantee: 1/noise_multiplier-GDP and 1/(2 noise_multiplier ** 2)-zCDP, under the relation that the
    sensitivity is stated for, both tight.

    References
    ----------
    Dong, Roth, Su (2022), the Gaussian mechanism; Bun, Steinke (2016), Proposition 1.6; Mironov (2017), Rényi
    DP.

    Examples
    --------
    >>> round((Gaussian(1.0) * 100).epsilon(1e-6), 4)
    96.7173
    """

    _any_relation = True

    noise_multiplier: float
    neighboring: Relation = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("noise_multiplier", self.noise_multiplier, up=False)
        self._set_relation(self.neighboring)

    def gdp(self) -> GDPView:
        """Return the exact Gaussian DP parameter.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        noise = self.noise_multiplier
        return GDPView(above(1 / noise, 1.0) if noise > 0 else math.inf, 0.0)

    def zcdp(self) -> ZCDPView:
        """Return the exact zCDP parameter.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        noise = self.noise_multiplier
        return ZCDPView(above(0.5 / noise / noise, 4.0) if noise > 0 else math.inf, 0.0)

    def dominating_pair(self) -> Pair:
        """Return two normal distributions one sensitivity apart (Dong, Roth, Su 2022).

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        mu = self.gdp().mu
        return NormalPair(mu) if 0 < mu < math.inf else two_points(mu)

    def drawn_records(self, records: int, sampling_probability: float) -> Pair:
        """Return the pair of records that are drawn one by one, against none; see `PoissonRecords`.

        Parameters
        ----------
        records : int
            How many one unit may own, at least 1.
        sampling_probability : float
            Of each record.

        Returns
        -------
        Pair
            The mixture over the number of records drawn against the distribution without any.
        """
        mu = self.gdp().mu
        if not 0 < mu < math.inf:
            return SubsampledPair(
                two_points(mu), above(-math.expm1(records * math.log1p(-sampling_probability)), 8.0)
            )
        return NormalMixturePair(mu, *log_binomial(records, sampling_probability))

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
        if not noise:
            return float(distance <= 0)
        z = min(fraction_down(distance / noise), 1e6)
        # scipy's relative error, and what it may lose among the smallest floats.
        return min(1.0, float(ndtr(-z)) * (1 + UNIT * (64 + 4 * z * z)) + 1e-300)

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return Gaussian(fraction_down(Fraction(self.noise_multiplier) / steps), neighboring=relation)
