"""Lower bounds on epsilon and mu from bounds on two probabilities."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato.numerics.rounding import div_down, down, log_down, sub_down

__all__ = [
    "certified_epsilon",
    "certified_mu",
    "forced_epsilon",
    "forced_mu",
]


def forced_epsilon(
    minimum: NDArray[np.float64], maximum: NDArray[np.float64], delta: float
) -> NDArray[np.float64]:
    """Return the epsilon below which ``minimum <= exp(epsilon) maximum + delta`` fails; -inf for any."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(minimum - delta, 0.0)) - np.log(maximum)


def certified_epsilon(minimum: float, maximum: float, delta: float) -> float:
    """Return `forced_epsilon` of two numbers rounded down, 0 where nothing is forced."""
    rest = sub_down(minimum, delta)
    return max(0.0, log_down(div_down(rest, maximum))) if rest > 0 else 0.0


def forced_mu(minimum: NDArray[np.float64], maximum: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mu below which Gaussian DP forbids an event of these two probabilities."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(ndtri(minimum) - ndtri(maximum), nan=-np.inf), dtype=np.float64)


def certified_mu(minimum: float, maximum: float) -> float:
    """Return `forced_mu` of two numbers rounded down, 0 where nothing is forced."""
    mu = float(forced_mu(np.asarray(minimum), np.asarray(maximum)))
    # ndtri is good to a few units in the last place of values that stay below 40.
    return max(0.0, down(mu - 1e-12)) if math.isfinite(mu) else 0.0
