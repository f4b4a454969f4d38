r"""The exact variances of ranges, from the weights that the levels' estimates have in them.

Notes
-----
A range's estimate is a constant and a sum over the levels of means of what their respondents report,
weighted. The levels' respondents are drawn at random from all N. Let :math:`y_l` be the weighted report of a
respondent drawn from all, and g the indicator of the range: the weights are such that the means of the
:math:`y_l` given the truth add up to g, but for a constant. With :math:`n_l` reports of a level the variance
is

.. math:: \sum_l \mathrm{Var}(y_l) / n_l - \mathrm{Var}(g) / N

but for a factor of N/(N - 1) in the last term: groups that share out a finite number of respondents have
means whose covariances are :math:`-1/N` of those of one respondent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.domains.tree import Shape
from sfumato.local.frequency.variance import Array
from sfumato.local.ranges.level_moments import LevelMoments

__all__ = ["Held", "Places", "RangeErrorModel", "SummedErrorModel", "held_parts", "nodes_met", "of_levels"]

_NOTHING: Final = 1e-24
"""Sums of squared weights up to this are those of levels that are not needed."""

Places = NDArray[np.int64]
Held = tuple[Array, Array]
"""What part of the leftmost and the rightmost node of a level that meet a range counts as in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeErrorModel(ABC):
    """The error model of all ranges' estimates.

    Parameters
    ----------
    shape : Shape
        The tree.
    reports : tuple of int or float
        Of each level that is reported; for planning, as many as are expected.
    """

    shape: Shape
    reports: tuple[float, ...]

    @abstractmethod
    def variance(self, first: Places, last: Places, cumulative: Array) -> Array:
        """Return the variances of the estimates of ranges.

        Parameters
        ----------
        first, last : int64 array
            Indices of the first and the last leaf of each range.
        cumulative : array
            What share lies before each index, from 0 on to 1: one more than there are indices.

        Returns
        -------
        array
            Infinite where a level that is needed has no reports.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedErrorModel(RangeErrorModel):
    """The error model of estimates from levels whose nodes are correlated alike: sums of weights are enough.

    Parameters
    ----------
    shape, reports
        See `RangeErrorModel`.
    moments : tuple of LevelMoments
        Of each level that is reported.
    """

    moments: tuple[LevelMoments, ...]

    @abstractmethod
    def _sums(self, first: Places, last: Places, cumulative: Array) -> Array:
        """Return for each level four sums of its weights, as `LevelMoments.combined` takes them."""

    def variance(self, first: Places, last: Places, cumulative: Array) -> Array:
        """Return the variances of the estimates of ranges; see `RangeErrorModel.variance`."""
        inside = cumulative[last + 1] - cumulative[first]
        sums = self._sums(first, last, cumulative)
        return of_levels(self.moments, self.reports, sums, inside)


def of_levels(moments: Sequence[LevelMoments], reports: Sequence[float], sums: Array, inside: Array) -> Array:
    """Return the variances of ranges' estimates from the sums of each level's weights.

    Parameters
    ----------
    moments : sequence of LevelMoments
        Of each level.
    reports : sequence of int or float
        Of each level.
    sums : array, shape (levels, 4, ranges)
        See `LevelMoments.combined`.
    inside : array
        What share lies in each range.
    """
    found = -inside * (1 - inside) / max(sum(reports), 1)
    for one, count, part in zip(moments, reports, sums, strict=True):
        if count:
            found += one.combined(*part) / count
        else:
            found = np.where(part[0] > _NOTHING, np.inf, found)
    return np.maximum(found, 0.0)


def nodes_met(shape: Shape, level: int, first: Places, last: Places) -> tuple[Places, Places]:
    """Return the leftmost and the rightmost node of a level that meet ranges."""
    span = shape.span(level)
    return first // span, last // span


def held_parts(shape: Shape, first: Places, last: Places) -> list[Held]:
    """Return for each level what part of the two outer nodes that meet ranges counts as in them."""
    whole = np.ones(len(first))
    found: list[Held] = [(whole, whole)]
    for level in range(shape.levels - 1, -1, -1):
        (at, to), (one, other) = (
            nodes_met(shape, level, first, last),
            nodes_met(shape, level + 1, first, last),
        )
        (low, high), k = found[0], shape.branching
        counts = [np.minimum(k, shape.nodes(level + 1) - node * k) for node in (at, to)]
        shared = np.maximum(other - one - 1, 0) + low + np.where(other > one, high, 0.0)
        left = np.where(at == to, shared, low + (at + 1) * k - one - 1)
        right = np.where(at == to, shared, high + other - to * k)
        found.insert(0, (left / counts[0], right / counts[1]))
    return found
