r"""The sum of discrete Gaussian distributions, compared with the one discrete Gaussian of its variance.

Throughout, :math:`f_v(x) = e^{-x^2/2v}` on the integers, :math:`G_v \propto f_v`, and :math:`Q_n` is the
distribution of the sum of n independent draws from :math:`G_v`. It is not :math:`G_{nv}`, but close to it:
:math:`R = Q_n/G_{nv}` lies in an interval of positive numbers whose ends have a ratio of at most
:math:`e^\tau`. As both are distributions, the interval holds 1.

*Proof.* For two of variances a and b, with :math:`t = ab/(a+b)` and :math:`\mu = a/(a+b)`, completing the
square gives :math:`(f_a * f_b)(x) = f_{a+b}(x) \sum_y f_t(y - \mu x)`. By Poisson summation the sum is
:math:`\sqrt{2\pi t}` times a number between :math:`1 - e` and :math:`1 + e`,
:math:`e = 2 \sum_{j \ge 1} e^{-2\pi^2 t j^2}`; all else is constant in x. Adding the (k+1)-th summand to k of
them convolves :math:`R G_{kv}` with :math:`G_v`: the ends multiply, for a convolution is monotone. There
:math:`t = v k/(k+1)`, so that :math:`\tau = \sum_{k=1}^{n-1} \log \frac{1 + e_k}{1 - e_k}`.

References
----------
Kairouz, Liu, Steinke (2021), "The distributed discrete Gaussian mechanism for federated learning with secure
aggregation", sums of discrete Gaussians: the same comparison with :math:`10 e^{-2\pi^2 t}` for each summand.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtri_exp

from sfumato.numerics.rounding import exp_up, fraction_down, fraction_up, log_up, sqrt_down, sqrt_up
from sfumato.privacy._outward import UNIT, above

__all__ = ["closeness", "gdp_rate"]

_EACH: Final = 256
"""So many summands are added one by one; each later one changes no more than the last of them."""
_REACH: Final = Fraction(118, 5)
_MAX_SHIFT: Final = 24.0
_SCALING: Final = 700.0
_VISITED: Final = 512.0


@lru_cache(maxsize=1024)
def closeness(variance: Fraction, summands: int) -> float:
    r"""Return :math:`\tau`, rounded up; infinity where the bound says nothing.

    Parameters
    ----------
    variance : Fraction
        Of the squared parameter of each summand; positive.
    summands : int
        At least 1.

    Returns
    -------
    float
    """
    if summands == 1:
        return 0.0
    terms: list[float] = []
    for k in range(1, min(summands, _EACH)):
        exponent = above(-2 * math.pi**2 * fraction_down(variance * k / (k + 1)), 8.0)
        first = exp_up(min(0.0, exponent))
        # j^2 >= 3 j - 2: the series is below a geometric one.
        e = above(2 * first / max(1 - first**3, 2.0**-60), 16.0)
        if e >= 0.999:
            return math.inf
        terms.append(above(math.log1p(2 * e / (1 - e)), 64.0))
    later = max(0, summands - _EACH) * terms[-1]
    return above(math.fsum(terms) + later, 8.0)


@lru_cache(maxsize=1024)
def gdp_rate(variance: Fraction, largest: int, tau: float) -> float:
    r"""Return a rate: every shift ``s`` to ``largest`` of the sum is ``rate * s``-Gaussian DP, up to a mass.

    Parameters
    ----------
    variance : Fraction
        Of the whole sum, as the parameter of the discrete Gaussian beside it.
    largest : int
        The largest shift.
    tau : float
        From `closeness`.

    Returns
    -------
    float
        Infinity where nothing is proved. The mass is `discrete_gaussian_views.GDP_MASS`.

    Notes
    -----
    Proof in `discrete_gaussian_views.gdp` and `gdp_rate`, which hold for a discrete Gaussian of any variance.
    For the sum: it is symmetric and log-concave as a convolution of such, so thresholds are the best tests;
    its tail is that of :math:`G` times a factor from :math:`e^{-\tau}` to :math:`e^\tau`. With
    :math:`T(k) = P(X \ge k) < 1/2` for :math:`k \ge 1`, the quantile :math:`t(k) = \Phi^{-1}(1 - T(k))` has
    the derivative :math:`-1/h` by :math:`\log T`, where the hazard rate h is above 0.79; so it moves by at
    most :math:`\tau/0.79`, and by symmetry for :math:`k \le 0` too. A step :math:`t(k) - t(k-1)` grows by at
    most twice that. The mass beyond the vertices followed grows by :math:`e^\tau \le e^{1/2}`, which
    :math:`1.1 e^{-23.6^2/2 + 1/2} < 10^{-120}` has room for.
    """
    if variance < 1 or not tau <= 0.5 or largest > _MAX_SHIFT * sqrt_down(fraction_down(variance)):
        return math.inf
    # The root or a little more, for variances beyond floats too.
    stddev = Fraction(math.isqrt(math.ceil(variance * 4**32)) + 1, 2**32)
    last = math.ceil(_REACH * stddev + Fraction(1, 2)) + largest
    moved = above(2 * tau / 0.79, 4.0)
    if stddev <= _VISITED:
        return above(_largest_step(variance, last) + moved)
    eta = fraction_up(Fraction(last + math.ceil(2 * stddev)) ** 2 / (24 * variance**2)) + 2.0**-70
    rest = fraction_up(1 / (8 * variance) + Fraction(last) ** 2 / (8 * variance**2))
    growth = above(math.exp(eta + 0.81 * eta * eta + rest), 8.0)
    return above(sqrt_up(fraction_up(1 / variance)) * growth + moved, 4.0)


def _largest_step(variance: Fraction, last: int) -> float:
    """Return the largest ``t(k) - t(k - 1)`` over all vertices up to ``last``, its round-off added."""
    stddev = sqrt_up(fraction_up(variance))
    k = np.arange(1, last + math.ceil(2 * stddev) + 8, dtype=np.float64)
    weights = np.exp(_SCALING - k * k * fraction_up(1 / (2 * variance)))
    tails = np.cumsum(weights[::-1])[::-1][:last]
    # By Poisson summation, for a variance of at least 1; the terms left out are below 1e-33 of it.
    whole = math.sqrt(2 * math.pi) * stddev * (1 + 2 * math.exp(-2 * math.pi**2 * float(variance)))
    quantiles = -ndtri_exp(np.log(tails) - _SCALING - log_up(above(whole, 16.0)))
    line = np.concatenate([[-quantiles[0]], quantiles])  # t(0), t(1), ..., t(last); t(1 - k) = -t(k)
    # As in `discrete_gaussian_views`: an exponent of up to 1400, the sum and its log.
    slack = 2 * (UNIT * (8000.0 + k.size) / 0.79 + 256 * UNIT * float(quantiles[-1]))
    return above(float(np.diff(line).max()) + slack, 4.0)
