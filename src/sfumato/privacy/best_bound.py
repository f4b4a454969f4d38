"""Searches for the best bound: over the order of a Rényi divergence, and for the epsilon of a profile.

Every value that a search tries gives a valid bound, so that it decides only how good the bound is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT

__all__ = ["Curve", "minimum", "minimum_epsilon"]

Curve: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_COARSE = np.exp2(np.linspace(-8.0, 8.0, 49))
_FINE = np.linspace(-1.0, 1.0, 25) / 3.0
_RECENTRED = 6
_LOOKS = 8
_CLOSE = 1e-10
_SMOOTH = 0.7


def minimum(objective: Curve, centre: float) -> float:
    """Return a value of ``objective(order - 1)`` close to its minimum, looked for around ``centre``."""
    if not 0 < centre < math.inf:
        centre = 1.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for _ in range(_RECENTRED):
            grid = np.clip(centre, 1e-12, 1e12) * _COARSE
            # Where infinities cancel, nothing is known.
            values = np.nan_to_num(objective(grid), nan=np.inf, posinf=np.inf)
            best, centre = float(values.min()), float(grid[int(values.argmin())])
            if grid[0] < centre < grid[-1]:
                break
        return min(best, _closer(objective, centre))


def _closer(objective: Curve, centre: float) -> float:
    """Look around an approximate minimum, closer and closer where the function has a corner there."""
    best, fine = math.inf, _FINE
    for _ in range(_LOOKS):
        grid = centre * np.exp2(fine)
        values = np.nan_to_num(objective(grid), nan=np.inf, posinf=np.inf)
        lowest = int(values.argmin())
        k = min(max(lowest, 2), len(grid) - 3)
        bends = np.diff(values[k - 2 : k + 3], 2)
        bend, centre = float(bends[1]), float(grid[lowest])
        best = min(best, float(values[lowest]))
        if math.isinf(best):
            break
        if 0 < bend < math.inf:
            move = min(max(0.5 * float(values[k - 1] - values[k + 1]) / bend, -1.0), 1.0)
            best = min(best, *objective(grid[k] * np.exp2([move * (fine[1] - fine[0])])).tolist())
        # A smooth function bends about as much on both sides; one with a corner needs a closer look.
        if lowest == k and (bend <= _CLOSE * abs(best) or bends.min() > _SMOOTH * bends.max()):
            break
        fine = fine * (2 / (len(fine) - 1))
    return best


def minimum_epsilon(profile: Callable[[float], float], log_delta: float, *, start: float) -> float:
    """Return an epsilon at which a falling log profile is certified to be at most ``log_delta``.

    Parameters
    ----------
    profile : callable
        Maps epsilon to an upper bound on the log of delta.
    log_delta : float
        Natural logarithm of delta.
    start : float
        A first guess from above; any positive number will do.

    Returns
    -------
    float
        An evaluated point where the bound holds, within about 1e-13 (relative) of the smallest one; infinity
        if none.
    """
    low, at_low = 0.0, profile(0.0) - log_delta
    if at_low <= 0:
        return 0.0
    high = start if 0 < start < math.inf else 1.0
    at_high = profile(high) - log_delta
    while at_high > 0:
        low, at_low, high = high, at_high, 2 * high
        if math.isinf(high):
            return math.inf
        at_high = profile(high) - log_delta
    rose: bool | None = None
    for step in range(200):
        tolerance = 512 * UNIT * high
        if high - low <= 2 * tolerance:
            break
        secant = math.isfinite(at_high) and step % 8 != 7
        point = high - at_high * (high - low) / (at_high - at_low) if secant else 0.5 * (low + high)
        point = min(max(point, low + tolerance), high - tolerance)
        value = profile(point) - log_delta
        # The weight of an end that stays put twice is halved (the Illinois rule), so that both ends close in.
        again = (value > 0) == rose
        rose = value > 0
        if rose:
            low, at_low, at_high = point, value, at_high / 2 if again else at_high
        else:
            high, at_high, at_low = point, value, at_low / 2 if again else at_low
    return high
