"""Tail bounds for weighted sums of independent Laplace variables, from their characteristic function."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sfumato.mechanisms.factorization.strategies.integer_strategy import Array

__all__ = ["chernoff_reach", "laplace_reach"]

_MAXIMUM: Final = 4096
_SPARE: Final = 1e-4
_MINIMUM: Final = 1e-9
_ROUNDING: Final = 1e-13
_STEPS: Final = 40
_TILTS: Final = np.concatenate([np.geomspace(0.01, 0.2, 12), np.linspace(0.22, 0.998, 40)])


def laplace_reach(sizes: Array, counts: Array, outside: float) -> float:
    r"""Return an x with :math:`P(|W| > x)` at most ``outside`` for a sum of Laplace variables.

    Parameters
    ----------
    sizes : array of shape (n,)
        Scales of the variables, positive.
    counts : array of shape (n,)
        How many variables there are of each scale.
    outside : float
        Strictly between 0 and 1; below 1e-9 the bound is Chernoff's, which is wider.

    Notes
    -----
    *Inversion.* Let :math:`\varphi(\theta) = \prod (1 + \theta^2 b_i^2)^{-c_i}` and, for :math:`0 < x <
    2\pi/h`, :math:`T(x) = \frac12 - \frac1\pi(\frac{hx}2 + \sum_{k \ge 1} \varphi(kh) \sin(khx)/k)`. For a W
    of two values :math:`\pm w`, the series :math:`\sum \sin(ky)/k = (\pi - y)/2` on :math:`(0, 2\pi)` shows
    that T is :math:`P(W > x)` as long as :math:`w + x < 2\pi/h`; beyond, T is in [-1, 1]. So T errs by at
    most twice :math:`P(|W| \ge 2\pi/h - x)`, which Chernoff's bound makes small by the choice of h.

    *Truncation.* With the largest scale 1 and :math:`a = \theta^2`, :math:`\varphi(u\theta) \le
    \varphi(\theta)(1 + a)/(1 + au^2)` for :math:`u \ge 1`. So the terms after the K-th, :math:`\theta = Kh`,
    add up to at most :math:`\varphi(\theta) \int_1^\infty \frac{1+a}{1+au^2}\frac{du}u = \varphi(\theta)
    \frac{1+a}2 \log(1 + 1/a)`.

    Both errors are added to T.

    Examples
    --------
    >>> import numpy as np
    >>> round(laplace_reach(np.array([2.0]), np.array([1.0]), 0.05), 6) == round(2 * math.log(20), 6)
    True
    >>> one, many = (laplace_reach(np.ones(1), np.array([c]), 0.05) / math.sqrt(2 * c) for c in (1.0, 400.0))
    >>> round(one, 2), round(many, 2)
    (2.12, 1.96)
    """
    if not sizes.size:
        return 0.0
    largest = float(sizes.max())
    scaled = sizes / largest
    if counts.sum() == 1:
        return -math.log(outside) * largest * (1 + 1e-12)
    top = chernoff_reach(scaled, counts, outside)
    if outside < _MINIMUM:
        return top * largest * (1 + 1e-9)
    h = 2 * math.pi / (top + chernoff_reach(scaled, counts, outside * _SPARE))
    multiples = np.arange(1, _MAXIMUM + 1)
    logs = -(np.log1p(np.square(np.multiply.outer(multiples * h, scaled))) @ counts)
    retained = int(np.searchsorted(-logs, -math.log(_ROUNDING * _SPARE))) + 1
    multiples, values = multiples[:retained], np.exp(logs[:retained]) / multiples[:retained]
    square = float(multiples[-1] * h) ** 2
    rest = math.exp(logs[len(values) - 1]) * (1 + square) / 2 * math.log1p(1 / square)
    error = 2 * outside * _SPARE + rest / math.pi + _ROUNDING
    low, high = 0.0, top
    for _ in range(_STEPS):
        x = 0.5 * (low + high)
        tail = 0.5 - (0.5 * h * x + float(values @ np.sin(multiples * (h * x)))) / math.pi
        low, high = (low, x) if 2 * (tail + error) <= outside else (x, high)
    return high * largest * (1 + 1e-9)


def chernoff_reach(sizes: Array, counts: Array, outside: float) -> float:
    r"""Return Chernoff's bound: the least :math:`(\log(2/p) - \sum c_i \log(1 - \lambda^2 b_i^2))/\lambda`.

    Parameters
    ----------
    sizes, counts, outside
        As in `laplace_reach`.
    """
    if not sizes.size:
        return 0.0
    largest = float(sizes.max())
    moments = -(np.log1p(-np.square(np.multiply.outer(_TILTS, sizes / largest))) @ counts)
    return float(((math.log(2 / outside) + moments) / _TILTS).min()) * largest
