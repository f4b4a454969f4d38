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
from sfumato.synthetic.domain.structural_zeros import possible_cells
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
    assert Categorical([2**64 - 1, 5]).encode("x", pa.chunked_array([edge])).tolist() == [0, -1]
    rest = Categorical([5], other=True, missing=True)
    assert rest.encode("x", pa.chunked_array([edge])).tolist() == [1, 1], "undeclared, and not NULL"
    signed = pa.chunked_array([pa.array([2**63 - 1, -(2**63)])])
    assert Categorical([-(2**63), 2**63 - 1]).encode("x", signed).tolist() == [1, 0]


def test_decimals_are_in_the_bin_of_the_nearest_float_and_timestamps_of_their_day_in_utc() -> None:
    values = [Decimal(digits) / 1000 for digits in (-1, 1, 7, 13, 501, 999, 12345, 100000001)]
    for value in values:
        attribute = Ordered(edges=[-1e9, float(value), 1e9])
        assert attribute.encode("x", pa.chunked_array([[value]])).tolist() == [1], value
    moment = pa.array([dt.datetime(2020, 2, 1, 4)], pa.timestamp("us", "America/New_York"))
    assert Ordered(edges=DAYS).encode("x", pa.chunked_array([moment])).tolist() == [1]


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
    assert TableDomain.from_json(EVERY.to_json()) == EVERY
    assert Ordered(0, 4, bins=4) != Ordered.integers(0, 3), "their labels differ"
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
        ('[age]\nvalues = ["\\u0000"]', "texts that a column can hold"),
        ("[a]\nvalues = [1]\n[[zeros]]\na = [2]", "zeros of 'a' must be labels"),
        ("[a]\nvalues = [1]\n[[zeros]]\na = [1]", "zeros must leave some cell"),
        ("[a]\nvalues = [1]\n[[zeros]]\nb = [1]", "zeros must be of columns"),
        ("[a]\nvalues = [1]\n[[zeros]]\na = 1", "zeros must have a list of labels"),
        ("zeros = [1]\n[a]\nvalues = [1]", "zeros must be mappings"),
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


def test_rows_that_cannot_be_are_left_out_and_zeros_are_read_back(tmp_path: Path) -> None:
    plain = TableDomain(age=Ordered.integers(0, 3), marital=Categorical(["single", "married"], missing=True))
    domain = plain.with_structural_zeros(
        {"age": [0, 1], "marital": ["married"]}, {"marital": [None], "age": [3]}
    )
    rows = {
        "age": [0, 0, 1, 2, 3, 3, -5],
        "marital": ["single", "married", "married", "married", None, "single", "married"],
    }
    assert domain.encode(pa.table(rows)).tolist() == [[0, 0], [2, 1], [3, 0]]
    assert domain != plain
    assert hash(domain) != hash(plain)
    assert "2 structural zeros" in repr(domain)
    assert TableDomain.from_json(domain.to_json()) == domain
    assert '"version":1' in plain.to_json(), "what is written without zeros is what was"
    possible = possible_cells((0, 1), domain.sizes, domain.structural_zeros)
    held = [bool(len(domain.encode(domain.decode(np.array([cell]))))) for cell in np.ndindex(*domain.sizes)]
    assert possible.ravel().tolist() == held
    assert possible_cells((1,), domain.sizes, domain.structural_zeros).all()
    path = tmp_path / "d.toml"
    path.write_text(
        "age = {integers = [0, 3]}\nmarital = {values = ['single', 'married'], missing = true}\n"
        "[[zeros]]\nage = [0, 1]\nmarital = ['married']\n",
        encoding="utf-8",
    )
    assert TableDomain.from_toml(path) == plain.with_structural_zeros({"age": [0, 1], "marital": ["married"]})


def test_a_schema_says_the_cells_of_truth_values_alone() -> None:
    schema = pa.schema([("a", pa.bool_()), pa.field("b", pa.bool_(), nullable=False), ("c", pa.string())])
    found = TableDomain.from_schema(schema, {"c": ["x"], "unused": [1]})
    assert found == TableDomain(a=Categorical([False, True], missing=True), b=[False, True], c=["x"])
    assert list(TableDomain.from_schema(schema, columns=["b", "a"])) == ["b", "a"]
    listed = pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))])
    for wrong, declared, columns, part in (
        (schema, None, None, "column 'c' must have declared cells"),
        (listed, None, None, "column 'd' must have declared cells"),
        (schema, {"c": [1]}, None, "column 'c' must be a column of whole numbers"),
        (schema, None, ["z"], "columns must be columns of the schema"),
        (schema, None, ["a", "a"], "columns must be columns of the schema"),
        (pa.schema([("a", pa.bool_())] * 2), None, None, "columns must be columns of the schema"),
    ):
        with pytest.raises(ParameterError, match=part):
            TableDomain.from_schema(wrong, declared, columns=columns)
