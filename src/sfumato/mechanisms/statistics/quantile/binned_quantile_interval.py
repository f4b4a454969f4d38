"""An interval for a quantile of rows that are counted by bin: how far it goes to both sides is chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.statistics.quantile.bin_sampling import finest_target
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism, BinnedRows, rows_by_group
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.sampling.choice import choose

__all__ = ["INTERVAL_LEVEL", "BinnedQuantileInterval", "CenteredRows"]

INTERVAL_LEVEL: Final = 0.95
"""The coverage of the intervals that are chosen."""

_WIDER: Final = Fraction(5, 4)
_FAVOR: Final = Fraction(3, 10)
_LIGHTEST: Final = 16
_SLACK: Final = 1 + 1e-9  # outweighs the rounding of floats
_FARTHEST: Final = 1 << 61

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class CenteredRows:
    """The rows of many groups by bin, raw data, and a public bin of each group.

    Parameters
    ----------
    rows : BinnedRows
    centers : int64 array of shape (groups,)
        The bins that intervals lie around: released quantiles, or anything else that is public.
    """

    rows: BinnedRows
    centers: Integers


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedQuantileInterval(BinMechanism):
    r"""An interval for a quantile of the rows of each group, chosen around a public bin.

    Parameters
    ----------
    quantile : int, float or Fraction
        From 0 to 1; taken as the nearest fraction with a denominator of at most 2**20.
    epsilon, rows, groups
        As in `BinnedQuantiles`: epsilon is the range of the one choice in one group.

    Notes
    -----
    *The choice.* The candidates are intervals :math:`I_0 \subset I_1 \subset \dots \subset I_J` around the
    public bin, each a quarter wider than the one before; the last one is the whole range. With p the
    quantile, and n rows in the group, the *depth* of an interval from L to U is the smaller of :math:`p n`
    less the rows below L, and the rows up to U less :math:`p n`; a side that ends at the end of the range
    does not count, and the whole range is as deep as can be. Depths do not fall from one candidate to the
    next. The gap of a candidate is by how much a target T lies outside of the depths of the one before it and
    of its own. :math:`I_j` is chosen with probability in proportion to :math:`w_j \exp(-\epsilon\,
    \mathrm{gap}_j / (2 k \mu))`, where k is the most rows of a unit, :math:`\mu = \max(p, 1-p)`, and public
    weights :math:`w_j \ge \frac{3}{10} \sum_{i<j} w_i`.

    *Guarantee.* Whatever the centers, the loss is that of one choice of bounded range epsilon in each of so
    many groups (`sfumato.privacy.Exponential`). Proof: one row more or less moves each depth, and so each
    gap, by at most :math:`\mu`, and which sides count is public. So k rows move the log-weights of two
    candidates by at most epsilon against one another. The sum over groups is that of `BinnedQuantiles`. A
    center that was released of the same rows makes it adaptive composition.

    *Coverage.* In a group of n > 0 rows, the rows with the numbers :math:`\lfloor p(n-1) \rfloor` and
    :math:`\lceil p(n-1) \rceil` from 0 are both within the interval with probability at least 0.95, whatever
    the rows and the center. Proof: an interval of depth :math:`\mu` or more holds both. Let :math:`I_m` be
    the first whose depth is at least T: its gap is 0. Intervals that do not hold both come before it, and
    have gaps above :math:`T - \mu`, so together they weigh at most :math:`r = \frac{10}{3} w_m e^{-(T - \mu)
    / b}`, :math:`b = 2 k \mu / \epsilon`: one of them is chosen with probability at most :math:`r / (w_m +
    r)`, which is 0.05 for :math:`T = \mu + b \log(19 \cdot 10/3)`. Weights that rise make T free of the
    number of bins: even ones had its logarithm.

    Examples
    --------
    >>> from sfumato.mechanisms.statistics.quantile.count_tree import TreeCounts
    >>> counts = TreeCounts(np.zeros(100, np.int64), np.arange(100), np.full(100, 20))
    >>> around = CenteredRows(BinnedRows(counts, bins=121, groups=1), centers=np.array([49]))
    >>> BinnedQuantileInterval(quantile=0.5, epsilon=0.5).release(around, rng=3).value.tolist()
    [[48, 50]]
    """

    quantile: Number = Fraction(1, 2)

    def __post_init__(self) -> None:
        BinMechanism.__post_init__(self)
        remedy = "pass 0.5 for the median"
        exact = Fraction(0) if self.quantile == 0 else _check.fraction("quantile", self.quantile, remedy)
        if exact > 1:
            _check.refuse("quantile", "be from 0 to 1", self.quantile, remedy)
        object.__setattr__(self, "quantile", exact.limit_denominator(finest_target(1)))

    @property
    def choices(self) -> int:
        """One."""
        return 1

    @property
    def words(self) -> str:
        """What is chosen."""
        return f"an interval for the quantile of order {float(self.quantile):g}"

    @property
    def remark(self) -> str:
        """What the interval holds."""
        return f"It holds the quantile of the bounded rows in at least {100 * INTERVAL_LEVEL:g} % of answers."

    @property
    def depth(self) -> float:
        """How many ranks beyond the quantile's both ends aim at."""
        order = Fraction(self.quantile)
        farthest = max(order, 1 - order)
        odds = INTERVAL_LEVEL / (1 - INTERVAL_LEVEL) / float(_FAVOR)
        return float(farthest) + float(self.scale * farthest) * math.log(odds * _SLACK) * _SLACK

    def release(self, value: CenteredRows, rng: Rng = None) -> Release:
        """Release the intervals of all groups.

        Parameters
        ----------
        value : CenteredRows
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an int64 array of shape (groups, 2): the first bin and the last.
        """
        source, bins = random_source(rng), value.rows.bins
        away, weights = _candidates(bins)
        ends = np.zeros((value.rows.groups, 2), np.int64)
        groups = zip(value.centers.tolist(), rows_by_group(value.rows), strict=True)
        for group, (center, (leaves, counts)) in enumerate(groups):
            low, high = np.maximum(0, center - away), np.minimum(bins - 1, center + away)
            chosen = self._choice(self._depths(leaves, counts, low, high, bins - 1), weights, source)
            ends[group] = low[chosen], high[chosen]
        return self._release_as(Release, ends, source)

    def _depths(
        self, leaves: Integers, counts: Integers, low: Integers, high: Integers, last: int
    ) -> NDArray[Any]:
        """Return the depths in units of one over the quantile's denominator, at most 2^61."""
        a, b = Fraction(self.quantile).numerator, Fraction(self.quantile).denominator
        wide = b * float(counts.sum(dtype=np.float64)) >= _FARTHEST
        upto = np.cumsum(np.append(0, counts).astype(object if wide else np.int64))
        target = a * upto[-1]
        below = target - b * upto[np.searchsorted(leaves, low, side="left")]
        above = b * upto[np.searchsorted(leaves, high, side="right")] - target
        below[low == 0] = above[high == last] = _FARTHEST
        return np.asarray(np.clip(np.minimum(below, above), -_FARTHEST, _FARTHEST))

    def _choice(self, depths: NDArray[Any], weights: Integers, source: RandomSource) -> int:
        order = Fraction(self.quantile)
        aim = min(_FARTHEST, math.ceil(self.depth * order.denominator * _SLACK))
        before = np.append(-_FARTHEST, depths[:-1])
        gaps = np.maximum(0, np.maximum(aim - depths, before - aim))
        most = max(order.numerator, order.denominator - order.numerator)
        rate = drawn_epsilon(self.epsilon) / (2 * self.rows * most)
        return choose(np.asarray(gaps, dtype=np.int64), rate, multiplicity=weights, rng=source)


@cache
def _candidates(bins: int) -> tuple[Integers, Integers]:
    """Return by how many bins each candidate goes to either side, the last by all, and the public weights."""
    away = [0]
    while away[-1] < bins - 1:
        away.append(min(bins - 1, max(away[-1] + 1, math.ceil(_WIDER * away[-1]))))
    weights: list[int] = []
    for _ in away:
        weights.append(max(_LIGHTEST, math.ceil(_FAVOR * sum(weights))))
    return np.array(away, dtype=np.int64), np.array(weights, dtype=np.int64)
