r"""Generalised least squares over a hierarchy: sums of places from all noisy counts above and below them.

Marginals' noisy counts split into residuals, what a table of some columns has beyond all tables of fewer: of
one residual each place has one vector, the same sums hold from level to level, and the noise of different
residuals is uncorrelated. So the estimator with the least variance is found for each residual alone, with one
number of variance a place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato.synthetic.marginals.workload import Clique
from sfumato.synthetic.topdown.hierarchy import Hierarchy
from sfumato.synthetic.topdown.measurement import child_ranges

__all__ = ["MeasuredTable", "ResidualSum", "residual_sum"]

Moments = NDArray[np.float64]

_BATCH: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTable:
    """Noisy, or exact, counts of a marginal on all places of a level.

    Parameters
    ----------
    columns : tuple of int
    counts : array of shape (places, cells of the marginal)
    variance : float
        Of each count's noise; 0 for exact counts.
    """

    columns: Clique
    counts: NDArray[Any]
    variance: float


class ResidualSum(NamedTuple):
    """The residual of a sum of places; the variance is that of one entry before it was centred."""

    values: Moments
    variance: float


class _Moments(NamedTuple):
    """Of places: estimates of their totals, of the functional's part in them, and these two's moments."""

    total: Moments
    variance: Moments
    part: Moments
    part_variance: Moments
    covariance: Moments


def residual_sum(
    hierarchy: Hierarchy,
    sizes: Sequence[int],
    columns: Clique,
    tables: Mapping[int, Sequence[MeasuredTable]],
    chosen: Mapping[int, NDArray[np.bool_]],
) -> ResidualSum:
    r"""Return the least-squares estimate of one residual, summed over places.

    Parameters
    ----------
    hierarchy : Hierarchy
    sizes : sequence of int
        Cells of all columns of the domain.
    columns : tuple of int
        Of the residual.
    tables : mapping of int to sequence of MeasuredTable
        By depth: what was measured. Those that have not all the columns say nothing of the residual.
    chosen : mapping of int to bool array
        By depth: the places that are summed, none within another.

    Returns
    -------
    ResidualSum
        Of infinite variance where nothing measured it on the places or below them.

    Notes
    -----
    From the lowest level up each place has the best linear estimate of its total and of the functional from
    what was measured in and below it, as a Kalman filter has: children are independent, so their moments add;
    then the place's own measurement corrects both. At the root all measurements are in it. That is the
    generalised least-squares estimator (Gauss, Markov), with its exact variance, found in one pass over the
    places.

    References
    ----------
    "Least squares estimation for hierarchical data" (arXiv 2404.13164): the two passes for the estimates of
    all places, on the 2020 Census' noisy measurements.
    """
    depths = len(hierarchy.levels)
    shape = [sizes[place] for place in columns]
    moments = _nothing(hierarchy.size(depths - 1), math.prod(shape))
    for depth in reversed(range(depths)):
        seen = _informative(tables.get(depth, ()), columns, sizes)
        if not depth:
            ranges = [(0, 1)]
        else:
            starts = hierarchy.starts(depth - 1)
            ranges = child_ranges(starts, math.prod(shape), _BATCH)
        gathered = []
        for low, high in ranges:
            first, last = (0, 1) if not depth else (int(starts[low]), int(starts[high]))
            below = _Moments(*(values[first:last] for values in moments))
            found = _corrected(below, *_own(seen, columns, sizes, first, last))
            if depth in chosen:
                found = _with(found, chosen[depth][first:last])
            gathered.append(_summed(found, starts[low:high] - first) if depth else found)
        if not all(np.isfinite(found.part_variance).all() for found in gathered):
            return ResidualSum(np.zeros(shape), math.inf)
        moments = _Moments(*(np.concatenate(parts) for parts in zip(*gathered, strict=True)))
    return ResidualSum(moments.part[0].reshape(shape), float(moments.part_variance[0]))


def _informative(
    tables: Sequence[MeasuredTable], columns: Clique, sizes: Sequence[int]
) -> list[tuple[MeasuredTable, float]]:
    """Return the tables that have the columns, with their weights; exact ones alone, where there are any."""
    found = []
    for table in tables:
        if set(columns) <= set(table.columns):
            rest = math.prod(sizes[place] for place in table.columns if place not in columns)
            found.append((table, table.variance * rest))
    exact = [(table, 0.0) for table, variance in found if not variance]
    return exact[:1] or found


def _own(
    seen: Sequence[tuple[MeasuredTable, float]],
    columns: Clique,
    sizes: Sequence[int],
    first: int,
    last: int,
) -> tuple[Moments, float]:
    """Return what a level's own measurements say of the residual, and the variance of that."""
    cells = math.prod(sizes[place] for place in columns)
    total, precision = np.zeros((last - first, cells)), 0.0
    for table, variance in seen:
        weight = 1 / variance if variance else 1.0
        counts = table.counts[first:last].reshape(-1, *(sizes[place] for place in table.columns))
        axes = tuple(1 + i for i, place in enumerate(table.columns) if place not in columns)
        marginal = counts.sum(axis=axes, dtype=np.float64)
        for axis in range(1, marginal.ndim):
            marginal = marginal - marginal.mean(axis=axis, keepdims=True)
        total += weight * marginal.reshape(last - first, cells)
        precision += weight
    if not precision:
        return total, math.inf
    return total / precision, 0.0 if not seen[0][1] else 1 / precision


def _nothing(places: int, cells: int) -> _Moments:
    """Return the moments of the lowest places before they are measured; of what is large, only a view."""
    zero, none = np.broadcast_to(0.0, (places, cells)), np.zeros(places)
    return _Moments(zero, np.full(places, math.inf), zero, none, none)


def _corrected(below: _Moments, own: Moments, noise: float) -> _Moments:
    """Return the moments after a place's own measurement, of variance ``noise``."""
    if math.isinf(noise):
        return below
    prior = below.variance
    known = np.isinf(prior)
    both = np.where(known | (prior + noise == 0), 1.0, prior + noise)
    gain = np.where(known, 1.0, np.where(prior + noise == 0, 0.0, prior / both))
    slope = np.where(known | (prior + noise == 0), 0.0, below.covariance / both)
    surprise = own - below.total
    return _Moments(
        below.total + gain[:, None] * surprise,
        np.where(known, noise, (1 - gain) * np.where(known, 0.0, prior)),
        below.part + slope[:, None] * surprise,
        below.part_variance - slope * below.covariance,
        below.covariance * (1 - gain),
    )


def _with(found: _Moments, chosen: NDArray[np.bool_]) -> _Moments:
    """Return the moments of the functional with the totals of chosen places in it; they have none below."""
    if not chosen.any():
        return found
    variance = np.where(chosen, found.variance, found.part_variance)
    covariance = np.where(chosen, found.variance, found.covariance)
    return found._replace(
        part=np.where(chosen[:, None], found.total, found.part), part_variance=variance, covariance=covariance
    )


def _summed(found: _Moments, starts: NDArray[np.int64]) -> _Moments:
    """Return the moments of parents: those of their children add up."""
    return _Moments(*(np.add.reduceat(values, starts, axis=0) for values in found))
