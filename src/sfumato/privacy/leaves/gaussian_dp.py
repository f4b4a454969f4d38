"""Gaussian DP as a declared guarantee."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from sfumato._wire import NUMBER
from sfumato.privacy._outward import above, times_above
from sfumato.privacy.leaves.leaf import ConcentratedLeaf
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.pair import Pair, no_loss
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["GaussianDP"]


@final
@serialized_as("gaussian-dp", mu=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class GaussianDP(ConcentratedLeaf):
    """Any mechanism that is mu-Gaussian DP.

    Parameters
    ----------
    mu : float
        The trade-off function is at least that of N(0, 1) against N(mu, 1); non-negative.
    neighboring : Neighboring or Relation
        The relation that the bound is about.

    Notes
    -----
    Guarantee: the two normal distributions dominate the mechanism, as it is a post-processing of them
    (Blackwell); so every view is that of `Gaussian` with the noise multiplier ``1 / mu``.

    References
    ----------
    Dong, Roth, Su (2022), "Gaussian differential privacy".

    Examples
    --------
    >>> round(GaussianDP(1.0).epsilon(1e-6), 4)
    4.8866
    """

    _any_relation = True

    mu: float
    neighboring: Relation = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("mu", self.mu, up=True)
        self._set_relation(self.neighboring)

    def gdp(self) -> GDPView:
        """Return the declared mu.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        return GDPView(self.mu, 0.0)

    def zcdp(self) -> ZCDPView:
        """Return half the square of mu.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return ZCDPView(above(0.5 * self.mu * self.mu, 4.0) if self.mu else 0.0, 0.0)

    def pure(self) -> PureView:
        """Return 0 where mu is 0: then the two distributions are equal. Otherwise there is no such view.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        return PureView(0.0, 0.0) if self.mu == 0 else self._missing("pure")

    def dominating_pair(self) -> Pair:
        """Return the two normal distributions.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return NormalPair(self.mu) if self.mu else no_loss()

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return GaussianDP(times_above(steps, self.mu), neighboring=relation)
