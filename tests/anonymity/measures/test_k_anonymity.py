from __future__ import annotations

import numpy as np
import pytest

from sfumato.anonymity.measures.k_anonymity import alpha_anonymity, k_anonymity
from sfumato.anonymity.table.grouping import EquivalenceClasses
from tests.anonymity.measures.tables import counted, random_tables


def test_k_is_the_smallest_class() -> None:
    assert k_anonymity(EquivalenceClasses(np.array([0, 1, 1, 1]), np.array([1, 3]))) == 1


def test_alpha_is_the_largest_frequency() -> None:
    for groups in random_tables(3, 30):
        expected = max(group.count(value) / len(group) for group in groups for value in group)
        assert alpha_anonymity(counted(groups, 6)) == pytest.approx(expected, rel=1e-12)
