"""The unrelated question whose own share of "yes" is unknown: two samples, and both shares are estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.local.surveys.designs.privacy_loss import Transition, loss_of, odds_of
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain, several
from sfumato.local.surveys.designs.unrelated_question import UnrelatedQuestion
from sfumato.local.surveys.estimates.answer_counts import counts
from sfumato.local.surveys.estimates.intervals import Method, normal_quantile, share_bounds
from sfumato.local.surveys.estimates.likeliest_shares import likeliest_shares
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["TwoSamplePrevalence", "UnrelatedQuestionTwoSamples", "check_method"]


def check_method(method: Method) -> None:
    """Refuse a way to find an interval that two samples do not have."""
    if method not in {"clopper-pearson", "wald"}:
        _check.refuse("method", "be 'clopper-pearson' or 'wald'", method, "leave it out")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSamplePrevalence:
    r"""Two estimated prevalences, from two samples with different chances of the sensitive question.

    Parameters
    ----------
    design : UnrelatedQuestionTwoSamples
        What both samples were asked by.
    yes, respondents : tuple of two ints
        Of the first and of the second sample.

    Notes
    -----
    With :math:`\lambda_i = p_i\theta + (1 - p_i)\pi` for the chance of "yes" in sample i, :math:`\theta =
    (\lambda_1(1-p_2) - \lambda_2(1-p_1))/(p_1 - p_2)`, and so for :math:`\pi` with :math:`p` instead of
    :math:`1 - p` and the other sign.

    Examples
    --------
    >>> design = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/4", "3/4"))
    >>> found = design.estimate({"yes": 290, "no": 710}, {"yes": 410, "no": 590})
    >>> round(found.prevalence, 6), found.respondents
    (0.2, (1000, 1000))
    >>> lower, upper, _ = found.interval()
    >>> lower < 0.2 < upper
    True
    """

    design: UnrelatedQuestionTwoSamples
    yes: tuple[int, int]
    respondents: tuple[int, int]

    @property
    def prevalence(self) -> float:
        """The unbiased estimate of the sensitive share, raw; NaN where a sample is empty."""
        return self._sum(self._weights) if all(self.respondents) else math.nan

    @property
    def innocuous(self) -> float:
        """The unbiased estimate of the share of "yes" to the harmless question, raw."""
        first, second = self.design.chances
        weights = -second / (first - second), first / (first - second)
        return self._sum(weights) if all(self.respondents) else math.nan

    @property
    def maximum_likelihood(self) -> float:
        """The likeliest prevalence, where both shares are within [0, 1]; NaN where a sample is empty."""
        if not all(self.respondents):
            return math.nan
        given = [(n - yes, yes) for yes, n in zip(self.yes, self.respondents, strict=True)]
        # Classes: neither thing is true, the harmless one alone, the sensitive one alone, both.
        chances = [[0.0, float(1 - p), float(p), 1.0] for p in self.design.chances]
        rows = [np.array([[1 - chance, chance] for chance in part]) for part in chances]
        return float(likeliest_shares(given, rows)[2:].sum())

    @property
    def variance(self) -> float:
        """Unbiased estimate of the variance of the prevalence."""
        if min(self.respondents) < 2:
            return math.nan
        rates = [yes / n for yes, n in zip(self.yes, self.respondents, strict=True)]
        return sum(
            float(w) ** 2 * rate * (1 - rate) / (n - 1)
            for w, rate, n in zip(self._weights, rates, self.respondents, strict=True)
        )

    @property
    def stddev(self) -> float:
        """The root of the variance."""
        return math.sqrt(self.variance)

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        row = ("prevalence", self.prevalence, self.maximum_likelihood, (lower, upper))
        return estimate_html(
            "Estimated prevalence", [row], respondents=sum(self.respondents), design=self.design
        )

    def interval(self, level: float = 0.95, method: Method = "clopper-pearson") -> Interval:
        """Return an interval for the prevalence in the population.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.
        method : {"clopper-pearson", "wald"}
            The first joins two exact intervals, each of which errs with half of the risk: conservative. The
            second is the normal approximation around the estimate.

        Returns
        -------
        Interval
            Within [0, 1].
        """
        risk = 1 - _check.unit_interval("level", level)
        check_method(method)
        if min(self.respondents) < (2 if method == "wald" else 1):
            return Interval(0.0, 1.0)
        lower, upper = np.clip(self.ends(risk, method), 0, 1).tolist()
        return Interval(lower, upper)

    def ends(self, risk: float, method: Method) -> tuple[float, float]:
        """Return the ends of the interval that errs with a risk, before they are cut off at 0 and 1.

        Parameters
        ----------
        risk : float
            The probability to miss the truth, strictly between 0 and 1.
        method : {"clopper-pearson", "wald"}
            See `interval`.

        Returns
        -------
        tuple of float
            The lower and the upper end.
        """
        if method == "wald":
            half = normal_quantile(1 - risk / 2) * self.stddev
            return self.prevalence - half, self.prevalence + half
        slack = 2.0**-49 * sum(abs(float(weight)) for weight in self._weights)
        ends = [-slack, slack]
        for weight, yes, n in zip(self._weights, self.yes, self.respondents, strict=True):
            bounds = sorted(float(weight) * float(b) for b in share_bounds(yes, n, 1 - risk / 2, method))
            ends = [ends[0] + bounds[0], ends[1] + bounds[1]]
        return ends[0], ends[1]

    @property
    def _weights(self) -> tuple[Fraction, Fraction]:
        return self.design.weights

    def _sum(self, weights: tuple[Fraction, Fraction]) -> float:
        parts = zip(weights, self.yes, self.respondents, strict=True)
        return float(sum((w * Fraction(yes, n) for w, yes, n in parts), Fraction(0)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnrelatedQuestionTwoSamples:
    r"""The unrelated question in two independent samples, with different chances of the sensitive one.

    Parameters
    ----------
    first, second : Chance
        The chances of the sensitive question in the two samples, different; 1 minus the other is a good
        choice.
    between : pair of Chance
        Public bounds between which the share of "yes" to the harmless question surely lies. Only the price
        needs them: the rarer an answer to the harmless question, the more that answer betrays.

    Notes
    -----
    Guarantee: for each answer, in whichever sample and for whatever share within the bounds, the epsilon of
    `UnrelatedQuestion` at the worse sample and end: under replace-one, to whoever knows no more of the
    respondent's harmless answer than its share. The vertices of the trade-off curves move on segments between
    those of the ends, so the largest convex curve below the latter's is below all of them.

    References
    ----------
    Greenberg, Abul-Ela, Simmons, Horvitz (1969), "The unrelated question randomized response model".

    Examples
    --------
    >>> design = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/4", "3/4"))
    >>> found = design.estimate([1] * 290 + [0] * 710, [1] * 410 + [0] * 590)
    >>> round(found.prevalence, 6), round(found.innocuous, 6)
    (0.2, 0.5)
    """

    first: Chance
    second: Chance
    between: tuple[Chance, Chance]

    def __post_init__(self) -> None:
        first, second = chance("first", self.first), chance("second", self.second)
        if first == second:
            _check.refuse("second", "differ from first", self.second, "pass 1 minus it")
        ends = several("between", self.between)
        if len(ends) != 2 or ends[0] > ends[1]:
            _check.refuse(
                "between",
                "be a lower and an upper bound",
                self.between,
                'pass ("1/4", "3/4")',
            )
        object.__setattr__(self, "first", plain(first))
        object.__setattr__(self, "second", plain(second))
        object.__setattr__(self, "between", tuple(map(plain, ends)))
        _ = self.privacy_loss

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """The chances of the sensitive question in the two samples."""
        return Fraction(self.first), Fraction(self.second)

    @property
    def weights(self) -> tuple[Fraction, Fraction]:
        """What the two samples' shares of "yes" are multiplied by in the estimate of the prevalence."""
        first, second = self.chances
        return (1 - second) / (first - second), -(1 - first) / (first - second)

    def half_width(self, respondents: tuple[int, int], level: float, method: Method) -> float:
        """Return the half-width of the widest interval: where half of either sample say "yes".

        Parameters
        ----------
        respondents : tuple of two ints
            Of the first and of the second sample, at least 2.
        level, method
            See `TwoSamplePrevalence.interval`.

        Returns
        -------
        float
            In units of the prevalence.
        """
        first, second = respondents
        half = TwoSamplePrevalence(design=self, yes=(first // 2, second // 2), respondents=respondents)
        lower, upper = half.ends(1 - level, method)
        return (upper - lower) / 2

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one answer, in either sample, whatever the harmless share is between its bounds."""
        return loss_of(*self._extremes)

    @property
    def epsilon(self) -> float:
        """The epsilon of one answer, rounded up."""
        return self.privacy_loss.epsilon(0.0)

    @property
    def odds(self) -> Fraction | float:
        """The maximum factor by which one answer moves the odds of anything: exp(epsilon), exact."""
        return odds_of(*self._extremes)

    @property
    def _extremes(self) -> list[Transition]:
        """The distributions of the answers in both samples, at both ends of the harmless share."""
        return [
            UnrelatedQuestion(sensitive=p, innocuous=share).transition
            for p in self.chances
            for share in self.between
        ]

    def respond(self, truth: Any, innocuous: Any, *, sample: int, rng: Rng = None) -> Any:
        """Draw the answers of respondents who follow the instructions.

        Parameters
        ----------
        truth, innocuous : bool, or arrays of booleans
            Whether the sensitive thing and the harmless thing are true of each respondent.
        sample : {1, 2}
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        bool or array of booleans
        """
        if sample not in {1, 2}:
            _check.refuse("sample", "be 1 or 2", sample, "pass one of these")
        true, harmless = np.broadcast_arrays(np.asarray(truth, bool), np.asarray(innocuous, bool))
        p = self.chances[sample - 1]
        drawn = uniform_integers(p.denominator, true.size, random_source(rng)).reshape(true.shape)
        said = np.where(drawn < p.numerator, true, harmless)
        return said if said.ndim else bool(said)

    def estimate(self, first: Any, second: Any) -> TwoSamplePrevalence:
        """Return the prevalence that the answers of the two samples estimate.

        Parameters
        ----------
        first, second : array, list, column of a frame, or mapping
            "no" or "yes", booleans, zeros and ones, or a count of each.

        Returns
        -------
        TwoSamplePrevalence
            Of both questions, with errors.
        """
        found = [counts(name, given, ("no", "yes")) for name, given in (("first", first), ("second", second))]
        (no, yes), (other_no, other_yes) = (part.tolist() for part in found)
        return TwoSamplePrevalence(
            design=self, yes=(yes, other_yes), respondents=(no + yes, other_no + other_yes)
        )
