"""The variance that asking only some of the respondents adds to an estimate about all of them."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.numerics.interval import Interval

__all__ = ["Sampled"]


@final
class Sampled(ErrorModel):
    """An error model around the shares of all respondents, where the reports are of evenly drawn ones.

    Parameters
    ----------
    reported : ErrorModel
        Around the shares of those who were drawn.
    left_out : float
        Share of the respondents who were not.

    Notes
    -----
    The shares f of n drawn respondents of N deviate by :math:`f (1 - f) (1 - n/N) / n` around those of all
    (but for a factor of N/(N - 1)), and the estimate is unbiased for whoever was drawn: both variances add
    up.
    """

    __slots__ = ("left_out", "reported")

    def __init__(self, reported: ErrorModel, left_out: float) -> None:
        self.reported, self.left_out = reported, left_out

    def variance(self, share: Array) -> Array:
        """Return the variance of one report's part in an estimate, were the shares these."""
        return np.asarray(self.reported.variance(share) + self.left_out * share * (1 - share))

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one report's part, were these all the shares."""
        drawn = np.diag(shares)[rows] - np.outer(shares[rows], shares)
        return np.asarray(self.reported.covariance(shares, rows) + self.left_out * drawn)

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares whose estimate would deviate by at most z standard deviations, by iteration."""
        return self._score_by_iteration(frequencies, reports, z)
