"""Constraints between columns: which cells they forbid, against each value; and what is refused."""

from __future__ import annotations

import datetime as dt
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Categorical, ColumnOrder, Implication, Ordered, TableDomain
from sfumato.synthetic.domain.feasibility import leave_some_cell
from sfumato.synthetic.domain.structural_zeros import possible_cells
from tests.cases import cases

AGE = Ordered(0, 60, bins=4, missing=True)
DOMAIN = TableDomain(
    age=AGE,
    marital=Categorical(["never", "married"], missing=True, other=True),
    grade=Categorical([1, 2, 3], other=True),
    employed=[True, False],
    hours=Ordered.integers(0, 4),
)


def possible(domain: TableDomain) -> Any:
    return possible_cells(range(len(domain)), domain.sizes, domain.structural_zeros)


def test_an_implication_forbids_the_cells_where_it_fails_and_no_unknown_ones() -> None:
    ages, marital = ("< 15", "never"), DOMAIN["marital"].labels
    domain = DOMAIN.with_constraints(Implication({"age": ages[0]}, {"marital": ages[1]}))
    for (i, age), (j, status) in product(enumerate(AGE.labels), enumerate(marital)):
        allowed = age != "[0, 15)" or status in ("never", None)
        assert possible(domain)[i, j].all() == possible(domain)[i, j].any() == allowed
    several = DOMAIN.with_constraints(
        Implication(
            {"hours": "> 0", "grade": [2, "(other)"]}, {"employed": True, "marital": ["never", None]}
        ),
        Implication({"age": [None]}, {"grade": "<= 1"}),
    )
    for cell in np.ndindex(*DOMAIN.sizes):
        age, status, grade, employed, hours = (
            each.labels[place] for each, place in zip(DOMAIN.values(), cell, strict=True)
        )
        first = hours == 0 or grade not in (2, "(other)") or (employed and status in ("never", None))
        second = age is not None or grade in (1, "(other)")  # what is undeclared may be at most 1
        assert possible(several)[cell] == (first and second)
    assert TableDomain.from_json(several.to_json()) == several


@cases(
    ("first", "second"),
    [
        (Ordered.integers(0, 5), Ordered.integers(2, 7)),
        (Ordered(0, 6, bins=4), Ordered(1, 5, bins=3)),
        (Ordered.integers(0, 5), Ordered(edges=[0, 2.5, 4, 9])),
        (Ordered(edges=[0, 2.5, 4, 9]), Ordered.integers(1, 6)),
    ],
)
def test_an_order_forbids_the_cells_in_which_no_values_are_in_order(first: Ordered, second: Ordered) -> None:
    """Values on a fine grid, far beyond the ends too; whole numbers where cells are these."""
    for strict in (False, True):
        domain = TableDomain(a=first, b=second).with_constraints(ColumnOrder("a", "b", strict=strict))
        found = np.zeros((first.size, second.size), bool)
        fine = np.arange(-2, 14, 1 / 8)
        one = np.array(first.labels, float) if first.whole else fine
        two = np.array(second.labels, float) if second.whole else fine
        a, b = (np.ravel(each) for each in np.meshgrid(one, two))
        held = a < b if strict else a <= b
        codes = TableDomain(a=first, b=second).encode(pa.table({"a": a[held], "b": b[held]}))
        found[tuple(codes.T)] = True
        assert (possible(domain) == found).all()
        assert not found.all()


def test_dates_and_missing_values_are_in_order() -> None:
    days = [dt.date(2020, month, 1) for month in (1, 2, 3, 4)]
    domain = TableDomain(start=Ordered(edges=days, missing=True), end=Ordered(edges=days, missing=True))
    domain = domain.with_constraints(
        ColumnOrder("start", "end"), Implication({"end": ">= 2020-03-01"}, {"start": "< 2020-02-01"})
    )
    expected = [[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1]]
    assert possible(domain).astype(int).tolist() == expected


def test_a_file_declares_constraints(tmp_path: Path) -> None:
    path = tmp_path / "d.toml"
    path.write_text(
        "age = {lower = 0, upper = 60, bins = 4}\nmarital = {values = ['never', 'married']}\n"
        "start = {integers = [0, 3]}\nend = {integers = [0, 3]}\n"
        "[[zeros]]\nage = ['[45, 60]']\nstart = [0]\n"
        "[[constraints]]\nwhen = {age = '< 15'}\nthen = {marital = 'never'}\n"
        "[[constraints]]\norder = ['start', 'end']\nstrict = true\n",
        encoding="utf-8",
    )
    made = TableDomain.from_toml(path)
    expected = TableDomain(
        age=Ordered(0, 60, bins=4),
        marital=["never", "married"],
        start=Ordered.integers(0, 3),
        end=Ordered.integers(0, 3),
    ).with_structural_zeros({"age": ["[45, 60]"], "start": [0]})
    expected = expected.with_constraints(
        Implication({"age": "< 15"}, {"marital": ["never"]}), ColumnOrder("start", "end", strict=True)
    )
    assert made == expected
    path.write_text("[constraints]\nvalues = ['a']\n", encoding="utf-8")
    assert list(TableDomain.from_toml(path)) == ["constraints"], "a column may have that name"
    for text, part in (
        ("when = {a = 1}", "constraints must have when and then, or order alone"),
        ("order = ['a']", "constraints must have"),
        ("order = ['a', 'a']", "order must be of two different columns"),
        ("when = 1\nthen = {a = 1}", "when must be a mapping"),
        ("when = {b = 1}\nthen = {a = 1}", "constraints must be of columns among"),
    ):
        path.write_text(f"[a]\nvalues = [1, 2]\n[[constraints]]\n{text}\n", encoding="utf-8")
        with pytest.raises(ParameterError, match=part):
            TableDomain.from_toml(path)


