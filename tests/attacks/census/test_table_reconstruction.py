"""Reconstruction from tables: the block of seven persons, certainty, contradictions, noise."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from sfumato.attacks import (
    ContradictoryTables,
    PersonTypes,
    PublishedCounts,
    PublishedMean,
    PublishedMedian,
    PublishedTable,
    all_reconstructions,
    reconstruct_tables,
)
from sfumato.errors import ParameterError

SEVEN = [
    (8, "F", "B", "S"),
    (18, "M", "W", "S"),
    (24, "F", "W", "S"),
    (30, "M", "W", "M"),
    (36, "F", "B", "M"),
    (66, "F", "B", "M"),
    (84, "M", "B", "M"),
]
STATISTICS = {
    "all": ({}, 7, 30, 38),
    "female": ({"sex": "F"}, 4, 30, 33.5),
    "male": ({"sex": "M"}, 3, 30, 44),
    "black": ({"race": "B"}, 4, 51, 48.5),
    "white": ({"race": "W"}, 3, 24, 24),
    "married": ({"married": "M"}, 4, 51, 54),
    "black female": ({"race": "B", "sex": "F"}, 3, 36, 36.67),
}


def block(ages: list[int]) -> tuple[PersonTypes, list[PublishedTable]]:
    """Return the block of Garfinkel, Abowd and Martindale (2019): counts, medians, means."""
    types = PersonTypes({"age": ages, "sex": "FM", "race": "BW", "married": "MS"})
    tables: list[PublishedTable] = []
    for name, (where, count, median, mean) in STATISTICS.items():
        tables += [
            PublishedMedian(name=f"{name} median", attribute="age", value=median, count=count, where=where),
            PublishedMean(name=f"{name} mean", attribute="age", value=mean, decimals=2, where=where),
        ]
    return types, tables


@pytest.mark.parametrize("step", [6, 1])
def test_seven_persons_are_found_and_no_others_fit(step: int) -> None:
    # the ages of six of the seven are multiples of six
    types, tables = block(sorted({*range(0, 115, step), 8}))
    assert [sorted(found) for found in all_reconstructions(types, tables)] == [SEVEN]


def test_certain_persons_are_those_of_all_solutions() -> None:
    types = PersonTypes({"age": range(6), "sex": "FM"})
    truth = [(1, "F"), (2, "F"), (5, "M")]
    tables: list[PublishedTable] = [
        PublishedCounts.of(truth, types, name="sex", by=("sex",)),
        PublishedMean(name="mean of women", attribute="age", value=1.5, where={"sex": "F"}),
        PublishedMean(name="mean of men", attribute="age", value=5, where={"sex": "M"}),
    ]
    found = reconstruct_tables(types, tables)
    every = [types.counts(persons) for persons in all_reconstructions(types, tables)]
    assert len(every) == 2
    assert found.certain.tolist() == functools.reduce(np.minimum, every).tolist()
    assert found.certain_persons() == [(5, "M")]
    assert (found.shared, found.proven, found.unique) == (1, True, False)
    unasked = reconstruct_tables(types, tables, variability=False)
    assert not unasked.certain.any()
    assert not unasked.unique


def test_contradictory_tables_are_named_and_no_others() -> None:
    types = PersonTypes({"age": range(20), "sex": "FM"})
    tables = [
        PublishedCounts(name="sex", by=("sex",), counts=[2, 3]),
        PublishedCounts(name="adults", by={"age": [range(18, 20)]}, counts=[1]),
        PublishedCounts(name="age", by={"age": [range(10), range(10, 20)]}, counts=[3, 3]),
        PublishedMean(name="mean of men", attribute="age", value=4, where={"sex": "M"}),
    ]
    message = (
        "^tables must have persons whom they count, but 'sex' and 'age' contradict each other; leave one"
    )
    with pytest.raises(ContradictoryTables, match=message) as refused:
        reconstruct_tables(types, tables)
    assert refused.value.tables == ("sex", "age")
    with pytest.raises(ContradictoryTables):
        list(all_reconstructions(types, tables))
    halves = PublishedCounts(name="sex", by=("sex",), counts=[0.5, 0])
    with pytest.raises(ContradictoryTables, match="but 'sex' contradicts itself or the types"):
        reconstruct_tables(types, [halves, tables[1]])


def test_noisy_counts_are_fitted_by_the_least_weighted_error() -> None:
    types = PersonTypes({"sex": "FM"})
    tables = [
        PublishedCounts(name="all", by=(), counts=4),
        PublishedCounts(name="rough", by=("sex",), counts=[0, 4], noise_scale=10),
        PublishedCounts(name="fine", by=("sex",), counts=[3.2, 1.1], noise_scale=1),
    ]
    found = reconstruct_tables(types, tables)
    assert found.counts.tolist() == [3, 1]
    assert found.misfit == pytest.approx(0.3 + 0.3 + 0.2 + 0.1)
    assert not found.certain.any()
    assert not found.unique
    assert found.shared == 0


def test_tables_must_bound_how_many_persons_there_are() -> None:
    types = PersonTypes({"sex": "FM"})
    noisy = PublishedCounts(name="sex", by=("sex",), counts=[3, 1], noise_scale=1)
    with pytest.raises(ParameterError, match="tables must bound how many persons there are"):
        reconstruct_tables(types, [noisy])
    assert reconstruct_tables(types, [noisy], population=3).counts.sum() == 3
