"""Three notions of privacy whose parameters add under composition: pure DP, zCDP and Gaussian DP."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GDPView", "PureView", "ZCDPView"]


class PureView(NamedTuple):
    """(epsilon, delta)-DP; both numbers add under composition, also a fully adaptive one.

    Attributes
    ----------
    epsilon : float
        Bound on the privacy loss, outside the mass ``delta``.
    delta : float
        Mass on which nothing is promised; 0 for pure DP.

    References
    ----------
    Dwork, Roth (2014), basic composition; Rogers, Roth, Ullman, Vadhan (2016) for adaptive parameters.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> (PureDP(0.5) * 3).pure()
    PureView(epsilon=1.5, delta=0.0)
    """

    epsilon: float
    delta: float


class ZCDPView(NamedTuple):
    """Delta-approximate rho-zCDP; both numbers add under composition, also a fully adaptive one.

    Attributes
    ----------
    rho : float
        Rényi divergence of every order ``a > 1`` at most ``rho * a``, outside the mass ``delta``.
    delta : float
        Mass on which nothing is promised.

    References
    ----------
    Bun, Steinke (2016), approximate zCDP; Whitehouse, Ramdas, Rogers, Wu (2023) for adaptive parameters.

    Examples
    --------
    >>> from sfumato.privacy import ZCDP
    >>> (ZCDP(0.5) * 3).zcdp()
    ZCDPView(rho=1.5, delta=0.0)
    """

    rho: float
    delta: float


class GDPView(NamedTuple):
    """Trade-off at least that of N(0, 1) against N(mu, 1) composed with a total loss of probability delta.

    ``mu ** 2`` and ``delta`` add under composition, also a fully adaptive one.

    Attributes
    ----------
    mu : float
        Gaussian DP parameter, outside the mass ``delta``.
    delta : float
        Mass on which nothing is promised: the trade-off function is at least
        ``(1 - delta) * G_mu(x / (1 - delta))``.

    References
    ----------
    Dong, Roth, Su (2022), Gaussian DP; Smith, Thakurta (2022) for adaptive parameters.

    Examples
    --------
    >>> from sfumato.privacy import GaussianDP
    >>> view = (GaussianDP(1.0) * 4).gdp()
    >>> round(view.mu, 9), view.delta
    (2.0, 0.0)
    """

    mu: float
    delta: float
