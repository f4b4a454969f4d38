"""What counts prove: bounds on a probability, and on the epsilon and the mu that two probabilities force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtri

from sfumato.numerics.rounding import div_down, down, log_down, sub_down

__all__ = [
    "certified_epsilon",
    "certified_mu",
    "forced_epsilon",
    "forced_mu",
    "least_probability",
    "most_probability",
]

# scipy's inverses are good to about 1e-7 of the tail's probability, far less of its argument (the tests
# compare with exact sums); the bounds give away a millionth.
_ALLOWANCE = 1e-6


def least_probability(hits: Any, trials: int, risk: float) -> NDArray[np.float64]:
    """Return Clopper and Pearson's lower bound on a probability, above it with a chance of at most ``risk``.

    Parameters
    ----------
    hits : int or array of ints
        How often the event was seen.
    trials : int
        In how many independent runs.
    risk : float
        Strictly between 0 and 1.

    Returns
    -------
    array
        Of the shape of ``hits``; 0 where nothing was seen.

    References
    ----------
    Clopper, Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the
    binomial".

    Examples
    --------
    >>> round(float(least_probability(50, 100, 0.025)), 3), float(least_probability(0, 100, 0.025))
    (0.398, 0.0)
    """
    seen = np.asarray(hits, dtype=np.float64)
    bound = betaincinv(np.maximum(seen, 1.0), trials - np.maximum(seen, 1.0) + 1, risk)
    return np.asarray(np.where(seen > 0, bound * (1 - _ALLOWANCE), 0.0), dtype=np.float64)


def most_probability(hits: Any, trials: int, risk: float) -> NDArray[np.float64]:
    """Return Clopper and Pearson's upper bound on a probability, below it with a chance of at most ``risk``.

    Parameters
    ----------
    hits, trials, risk
        As in `least_probability`.

    Returns
    -------
    array
        Of the shape of ``hits``; 1 where every run was a hit.

    Examples
    --------
    >>> round(float(most_probability(50, 100, 0.025)), 3), float(most_probability(100, 100, 0.025))
    (0.602, 1.0)
    """
    seen = np.asarray(hits, dtype=np.float64)
    missed = np.maximum(trials - seen, 1.0)
    bound = betainccinv(trials - missed + 1, missed, risk)
    return np.asarray(
        np.where(seen < trials, np.minimum(bound * (1 + _ALLOWANCE), 1.0), 1.0), dtype=np.float64
    )


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
