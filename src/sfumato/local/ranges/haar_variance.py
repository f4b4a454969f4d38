"""The variances of ranges that are estimated from Haar coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.local.device.domains.tree import Shape
from sfumato.local.frequency.variance import Array
from sfumato.local.ranges.variance import Held, Places, SummedErrorModel, held_parts, nodes_met

__all__ = ["HaarErrorModel", "haar_weights"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HaarErrorModel(SummedErrorModel):
    r"""Of a binary tree of which every level's signed coefficients were asked.

    Notes
    -----
    Let :math:`d_v` be the share in the first half of a node less that in the second. A half's share is that
    of the node, plus or minus :math:`d_v`, over two. With :math:`H_v` as in `TreeErrorModel` the weight of
    :math:`d_v` is half the difference of the halves' :math:`H`: it is 0 for all nodes that do not meet an end
    of the range, and for those whose second half is empty, as all their share is in the first.
    """

    def _sums(self, first: Places, last: Places, cumulative: Array) -> Array:
        shape, sums = self.shape, np.zeros((self.shape.levels, 4, len(first)))
        for level, coefficients in enumerate(haar_weights(shape, first, last)[1:]):
            for weight, cuts in coefficients:
                start, middle, stop = cumulative[cuts]
                mass, signed = stop - start, 2 * middle - start - stop
                sums[level] += [weight**2, weight**2 * mass, 0 * weight, weight * signed]
        return sums


def haar_weights(shape: Shape, first: Places, last: Places) -> list[list[tuple[Array, Places]]]:
    """Return what Haar coefficients weigh in ranges: see `HaarErrorModel`.

    Returns
    -------
    list of lists
        For what is known of all, and for each level above the leaves: weights, and the indices where the
        first half begins, where the second one does and where it ends, as rows. Of all, the first half is
        everything.
    """
    held, size = held_parts(shape, first, last), shape.size
    everything = np.array([0 * first, 0 * first + size, 0 * first + size])
    found = [[(held[0][0], everything)]]
    for level in range(shape.levels):
        one, other = nodes_met(shape, level, first, last)
        below, ends = nodes_met(shape, level + 1, first, last), held[level + 1]
        found.append([])
        for node, counts in ((one, np.ones(len(one))), (other, (other > one).astype(float))):
            start, half = node * shape.span(level), shape.span(level + 1)
            halves = [_part_held(2 * node + side, below, ends) for side in (0, 1)]
            weight = counts * (start + half < size) * (halves[0] - halves[1]) / 2
            cuts = np.minimum(start + half * np.arange(3)[:, None], size)
            found[-1].append((weight, cuts))
    return found


def _part_held(nodes: Places, met: tuple[Places, Places], held: Held) -> Array:
    """Return what part of nodes counts as in ranges: see `TreeErrorModel`."""
    (one, other), (low, high) = met, held
    inside = ((one < nodes) & (nodes < other)).astype(float)
    return np.where(nodes == one, low, np.where(nodes == other, high, inside))
