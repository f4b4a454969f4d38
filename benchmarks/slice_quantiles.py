"""SliceQuantiles: a median of the rows around each noisy rank, in favorable circumstances.

Imola, Boninsegna, Keller, Aamand, Roy Chowdhury, Pagh, "Differentially private quantiles with smaller error"
(arXiv 2505.13662). The ranks get the noise of a counter of m steps, so that a row more shifts those above it
by one. Then the rows around each noisy rank, as many on either side as an exponential mechanism needs to stay
among them, are disjoint slices of which one changes, and the median of each is chosen. Half of the budget
goes to either part. Where the slices overlap or leave the rows, the mechanism answers at random.

It is favored here: the number of rows is public, and the coin that hides whether slices overlap is never
heads. Rows are in bins, each evenly over its own. All noise is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.statistics.quantile.bin_sampling import BinnedPart, BinSampler
from sfumato.mechanisms.statistics.quantile.count_tree import TreeShape
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["slice_quantiles"]

_MISSED = 0.001
"""The probability with which some choice may leave its slice: then it may be anywhere."""

Integers = NDArray[np.int64]


def slice_quantiles(
    rows: Integers,
    bins: int,
    orders: Sequence[float],
    epsilon: float,
    source: RandomSource,
    *,
    runs: int,
    gaussian: bool,
) -> Integers | None:
    """Return the bins of quantiles of sorted rows, of shape (runs, quantiles); None if a run is at random."""
    many = len(orders)
    part = 2 * epsilon / math.sqrt(2) if gaussian else epsilon / 2
    around = max(1, math.ceil(2 / part * math.log(many * bins / _MISSED) - 1))
    targets = np.floor(np.array(orders) * (len(rows) - 1) + 0.5).astype(np.int64)
    ranks = targets + _counter_noise(many, epsilon, runs, source, gaussian=gaussian)
    apart = (np.diff(ranks, axis=1) > 2 * around).all(axis=1)
    inside = (ranks[:, 0] >= around) & (ranks[:, -1] < len(rows) - around)
    if not (apart & inside).all():
        return None
    found = np.zeros_like(ranks)
    sampler = BinSampler(Fraction(1, 2), Fraction(part).limit_denominator(1 << 30) / 8)
    for run in range(runs):
        low = 0
        for number, rank in enumerate(ranks[run]):
            leaves, counts = np.unique(rows[rank - around : rank + around + 1], return_counts=True)
            counts = counts[leaves >= low]
            leaves = leaves[leaves >= low]
            low = sampler.draw_bin(BinnedPart(leaves, counts, 1, 2 * low, 2 * bins), source)
            found[run, number] = low
    return found


def _counter_noise(many: int, epsilon: float, runs: int, source: RandomSource, *, gaussian: bool) -> Integers:
    """Return the noise of sums of the first 1, 2, ... of so many numbers, of which one moves by one."""
    shape = TreeShape.of(many)
    distribution = (
        DiscreteGaussianDistribution(Fraction(math.sqrt(2 * shape.height) / epsilon))
        if gaussian
        else DiscreteLaplaceDistribution(Fraction(2 * shape.height / epsilon))
    )
    total = np.zeros((runs, many), np.int64)
    upto = np.arange(1, many + 1)
    for level in range(1, shape.height + 1):
        width = shape.width(level)
        nodes = distribution.sample((runs, shape.span // width), source)
        sums = np.concatenate([np.zeros((runs, 1), np.int64), np.cumsum(nodes, axis=1)], axis=1)
        # the part that is counted on the levels above, of which there are none above the first
        above = upto // (width * shape.branching) * shape.branching if level > 1 else np.zeros_like(upto)
        total += sums[:, upto // width] - sums[:, above]
    return total
