"""Declared columns: each value's cell, whatever else is in the table, and errors by types alone."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Categorical, Ordered, TableDomain
from tests.cases import cases

DAYS = [dt.date(2020, 1, 1), dt.date(2020, 2, 1), dt.date(2021, 1, 1)]


@cases(
    ("attribute", "values", "codes"),
    [
        (Categorical(["f", "m"]), ["m", None, "f", "x"], [1, -1, 0, -1]),
        (Categorical(["f", "m"], missing=True, other=True), ["m", None, "f", "x"], [1, 3, 0, 2]),
        (Categorical([3, 1], other=True), [1, 2, 3, None], [1, 2, 0, -1]),
        (Categorical([False, True]), [True, False, None], [1, 0, -1]),
        (Ordered.integers(17, 19), [16, 17, 18, 19, 90, None], [0, 0, 1, 2, 2, -1]),
        (Ordered.integers(17, 19), [17.5, float("nan"), float("inf"), -float("inf")], [0, -1, 2, 0]),
        (Ordered(0, 1, bins=4, missing=True), [0.0, 0.25, 0.249, 1.0, None], [0, 1, 0, 3, 4]),
        (Ordered(edges=[0, 1, 10]), [Decimal("0.5"), Decimal("1.0"), Decimal("9.9")], [0, 1, 1]),
        (Ordered(edges=DAYS), [dt.date(2020, 1, 31), dt.date(2020, 2, 1), dt.date(1990, 1, 1)], [0, 1, 0]),
        (Ordered(edges=DAYS), [dt.datetime(2020, 1, 31, 23), dt.datetime(2022, 1, 1), None], [0, 1, -1]),
    ],
)
def test_each_value_has_its_cell(attribute: Any, values: list[Any], codes: list[int]) -> None:
    column = pa.chunked_array([values[:1], values[1:]], pa.array(values).type)
    assert attribute.encode("x", column).tolist() == codes
    assert len(attribute.labels) == attribute.size > max(codes)
    alone = [attribute.encode("x", pa.chunked_array([[value]], column.type)).tolist() for value in values]
    assert alone == [[code] for code in codes], "no row decides on another"
    if pa.types.is_string(column.type):
        for kind in (pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
            assert attribute.encode("x", column.cast(kind)).tolist() == codes


def test_whole_numbers_of_all_widths_are_compared_exactly() -> None:
    large = Categorical([2**53 + 1, -1, 2**70])
    assert large.encode("x", pa.chunked_array([pa.array([2**53, 2**53 + 1], pa.uint64())])).tolist() == [
        -1,
        0,
    ]
    edge = pa.array([2**64 - 1, 2**53 + 1], pa.uint64())
    assert large.encode("x", pa.chunked_array([edge])).tolist() == [-1, 0]
    assert Categorical([2**64 - 1, 5]).encode("x", pa.chunked_array([edge])).tolist() == [-1, -1]


@cases(
    ("attribute", "column"),
    [
        (Categorical(["f"]), [1]),
        (Categorical([1]), ["f"]),
        (Categorical([1]), [True]),
        (Categorical([True]), [1]),
        (Ordered.integers(0, 9), ["1"]),
        (Ordered.integers(0, 9), [dt.date(2020, 1, 1)]),
        (Ordered(edges=DAYS), [1.0]),
        (Ordered(edges=DAYS), [dt.time(1)]),
    ],
)
def test_other_types_are_refused_even_without_rows(attribute: Any, column: list[Any]) -> None:
    kind = pa.array(column).type
    for rows in (pa.array(column), pa.array([], kind), pa.array([None], kind)):
        with pytest.raises(ParameterError, match=r"column 'x' must be .*, but it is of .*; cast it"):
            TableDomain(x=attribute).encode(pa.table({"x": rows}))


def test_rows_without_a_cell_are_left_out_and_columns_are_read_by_name() -> None:
    domain = TableDomain(age=Ordered.integers(0, 9), sex=["f", "m"])
    table = pa.table({"sex": ["m", "f", "x"], "more": [1, 2, 3], "age": [3, None, 4]})
    assert domain.encode(table).tolist() == [[3, 1]]
    assert domain.decode(np.array([[3, 1], [0, 0]])).to_pylist() == [
        {"age": 3, "sex": "m"},
        {"age": 0, "sex": "f"},
    ]
    twice = pa.Table.from_arrays([pa.array([1])] * 2 + [pa.array(["f"])], names=["age", "age", "sex"])
    for wrong in (twice, table.drop_columns(["age"])):
        with pytest.raises(ParameterError, match=r"table must have each declared column once, but 'age'"):
            domain.encode(wrong)


EVERY = TableDomain(
    age=Ordered.integers(0, 9, missing=True),
    when=Ordered(edges=DAYS),
    share=Ordered(0, 1, bins=3),
    sex=Categorical(["f", "m"], other=True),
    old=[True, False],
)


def test_a_domain_reads_what_it_wrote() -> None:
    assert TableDomain.from_json(EVERY.to_json()).to_json() == EVERY.to_json()
    again = TableDomain.from_json(EVERY.to_json())
    assert again.sizes == EVERY.sizes == (11, 2, 3, 3, 2)
    assert [each.labels for each in again.values()] == [each.labels for each in EVERY.values()]
    assert hash(TableDomain(sex=["f"])) == hash(TableDomain({"sex": Categorical(("f",))}))


@cases(
    ("text", "part"),
    [
        ("[age]\nlower = 1", "edges must be given"),
        ("[age]\nvalues = 'f'", "values must be a list"),
        ("[age]\nvalues = ['f', 1]", "values must be texts"),
        ("[age]\nvalues = ['f', 'f']", "different values"),
        ("[age]\nintegers = [3]", "age must describe cells"),
        ("[age]\nedges = [3, 1]", "edges must rise"),
        ("[age]\nedges = ['x', 'y']", "age must describe cells"),
        ("[age]\nvalues = ['f']\nlower = 3", "age must describe cells"),
        ("[age]\nname = 'f'", "age must be an object of"),
        ("age = 3", "age must be an object of"),
        ("", "attributes must be columns"),
        ("[", "path must be a TOML file"),
    ],
)
def test_what_declares_no_cells_is_refused(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "d.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError, match=part):
        TableDomain.from_toml(path)


def test_a_toml_file_declares_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "d.toml"
    path.write_text(
        "age = {integers = [0, 9], missing = true}\nwhen = {edges = [2020-01-01, 2020-02-01, 2021-01-01]}\n"
        "share = {lower = 0, upper = 1, bins = 3}\nsex = {values = ['f', 'm'], other = true}\n"
        "old = {values = [true, false]}\n",
        encoding="utf-8",
    )
    assert TableDomain.from_toml(path).to_json() == EVERY.to_json()
