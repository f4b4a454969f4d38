"""What declares a domain: of which type, and the same after writing and reading."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Categorical, Ordered, TableDomain
from tests.cases import cases

ODD: Any = 2
TEXT: Any = "no"
LISTED: Any = ["a"]
TRUTH = TableDomain(a=[True, False])


class _Code(enum.IntEnum):
    LOW = 1
    HIGH = 2


class _Sex(enum.StrEnum):
    F = "f"
    M = "m"


@cases(
    ("make", "message"),
    [
        (lambda: Categorical(["a"], missing=ODD), "missing must be True or False, got 2"),
        (lambda: Categorical(["a"], other=TEXT), "other must be True or False, got 'no'"),
        (lambda: Ordered(0, 1, bins=1, missing=ODD), "missing must be True or False, got 2"),
        (lambda: Categorical(["(other)"], other=True), r"values must not have '\(other\)' beside other=True"),
        (lambda: Ordered(1, 0, bins=2), "upper must be above lower"),
        (lambda: Ordered(-1e308, 1e308, bins=2), "upper must be above lower, by at most 1e308"),
        (lambda: TableDomain({ODD: ["a"]}), "attributes must have texts as names of columns"),
        (lambda: TRUTH.with_structural_zeros({"a": [1]}), "zeros of 'a' must be labels of its cells, got 1"),
        (lambda: TRUTH.with_structural_zeros({"a": [["x"]]}), "zeros of 'a' must be labels"),
        (lambda: TRUTH.index(LISTED), "column must be one of"),
    ],
)
def test_what_declares_no_cells_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_domain_is_the_same_after_writing_and_reading() -> None:
    domain = TableDomain(
        a=Ordered(0, 10, bins=4, missing=True),
        b=Ordered.integers(0, 9),
        c=Categorical([True, False], other=True),
        d=Ordered(edges=[dt.date(2020, 1, 1), dt.date(2021, 1, 1)]),
        e=[1, 0],
    )
    again = TableDomain.from_json(domain.to_json())
    assert again == domain
    assert hash(again) == hash(domain)
    others = [Ordered(0, 10, bins=4), Ordered(0, 10, bins=5, missing=True)]
    for other in others:
        assert TableDomain(dict(domain) | {"a": other}) != domain
    assert TableDomain(a=["x"], b=["y"]) != TableDomain(b=["y"], a=["x"])


@cases(
    ("edges", "message"),
    [
        ([0, 10**400], "edges must be a finite number, got 1000"),
        ([0, math.nan, 2], "edges must be a finite number, got nan"),
        ([0, math.inf], "edges must be a finite number, got inf"),
        ([0.0, True], "edges must be a finite number, got True"),
        ([0, "a"], "edges must be a finite number, got 'a'"),
        ([0, dt.date(2020, 1, 1)], "edges must be a finite number, got datetime"),
        ([0, 1.0, 1], "edges must rise"),
        ([2**60, 2**60 + 1], "edges must rise"),  # as floats they are the same
        ([dt.date(2020, 1, 2), dt.date(2020, 1, 1)], "edges must rise"),
        (range(2**20 + 2), "edges must rise, and be those of at most 1048576 bins"),
    ],
)
def test_edges_are_finite_numbers_or_dates_that_rise(edges: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Ordered(edges=edges)


def test_edges_of_every_kind_of_number_are_floats() -> None:
    given: list[Any] = [[0, 1, 2.5], np.array([0, 1, 2.5]), [np.float32(0), Fraction(1), 2.5], range(3)]
    for edges in given:
        found = Ordered(edges=edges).edges
        assert found is not None
        assert [type(edge) for edge in found] == [float] * 3
        assert found[:2] == (0.0, 1.0)
    assert Ordered.integers(2**52 - 1, 2**52).edges == (2.0**52 - 1, 2.0**52, 2.0**52 + 1)


def test_truth_values_and_the_numbers_that_equal_them_are_different_domains() -> None:
    numbers = TableDomain(a=[1, 0])
    assert numbers != TRUTH
    assert Categorical([True, False]) != Categorical([1, 0])
    assert len({TRUTH, numbers, TableDomain(a=[True, False])}) == 2
    with pytest.raises(ParameterError, match="truth values"):
        TRUTH.encode(pa.table({"a": [1, 0]}))


def test_members_of_enumerations_and_texts_of_numpy_are_the_values_that_they_equal() -> None:
    for given, plain in ((list(_Code), [1, 2]), (list(_Sex), ["f", "m"]), (list(np.array(["x"])), ["x"])):
        domain = TableDomain(a=given)
        assert domain == TableDomain(a=plain)
        assert [type(label) for label in domain["a"].labels] == [type(value) for value in plain]
        assert domain.encode(pa.table({"a": plain})).ravel().tolist() == list(range(len(plain)))


def test_a_document_names_each_column_once() -> None:
    document = json.loads(TableDomain(a=["x"], b=["y"]).to_json())
    with pytest.raises(ParameterError, match="text must have columns and zeros alone, got 'zeroes'"):
        TableDomain.from_json(json.dumps({**document, "zeroes": [{"a": ["x"]}]}))
    for names in (("a", "a"), ("a", None), ("a", 5)):
        for column, name in zip(document["columns"], names, strict=True):
            column["name"] = name
        with pytest.raises(ParameterError, match="columns must have different names"):
            TableDomain.from_json(json.dumps(document))
