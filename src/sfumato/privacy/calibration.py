"""Noise for a wanted guarantee."""

from __future__ import annotations

import math

from sfumato import _check
from sfumato.numerics.rounding import log_down
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.normal import log_profile

__all__ = ["analytic_gaussian_stddev"]


def analytic_gaussian_stddev(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the least standard deviation of continuous Gaussian noise that is (epsilon, delta)-DP.

    Parameters
    ----------
    sensitivity : float
        Greatest L2 distance between the answers on neighboring datasets.
    epsilon : float
        Non-negative.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        Standard deviation in the units of ``sensitivity``, rounded to the private side within about 1e-12.

    Notes
    -----
    Guarantee: (epsilon, delta)-DP for real Gaussian noise, under the relation that the sensitivity is stated
    for. Noise drawn on a grid follows another law: calibrate `DiscreteGaussian` for it.

    References
    ----------
    Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy", Algorithm 1.

    Examples
    --------
    >>> round(analytic_gaussian_stddev(sensitivity=1.0, epsilon=1.0, delta=1e-5), 9)
    3.730631635
    """
    sensitivity = _check.positive("sensitivity", sensitivity)
    epsilon = _check.non_negative("epsilon", epsilon)
    delta = _check.unit_interval("delta", delta)
    log_delta = log_down(delta)
    low, high = 0.0, 1.0
    while log_profile(1 / high, epsilon) > log_delta:
        low, high = high, 2 * high
    while low == 0.0:
        if log_profile(2 / high, epsilon) > log_delta:
            low = high / 2
        else:
            high /= 2
    while (middle := 0.5 * (low + high)) not in {low, high} and high - low > 4 * UNIT * high:
        if log_profile(above(1 / middle, 1.0), epsilon) <= log_delta:
            high = middle
        else:
            low = middle
    stddev = above(high * sensitivity, 4.0)
    if math.isinf(stddev):
        _check.refuse("delta", "be reached by a finite standard deviation", delta, "allow a larger delta")
    return stddev
