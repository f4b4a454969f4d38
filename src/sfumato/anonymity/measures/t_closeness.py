"""t-closeness: how far each class's distribution of a sensitive column is from that of the whole table.

The distance is the earth mover's, with one of three ground distances between values: all equal; by rank; or
by the level of the hierarchy at which two values meet.

References
----------
N. Li, T. Li, S. Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity", ICDE 2007,
sections 4.1 (ordered) and 4.2 (equal, hierarchical).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts

__all__ = ["equal_distances", "hierarchical_distances", "ordered_distances"]


def equal_distances(counts: SensitiveCounts) -> NDArray[np.float64]:
    """Return the total variation distance of each class; the largest is t.

    Parameters
    ----------
    counts : SensitiveCounts

    Returns
    -------
    float64 array
        One for each class, from 0 to 1.
    """
    excess = np.maximum(counts.frequencies - counts.baseline, 0)
    return np.bincount(counts.classes, excess, len(counts.sizes)).astype(np.float64)


def ordered_distances(counts: SensitiveCounts) -> NDArray[np.float64]:
    """Return the earth mover's distance of each class where neighbors in order are 1 / (m - 1) apart.

    Parameters
    ----------
    counts : SensitiveCounts
        Codes are in the order of the values; m is how many values occur in the table.

    Returns
    -------
    float64 array
        One for each class, from 0 to 1.

    Notes
    -----
    It is the sum of the differences of both cumulative distributions. That of a class is constant between two
    of its values, and that of the table rises, so that each such stretch is two differences of prefix sums.
    """
    present = counts.totals > 0
    m, n = int(present.sum()), int(counts.totals.sum())
    if m == 1:
        return np.zeros(len(counts.sizes))
    cumulative = np.cumsum(counts.totals[present])
    prefix = np.concatenate([[0], np.cumsum(cumulative)])
    rank = (np.cumsum(present) - 1)[counts.values]
    starts = counts.starts
    running = np.cumsum(counts.counts)
    below = running - (running[starts] - counts.counts[starts])[counts.classes]
    level = below / counts.sizes[counts.classes]
    following = np.append(rank[1:], m)
    following[np.append(starts[1:], len(rank)) - 1] = m
    crossing = np.clip(np.searchsorted(cumulative, level * n), rank, following)
    moved = level * (2 * crossing - rank - following)
    moved -= (2 * prefix[crossing] - prefix[rank] - prefix[following]) / n
    first = prefix[rank[starts]] / n
    found: NDArray[np.float64] = (np.bincount(counts.classes, moved, len(counts.sizes)) + first) / (m - 1)
    return found


def hierarchical_distances(
    counts: SensitiveCounts, hierarchy: GeneralizationHierarchy
) -> NDArray[np.float64]:
    """Return the earth mover's distance of each class by the level at which two values meet.

    Parameters
    ----------
    counts : SensitiveCounts
        Of the codes of the hierarchy's values.
    hierarchy : GeneralizationHierarchy
        Values that meet at level l of a tree of height H are l / H apart; where no level has a single value,
        a root is added.

    Returns
    -------
    float64 array
        One for each class, from 0 to 1.

    Notes
    -----
    The distance is a path in a tree all of whose edges have length 1 / (2H), so that the earth mover's
    distance is the sum over the edges of what crosses them: the mean over the levels below the root of the
    total variation distances there.
    """
    single = [level for level in range(1, hierarchy.height + 1) if hierarchy.cardinality(level) == 1]
    height = single[0] if single else hierarchy.height + 1
    total = np.zeros(len(counts.sizes))
    for level in range(height):
        total += equal_distances(_generalized(counts, hierarchy, level))
    return total / height


def _generalized(counts: SensitiveCounts, hierarchy: GeneralizationHierarchy, level: int) -> SensitiveCounts:
    """Return the counts of the values at a level of the hierarchy."""
    upward, cardinality = hierarchy.levels[level], hierarchy.cardinality(level)
    pairs, index = np.unique(counts.classes * cardinality + upward[counts.values], return_inverse=True)
    classes, values = np.divmod(pairs, cardinality)
    summed = np.bincount(index, counts.counts).astype(np.int64)
    totals = np.bincount(upward, counts.totals, cardinality).astype(np.int64)
    return SensitiveCounts(classes, values, summed, counts.sizes, totals)
