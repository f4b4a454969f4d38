"""The error model of an estimate of shares: how far it deviates by randomization alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato import _check
from sfumato.numerics.interval import Interval

__all__ = ["Array", "ErrorModel", "quadratic_ends"]

_ROUNDS: Final = 30

Array = NDArray[np.float64]


class ErrorModel(ABC):
    r"""The distribution of an unbiased estimate around the respondents' own shares.

    Notes
    -----
    The respondents are fixed and their reports independent, so all moments are sums over them: the variance
    of a share's estimate is :meth:`variance` of that share over their number, and so for covariances.

    Attributes
    ----------
    alike : bool
        Whether the covariance of any two estimates follows from these two shares alone: then weighted sums of
        estimates have a variance that needs no pairs.
    """

    __slots__ = ()

    alike: ClassVar[bool] = False

    @abstractmethod
    def variance(self, share: Array) -> Array:
        """Return the variance of one report's part in an estimate, were the shares these."""

    @abstractmethod
    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one report's part, were these all the shares."""

    @property
    def reach(self) -> tuple[float, float] | None:
        """The least and the most that one well-formed report adds to n times a share; None if not stated."""
        return None

    def sum_variance(self, count: int) -> float | None:
        """Return the variance of one report's part in the sum of all shares, or a bound on it.

        Parameters
        ----------
        count : int
            How many shares there are.

        Returns
        -------
        float or None
            The same whatever is true; None where it is not, or is not known.
        """
        return None

    def total_reach(self, count: int) -> tuple[float, float] | None:
        """Return the least and the most that one well-formed report adds to n times `total`, or bounds on it.

        Parameters
        ----------
        count : int
            How many shares there are.

        Returns
        -------
        tuple of float or None
        """
        reach = self.reach
        return None if reach is None else (count * reach[0], count * reach[1])

    def total(self, raw: Array) -> float:
        """Return what `sum_variance` is of: the sum of the estimates, if not overridden."""
        return float(raw.sum())

    @abstractmethod
    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares whose estimate would deviate by at most ``z`` standard deviations."""

    def _score_by_iteration(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return `score` for any variance that changes little with the share."""
        ends = []
        for side in (-z, z):
            end = frequencies
            for _ in range(_ROUNDS):
                end = frequencies + side * np.sqrt(self.variance(np.clip(end, 0.0, 1.0)) / reports)
            ends.append(end)
        return Interval(ends[0], ends[1])

    def interval(self, frequencies: Array, reports: int, risk: float, method: str) -> Interval[Array]:
        """Return an interval for each share, outside of which it is with probability at most ``risk``.

        Parameters
        ----------
        frequencies : array
            The estimates.
        reports : int
            How many; with none every share is possible.
        risk : float
            Strictly between 0 and 1.
        method : str
            One that this model knows.

        Returns
        -------
        Interval
            Arrays within [0, 1].
        """
        if not reports:
            return Interval(np.zeros(len(frequencies)), np.ones(len(frequencies)))
        if method != "score":
            _check.refuse("method", "be 'score'", method, "leave it out: no exact one is known")
        found = self.score(frequencies, reports, -float(ndtri(risk / 2)))
        return Interval(np.clip(found.lower, 0.0, 1.0), np.clip(found.upper, 0.0, 1.0))


def quadratic_ends(frequencies: Array, half: float, step: float, level: Any, slope: float) -> Interval[Array]:
    r"""Return the shares f of which an estimate is no more than some deviations away.

    Parameters
    ----------
    frequencies : array
        The estimates.
    half : float
        By how much each is moved outward first: half a count, for continuity.
    step : float
        Squared number of deviations, over the number of reports.
    level : float or array
    slope : float
        With a share f one report's part has the variance ``level + slope * f``.

    Notes
    -----
    The ends are roots of :math:`(f - x)^2 = step (level + slope f)`, x being the estimate moved outward. No
    end lies inside of its x: where the variance would be negative at x, a root is of the other side.
    """
    ends = []
    for side, outer in ((-1.0, np.minimum), (1.0, np.maximum)):
        x = frequencies + side * half
        middle = x + step * slope / 2
        root = middle**2 - (x**2 - step * level)
        ends.append(outer(x, middle + side * np.sqrt(np.maximum(root, 0.0))))
    return Interval(ends[0], ends[1])
