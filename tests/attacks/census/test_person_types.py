"""Person types: all combinations but the impossible ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from sfumato.attacks import PersonTypes
from sfumato.errors import ParameterError
from tests.cases import cases

ATTRIBUTES = {"age": range(4), "sex": ("F", "M"), "married": (False, True)}
IMPOSSIBLE = [{"age": [0, 1], "married": True}, {"age": 3, "sex": "M", "married": False}]


def test_types_are_all_combinations_that_are_possible() -> None:
    types = PersonTypes(ATTRIBUTES, impossible=IMPOSSIBLE)
    expected = [
        person
        for person in itertools.product(range(4), "FM", (False, True))
        if not (person[0] < 2 and person[2]) and person != (3, "M", False)
    ]
    assert [types.person(place) for place in range(len(types))] == expected
    assert types.persons(types.counts(expected)) == expected
    assert types.counts([expected[3]] * 2).tolist() == [2 * (place == 3) for place in range(len(expected))]


def test_masks_and_bins_select_values() -> None:
    types = PersonTypes(ATTRIBUTES)
    everyone = [types.person(place) for place in range(len(types))]
    assert types.mask({"age": {1, 2}, "sex": "F"}).tolist() == [
        p[0] in {1, 2} and p[1] == "F" for p in everyone
    ]
    assert types.bins("age", [range(2), 3]).tolist() == [{0: 0, 1: 0, 2: -1, 3: 1}[p[0]] for p in everyone]  # type: ignore[index]
    assert types.numbers("age").tolist() == [p[0] for p in everyone]


@cases(
    "attributes, impossible, found",
    [
        ({}, [], "attributes must make from 1 to 5,000,000"),
        ({"a": range(3000), "b": range(3000)}, [], "got 9000000"),
        ({"a": ()}, [], r"attributes\['a'\] must have values"),
        ({"a": (1, 1)}, [], r"attributes\['a'\] must have values"),
        ({"a": (1, 2)}, [{"a": 3}], "value of a must be one of"),
        ({"a": (1, 2)}, [{"b": 3}], "attribute must be one of a, got 'b'"),
    ],
)
def test_what_makes_no_types_is_refused(attributes: Any, impossible: Any, found: str) -> None:
    with pytest.raises(ParameterError, match=found):
        PersonTypes(attributes, impossible=impossible)


def test_persons_of_no_type_are_refused_without_their_values() -> None:
    types = PersonTypes(ATTRIBUTES, impossible=IMPOSSIBLE)
    for person in [(0, "F", True), (9, "F", False), (1, "F")]:
        with pytest.raises(ParameterError, match="got a value of type tuple"):
            types.counts([person])
    with pytest.raises(ParameterError, match="groups of age must be disjoint"):
        types.bins("age", [[0, 1], [1]])
    with pytest.raises(ParameterError, match="attribute must have numbers"):
        types.numbers("sex")
    assert types.counts([]).dtype == np.int64
