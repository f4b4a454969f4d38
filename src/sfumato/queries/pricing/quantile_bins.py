"""Quantiles of rows: the bins that values are counted in, and what is released of the noisy trees over them.

A few quantiles of one expression within the same bounds are chosen by rank, more are read off one tree. What
is stored are the bins of the quantiles, and of the ends of their intervals where there are any; counts, noisy
or not, are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
import pyarrow as pa

from sfumato.errors import OptionError
from sfumato.mechanisms.base.rational import ceil_log2, power_of_two
from sfumato.mechanisms.statistics.quantile.binned_quantile_interval import (
    INTERVAL_LEVEL,
    BinnedQuantileInterval,
)
from sfumato.mechanisms.statistics.quantile.count_tree import TreeCounts, TreeShape
from sfumato.mechanisms.statistics.quantile.tree_estimates import NodeNoise, deviation
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution

__all__ = [
    "MAXIMUM_ORDER",
    "MINIMUM_ORDER",
    "QuantileBins",
    "bin_counts",
    "chosen_by_rank",
    "interval_chosen_by_rank",
    "quantile_bins",
]

MINIMUM_ORDER: Final = 0.005
"""The order of the quantile that MIN estimates."""

MAXIMUM_ORDER: Final = 1 - MINIMUM_ORDER
"""The order of the quantile that MAX estimates."""

_MAX_STEPS: Final = (1 << 16) - 1

_DEPTHS: Final = {2: (2, 4), 3: (4, 7), 4: (5, 7)}
"""For each height of a tree, the most levels of choices that err less: beside Laplace, and Gaussian noise."""

_FEW_BINS: Final = 8
_NEAR_MEDIAN: Final = (0.4, 0.6)
_NOT_EXTREME: Final = (0.05, 0.95)


@final
@dataclass(frozen=True, slots=True)
class QuantileBins:
    """The bins of values within bounds: multiples of ``2**exponent`` from ``lower`` to ``upper`` steps."""

    exponent: int
    lower: int
    upper: int

    @property
    def shape(self) -> TreeShape:
        """The tree over the bins."""
        return TreeShape.of(self.upper - self.lower + 1)


def quantile_bins(bounds: tuple[float, float], *, whole: bool) -> QuantileBins:
    """Choose the bins: the finest power of two with at most 2**16 of its multiples within the bounds.

    Parameters
    ----------
    bounds : tuple of two floats
    whole : bool
        Whether values are whole numbers; bins are then no finer than these.

    Raises
    ------
    OptionError
        If no whole number lies within the bounds of whole numbers.

    Examples
    --------
    >>> quantile_bins((0, 120), whole=True)
    QuantileBins(exponent=0, lower=0, upper=120)
    >>> quantile_bins((0, 100), whole=False)
    QuantileBins(exponent=-9, lower=0, upper=51200)
    """
    lower, upper = map(Fraction, bounds)
    if lower == upper and (not whole or lower.denominator == 1):
        odd = lower.numerator & -lower.numerator or 1  # the largest power of two in it
        exponent = odd.bit_length() - lower.denominator.bit_length()
        return QuantileBins(exponent, *[int(lower / power_of_two(exponent))] * 2)
    finest = ceil_log2((upper - lower) / _MAX_STEPS) if lower < upper else 0
    exponent = max(0, finest) if whole else finest
    step = power_of_two(exponent)
    found = QuantileBins(exponent, math.ceil(lower / step), math.floor(upper / step))
    if found.lower > found.upper:
        raise OptionError(
            f"contribution_bounds_per_row must hold a whole number for a column of them, got ({bounds[0]:g}, "
            f"{bounds[1]:g}); widen them"
        )
    return found


def chosen_by_rank(bins: int, orders: Sequence[float], *, gaussian: bool) -> bool:
    """Return whether quantiles are chosen by rank: else they are read off a tree, which then errs less.

    Both err in proportion to the rows of a unit over epsilon, so the quantiles and the bins decide. The error
    of choices grows with the levels on which they are made, each with a part of epsilon, and with the order's
    distance from the median; that of a tree is the same for any number of quantiles, and less where it is
    lower. Measured by ``python -m benchmarks quantiles --grid``.

    Parameters
    ----------
    bins : int
    orders : sequence of float
    gaussian : bool
        Whether the noise of the query is Gaussian: parts of a budget are then larger.

    Examples
    --------
    >>> quartiles, deciles = (0.25, 0.5, 0.75), [k / 10 for k in range(1, 10)]
    >>> [chosen_by_rank(121, orders, gaussian=False) for orders in ([0.9], quartiles, deciles)]
    [True, True, False]
    """
    height, many = TreeShape.of(bins).height, len(orders)
    if not many or bins <= _FEW_BINS:
        return False
    if height == 1:
        low, high = _NOT_EXTREME if gaussian else _NEAR_MEDIAN
        return low <= orders[0] <= high if many == 1 else gaussian and many <= 3
    return many.bit_length() <= _DEPTHS[min(height, max(_DEPTHS))][gaussian]


def interval_chosen_by_rank(bins: int, orders: Sequence[float], *, gaussian: bool) -> bool:
    """Return whether an interval is chosen by rank: else its ends are read off a tree of its own.

    Those of several quantiles never are: each would have a part of epsilon, and a tree serves all. A chosen
    interval goes as far to one side as to the other, so it is for orders that have rows enough on both. Both
    kinds are in proportion to the rows of a unit over epsilon, and that of a tree is about as many ranks out
    as the noise of a border in the middle of a node may be, so order and bins decide. Where the bins fit into
    one level, a rank or two are no matter beside a bin, and a tree's ends need not be as far to both sides.

    Parameters
    ----------
    bins : int
    orders : sequence of float
    gaussian : bool
        Whether the noise of the query is Gaussian.

    Examples
    --------
    >>> quartiles = (0.25, 0.5, 0.75)
    >>> [interval_chosen_by_rank(121, orders, gaussian=False) for orders in ([0.5], [0.005], quartiles)]
    [True, False, False]
    """
    shape, (low, high) = TreeShape.of(bins), _NOT_EXTREME
    if len(orders) != 1 or shape.height == 1 or not low <= orders[0] <= high:
        return False
    (order,) = orders
    range_ = Fraction(2 if gaussian else 1)  # of one choice that costs what a noise of scale 1 does
    chosen = BinnedQuantileInterval(quantile=order, epsilon=range_).depth
    noise: NodeNoise = (
        DiscreteGaussianDistribution(Fraction(math.sqrt(shape.height)))
        if gaussian
        else DiscreteLaplaceDistribution(shape.height)
    )
    weight = shape.branching * (order * (1 - order) + (shape.height - 1) / 6)
    odds = -math.log((1 - INTERVAL_LEVEL) / (2 * shape.height))
    return chosen <= float(deviation(noise, np.array([weight]), np.array([odds]))[0])


def bin_counts(column: pa.ChunkedArray) -> TreeCounts:
    """Return such a measure of some groups as counts of the bins of the groups 0, 1, ..."""
    lists = column.combine_chunks()
    ends = np.asarray(lists.offsets.to_numpy(), dtype=np.int64)
    leaves = lists.flatten()
    return TreeCounts(
        np.repeat(np.arange(len(lists), dtype=np.int64), ends[1:] - ends[:-1]),
        np.asarray(leaves.field("leaf").to_numpy(), dtype=np.int64),
        np.asarray(leaves.field("n").to_numpy(), dtype=np.int64),
    )
