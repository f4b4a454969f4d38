"""An interval for a quantile of rows that are counted by bin: two outer ranks, each chosen by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.statistics.quantile.bin_sampling import BinnedPart, BinSampler, finest_target
from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism, BinnedRows, rows_by_group
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["ENDS_LEVEL", "BinnedQuantileEnds"]

ENDS_LEVEL: Final = 0.95
"""The coverage of the intervals that are chosen."""

_SLACK: Final = 1 + 1e-9  # outweighs the rounding of floats


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedQuantileEnds(BinMechanism):
    r"""The ends of an interval for a quantile of the rows of each group, chosen among public bins.

    Parameters
    ----------
    quantile : int, float or Fraction
        From 0 to 1; taken as the nearest fraction with a denominator of at most 2**20.
    epsilon, rows, groups
        As in `BinnedQuantiles`: epsilon is the range of the choice of one end in one group.

    Notes
    -----
    Guarantee: the loss is that of ``2 * groups`` choices of bounded range epsilon, as in `BinnedQuantiles`.

    *Coverage.* In a group of n > 0 rows, the rows with the numbers :math:`\lfloor p(n-1) \rfloor` and
    :math:`\lceil p(n-1) \rceil` from 0 are both within the ends with probability at least 0.95, whatever the
    rows. Proof: the lower end is chosen for the target t + 1/2 ranks below that of the quantile, with
    :math:`t = b \log(2c/0.05)`, c bins, and b the rows for a factor of e. Of a bin above the first of the two
    rows the ranks are more than t above the target, so it weighs less than :math:`e^{-t/b}`; some candidate
    has the target's rank and weighs 1: a bin, or where the target is below all rows, the candidate beyond the
    bins, which stands for the lower bound. So the end is too high with probability at most :math:`c e^{-t/b}
    = 0.025`. The upper end is its mirror image.

    Examples
    --------
    >>> from sfumato.mechanisms.statistics.quantile.count_tree import TreeCounts
    >>> counts = TreeCounts(np.zeros(100, np.int64), np.arange(100), np.full(100, 20))
    >>> ends = BinnedQuantileEnds(quantile=0.5, epsilon=0.5)
    >>> ends.release(BinnedRows(counts, bins=121, groups=1), rng=3).value.tolist()
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
        """The two ends."""
        return 2

    @property
    def words(self) -> str:
        """What is chosen."""
        return f"the ends of an interval for the quantile of order {float(self.quantile):g}"

    @property
    def remark(self) -> str:
        """What the ends hold."""
        return f"They hold the quantile of the bounded rows in at least {100 * ENDS_LEVEL:g} % of answers."

    def ranks_out(self, bins: int) -> float:
        """Return by how many ranks the targets of the ends are away from the quantile's.

        Parameters
        ----------
        bins : int
        """
        order = Fraction(self.quantile)
        scale = float(self.scale * max(order, 1 - order)) * _SLACK
        return scale * math.log(2 * bins / (1 - ENDS_LEVEL)) * _SLACK + 0.5

    def release(self, value: BinnedRows, rng: Rng = None) -> Release:
        """Release the ends in all groups.

        Parameters
        ----------
        value : BinnedRows
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an int64 array of shape (groups, 2): bins, the lower one not above the upper one.
        """
        source, order = random_source(rng), Fraction(self.quantile)
        away = math.ceil(2 * self.ranks_out(value.bins))
        rate = Fraction(self.epsilon) / (
            4 * max(order.numerator, order.denominator - order.numerator) * self.rows
        )
        ends = np.zeros((value.groups, 2), np.int64)
        samplers = [BinSampler(order, rate, offset=side * away, beyond=side) for side in (-1, 1)]
        for group, (leaves, counts) in enumerate(rows_by_group(value)):
            part = BinnedPart(leaves, counts, 1, 0, 2 * value.bins)
            ends[group] = [sampler.draw_bin(part, source) for sampler in samplers]
        return self._release_as(Release, np.sort(np.clip(ends, 0, value.bins - 1), axis=1), source)
