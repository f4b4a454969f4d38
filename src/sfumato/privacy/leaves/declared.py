"""Losses known only by a declared guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import NUMBER
from sfumato.numerics.decimals import decimal_of, outward
from sfumato.privacy.conversion import pure_to_gdp, pure_to_zcdp
from sfumato.privacy.leaves.leaf import (
    ConcentratedLeaf,
    DivergenceLeaf,
    Leaf,
    bounded_log_profile,
    bounded_rdp,
)
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.pairs.pair import Pair, two_points
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["ZCDP", "ApproximateDP", "PureDP"]


@final
@serialized_as("pure-dp", epsilon=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class PureDP(Leaf):
    """Any mechanism that is epsilon-DP: priced as randomized response, the worst of them.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss, non-negative.
    neighboring : Neighboring or Relation
        The relation that the bound is about.

    Notes
    -----
    Guarantee: the views of two-valued randomized response, of which every epsilon-DP pair is a
    post-processing, under the relation that the bound is stated for.

    References
    ----------
    Kairouz, Oh, Viswanath (2015), "The composition theorem for differential privacy", the dominating pair.

    Examples
    --------
    >>> PureDP(0.5).epsilon(0.0)
    0.5
    """

    _any_relation = True

    _epsilon: float
    neighboring: Relation = field(kw_only=True)

    def __init__(self, epsilon: float, *, neighboring: Relation = Neighboring.ADD_REMOVE) -> None:
        self._set_rounded("_epsilon", epsilon, up=True)
        self._set_relation(neighboring)

    def pure(self) -> PureView:
        """Return the declared epsilon.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        return PureView(self._epsilon, 0.0)

    def exact_pure(self) -> tuple[Fraction | float, Fraction]:
        """Return the declared numbers as the decimals that they were written as.

        Returns
        -------
        epsilon : Fraction
        delta : Fraction
        """
        return decimal_of(self._epsilon), Fraction(0)

    def zcdp(self) -> ZCDPView:
        """Return the smallest rho of every epsilon-DP mechanism; see `conversion.pure_to_zcdp`.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return ZCDPView(pure_to_zcdp(self._epsilon), 0.0)

    def gdp(self) -> GDPView:
        """Return the smallest mu of every epsilon-DP mechanism; see `conversion.pure_to_gdp`.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        return GDPView(pure_to_gdp(self._epsilon), 0.0)

    def log_profile(self, epsilon: float) -> float:
        r"""Return the log of :math:`(e^{\epsilon_0} - e^\epsilon)/(1 + e^{\epsilon_0})`, exact.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.
        """
        return bounded_log_profile(self._epsilon - epsilon, 1 + math.exp(-self._epsilon))

    def dominating_pair(self) -> Pair:
        """Return randomized response (Kairouz, Oh, Viswanath 2015).

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return two_points(self._epsilon)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the divergences of randomized response.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        moment = (1 + np.exp((1 - 2 * orders) * self._epsilon)) / (1 + math.exp(-self._epsilon))
        return bounded_rdp(self._epsilon, self.zcdp().rho, orders, moment)

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return PureDP(outward(steps * Fraction(self._epsilon)), neighboring=relation)


@final
@serialized_as("approximate-dp", epsilon=NUMBER, delta=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False, init=False)
class ApproximateDP(Leaf):
    """Any mechanism that is (epsilon, delta)-DP: with probability delta it may reveal everything.

    Parameters
    ----------
    epsilon : float
        Non-negative.
    delta : float
        In [0, 1).
    neighboring : Neighboring or Relation
        The relation that the guarantee is about.

    Notes
    -----
    Guarantee: the pair is a post-processing of one that reveals everything with probability delta and is
    randomized response otherwise, so the mass delta is split off and the rest composes as `PureDP`.

    References
    ----------
    Kairouz, Oh, Viswanath (2015), "The composition theorem for differential privacy", the dominating pair.

    Examples
    --------
    >>> ApproximateDP(0.5, 1e-6).epsilon(1e-6)
    0.5
    """

    _any_relation = True

    _epsilon: float
    _delta: float
    neighboring: Relation = field(kw_only=True)

    def __init__(
        self, epsilon: float, delta: float, *, neighboring: Relation = Neighboring.ADD_REMOVE
    ) -> None:
        self._set_rounded("_epsilon", epsilon, up=True)
        self._set_rounded("_delta", delta, up=True)
        _check.probability("delta", self._delta, "a delta of 1 promises nothing")
        self._set_relation(neighboring)

    def pure(self) -> PureView:
        """Return the declared numbers.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.
        """
        return PureView(self._epsilon, self._delta)

    def exact_pure(self) -> tuple[Fraction | float, Fraction]:
        """Return the declared numbers as the decimals that they were written as.

        Returns
        -------
        epsilon : Fraction
        delta : Fraction
        """
        return decimal_of(self._epsilon), decimal_of(self._delta)

    def zcdp(self) -> ZCDPView:
        """Return the zCDP of the part that is pure, and the mass.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return ZCDPView(pure_to_zcdp(self._epsilon), self._delta)

    def exact_mass(self, mass: float) -> Fraction | float:
        """Return the declared delta as the decimal that it was written as.

        Parameters
        ----------
        mass : float
            The mass that a view states, which is delta.

        Returns
        -------
        Fraction or float
        """
        return decimal_of(mass)

    def gdp(self) -> GDPView:
        """Return the Gaussian DP of the part that is pure, and the mass.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.
        """
        return GDPView(pure_to_gdp(self._epsilon), self._delta)

    def dominating_pair(self) -> Pair:
        """Return randomized response that reveals everything with probability delta (the same).

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        return two_points(self._epsilon, self._delta)

    def split(self) -> tuple[float, tuple[tuple[PureDP, int]]]:
        """Return the mass and the pure part.

        Returns
        -------
        mass : float
            Probability of total failure.
        terms : sequence of (PrivacyLoss, int)
            What runs otherwise, each part with its count.
        """
        return self._delta, ((PureDP(self._epsilon, neighboring=self.neighboring), 1),)


@final
@serialized_as("zcdp", rho=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class ZCDP(ConcentratedLeaf, DivergenceLeaf):
    """Any mechanism that is rho-zCDP.

    Parameters
    ----------
    rho : float
        Every Rényi divergence of order ``a > 1`` is at most ``rho * a``; non-negative.
    neighboring : Neighboring or Relation
        The relation that the bound is about.

    Notes
    -----
    Guarantee: the declared rho, under the relation that it is stated for. There is no Gaussian DP view: zCDP
    alone does not imply Gaussian DP. Only at rho 0 the two distributions are equal, and nothing is lost in
    any notion.

    References
    ----------
    Bun, Steinke (2016), "Concentrated differential privacy: simplifications, extensions, and lower bounds".

    Examples
    --------
    >>> round(ZCDP(0.1).epsilon(1e-6), 6)
    2.141939
    """

    _any_relation = True

    rho: float
    neighboring: Relation = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("rho", self.rho, up=True)
        self._set_relation(self.neighboring)

    @property
    def _equal(self) -> bool:
        return self.rho == 0

    def zcdp(self) -> ZCDPView:
        """Return the declared rho.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return ZCDPView(self.rho, 0.0)

    def exact_zcdp(self) -> tuple[Fraction | float, Fraction]:
        """Return the declared rho as the decimal that it was written as.

        Returns
        -------
        rho : Fraction
        delta : Fraction
        """
        return decimal_of(self.rho), Fraction(0)

    def _chained(self, steps: int, relation: Neighboring) -> PrivacyLoss:
        return ZCDP(outward(steps**2 * Fraction(self.rho)), neighboring=relation)
