r"""The theory of protocols whose reports support values, which covers nearly all frequency oracles.

A report *supports* some values of the domain: the reported category, the bits that are set, whatever hashes
to what was reported. It supports the true value with probability p and each other one with probability
:math:`q < p`. If n reports support a value c times, then :math:`(c/n - q)/(p - q)` is an unbiased estimate of
its share ("pure" protocols: Wang, Blocki, Li, Jha 2017).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.frequency.variance import Array, ErrorModel, quadratic_ends
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound
from sfumato.numerics.interval import Interval

__all__ = ["Support"]

_ROUNDING = 1e-12


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Support(ErrorModel):
    r"""How likely reports support values.

    Parameters
    ----------
    true : Fraction
        Probability p that a report supports the true value.
    other : Fraction
        Probability q that it supports any one other value, below p.
    with_true : Fraction
        Probability that it supports both the true value and any one other.
    both_others : Fraction
        Probability that it supports any two other values.
    drawn_functions : bool
        False where these are means over hash functions that are fixed: sums of shares then vary otherwise.

    Notes
    -----
    *Moments.* Let a share be f. The number of supports is a sum of n independent indicators, n f of which
    have probability p and the rest q: the variance of the estimate is :math:`\frac{f p(1-p) + (1-f)
    q(1-q)}{n (p-q)^2}`. The covariance of two follows in the same way from the two joint probabilities.
    """

    alike: ClassVar[bool] = True

    true: Fraction
    other: Fraction
    with_true: Fraction
    both_others: Fraction
    drawn_functions: bool = True

    @property
    def reach(self) -> tuple[float, float]:
        """What a report adds to n times a share that it does not support, and to one that it does."""
        return float(-self.other / self.gap), float((1 - self.other) / self.gap)

    def sum_variance(self, count: int) -> float | None:
        r"""Return the variance of one report's part in the sum of all shares: of how many values it supports.

        Notes
        -----
        With k values it is :math:`p(1-p) + (k-1)q(1-q) + 2(k-1)(s - pq) + (k-1)(k-2)(t - q^2)` over
        :math:`(p-q)^2`, s and t being the two joint probabilities: the same whatever is true.
        """
        if not self.drawn_functions:
            return None
        others, p, q = count - 1, self.true, self.other
        alone = p * (1 - p) + others * q * (1 - q)
        pairs = 2 * others * (self.with_true - p * q) + others * (others - 1) * (self.both_others - q * q)
        return float((alone + pairs) / self.gap**2)

    @property
    def gap(self) -> Fraction:
        """By how much likelier the true value is supported."""
        return self.true - self.other

    def shares(self, counts: NDArray[np.int64], reports: int) -> Array:
        """Return the unbiased estimates; NaN where nobody reported."""
        if not reports:
            return np.full(len(counts), np.nan)
        return np.asarray((counts / reports - float(self.other)) / float(self.gap))

    def _ends(self) -> tuple[float, float]:
        """Return the variance of one report's part where another value is true, and where this one is."""
        ends = (self.other * (1 - self.other), self.true * (1 - self.true))
        return float(ends[0] / self.gap**2), float(ends[1] / self.gap**2)

    def variance(self, share: Array) -> Array:
        """Return the variance of one report's part in an estimate; see the notes."""
        other, true = self._ends()
        return np.asarray(other + share * (true - other))

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one report's part; see the notes."""
        one = float((self.with_true - self.true * self.other) / self.gap**2)
        none = float((self.both_others - self.other**2) / self.gap**2)
        either = shares[rows, None] + shares[None, :]
        found = none + either * (one - none)
        found[np.arange(len(rows)), rows] = self.variance(shares[rows])
        return np.asarray(found)

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        r"""Return the shares whose estimate would deviate by at most z standard deviations.

        Notes
        -----
        Wilson's interval (1927) with a correction of half a count: the variance is that under the share in
        question, so the ends are the roots of a quadratic. A sum of independent indicators with standard
        deviation :math:`\sigma` is normal to :math:`0.56/\sigma` in every probability (Berry, Esseen;
        Shevtsova 2010), so the coverage is the stated one to :math:`1.12/\sigma`, and in practice far closer.
        """
        other, true = self._ends()
        half = 0.5 / (reports * float(self.gap))
        return quadratic_ends(frequencies, half, z * z / reports, other, true - other)

    def interval(self, frequencies: Array, reports: int, risk: float, method: str) -> Interval[Array]:
        r"""Return an interval for each share; ``"score"`` or ``"exact"``.

        Notes
        -----
        *The exact one* never covers less. The count C of supports is a sum of n independent indicators of
        mean :math:`\theta = q + f(p - q)`. Hoeffding (1956), Theorem 4: for a whole :math:`c \le n\theta -
        1`, :math:`P(C \le c)` is at most that of the binomial distribution of n and :math:`\theta`, and in
        the same way for the upper tail. So Clopper and Pearson's interval of the binomial distribution holds
        for :math:`\theta`, if it is made to reach from :math:`(C-1)/n` to :math:`(C+1)/n`: then an end is
        missed for such c only.
        """
        if method != "exact" or not reports:
            return ErrorModel.interval(self, frequencies, reports, risk, method)
        gap, other = float(self.gap), float(self.other)
        counts = np.rint((frequencies * gap + other) * reports)
        lower = np.minimum(lower_confidence_bound(counts, reports, risk / 2), (counts - 1) / reports)
        upper = np.maximum(upper_confidence_bound(counts, reports, risk / 2), (counts + 1) / reports)
        ends = (lower - other) / gap - _ROUNDING / gap, (upper - other) / gap + _ROUNDING / gap
        return Interval(np.clip(ends[0], 0.0, 1.0), np.clip(ends[1], 0.0, 1.0))

    def simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw how often each value is supported, where supports of different values are independent."""
        hits = generator.binomial(counts, float(self.true))
        return np.asarray(hits + generator.binomial(counts.sum() - counts, float(self.other)), dtype=np.int64)

    def fewest(self, error: float, frequency: float = 0.0) -> int:
        """Return how many reports bring the standard deviation of a share's estimate down to ``error``."""
        return math.ceil(float(self.variance(np.array(frequency))) / error**2)
