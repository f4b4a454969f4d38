r"""Score tests of a combination of the coefficients, and the values that they do not reject.

Where hardly anybody has the trait the likelihood is nearly flat and far from any parabola, and the maximum is
often infinite. The score's distribution is still nearly normal there: it is a sum over all respondents, of
which each one's answer is random whatever is true of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.special import ndtri

from sfumato.local.surveys.regression.fitting import best_maximum, starts
from sfumato.local.surveys.regression.likelihood import Array, Maximum, Problem
from sfumato.local.surveys.regression.profile_likelihood import (
    constrained_maximum,
    extrapolated,
    standard_error,
)

__all__ = ["penalized_maximum", "score_bounds", "score_statistic"]

_NEAR: Final = 1e-6
_STEPS: Final = 10


def score_statistic(problem: Problem, direction: Array, value: float, start: Array) -> tuple[float, Array]:
    r"""Return the standardized score of a combination of the coefficients at a value, and where it is taken.

    Parameters
    ----------
    problem : Problem
    direction : array
        The weights of the combination.
    value : float
    start : array
        Coefficients to begin the search from.

    Returns
    -------
    float
        Positive where the answers speak for more than the value; standard normal in the limit if it is true.
    array
        The coefficients at which it is taken.

    Notes
    -----
    With :math:`d` the direction, :math:`U` the gradient of the log likelihood and :math:`I` the expected
    information, it is :math:`d^T I^{-1} U / \sqrt{d^T I^{-1} d}`: the score of :math:`d^T\beta`, less its
    regression on the scores of all other coefficients. That residual has variance 1 at the true coefficients,
    and to first order it does not move with an error of the others, so that any estimate of these that is
    consistent at the usual rate may stand for them (Neyman 1959). Here it is the maximum, under
    :math:`d^T\beta` = `value`, of the likelihood with Jeffreys' prior, which is finite whatever was answered.
    """
    at = constrained_maximum(replace(problem, reduced=True), direction, value, start).coefficients
    gradient = replace(problem, reduced=False).derivatives(at)[0]
    try:
        factor = cho_factor(problem.expected_information(at))
    except LinAlgError:
        return 0.0, at
    solved = cho_solve(factor, direction)
    variance = float(direction @ solved)
    return (float(solved @ gradient) / math.sqrt(variance) if variance > 0 else 0.0), at


def penalized_maximum(problem: Problem, best: Maximum) -> Array:
    """Return the coefficients of the maximum with Jeffreys' prior.

    Parameters
    ----------
    problem : Problem
    best : Maximum
        That of the problem.
    """
    if problem.reduced:
        return best.coefficients
    penalized = replace(problem, reduced=True)
    return best_maximum(penalized, starts(penalized)).coefficients


def score_bounds(
    problem: Problem, middle: Array, direction: Array, level: float, *, reach: float
) -> tuple[float, float]:
    """Return the ends of the values around a maximum that the two-sided score test does not reject.

    Values beyond a gap, which the test mostly accepts too, are left out.

    Parameters
    ----------
    problem : Problem
    middle : array
        The coefficients of the maximum with Jeffreys' prior, around which the interval is.
    direction : array
        The weights of the combination.
    level : float
        Wanted coverage.
    reach : float
        How far an end is looked for. An end that is not found there is infinite.
    """
    target = float(ndtri((1 + level) / 2))
    return _end(problem, middle, direction, target, -reach), _end(problem, middle, direction, target, reach)


def _end(problem: Problem, at: Array, direction: Array, target: float, reach: float) -> float:
    """Return one end; the sign of the reach is its side."""
    middle, side = float(direction @ at), math.copysign(1.0, reach)
    path = {0.0: at}
    known: dict[float, float] = {0.0: -target}

    def excess(distance: float) -> float:
        """Return how far beyond the quantile the statistic is."""
        if distance not in known:
            value, start = middle + side * distance, extrapolated(path, distance)
            statistic, path[distance] = score_statistic(problem, direction, value, start)
            known[distance] = -side * statistic - target
        return known[distance]

    scale = standard_error(problem.expected_information(at), direction)
    near, far = 0.0, min(target * scale, abs(reach) / _STEPS)
    limit = abs(reach) + abs(middle)
    while excess(far) < 0:
        if far >= limit:
            return math.copysign(math.inf, reach)
        near, far = far, min(2 * far, far + max(abs(reach), far) / _STEPS, limit)
    return middle + side * float(brentq(excess, near, far, xtol=max(1e-300, _NEAR * far), rtol=1e-9))
