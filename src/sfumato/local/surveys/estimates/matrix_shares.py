"""The estimated shares of categories, where the design is any matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.surveys.estimates.estimated_design import AnswerMatrix
from sfumato.local.surveys.estimates.likeliest_shares import likeliest_shares
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.local.surveys.estimates.profile_share import profile_share_interval
from sfumato.numerics.interval import Interval

__all__ = ["MatrixShares"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixShares:
    r"""Estimated shares of categories, from answers whose chances are any matrix.

    Parameters
    ----------
    design : MatrixDesign
        What the respondents were asked by.
    counts : int64 array
        How often each answer was given, in the design's order.

    Notes
    -----
    With :math:`T` the matrix and :math:`\hat\lambda` the shares of the answers, :math:`\hat\lambda G` is
    unbiased for every :math:`G` with :math:`TG = I`: here the inverse, or the pseudoinverse where there are
    more answers than categories.

    Examples
    --------
    >>> from sfumato.local.surveys import Kuk
    >>> twice = Kuk(true="4/5", false="1/5").repeated(2)
    >>> found: MatrixShares = twice.estimate({0: 530, 1: 320, 2: 150})
    >>> found.shares.round(3).tolist(), found.maximum_likelihood.round(3).tolist()
    ([0.817, 0.183], [0.817, 0.183])
    """

    design: AnswerMatrix
    counts: NDArray[np.int64]

    @property
    def respondents(self) -> int:
        """How many answered."""
        return int(self.counts.sum())

    @property
    def shares(self) -> NDArray[np.float64]:
        """Unbiased estimates, raw: they add up to 1, and may lie outside [0, 1]; NaN for no answers."""
        with np.errstate(invalid="ignore"):
            return np.asarray((self.counts / self.respondents) @ np.linalg.pinv(self._matrix))

    @property
    def maximum_likelihood(self) -> NDArray[np.float64]:
        """The likeliest shares: within [0, 1], with the sum 1."""
        return likeliest_shares([self.counts], [self._matrix])

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Unbiased estimate of the raw shares' covariance, of sampling and randomization together."""
        inverse = np.linalg.pinv(self._matrix)
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = self.counts / self.respondents
            deviation = (np.diag(rate) - np.outer(rate, rate)) / (self.respondents - 1)
        return np.asarray(inverse.T @ deviation @ inverse)

    @property
    def stddev(self) -> NDArray[np.float64]:
        """The standard deviations of the raw shares."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def interval(self, level: float = 0.95) -> Interval[NDArray[np.float64]]:
        """Return an interval for each category's share in the population, by profile likelihood.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1, which it has in the limit of many respondents.

        Returns
        -------
        Interval
            Arrays over the categories, within [0, 1].
        """
        each = [
            profile_share_interval([self.counts], [self._matrix], index, level)
            for index in range(len(self.design.categories))
        ]
        return Interval(np.array([part.lower for part in each]), np.array([part.upper for part in each]))

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        ends = zip(lower.tolist(), upper.tolist(), strict=True)
        columns = (self.design.categories, self.shares.tolist(), self.maximum_likelihood.tolist(), ends)
        rows = zip(*columns, strict=True)
        return estimate_html("Estimated shares", rows, respondents=self.respondents, design=self.design)

    @property
    def _matrix(self) -> NDArray[np.float64]:
        return np.array([[float(mass) for mass in row] for row in self.design.transition])
