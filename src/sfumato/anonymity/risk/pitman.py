"""Pitman's sampling formula fitted to the class sizes of a sample."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

__all__ = ["fit_pitman", "log_likelihood", "pitman_uniques"]

_CANCELLING: Final = 1e5
"""Above this ratio of theta to alpha the difference of two logarithms of Gamma loses digits."""


def log_likelihood(sizes: NDArray[np.int64], theta: float, alpha: float) -> float:
    """Return the logarithm of Pitman's probability of these class sizes, but for a constant.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class.
    theta, alpha : float
        ``0 <= alpha < 1`` and ``theta > -alpha``.

    Returns
    -------
    float
    """
    return _likelihood(*np.unique(sizes, return_counts=True), theta, alpha)


def _likelihood(size: NDArray[np.int64], many: NDArray[np.int64], theta: float, alpha: float) -> float:
    """Return it from the sizes that occur, and how many classes have each."""
    rows, classes = int(size @ many), int(many.sum())
    opened = _log_rising(theta, alpha, classes)
    drawn = gammaln(theta + rows) - gammaln(theta + 1)
    inside = many @ (gammaln(size - alpha) - gammaln(1 - alpha))
    return float(opened - drawn + inside)


def _log_rising(theta: float, alpha: float, classes: int) -> float:
    """Return the sum of ``log(theta + i alpha)`` for i from 1 to ``classes - 1``."""
    if theta < _CANCELLING * alpha:
        ratio = theta / alpha
        return float((classes - 1) * np.log(alpha) + gammaln(ratio + classes) - gammaln(ratio + 1))
    return float(np.log(theta + alpha * np.arange(1, classes)).sum())


def fit_pitman(sizes: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return theta and alpha of the greatest likelihood.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class.

    Returns
    -------
    tuple of two floats, or None
        None where the likelihood has no maximum inside, as where all classes are single rows.
    """
    if len(sizes) < 2 or int(sizes.max()) == 1:
        return None

    size, many = np.unique(sizes, return_counts=True)

    def best_theta(alpha: float) -> tuple[float, float]:
        found = minimize_scalar(
            lambda log: -_likelihood(size, many, float(np.exp(log)) - alpha, alpha),
            bounds=(-15.0, 35.0),
            method="bounded",
            options={"xatol": 1e-9},
        )
        return float(np.exp(found.x)) - alpha, float(found.fun)

    found = minimize_scalar(
        lambda alpha: best_theta(alpha)[1], bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}
    )
    alpha = float(found.x)
    theta = best_theta(alpha)[0]
    if alpha > 1 - 1e-6 or theta > 1e12:
        return None
    return theta, alpha


def pitman_uniques(theta: float, alpha: float, population_size: int) -> float:
    """Return the expected number of classes of a single member in a population.

    Parameters
    ----------
    theta, alpha : float
    population_size : int

    Returns
    -------
    float
        Exactly ``N Gamma(theta + alpha + N - 1) Gamma(theta + 1) / (Gamma(theta + alpha) Gamma(theta + N))``,
        which is near ``Gamma(theta + 1) / Gamma(theta + alpha) N^alpha`` for large N.
    """
    n = population_size
    logarithm = gammaln(theta + alpha + n - 1) - gammaln(theta + n)
    logarithm += gammaln(theta + 1) - gammaln(theta + alpha)
    return float(n * np.exp(logarithm))
