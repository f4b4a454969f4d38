"""Quantiles of noisy trees over bins, and their intervals.

All quantiles of one expression within the same bounds are read off one tree. What is stored are the bins of
the quantiles and of the ends of their intervals; counts, noisy or not, are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.statistics.quantile.count_tree import TreeShape
from sfumato.mechanisms.statistics.quantile.tree_estimates import LEVELS, estimate_quantiles
from sfumato.numerics.distributions.discrete import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    SymmetricDistribution,
)
from sfumato.numerics.randomness.source import RandomSource
from sfumato.queries.plan.measure import BinCounts, Measure
from sfumato.queries.pricing.quantile_bins import bin_counts

__all__ = ["noisy_quantiles", "quantile_ends"]


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
    if not isinstance(measure.value, BinCounts):
        _check.refuse("measure", "count rows by bin", measure, "price it as the bins of a quantile")
    lower, upper = measure.value.column.lower, measure.value.column.upper
    if not isinstance(law, DiscreteLaplaceDistribution | DiscreteGaussianDistribution):
        _check.refuse("law", "be discrete Laplace or Gaussian", law, "use noise of one of the two")
    found = estimate_quantiles(
        TreeShape.of(upper - lower + 1),
        law,
        bin_counts(column),
        np.asarray(orders, dtype=np.float64),
        source,
        groups=len(column),
    )
    numbers = (found.leaves, found.lower, found.upper)
    quantiles, low, high = (_lists(lower + each) for each in numbers)
    return quantiles, low, high


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
    index = next((index for index, found in enumerate(LEVELS) if found >= level), None)
    if index is None:
        return np.full_like(lower[..., 0], bounds[0]), np.full_like(upper[..., 0], bounds[1])
    return lower[..., index], upper[..., index]
