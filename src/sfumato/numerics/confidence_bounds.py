"""Clopper-Pearson confidence bounds on a probability from a count of successes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv

__all__ = ["lower_confidence_bound", "upper_confidence_bound"]

# scipy's inverses are good to about 1e-7 of the tail's probability, far less of its argument (the tests
# compare with exact sums); the bounds give away a millionth.
_ALLOWANCE = 1e-6


def lower_confidence_bound(hits: Any, trials: Any, risk: float) -> NDArray[np.float64]:
    """Return Clopper and Pearson's lower bound on a probability, above it with a chance of at most ``risk``.

    Parameters
    ----------
    hits : int or array of ints
        How often the event was seen.
    trials : int or array of ints
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
    >>> round(float(lower_confidence_bound(50, 100, 0.025)), 3), float(lower_confidence_bound(0, 100, 0.025))
    (0.398, 0.0)
    """
    seen = np.asarray(hits, dtype=np.float64)
    hit = np.maximum(seen, 1.0)
    bound = np.asarray(betaincinv(hit, trials - hit + 1, risk), dtype=np.float64)
    # Of a probability near 1, what it lacks is known better.
    lack = np.asarray(betainccinv(trials - hit + 1, hit, risk), dtype=np.float64)
    best = np.maximum(bound * (1 - _ALLOWANCE), _below(1 - lack * (1 + _ALLOWANCE)))
    return np.asarray(np.where(seen > 0, best, 0.0), dtype=np.float64)


def upper_confidence_bound(hits: Any, trials: Any, risk: float) -> NDArray[np.float64]:
    """Return Clopper and Pearson's upper bound on a probability, below it with a chance of at most ``risk``.

    Parameters
    ----------
    hits, trials, risk
        As in `lower_confidence_bound`.

    Returns
    -------
    array
        Of the shape of ``hits``; 1 where every run was a hit.

    Examples
    --------
    >>> round(float(upper_confidence_bound(50, 100, 0.025)), 3)
    0.602
    >>> float(upper_confidence_bound(100, 100, 0.025))
    1.0
    """
    rest = lower_confidence_bound(trials - np.asarray(hits), trials, risk)
    seen = np.asarray(hits, dtype=np.float64)
    hit, missed = seen + 1, np.maximum(trials - seen, 1.0)
    bound = np.where(seen < trials, betainccinv(hit, missed, risk) * (1 + _ALLOWANCE), 1.0)
    return np.asarray(np.minimum(bound, 1 - _below(rest)), dtype=np.float64)


def _below(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers less by more than the rounding of a difference from 1."""
    return np.asarray(x - 2.0**-52, dtype=np.float64)
