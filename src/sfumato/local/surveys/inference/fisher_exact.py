"""Fisher's exact test that two binomial probabilities are equal, and its exact power."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

__all__ = ["exact_p_value", "exact_power", "feasible"]

_Array: TypeAlias = NDArray[np.float64]
_MAX: Final = 2000
_ROUNDING: Final = 1e-9


def feasible(count: int) -> bool:
    """Return whether the exact power for two groups of this size is a matter of seconds."""
    return count <= _MAX


def exact_p_value(hits: tuple[int, int], trials: tuple[int, int]) -> float:
    """Return twice the smaller tail of the hypergeometric distribution of the first group's hits, 1 at most.

    Parameters
    ----------
    hits, trials : tuple of two ints

    Notes
    -----
    Under the null hypothesis, given all hits together, those of the first group are hypergeometric whatever
    the common probability is; so the p-value is below any level with at most that chance.

    References
    ----------
    Fisher (1935), "The logic of inductive inference".
    """
    distribution, start = _distribution(trials, sum(hits))
    index = hits[0] - start
    tails = float(distribution[: index + 1].sum()), float(distribution[index:].sum())
    return min(1.0, 2 * min(tails) * (1 + _ROUNDING))


def exact_power(count: int, first: float, second: float, risk: float) -> float:
    """Return the chance that the p-value of two groups of one size is at most the risk.

    Parameters
    ----------
    count : int
        The size of each group.
    first, second : float
        The true probabilities.
    risk : float
    """
    one, two = _binomial(count, first), _binomial(count, second)
    power = 0.0
    for total in range(2 * count + 1):
        distribution, start = _distribution((count, count), total)
        # The first group's hits at which the smaller tail is below half of the risk.
        low = int(np.searchsorted(np.cumsum(distribution), risk / 2 / (1 + _ROUNDING), side="right"))
        high = int(np.searchsorted(np.cumsum(distribution[::-1]), risk / 2 / (1 + _ROUNDING), side="right"))
        hits = np.arange(start, start + len(distribution))
        joint = one[hits] * two[total - hits]
        power += float(joint[:low].sum() + joint[len(distribution) - high :].sum())
    return min(1.0, power)


def _distribution(trials: tuple[int, int], total: int) -> tuple[_Array, int]:
    """Return the distribution of the first group's hits among all, and the minimum of them."""
    start, stop = max(0, total - trials[1]), min(trials[0], total)
    hits = np.arange(start, stop + 1, dtype=np.float64)
    logs = _log_choose(trials[0], hits) + _log_choose(trials[1], total - hits)
    distribution = np.exp(logs - logs.max())
    return distribution / distribution.sum(), start


def _binomial(count: int, rate: float) -> _Array:
    hits = np.arange(count + 1, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = _log_choose(count, hits)
        logs += np.where(hits > 0, hits * np.log(rate), 0.0)
        logs += np.where(hits < count, (count - hits) * np.log1p(-rate), 0.0)
    return np.asarray(np.exp(logs))


def _log_choose(count: int, hits: _Array) -> _Array:
    return np.asarray(gammaln(count + 1.0) - gammaln(hits + 1) - gammaln(count - hits + 1))
