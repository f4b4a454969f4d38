"""The variances of ranges that are estimated from a whole tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from sfumato.local.device.domains.tree import Shape
from sfumato.local.frequency.variance import Array
from sfumato.local.ranges.variance import Places, SummedErrorModel, held_parts, nodes_met

__all__ = ["TreeErrorModel", "alphas_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeErrorModel(SummedErrorModel):
    r"""Of a tree of which every level was asked, made consistent by weighted least squares.

    Attributes
    ----------
    alphas : tuple of float
        How much a node's own estimate counts against what its children say, for each level.

    Notes
    -----
    *The weights of nodes' estimates.* Let :math:`z_v = \alpha_v y_v + (1 - \alpha_v) \sum_c z_c` be what a
    node's subtree estimates of it, and :math:`h_c = z_c + (h_v - \sum_c z_c) / k` the final value of a child
    of k (see `sfumato.local.ranges.consistency`). For a range let :math:`H_v` be 1 or 0 for its leaves and
    the others, and the mean of the children's above. Then the weight of :math:`z_c` is :math:`Z_c = H_c - H_v
    + (1 - \alpha_v) Z_v`, with 0 at the root, and that of :math:`y_c` is :math:`\alpha_c Z_c`. So only the
    nodes that meet an end of the range have weights that differ from their siblings': a level's nodes fall
    into a few runs with one weight each.
    """

    alphas: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        levels = zip(self.moments, range(1, self.shape.levels + 1), strict=True)
        alone = [moments.even(self.shape.nodes(level)) for moments, level in levels]
        object.__setattr__(self, "alphas", alphas_of(self.shape, alone, self.reports))

    def _sums(self, first: Places, last: Places, cumulative: Array) -> Array:
        shape, alphas = self.shape, (1.0, *self.alphas)
        held = held_parts(shape, first, last)
        sums = np.zeros((shape.levels, 4, len(first)))
        left = right = np.zeros(len(first))
        below = _Below(shape, len(first))
        for level in range(1, shape.levels + 1):
            nodes, k = shape.nodes(level), shape.branching
            (above, beside), (one, other) = (
                nodes_met(shape, level - 1, first, last),
                nodes_met(shape, level, first, last),
            )
            carried = (1 - alphas[level - 1]) if level > 1 else 0.0
            below.descend(level, carried)
            outer = carried * left - held[level - 1][0], carried * right - held[level - 1][1]
            left, right = held[level][0] + outer[0], held[level][1] + outer[1]
            stop = np.where(above == beside, other, np.minimum((above + 1) * k, nodes))
            start = np.where(above == beside, other, beside * k)
            runs = (
                (above * k, one, outer[0]),
                (one + 1, stop, outer[0] + 1),
                (start, other, outer[1] + 1),
                (other + 1, np.minimum((beside + 1) * k, nodes), outer[1]),
            )
            for low, high, weight in runs:
                below.add(level, low, np.maximum(low, high), weight, cumulative)
            met = _run(shape, level, (one, one + 1), left, cumulative)
            met += _run(shape, level, (other, other + (other > one)), right, cumulative)
            own = alphas[level]
            sums[level - 1] = np.array([own**2, own**2, own, own])[:, None] * (below.sums + met)
        return sums


class _Below:
    r"""The nodes of a level that do not meet an end of a range, and what z of them weighs.

    Notes
    -----
    A child has :math:`1 - \alpha` times its parent's weight. The shares of children add up to their parent's,
    and their number to k times the parents', less what the last node lacks.
    """

    __slots__ = ("_last", "_shape", "sums")

    def __init__(self, shape: Shape, ranges: int) -> None:
        self._shape, self._last, self.sums = shape, np.zeros(ranges), np.zeros((4, ranges))

    def descend(self, level: int, carried: float) -> None:
        """Go from the level above to one."""
        k = self._shape.branching
        lacking = k * self._shape.nodes(level - 1) - self._shape.nodes(level)
        self.sums[0] = carried**2 * (k * self.sums[0] - lacking * self._last**2)
        self.sums[1] *= carried**2
        self.sums[2] = carried * (k * self.sums[2] - lacking * self._last)
        self.sums[3] *= carried
        self._last = carried * self._last

    def add(self, level: int, low: Places, high: Places, weight: Array, cumulative: Array) -> None:
        """Add runs of nodes that have the same weight."""
        self.sums += _run(self._shape, level, (low, high), weight, cumulative)
        ends = (high > low) & (high == self._shape.nodes(level))
        self._last = np.where(ends, weight, self._last)


def _run(shape: Shape, level: int, nodes: tuple[Places, Places], weight: Array, cumulative: Array) -> Array:
    """Return four sums over runs of a level's nodes, as `LevelMoments.combined` takes them."""
    (low, high), span = nodes, shape.span(level)
    mass = cumulative[np.minimum(high * span, shape.size)] - cumulative[np.minimum(low * span, shape.size)]
    total, mean = weight * (high - low), weight * mass
    return np.array([weight * total, weight * mean, total, mean])


def alphas_of(shape: Shape, alone: Sequence[float], reports: Sequence[float]) -> tuple[float, ...]:
    """Return how much a node's own estimate counts against what its children say, for each level.

    Parameters
    ----------
    shape : Shape
    alone : sequence of float
        Variance of one report's part in a node's estimate, for each level.
    reports : sequence of int or float
        Of each level.
    """
    own = [one / count if count else np.inf for one, count in zip(alone, reports, strict=True)]
    found, below = [1.0], own[-1]
    for mine in own[-2::-1]:
        children = shape.branching * below
        if np.isinf(children):
            alpha, below = 1.0, mine
        elif np.isinf(mine):
            alpha, below = 0.0, children
        else:
            alpha, below = children / (mine + children), mine * children / (mine + children)
        found.insert(0, alpha)
    return tuple(found)
