"""What limits cut off, estimated from noisy histograms, with intervals.

With n_i units (or groups, or rows) in the bin from a_i to b_i, a limit L cuts off between
``sum n_i max(0, a_i - L)`` and ``sum n_i max(0, b_i - L)``. Both ends are linear in the counts, so their
noise is a weighted sum of independent noises, whose tails are bounded by Chernoff's inequality.

Bins count up to the last one whose noisy count stands out: beyond it there is nothing but noise, whose weight
would grow with the bins. Intervals are for what lies up to there. How many units are above a limit is stated
of all bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.queries.planner.contribution_histograms import EDGES, Counted, Histogram
from sfumato.queries.pricing.bound_search import BoundSearch

__all__ = ["CutShare", "Distribution", "Estimate", "NoisyHistogram", "tail_bound"]

Floats = NDArray[np.float64]

BETA: Final = 1e-3
"""The chance that some empty bin stands out by its noise alone."""


@final
@dataclass(frozen=True, slots=True)
class NoisyHistogram:
    """A histogram as it was released.

    Parameters
    ----------
    histogram : Histogram
    counts : tuple of int
        The noisy cells.
    scale : Fraction
        Of the discrete Laplace noise on each.
    """

    histogram: Histogram
    counts: tuple[int, ...]
    scale: Fraction


@final
@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval."""

    value: float
    lower: float
    upper: float

    def over(self, other: Estimate) -> Estimate:
        """Return the quotient of two numbers that are not negative; both intervals must hold."""
        value = self.value / other.value if other.value > 0 else math.nan
        lower = max(0.0, self.lower) / other.upper if other.upper > 0 else 0.0
        upper = max(0.0, self.upper) / other.lower if other.lower > 0 else math.inf
        return Estimate(min(max(value, lower), upper), lower, upper)

    def times(self, other: Estimate) -> Estimate:
        """Return the product of two numbers that are not negative; both intervals must hold."""
        ends = (max(0.0, end) for end in (self.lower, other.lower, self.upper, other.upper))
        low, other_low, high, other_high = ends
        return Estimate(self.value * other.value, low * other_low, high * other_high)

    @property
    def share(self) -> Estimate:
        """The number as a share: from 0 to 1."""
        value, lower, upper = (min(1.0, max(0.0, each)) for each in (self.value, self.lower, self.upper))
        return Estimate(value, lower, upper)


@final
@dataclass(frozen=True, slots=True)
class CutShare:
    """What one limit cuts off: the share of units that are above it, and of what they bring."""

    above: Estimate
    cut: Estimate


def tail_bound(weights: Floats, scale: float, tail: float, *, times: int = 1) -> float:
    """Return what a weighted sum of discrete Laplace noise exceeds with at most the probability ``tail``.

    Parameters
    ----------
    weights : (n,) float64
    scale : float
        Of the noise, ``P(x)`` proportional to ``exp(-|x| / scale)``.
    tail : float
    times : int
        How many noises have each weight.

    Notes
    -----
    Guarantee: Chernoff's inequality holds for every exponent, so the smallest bound of a few exponents does.
    With ``a = exp(-1 / scale)`` the noise has the moment generating function
    ``(1 - a)**2 / ((1 - a e**t) (1 - a e**-t))`` for ``|t| < 1 / scale``. A single noise reaches k with the
    probability ``a**k / (1 + a)``.

    Examples
    --------
    >>> tail_bound(np.ones(1), 10.0, 0.025), round(tail_bound(np.ones(50), 10.0, 0.025))
    (30.0, 276)
    """
    sizes = np.abs(weights[weights != 0])
    if not sizes.size:
        return 0.0
    rate = 1 / scale
    if sizes.size == times == 1:
        least = (-math.log(tail) - math.log1p(math.exp(-rate))) * scale
        return float(sizes[0]) * max(0, math.ceil(least * (1 + 1e-12)) - 1)
    exponents = np.linspace(0.02, 0.98, 49) * rate / float(sizes.max())
    away = np.outer(exponents, sizes)
    logs = 2 * math.log(-math.expm1(-rate)) - np.log(np.expm1(away - rate) * np.expm1(-away - rate))
    return float(((times * logs.sum(axis=1) - math.log(tail)) / exponents).min())


