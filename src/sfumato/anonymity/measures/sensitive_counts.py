"""How often each sensitive value occurs in each class: what all measures but k are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.table.grouping import EquivalenceClasses

__all__ = ["SensitiveCounts", "sensitive_counts"]

_DENSE = 1 << 22


@final
@dataclass(frozen=True, slots=True, eq=False)
class SensitiveCounts:
    """The sensitive values of each class, by class and then by value; those that do not occur are left out.

    Parameters
    ----------
    classes, values, counts : int64 arrays
        For each pair that occurs: the class, the code of the value, and in how many rows.
    sizes : int64 array
        The rows of each class.
    totals : int64 array
        The rows of each value in the whole table.
    """

    classes: NDArray[np.int64]
    values: NDArray[np.int64]
    counts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    totals: NDArray[np.int64]

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """The relative frequency of each pair's value within its class."""
        return self.counts / self.sizes[self.classes]

    @property
    def baseline(self) -> NDArray[np.float64]:
        """The relative frequency of each pair's value in the whole table."""
        found: NDArray[np.float64] = self.totals[self.values] / self.totals.sum()
        return found

    @property
    def starts(self) -> NDArray[np.int64]:
        """The index of each class's first pair."""
        return np.searchsorted(self.classes, np.arange(len(self.sizes)))


def sensitive_counts(
    classes: EquivalenceClasses, codes: NDArray[np.integer], cardinality: int
) -> SensitiveCounts:
    """Return how often each value occurs in each class.

    Parameters
    ----------
    classes : EquivalenceClasses
    codes : int array
        The sensitive value of each row.
    cardinality : int
        How many values there may be.

    Returns
    -------
    SensitiveCounts

    Examples
    --------
    >>> classes = EquivalenceClasses(np.array([0, 0, 1]), np.array([2, 1]))
    >>> sensitive_counts(classes, np.array([1, 1, 0]), 2).counts
    array([2, 1])
    """
    key = classes.of_row * cardinality + codes
    bound = len(classes.sizes) * cardinality
    if bound <= max(_DENSE, 4 * len(key)):
        dense = np.bincount(key, minlength=bound)
        pairs = np.flatnonzero(dense)
        counts = dense[pairs]
    else:
        pairs, counts = np.unique(key, return_counts=True)
    of_class, values = np.divmod(pairs, cardinality)
    totals = np.bincount(codes, minlength=cardinality)
    return SensitiveCounts(of_class, values, counts, classes.sizes, totals)
