r"""Rényi divergences of a mechanism on a Poisson sample, from those of the mechanism alone.

Let the mechanism's divergences on any two neighbors be at most :math:`\epsilon(\alpha)`, in both orders,
under add/remove. Given which other units are drawn, the output has the distribution :math:`Q` without the
unit and :math:`(1-q)Q + qP` with it; as :math:`(x, y) \mapsto x^\alpha y^{1-\alpha}` is jointly convex, the
mean over the other units is at most the worst of these. With :math:`R = dP/dQ` and :math:`c = \alpha - 1`:

*The unit's side first.* For a whole :math:`\alpha`, as :math:`E_Q R^k \le e^{(k-1)\epsilon(k)}`, and 1 for
:math:`k \le 1`,

.. math:: E_Q (1 - q + qR)^\alpha \le 1 + \sum_{k=2}^\alpha \binom{\alpha}{k} (1-q)^{\alpha-k} q^k
          (e^{(k-1)\epsilon(k)} - 1).

Between two whole orders the log of this moment is below its chord, for it is convex in :math:`\alpha` and 0
at 1. At every order :math:`E_Q (1-q+qR)^\alpha \le 1 - q + q e^{c\epsilon(\alpha)}`, by convexity.

*The other side first.* With :math:`u = 1 - R \le 1`, the moment is :math:`E_Q(1 - qu)^{-c}`, and
:math:`E_Q u = 0`. As the third derivative of :math:`(1-qu)^{-c}` is positive,
:math:`((1-qu)^{-c} - 1 - cqu)/u^2` rises up to :math:`u = 1`, so that

.. math:: E_Q (1 - q + qR)^{-c} \le 1 + ((1-q)^{-c} - 1 - cq)(e^{\epsilon(2)} - 1).

It is also at most :math:`(1-q)^{-c}`, and at most :math:`1 - q + q e^{c\epsilon(\alpha)}`, by convexity.

The first sum is that of Zhu and Wang (2019), "Poisson subsampled Rényi differential privacy", without the
factor of 3 by which they cover both sides of any mechanism; the second bound is in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sfumato.privacy._outward import UNIT

__all__ = ["sampled_renyi"]

_Array = NDArray[np.float64]
_Curve: TypeAlias = Callable[[_Array], _Array]

_LARGEST: Final = 1024
"""Order of the largest sum; above it convexity alone is used."""
_SLACK: Final = 1 + 1e-9
"""Outweighs the rounding of logs of binomial coefficients, some thousands of units of the last place."""


def sampled_renyi(curve: _Curve, q: float, orders: _Array) -> _Array:
    """Return upper bounds on the divergences of a Poisson sample, the greater of both orders of the pair.

    Parameters
    ----------
    curve : callable
        Bounds on the mechanism's divergences of orders above 1, on both sides, under add/remove or zero-out.
    q : float
        With which the unit is drawn, strictly between 0 and 1.
    orders : ndarray
        Orders above 1.

    Returns
    -------
    ndarray
        Infinity where nothing finite is proven.

    Examples
    --------
    >>> from sfumato.privacy import ZCDP
    >>> bool(sampled_renyi(ZCDP(0.5).rdp_curve, 0.01, np.array([2.0]))[0] < 2e-4)
    True
    """
    gaps = orders - 1.0
    with np.errstate(all="ignore"):
        own = curve(orders)
        # log(1 - q + q exp(c D)), by convexity on either side.
        convex = np.logaddexp(np.log1p(-q), np.log(q) + gaps * own)
        convex = np.where(gaps * own < 1.0, np.log1p(q * np.expm1(gaps * own)), convex)
        first = np.fmin(convex, _chord(curve, q, orders))
        second = np.fmin(convex, _other_side(float(curve(np.array([2.0]))[0]), q, gaps))
        worst = np.maximum(first, second) * _SLACK / gaps
    # Sampling never makes a divergence greater: the mixture lies between both distributions.
    return np.asarray(np.nan_to_num(np.fmin(own, worst + 64 * UNIT * worst), nan=np.inf, posinf=np.inf))


def _other_side(second: float, q: float, gaps: _Array) -> _Array:
    """Bound the log of the moment of the distribution without the unit against the mixture."""
    log_most = -gaps * np.log1p(-q)
    # (1 - q)**-c - 1 - c q, whose terms cancel where c q is small: there by its series, rounded up.
    small = gaps * q < 1e-3
    near = 0.5 * gaps * (gaps + 1) * q * q / (1 - q) ** (gaps + 2)
    excess = np.where(small, near, np.expm1(log_most) - gaps * q)
    return np.asarray(np.fmin(log_most, np.log1p(excess * np.expm1(second) * _SLACK)))


def _chord(curve: _Curve, q: float, orders: _Array) -> _Array:
    """Bound the log of the moment of the mixture against the distribution without the unit."""
    result = np.full(len(orders), np.inf)
    within = orders <= _LARGEST
    if not within.any():
        return result
    lower = np.floor(orders[within])
    upper = np.ceil(orders[within])
    whole = np.unique(np.concatenate([lower, upper, [2.0]])).astype(int)
    steps = np.arange(2, int(whole[-1]) + 1, dtype=float)
    # log(exp((k - 1) epsilon(k)) - 1)
    moved = (steps - 1) * curve(steps)
    logs = np.where(moved < 1.0, np.log(np.expm1(np.minimum(moved, 1.0))), moved + np.log1p(-np.exp(-moved)))
    logs = logs + gammaln(1.0) - gammaln(steps + 1) + steps * np.log(q)
    moments = {1: 0.0}
    for order in whole[whole > 1].tolist():
        part = logs[: order - 1] + gammaln(order + 1.0) - gammaln(order - steps[: order - 1] + 1)
        part = part + (order - steps[: order - 1]) * np.log1p(-q)
        top = float(part.max())
        total = top + np.log(np.exp(part - top).sum()) if top > -np.inf else top
        moments[order] = float(np.logaddexp(0.0, total) if total > -30 else np.exp(total)) * _SLACK
    ends = np.array([[moments[int(order)] for order in end] for end in (lower, upper)])
    right = orders[within] - lower
    # Infinity at the right end says nothing of an order that is whole itself.
    result[within] = np.where(right > 0, (1 - right) * ends[0] + right * ends[1], ends[0])
    return result
