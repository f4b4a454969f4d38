"""Lower bounds on epsilon and mu from bounds on two probabilities, and from runs of two inputs in pairs.

Bounds on the two probabilities of an event, taken apart, must each allow for all of its own error. Where runs
of the two inputs are paired, those pairs of which just one run is in the event tell the ratio with one error,
which proves more about rare events.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from sfumato.numerics.rounding import div_down, div_up, down, log_down, mul_down, mul_up, sub_down, sub_up

__all__ = [
    "certified_epsilon",
    "certified_mu",
    "certified_paired_epsilon",
    "forced_epsilon",
    "forced_mu",
    "forced_paired_epsilon",
]

_EACH = 0.1  # of the risk, for each bound that is of little weight; the rest is for the odds


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


def certified_paired_epsilon(
    likely: int, rare: int, both: int, *, trials: int, delta: float, risk: float
) -> float:
    """Return a lower bound on epsilon from pairs of runs, one of each input; 0 where nothing is forced.

    Parameters
    ----------
    likely, rare : int
        How often the event was seen on either input.
    both : int
        In how many pairs it was seen on both.
    trials : int
        How many pairs were run.
    delta, risk : float

    Notes
    -----
    Guarantee: above the least epsilon that the event's probabilities p and q allow, with a chance of at most
    ``risk``, if all runs are independent. *Proof.* Of the pairs with just one run in the event, each has it
    in the likely input's with probability ``w / (1 + w)`` for the odds ratio ``w = p (1 - q) / (q (1 - p))``,
    independently given their number; Clopper and Pearson bound that. Then ``(p - delta) / q`` is
    ``w (1 - p) / (1 - q) (1 - delta / p)``, with bounds of their own for p and q, by a union bound.

    Examples
    --------
    >>> bounds = {"trials": 50_000, "delta": 0.0, "risk": 1e-4}
    >>> round(certified_paired_epsilon(500, 200, 2, **bounds), 3)
    0.599
    """
    counts = np.array([likely, rare, both], np.float64)
    share, most, least, floor = map(float, _paired_bounds(counts, trials, delta, risk))
    top = mul_down(share, sub_down(1.0, most))
    bottom = mul_up(sub_up(1.0, share), sub_up(1.0, least))
    if delta:
        top = mul_down(top, sub_down(1.0, div_up(delta, floor))) if floor > delta else 0.0
    return max(0.0, log_down(div_down(top, bottom))) if top > 0 and bottom > 0 else 0.0


def forced_paired_epsilon(
    likely: NDArray[np.float64],
    rare: NDArray[np.float64],
    both: NDArray[np.float64],
    *,
    trials: int,
    delta: float,
    risk: float,
) -> NDArray[np.float64]:
    """Return `certified_paired_epsilon` of many counts, not rounded down; -inf where nothing is forced."""
    share, most, least, floor = _paired_bounds(np.array([likely, rare, both]), trials, delta, risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(share) - np.log1p(-share) + np.log1p(-most) - np.log1p(-least)
        forced = odds + np.log(np.maximum(1 - delta / floor, 0.0)) if delta else odds
    return np.asarray(np.nan_to_num(forced, nan=-np.inf), dtype=np.float64)


def _paired_bounds(
    counts: NDArray[np.float64], trials: int, delta: float, risk: float
) -> tuple[NDArray[np.float64], ...]:
    """Return bounds that hold together: w / (1 + w) from below, p from above, q and p from below."""
    likely, rare, both = counts
    each = _EACH * risk
    share = lower_confidence_bound(likely - both, likely + rare - 2 * both, risk - (3 if delta else 2) * each)
    most = upper_confidence_bound(likely, trials, each)
    least = lower_confidence_bound(rare, trials, each)
    return share, most, least, lower_confidence_bound(likely, trials, each) if delta else most
