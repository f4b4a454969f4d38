"""Families of places, a parent and its children each: fitted and rounded one by one, in any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.blas_threads import one_thread
from sfumato.synthetic.topdown.hierarchy import Nodes
from sfumato.synthetic.topdown.limits.controlled_rounding import rounded, rounded_root
from sfumato.synthetic.topdown.limits.lookahead import Coming, Lookahead
from sfumato.synthetic.topdown.nonnegative_fit import ITERATIONS, Limits, Observed, fit_children
from sfumato.synthetic.topdown.unit_counts import LevelCounts

__all__ = ["BatchLimits", "FamilyBatch", "Fitted", "fit_batch", "fit_root"]


class Weighted(NamedTuple):
    """A query as a fit takes it: the group of each cell, their number, and one over the noise's variance."""

    group_of: NDArray[np.int64]
    groups: int
    weight: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class BatchLimits:
    """Limits of the groups of each child of a batch, by partition of the cells.

    Parameters
    ----------
    group_of : tuple of int64 array
        The group of each cell, of the finest partition last.
    lower, upper : tuple of int64 array of shape (children, groups)
    coarse : tuple of int64 array
        The group, of each coarser partition, of each group of the finest.
    below : mapping of int to Lookahead
        What lies below children, of those where it restricts them.
    """

    group_of: tuple[NDArray[np.int64], ...]
    lower: tuple[Nodes, ...]
    upper: tuple[Nodes, ...]
    coarse: tuple[Nodes, ...]
    below: Mapping[int, Lookahead]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FamilyBatch:
    """Parents with released counts, and noisy counts of all their children; nothing private.

    Parameters
    ----------
    parents : LevelCounts
    children : int64 array
        Where each parent's children begin, and where the last one's end.
    queries : mapping of int to Weighted
    noisy : mapping of int to array of shape (children, groups)
    limits : BatchLimits or None
    """

    parents: LevelCounts
    children: Nodes
    queries: Mapping[int, Weighted]
    noisy: Mapping[int, NDArray[Any]]
    limits: BatchLimits | None


class Fitted(NamedTuple):
    """Counts of all children of a batch, and how many families took the most steps that a fit may take."""

    counts: LevelCounts
    unfinished: int


@one_thread()
def fit_batch(batch: FamilyBatch) -> Fitted:
    """Return whole non-negative counts of all children, which add up to their parents'.

    Parameters
    ----------
    batch : FamilyBatch

    Returns
    -------
    Fitted
    """
    sizes, cells, counts, unfinished = [], [], [], 0
    for parent in range(len(batch.children) - 1):
        begin, end = batch.parents.starts[parent], batch.parents.starts[parent + 1]
        active, sums = batch.parents.cells[begin:end].astype(np.int64), batch.parents.counts[begin:end]
        first, last = int(batch.children[parent]), int(batch.children[parent + 1])
        whole = np.zeros((len(active), last - first), np.int64)
        if last - first == 1:
            whole[:, 0] = sums
        elif len(active):
            observed = [
                _observed(query, batch.noisy[i][first:last], active) for i, query in batch.queries.items()
            ]
            limits, coming = _limits(batch.limits, first, last, active)
            fit = fit_children(observed, sums.astype(float), last - first, limits)
            unfinished += fit.steps >= ITERATIONS
            whole = rounded(fit.table, sums, limits, coming)
        child, place = np.nonzero(whole.T)
        sizes.append(np.bincount(child, minlength=last - first))
        cells.append(active[place].astype(np.int32))
        counts.append(whole.T[child, place])
    starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return Fitted(LevelCounts(starts, np.concatenate(cells), np.concatenate(counts)), unfinished)


def fit_root(batch: FamilyBatch, possible: Nodes) -> Fitted:
    """Return whole non-negative counts of the root, which has no parent.

    Parameters
    ----------
    batch : FamilyBatch
        Of one place.
    possible : int64 array
        The cells that may hold people, rising; in all others the counts are 0, and so they are below, where
        children add up to their parents.

    Returns
    -------
    Fitted
    """
    observed = [_observed(query, batch.noisy[i][:1], possible) for i, query in batch.queries.items()]
    limits, coming = _limits(batch.limits, 0, 1, possible)
    if observed:
        fit = fit_children(observed, None, 1, limits)
        table, steps = fit.table[:, 0], fit.steps
    else:
        table, steps = np.zeros(len(possible)), 0
    whole = rounded_root(table, limits, coming)
    present = np.flatnonzero(whole)
    cells = possible[present].astype(np.int32)
    found = LevelCounts(np.array([0, len(present)]), cells, whole[present])
    return Fitted(found, int(steps >= ITERATIONS))


def _observed(query: Weighted, noisy: NDArray[Any], active: NDArray[np.int64]) -> Observed:
    """Return the noisy counts of the groups that the active cells are in."""
    groups, group_of = np.unique(query.group_of[active], return_inverse=True)
    return Observed(group_of, noisy[:, groups].T.astype(np.float64), query.weight)


def _limits(
    limits: BatchLimits | None, first: int, last: int, active: NDArray[np.int64]
) -> tuple[list[Limits], list[Coming]]:
    """Return the limits of the groups that the active cells are in, and what lies below the children."""
    if limits is None:
        return [], []
    found = []
    for group_of, lower, upper in zip(limits.group_of, limits.lower, limits.upper, strict=True):
        groups, held = np.unique(group_of[active], return_inverse=True)
        low, high = (ends[first:last, groups].T.astype(np.float64) for ends in (lower, upper))
        found.append(Limits(held, low, high))
    atom_of = limits.group_of[-1][active]
    here = [(child, look) for child, look in limits.below.items() if first <= child < last]
    return found, [Coming(child - first, atom_of, limits.coarse, look) for child, look in here]


def joined(parts: Sequence[LevelCounts]) -> LevelCounts:
    """Return the counts of places one part after the other."""
    ends = np.cumsum([0, *(part.starts[-1] for part in parts)])
    starts = [part.starts[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return LevelCounts(
        np.concatenate([*starts, ends[-1:]]),
        np.concatenate([part.cells for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )
