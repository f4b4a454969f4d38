"""Cells' labels as columns, and what declares a domain: of which type, once, and the same after reading."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Categorical, Ordered, TableDomain
from tests.cases import cases

ODD: Any = 2
TEXT: Any = "no"


@cases(
    ("attribute", "labels"),
    [
        (Categorical([3, 1], other=True, missing=True), ["3", "1", "(other)", None]),
        (Categorical([True, False], other=True), ["True", "False", "(other)"]),
        (Categorical([3, 1], missing=True), [3, 1, None]),
        (Categorical(["f"], other=True, missing=True), ["f", "(other)", None]),
        (Ordered.integers(5, 6, missing=True), [5, 6, None]),
        (Ordered(0, 2, bins=2), ["[0, 1)", "[1, 2]"]),
    ],
)
def test_every_domain_is_decoded(attribute: Any, labels: list[Any]) -> None:
    codes = np.arange(attribute.size)[::-1, None].copy()
    assert TableDomain(x=attribute).decode(codes)["x"].to_pylist() == labels[::-1]


@cases(
    ("make", "message"),
    [
        (lambda: Categorical(["a"], missing=ODD), "missing must be True or False, got 2"),
        (lambda: Categorical(["a"], other=TEXT), "other must be True or False, got 'no'"),
        (lambda: Ordered(0, 1, bins=1, missing=ODD), "missing must be True or False, got 2"),
        (lambda: Categorical(["(other)"], other=True), r"values must not have '\(other\)' beside other=True"),
        (lambda: Ordered(1, 0, bins=2), "upper must be above lower"),
        (lambda: Ordered(-1e308, 1e308, bins=2), "upper must be above lower, by less than 1e308"),
        (lambda: TableDomain({ODD: ["a"]}), "attributes must have texts as names of columns"),
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
    assert TableDomain(a=[1, 0]) != TableDomain(a=[True, False])
    assert TableDomain(a=["x"], b=["y"]) != TableDomain(b=["y"], a=["x"])


def test_a_document_has_each_column_once() -> None:
    document = json.loads(TableDomain(a=["x"], b=["y"]).to_json())
    for name in ("a", None, 3):
        document["columns"][1]["name"] = name
        with pytest.raises(ParameterError, match="columns must have names, each of them once"):
            TableDomain.from_json(json.dumps(document))
    del document["columns"][1]["name"]
    with pytest.raises(ParameterError, match="columns must have names"):
        TableDomain.from_json(json.dumps(document))
