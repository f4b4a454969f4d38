"""The pair of AboveThreshold with Gaussian noise: the index of the first noisy value over a threshold."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.gaussian_profile import log_profile
from sfumato.privacy.pairs.convex_minorant import distributions_of_profile
from sfumato.privacy.pairs.directed import DirectedPair
from sfumato.privacy.pairs.finite import rational_pair

__all__ = ["above_threshold_pair"]

_LARGEST: Final = 600.0
_MIN_LOG: Final = -100.0
"""Log of the smallest delta that is followed."""
_POINTS: Final = 320
_HAZARDS: Final = np.geomspace(1e-4, 400.0, 2400)
_EACH: Final = 16
_SLACK: Final = 256 * UNIT

_Array = NDArray[np.float64]


def above_threshold_pair(distance: float, length: int) -> DirectedPair:
    r"""Return distributions that dominate two stopping times, where stopping is likelier under the first.

    Parameters
    ----------
    distance : float
        :math:`m`, the largest distance of the normal distributions of one number, in standard deviations;
        positive.
    length : int
        :math:`n`: after so many numbers nothing more is released.

    Notes
    -----
    At number i the first distribution stops with the chance :math:`h_i = \Phi(-z_i)`, the second with
    :math:`h_i' = \Phi(-z_i - m_i) \le h_i`, :math:`0 \le m_i \le m`; :math:`z_i` and :math:`m_i` are fixed.
    Let :math:`s_i = \prod_{j \le i}(1 - h_j) \le s_i'` be the chances of going on, P and Q the distributions
    of when it stops, if at all, and :math:`\delta_m` the divergence of N(0, 1) and N(m, 1).

    *From P to Q.* For :math:`u \ge 1` the divergence is at most :math:`\sum_i s_{i-1}(h_i - u h_i')_+`, where
    :math:`(h_i - u h'_i)_+ \le \min(h_i, \delta_m)`; hence at most :math:`1 - (1 - \delta_m)^n`.

    *From Q to P.* Let :math:`H = -\log\Phi(z)`, :math:`H' = -\log\Phi(z + m)` and :math:`\kappa(H') = H -
    H'`, which rises with m. Its derivative is :math:`\lambda(z)/\lambda(z + m) - 1 \ge 0` with :math:`\lambda
    = \varphi/\Phi`, which falls. It falls with :math:`H'`, as :math:`\log\lambda` has the derivative
    :math:`-(z + \lambda(z))`, and :math:`z + \lambda(z)` rises (its derivative is the variance of a normal
    distribution that is cut off). So :math:`\kappa` is concave, and after numbers whose :math:`H'` add up to
    x, :math:`\log(s'/s) \le y(x) = n \kappa(x/n)`. For the log of Q over P to exceed y > 0 it must have gone
    on until :math:`\log(s'/s) \ge y`, as to stop makes it less: then :math:`s' \le e^{-x(y)}`, and so
    :math:`P(\log(Q/P) > y) \le s \le e^{-y - x(y)}`. The divergence at :math:`v = e^a` is
    :math:`\int_v^\infty P(Q/P > w)\,dw \le \int_a^\infty e^{-x(y)}\,dy`. It is bounded by a sum of steps, as
    :math:`x(y)` rises, and beyond the last one by :math:`e^{-x} y/x`, as it is convex and 0 at 0.

    *A pair* that composes must have no less divergence at all :math:`u > 0`: below 1 the second bound counts,
    as :math:`D_u(P \| Q) = 1 - u + u D_{1/u}(Q \| P)`.
    """
    last = min(
        _LARGEST, 0.5 * distance * distance + distance * math.sqrt(-2 * _MIN_LOG + 2 * math.log(length))
    )
    epsilons = np.linspace(0.0, last, _POINTS).tolist()
    deltas = [_any(log_profile(distance, epsilon), length) for epsilon in epsilons]
    return DirectedPair(
        rational_pair(distributions_of_profile(epsilons, deltas, back=_back(distance, length)))
    )


def _any(log_chance: float, tries: int) -> float:
    """Return the chance that one of many independent tries succeeds, rounded up."""
    chance = math.exp(log_chance)
    return min(1.0, above(-math.expm1(tries * math.log1p(-chance)), 32.0)) if chance < 1 else 1.0


def _back(distance: float, length: int) -> tuple[list[float], list[float]]:
    """Return rising points, and bounds on the divergence from Q to P there."""
    x, y = _going_on(distance, length)
    with np.errstate(all="ignore"):
        chances = np.exp(-x) * (1 + _SLACK)
        steps = np.append(np.diff(y) * chances[:-1], chances[-1] * y[-1] / x[-1])
        sums = np.cumsum(steps[::-1])[::-1] * (1 + _SLACK * 2 * len(steps))
        selected = np.flatnonzero((np.diff(y, prepend=0.0) > 0) & (y <= _LARGEST))[::_EACH]
    found = np.fmin(sums, 1.0)  # where floats overflow, nothing is known
    return [0.0, *y[selected].tolist()], [min(1.0, above(float(y[0] + found[0]))), *found[selected].tolist()]


def _going_on(distance: float, length: int) -> tuple[_Array, _Array]:
    """Return bounds on points of the curve: on x from below, on y from above, both rising."""
    each = _HAZARDS / length
    with np.errstate(all="ignore"):
        stops = np.where(each < 0.5, np.log(-np.expm1(-each)), np.log1p(-np.exp(-each)))
        z = -np.asarray(ndtri_exp(stops))  # whatever its error, both logs are taken of this very number
        z = z[np.isfinite(z)]
        x, whole = -length * log_ndtr(z), -length * log_ndtr(z - distance)
        y = whole * (1 + _SLACK) - x * (1 - _SLACK)
    x = np.minimum.accumulate((x * (1 - _SLACK))[::-1])[::-1]
    return x, np.maximum.accumulate(np.where(np.isnan(y), np.inf, y))
