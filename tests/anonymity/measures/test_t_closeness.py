from __future__ import annotations

import numpy as np
import pytest

from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.measures.t_closeness import (
    equal_distances,
    hierarchical_distances,
    ordered_distances,
)
from tests.anonymity.measures.tables import Groups, counted, frequencies, random_tables
from tests.run_time import run_time

if run_time(__name__):
    from scipy.optimize import linprog

TREE = GeneralizationHierarchy.from_rows(
    [("a", "x", "r"), ("b", "x", "r"), ("c", "x", "r"), ("d", "y", "r"), ("e", "y", "r"), ("f", "z", "r")]
)
FOREST = GeneralizationHierarchy.from_rows(
    [(value, group) for value, group in zip("abcdef", "xxxyyz", strict=True)]
)


def transported(groups: Groups, ground: np.ndarray) -> list[float]:
    """The earth mover's distances as linear programs."""
    everyone = frequencies([value for group in groups for value in group], 6)
    rows = [np.kron(np.eye(6), np.ones(6)), np.kron(np.ones(6), np.eye(6))]
    found = []
    for group in groups:
        margins = np.concatenate([frequencies(group, 6), everyone])
        solved = linprog(ground.ravel(), A_eq=np.vstack(rows), b_eq=margins, method="highs")
        assert solved.success
        found.append(solved.fun or 0.0)
    return found


def test_distances_are_those_of_the_transport_problem() -> None:
    index = np.arange(6)
    equal = 1.0 - np.eye(6)
    meet = np.full((6, 6), 1.0)
    for tops in ((0, 1, 2), (3, 4), (5,)):
        meet[np.ix_(tops, tops)] = 0.5
    np.fill_diagonal(meet, 0)
    for groups in random_tables(5, 12):
        counts = counted(groups, 6)
        np.testing.assert_allclose(equal_distances(counts), transported(groups, equal), atol=1e-9)
        for tree in (TREE, FOREST):
            np.testing.assert_allclose(
                hierarchical_distances(counts, tree), transported(groups, meet), atol=1e-9
            )
        present = np.flatnonzero(counts.totals)
        rank = np.searchsorted(present, index)
        apart = np.abs(rank[:, None] - rank) / max(1, len(present) - 1)
        np.testing.assert_allclose(ordered_distances(counts), transported(groups, apart), atol=1e-9)


def test_the_example_of_the_paper() -> None:
    # Li et al., section 4.1: salaries 3k to 11k of nine people, classes {3, 4, 5} and {6, 8, 11}.
    groups = [[0, 1, 2], [3, 5, 8], [4, 6, 7]]
    found = ordered_distances(counted(groups, 9))
    assert found[:2] == pytest.approx([0.375, 0.167], abs=5e-4)


def test_one_value_is_at_no_distance() -> None:
    # pycanon 1.3.6 divides by zero here, and raises ZeroDivisionError.
    assert ordered_distances(counted([[0, 0], [0]], 3)).tolist() == [0.0, 0.0]
