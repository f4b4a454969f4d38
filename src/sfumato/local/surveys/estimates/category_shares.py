"""The estimated share of each category, from the answers to a design with several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.surveys.estimates.estimated_design import SeveralAnswers
from sfumato.local.surveys.estimates.intervals import Method, share_bounds
from sfumato.local.surveys.estimates.likeliest_shares import likeliest_shares
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.numerics.interval import Interval

__all__ = ["Shares"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Estimated shares of categories in the population, with their errors.

    Parameters
    ----------
    design : Design
        What the respondents were asked by.
    counts : int64 array
        How often each answer was given, in the design's order.

    Notes
    -----
    The respondents are independent draws from a population, so the counts are multinomial, and each share
    follows from the count of its own answer; see `Design`.

    Examples
    --------
    >>> from sfumato.local.surveys import ForcedCategory
    >>> design = ForcedCategory(names=("never", "once", "often"), truth="3/5")
    >>> found = design.estimate({"never": 500, "once": 300, "often": 200})
    >>> found.respondents, round(float(found.shares.sum()), 6)
    (1000, 1.0)
    >>> lower, upper, _ = found.interval()
    >>> bool((lower < found.shares).all() and (found.shares < upper).all())
    True
    """

    design: SeveralAnswers
    counts: NDArray[np.int64]

    @property
    def respondents(self) -> int:
        """How many answered."""
        return int(self.counts.sum())

    @property
    def shares(self) -> NDArray[np.float64]:
        """Unbiased estimates, raw: they add up to 1, and may lie outside [0, 1]; NaN for no answers."""
        with np.errstate(invalid="ignore"):
            return self._mapped(self.counts / self.respondents)

    @property
    def maximum_likelihood(self) -> NDArray[np.float64]:
        """The likeliest shares: within [0, 1], with the sum 1; the raw ones where these are."""
        matrix = np.array([[float(mass) for mass in row] for row in self.design.transition])
        return likeliest_shares([self.counts], [matrix])

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Unbiased estimate of the covariance matrix, of sampling and randomization together."""
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = self.counts / self.respondents
            deviation = (np.diag(rate) - np.outer(rate, rate)) / (self.respondents - 1)
        return np.asarray(deviation / float(self.design.slope) ** 2)

    @property
    def stddev(self) -> NDArray[np.float64]:
        """The standard deviations of the shares."""
        return np.sqrt(np.diag(self.covariance))

    def interval(
        self, level: float = 0.95, method: Method = "clopper-pearson"
    ) -> Interval[NDArray[np.float64]]:
        """Return an interval for each category's share in the population.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1; for all k at once pass ``1 - (1 - level) / k``.
        method : {"clopper-pearson", "wilson", "wald"}
            As in `Prevalence.interval`.

        Returns
        -------
        Interval
            Arrays over the categories, within [0, 1].
        """
        ends = np.sort(
            [self._mapped(end) for end in share_bounds(self.counts, max(1, self.respondents), level, method)],
            axis=0,
        )
        slack = 2.0**-50 / abs(float(self.design.slope)) if method == "clopper-pearson" else 0.0
        if not self.respondents:
            ends = np.array([[0.0], [1.0]]) * np.ones(len(self.counts))
        return Interval(np.clip(ends[0] - slack, 0, 1), np.clip(ends[1] + slack, 0, 1))

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        ends = zip(lower.tolist(), upper.tolist(), strict=True)
        columns = (self.design.categories, self.shares.tolist(), self.maximum_likelihood.tolist(), ends)
        rows = zip(*columns, strict=True)
        return estimate_html("Estimated shares", rows, respondents=self.respondents, design=self.design)

    def _mapped(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        floor = np.array([float(mass) for mass in self.design.floor])
        return np.asarray((rate - floor) / float(self.design.slope))
