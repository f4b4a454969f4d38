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
from scipy.special import chdtri, ndtri

from sfumato.local.surveys.regression.fitting import best_maximum, starts
from sfumato.local.surveys.regression.likelihood import Array, Maximum, Problem
from sfumato.local.surveys.regression.profile_likelihood import (
    constrained_maximum,
    extrapolated,
    standard_error,
)

__all__ = ["penalized_maximum", "score_bounds", "score_statistic"]

_NEAR: Final = 1e-6
_STEPS: Final = 16
_GROWTH: Final = 1.6
_GUARD: Final = 50
"""Into how many parts the risk of an interval is split, of which the likelihood's guard takes one."""


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
    problem: Problem, best: Maximum, middle: Array, direction: Array, level: float, *, reach: float
) -> tuple[float, float]:
    r"""Return the smallest interval of the values that the two-sided score test does not reject.

    Parameters
    ----------
    problem : Problem
    best : Maximum
        Its maximum.
    middle : array
        The coefficients of the maximum with Jeffreys' prior, which the interval holds.
    direction : array
        The weights of the combination.
    level : float
        Wanted coverage.
    reach : float
        How far an end is looked for. An end that is not found there is infinite.

    Notes
    -----
    The accepted values may have gaps; the interval spans them, so that it covers no less than the test
    accepts. At values that the answers rule out the score says little, because hardly any respondent's chance
    is still between 0 and 1. So the search to each side ends where twice the log likelihood is below its
    maximum by more than the quantile of a chi-square at 1/50 of the interval's risk, with a degree of freedom
    for each coefficient, which it seldom is at the true ones.
    """
    unpenalized, target = replace(problem, reduced=False), float(ndtri((1 + level) / 2))
    top = max(unpenalized.height(best.coefficients), unpenalized.height(middle))
    lowest = top - float(chdtri(len(direction), (1 - level) / _GUARD)) / 2
    lower, upper = (
        _end(unpenalized, middle, direction, target, side * reach, lowest=lowest) for side in (-1.0, 1.0)
    )
    return lower, upper


def _end(
    problem: Problem, at: Array, direction: Array, target: float, reach: float, *, lowest: float
) -> float:
    """Return one end; the sign of the reach is its side."""
    middle, side = float(direction @ at), math.copysign(1.0, reach)
    path = {0.0: at}
    known: dict[float, float] = {0.0: -target}

    def excess(distance: float) -> float:
        """Return how far beyond the quantile the statistic is."""
        if distance not in known:
            value, start = middle + side * distance, extrapolated(path, distance)
            statistic, path[distance] = score_statistic(problem, direction, value, start)
            known[distance] = abs(statistic) - target
        return known[distance]

    def ruled_out(distance: float) -> bool:
        """Return whether the likelihood is that low, whatever the other coefficients are."""
        if problem.height(path[distance]) >= lowest:
            return False
        value = middle + side * distance
        return constrained_maximum(problem, direction, value, path[distance]).height < lowest

    step = min(target * standard_error(problem.expected_information(at), direction), abs(reach) / _STEPS)
    if step == 0:
        return middle
    limit = abs(reach) + abs(middle)
    far, inside, outside = step, 0.0, math.inf
    while True:
        if excess(far) < 0:
            inside, outside = far, math.inf
        else:
            outside = min(outside, far)
        if far >= limit or (excess(far) >= 0 and ruled_out(far)):
            break
        far = min(_GROWTH * far, far + max(abs(reach), far) / _STEPS, limit)
    if math.isinf(outside):
        return math.copysign(math.inf, reach)
    return middle + side * float(brentq(excess, inside, outside, xtol=max(1e-300, _NEAR * step), rtol=1e-9))
