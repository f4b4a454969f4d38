"""Strata and weights: estimates of a population that was not sampled evenly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.estimates.answer_counts import indices
from sfumato.local.surveys.estimates.intervals import normal_quantile
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.local.surveys.estimates.prevalence import Prevalence
from sfumato.numerics.interval import Interval

__all__ = ["Stratified", "Weighted", "stratified", "weighted"]

_SUM: Final = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stratified:
    """A prevalence in a population, from independent samples of its strata.

    Parameters
    ----------
    strata : tuple of Prevalence
        The designs may differ.
    shares : tuple of float
        The share of the population in each stratum, known; they add up to 1.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins, stratified
    >>> town, country = TwoCoins().estimate({"yes": 40, "no": 60}), TwoCoins().estimate({"yes": 30, "no": 70})
    >>> found: Stratified = stratified([town, country], [0.8, 0.2])
    >>> lower, upper, _ = found.interval()
    >>> lower < found.prevalence < upper
    True
    """

    strata: tuple[Prevalence, ...]
    shares: tuple[float, ...]

    @property
    def prevalence(self) -> float:
        """The unbiased estimate, raw."""
        return float(sum(w * part.prevalence for w, part in zip(self.shares, self.strata, strict=True)))

    @property
    def maximum_likelihood(self) -> float:
        """The likeliest prevalence: of prevalences within [0, 1] in each stratum."""
        parts = zip(self.shares, self.strata, strict=True)
        return float(sum(w * part.maximum_likelihood for w, part in parts))

    @property
    def variance(self) -> float:
        """Unbiased estimate of the variance: the strata's add up with the squares of their shares."""
        return float(sum(w * w * part.variance for w, part in zip(self.shares, self.strata, strict=True)))

    @property
    def stddev(self) -> float:
        """The root of the variance."""
        return float(np.sqrt(self.variance))

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        row = ("prevalence", self.prevalence, self.maximum_likelihood, (lower, upper))
        return estimate_html("Estimated prevalence", [row])

    def interval(self, level: float = 0.95, method: Literal["clopper-pearson", "wald"] = "wald") -> Interval:
        """Return an interval for the prevalence in the population.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.
        method : {"clopper-pearson", "wald"}
            The normal approximation; or the sum of the strata's exact intervals, each of which errs with an
            equal part of the risk: it covers at least with the level, and is much wider with many strata.

        Returns
        -------
        Interval
            Within [0, 1].
        """
        risk = 1 - _check.unit_interval("level", level)
        if method == "wald":
            return _normal(self.prevalence, self.stddev, risk)
        if method != "clopper-pearson":
            _check.refuse("method", "be 'clopper-pearson' or 'wald'", method, "leave it out")
        parts = [stratum.interval(1 - risk / len(self.strata)) for stratum in self.strata]
        ends = [sum(w * part[side] for w, part in zip(self.shares, parts, strict=True)) for side in (0, 1)]
        return Interval(max(0.0, float(ends[0]) - _SUM), min(1.0, float(ends[1]) + _SUM))


