"""Distinct, entropy and recursive l-diversity.

References
----------
A. Machanavajjhala, D. Kifer, J. Gehrke, M. Venkitasubramaniam, "l-diversity: privacy beyond k-anonymity",
TKDD 1(1), 2007: definition 4 (entropy) and definition 5 (recursive); distinct l-diversity is the form that
counts values, as N. Li, T. Li, S. Venkatasubramanian (ICDE 2007, section 2) name it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts

__all__ = ["distinct_values", "entropy_values", "recursive_ratios"]


def distinct_values(counts: SensitiveCounts) -> NDArray[np.int64]:
    """Return how many different values each class has; the least is l of distinct l-diversity.

    Parameters
    ----------
    counts : SensitiveCounts

    Returns
    -------
    int64 array
        One for each class.
    """
    return np.bincount(counts.classes, minlength=len(counts.sizes))


def entropy_values(counts: SensitiveCounts) -> NDArray[np.float64]:
    """Return e to the entropy of each class's values; the least is l of entropy l-diversity.

    Parameters
    ----------
    counts : SensitiveCounts

    Returns
    -------
    float64 array
        One for each class: exactly the number of its values where these are equally frequent.
    """
    weights = counts.counts * np.log(counts.counts)
    total = np.bincount(counts.classes, weights, len(counts.sizes))
    found = np.exp(np.log(counts.sizes) - total / counts.sizes)
    most, least = _extremes(counts)
    return np.where(most == least, distinct_values(counts), found)


def recursive_ratios(counts: SensitiveCounts, l: int) -> NDArray[np.float64]:  # noqa: E741 - the paper's name
    """Return r_1 / (r_l + ... + r_m) of each class, r_i the count of its i-th most frequent value.

    Recursive (c, l)-diversity holds for every c above the largest of them.

    Parameters
    ----------
    counts : SensitiveCounts
    l : int
        At least 2.

    Returns
    -------
    float64 array
        One for each class; infinite where it has fewer than l values.
    """
    order = np.lexsort((-counts.counts, counts.classes))
    rank = np.arange(len(order)) - counts.starts[counts.classes]
    tail = np.where(rank >= l - 1, counts.counts[order], 0)
    tails = np.bincount(counts.classes, tail, len(counts.sizes))
    most, _ = _extremes(counts)
    with np.errstate(divide="ignore"):
        return most / tails


def _extremes(counts: SensitiveCounts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the largest and the smallest count of each class."""
    starts = counts.starts
    return np.maximum.reduceat(counts.counts, starts), np.minimum.reduceat(counts.counts, starts)
