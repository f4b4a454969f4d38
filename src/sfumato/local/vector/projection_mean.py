r"""How far the nearest of some random vectors point along a given one, on average."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import betainc, gammaln, ndtr

from sfumato.local.frequency.variance import Array

__all__ = ["halves", "normal_heights", "sphere_heights"]

_POINTS: Final = 40_001


def _of_largest(heights: Array, masses: Array, below: Array, count: int, near: int) -> tuple[float, float]:
    r"""Return the mean and mean square of the ``near`` largest of ``count`` heights.

    Notes
    -----
    A height at the point with F below it is among the w largest of K if at most w - 1 of the K - 1 others are
    greater: with the probability :math:`I_F(K - w, w)`, the incomplete beta function.
    """
    # All of them are among all, which older scipy calls NaN.
    among = betainc(count - near, near, below) if near < count else 1.0
    weights = masses * among * count / near
    return float(weights @ heights), float(weights @ heights**2)


def normal_heights(count: int, near: int) -> tuple[float, float]:
    """Return the mean and mean square height of the nearest of normal vectors."""
    heights = np.linspace(-12.0, 12.0, _POINTS)
    masses = np.exp(-heights * heights / 2) / math.sqrt(2 * math.pi) * (heights[1] - heights[0])
    return _of_largest(heights, masses, ndtr(heights), count, near)


def sphere_heights(count: int, near: int, dimension: int) -> tuple[float, float]:
    r"""Return the same of vectors that are even on a sphere of radius :math:`\sqrt d`.

    Notes
    -----
    With the angle a to the given vector the height is :math:`\sqrt d \cos a`, and a has a density
    proportional to :math:`\sin^{d-2} a`.
    """
    angles = (np.arange(_POINTS) + 0.5) * (math.pi / _POINTS)
    masses = np.exp((dimension - 2) * np.log(np.sin(angles)))
    cosines, half = np.cos(angles), (dimension - 1) / 2
    below = betainc(half, half, (1 + cosines) / 2)
    return _of_largest(math.sqrt(dimension) * cosines, masses / masses.sum(), below, count, near)


def halves(dimension: int) -> tuple[float, float]:
    """Return the same of the nearer of two opposite vectors on that sphere."""
    log = float(gammaln(dimension / 2) - gammaln((dimension + 1) / 2))
    return math.sqrt(dimension / math.pi) * math.exp(log), 1.0
