"""Mean-concentrated differential privacy: the mean of the privacy loss and a sub-Gaussian bound on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato._wire import NUMBER
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy._outward import UNIT
from sfumato.privacy.conversion import pure_to_zcdp
from sfumato.privacy.leaves.leaf import DivergenceLeaf
from sfumato.privacy.neighboring import RELATION, Neighboring, Relation
from sfumato.privacy.serialization import serialized_as
from sfumato.privacy.views import ZCDPView

__all__ = ["CDP"]


@final
@serialized_as("mean-concentrated-dp", mu=NUMBER, tau=NUMBER, neighboring=RELATION)
@dataclass(frozen=True, slots=True, repr=False)
class CDP(DivergenceLeaf):
    r"""Any mechanism that is (mu, tau)-concentrated differentially private.

    Parameters
    ----------
    mu : float
        Bound on the mean of the privacy loss Z, the Kullback-Leibler divergence; non-negative.
    tau : float
        The loss less its mean is sub-Gaussian with this parameter: :math:`E e^{t(Z - EZ)} \le
        e^{t^2\tau^2/2}` for all t; non-negative.
    neighboring : Neighboring or Relation
        The relation that the bounds are about.

    Notes
    -----
    Guarantee: the declared bounds, for each order of any two neighbors. The Rényi divergence is
    :math:`D_\alpha = \frac{1}{\alpha - 1}\log E e^{(\alpha-1)Z} \le \mu + (\alpha - 1)\tau^2/2` (Bun, Steinke
    2016, Lemma 4.2); over :math:`\alpha`, this falls or rises from :math:`\mu` to :math:`\tau^2/2`, so the
    greater of both is a rho of zCDP.

    If mu is 0 the two distributions are equal. If tau is 0 they are, too: the loss is then a constant in
    either order, so that each distribution is a multiple of the other where that one has mass, and as both
    means are finite, this is everywhere.

    Gaussian noise of noise multiplier z is :math:`(1/(2z^2), 1/z)`-CDP, with these views exactly its own.

    References
    ----------
    Dwork, Rothblum (2016), "Concentrated differential privacy", the definition; Bun, Steinke (2016),
    "Concentrated differential privacy: simplifications, extensions, and lower bounds".

    Examples
    --------
    >>> from sfumato.privacy import ZCDP
    >>> CDP(0.5, 1.0).epsilon(1e-6) <= ZCDP(0.5).epsilon(1e-6) * (1 + 1e-9)
    True
    """

    _any_relation = True

    mu: float
    tau: float
    neighboring: Relation = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("mu", self.mu, up=True)
        self._set_rounded("tau", self.tau, up=True)
        self._set_relation(self.neighboring)

    @classmethod
    def of_pure(cls, epsilon: float, *, neighboring: Relation = Neighboring.ADD_REMOVE) -> CDP:
        r"""Return the bounds that every epsilon-DP mechanism meets.

        Parameters
        ----------
        epsilon : float
            Of the mechanism, at least 0.
        neighboring : Neighboring or Relation
            The relation that epsilon is about.

        Returns
        -------
        CDP
            With ``tau = epsilon``.

        Notes
        -----
        The mean is at most :math:`\epsilon\tanh(\epsilon/2)` (`pure_to_zcdp` at order 1; Dwork, Rothblum
        2016, Theorem 3.5, have more), and a loss within :math:`\pm\epsilon` is sub-Gaussian with
        :math:`\tau = \epsilon` (Hoeffding's lemma).

        Examples
        --------
        >>> loss = CDP.of_pure(0.5)
        >>> loss.tau, loss.mu < 0.5**2 / 2
        (0.5, True)
        """
        return cls(pure_to_zcdp(epsilon), epsilon, neighboring=neighboring)

    @property
    def _equal(self) -> bool:
        return min(self.mu, self.tau) == 0

    @property
    def _slope(self) -> float:
        """Half of the square of tau, rounded up."""
        return fraction_up(Fraction(self.tau) ** 2 / 2)

    def zcdp(self) -> ZCDPView:
        """Return the greater of the mean and half of the square of tau; 0 if the distributions are equal.

        Returns
        -------
        ZCDPView
            Upper bounds: rho, and the mass delta outside which it holds.
        """
        return ZCDPView(0.0 if self._equal else max(self.mu, self._slope), 0.0)

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean, and half of the square of tau for each order beyond 1.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        if self._equal:
            return np.zeros_like(orders)
        bounds = (self.mu + (orders - 1) * self._slope) * (1 + 8 * UNIT)
        return np.asarray(np.nextafter(bounds, np.inf), dtype=np.float64)
