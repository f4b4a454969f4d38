from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato import anonymity
from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts
from sfumato.anonymity.privacy_models.base import PrivacyModel
from sfumato.errors import ParameterError


def counts(table: list[list[int]]) -> SensitiveCounts:
    """Give classes by their counts of each value; the table is all of them together."""
    matrix = np.array(table)
    of_cell, values = np.nonzero(matrix)
    return SensitiveCounts(of_cell, values, matrix[of_cell, values], matrix.sum(axis=1), matrix.sum(axis=0))


def test_boundaries_belong_to_the_models() -> None:
    classes = counts([[2, 2, 0], [3, 1, 0], [1, 1, 1]])
    verdicts: list[tuple[PrivacyModel, list[bool]]] = [
        (anonymity.KAnonymity(4), [True, True, False]),
        (anonymity.DistinctLDiversity("job", 3), [False, False, True]),
        (anonymity.EntropyLDiversity("job", 2), [True, False, True]),
        (anonymity.EntropyLDiversity("job", 3), [False, False, True]),
        (anonymity.RecursiveLDiversity(column="job", c=1.0, l=2), [False, False, True]),
        (anonymity.RecursiveLDiversity(column="job", c=1.01, l=2), [True, False, True]),
        (anonymity.AlphaDeassociation("job", 0.75), [True, True, True]),
        (anonymity.AlphaDeassociation("job", 1 / 3), [False, False, True]),
    ]
    for model, expected in verdicts:
        assert model.satisfied(classes).tolist() == expected
        assert all(classes.sizes[i] >= model.minimum_size for i in range(3) if expected[i])


def test_distances_of_the_paper() -> None:
    """Li, Li and Venkatasubramanian 2007, section 3: salaries 3k to 11k, two classes of three."""
    salaries = np.eye(9, dtype=int)
    classes = counts(
        [
            salaries[[0, 1, 2]].sum(axis=0).tolist(),
            salaries[[3, 5, 8]].sum(axis=0).tolist(),
            salaries[[4, 6, 7]].sum(axis=0).tolist(),
        ]
    )
    assert anonymity.TCloseness("salary", 0.375, "ordered").satisfied(classes)[0]
    assert not anonymity.TCloseness("salary", 0.374, "ordered").satisfied(classes)[0]
    assert anonymity.TCloseness("salary", 0.167, "ordered").satisfied(classes)[1]
    assert not anonymity.TCloseness("salary", 0.166, "ordered").satisfied(classes)[1]


def test_models_that_say_so_are_closed() -> None:
    """Of classes at random: two that satisfy do so together; where it is upward closed, with any."""
    rng = np.random.default_rng(11)
    models: list[PrivacyModel] = [
        anonymity.KAnonymity(4),
        anonymity.DistinctLDiversity("job", 3),
        anonymity.EntropyLDiversity("job", 2.5),
        anonymity.RecursiveLDiversity(column="job", c=1.0, l=2),
        anonymity.AlphaDeassociation("job", 0.5),
        anonymity.TCloseness("job", 0.3),
        anonymity.TCloseness("job", 0.25, "ordered"),
        anonymity.BetaLikeness("job", 0.8),
        anonymity.BetaLikeness("job", 0.7, enhanced=True),
        anonymity.DeltaDisclosurePrivacy("job", 1.4),
    ]
    spoiled = dict.fromkeys(models, 0)
    for _ in range(250):
        table = rng.integers(0, 5, (4, 4)) + np.eye(4, dtype=int)
        if rng.random() < 0.3:
            table[1] = np.eye(4, dtype=int)[rng.integers(4)] * rng.integers(1, 9)
        parts = counts(table.tolist())
        union = counts([*(table[0] + table[1])[None].tolist(), *table[2:].tolist()])
        for model in models:
            first, second = model.satisfied(parts)[:2]
            together = model.satisfied(union)[0]
            if first and second:
                assert together
            if first or second:
                assert together or not model.upward_closed
                spoiled[model] += not together
    assert [model for model, count in spoiled.items() if not count] == models[:2]


def test_parameters_out_of_range() -> None:
    unknown: Any = "euclidean"
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: anonymity.EntropyLDiversity("job", 0.5), "l must be at least 1, got 0.5"),
        (lambda: anonymity.AlphaDeassociation("job", 0.0), "alpha must be above 0"),
        (
            lambda: anonymity.TCloseness("job", 0.2, unknown),
            "distance must be equal, ordered or hierarchical",
        ),
        (lambda: anonymity.DeltaDisclosurePrivacy("job", 0.0), "delta must be positive"),
        (lambda: anonymity.BetaLikeness("job", -1.0), "beta must be positive"),
        (lambda: anonymity.TCloseness("job", 1.5), "t must be from 0 to 1"),
    ]
    for make, message in refused:
        with pytest.raises(ParameterError, match=message):
            make()
    hierarchical = anonymity.TCloseness("job", 0.2, "hierarchical")
    with pytest.raises(ParameterError, match="but the column has no hierarchy"):
        hierarchical.satisfied(counts([[1, 1], [2, 0]]))
