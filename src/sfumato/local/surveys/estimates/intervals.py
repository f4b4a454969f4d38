"""Intervals for the share of an answer, from its count."""

from __future__ import annotations

import math
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato import _check
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from sfumato.numerics.interval import Interval

__all__ = ["Method", "difference_bounds", "normal_quantile", "share_bounds"]

Method: TypeAlias = Literal["clopper-pearson", "wilson", "wald"]
"""How an interval is found; see `share_bounds`."""

_METHODS: Final = get_args(Method)
_Array: TypeAlias = NDArray[np.float64]


def share_bounds(hits: Any, trials: int, level: float, method: Method) -> tuple[_Array, _Array]:
    r"""Return bounds on a probability, from how often the event was seen.

    Parameters
    ----------
    hits : int or array of ints
    trials : int
        At least 1.
    level : float
        Wanted coverage, strictly between 0 and 1.
    method : {"clopper-pearson", "wilson", "wald"}
        The first covers with at least the level, whatever the probability and the number of trials. The
        second inverts the normal approximation of the count's distribution at each probability, and has the
        level on the average over probabilities. The third puts the normal approximation around the estimate;
        it is too narrow where few or nearly all are hits.

    References
    ----------
    Clopper, Pearson (1934); Wilson (1927), "Probable inference"; Brown, Cai, DasGupta (2001), "Interval
    estimation for a binomial proportion", a comparison.
    """
    risk = (1 - _check.unit_interval("level", level)) / 2
    if method not in _METHODS:
        _check.refuse("method", f"be one of {', '.join(map(repr, _METHODS))}", method, "leave it out")
    if method == "clopper-pearson":
        return lower_confidence_bound(hits, trials, risk), upper_confidence_bound(hits, trials, risk)
    rate, z = np.asarray(hits, dtype=np.float64) / trials, normal_quantile(1 - risk)
    if method == "wald":
        half = z * np.sqrt(rate * (1 - rate) / trials)
        return np.asarray(rate - half), np.asarray(rate + half)
    middle = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * np.sqrt(rate * (1 - rate) / trials + (z / (2 * trials)) ** 2) / (1 + z * z / trials)
    return np.asarray(middle - half), np.asarray(middle + half)


def difference_bounds(first: Any, one: Interval[Any], second: Any, two: Interval[Any]) -> Interval[Any]:
    """Return an interval for the difference of two independent parameters, from one of each.

    Parameters
    ----------
    first, second : float or array
        The estimates.
    one, two : Interval
        Theirs, with the level that is wanted of the difference.

    References
    ----------
    Newcombe (1998), "Interval estimation for the difference between independent proportions", method 10;
    Zou, Donner (2008), "Construction of confidence limits about effect measures".
    """
    below = np.hypot(first - one.lower, two.upper - second)
    above = np.hypot(one.upper - first, second - two.lower)
    return Interval(first - second - below, first - second + above)


def normal_quantile(share: float) -> float:
    """Return the standard normal's quantile."""
    return float(ndtri(share)) if 0 < share < 1 else math.copysign(math.inf, share - 0.5)
