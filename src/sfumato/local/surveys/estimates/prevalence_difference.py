"""The difference of two prevalences, each with a design of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

from sfumato import _check
from sfumato.local.surveys.estimates.estimated_design import EstimatedPrevalence
from sfumato.local.surveys.estimates.intervals import difference_bounds, normal_quantile, share_bounds
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.local.surveys.estimates.prevalence import Prevalence
from sfumato.numerics.interval import Interval

__all__ = ["PrevalenceDifference"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrevalenceDifference:
    r"""The prevalence in one group less that in another, independent one.

    Parameters
    ----------
    first, second : Prevalence, TwoSamplePrevalence, Stratified or Weighted
        Of independent respondents. The designs may differ.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins, Warner
    >>> coins = TwoCoins().estimate({"yes": 400, "no": 600})
    >>> warner = Warner(truth="3/4").estimate({"yes": 400, "no": 400})
    >>> found = PrevalenceDifference(first=coins, second=warner)
    >>> round(found.difference, 6)
    -0.2
    >>> lower, upper, _ = found.interval()
    >>> lower < -0.2 < upper
    True
    """

    first: EstimatedPrevalence
    second: EstimatedPrevalence

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            remedy = "pass what design.estimate(answers) returns"
            if not isinstance(getattr(self, name), EstimatedPrevalence):
                _check.refuse_type(name, "be an estimated prevalence", getattr(self, name), remedy)

    @property
    def difference(self) -> float:
        """The unbiased estimate, raw: it may lie outside [-1, 1]; NaN where nobody answered in a group."""
        return self.first.prevalence - self.second.prevalence

    @property
    def maximum_likelihood(self) -> float:
        """The likeliest difference: of prevalences within [0, 1]."""
        return self.first.maximum_likelihood - self.second.maximum_likelihood

    @property
    def stddev(self) -> float:
        """The standard deviation of the raw difference."""
        return math.sqrt(self.first.variance + self.second.variance)

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        row = ("difference", self.difference, self.maximum_likelihood, (lower, upper))
        return estimate_html("Estimated difference", [row])

    def interval(
        self, level: float = 0.95, method: Literal["wilson", "clopper-pearson"] = "wilson"
    ) -> Interval:
        r"""Return an interval for the difference in the population.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.
        method : {"wilson", "clopper-pearson"}
            The intervals of the two prevalences that it is made of. The first has the level approximately;
            the second covers at least with it, always, and is wider. Of two samples, strata and weights the
            first takes their normal approximation; weights have no other one.

        Returns
        -------
        Interval
            Within [-1, 1].

        Notes
        -----
        With the raw estimates :math:`\hat\theta_i` and the bounds :math:`l_i, u_i` around them, which may lie
        outside [0, 1], the lower end is :math:`\hat\theta_1 - \hat\theta_2 - \sqrt{(\hat\theta_1 - l_1)^2 +
        (u_2 - \hat\theta_2)^2}`, and the upper end likewise; only the difference is cut off, at -1 and 1, and
        the likeliest one is within. Cut off before, prevalences of 0 and 1 in two groups of 100, asked with a
        die, would be covered in 71 % at 95 %; so they are in 97 %, and others in 95 %. For exact
        ones each errs with half of the risk, and the ends are :math:`l_1 - u_2` and :math:`u_1 - l_2`
        (Bonferroni).

        References
        ----------
        Newcombe (1998), "Interval estimation for the difference between independent proportions", method 10;
        Zou, Donner (2008), "Construction of confidence limits about effect measures".
        """
        risk = 1 - _check.unit_interval("level", level)
        if method == "clopper-pearson":
            one, two = (part.interval(1 - risk / 2, "clopper-pearson") for part in (self.first, self.second))
            return Interval(one.lower - two.upper, one.upper - two.lower)
        if method != "wilson":
            _check.refuse("method", "be 'wilson' or 'clopper-pearson'", method, "leave it out")
        if math.isnan(self.difference):
            return Interval(-1.0, 1.0)
        one, two = (_bounds(part, 1 - risk) for part in (self.first, self.second))
        lower, upper, _ = difference_bounds(self.first.prevalence, one, self.second.prevalence, two)
        likeliest = self.maximum_likelihood
        return Interval(max(-1.0, min(float(lower), likeliest)), min(1.0, max(float(upper), likeliest)))


def _bounds(part: EstimatedPrevalence, level: float) -> Interval:
    """Return the approximate interval of one prevalence, also beyond 0 and 1."""
    if isinstance(part, Prevalence):
        false, slope = float(part.design.yes_if_false), float(part.design.slope)
        ends = share_bounds(part.yes, part.respondents, level, "wilson")
        lower, upper = sorted((float(end) - false) / slope for end in ends)
        return Interval(lower, upper)
    if math.isnan(part.variance):
        return Interval(-math.inf, math.inf)
    half = normal_quantile((1 + level) / 2) * math.sqrt(part.variance)
    return Interval(part.prevalence - half, part.prevalence + half)
