"""Quantiles of rows: the bins that values are counted in, and what is released of the noisy trees over them.

All quantiles of one expression within the same bounds are read off one tree. What is kept are the bins of the
quantiles and of the ends of their intervals; counts, noisy or not, are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import OptionError
from sfumato.mechanisms.base.rational import ceil_log2, power_of_two
from sfumato.mechanisms.statistics.quantile.count_tree import TreeShape
from sfumato.mechanisms.statistics.quantile.tree_estimates import LEVELS, estimate_quantiles
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.randomness.source import RandomSource
from sfumato.queries.engines.leaves import leaf_counts
from sfumato.queries.plan import Measure

__all__ = ["LARGEST", "LEAST", "LeafGrid", "leaf_grid", "noisy_quantiles", "quantile_ends"]

LEAST: Final = 0.005
"""The order of the quantile that MIN estimates."""

LARGEST: Final = 1 - LEAST
"""The order of the quantile that MAX estimates."""

_MOST_STEPS: Final = (1 << 16) - 1


@final
@dataclass(frozen=True, slots=True)
class LeafGrid:
    """The bins of values within bounds: multiples of ``2**exponent`` from ``lower`` to ``upper`` steps."""

    exponent: int
    lower: int
    upper: int

    @property
    def shape(self) -> TreeShape:
        """The tree over the bins."""
        return TreeShape.of(self.upper - self.lower + 1)


def leaf_grid(bounds: tuple[float, float], *, whole: bool) -> LeafGrid:
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
    >>> leaf_grid((0, 120), whole=True)
    LeafGrid(exponent=0, lower=0, upper=120)
    >>> leaf_grid((0, 100), whole=False)
    LeafGrid(exponent=-9, lower=0, upper=51200)
    """
    lower, upper = map(Fraction, bounds)
    if lower == upper and (not whole or lower.denominator == 1):
        odd = lower.numerator & -lower.numerator or 1  # the largest power of two in it
        exponent = odd.bit_length() - lower.denominator.bit_length()
        return LeafGrid(exponent, *[int(lower / power_of_two(exponent))] * 2)
    finest = ceil_log2((upper - lower) / _MOST_STEPS) if lower < upper else 0
    exponent = max(0, finest) if whole else finest
    step = power_of_two(exponent)
    found = LeafGrid(exponent, math.ceil(lower / step), math.floor(upper / step))
    if found.lower > found.upper:
        raise OptionError(
            f"contribution_bounds_per_row must hold a whole number for a column of them, got ({bounds[0]:g}, "
            f"{bounds[1]:g}); widen them"
        )
    return found


def noisy_quantiles(
    column: pa.ChunkedArray,
    measure: Measure,
    law: SymmetricDistribution,
    orders: Sequence[float],
    source: RandomSource,
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Release quantiles of groups, and their intervals, in steps of the measure's grid.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        The exact counts by bin of the groups that are shown.
    measure : Measure
    law : DiscreteLaplaceDistribution or DiscreteGaussianDistribution
        Of the noise of each node: that of the mechanism that is charged for the measure.
    orders : sequence of float
        Rising, from 0 to 1.
    source : RandomSource

    Returns
    -------
    tuple of pyarrow.Array
        One list for each group: the quantiles; the lower ends of their intervals, level by level for each of
        them; the upper ends.
    """
    lower, upper = _row_bounds(measure)
    if not isinstance(law, DiscreteLaplaceDistribution | DiscreteGaussianDistribution):
        _check.refuse("law", "be discrete Laplace or Gaussian", law)
    found = estimate_quantiles(
        TreeShape.of(upper - lower + 1),
        law,
        leaf_counts(column),
        np.asarray(orders, dtype=np.float64),
        source,
        groups=len(column),
    )
    numbers = (found.leaves, found.lower, found.upper)
    quantiles, low, high = (_lists(lower + each) for each in numbers)
    return quantiles, low, high


def _row_bounds(measure: Measure) -> tuple[int, int]:
    if measure.row_lower is None or measure.row_upper is None:
        _check.refuse("measure", "have bounds of rows", measure, "price it as LEAVES")
    return measure.row_lower, measure.row_upper


def _lists(rows: NDArray[np.int64]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), math.prod(rows.shape[1:]))


def quantile_ends(
    lower: NDArray[Any], upper: NDArray[Any], bounds: tuple[float, float], level: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the ends of intervals: those of the least level that is high enough, or else the bounds.

    Parameters
    ----------
    lower, upper : arrays whose last axis is that of the levels
    bounds : tuple of two numbers
    level : float
    """
    place = next((place for place, found in enumerate(LEVELS) if found >= level), None)
    if place is None:
        return np.full_like(lower[..., 0], bounds[0]), np.full_like(upper[..., 0], bounds[1])
    return lower[..., place], upper[..., place]
