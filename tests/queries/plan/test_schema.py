"""Schemas: names without regard to case, columns under new names, and names that a column may carry."""

from __future__ import annotations

import pytest

from sfumato.errors import SchemaError
from sfumato.queries.plan.schema import Column, ColumnType, Schema
from sfumato.queries.sql.catalog import output_name


def test_columns_under_new_names_keep_types_and_what_declares_them() -> None:
    first = Schema((Column("id", ColumnType.INTEGER),))
    other = Schema(
        (
            Column("x", ColumnType.TEXT, ("visits.x", "x")),
            Column("blob", None),
            Column("day", ColumnType.DATE),
        )
    )
    made = first.with_names(("note", "when"), other)
    assert [(column.name, column.type, column.declare) for column in made.columns] == [
        ("id", ColumnType.INTEGER, ()),
        ("note", ColumnType.TEXT, ("visits.x", "x")),
        ("when", ColumnType.DATE, ()),
    ]


def test_a_name_may_have_300_letters() -> None:
    assert output_name("n" * 300) == "n" * 300
    for name in ("n" * 301, "", "a\nb"):
        with pytest.raises(SchemaError, match="not empty and at most 300 long"):
            output_name(name)
