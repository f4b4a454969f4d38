"""The interval of a mean of values in [0, 1] by Chernoff's bound, for failures as rare as one likes."""

from __future__ import annotations

import math

from sfumato.adaptive.generalization.generalization_bound import rounded_up

__all__ = ["mean_interval", "mean_p_value"]


def mean_interval(mean: float, rows: int, log_failure: float) -> tuple[float, float]:
    r"""Return an interval for the population's mean.

    Parameters
    ----------
    mean : float
        Of independent values in [0, 1].
    rows : int
        How many.
    log_failure : float
        The log of the probability with which the interval may miss.

    Returns
    -------
    tuple of two floats
        Rounded outward: all m with :math:`n \, \mathrm{KL}(\text{mean} \| m) \le \ln 2 -
        \text{log\_failure}`, half of the failure on each side (Hoeffding 1963, theorem 1: of all values in
        [0, 1] with mean m those that are 0 or 1 have the heaviest tails).

    Examples
    --------
    >>> low, high = mean_interval(0.5, 10_000, -3.0)
    >>> round(low, 3), round(high, 3)
    (0.486, 0.514)
    """
    allowed = rounded_up((math.log(2) - log_failure) / rows)
    return 1 - _upper(1 - mean, allowed), _upper(mean, allowed)


def mean_p_value(mean: float, claim: float, rows: int) -> float:
    """Return a p-value against a population's mean above a claim, rounded up (Chernoff's bound).

    Parameters
    ----------
    mean : float
        Of independent values in [0, 1].
    claim : float
        What the population's mean is at most where the hypothesis is false.
    rows : int
        How many.

    Returns
    -------
    float

    Examples
    --------
    >>> mean_p_value(0.5, 0.5, 100), round(mean_p_value(0.6, 0.5, 100), 3)
    (1.0, 0.134)
    """
    if mean <= claim:
        return 1.0
    # Floats move a divergence by less than 1e-15, which many rows make much of.
    least = max(0.0, _divergence(mean, claim) * (1 - 1e-9) - 1e-15)
    return min(1.0, math.exp(-rows * least) * (1 + 1e-12))


def _upper(mean: float, allowed: float) -> float:
    """Return a number above all m >= mean whose divergence is allowed, by bisection."""
    low, high = mean, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _divergence(mean, middle) > allowed:
            high = middle
        else:
            low = middle
    return min(1.0, high + 1e-12)


def _divergence(mean: float, other: float) -> float:
    """Return the relative entropy of coins; infinite where the other is sure of what is not."""
    first = mean * math.log(mean / other) if mean > 0 else 0.0
    if mean >= 1:
        return first
    return math.inf if other >= 1 else first + (1 - mean) * math.log((1 - mean) / (1 - other))