@final
@dataclass(frozen=True, slots=True)
class Distribution:
    """How many units, groups or rows there are of each size, as a noisy histogram shows it.

    Parameters
    ----------
    counts : (n,) float64
        Noisy numbers, by rising size.
    lower, upper : (n,) float64
        The range of the sizes in each bin.
    scale : float
        Of the noise.
    folded : int
        How many noisy numbers each count is the sum of.
    negative : bool
        Whether negative values stand out.
    level : float
        Coverage of the intervals.
    """

    counts: Floats
    lower: Floats
    upper: Floats
    scale: float
    folded: int
    negative: bool
    level: float

    @classmethod
    def of(cls, noisy: NoisyHistogram, level: float) -> Distribution:
        """Read a histogram; values count by their magnitude."""
        counts, scale = np.asarray(noisy.counts, dtype=np.float64), float(noisy.scale)
        histogram = noisy.histogram
        if histogram.expression is None:
            upper = np.asarray(EDGES, dtype=np.float64)
            lower = np.concatenate(([1.0], upper[:-1] + 1))
            return cls(counts, lower, upper, scale, 1, negative=False, level=level)
        bins = BoundSearch(histogram.expression, totals=histogram.counted is Counted.TOTALS).bins
        below, zero, above = counts[: bins.zero][::-1], counts[bins.zero], counts[bins.zero + 1 :]
        powers = np.arange(bins.low, bins.high, dtype=np.float64)
        lower, upper = np.concatenate(([0.0], 2.0**powers)), np.concatenate(([0.0], 2.0 ** (powers + 1)))
        enough = _threshold(scale, len(counts), 1)
        folded = np.concatenate(([zero], below + above))
        negative = bool((below > enough).any())
        return cls(folded, lower, upper, scale, 2, negative=negative, level=level)

    @property
    def top(self) -> int | None:
        """The last bin that stands out; None where none does."""
        out = self._standing_out
        return int(out[-1]) if out.size else None

    @property
    def _standing_out(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.counts > _threshold(self.scale, len(self.counts), self.folded))

    @property
    def limits(self) -> list[float]:
        """The limits to choose among: upper ends of bins up to the last one that stands out.

        Of values they begin at the first one that does: below it all is cut off.
        """
        out = self._standing_out[self.upper[self._standing_out] > 0]
        first = int(out[0]) if out.size and self.folded > 1 else 0
        return [float(end) for end in self.upper[first : self._reach] if end > 0]

    @property
    def number(self) -> Estimate:
        """How many there are."""
        ones = np.ones(len(self.counts))
        return self._sum(ones, ones, len(self.counts))

    @property
    def total(self) -> Estimate:
        """What they bring together."""
        return self._sum(self.lower, self.upper, self._reach)

    @property
    def mean(self) -> Estimate:
        """What each brings."""
        return self.total.over(self.number)

    def cut(self, limit: float) -> float:
        """Return the share that a limit cuts off, without its interval."""
        beyond = np.maximum(0.0, self.lower - limit) + np.maximum(0.0, self.upper - limit)
        whole = float((self.lower + self.upper)[: self._reach] @ self.counts[: self._reach])
        part = float(beyond[: self._reach] @ self.counts[: self._reach])
        return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0

    def beyond(self, limit: float) -> CutShare:
        """Return what a limit cuts off."""
        inside, maybe = self.upper <= limit, self.lower <= limit
        above = self._sum((~maybe).astype(np.float64), (~inside).astype(np.float64), len(self.counts))
        cut = self._sum(np.maximum(0.0, self.lower - limit), np.maximum(0.0, self.upper - limit), self._reach)
        return CutShare(above.over(self.number).share, cut.over(self.total).share)

    @property
    def _reach(self) -> int:
        return 0 if self.top is None else self.top + 1

    def _sum(self, low: Floats, high: Floats, reach: int) -> Estimate:
        """Return a number that is between two weighted sums of the counts of the first bins.

        The interval's level is split over the last bin that may stand out, which the noise chooses too, over
        the two sides and over the two parts of a quotient.
        """
        tail = (1 - self.level) / (4 * (len(self.counts) + 1))
        low, high, counts = low[:reach], high[:reach], self.counts[:reach]
        lower = float(low @ counts) - tail_bound(low, self.scale, tail, times=self.folded)
        upper = float(high @ counts) + tail_bound(high, self.scale, tail, times=self.folded)
        middle = max(0.0, float((low + high) @ counts) / 2)
        return Estimate(middle, max(0.0, lower), max(0.0, upper))


@lru_cache
def _threshold(scale: float, bins: int, folded: int) -> float:
    """Return the noisy count above which a bin stands out of the noise of all bins."""
    return tail_bound(np.ones(1), scale, BETA / bins, times=folded)
