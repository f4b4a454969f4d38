"""Columns that are named, of one table or of several."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.queries.engines.named_columns import columns_of, named_columns


def test_columns_are_of_the_only_table_or_table_by_table() -> None:
    assert named_columns(None, ["people"]) is None
    one = named_columns(["person", "state"], ["people"])
    assert columns_of(one, "people") == ("person", "state")
    assert named_columns("person", None) == ("person",)
    several = named_columns({"people": ["person"], "visits": ("day",)}, ["people", "visits", "more"])
    assert [columns_of(several, name) for name in ("people", "visits", "more")] == [
        ("person",),
        ("day",),
        None,
    ]


_WRONG: list[tuple[Any, list[str], str]] = [
    (7, ["people"], "columns must be names, got a value of type int"),
    ([7], ["people"], "columns must be names, got 7"),
    ([""], ["people"], "columns must be names, got ''"),
    (["a\0"], ["people"], "columns must be names"),
    ([], ["people"], "name each column once, and one at least"),
    (["a", "a"], ["people"], "name each column once"),
    (["a"], ["people", "visits"], "stated table by table, but there are 2 tables"),
    ({"other": ["a"]}, ["people"], "of tables that are meant, got 'other'"),
    ({"people": 7}, ["people"], "columns must be names, got a value of type int"),
]


def test_what_names_no_columns_is_refused() -> None:
    for given, tables, message in _WRONG:
        with pytest.raises(ParameterError, match=message):
            named_columns(given, tables)
