"""The parameters of a reusable holdout: what they cost, and how far from the population its answers are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, final

from sfumato import _check
from sfumato.adaptive.generalization.generalization_bound import GeneralizationBound, rounded_up
from sfumato.adaptive.generalization.max_information import max_information_bound
from sfumato.adaptive.generalization.transcripts import log_queries, transcript_bound
from sfumato.adaptive.generalization.transfer import transfer_bound
from sfumato.adaptive.holdout.query_mean import ROUNDING
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.sparse_vector.laplace_sparse_vector import SparseVector
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["RESOLUTION", "Thresholdout"]

RESOLUTION: Final = Fraction(1, 256)
"""What the holdout's answers are rounded to."""

_SHARES: Final = (0.02, 0.1, 0.25, 0.5)
_HARM: Final = 1.1
_NOISES: Final = tuple(2.0**-power for power in range(4, 16))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholdout:
    r"""Means on a training set, checked against a holdout of so many rows that is looked at privately.

    Parameters
    ----------
    rows : int
        Of the holdout; public.
    threshold : float
        How far apart the means on the two sets may be; strictly between 0 and 1.
    noise : float
        Scale of the Laplace noise of a holdout's answer; the threshold has twice as much and each comparison
        four times as much.
    overfits : int
        How many queries may be answered by the holdout.
    queries : int
        How many may be asked.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: for the holdout's rows pure DP under replacing one row, by `SparseVector` and one `Laplace`
    answer for each overfit.

    References
    ----------
    Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), The Reusable Holdout, Science 349; the same,
    Generalization in Adaptive Data Analysis and Holdout Reuse. There the threshold is drawn anew after each
    overfit; here one noisy threshold serves the run (Lyu, Su, Li 2017), which costs less.

    Examples
    --------
    >>> plan = Thresholdout(rows=10_000, threshold=0.04, noise=0.01, overfits=20, queries=1000)
    >>> round(plan.privacy_loss.epsilon(), 4)
    0.305
    """

    rows: int
    threshold: float = 0.04
    noise: float
    overfits: int = 20
    queries: int = 1000
    comparisons: SparseVector = field(init=False, repr=False, compare=False)
    answers: Laplace = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check.integer("rows", self.rows, minimum=1)
        _check.unit_interval("threshold", self.threshold)
        _check.positive("noise", self.noise)
        _check.integer("overfits", self.overfits, minimum=1)
        _check.integer("queries", self.queries, minimum=1)
        moved, scale, relation = Fraction(1, self.rows), Fraction(self.noise), Neighboring.REPLACE_ONE
        comparisons = SparseVector(
            sensitivity=moved,
            threshold_scale=2 * scale,
            query_scale=4 * scale,
            positives=self.overfits,
            threshold=Fraction(self.threshold),
            neighboring=relation,
        )
        object.__setattr__(self, "comparisons", comparisons)
        object.__setattr__(self, "answers", Laplace(sensitivity=moved, scale=scale, neighboring=relation))

    @classmethod
    def calibrated(
        cls,
        *,
        rows: int,
        threshold: float = 0.04,
        overfits: int = 20,
        queries: int = 1000,
        beta: float = 0.05,
    ) -> Thresholdout:
        """Return the parameters with the most noise that hardly harms the bound on the population's error.

        Parameters
        ----------
        rows, threshold, overfits, queries
            As in the class.
        beta : float
            The probability with which the bound may fail.

        Returns
        -------
        Thresholdout
            Its noise is the greatest power of two at which the bound is at most a tenth above the least one.
        """
        first = cls(rows=rows, threshold=threshold, noise=_NOISES[0], overfits=overfits, queries=queries)
        options = [replace(first, noise=noise) for noise in _NOISES]
        errors = [option.population_bound(beta=beta).error for option in options]
        return next(
            option for option, error in zip(options, errors, strict=True) if error <= _HARM * min(errors)
        )

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Of all answers together, for the rows of the holdout."""
        return self.comparisons.privacy_loss + self.answers.privacy_loss * self.overfits

    def population_bound(self, *, beta: float = 0.05) -> GeneralizationBound:
        """Return how far from the population all answers are at most, with the best theorem for it.

        Parameters
        ----------
        beta : float
            The probability with which the bound may fail.

        Returns
        -------
        GeneralizationBound
            For the parameters, whatever has been asked. It is ``vacuous`` where nothing is promised.

        Notes
        -----
        The sample is the holdout; the training set is independent of it. An answer is within threshold and
        noise of the holdout's mean; and that is near the population's by the transfer theorem, by
        max-information, or because so few answers are informative that all transcripts can be counted.

        Examples
        --------
        >>> plan = Thresholdout.calibrated(rows=100_000, overfits=10, queries=1000)
        >>> print(plan.population_bound())
        All answers within 0.0714 of the population (95 % sure). Proof: description length of the answers.
        """
        failure = _check.unit_interval("beta", beta)
        outcomes = int(1 / RESOLUTION) + 1
        log_count = log_queries(self.queries, informative=self.overfits, outcomes=outcomes)
        loss = self.privacy_loss
        epsilon = loss.quick_epsilon(0.0)
        found = []
        for share in _SHARES:
            missed = failure * share
            near = self._sample_error(missed)
            found.append(
                transcript_bound(
                    rows=self.rows, log_count=log_count, beta=failure - missed, sample_error=near
                )
            )
            facts = {"sample_error": near, "sample_beta": missed, "beta": failure}
            found.append(max_information_bound(epsilon, rows=self.rows, queries=self.queries, **facts))
        near = self._sample_error(failure * failure / 100)
        found.append(transfer_bound(loss, sample_error=near, sample_beta=failure**2 / 100, beta=failure))
        return replace(min(found, key=lambda bound: bound.error), beta=failure)

    def _sample_error(self, missed: float) -> float:
        """Return what no answer is farther from the holdout's own mean, but for that probability.

        Noise of scale s exceeds s ln(1/p) one way with probability at most p.
        """
        threshold = 2 * self.noise * math.log(4 / missed)
        comparison = 4 * self.noise * math.log(4 * self.queries / missed)
        answer = self.noise * math.log(4 * self.overfits / missed) + float(RESOLUTION)
        # Values, threshold and answers are rounded to grids, and a query's values before that.
        compared = self.threshold + threshold + comparison + 2 * float(self.comparisons.grid.step)
        return rounded_up(max(compared, answer + float(self.answers.grid.step)) + 2 * ROUNDING)
