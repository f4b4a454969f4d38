"""The divergence of a mechanism whose likeliest outcome is known, and the chances of noise that it takes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["PROBABILITY_SLACK", "divergence", "log_probabilities", "log_tails"]

_Array = NDArray[np.float64]

PROBABILITY_SLACK: Final = 1e-10
"""By how much the logs of `log_probabilities` are wrong at most."""

_LOG_SLACK: Final = 1e-6
_SMALLEST: Final = 1e-280
_CELL: Final = 1e-3
_FAR: Final = 40.0


def divergence(lacks: _Array, rho: float, order: float) -> _Array:
    r"""Return a bound on the Rényi divergence of a mechanism's outcome from that on any neighbor.

    Parameters
    ----------
    lacks : float64 array
        For each dataset a number L: its likeliest outcome is missed with a chance of at most :math:`e^{-L}`.
    rho : float
        The mechanism is ``rho``-zCDP.
    order : float
        Of the divergence, above 1.

    Returns
    -------
    float64 array
        For each L; at most ``order * rho``.

    Notes
    -----
    Guarantee: let q be the chance of a miss on the dataset D, :math:`\Lambda = -\log q > \rho`, and D' a
    neighbor. Then :math:`e^{(\lambda-1)D_\lambda}` is at most

    .. math:: f(\Lambda) = (1 - q)^\lambda \left(1 - e^{-(\sqrt\Lambda - \sqrt\rho)^2}\right)^{1-\lambda}
        + \exp\left(-\Lambda + \frac{(\lambda - 1)\Lambda}{u} + (\lambda-1)\rho(u+1)\right)

    for every :math:`u \ge \lambda - 1`; the best is :math:`u = \sqrt{\Lambda/\rho}`. Returned is the
    largest f at L and above, as q is known by an upper bound only.

    *Proof* (after Papernot et al. 2018, Theorem 6 and Proposition 10). Let P, P' be the two distributions,
    and q' the chance of that miss on D'. The divergence of order :math:`\mu` from P' to P bounds :math:`q'
    \le (q e^{\mu\rho})^{(\mu-1)/\mu}`, at the best :math:`\mu = \sqrt{\Lambda/\rho} \ge 1` as in the first
    term. So the likeliest outcome contributes :math:`P (P/P')^{\lambda-1} \le (1-q)^\lambda (1 -
    q')^{1-\lambda}`. The others contribute :math:`q\,E[(P/P')^{\lambda-1}]` given a miss, at most :math:`q
    (e^{u(u+1)\rho}/q)^{(\lambda-1)/u}` by Jensen's inequality and the divergence of order :math:`u + 1`.

    *The largest f.* The second term does not rise with :math:`\Lambda`. Nor does the first one beyond
    :math:`L^*` with :math:`r(L^*) \ge \lambda/(\lambda - 1)`, :math:`r(\Lambda) = e^{2\sqrt{\Lambda\rho} -
    \rho} (1 - \sqrt{\rho/\Lambda})`: the bound on q' has the slope r as a function of q, which rises with
    :math:`\Lambda`, and :math:`(1-q)/(1-q') \ge 1`, so the logarithm of the first term has a slope in q of at
    least :math:`((\lambda-1) r - \lambda)/(1-q) \ge 0`. Below :math:`L^*` f is bounded cell by cell, with the
    first factor at the cell's upper end and the others at its lower one; where :math:`L^*` is beyond 40, the
    first factor is held from there on.

    References
    ----------
    Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson, "Scalable private learning with PATE" (ICLR
    2018), Theorem 6, Proposition 10.

    Examples
    --------
    >>> divergence(np.array([0.0, 5.0, 15.0]), 1 / 1600, 20.0).round(5).tolist()
    [0.0125, 0.00334, 0.0]
    """
    ends, largest = _cells(rho, order)
    held = max(_turn(rho, order), float(ends[-1]))
    beyond = np.maximum(lacks, ends[-1])
    logs = _bound(beyond, np.maximum(beyond, held), rho, order)
    below = np.flatnonzero(lacks.ravel() < ends[-1])
    if below.size:
        near = np.maximum(lacks.ravel()[below], rho)
        upper = np.searchsorted(ends, near, side="right")
        found = np.maximum(_bound(near, ends[upper], rho, order), largest[upper])
        logs.ravel()[below] = np.maximum(found, logs.ravel()[below])
    return np.asarray(np.minimum(logs / (order - 1), order * rho))


@lru_cache(maxsize=8)
def _cells(rho: float, order: float) -> tuple[_Array, _Array]:
    """Return the ends of the cells, and for each a bound on the log of f from there to the last one."""
    last = max(min(_turn(rho, order), _FAR), 2 * rho)
    ends = np.linspace(rho, last, math.ceil((last - rho) / _CELL) + 1)
    largest = np.full(len(ends), -math.inf)
    inside = _bound(ends[:-1], ends[1:], rho, order)
    largest[:-1] = np.maximum.accumulate(inside[::-1])[::-1]
    return ends, largest


def _bound(lower: _Array, upper: _Array, rho: float, order: float) -> _Array:
    """Return a bound on the log of f from ``lower`` to ``upper``, each at least rho."""
    slope = order - 1
    root = np.maximum(np.sqrt(lower) - math.sqrt(rho), 0.0)
    with np.errstate(divide="ignore"):
        hit = order * np.log1p(-np.exp(-upper)) - slope * _log_rest(root**2)
    u = np.maximum(np.sqrt(lower / rho), slope)
    return np.asarray(np.logaddexp(hit, -lower + slope * lower / u + slope * rho * (u + 1)))


def _log_rest(lacks: _Array) -> _Array:
    """Return ``log(1 - exp(-L))`` for each L from 0 on, to its own last digits wherever it is near 0."""
    return np.asarray(
        np.where(lacks < math.log(2), np.log(-np.expm1(-lacks)), np.log1p(-np.exp(-np.maximum(lacks, 0.5))))
    )


@lru_cache(maxsize=64)
def _turn(rho: float, order: float) -> float:
    """Return an L from which on the first term rises with q; see `divergence`."""
    wanted = math.log(order / (order - 1)) + 1e-12
    low, high = rho, rho + 1.0

    def slope(lack: float) -> float:
        share = math.sqrt(rho / lack)
        return 2 * math.sqrt(lack * rho) - rho + (math.log1p(-share) if share < 1 else -math.inf)

    while slope(high) < wanted:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) >= wanted else (middle, high)
    return high


def log_tails(variance: float, maximum: int) -> _Array:
    """Return bounds on the log of ``P(Z >= k)`` for k from 0 to ``maximum``, Z a discrete Gaussian.

    It also bounds the difference of two whose variances add up to ``variance``: see the notes of `Consensus`,
    where the sum over j is below the one for the sum of variances.
    """
    last = maximum + 1 + math.ceil(8 * math.sqrt(variance))
    k = np.arange(last + 1)
    wave = math.exp(-(math.pi**2) * variance / 2)
    height = (
        math.log1p(2 * wave / (1 - wave) if wave < 0.5 else 2 / (1 - wave))
        - math.log(2 * math.pi * variance) / 2
    )
    beyond = math.log(variance / last) - last**2 / (2 * variance)
    masses = np.append(-(k**2) / (2 * variance), beyond)
    sums = np.logaddexp.accumulate(masses[::-1])[::-1]
    return np.asarray(np.minimum(sums[: maximum + 1] + height + _LOG_SLACK, 0.0))


def log_probabilities(variance: float, distance: NDArray[np.int64]) -> tuple[_Array, _Array]:
    """Return the logs of ``P(Z >= k)`` and of ``P(Z < k)`` for each k, Z a discrete Gaussian.

    They are right to `PROBABILITY_SLACK`, or NaN where one of them is too small for a float: the sums are of
    some ten thousand positive terms at most, each with an error of some hundred units in its last place.
    """
    reach = int(np.abs(distance).max()) + math.ceil(40 * math.sqrt(variance)) + 1
    masses = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * variance))
    tails = np.cumsum(masses)[::-1] / masses.sum()  # by symmetry, those of k = -reach and up
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(tails > _SMALLEST, np.log(tails), np.nan)
    return logs[distance + reach], logs[reach + 1 - distance]
