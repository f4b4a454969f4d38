"""Estimates quantiles and their intervals from noisy trees of counts, as post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.statistics.quantile.count_tree import (
    CountTree,
    NoisyNodes,
    TreeCounts,
    TreeShape,
)
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from sfumato.numerics.randomness.source import RandomSource

__all__ = [
    "LEVELS",
    "NodeNoise",
    "TreeQuantiles",
    "deviation",
    "estimate_quantiles",
    "leaf_ends",
    "quantile_leaves",
    "rank_half_width",
]

LEVELS: Final = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Levels of the intervals that are found with a quantile."""

NodeNoise = DiscreteLaplaceDistribution | DiscreteGaussianDistribution

_PATHS: Final = 1 << 15  # that are walked at once: some tens of megabytes
_SLACK: Final = 1 + 1e-9  # outweighs the rounding of floats

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class TreeQuantiles:
    """Quantiles of groups as bins, all of them noisy.

    Parameters
    ----------
    leaves : int64 array of shape (groups, quantiles)
        Not falling along a row whose quantiles are in order.
    lower, upper : int64 arrays of shape (groups, quantiles, levels)
        The bins at the ends of the intervals of ``LEVELS``.
    """

    leaves: Integers
    lower: Integers
    upper: Integers


def estimate_quantiles(
    shape: TreeShape,
    distribution: NodeNoise,
    counts: TreeCounts,
    quantiles: Floats,
    source: RandomSource,
    *,
    groups: int,
) -> TreeQuantiles:
    """Release quantiles of many groups through one noisy tree for each, with intervals.

    Parameters
    ----------
    shape : TreeShape
    distribution : DiscreteLaplaceDistribution or DiscreteGaussianDistribution
        Of the noise of each node.
    counts : TreeCounts
        What the groups 0, 1, ... have in their bins.
    quantiles : float array of shape (m,)
        From 0 to 1.
    source : RandomSource
    groups : int
        How many groups there are, those without counts included.

    Returns
    -------
    TreeQuantiles
    """
    many = len(quantiles)
    leaves = np.zeros((groups, many), np.int64)
    ends = np.zeros((2, groups, many, len(LEVELS)), np.int64)
    at_once = max(1, _PATHS // (many * len(LEVELS)))
    order = np.argsort(counts.groups, kind="stable")
    of = counts.groups[order]
    for first in range(0, groups, at_once):
        last = min(groups, first + at_once)
        part = order[np.searchsorted(of, first) : np.searchsorted(of, last)]
        some = TreeCounts(counts.groups[part] - first, counts.leaves[part], counts.counts[part])
        tree = CountTree(shape, distribution, some, source)
        group = np.repeat(np.arange(last - first), many)
        wanted = np.tile(quantiles, last - first)
        leaves[first:last] = quantile_leaves(tree, group, wanted).reshape(-1, many)
        for side, end in enumerate(leaf_ends(tree, distribution, group, wanted)):
            ends[side, first:last] = end.reshape(-1, many, len(LEVELS))
    return TreeQuantiles(
        leaves, np.minimum(ends[0], leaves[..., None]), np.maximum(ends[1], leaves[..., None])
    )


def quantile_leaves(tree: NoisyNodes, groups: Integers, quantiles: Floats) -> Integers:
    """Walk down to the bin of each quantile: one number for each pair of group and quantile.

    Notes
    -----
    A node's noisy counts are replaced by the nearest that are not negative and add up to what its own count
    was found to be (the root's: the sum of its children, or 0): Euclidean projection to a simplex, which both
    makes the levels consistent and empties what holds nothing but noise. The walk goes to the child in which
    the wanted share of the count lies, and goes on with the share within it; a node without anything is taken
    as filled evenly. For two quantiles of one group the larger is nowhere to the left.
    """
    shape = tree.shape
    node, share, total = groups.astype(np.int64), quantiles.astype(np.float64), np.zeros(len(groups))
    rows = np.arange(len(groups))
    for level in range(shape.height):
        noisy = tree.children(level, node).astype(np.float64)
        filled = shape.filled(level, node)
        if level == 0:
            total = np.maximum(0.0, noisy.sum(axis=1))
        there = np.arange(shape.branching) < filled[:, None]
        counts = _projected(noisy, total, there)
        even = ~(counts.sum(axis=1) > 0)
        counts[even] = _bins(shape, level, node[even])
        up_to = np.cumsum(counts, axis=1)
        rank = share * up_to[:, -1]
        reached = (up_to >= rank[:, None]) & (counts > 0)
        at = np.where(reached.any(axis=1), reached.argmax(axis=1), _last(counts > 0))
        here = counts[rows, at]
        before = np.where(at > 0, up_to[rows, at - 1], 0.0)
        share = np.clip((rank - before) / here, 0.0, 1.0)
        total = np.where(even, 0.0, here)
        node = node * shape.branching + at
    return node % shape.span


def _bins(shape: TreeShape, level: int, nodes: Integers) -> Floats:
    """Return how many bins each child of the nodes has: what an even filling is in proportion to."""
    first = (nodes % shape.branching**level) * shape.width(level)
    child = first[:, None] + np.arange(shape.branching) * shape.width(level + 1)
    bins: Floats = np.clip(shape.leaves - child, 0, shape.width(level + 1)).astype(np.float64)
    return bins


def _last(there: NDArray[np.bool_]) -> Integers:
    last: Integers = there.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
    return last


def _projected(noisy: Floats, total: Floats, there: NDArray[np.bool_]) -> Floats:
    """Return the nearest non-negative rows of given sums, zero where no bins are."""
    low = np.where(there, noisy, -np.inf)
    falling = -np.sort(-low, axis=1)
    excess = np.cumsum(np.where(np.isfinite(falling), falling, 0.0), axis=1) - total[:, None]
    level = excess / np.arange(1, noisy.shape[1] + 1)
    retained = _last(falling > level)  # of the largest, those that stay above what is taken off
    found: Floats = np.maximum(0.0, low - level[np.arange(len(noisy)), retained][:, None])
    found[total <= 0] = 0.0
    return found


def leaf_ends(
    tree: NoisyNodes, distribution: NodeNoise, groups: Integers, quantiles: Floats
) -> tuple[Integers, Integers]:
    r"""Return the bins of the intervals' ends for each pair of group and quantile, a column for each level.

    Notes
    -----
    Guarantee: of a group with n > 0 numbers, the order statistics that lie at
    :math:`\lfloor p (n - 1) \rfloor` and :math:`\lceil p (n - 1) \rceil` (from 0) are both within the ends
    with probability at least the level. Proof: let D of a border be the count below it less p n. At the upper
    border of each node above the bin of the first one D is at least -1, at the lower border of each above
    that of the second at most 1. D is estimated without bias by a linear form of the noise: between the
    borders of a node it is that of the line between them, plus what the children's noisy counts depart from
    their mean (least squares of the counts seen above). A border's form is the same however it is reached, so
    for each level and end there is one test that must not fail, of a border that only the data determines:
    its chance is bounded by (1 - level) / (2 height). The walk to the left takes the first child whose upper
    border passes its test (the last child's is the node's own, which did), so it ends at or before the bin;
    the other walk is its mirror image.

    The bound is Chernoff's, with V the sum of the squared weights of the form, which are at most 1. A
    discrete Gaussian is sub-Gaussian with its parameter (Canonne, Kamath, Steinke 2020). A discrete Laplace X
    of scale s has :math:`E e^{tX} \le 1 / (1 - s^2 t^2)`, for (cosh t - 1) / t^2 rises in t; so with u = s t
    the logarithm for the form is at most :math:`-V \log(1 - u^2)`, for it is convex in a squared weight; each
    u below 1 gives a bound.
    """
    odds = np.tile([-math.log((1.0 - level) / (2 * tree.shape.height)) for level in LEVELS], len(groups))
    of, wanted = np.repeat(groups, len(LEVELS)), np.repeat(quantiles, len(LEVELS))
    lower, upper = (_end(tree, distribution, of, wanted, odds=odds, side=side) for side in (-1, 1))
    return lower.reshape(-1, len(LEVELS)), upper.reshape(-1, len(LEVELS))


def rank_half_width(
    shape: TreeShape, distribution: NodeNoise, quantiles: Sequence[float], level: float
) -> float:
    r"""Return by how many ranks the noise of a tree moves the worst of some quantiles.

    Parameters
    ----------
    shape : TreeShape
    distribution : NodeNoise
        Of the noise on every node.
    quantiles : sequence of float
    level : float

    Returns
    -------
    float
        What the noise of a border exceeds at none of the borders that a walk tests, with probability at
        least the level.

    Notes
    -----
    The count below a border, less p n, is estimated by a linear form of the noise. With h levels and b
    children the sum of its squared weights is at most :math:`b (\max(p, 1 - p)^2 + (h - 1) / 4)`. The tests
    of a walk, and their bound, are those of `leaf_ends`; a quantile itself is read off counts that were made
    consistent, which is closer.

    Examples
    --------
    >>> rank_half_width(TreeShape.of(65_536), DiscreteLaplaceDistribution(8), [0.5], 0.95)
    154.5...
    """
    farthest = max(max(order, 1 - order) for order in quantiles)
    weight = np.array([shape.branching * (farthest**2 + (shape.height - 1) / 4)])
    return float(deviation(distribution, weight, np.array([-math.log((1 - level) / (2 * shape.height))]))[0])


def _end(
    tree: NoisyNodes, distribution: NodeNoise, groups: Integers, quantiles: Floats, *, odds: Floats, side: int
) -> Integers:
    """Walk to the lower (-1) or upper (1) end; ``odds`` is minus the logarithm of the chance of each test."""
    shape, rows, p = tree.shape, np.arange(len(groups)), quantiles.astype(np.float64)
    node, ends, variances = groups.astype(np.int64), (p, p), (p, p, p)
    for level in range(shape.height):
        noisy, filled = tree.children(level, node).astype(np.float64), shape.filled(level, node)
        if level == 0:
            total, many = noisy.sum(axis=1), filled.astype(np.float64)
            ends = -p * total, (1 - p) * total
            variances = many * p * p, many * (1 - p) ** 2, -many * p * (1 - p)
        indices = np.minimum(np.arange(shape.branching + 1), filled[:, None])
        part = indices / filled[:, None]
        below = np.concatenate([np.zeros((len(node), 1)), np.cumsum(noisy, axis=1)], axis=1)
        border = _between(part, *ends) + below - part * below[:, -1:]
        # Never below 0: at a node's ends it is what was found above, and inside it at least 1/2 is added.
        weights = _variance(part, part, *variances) + indices * (1 - part)
        far = deviation(distribution, weights, odds[:, None]) * _SLACK + 1
        if side < 0:
            passed = border[:, 1:] >= -far[:, 1:]
            passed[rows, filled - 1] = True
            at = passed.argmax(axis=1)
        else:
            passed = border[:, :-1] <= far[:, :-1]
            passed[:, 0] = True
            at = _last(passed & (np.arange(shape.branching) < filled[:, None]))
        left, right = part[rows, at][:, None], part[rows, at + 1][:, None]
        both = _variance(left, right, *variances) + (indices[rows, at] * (1 - right[:, 0]))[:, None]
        variances = weights[rows, at], weights[rows, at + 1], both[:, 0]
        ends = border[rows, at], border[rows, at + 1]
        node = node * shape.branching + at
    return node % shape.span


def _between(part: Floats, start: Floats, end: Floats) -> Floats:
    return (1 - part) * start[:, None] + part * end[:, None]


def _variance(one: Floats, other: Floats, start: Floats, end: Floats, both: Floats) -> Floats:
    """Return the covariance of two points of a line, from the variances and the covariance of its ends."""
    mixed = one * (1 - other) + other * (1 - one)
    return (1 - one) * (1 - other) * start[:, None] + one * other * end[:, None] + mixed * both[:, None]


def deviation(distribution: NodeNoise, weights: Floats, odds: Floats) -> Floats:
    """Return what a weighted sum of noise exceeds with a chance of at most exp(-odds).

    Sums are known by their squared weights, added up.
    """
    if isinstance(distribution, DiscreteGaussianDistribution):
        return np.asarray(float(distribution.sigma) * np.sqrt(2 * weights * odds))
    # u^2 = odds / (odds + V): within a hundredth of the best u
    some = np.maximum(weights, 1e-12)
    bounds = (odds + some * np.log1p(odds / some)) * np.sqrt(1 + some / odds)
    return np.asarray(float(distribution.scale) * bounds)
