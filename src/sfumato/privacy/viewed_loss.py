"""The views of a loss: a bound in each notion of privacy in which one is proven, and an error elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import UnsupportedView
from sfumato.privacy.accountant import closed_forms
from sfumato.privacy.accounting import AccountedLoss
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.views import GDPView, PureView, ZCDPView

__all__ = ["ViewedLoss"]


class ViewedLoss(AccountedLoss):
    """A loss whose views all raise `UnsupportedView` until a subclass proves them."""

    __slots__ = ()

    @property
    def numeric(self) -> bool:
        """Whether `rdp_curve` is computed from the dominating pair, and not in closed form."""
        return False

    def rdp(self, order: float) -> float:
        """Return an upper bound on the Rényi divergence of an order above 1.

        Parameters
        ----------
        order : float
            Above 1, finite.

        Returns
        -------
        float
            The bound, rounded up; infinity where nothing is proven at that order.

        Raises
        ------
        ParameterError
            If the order is not above 1.
        UnsupportedView
            If no theorem bounds the loss in this notion.

        Examples
        --------
        >>> from sfumato.privacy import ZCDP
        >>> 1.0 <= ZCDP(0.5).rdp(2.0) < 1.0 + 1e-12
        True
        """
        remedy = "the limit at order 1 is not offered"
        order = _check.finite("order", order, remedy)
        if order <= 1:
            _check.refuse("order", "be above 1", order, remedy)
        with np.errstate(all="ignore"):
            bound = float(self.rdp_curve(np.array([order]))[0])
        # Where infinities cancel, nothing is known.
        return math.inf if math.isnan(bound) else bound

    def log_profile(self, epsilon: float) -> float:
        """Return an upper bound on the log of the hockey-stick divergence at a non-negative ``epsilon``.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            Upper bound on the natural logarithm of delta.

        Raises
        ------
        UnsupportedView
            If no theorem bounds the loss in this notion.
        """
        self._missing("profile", epsilon)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return upper bounds on the Rényi divergences of ``orders``, all above 1.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.

        Raises
        ------
        UnsupportedView
            If no theorem bounds the loss in this notion.
        """
        self._missing("rdp", orders)

    @classmethod
    def rdp_curves(cls, losses: Sequence[Self], orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the `rdp_curve` of each of several losses of this class.

        Parameters
        ----------
        losses : sequence of this class
            At least one.
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (losses, n)
            Upper bounds on the Rényi divergences, a row for each loss.

        Raises
        ------
        UnsupportedView
            If no theorem bounds one of them in this notion.
        """
        return np.array([loss.rdp_curve(orders) for loss in losses])

    def zcdp(self) -> ZCDPView:
        """Return a bound in approximate zero-concentrated DP; it adds under full adaptivity.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.

        Raises
        ------
        UnsupportedView
            If no theorem bounds the loss in this notion.
        """
        self._missing("zcdp")

    def gdp(self) -> GDPView:
        """Return a bound in Gaussian DP up to a mass; ``mu ** 2`` adds under full adaptivity.

        Returns
        -------
        GDPView
            Upper bounds: mu, and the mass delta outside which it holds.

        Raises
        ------
        UnsupportedView
            If no theorem bounds the loss in this notion.
        """
        self._missing("gdp")

    def pure(self) -> PureView:
        """Return a bound in (epsilon, delta)-DP; it adds under full adaptivity.

        Returns
        -------
        PureView
            Upper bounds: epsilon, and the mass delta outside which it holds.

        Raises
        ------
        UnsupportedView
            If no theorem bounds the loss in this notion.
        """
        self._missing("pure")

    def pure_epsilon(self) -> float | Fraction:
        """Return the epsilon of `pure` before it is rounded to a float, if it is a rational that is known.

        Returns
        -------
        float or Fraction
            The epsilon of `pure`: exact as a Fraction, rounded up as a float.

        Raises
        ------
        UnsupportedView
            If no theorem bounds the loss in this notion.
        """
        return self.pure().epsilon

    def exact_pure(self) -> tuple[Fraction | float, Fraction | float]:
        """Return `pure` as it is charged: a rational that is known, or the decimal that was declared.

        Returns
        -------
        epsilon : Fraction or float
        delta : Fraction or float
            A float only where it is infinite.

        Raises
        ------
        UnsupportedView
            If no theorem bounds the loss in this notion.
        """
        return _exact(self.pure_epsilon()), self.exact_mass(self.pure().delta)

    def exact_zcdp(self) -> tuple[Fraction | float, Fraction | float]:
        """Return `zcdp` as it is charged.

        Returns
        -------
        rho : Fraction or float
        delta : Fraction or float
            A float only where it is infinite.

        Raises
        ------
        UnsupportedView
            If no theorem bounds the loss in this notion.
        """
        rho, delta = self.zcdp()
        return _exact(rho), self.exact_mass(delta)

    def exact_mass(self, mass: float) -> Fraction | float:
        """Return the mass of a view as it is charged: as the decimal that it was written as if declared.

        Parameters
        ----------
        mass : float
            The mass that a view states.

        Returns
        -------
        Fraction or float
        """
        return _exact(mass)

    def dominating_pair(self) -> Pair:
        """Return two distributions that dominate the outputs on any two neighbors.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.

        Raises
        ------
        UnsupportedView
            If no theorem bounds the loss in this notion.
        """
        self._missing("dominating pair")

    def split(self) -> tuple[float, closed_forms.Terms]:
        """Return a mass of total failure and the terms that act otherwise; by default no mass.

        Returns
        -------
        mass : float
            Probability of total failure.
        terms : sequence of (PrivacyLoss, int)
            What runs otherwise, each part with its count.
        """
        return 0.0, self.terms

    def _missing(self, view: str, *_: object) -> NoReturn:
        raise UnsupportedView(f"{self!r} has no {view} view: no theorem bounds it in that notion")


def _exact(number: float | Fraction) -> Fraction | float:
    return Fraction(number) if math.isfinite(number) else float(number)