def stratified(strata: Sequence[Prevalence], shares: Sequence[float]) -> Stratified:
    """Put the estimates of several strata together.

    Parameters
    ----------
    strata : sequence of Prevalence
    shares : sequence of float
        The share of the population in each stratum, from a register or a census; they add up to 1.

    Returns
    -------
    Stratified

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> town, country = TwoCoins().estimate({"yes": 40, "no": 60}), TwoCoins().estimate({"yes": 30, "no": 70})
    >>> round(stratified([town, country], [0.8, 0.2]).prevalence, 6)
    0.26
    """
    weights = tuple(_check.positive("shares", share) for share in shares)
    if len(weights) != len(strata) or not strata or abs(sum(weights) - 1) > _SUM:
        _check.refuse(
            "shares", "be one for each stratum, and add up to 1", shares, "divide them by their sum"
        )
    return Stratified(strata=tuple(strata), shares=weights)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A prevalence in a population, from respondents who stand for different numbers of people.

    Parameters
    ----------
    prevalence : float
        The weighted estimate, raw.
    stddev : float
        Its standard deviation, linearised.
    effective : float
        Kish's effective number of respondents: the square of the weights' sum over the sum of their squares.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins, weighted
    >>> found: Weighted = weighted(TwoCoins(), ["yes"] * 40 + ["no"] * 60, [1.0] * 50 + [2.0] * 50)
    >>> found.effective
    90.0
    >>> lower, upper, _ = found.interval()
    >>> lower <= found.prevalence <= upper
    True
    """

    prevalence: float
    stddev: float
    effective: float

    @property
    def maximum_likelihood(self) -> float:
        """The prevalence at which the weighted likelihood is highest: the raw one, cut off at 0 and 1."""
        return min(1.0, max(0.0, self.prevalence)) if np.isfinite(self.prevalence) else float("nan")

    @property
    def variance(self) -> float:
        """The square of the standard deviation."""
        return self.stddev**2

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        row = ("prevalence", self.prevalence, self.maximum_likelihood, (lower, upper))
        return estimate_html("Estimated prevalence", [row])

    def interval(self, level: float = 0.95, method: Literal["wald"] = "wald") -> Interval:
        """Return the normal approximation around the estimate, within [0, 1].

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.
        method : {"wald"}
            The only one: weights have no exact interval.

        Returns
        -------
        Interval
            Within [0, 1].
        """
        if method != "wald":
            _check.refuse("method", "be 'wald' for a weighted sample", method, "leave it out")
        return _normal(self.prevalence, self.stddev, 1 - _check.unit_interval("level", level))


def weighted(design: BinaryDesign, answers: Any, weights: Any) -> Weighted:
    r"""Estimate a prevalence from respondents with weights.

    Parameters
    ----------
    design : BinaryDesign
        What the respondents were asked by.
    answers : array, list or column of a frame
        One answer of each respondent.
    weights : array
        Positive: the inverse of the chance with which each came into the sample, up to a common factor. They
        are known, and do not depend on the answers.

    Returns
    -------
    Weighted
        The estimate with its standard error.

    Notes
    -----
    :math:`z_i = (y_i - b)/s` is unbiased for the truth of respondent i, whatever the weight, as the device
    knows nothing of it; so Hájek's ratio :math:`\sum w_i z_i / \sum w_i` estimates the prevalence as it does
    for direct answers, with the linearised variance :math:`\frac{n}{n-1}\sum w_i^2 (z_i - \hat\theta)^2 /
    (\sum w_i)^2`, of sampling (as if with replacement) and randomization together; at least what the device
    alone adds, also where all say the same.

    Examples
    --------
    With equal weights it is the estimate of the design:

    >>> from sfumato.local.surveys import TwoCoins
    >>> answers = ["yes"] * 40 + ["no"] * 60
    >>> round(weighted(TwoCoins(), answers, [1.0] * 100).prevalence, 6)
    0.3
    >>> round(TwoCoins().estimate(answers).prevalence, 6)
    0.3
    """
    said = indices("answers", answers, design.answers)
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != said.shape or not (np.isfinite(given) & (given > 0)).all():
        _check.refuse_type("weights", "be one positive number for each answer", weights, "leave nobody out")
    if len(said) < 2:
        return Weighted(prevalence=float("nan"), stddev=float("nan"), effective=float(len(said)))
    single = (said - float(design.yes_if_false)) / float(design.slope)
    total = given.sum()
    theta = float(given @ single / total)
    deviation = len(said) / (len(said) - 1) * float((given**2) @ ((single - theta) ** 2)) / total**2
    # Whatever is true of a respondent, the answer has the variance of one distribution or the other.
    device = min(float(yes * (1 - yes)) for yes in (design.yes_if_false, design.yes_if_true))
    smallest = device / float(design.slope) ** 2 * float(given @ given) / total**2
    return Weighted(
        prevalence=theta,
        stddev=float(np.sqrt(max(deviation, smallest))),
        effective=float(total**2 / (given @ given)),
    )


def _normal(middle: float, stddev: float, risk: float) -> Interval:
    if not np.isfinite(stddev):
        return Interval(0.0, 1.0)
    half = normal_quantile(1 - risk / 2) * stddev
    return Interval(float(np.clip(middle - half, 0, 1)), float(np.clip(middle + half, 0, 1)))