@cases(
    ("make", "part"),
    [
        (lambda: Implication({}, {"marital": "never"}), "when must be a mapping"),
        (lambda: Implication({"age": "< 15"}, {"age": ">= 15"}), "then must be of other columns than when"),
        (
            lambda: Implication({"age": "< 10"}, {"marital": "never"}),
            "condition on 'age' must be < or >= an edge",
        ),
        (
            lambda: Implication({"age": "<= 15"}, {"marital": "never"}),
            "an edge between two bins, but it is <= 15",
        ),
        (lambda: Implication({"age": "< x"}, {"marital": "never"}), "must be about a number or date"),
        (lambda: Implication({"age": "< 15"}, {"hours": "<= nan"}), "must be about a number or date"),
        (lambda: Implication({"age": "15"}, {"marital": "never"}), "condition on 'age' must be labels"),
        (lambda: Implication({"hours": 9}, {"marital": "never"}), "condition on 'hours' must be labels"),
        (lambda: Implication({"hours": []}, {"marital": "never"}), "condition on 'hours' must have a label"),
        (
            lambda: Implication({"hours": "> 9"}, {"marital": "never"}),
            "condition on 'hours' must hold in",
        ),
        (
            lambda: Implication({"hours": 1}, {"grade": "< 9"}),
            "condition on 'grade' must leave out some cell",
        ),
        (lambda: ColumnOrder("age", "marital"), "order must be of ordered columns, but 'marital' is categ"),
        (lambda: ColumnOrder("age", "town"), "constraints must be of columns among"),
        (lambda: ColumnOrder("age", "age"), "order must be of two different columns"),
        (lambda: ColumnOrder("age", "hours", strict=1), "strict must be True or False"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_constraint_is_refused(make: Any, part: str) -> None:
    with pytest.raises(ParameterError, match=part):
        DOMAIN.with_constraints(make())


def test_bins_that_a_document_cannot_tell_apart_are_in_no_zero() -> None:
    """Labels have ten digits: the document of such zeros would be about other cells, and two keys equal."""
    began = 1_700_000_000_000
    bins = Ordered(began, began + 400, bins=4)
    domain = TableDomain(start=bins, end=bins, sex=["f", "m"])
    assert len(set(bins.labels)) < bins.size
    for constraint in (ColumnOrder("start", "end"), Implication({"start": f"< {began + 100}"}, {"sex": "f"})):
        with pytest.raises(ParameterError, match="must have bins of different labels"):
            domain.with_constraints(constraint)
    with pytest.raises(ParameterError, match="must have bins of different labels"):
        domain.with_structural_zeros({"start": [bins.labels[0]], "sex": ["f"]})
    assert domain.with_structural_zeros({"sex": ["f"]}).structural_zeros == (((2, (0,)),),)


def test_dates_are_not_compared_with_numbers() -> None:
    dated = TableDomain(a=Ordered(edges=[dt.date(2020, 1, 1), dt.date(2021, 1, 1)]), b=Ordered.integers(0, 3))
    with pytest.raises(ParameterError, match="order must be of two columns of numbers, or of dates"):
        dated.with_constraints(ColumnOrder("a", "b"))


def test_zeros_that_leave_no_cell_are_refused_where_they_are_declared() -> None:
    """Each of them leaves cells; all together are against a search through all cells."""
    domain = TableDomain(a=[0, 1], b=[0, 1], c=[0, 1])
    domain = domain.with_constraints(Implication({"a": 0}, {"b": 1}), Implication({"b": 1}, {"c": 1}))
    with pytest.raises(ParameterError, match="zeros must leave some cell, but together they leave none"):
        domain.with_structural_zeros({"c": [1]}, {"a": [1], "b": [0]}, {"a": [1], "c": [0]})
    rng, found = np.random.default_rng(4), set()
    for _ in range(200):
        sizes = tuple(int(size) for size in rng.integers(1, 4, 5))
        zeros = []
        for _ in range(int(rng.integers(1, 14))):
            scope = sorted(rng.choice(5, int(rng.integers(1, 4)), replace=False).tolist())
            cells = [np.flatnonzero(rng.random(sizes[place]) < 0.75).tolist() or [0] for place in scope]
            zeros.append(tuple((place, tuple(each)) for place, each in zip(scope, cells, strict=True)))
        exact = bool(possible_cells(range(5), sizes, zeros).any())
        assert leave_some_cell(sizes, zeros) is exact
        found.add(exact)
    assert found == {True, False}
    assert leave_some_cell((2000, 2000, 2000), [((0, (0,)), (1, (0,)), (2, (0,)))]) is None
