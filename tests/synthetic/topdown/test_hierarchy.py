"""Levels of places: what nests, in which order, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Hierarchy, TableDomain, UnitCounts
from sfumato.synthetic.topdown.topdown_release import all_levels
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    UNITS = pa.table({"state": ["b", "a", "b", "a", "b"], "town": [30, 10, 20, 11, 31]})
    PLACES = Hierarchy.from_table(UNITS, ["state", "town"], root="land")


def test_places_of_one_parent_are_neighbors_whatever_the_order_of_rows() -> None:
    assert PLACES.levels == ("land", "state", "town")
    assert PLACES.places("town").to_pylist() == [10, 11, 20, 30, 31]
    assert PLACES.places("land").to_pylist() == ["land"]
    assert [parents.tolist() for parents in PLACES.parents] == [[0, 0], [0, 0, 1, 1, 1]]
    assert PLACES.starts(1).tolist() == [0, 2, 5]
    assert [PLACES.ancestors(depth).tolist() for depth in range(3)] == [
        [0] * 5,
        [0, 0, 1, 1, 1],
        [0, 1, 2, 3, 4],
    ]
    assert PLACES.index("town", [31, 10]).tolist() == [4, 0]


def test_rows_of_unknown_places_and_values_are_not_counted() -> None:
    domain = TableDomain(sex=["f", "m"])
    table = pa.table({"town": pa.array([10, 99, None, 31, 31], pa.int32()), "sex": ["f", "f", "m", "x", "m"]})
    counted = UnitCounts.from_table(PLACES, domain, table)
    assert (counted.units.tolist(), counted.cells.tolist()) == ([0, 4], [0, 1])
    weighted = table.append_column("n", pa.array([7, 1, 1, 1, -4]))
    levels = all_levels(
        PLACES, UnitCounts.from_table(PLACES, domain, weighted, count="n").lowest(5, 2), domain.cells
    )
    assert [int(level.counts.sum()) for level in levels] == [7, 7, 7]


def test_sparse_counts_add_up_to_those_of_all_levels() -> None:
    rng = np.random.default_rng(1)
    units, cells, counts = (rng.integers(0, most, 200) for most in (5, 6, 9))
    levels = all_levels(PLACES, UnitCounts(units, cells, counts).lowest(5, 6), 6)
    for depth, level in enumerate(levels):
        dense = np.zeros((PLACES.size(depth), 6), np.int64)
        np.add.at(dense, (PLACES.ancestors(depth)[units], cells), counts)
        assert (level.grouped(0, len(dense), np.arange(6), 6) == dense).all()
        assert (
            level.grouped(len(dense) - 1, len(dense), np.arange(6) // 3, 2) == dense[-1:].reshape(2, 3).sum(1)
        ).all()


@cases(
    ("units", "levels", "message"),
    [
        ({"s": ["a", "b"], "t": ["1", "1"]}, ["s", "t"], "levels must nest, but a place of the level 't'"),
        ({"s": ["a", "a"], "t": ["1", "1"]}, ["s", "t"], "units must have each 't' in one row"),
        (
            {"s": ["a", None], "t": ["1", "2"]},
            ["s", "t"],
            "labels must be texts or whole numbers, but one is",
        ),
        ({"s": [0.5, 1.5]}, ["s"], "labels must be texts or whole numbers, but those of 's' are of double"),
        ({"s": ["a"]}, ["t"], "units must have a column for each level"),
        ({"s": ["a"]}, ["s", "s"], "levels must be different texts"),
        ({"s": ["a"]}, ["all"], "levels must be different texts"),
        ({"s": ["a"]}, "s", "levels must be a list of columns"),
        ({"s": np.zeros(0, str)}, ["s"], "units must have a row for each lowest unit"),
    ],
)
def test_what_does_not_nest_is_refused(units: dict[str, object], levels: list[str], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Hierarchy.from_table(pa.table(units), levels)


def test_other_types_are_refused_whatever_is_in_them() -> None:
    for table in ({"town": ["10"]}, {"town": [1.0]}, {"x": [10]}):
        with pytest.raises(ParameterError, match="town"):
            PLACES.encode(pa.table(table))
    for label in (12, "x", None, 2**70):
        with pytest.raises(ParameterError, match="labels must be places of the level 'town'"):
            PLACES.index("town", [label])
    with pytest.raises(ParameterError, match="level must be one of"):
        PLACES.places("county")
