"""The estimate from many reports of numbers: an unbiased mean, its variance, and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from scipy.special import ndtri

from sfumato import _check
from sfumato._display import html_facts
from sfumato.local.base.report_facts import report_facts
from sfumato.numerics.interval import Interval
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["MeanEstimate"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """The mean of the respondents' numbers.

    Parameters
    ----------
    reports : int
        How many were accepted.
    mean : float
        Unbiased, and perhaps beyond the bounds; NaN without reports.
    variance : float
        Of the mean, by randomization alone, as estimated from the reports; infinite without reports.
    bounds : tuple of float
        Within which all numbers lie.
    reach : float
        Largest difference of what two reports add to the mean of one; infinite if that has no bound.
    loss : PrivacyLoss
        Of each respondent's own report.
    simulated : bool
        Whether a report's randomness followed from a seed.

    Notes
    -----
    The target is the mean of the respondents' own numbers. The respondents are fixed and their reports
    independent. The variance of what reports say is known from the reports; from it is taken how far the
    numbers themselves differ, as far as the reports show that (one bit does not: there the variance is stated
    as if all numbers were alike, and is too great if they are not).

    Examples
    --------
    >>> from sfumato.local import PiecewiseMean
    >>> estimate = PiecewiseMean(epsilon=2.0, bounds=(0.0, 24.0)).simulate([7.0, 9.0], [5000, 5000], rng=1)
    >>> estimate.reports
    10000
    >>> lower, upper, _ = estimate.interval(0.9999)
    >>> lower < 8.0 < upper
    True
    """

    reports: int
    mean: float
    variance: float
    bounds: tuple[float, float]
    reach: float
    loss: PrivacyLoss
    simulated: bool = False

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        facts = {
            "mean": f"{self.mean:.6g}",
            "95 % interval": f"{lower:.6g} to {upper:.6g}",
            "bounds": f"{self.bounds[0]:g} to {self.bounds[1]:g}",
        }
        facts |= report_facts(self.loss, simulated=self.simulated)
        return html_facts(f"Estimated mean, of {self.reports:,} reports", facts)

    @property
    def stddev(self) -> float:
        """Estimated standard deviation of the mean."""
        return math.sqrt(self.variance)

    def interval(self, level: float = 0.95, *, method: str = "normal") -> Interval[float]:
        """Return an interval for the mean, which holds it with about the stated probability.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.
        method : str
            ``"normal"`` holds for many reports; ``"exact"``, by Hoeffding's inequality (1963, Theorem 2), for
            any number, and is wider. Laplace noise has no such bound.

        Returns
        -------
        Interval
            Within the bounds.
        """
        risk = 1 - _check.unit_interval("level", level)
        if method not in ("normal", "exact"):
            _check.refuse("method", "be 'normal' or 'exact'", method, "leave it out")
        if method == "exact" and math.isinf(self.reach):
            _check.refuse("method", "be 'normal' for noise without bound", method, "leave it out")
        if not self.reports:
            return Interval(*self.bounds)
        if method == "exact":
            half = self.reach * math.sqrt(math.log(2 / risk) / (2 * self.reports))
        else:
            half = -float(ndtri(risk / 2)) * self.stddev
        low, high = (min(max(self.mean + end, self.bounds[0]), self.bounds[1]) for end in (-half, half))
        return Interval(low, high)
