"""The estimated distribution and mean of how many things are true of somebody."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato import _check
from sfumato.local.surveys.estimates.estimated_design import TwoAnswers
from sfumato.local.surveys.estimates.likeliest_shares import likeliest_shares
from sfumato.local.surveys.estimates.notebook_table import estimate_html
from sfumato.local.surveys.estimates.prevalence import Prevalence
from sfumato.local.surveys.quantitative.number_estimate import MeanMethod, mean_half_width
from sfumato.numerics.interval import Interval

__all__ = ["ScoreEstimate"]

_MAX_CLASSES: Final = 512
_ROUNDING: Final = 2.0**-40


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreEstimate:
    r"""Estimated shares of the scores in the population, and their mean.

    Parameters
    ----------
    designs : tuple of BinaryDesign
        How each question was asked.
    patterns : array of bool
        Each set of answers that was given: a row of them, True for the second answer of a design.
    counts : int64 array
        How often each of them was given.

    Notes
    -----
    The respondents are independent draws from a population, of which what is true of them may depend on
    each other in any way. For one question :math:`u = (1[yes] - b)/s` is an unbiased estimate of whether it
    is true. Chance is used for each question by itself, so that the coefficients of
    :math:`\prod_j (1 - u_j + u_j z)` are unbiased estimates of whether the respondent has each score: the
    inverse of the Kronecker product of the designs' matrices, added up over the sets of truths with the same
    score. Shares are their averages, and the mean that of :math:`\sum_j u_j`.

    Examples
    --------
    >>> from sfumato.local.surveys import SumScore, Warner
    >>> score = SumScore(designs=[Warner(truth="3/4")] * 2)
    >>> found: ScoreEstimate = score.estimate([[1] * 40 + [0] * 60, [0] * 55 + [1] * 45])
    >>> found.shares.round(3).tolist(), round(found.mean, 6)
    ([-0.3, 1.9, -0.6], 0.7)
    """

    designs: tuple[TwoAnswers, ...]
    patterns: NDArray[np.bool_]
    counts: NDArray[np.int64]

    @property
    def respondents(self) -> int:
        """How many answered."""
        return int(self.counts.sum())

    @property
    def prevalences(self) -> tuple[Prevalence, ...]:
        """The estimated prevalence of each question."""
        yes = (self.counts @ self.patterns).tolist()
        return tuple(
            Prevalence(design=design, yes=count, respondents=self.respondents)
            for design, count in zip(self.designs, yes, strict=True)
        )

    @property
    def mean(self) -> float:
        """The unbiased estimate of the mean score, raw; NaN where nobody answered."""
        return (
            float(self.counts @ self._units.sum(axis=1)) / self.respondents if self.respondents else math.nan
        )

    @property
    def variance(self) -> float:
        """Unbiased estimate of the variance of the mean, of sampling and randomization together."""
        return self._variance / self.respondents if self.respondents > 1 else math.nan

    @property
    def stddev(self) -> float:
        """The root of the variance."""
        return math.sqrt(self.variance)

    def interval(self, level: float = 0.95, method: MeanMethod = "bernstein") -> Interval:
        """Return an interval for the mean score in the population.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.
        method : {"bernstein", "hoeffding", "wald"}
            As in `NumberEstimate.interval`: the first two cover with at least the level, always.

        Returns
        -------
        Interval
            From 0 to the number of questions.

        Notes
        -----
        Guarantee: the respondents' estimates are independent, and lie within the sum of the questions' ranges
        :math:`1/|s_j|`; so Bernstein's and Hoeffding's bounds hold.
        """
        most = float(len(self.designs))
        width = sum(1 / abs(float(design.slope)) for design in self.designs)
        half = mean_half_width(width, self._variance, max(2, self.respondents), level, method)
        if self.respondents < 2:
            return Interval(0.0, most)
        slack = 0.0 if method == "wald" else _ROUNDING * width
        lower, upper = self.mean - half - slack, self.mean + half + slack
        return Interval(min(max(lower, 0.0), most), max(min(upper, most), 0.0))

    @property
    def shares(self) -> NDArray[np.float64]:
        """Unbiased estimates of the share of each score from 0, raw: they add up to 1; NaN for no answers."""
        if not self.respondents:
            return np.full(len(self.designs) + 1, math.nan)
        return np.asarray(self.counts @ self._scores / self.respondents)

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Unbiased estimate of the raw shares' covariance, of sampling and randomization together."""
        if self.respondents < 2:
            return np.full((len(self.designs) + 1,) * 2, math.nan)
        apart = self._scores - self.shares
        return np.asarray(
            (self.counts[:, None] * apart).T @ apart / (self.respondents - 1) / self.respondents
        )

    @property
    def share_stddev(self) -> NDArray[np.float64]:
        """The standard deviations of the raw shares."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def maximum_likelihood(self) -> NDArray[np.float64]:
        """The likeliest shares of the scores: within [0, 1], with the sum 1; NaN where nobody answered.

        Notes
        -----
        They are fitted to how many "yes" each respondent gave to the questions of each design, and the latent
        classes are how many of these are true: which of them had a "yes" is not used. The classes' matrix is
        the Kronecker product of the designs' own, which are convolutions of two binomial distributions.
        At most 512 classes are fitted.
        """
        groups = self._groups()
        classes = math.prod(len(group) + 1 for group in groups)
        if classes > _MAX_CLASSES:
            rule, found = f"have at most {_MAX_CLASSES} classes", f"these have {classes}"
            _check.refuse_state("designs", rule, found, "take shares, or the same design for more questions")
        matrix: NDArray[np.float64] = np.ones((1, 1))
        scores, index = np.zeros(1, int), np.zeros(len(self.counts), int)
        for group in groups:
            own = _group_matrix(self.designs[group[0]], len(group))
            matrix = np.asarray(np.kron(matrix, own))
            scores = np.add.outer(scores, np.arange(len(own))).ravel()
            index = index * len(own) + np.asarray(self.patterns[:, group]).sum(axis=1)
        counts = np.bincount(index, weights=self.counts, minlength=classes)
        likeliest = likeliest_shares([counts], [matrix])
        return np.asarray(np.bincount(scores, likeliest, len(self.designs) + 1), dtype=np.float64)

    def _repr_html_(self) -> str:
        lower, upper, _ = self.interval()
        row = ("mean score", self.mean, None, (lower, upper))
        caption = f"Estimated score of {len(self.designs)} questions"
        return estimate_html(caption, [row], respondents=self.respondents)

    def __str__(self) -> str:
        lower, upper, _ = self.interval()
        return (
            f"mean {self.mean:.4f} of {len(self.designs)} (95 % interval {lower:.4f} to {upper:.4f}), "
            f"from {self.respondents} respondents"
        )

    def _groups(self) -> list[list[int]]:
        """Return the places of the questions whose chances are the same."""
        known: dict[tuple[object, object], list[int]] = {}
        for place, design in enumerate(self.designs):
            known.setdefault((design.yes_if_false, design.yes_if_true), []).append(place)
        return list(known.values())

    @property
    def _units(self) -> NDArray[np.float64]:
        """The unbiased estimate of each truth, for each set of answers."""
        floor = np.array([float(design.yes_if_false) for design in self.designs])
        slope = np.array([float(design.slope) for design in self.designs])
        return np.asarray((self.patterns - floor) / slope)

    @property
    def _scores(self) -> NDArray[np.float64]:
        """The unbiased estimate of each score's indicator, for each set of answers."""
        units = self._units
        found = np.zeros((len(units), len(self.designs) + 1))
        found[:, 0] = 1.0
        for column in units.T:
            found[:, 1:] = found[:, 1:] * (1 - column)[:, None] + found[:, :-1] * column[:, None]
            found[:, 0] *= 1 - column
        return found

    @property
    def _variance(self) -> float:
        """The unbiased estimate of the variance of one respondent's estimate."""
        if self.respondents < 2:
            return 0.0
        apart = self._units.sum(axis=1) - self.mean
        return float(self.counts @ apart**2) / (self.respondents - 1)


def _group_matrix(design: TwoAnswers, count: int) -> NDArray[np.float64]:
    """Return the chance of each number of "yes" for each number of truths, of questions with one design."""
    rows = []
    for true in range(count + 1):
        parts = ((true, design.yes_if_true), (count - true, design.yes_if_false))
        one, two = (np.asarray(binom.pmf(range(size + 1), size, float(part))) for size, part in parts)
        rows.append(np.convolve(one, two))
    return np.array(rows)
