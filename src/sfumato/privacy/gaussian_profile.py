"""The privacy profile of the Gaussian mechanism, N(0, 1) against N(mu, 1), exact into the far tails."""

from __future__ import annotations

import math
import sys

from scipy.special import erfcx, ndtr, ndtri_exp

from sfumato.privacy._outward import UNIT, above, below

__all__ = ["log_profile", "upper_quantile"]

# scipy's erfcx and ndtr are accurate to a few units in the last place (measured against mpmath in the tests);
# the bounds below allow 32 units (2**-48).
_RELATIVE = 32 * UNIT
# Up to this distance Simpson's rule is the tighter bound, beyond it the difference of two ratios.
_SMALL = 0.004
# A smaller distance is taken for this one, which is worse, to stay clear of underflow.
_MINIMUM = 1e-306
_LARGEST = sys.float_info.max
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _mills(x: float) -> float:
    """Mills' ratio: the upper tail of the standard normal distribution over its density."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _slope(x: float) -> float:
    """Return ``-d/dx`` of Mills' ratio, ``1 - x * mills(x)``, rounded up."""
    product = x * _mills(x)
    return 1 - product + 4 * _RELATIVE * max(1.0, abs(product))


def log_profile(mu: float, epsilon: float) -> float:
    r"""Return an upper bound on the log of the hockey-stick divergence of the pair, tight to about 1e-11.

    Parameters
    ----------
    mu : float
        Distance of the two means in standard deviations; infinity is allowed.
    epsilon : float
        Non-negative.

    Notes
    -----
    With :math:`x = \epsilon/\mu - \mu/2`, the density :math:`\varphi` and Mills' ratio :math:`R`, Balle and
    Wang's :math:`\Phi(-x) - e^\epsilon \Phi(-x-\mu)` equals :math:`\varphi(x) (R(x) - R(x + \mu))`, which
    neither overflows nor underflows in logs. For a small :math:`\mu` the difference is :math:`\int_x^{x+\mu}
    -R'`; :math:`-R'` is completely monotone, so its fourth derivative is positive and Simpson's rule errs
    upward. Round-off is added to either bound.

    References
    ----------
    Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy", the analytic expression.

    Examples
    --------
    >>> round(math.exp(log_profile(1.0, 1.0)), 9)
    0.126936738
    """
    if mu == 0:
        return -math.inf
    if math.isinf(mu):
        return 0.0
    mu = max(mu, _MINIMUM)
    half = mu / 2
    ratio = epsilon / mu
    if math.isinf(ratio) or ratio > 1e150:
        return -_LARGEST
    x = below(ratio - half, 2.0, max(ratio, half))
    far = _mills(math.nextafter(x + mu, math.inf)) * (1 - _RELATIVE)
    log_density = above(-0.5 * x * x, 4.0) - _HALF_LOG_TAU
    if x < -1:
        delta = float(ndtr(-x)) - math.exp(log_density) * far
        return min(0.0, math.log(delta + 4 * _RELATIVE))
    near = _mills(x)
    if mu > _SMALL:
        gap = near * (1 + _RELATIVE) - far
    else:
        gap = mu / 6 * (_slope(x) + 4 * _slope(x + half) + _slope(x + mu)) * (1 + 2 * _RELATIVE)
    return min(0.0, above(log_density + math.log(gap), 8.0))


def upper_quantile(log_probability: float) -> float:
    """Return an upper bound on the ``z`` with upper tail probability ``exp(log_probability)`` of N(0, 1)."""
    value = -float(ndtri_exp(log_probability))
    # Of no probability at all, some versions of scipy say NaN.
    return math.inf if math.isnan(value) else above(value, 64.0, 1.0)
