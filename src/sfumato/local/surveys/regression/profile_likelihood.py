"""Profile likelihood: the maximum over all coefficients but one, and the interval that it gives."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from sfumato.local.surveys.regression.likelihood import Array, Maximum, Objective, maximize

__all__ = [
    "constrained_maximum",
    "extrapolated",
    "profile_bound",
    "profile_bounds",
    "profile_maximum",
    "standard_error",
]

_STEPS: Final = 10
_NEAR: Final = 1e-6


def profile_maximum(problem: Objective, best: Array, direction: Array, value: float) -> float:
    """Return the largest log likelihood at which a combination of the coefficients has a value.

    Parameters
    ----------
    problem : Objective
    best : array
        Where the search begins: the maximum, say.
    direction : array
        The weights of the combination.
    value : float
    """
    return constrained_maximum(problem, direction, value, best).height


def profile_bounds(
    problem: Objective, best: Maximum, direction: Array, level: float, *, reach: float
) -> tuple[float, float]:
    r"""Return the values of a combination of coefficients that a likelihood-ratio test does not reject.

    Parameters
    ----------
    problem : Objective
    best : Maximum
        Its maximum.
    direction : array
        The weights of the combination.
    level : float
        Wanted coverage.
    reach : float
        How far from the maximum an end is looked for, and no less far than to 0 and as much beyond. An end
        that is not found there is infinite.

    Notes
    -----
    Twice the fall of the profile log likelihood is a chi-square with one degree of freedom in the limit
    (Wilks), so the values at which it is at most that quantile are an interval. It follows the likelihood
    where that is no parabola, and does not depend on how the parameter is written.
    """
    lower = profile_bound(problem, best, direction, level, -reach)
    return lower, profile_bound(problem, best, direction, level, reach)


def profile_bound(problem: Objective, best: Maximum, direction: Array, level: float, reach: float) -> float:
    """Return one of the ends of `profile_bounds`; the sign of the reach is its side.

    Parameters
    ----------
    problem, best, direction, level, reach
        As there.
    """
    middle, side = float(direction @ best.coefficients), math.copysign(1.0, reach)
    target = float(ndtri((1 + level) / 2))
    path = {0.0: best.coefficients}
    known = {0.0: -target}

    def excess(distance: float) -> float:
        """Return the signed root of the fall of the profile, less its limit: nearly a straight line."""
        if distance not in known:
            start = extrapolated(path, distance)
            found = constrained_maximum(problem, direction, middle + side * distance, start)
            path[distance] = found.coefficients
            known[distance] = math.sqrt(2 * max(0.0, best.height - found.height)) - target
        return known[distance]

    near, far = 0.0, min(target * standard_error(best.information, direction), abs(reach) / _STEPS)
    first, limit = far, abs(reach) + abs(middle)
    while excess(far) < 0:
        if far >= limit:
            return math.copysign(math.inf, reach)
        near, far = far, min(2 * far, far + max(abs(reach), far) / _STEPS, limit)
    return middle + side * float(brentq(excess, near, far, xtol=max(1e-300, _NEAR * first), rtol=1e-9))


def extrapolated(path: dict[float, Array], distance: float) -> Array:
    """Return a guess at the coefficients there: on the line through the two nearest that are known.

    Parameters
    ----------
    path : dict
        Coefficients by their distance.
    distance : float
    """
    nearest = sorted(path, key=lambda known: abs(known - distance))[:2]
    first = path[nearest[0]]
    if len(nearest) < 2:
        return first
    slope = (first - path[nearest[1]]) / (nearest[0] - nearest[1])
    return first + slope * (distance - nearest[0])


def constrained_maximum(problem: Objective, direction: Array, value: float, start: Array) -> Maximum:
    """Return the maximum where a combination of the coefficients has a value.

    Parameters
    ----------
    problem : Objective
    direction : array
        The weights of the combination.
    value : float
    start : array
        Coefficients to begin the search from; they are moved to the value first.
    """
    free = np.linalg.qr(direction[:, None], mode="complete")[0][:, 1:]
    shift = direction * ((value - float(direction @ start)) / float(direction @ direction))
    return maximize(problem, start + shift, free)


def standard_error(information: Array, direction: Array) -> float:
    """Return the standard deviation of the combination by the information; 1 where it has none.

    Parameters
    ----------
    information : array
    direction : array
        The weights of the combination.
    """
    try:
        variance = float(direction @ np.linalg.solve(information, direction))
    except np.linalg.LinAlgError:
        return 1.0
    return math.sqrt(variance) if 0 < variance < 1e4 else 1.0
