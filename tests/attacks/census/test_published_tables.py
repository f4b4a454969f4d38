"""What each kind of published table says, against every small set of persons."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest

from sfumato.attacks import (
    PersonTypes,
    PublishedCounts,
    PublishedMean,
    PublishedMedian,
    PublishedTable,
    all_reconstructions,
)
from sfumato.errors import ParameterError
from tests.cases import cases

TYPES = PersonTypes({"age": range(6), "sex": ("F", "M")})
Persons = list[tuple[Any, ...]]


def allowed(
    tables: list[PublishedTable], population: int, types: PersonTypes = TYPES
) -> set[tuple[Any, ...]]:
    return {tuple(sorted(found)) for found in all_reconstructions(types, tables, population=population)}


def expected(
    accept: Callable[[Persons], bool], sizes: range, types: PersonTypes = TYPES
) -> set[tuple[Any, ...]]:
    everyone = [types.person(place) for place in range(len(types))]
    return {
        tuple(sorted(block))
        for size in sizes
        for block in itertools.combinations_with_replacement(everyone, size)
        if accept(list(block))
    }


@pytest.mark.parametrize("value", [2.5, 3, 1, 4.5])
def test_medians_of_two_are_means_of_the_two(value: float) -> None:
    table = PublishedMedian(name="median", attribute="age", value=value, count=2)
    assert allowed([table], 2) == expected(
        lambda block: statistics.median(age for age, _ in block) == value, range(2, 3)
    )


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.sharpest("3")
def test_medians_of_more_are_of_the_middle(count: int) -> None:
    tables: list[PublishedTable] = [
        PublishedMedian(name="median", attribute="age", value=1, count=count),
        PublishedCounts(name="women", by={"sex": ["M"]}, counts=[0]),
    ]

    def accept(block: Persons) -> bool:
        return statistics.median(age for age, _ in block) == 1 and all(sex == "F" for _, sex in block)

    assert allowed(tables, count) == expected(accept, range(count, count + 1))


def test_medians_of_a_part_leave_the_others_free() -> None:
    tables: list[PublishedTable] = [
        PublishedMedian(name="median", attribute="age", value=3.5, count=2, where={"sex": "F"}),
    ]

    def accept(block: Persons) -> bool:
        women = [age for age, sex in block if sex == "F"]
        return len(women) == 2 and bool(statistics.median(women) == 3.5)

    assert allowed(tables, 2) == expected(accept, range(3))


def test_means_are_exact_or_rounded() -> None:
    women = PublishedCounts(name="sex", by=("sex",), counts=[3, 0])
    for value, decimals in ((2, None), (2.33, 2), (1.7, 1), (0.3, 1)):
        mean = PublishedMean(name="mean", attribute="age", value=value, decimals=decimals)

        def accept(block: Persons, value: float = value, decimals: int | None = decimals) -> bool:
            exact = sum(age for age, _ in block) / 3
            near = exact == value if decimals is None else abs(exact - value) <= 0.5 * 10**-decimals + 1e-9
            return bool(near) and all(sex == "F" for _, sex in block)

        assert allowed([women, mean], 3) == expected(accept, range(3, 4))


def test_suppressed_and_uncertain_counts_are_ranges() -> None:
    types = PersonTypes({"age": range(3), "sex": ("F", "M")})
    suppressed = PublishedCounts(name="sex", by=("sex",), counts=[1, math.nan], suppressed=(0, 1))

    def accept(block: Persons) -> bool:
        women = sum(sex == "F" for _, sex in block)
        return bool(women == 1) and len(block) - women <= 1

    assert allowed([suppressed], 9, types) == expected(accept, range(3), types)
    wide = PublishedCounts(name="all", by=(), counts=1.4, margin=1)
    assert allowed([wide], 9, types) == expected(lambda block: 1 <= len(block) <= 2, range(4), types)


def test_bins_and_conditions_select_whom_a_table_counts() -> None:
    persons = [(0, "F"), (3, "F"), (4, "M"), (5, "F"), (5, "F")]
    found = PublishedCounts.of(persons, TYPES, name="x", by={"age": [range(3), [3, 5]]}, where={"sex": "F"})
    assert found.counts.tolist() == [1, 3]


@cases(
    "make, found",
    [
        (lambda: PublishedCounts(name="x", by=("sex",), counts=3), "counts of x must have 1 axes"),
        (
            lambda: PublishedCounts(name="x", by=("sex",), counts=[1, math.nan]),
            "some are NaN; pass suppressed",
        ),
        (lambda: PublishedCounts(name="x", by=(), counts=math.inf), "must be finite"),
        (lambda: PublishedCounts(name="x", by=(), counts=1, suppressed=(3, 1)), "a least and a greatest"),
        (lambda: PublishedCounts(name="x", by=(), counts=1, margin=-1), "margin must be non-negative"),
        (lambda: PublishedMean(name="x", attribute="age", value=math.nan), "value must be a finite"),
        (lambda: PublishedMedian(name="x", attribute="age", value=3, count=0), "count must be an integer"),
        (lambda: allowed([PublishedCounts(name="x", by=("sex",), counts=[1] * 3)], 3), "have the shape"),
        (lambda: allowed([PublishedMean(name="x", attribute="sex", value=1)], 3), "numbers as its values"),
        (
            lambda: allowed([PublishedCounts(name="x", by=("race",), counts=[1])], 3),
            "attribute must be one of",
        ),
        (lambda: allowed([], 3), "tables must be at least one"),
        (lambda: allowed([PublishedCounts(name="x", by=(), counts=1)] * 2, 3), "names that differ"),
    ],
    ids=[str(place) for place in range(12)],
)
def test_what_is_no_table_is_refused(make: Callable[[], object], found: str) -> None:
    with pytest.raises(ParameterError, match=found):
        make()
