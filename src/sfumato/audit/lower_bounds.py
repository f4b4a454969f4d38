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
    least: NDArray[np.float64], most: NDArray[np.float64], delta: float
) -> NDArray[np.float64]:
    """Return the epsilon below which ``least <= exp(epsilon) most + delta`` fails; minus infinity for any."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(least - delta, 0.0)) - np.log(most)


def certified_epsilon(least: float, most: float, delta: float) -> float:
    """Return `forced_epsilon` of two numbers rounded down, 0 where nothing is forced."""
    rest = sub_down(least, delta)
    return max(0.0, log_down(div_down(rest, most))) if rest > 0 else 0.0


def forced_mu(least: NDArray[np.float64], most: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mu below which Gaussian DP forbids an event of these two probabilities."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(ndtri(least) - ndtri(most), nan=-np.inf), dtype=np.float64)


def certified_mu(least: float, most: float) -> float:
    """Return `forced_mu` of two numbers rounded down, 0 where nothing is forced."""
    mu = float(forced_mu(np.asarray(least), np.asarray(most)))
    # ndtri is good to a few units in the last place of values that stay below 40.
    return max(0.0, down(mu - 1e-12)) if math.isfinite(mu) else 0.0
