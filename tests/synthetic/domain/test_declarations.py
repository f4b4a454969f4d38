"""What declares a domain: of which type, and the same after writing and reading."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Categorical, Ordered, TableDomain
from tests.cases import cases

ODD: Any = 2
TEXT: Any = "no"


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
