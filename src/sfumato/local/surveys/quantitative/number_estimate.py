"""The estimated mean and distribution of a number, from scrambled answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.surveys.estimates.estimated_design import AnswerMatrix
from sfumato.local.surveys.estimates.intervals import normal_quantile
from sfumato.local.surveys.estimates.matrix_shares import MatrixShares
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.numerics.interval import Interval

__all__ = ["MeanMethod", "NumberEstimate", "mean_half_width"]

MeanMethod: TypeAlias = Literal["bernstein", "hoeffding", "wald"]
"""How an interval for a mean is found; see `NumberEstimate.interval`."""

_METHODS: Final = get_args(MeanMethod)
_ROUNDING: Final = 2.0**-40


class WeightedAnswers(AnswerMatrix, Protocol):
    """What an estimated mean needs of a design."""

    @property
    def lower(self) -> int:
        """The smallest number that may be true."""

    @property
    def upper(self) -> int:
        """The largest one."""

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each answer in the unbiased estimate."""


def mean_half_width(
    width: float, variance: float, respondents: int, level: float, method: MeanMethod
) -> float:
    """Return half of an interval for a mean.

    Parameters
    ----------
    width : float
        How far the weights of two answers are apart at most.
    variance : float
        Of one weight; the unbiased estimate.
    respondents : int
        At least 2.
    level : float
        Wanted coverage, strictly between 0 and 1.
    method : {"bernstein", "hoeffding", "wald"}
        See `NumberEstimate.interval`.
    """
    risk = 1 - _check.unit_interval("level", level)
    if method not in _METHODS:
        _check.refuse("method", f"be one of {', '.join(map(repr, _METHODS))}", method, "leave it out")
    if method == "wald":
        return -normal_quantile(risk / 2) * math.sqrt(variance / respondents)
    if method == "hoeffding":
        return width * math.sqrt(math.log(2 / risk) / (2 * respondents)) * (1 + _ROUNDING)
    # Each of both sides with half of the risk.
    log = math.log(4 / risk)
    half = math.sqrt(2 * variance * log / respondents) + 7 * width * log / (3 * (respondents - 1))
    return half * (1 + _ROUNDING)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberEstimate:
    r"""The estimated mean of a number in the population, with its error, and its distribution.

    Parameters
    ----------
    design : NumberDesign
        What the respondents were asked by.
    counts : int64 array
        How often each answer was given, in the design's order.

    Notes
    -----
    The respondents are independent draws from a population, each follows the instructions, and each number
    lies within the public bounds. The average of the answers' weights is unbiased; see `NumberDesign`.

    Examples
    --------
    >>> from sfumato.local.surveys import UnrelatedNumber
    >>> design = UnrelatedNumber(lower=0, upper=2, truth="3/4", other={0: "1/3", 1: "1/3", 2: "1/3"})
    >>> found = design.estimate({0: 600, 1: 250, 2: 150})
    >>> round(found.mean, 6), round(found.stddev, 3)
    (0.4, 0.031)
    >>> found.distribution.shares.round(3).tolist()
    [0.689, 0.222, 0.089]
    >>> lower, upper, _ = found.interval()
    >>> lower < 0.4 < upper
    True
    """

    design: WeightedAnswers
    counts: NDArray[np.int64]

    @property
    def respondents(self) -> int:
        """How many answered."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """The unbiased estimate, raw: it may lie outside the bounds. NaN where nobody answered."""
        if not self.respondents:
            return math.nan
        # Not the sum of the weights: near the middle of the bounds little cancels.
        middle = (self.design.lower + self.design.upper) / 2
        return middle + float(self.counts @ (self.design.weights - middle)) / self.respondents

    @property
    def variance(self) -> float:
        """Unbiased estimate of the variance of the mean, of sampling and randomization together."""
        return self._variance / self.respondents if self.respondents > 1 else math.nan

    @property
    def stddev(self) -> float:
        """The root of the variance."""
        return math.sqrt(self.variance)

    @property
    def distribution(self) -> MatrixShares:
        """The estimated share of each number, raw and of the maximum likelihood."""
        return MatrixShares(design=self.design, counts=self.counts)

    @property
    def maximum_likelihood(self) -> float:
        """The mean of the likeliest distribution: within the bounds; NaN where nobody answered."""
        numbers = np.arange(self.design.lower, self.design.upper + 1, dtype=np.float64)
        return float(self.distribution.maximum_likelihood @ numbers)

    @property
    def misfit(self) -> float:
        r"""How likely a mean so far outside the bounds is at most: small if the design was not followed.

        Notes
        -----
        With :math:`d` the distance to the bounds and :math:`R` the largest difference of two weights it is
        :math:`e^{-2nd^2/R^2}` (Hoeffding), and twice that for both sides; 1 at most.
        """
        if not self.respondents:
            return 1.0
        mean = self.mean
        outside = max(self.design.lower - mean, mean - self.design.upper, 0.0)
        return min(1.0, 2 * math.exp(-2 * self.respondents * (outside / self._width) ** 2))

    def interval(self, level: float = 0.95, method: MeanMethod = "bernstein") -> Interval:
        r"""Return an interval for the mean in the population.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.
        method : {"bernstein", "hoeffding", "wald"}
            The first two cover with at least the level, for every distribution and every number of
            respondents. The third is shorter, and has the level for many respondents.

        Returns
        -------
        Interval
            Within the bounds.

        Notes
        -----
        Guarantee: the weights of answers are independent and within public bounds :math:`R` apart. With
        :math:`V` their sample variance, a side of the first is :math:`\sqrt{2V\log(4/\alpha)/n} +
        \frac{7R\log(4/\alpha)}{3(n-1)}` long, and one of the second :math:`R\sqrt{\log(2/\alpha)/(2n)}`.

        References
        ----------
        Maurer, Pontil (2009), "Empirical Bernstein bounds and sample variance penalization", theorem 4;
        Hoeffding (1963), "Probability inequalities for sums of bounded random variables", theorem 2.
        """
        lower, upper = float(self.design.lower), float(self.design.upper)
        # The parameters are checked all the same.
        half = mean_half_width(self._width, self._variance, max(2, self.respondents), level, method)
        if self.respondents < 2:
            return Interval(lower, upper)
        mean, slack = self.mean, 0.0 if method == "wald" else _ROUNDING * (self._width + abs(upper + lower))
        ends = mean - half - slack, mean + half + slack
        return Interval(min(max(ends[0], lower), upper), max(min(ends[1], upper), lower))

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        row = ("mean", self.mean, self.maximum_likelihood, (lower, upper))
        return estimate_html("Estimated mean", [row], respondents=self.respondents, design=self.design)

    def __str__(self) -> str:
        lower, upper, _ = self.interval()
        return (
            f"mean {self.mean:.4f} (95 % interval {lower:.4f} to {upper:.4f}), "
            f"from {self.respondents} answers"
        )

    @property
    def _width(self) -> float:
        return float(np.ptp(self.design.weights))

    @property
    def _variance(self) -> float:
        """The unbiased estimate of the variance of one weight."""
        if self.respondents < 2:
            return 0.0
        apart = self.design.weights - self.mean
        return float(self.counts @ apart**2) / (self.respondents - 1)
