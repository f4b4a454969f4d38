"""The estimated share of people of whom the sensitive thing is true, from a design with two answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from scipy.special import bdtr

from sfumato.local.surveys.estimates.estimated_design import TwoAnswers
from sfumato.local.surveys.estimates.intervals import Method, share_bounds
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.numerics.interval import Interval

__all__ = ["Prevalence"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prevalence:
    r"""An estimated prevalence, with its error.

    Parameters
    ----------
    design : BinaryDesign
        What the respondents were asked by.
    yes, respondents : int
        How many gave the second answer of the design ("yes"), and how many answered.

    Notes
    -----
    The respondents are independent draws from a population, of which the prevalence :math:`\theta` is the
    target; each follows the instructions. "Yes" then has the probability :math:`\lambda = b + s\theta`, and
    the number of them is binomial. :math:`(\hat\lambda - b)/s` is unbiased, and the likeliest value where it
    is within [0, 1].

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> found = TwoCoins().estimate({"yes": 400, "no": 600})
    >>> round(found.prevalence, 6), round(found.stddev, 3)
    (0.3, 0.031)
    >>> lower, upper, _ = found.interval()
    >>> lower < 0.3 < upper
    True
    """

    design: TwoAnswers
    yes: int
    respondents: int

    @property
    def prevalence(self) -> float:
        """The unbiased estimate, raw: it may lie below 0 or above 1. NaN where nobody answered."""
        if not self.respondents:
            return math.nan
        rate = Fraction(self.yes, self.respondents)
        return float((rate - self.design.yes_if_false) / self.design.slope)

    @property
    def maximum_likelihood(self) -> float:
        """The likeliest prevalence: the raw one, cut off at 0 and 1; NaN where nobody answered."""
        return min(1.0, max(0.0, self.prevalence)) if self.respondents else math.nan

    @property
    def variance(self) -> float:
        """Unbiased estimate of the variance, of sampling and randomization together."""
        if self.respondents < 2:
            return math.nan
        rate = self.yes / self.respondents
        return rate * (1 - rate) / (self.respondents - 1) / float(self.design.slope) ** 2

    @property
    def stddev(self) -> float:
        """The root of the variance."""
        return math.sqrt(self.variance)

    def interval(self, level: float = 0.95, method: Method = "clopper-pearson") -> Interval:
        """Return an interval for the prevalence in the population.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.
        method : {"clopper-pearson", "wilson", "wald"}
            Clopper and Pearson's covers with at least the level, always; the other two are shorter, and have
            the level approximately. See `share_bounds`.

        Returns
        -------
        Interval
            Within [0, 1].

        Notes
        -----
        The interval for the probability of "yes", whose map to the prevalence rises or falls: so it covers
        the one exactly when it covers the other. To cut it off at 0 and 1 loses nothing.
        """
        if not self.respondents:
            share_bounds(0, 1, level, method)  # the parameters are checked all the same
            return Interval(0.0, 1.0)
        ends = sorted(
            self._mapped(float(end)) for end in share_bounds(self.yes, self.respondents, level, method)
        )
        slack = 2.0**-50 / abs(float(self.design.slope)) if method == "clopper-pearson" else 0.0
        return Interval(float(np.clip(ends[0] - slack, 0, 1)), float(np.clip(ends[1] + slack, 0, 1)))

    @property
    def misfit(self) -> float:
        """How likely an estimate so far outside [0, 1] is at best: small if instructions were not followed.

        Twice the smaller of two exact tail probabilities, at the two prevalences 0 and 1; 1 at most.
        """
        chances = sorted((float(self.design.yes_if_false), float(self.design.yes_if_true)))
        few = float(bdtr(self.yes, self.respondents, chances[0]))
        many = float(bdtr(self.respondents - self.yes, self.respondents, 1 - chances[1]))
        return min(1.0, 2 * min(few, many)) if self.respondents else 1.0

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        row = ("prevalence", self.prevalence, self.maximum_likelihood, (lower, upper))
        return estimate_html("Estimated prevalence", [row], respondents=self.respondents, design=self.design)

    def __str__(self) -> str:
        lower, upper, _ = self.interval()
        return (
            f"prevalence {self.prevalence:.4f} (95 % interval {lower:.4f} to {upper:.4f}), "
            f"from {self.yes} of {self.respondents} answers"
        )

    def _mapped(self, rate: float) -> float:
        return (rate - float(self.design.yes_if_false)) / float(self.design.slope)
