from __future__ import annotations

from collections import Counter

import numpy as np

from sfumato.anonymity.measures import sensitive_counts as module
from sfumato.anonymity.table.grouping import EquivalenceClasses
from tests.anonymity.measures.tables import counted, random_tables


def test_counts_are_those_of_a_dictionary() -> None:
    for groups in random_tables(1, 30):
        found = counted(groups, 6)
        pairs = zip(found.classes.tolist(), found.values.tolist(), found.counts.tolist(), strict=True)
        expected = [
            (number, value, many)
            for number, group in enumerate(groups)
            for value, many in sorted(Counter(group).items())
        ]
        assert list(pairs) == expected
        assert found.totals.sum() == sum(map(len, groups))
        np.testing.assert_allclose(np.bincount(found.classes, found.frequencies), 1, rtol=1e-12)


def test_many_values_are_counted_by_sorting_alike() -> None:
    rng = np.random.default_rng(2)
    of_row = np.concatenate([np.arange(5), rng.integers(0, 5, 200)])
    codes = rng.integers(0, 7, 205)
    classes = EquivalenceClasses(of_row, np.bincount(of_row))
    dense, sparse = (module.sensitive_counts(classes, codes, bound) for bound in (7, 1 << 21))
    for name in ("classes", "values", "counts", "sizes"):
        assert getattr(dense, name).tolist() == getattr(sparse, name).tolist()
