"""Linkage by equality: every row that may be a person's, at any level of generalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.anonymity import GeneralizationHierarchy
from sfumato.attacks import EqualityLinkage
from sfumato.errors import ParameterError
from tests.cases import cases

AGES = [(n, f"{n // 10}x", "young" if n < 30 else "old", "*") for n in range(60)]
TOWNS = [(name, name[0], "*") for name in ("aa", "ab", "ba", "bb")]


def released(people: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Return the table with each row at levels of its own: local recoding."""
    ages = [AGES[age][rng.integers(4)] for age in people["age"].to_pylist()]
    chains = {town[0]: town for town in TOWNS}
    towns = [chains[town][rng.integers(3)] for town in people["town"].to_pylist()]
    return pa.table({"age": [str(age) for age in ages], "town": towns, "sex": people["sex"]})


def persons(size: int, rng: np.random.Generator) -> pa.Table:
    return pa.table(
        {
            "age": rng.integers(0, 60, size),
            "town": [TOWNS[code][0] for code in rng.integers(0, 4, size)],
            "sex": [None if code == 0 else "FM"[code - 1] for code in rng.integers(0, 3, size)],
        }
    )


def test_rows_are_those_whose_labels_hold_the_values() -> None:
    rng = np.random.default_rng(5)
    table, targets = persons(80, rng), persons(50, rng)
    rows = released(table, rng)
    attack = EqualityLinkage(
        auxiliary=targets, on=("age", "town", "sex"), hierarchies={"age": AGES, "town": TOWNS}
    )
    found = attack.run(rows)
    chains: dict[Any, tuple[Any, ...]] = {str(age[0]): tuple(map(str, age)) for age in AGES}
    chains |= {town[0]: town for town in TOWNS}
    several = 0
    for place, person in enumerate(targets.to_pylist()):
        fitting = [
            number
            for number, row in enumerate(rows.to_pylist())
            if row["age"] in chains[str(person["age"])]
            and row["town"] in chains[person["town"]]
            and person["sex"] is not None
            and row["sex"] == person["sex"]
        ]
        several += len(fitting) > 1
        assert found.targets.guesses[place] == (fitting[0] if fitting else -1)
        assert found.targets.scores[place] == (1 / len(fitting) if fitting else 0)
        assert found.targets.claimed[place] == (len(fitting) == 1)
    assert several > 10


def test_k_anonymous_rows_link_nobody() -> None:
    rng = np.random.default_rng(6)
    table = persons(400, rng)
    keys = ("age", "town")
    unique = EqualityLinkage(auxiliary=table, on=keys).run(table, truth=np.arange(400))
    # exact values: whoever is unique is linked, and rightly
    assert unique.targets.claims == unique.targets.hits
    assert unique.targets.claims > 40
    coarse = pa.table({"age": [AGES[age][2] for age in table["age"].to_pylist()], "town": table["town"]})
    found = EqualityLinkage(auxiliary=table, on=keys, hierarchies={"age": AGES}).run(coarse)
    assert found.targets.claims == 0
    assert (found.targets.guesses >= 0).all()


def test_controls_are_counted_as_wrong_links() -> None:
    table = pa.table({"a": [1, 2, 3]})
    found = EqualityLinkage(auxiliary=table, on=("a",)).run(
        table, truth=[0, -1, 2], controls=pa.table({"a": [3, 4]})
    )
    assert (found.targets.claims, found.targets.hits) == (3, 2)
    assert found.controls is not None
    assert (found.controls.claims, found.controls.hits) == (1, 0)
    assert found.numbers["controls who are linked"] == 0.5


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.sharpest("1", "-1")
def test_a_value_may_have_a_label_earlier_than_others(order: int) -> None:
    # the second value is suppressed at once
    chains = [(1, "x", "*"), (2, "*", "*")][::order]
    people, table = pa.table({"a": [1, 2]}), pa.table({"a": ["*", "x", "1"]})
    found = EqualityLinkage(auxiliary=people, on=("a",), hierarchies={"a": chains}).run(table)
    assert found.targets.scores.tolist() == [1 / 3, 1]


def test_many_wide_columns_make_no_wrong_keys() -> None:
    rng = np.random.default_rng(7)
    # codes of five columns of 10,000 values each do not fit into 64 bits
    columns = {str(place): rng.permutation(10_000) for place in range(5)}
    found = EqualityLinkage(auxiliary=pa.table(columns), on=tuple(columns)).run(
        pa.table(columns), truth=np.arange(10_000)
    )
    assert found.targets.hits == 10_000


@cases(
    "make, found",
    [
        (lambda: link(on=("b",)), "on must be columns of auxiliary: a, got 'b'"),
        (lambda: link(on=()), "on must name at least one column"),
        (lambda: link(hierarchies={"b": []}), "hierarchies must be of columns in on"),
        (lambda: link(hierarchies={"a": []}), "must have rows of one length"),
        (lambda: link(hierarchies={"a": [(1, "x"), (2, "x", "y")]}), "must have rows of one length"),
        (lambda: link(hierarchies={"a": [(1, "x")]}), "must have every label of the release's column"),
        (lambda: link(hierarchies={"a": [(1, "2", "x"), (2, "x", "2")]}), "must have a label at one level"),
        (lambda: link(table=pa.table({"c": [1]})), "on must be columns of release: c"),
        (lambda: link(table=pa.table({"a": pa.array([], pa.int64())})), "release must have rows"),
        (lambda: link(truth=[0]), "truth must be the row of each target"),
        (lambda: link(truth=[0.0, 1.0]), "truth must be the row of each target"),
    ],
    ids=[str(place) for place in range(11)],
)
def test_bad_input_is_refused(make: Callable[[], object], found: str) -> None:
    with pytest.raises(ParameterError, match=found):
        make()


def link(**options: Any) -> Any:
    people = pa.table({"a": [1, 2]})
    attack = EqualityLinkage(
        auxiliary=people, on=options.get("on", ("a",)), hierarchies=options.get("hierarchies", {})
    )
    return attack.run(options.get("table", people), truth=options.get("truth"))


def test_a_hierarchy_and_its_rows_link_alike() -> None:
    rows = [(str(n), f"{n // 10}x", "*") for n in range(30)]
    people, released = pa.table({"n": [3, 14, 15]}), pa.table({"n": ["0x", "1x", "*"]})
    found = [
        EqualityLinkage(auxiliary=people, on=("n",), hierarchies={"n": given}).run(released)
        for given in (rows, GeneralizationHierarchy.from_rows(rows))
    ]
    assert found[0].targets.guesses.tolist() == found[1].targets.guesses.tolist()
    assert found[0].targets.scores.tolist() == found[1].targets.scores.tolist() == [0.5, 0.5, 0.5]
