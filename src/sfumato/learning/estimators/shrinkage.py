"""Means and variances of groups from noisy sums: empirical Bayes with noise of known size.

Nothing here reads data: sums that were released go in, with the standard deviation of their noise, so that
all of it is free of charge (post-processing).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from sfumato.learning.estimators.moments import MeanAndVariance, MomentSums

__all__ = ["positive_mean", "shrunk_moments"]

_Array = NDArray[np.float64]

_BETWEEN_COLUMNS: Final = 1.0
_BETWEEN_GROUPS: Final = 0.5
"""How far variances differ, relative to their prior mean: between columns, and between the groups of one."""
_FLOOR: Final = 1e-12


def shrunk_moments(sums: MomentSums) -> MeanAndVariance:
    r"""Return number, mean and variance by group, each the mean of its posterior under normal noise.

    Parameters
    ----------
    sums : MomentSums

    Returns
    -------
    MeanAndVariance
        The variance is predictive: with what is uncertain of the mean.

    Notes
    -----
    Let :math:`\hat m_{gc} = m_{gc} + N(0, e_{gc}^2)` be a group's noisy mean of a column, with the noise of
    sum and count in :math:`e`. Its prior is :math:`N(M_c, \tau_c^2)`, around the column's mean over all
    groups; :math:`\tau_c^2` is how far the noisy means lie apart beyond what their noise explains. A variance
    has as prior that of its column, with a standard deviation of half of it, and the column's has that of all
    columns, with a standard deviation of the whole. Where a quantity is positive its posterior is cut at 0
    (`positive_mean`).

    References
    ----------
    Efron, Morris, "Data analysis using Stein's estimator and its generalizations" (JASA 1975).
    """
    rows = np.maximum(1.0, positive_mean(sums.rows, sums.rows_deviation))
    number, whole = rows[:, None], float(rows.sum())
    mean, mean_error = _mean(sums, number)
    center = np.clip(sums.first.sum(axis=0) / whole, -1.0, 1.0)
    between = _between(mean, mean_error, center, number)
    mean, mean_error = _posterior(center, np.sqrt(between), mean, mean_error)
    mean = np.clip(mean, -1.0, 1.0)
    variance = _variance(sums, number, mean, mean_error)
    return MeanAndVariance(rows, mean, np.clip(variance, 0.0, 1.0) + mean_error**2)


def positive_mean(mean: Any, deviation: Any) -> _Array:
    """Return the mean of a normal variable, given that it is positive.

    Parameters
    ----------
    mean, deviation : array of float
        Of the variable.

    Returns
    -------
    array of float64

    Examples
    --------
    >>> round(float(positive_mean(0.0, 1.0)), 6), round(float(positive_mean(-1e6, 1.0)), 12)
    (0.797885, 1e-06)
    """
    deviation = np.maximum(deviation, _FLOOR)
    ratio = np.asarray(mean, np.float64) / deviation
    with np.errstate(over="ignore"):
        hazard = math.sqrt(2 / math.pi) / erfcx(-ratio / math.sqrt(2))
    inverse = -1 / np.minimum(ratio, -20.0)
    excess = np.where(ratio < -20.0, inverse * (1 - 2 * inverse**2), ratio + hazard)
    return np.asarray(deviation * excess)


def _posterior(prior: Any, prior_deviation: Any, found: Any, deviation: Any) -> tuple[_Array, _Array]:
    """Return mean and standard deviation of a normal posterior."""
    own, noise = np.maximum(prior_deviation, _FLOOR), np.maximum(deviation, _FLOOR)
    total = np.hypot(own, noise)
    return np.asarray(prior + (own / total) ** 2 * (found - prior)), np.asarray(own / total * noise)


def _mean(sums: MomentSums, number: _Array) -> tuple[_Array, _Array]:
    mean = sums.first / number
    error = np.hypot(sums.deviation, np.clip(mean, -1.0, 1.0) * sums.rows_deviation) / number
    return mean, np.asarray(error)


def _between(mean: _Array, error: _Array, center: _Array, number: _Array) -> _Array:
    """Return the variance of the groups' true means around the center, by column."""
    whole = number.sum()
    apart = (number * ((mean - center) ** 2 - error**2)).sum(axis=0) / whole
    # The variance of a squared normal variable of mean a**2 + e**2 is 4 a**2 e**2 + 2 e**4.
    square = number**2 * (2 * error**4 + 4 * np.maximum(apart, 0.0) * error**2)
    noise = np.sqrt(square.sum(axis=0)) / whole
    return _cut(_over_columns(apart, noise), _BETWEEN_COLUMNS, apart, noise)


def _variance(sums: MomentSums, number: _Array, mean: _Array, error: _Array) -> _Array:
    """Return the variance within each group, by column."""
    whole = number.sum()
    tilted = sums.second / number
    noise = np.hypot(sums.deviation, np.clip(tilted, -1.0, 1.0) * sums.rows_deviation) / number / 2
    found = (tilted + 1) / 2 - mean**2 - error**2
    noise = np.sqrt(noise**2 + 4 * mean**2 * error**2 + 2 * error**4)
    column = (number * found).sum(axis=0) / whole
    column_noise = np.sqrt(((number * noise) ** 2).sum(axis=0)) / whole
    prior = np.minimum(_over_columns(column, column_noise), 1.0)
    prior = _cut(prior, _BETWEEN_COLUMNS, column, column_noise)
    return _cut(prior, _BETWEEN_GROUPS, found, noise)


def _over_columns(found: _Array, noise: _Array) -> _Array:
    return positive_mean(found.mean(), np.sqrt((noise**2).sum()) / len(found))


def _cut(prior: _Array, relative: float, found: _Array, noise: _Array) -> _Array:
    """Return a positive quantity's posterior mean, where the prior's deviation is relative to its mean."""
    return positive_mean(*_posterior(prior, relative * prior, found, noise))
