"""Conversions between notions of privacy (pure, approximate, zCDP, Gaussian and Rényi DP), rounded up."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.rounding import log_down
from sfumato.privacy._outward import UNIT, above, below
from sfumato.privacy.best_bound import Curve, minimum, minimum_epsilon
from sfumato.privacy.gaussian_profile import log_profile, upper_quantile

__all__ = [
    "gdp_delta",
    "gdp_epsilon",
    "pure_to_gdp",
    "pure_to_zcdp",
    "rdp_epsilon",
    "rdp_for",
    "rdp_log_delta",
    "rho_for",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_start",
]

_SLACK = 16 * UNIT


def rdp_epsilon(curve: Curve, log_delta: float, *, centre: float = 8.0) -> float:
    r"""Return the epsilon that a curve of Rényi divergences proves at ``exp(log_delta)``.

    Parameters
    ----------
    curve : callable
        Maps an array of orders, all above 1, to upper bounds on the divergences.
    log_delta : float
        Natural logarithm of delta; below 0.
    centre : float
        Where to look first for the best ``order - 1``; any value gives a valid bound.

    Returns
    -------
    float
        :math:`\min_\alpha D_\alpha + \log(1 - 1/\alpha) - \log(\delta\alpha)/(\alpha - 1)`, rounded up.

    References
    ----------
    Canonne, Kamath, Steinke (2020), Proposition 12; Balle, Barthe, Gaboardi, Hsu, Sato (2020), the conversion
    from Rényi DP.
    """

    def objective(gap: NDArray[np.float64]) -> NDArray[np.float64]:
        order = 1.0 + gap
        gap = order - 1.0
        divergence = curve(order)
        term = (-log_delta - np.log(order)) / gap
        value = divergence + term - np.log1p(1.0 / gap)
        return value + _SLACK * (np.abs(divergence) + np.abs(term) - log_delta / gap + np.log1p(1.0 / gap))

    return max(0.0, minimum(objective, centre))


def rdp_log_delta(curve: Curve, epsilon: float, *, centre: float = 8.0) -> float:
    """Return the log of the delta that Rényi divergences prove at ``epsilon``; see `rdp_epsilon`."""

    def objective(gap: NDArray[np.float64]) -> NDArray[np.float64]:
        order = 1.0 + gap
        gap = order - 1.0
        divergence = curve(order)
        value = gap * (divergence - epsilon) - gap * np.log1p(1.0 / gap) - np.log(order)
        return value + _SLACK * (gap * (divergence + epsilon + 1.0) + np.log(order) + 1.0)

    return min(0.0, minimum(objective, centre))


def zcdp_start(rho: float, log_delta: float) -> float:
    """Return a quick epsilon for rho-zCDP, to search below (Bun and Steinke 2016, Proposition 1.3)."""
    return rho + 2 * math.sqrt(-rho * log_delta)


def gdp_epsilon(mu: float, delta: float) -> float:
    """Return the exact epsilon of mu-Gaussian DP at ``delta``, rounded up.

    Parameters
    ----------
    mu : float
        At least 0.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        Epsilon; infinity at delta 0, unless mu is 0.

    References
    ----------
    Dong, Roth, Su (2022), the conversion of Gaussian DP; Balle, Wang (2018), the expression.

    Examples
    --------
    >>> round(gdp_epsilon(10.0, 1e-6), 4)
    96.7173
    """
    if mu == 0 or delta >= 1:
        return 0.0
    if delta <= 0 or math.isinf(mu):
        return math.inf
    log_delta = log_down(delta)
    start = zcdp_start(mu * mu / 2, log_delta)
    return minimum_epsilon(lambda epsilon: log_profile(mu, epsilon), log_delta, start=start)


def gdp_delta(mu: float, epsilon: float) -> float:
    """Return the exact delta of mu-Gaussian DP at ``epsilon``, rounded up; see `gdp_epsilon`.

    Parameters
    ----------
    mu : float
        At least 0.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        Delta, at most 1.

    Examples
    --------
    >>> 0.0 < gdp_delta(1.0, 2.0) < gdp_delta(1.0, 1.0) < gdp_delta(1.0, 0.0) < 1.0
    True
    """
    return min(1.0, above(math.exp(log_profile(mu, epsilon)), 4.0)) if mu > 0 else 0.0


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon that rho-zCDP proves at ``delta``: the optimal order of `rdp_epsilon`.

    Parameters
    ----------
    rho : float
        Non-negative.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        Epsilon; infinity at delta 0, unless rho is 0.

    Examples
    --------
    The certificate of the 2020 Census (persons, production settings):

    >>> round(zcdp_epsilon(293764 / 114921, 1e-10), 4)
    17.1436
    """
    rho = _check.non_negative("rho", rho, "pass a zCDP parameter such as 0.5")
    delta = _check.probability("delta", delta, "pass a small probability such as 1e-6")
    if rho == 0:
        return 0.0
    if delta == 0:
        return math.inf
    log_delta = log_down(delta)
    return rdp_epsilon(lambda orders: rho * orders, log_delta, centre=math.sqrt(-log_delta / rho))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return the delta that rho-zCDP proves at ``epsilon``; see `zcdp_epsilon`.

    Parameters
    ----------
    rho : float
        At least 0.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        Delta, at most 1.

    Examples
    --------
    >>> zcdp_delta(0.5, zcdp_epsilon(0.5, 1e-6)) <= 1.0001e-6
    True
    """
    rho = _check.non_negative("rho", rho, "pass a zCDP parameter such as 0.5")
    epsilon = _check.non_negative("epsilon", epsilon, "pass a bound on the loss such as 1.0")
    if rho == 0:
        return 0.0
    centre = max((epsilon - rho) / (2 * rho), 1.0 / (1.0 + rho))
    return min(1.0, above(math.exp(rdp_log_delta(lambda orders: rho * orders, epsilon, centre=centre)), 4.0))


def rho_for(epsilon: float, delta: float) -> float:
    """Return the largest rho whose zCDP proves (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon : float
        Non-negative.
    delta : float
        In [0, 1); at 0 no positive rho will do and 0 is returned.

    Returns
    -------
    float
        A rho with ``zcdp_epsilon(rho, delta) <= epsilon``, within about 1e-9 (relative) of the largest.

    Examples
    --------
    >>> rho = rho_for(1.0, 1e-6)
    >>> zcdp_epsilon(rho, 1e-6) <= 1.0 < zcdp_epsilon(rho * 1.000001, 1e-6)
    True
    """
    epsilon = _check.non_negative("epsilon", epsilon, "pass a bound on the loss such as 1.0")
    delta = _check.probability("delta", delta, "pass a small probability such as 1e-6")
    if delta == 0 or epsilon == 0:
        return 0.0
    low, high = 0.0, epsilon
    while zcdp_epsilon(high, delta) <= epsilon:
        low, high = high, 2 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if high - low <= 1e-12 * high or not low < middle < high:
            break
        if zcdp_epsilon(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def rdp_for(order: float, epsilon: float, delta: float) -> float:
    r"""Return the largest Rényi divergence of one order that proves (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    order : float
        Above 1.
    epsilon : float
        Non-negative.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        :math:`\epsilon - \log(1 - 1/\alpha) + \log(\delta\alpha)/(\alpha - 1)`; 0 where that is negative.

    Notes
    -----
    `rdp_epsilon`, solved for the divergence. It holds for a part of P as well, of any mass: the proof is a
    pointwise bound, :math:`(x - e^\epsilon)_+ \le c x^\alpha` with :math:`c = e^{-(\alpha-1)\epsilon}
    (\alpha-1)^{\alpha-1} \alpha^{-\alpha}`, integrated against Q.

    References
    ----------
    Canonne, Kamath, Steinke (2020), Proposition 12.

    Examples
    --------
    >>> limit = rdp_for(16.0, 2.0, 1e-6)
    >>> rdp_epsilon(lambda orders: 0 * orders + limit, math.log(1e-6), centre=15.0) <= 2.0
    True
    """
    order = _check.finite("order", order, "pass an order such as 2.0")
    if order <= 1:
        _check.refuse("order", "be above 1", order, "pass an order such as 2.0")
    epsilon = _check.non_negative("epsilon", epsilon, "pass a bound on the loss such as 1.0")
    log_delta = log_down(_check.unit_interval("delta", delta, "pass a small probability such as 1e-6"))
    gap = order - 1.0
    term = (log_delta + math.log(order)) / gap
    gain = math.log1p(1.0 / gap)
    return max(
        0.0, below(epsilon + term + gain, 8.0, epsilon + (abs(log_delta) + math.log(order)) / gap + gain)
    )


def pure_to_zcdp(epsilon: float) -> float:
    r"""Return the smallest rho of every epsilon-DP mechanism, ``epsilon * tanh(epsilon / 2)``, rounded up.

    Parameters
    ----------
    epsilon : float
        At least 0.

    Returns
    -------
    float
        Rho.

    Notes
    -----
    Every epsilon-DP pair is a post-processing of randomized response (Kairouz, Oh, Viswanath 2015), for
    which, with :math:`u = \alpha - 1/2`, :math:`(\alpha-1) D_\alpha = g(u^2) - g(1/4)` and :math:`g(v) =
    \log\cosh(\epsilon\sqrt v)`. As :math:`g'(v) = \epsilon \tanh(\epsilon\sqrt v) / (2\sqrt v)` falls,
    :math:`g` is concave and :math:`D_\alpha/\alpha = (g(u^2) - g(1/4))/(u^2 - 1/4) \le g'(1/4)`, with
    equality as the order tends to 1. It is below the ``epsilon ** 2 / 2`` of Bun and Steinke (2016),
    Proposition 1.4.

    Examples
    --------
    >>> round(pure_to_zcdp(1.0), 4)
    0.4621
    """
    if epsilon == 0 or math.isinf(epsilon):
        return epsilon
    return above(epsilon * math.tanh(epsilon / 2), 8.0)


def pure_to_gdp(epsilon: float) -> float:
    r"""Return the smallest mu that every epsilon-DP mechanism satisfies, rounded up.

    Parameters
    ----------
    epsilon : float
        At least 0.

    Returns
    -------
    float
        Mu.

    Notes
    -----
    Randomized response with :math:`a = 1/(1 + e^\epsilon)` has the trade-off vertices (0, 1), (a, a), (1, 0).
    A convex curve that passes at or below the vertices of a piecewise linear one is below it everywhere, so
    :math:`G_\mu(a) \le a` suffices: :math:`\mu = -2 \Phi^{-1}(a)`. For a small epsilon, the bound
    :math:`\epsilon \sqrt{\pi/2}` on it (the logit of :math:`\Phi` is convex on the positive reals) has less
    round-off.

    Examples
    --------
    >>> round(pure_to_gdp(1.0), 4)
    1.232
    """
    if epsilon == 0 or math.isinf(epsilon):
        return epsilon
    quantile = upper_quantile(below(-(epsilon + math.log1p(math.exp(-epsilon))), 4.0))
    return max(0.0, min(2 * quantile, above(epsilon * math.sqrt(math.pi / 2), 4.0)))
