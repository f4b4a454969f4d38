"""Bought domains: what one row moves of what is counted, what is found, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring
from sfumato.synthetic import BoughtCategories, BoughtDomain, BoughtEdges, Categorical, Ordered
from tests.cases import cases

COLUMNS = {
    "city": BoughtCategories(missing=True),
    "code": BoughtCategories(other=False),
    "age": BoughtEdges(0, 100, bins=4, missing=True),
    "sex": ["f", "m"],
}
NUMBERED: Any = {5: BoughtEdges(0, 9, bins=2)}
ROWS = list(
    product(
        ["Rome", "a\0b", "", None],
        [2**63 - 1, 0, None],
        [50.0, -1.0, float("nan"), float("inf"), -float("inf"), 100.0, None],
        ["f", "x", None],
    )
)


def table(rows: Any) -> pa.Table:
    kinds = (pa.string(), pa.int64(), pa.float64(), pa.string())
    columns = zip(COLUMNS, kinds, strict=True)
    return pa.table(
        {name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(columns)}
    )


def test_a_row_moves_one_count_and_one_number_of_each_column_by_one() -> None:
    """All pairs of tables of one row more: what stability histograms and quantiles presuppose."""
    mechanism = BoughtDomain(COLUMNS, epsilon=1.0, delta=1e-6)
    assert mechanism.neighboring is Neighboring.ADD_REMOVE
    for rest in ([], [("Rome", 0, 50.0, "f")], [(None, None, float("nan"), None), ("Rome", 0, 7.0, "m")]):
        before = mechanism.inputs(table(rest))
        for row in ROWS:
            after = mechanism.inputs(table([row, *rest]))
            for name in before:
                had, has = (
                    each if isinstance(each, dict) else Counter(each.tolist())
                    for each in (before[name], after[name])
                )
                moved = {key: has.get(key, 0) - had.get(key, 0) for key in {*has, *had}}
                assert sum(map(abs, moved.values())) <= 1
                assert min(moved.values(), default=0) >= 0
                if row[0] == "Rome" and name == "city":
                    assert moved["Rome"] == 1


def test_the_loss_is_the_whole_budget_and_each_part_is_what_is_drawn() -> None:
    mechanism = BoughtDomain(COLUMNS, epsilon=0.9, delta=1e-6)
    assert 0.8999 < mechanism.privacy_loss.epsilon(1e-6) <= 0.9
    edges = BoughtDomain({"age": BoughtEdges(0, 100, bins=4)}, epsilon=0.5)
    assert 0.49 < edges.privacy_loss.epsilon(0) <= 0.5


def test_frequent_values_and_quantiles_are_found() -> None:
    generator = np.random.default_rng(4)
    many = 4000
    people = pa.table(
        {
            "city": pa.array(generator.choice(["Rome", "Oslo", "Bonn"], many)).dictionary_encode(),
            "code": generator.choice([7, -3], many),
            "age": generator.integers(0, 100, many),
            "sex": ["f"] * many,
        }
    )
    people = pa.concat_tables(
        [people, people.slice(0, 1).set_column(0, "city", pa.array(["Zzz"]).dictionary_encode())]
    )
    released = BoughtDomain(COLUMNS, epsilon=3.0, delta=1e-6).release(people, rng=generator)
    assert released.simulated
    domain = released.domain
    assert domain["city"] == Categorical(["Bonn", "Oslo", "Rome"], missing=True, other=True)
    assert domain["code"] == Categorical([-3, 7])
    assert list(domain) == list(COLUMNS)
    age = domain["age"]
    assert isinstance(age, Ordered)
    assert np.abs(np.array(age.numbers) - [0, 25, 50, 75, 100]).max() <= 3
    days = pa.table({"day": [dt.date(2020, 1, 1) + dt.timedelta(days=d % 366) for d in range(many)]})
    ends = BoughtEdges(dt.date(2020, 1, 1), dt.date(2020, 12, 31), bins=2)
    found = BoughtDomain({"day": ends}, epsilon=1.0).release(days, rng=1).domain["day"]
    assert isinstance(found, Ordered)
    assert found.dated
    assert abs((found.edges[1] - dt.date(2020, 7, 1)).days) < 10  # type: ignore[index]


def test_without_rows_categories_are_absent_and_edges_are_some() -> None:
    released = BoughtDomain(COLUMNS, epsilon=1.0, delta=1e-6).release(table([]), rng=1)
    assert released.absent == ("city", "code")
    assert list(released.domain) == ["age", "sex"]
    nothing = BoughtDomain({"city": BoughtCategories()}, epsilon=1.0, delta=1e-6).release(table([]), rng=1)
    with pytest.raises(ParameterError, match="domain must have a column, but no category was found"):
        _ = nothing.domain


@cases(
    ("make", "part"),
    [
        (lambda: BoughtDomain({}, epsilon=1.0), "columns must be a mapping"),
        (lambda: BoughtDomain(NUMBERED, epsilon=1.0), "columns must have texts as names"),
        (lambda: BoughtCategories(missing=3), "missing must be True or False"),  # type: ignore[arg-type]
        (lambda: BoughtCategories(other="x"), "other must be True or False"),  # type: ignore[arg-type]
        (lambda: BoughtEdges(0, 9, bins=3, missing=2), "missing must be True or False"),  # type: ignore[arg-type]
        (lambda: BoughtDomain({"a": ["x"]}, epsilon=1.0), "columns must have one to be bought"),
        (lambda: BoughtDomain({"a": 3}, epsilon=1.0), "a must be Categorical, Ordered or a list"),
        (lambda: BoughtDomain({"a": BoughtCategories()}, epsilon=1.0), "delta must be"),
        (lambda: BoughtDomain({"a": BoughtEdges(0, 9, bins=2)}, epsilon=-1.0), "epsilon must be positive"),
        (lambda: BoughtEdges(9, 0, bins=2), "edges must rise"),
        (lambda: BoughtEdges(0, 9, bins=1), "bins must be"),
        (lambda: BoughtEdges(0, 9, bins=2000), "bins must be at most"),
        (lambda: BoughtEdges(0, float("inf"), bins=2), "edges must be"),
        (lambda: BoughtEdges(dt.date(2020, 1, 1), 3, bins=2), "upper must be a date"),
    ],
)
def test_what_buys_nothing_is_refused(make: Any, part: str) -> None:
    with pytest.raises(ParameterError, match=part):
        make()


def test_tables_are_refused_by_their_schema_alone() -> None:
    mechanism = BoughtDomain(COLUMNS, epsilon=1.0, delta=1e-6)
    whole = table([("Rome", 1, 1.0, "f")])
    for wrong, part in (
        (whole.drop_columns(["age"]), "'age' is there 0 times"),
        (whole.append_column("age", whole["age"]), "'age' is there 2 times"),
        (whole.set_column(0, "city", pa.array([1.5])), "column 'city' must be of texts or whole numbers"),
        (whole.set_column(2, "age", pa.array(["1"])), "column 'age' must be of numbers"),
    ):
        for rows in (wrong, wrong.slice(0, 0)):
            with pytest.raises(ParameterError, match=part):
                mechanism.release(rows, rng=1)


def test_a_value_named_as_the_others_is_one_of_them() -> None:
    """Such a value is private data: it must not be an error after the charge."""
    rows = pa.table({"city": ["(other)"] * 500 + ["Rome"] * 500, "code": ["(other)"] * 1000})
    columns = {"city": BoughtCategories(missing=True), "code": BoughtCategories()}
    released = BoughtDomain(columns, epsilon=8.0, delta=1e-6).release(rows, rng=1)
    assert released.domain["city"].labels == ("Rome", "(other)", None)
    assert released.absent == ("code",)
    only = BoughtDomain({"code": BoughtCategories(other=False)}, epsilon=8.0, delta=1e-6)
    assert only.release(rows, rng=1).domain["code"].labels == ("(other)",)


def test_numbers_of_numpy_are_described_as_plain_ones() -> None:
    bins: Any = np.int64(3)
    edges = BoughtEdges(np.int64(0), np.float64(9.5), bins=bins)
    assert json.dumps(edges.described()) == json.dumps(BoughtEdges(0, 9.5, bins=3).described())
