r"""Shares of candidates and what is surely there, with what fixed hash functions add known and taken off.

A sketch's functions are the same for everybody. So a candidate's count has in it that of every other string
with which it shares positions in more functions, or in fewer, than expected. For frequent strings this would
be far more than randomization explains. It is known, though: with B the matrix of surplus collisions, raw
estimates have the mean :math:`f + Bf`, over the strings that there are. Those that are found are solved for,
and their part is taken off all others. What is left is of strings that were not found: of variance at most
:math:`\frac{1}{km} \sum f_y^2 \le \frac{t}{km}` over draws of the functions, k functions of m positions each,
if no such string has a share above t.

The chance of an estimate of a string that nobody has is the greater one of two: of a normal error with this
variance and that of randomization, and of the binomial distribution of supports by randomization and
functions drawn anew for each report. Where codes are rarely supported, the latter has more at its upper end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr, ndtri

from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.local.strings.code_counts import Answers
from sfumato.numerics.interval import Interval

__all__ = ["Judged", "Widened", "binomial_tail", "judged"]

_TURNS: Final = 4
_MAX_SOLVED: Final = 512
_MISSED: Final = 2.0
"""Strings that were not found are taken to have at most this times the share that would have been."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What reports of whole strings say of candidates.

    Parameters
    ----------
    shares : array
    p_values : array
        The chance of such a share, or a greater one, of a string that nobody has.
    found : array of bool
    extra : float
        The variance that fixed hash functions add to a share.
    """

    shares: Array
    p_values: Array
    found: NDArray[np.bool_]
    extra: float


def judged(
    answers: Answers, supports: NDArray[np.int64], reports: int, codes: NDArray[np.int64], rate: float
) -> Judged:
    """Test each candidate; all together are wrong with probability at most ``rate`` (Bonferroni).

    Parameters
    ----------
    answers : Answers
    supports : int64 array
        Of each candidate.
    reports : int
    codes : int64 array
        Of the candidates.
    rate : float
    """
    support, size = answers.support, len(codes)
    if not reports or not size:
        return Judged(np.full(size, np.nan), np.ones(size), np.zeros(size, np.bool_), 0.0)
    raw, risk = support.shares(supports, reports), rate / size
    deviation = float(np.sqrt(support.variance(np.zeros(1))[0] / reports))
    extra = _MISSED * -float(ndtri(risk)) * deviation / answers.cells if answers.cells else 0.0
    shares, found = raw, np.zeros(size, np.bool_)
    hits: Array = supports.astype(np.float64)
    for _ in range(_TURNS if answers.cells else 1):
        p_values = binomial_tail(hits, reports, float(support.other))
        if extra:
            p_values = np.maximum(p_values, ndtr(-shares / np.sqrt(deviation**2 + extra)))
        before, found = found, p_values <= risk
        if not answers.cells or (before == found).all():
            break
        shares = _taken_off(answers, raw, codes, found)
        hits = reports * (float(support.other) + shares * float(support.gap))
    return Judged(shares, np.asarray(p_values), found, extra)


def _taken_off(answers: Answers, raw: Array, codes: NDArray[np.int64], found: NDArray[np.bool_]) -> Array:
    """Return shares without what collisions with those found add; see the notes of the module."""
    frequent = np.flatnonzero(found)
    frequent = frequent[np.argsort(-raw[frequent], kind="stable")][:_MAX_SOLVED]
    surplus = answers.collisions(codes[frequent], codes[frequent])
    solved = np.linalg.solve(np.eye(len(frequent)) + surplus, raw[frequent]).astype(np.float64)
    return np.asarray(raw - answers.added(codes, codes[frequent], solved))


def binomial_tail(hits: Array, trials: int, chance: float) -> Array:
    """Return the chance of as many hits or more; between whole numbers, of what lies between.

    Examples
    --------
    >>> binomial_tail(np.array([0.0, 2.0]), 2, 0.5).tolist()
    [1.0, 0.25]
    """
    tail = betainc(np.maximum(hits, 1.0), np.maximum(trials - hits + 1.0, 1.0), chance)
    return np.asarray(np.where(hits > 0, tail, 1.0))


@final
class Widened(ErrorModel):
    """An error model beside an error of estimates that more reports do not lessen.

    Parameters
    ----------
    inner : ErrorModel
    more : float
        The variance of that error, times the number of reports.
    """

    __slots__ = ("inner", "more")

    def __init__(self, inner: ErrorModel, more: float) -> None:
        self.inner, self.more = inner, more

    def variance(self, share: Array) -> Array:
        """Return the variance of one report's part in an estimate, were the shares these."""
        return np.asarray(self.inner.variance(share) + self.more)

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one report's part, were these all the shares."""
        found = self.inner.covariance(shares, rows)
        found[np.arange(len(rows)), rows] += self.more
        return found

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares whose estimate would deviate by at most z standard deviations, by iteration."""
        return self._score_by_iteration(frequencies, reports, z)
