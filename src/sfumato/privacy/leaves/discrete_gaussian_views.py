r"""The discrete Gaussian shifted by an integer: its exact privacy profile, and a proof of its Gaussian DP.

Throughout, :math:`p(x) \propto e^{-x^2/2\sigma^2}` on the integers, :math:`T(k) = P(X \ge k)`, and the pair
is the distribution and its shift by :math:`s`. The likelihood ratio rises along the line, so the best tests
are thresholds.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import ndtri_exp

from sfumato.numerics.certified.discrete_gaussian_tail import normaliser, tail
from sfumato.numerics.distributions.discrete import exp_minus
from sfumato.numerics.rounding import fraction_down, fraction_up, log_down, log_up
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.views import GDPView

__all__ = ["GDP_MASS", "gdp", "gdp_rate", "log_profile"]

GDP_MASS = 1e-120
"""Tail mass beyond which the trade-off function is not followed."""

# exp(-_REACH ** 2 / 2) < 1e-120, and both it and the same for the largest shift followed stay in float range
# after scaling by exp(_SCALING).
_REACH = Fraction(118, 5)
_MAX_SHIFT = 24
_MIN_VISITED = Fraction(1, 3)
_SCALING = 700.0
# Up to this standard deviation every vertex is visited; beyond, the bound in closed form is within 4e-4,
# or 1e-3 for shifts of several standard deviations.
_VISITED = 512


def log_profile(stddev: Fraction, sensitivity: int, epsilon: Fraction) -> float:
    r"""Return an upper bound on the log of the hockey-stick divergence, exact up to round-off.

    Notes
    -----
    The privacy loss at :math:`k` is :math:`(2ks - s^2)/2\sigma^2`. With :math:`k` the first integer where it
    exceeds :math:`\epsilon`, found in exact arithmetic, the divergence is :math:`T(k-s) - e^\epsilon T(k)`.
    Each tail is its first term times a certified factor; the common exponential is factored out, so nothing
    overflows or underflows.

    References
    ----------
    Canonne, Kamath, Steinke (2020), the privacy profile of the discrete Gaussian.
    """
    if not stddev:
        return 0.0
    double_variance = 2 * stddev * stddev
    s = sensitivity
    k = math.floor(epsilon * double_variance / (2 * s) + Fraction(s, 2)) + 1
    far = tail(k, stddev).lower
    norm = normaliser(stddev)
    if k > s:
        excess = (2 * k * s - s * s) / double_variance - epsilon
        near = tail(k - s, stddev).upper
        factor = above(near - exp_minus(excess).lower * far, 4.0, near)
        exponent = fraction_down((k - s) ** 2 / double_variance)
        return min(0.0, above(log_up(factor) - log_down(norm.lower) - exponent, 2.0))
    left_out = exp_minus((s + 1 - k) ** 2 / double_variance).lower * tail(s + 1 - k, stddev).lower
    scaled = exp_minus(k * k / double_variance - epsilon).lower * far
    return min(0.0, log_up(above(1 - (left_out + scaled) / norm.upper, 8.0, 1.0)))


@lru_cache(maxsize=1024)
def gdp(stddev: Fraction, sensitivity: int) -> GDPView:
    r"""Return a Gaussian DP parameter of the pair, up to a mass of `GDP_MASS`.

    Notes
    -----
    *Vertices.* The trade-off function :math:`f` is convex and linear between the points
    :math:`(T(k), 1 - T(k-s))`. Write :math:`t(k) = \Phi^{-1}(1 - T(k))`; the curve :math:`G_\mu` passes at or
    below the point of :math:`k` if and only if :math:`\mu \ge t(k) - t(k-s)`, and a convex curve at or below
    two neighboring points is below the chord between them.

    *Mass.* Let :math:`K` be such that :math:`\delta \ge T(K-s)`, and let :math:`\mu` suffice for all
    :math:`s+1-K \le k \le K`. Then :math:`f(x) \ge (1-\delta) G_\mu(x/(1-\delta))` for all :math:`x`. Between
    the extreme vertices :math:`f \ge G_\mu`, which is above the right side (composing :math:`G_\mu` with a
    failure of probability :math:`\delta` only lowers it). For :math:`x < T(K)`, :math:`f(x) \ge 1 - T(K-s)
    \ge 1-\delta`. For :math:`x > T(s+1-K) = 1 - T(K-s)`, the right side is 0. Here :math:`K - s \ge
    23.6\sigma + 1/2`, hence :math:`T(K-s) \le e^{-23.6^2/2} \cdot 1.1 <` `GDP_MASS`.

    *Small standard deviations.* All vertices are visited; by the symmetry :math:`t(1-k) = -t(k)`, those with
    :math:`2k > s` suffice.

    *Large ones.* Since :math:`t(k) - t(k-s)` is a sum of :math:`s` steps :math:`d(m) = t(m+1) - t(m)`,
    :math:`|m| < K`, and :math:`d(-m) = d(m)`, it is enough to bound :math:`\sigma d(m)` for :math:`0 \le m <
    K`. With :math:`I(\tau) = \varphi(\Phi^{-1}(\tau))`, concave, :math:`d(m)` is the integral of the convex
    :math:`1/I` over an interval of length :math:`p(m)`, at most :math:`p(m)/2` times the sum of its values at
    the two ends. There, :math:`T(j) \ge e^{-\eta} (1 - \Phi(z_j))`, :math:`z_j = (j - 1/2)/\sigma`, with
    :math:`\eta = J^2/24\sigma^4 + 2^{-70}`, :math:`J = K + 2\sigma`: compare :math:`p(i)` with the normal
    mass of :math:`[i-1/2, i+1/2]`, which is at most :math:`e^{-i^2/2\sigma^2} \sinh(w)/w /
    \sqrt{2\pi\sigma^2}` for :math:`w = i/2\sigma^2`, and :math:`\sinh(w)/w \le e^{w^2/6}`; what lies beyond
    :math:`J` and the normaliser's distance from :math:`\sqrt{2\pi\sigma^2}` (Poisson summation) fit in
    :math:`2^{-70}`. The hazard rate of the normal distribution is at least :math:`\max(z, 0.79)` and rises,
    so :math:`t(j) \le z_j + \eta/\max(z_j, 0.79)` and
    :math:`1/\varphi(t(j)) \le \sqrt{2\pi}\, e^{z_j^2/2 + \eta + 0.81\eta^2}`. As
    :math:`p(m) \le e^{-m^2/2\sigma^2}/\sqrt{2\pi\sigma^2}`, altogether
    :math:`\sigma d(m) \le e^{\eta + 0.81\eta^2 + 1/8\sigma^2} \cosh(m/2\sigma^2)
    \le e^{\eta + 0.81\eta^2 + 1/8\sigma^2 + K^2/8\sigma^4}`.

    References
    ----------
    Dong, Roth, Su (2022), "Gaussian differential privacy", trade-off functions; the bounds are proven here.
    """
    if sensitivity > _MAX_SHIFT * stddev or stddev < _MIN_VISITED:
        return GDPView(math.inf, 0.0)
    last = math.ceil(_REACH * stddev + Fraction(1, 2)) + sensitivity
    if stddev <= _VISITED:
        return GDPView(_visited(stddev, sensitivity, last), GDP_MASS)
    variance = stddev * stddev
    eta = fraction_up(Fraction(last + math.ceil(2 * stddev), 1) ** 2 / (24 * variance * variance)) + 2.0**-70
    rest = fraction_up(1 / (8 * variance) + Fraction(last * last, 1) / (8 * variance * variance))
    growth = above(math.exp(eta + 0.81 * eta * eta + rest), 8.0)
    return GDPView(above(fraction_up(sensitivity / stddev) * growth), GDP_MASS)


@lru_cache(maxsize=1024)
def gdp_rate(stddev: Fraction, largest: int) -> float:
    r"""Return a rate: every shift ``s`` to ``largest`` is ``rate * s``-Gaussian DP, up to `GDP_MASS`.

    Notes
    -----
    See `gdp`: for a shift of :math:`s \le m` it is enough that :math:`\mu \ge t(k) - t(k-s)` for
    :math:`s+1-K \le k \le K` with the :math:`K` of the shift :math:`m`, as :math:`T(K-s) \le T(K-m)`. That is
    a sum of :math:`s` steps :math:`d(j)`, :math:`|j| < K`, each of which is at most the rate.
    """
    if largest > _MAX_SHIFT * stddev or stddev < _MIN_VISITED:
        return math.inf
    if stddev <= _VISITED:
        return _visited(stddev, 1, math.ceil(_REACH * stddev + Fraction(1, 2)) + largest)
    return above(gdp(stddev, largest).mu / largest, 2.0)


def _visited(stddev: Fraction, sensitivity: int, last: int) -> float:
    """Return the largest ``t(k) - t(k - s)`` over all vertices up to ``last``, with its round-off added."""
    k = np.arange(1, last + math.ceil(2 * stddev) + 8, dtype=np.float64)
    weights = np.exp(_SCALING - k * k * fraction_up(1 / (2 * stddev * stddev)))
    tails = np.cumsum(weights[::-1])[::-1][:last]
    norm = log_up(normaliser(stddev).upper)
    quantiles = -ndtri_exp(np.log(tails) - _SCALING - norm)
    line = np.concatenate([-quantiles[::-1], quantiles])  # t(1 - last), ..., t(last)
    steps = line[sensitivity:] - line[:-sensitivity]
    # An exponent of up to 1400 is off by 4 roundings of it, the sum by one per term, its log by 700 more;
    # the normal hazard rate, at least 0.79, turns a relative error of a tail into one of its quantile.
    slack = 2 * (UNIT * (8000.0 + k.size) / 0.79 + 256 * UNIT * float(quantiles[-1]))
    return above(float(steps.max()) + slack, 4.0)
