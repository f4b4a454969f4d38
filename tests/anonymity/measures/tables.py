"""Random tables as classes with counts, and the same as plain lists: what definitions are written against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts, sensitive_counts
from sfumato.anonymity.table.grouping import equivalence_classes

__all__ = ["Groups", "counted", "random_tables"]

Groups = list[list[int]]
"""The sensitive value of each row, class by class."""


def counted(groups: Groups, cardinality: int) -> SensitiveCounts:
    """Return the counts of the classes."""
    of_row = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    values = np.array([value for group in groups for value in group])
    return sensitive_counts(equivalence_classes([of_row], [len(groups)]), values, cardinality)


def random_tables(seed: int, count: int, cardinality: int = 6) -> Iterator[Groups]:
    """Yield tables of a few classes; some values are rare and some never occur."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        weights = rng.dirichlet(np.full(cardinality, 0.5))
        yield [
            rng.choice(cardinality, rng.integers(1, 9), p=weights).tolist() for _ in range(rng.integers(1, 7))
        ]


def frequencies(group: list[int], cardinality: int) -> list[float]:
    """Return the relative frequency of each value."""
    found = Counter(group)
    return [found[value] / len(group) for value in range(cardinality)]
