"""Tails of the discrete Gaussian distribution on the log scale, plain and tilted."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sfumato.numerics.certified.discrete_gaussian_tail import normaliser, tail
from sfumato.numerics.rounding import fraction_down, log_down, log_up
from sfumato.privacy._outward import UNIT, above

__all__ = ["log_tilted_tail", "log_upper_tail"]

_Array = NDArray[np.float64]


@lru_cache(maxsize=4096)
def log_upper_tail(stddev: Fraction, start: int) -> float:
    """Return an upper bound on the log of the mass of all integers from ``start`` > 0 on."""
    exponent = fraction_down(Fraction(start * start) / (2 * stddev * stddev))
    return above(
        log_up(tail(start, stddev).upper) - log_down(normaliser(stddev).lower) - exponent, 4.0, exponent
    )


def log_tilted_tail(stddev: Fraction, shift: int, start: int, tilts: _Array) -> _Array:
    r"""Return upper bounds on the log of ``E_P[exp(c * loss)]`` over the integers from ``start`` on.

    Notes
    -----
    With :math:`a = (1 + c)s` it is :math:`e^{c(c+1)s^2/2\sigma^2} \sum_{x \ge k} e^{-(x-a)^2/2\sigma^2} / Z`.
    The sum over all integers is at most :math:`Z`: by Poisson summation its Fourier series in :math:`a` has
    positive coefficients. For :math:`k > a` the terms fall, so their sum is at most the first one and the
    integral; there :math:`Z \ge \max(1, \sigma\sqrt{2\pi})`.
    """
    sigma = float(stddev)
    moment = 0.5 * tilts * (tilts + 1) * float((shift / stddev) ** 2)
    gap = (start - (1 + tilts) * shift) / sigma
    beyond = np.maximum(gap * (1 - 8 * UNIT) - 8 * UNIT * (1 + tilts) * shift / sigma, 0.0)
    first = -0.5 * beyond * beyond - math.log(max(1.0, sigma * math.sqrt(2 * math.pi)))
    bound = np.where(gap > 0, np.minimum(np.logaddexp(first, log_ndtr(-beyond)), 0.0), 0.0)
    return np.asarray(moment * (1 + 16 * UNIT) + bound + 1e-9 + 16 * UNIT * np.abs(bound))
