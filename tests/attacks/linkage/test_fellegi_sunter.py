"""Probabilistic linkage: the weights of a planted model, who is linked, and who is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.attacks import ComparisonLevels, ProbabilisticLinkage
from sfumato.errors import ParameterError
from tests.cases import cases

EXACT = ComparisonLevels("exact")
SIZES = {"a": 60, "b": 40, "c": 20, "d": 6}
WRONG = {"a": 0.1, "b": 0.05, "c": 0.2, "d": 0.02}


def planted(size: int, seed: int) -> tuple[pa.Table, pa.Table, np.ndarray]:
    """Return persons, and another table of them in another order with errors of stated rates."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(size)
    table = {name: rng.integers(0, values, size) for name, values in SIZES.items()}
    people = {}
    for name, column in table.items():
        wrong = rng.random(size) < WRONG[name]
        people[name] = np.where(wrong, rng.integers(0, SIZES[name], size), column[truth])
    return pa.table(people), pa.table(table), truth


def test_weights_are_those_of_the_planted_model() -> None:
    people, table, truth = planted(3000, 3)
    attack = ProbabilisticLinkage(
        auxiliary=people,
        comparisons=dict.fromkeys(SIZES, EXACT),
        blocking=[["a", "b"], ["c", "b"], ["a", "d"]],
    )
    found = attack.run(table, truth=truth)
    for name, values in SIZES.items():
        # a replaced value is the old one by chance
        agreement = 1 - WRONG[name] * (1 - 1 / values)
        assert found.numbers[f"m({name})"] == pytest.approx(agreement, abs=0.04)
        assert found.numbers[f"u({name})"] == pytest.approx(1 / values, rel=0.15)
    assert found.numbers["matches expected"] == pytest.approx(3000, rel=0.1)
    assert found.targets.hits is not None
    # 288,000 combinations of values for 3,000 persons: nearly all who are alike are one
    assert found.targets.hits / found.targets.claims > 0.95
    assert found.targets.hits > 0.6 * 3000
    # posterior probabilities say how many links are right
    claimed = found.targets.scores[found.targets.claimed]
    assert claimed.mean() == pytest.approx(found.targets.hits / found.targets.claims, abs=0.04)


def test_absent_persons_are_rarely_linked() -> None:
    people, table, truth = planted(2000, 4)
    others, _, _ = planted(2000, 5)
    attack = ProbabilisticLinkage(
        auxiliary=people, comparisons=dict.fromkeys(SIZES, EXACT), blocking=[["a", "b"], ["c", "d"]]
    )
    found = attack.run(table, truth=truth, controls=others)
    assert found.controls is not None
    assert found.controls.claims < 0.1 * found.targets.claims


def test_no_more_matches_are_expected_than_there_are_persons() -> None:
    # all agree in everything, so that each of 40 pairs looks like one person's
    people, table = pa.table({"a": [1] * 2, "b": [1] * 2}), pa.table({"a": [1] * 20, "b": [1] * 20})
    attack = ProbabilisticLinkage(
        auxiliary=people, comparisons=dict.fromkeys("ab", EXACT), blocking=[["a"], ["b"]]
    )
    assert attack.run(table).numbers["matches expected"] <= 2
    assert attack.run(table).targets.claims == 0


NAMES = ["miller", "smith", "jones", "braun", "garcia", "lopez", "silva", "novak", "ivanova", "tanaka"]


def test_levels_of_texts_and_numbers_find_persons_with_errors() -> None:
    rng = np.random.default_rng(8)
    size = 200
    names = [f"{NAMES[rng.integers(10)]}{NAMES[rng.integers(10)]}" for _ in range(size)]
    years, towns = rng.integers(1930, 2010, size), rng.integers(0, 30, size)
    typed = [name[:3] + "x" + name[4:] if rng.random() < 0.3 else name for name in names]
    near = years + rng.integers(-1, 2, size)
    levels = {
        "name": ComparisonLevels("jaro_winkler", (0.92, 0.8)),
        "year": ComparisonLevels("within", (1,)),
        "town": EXACT,
    }
    attack = ProbabilisticLinkage(
        auxiliary=pa.table({"name": typed, "year": near, "town": towns}),
        comparisons=levels,
        blocking=[["town"], ["name"]],
    )
    table = pa.table({"name": names, "year": years, "town": towns})
    found = attack.run(table, truth=np.arange(size))
    assert found.targets.hits is not None
    assert found.targets.hits > 0.85 * size
    assert found.targets.hits > 0.95 * found.targets.claims
    edits = levels | {"name": ComparisonLevels("edit_distance", (1, 3))}
    again = ProbabilisticLinkage(auxiliary=attack.auxiliary, comparisons=edits, blocking=[["town"]])
    hits = again.run(table, truth=np.arange(size)).targets.hits
    assert hits is not None
    assert hits > 0.85 * size


def test_null_says_nothing_and_equal_records_are_not_claimed() -> None:
    people = pa.table({"a": [1, 2, None, 4], "b": [1, 2, 3, 4], "c": [1, 1, 1, 1]})
    table = pa.table({"a": [1, 2, 3, 4, 4], "b": [1, None, 3, 4, 4], "c": [1, 1, 1, 1, 1]})
    attack = ProbabilisticLinkage(
        auxiliary=people, comparisons=dict.fromkeys("abc", EXACT), blocking=[["a"], ["b"]], threshold=0.01
    )
    found = attack.run(table)
    assert found.targets.guesses.tolist() == [0, 1, 2, -1]
    assert found.targets.claimed.tolist() == [True, True, True, False]


def test_a_record_is_claimed_for_one_person_only() -> None:
    people = pa.table({"a": [1, 1, 2, 9], "b": [5, 5, 6, 9], "c": [1, 2, 3, 3]})
    table = pa.table({"a": [1, 2, 3, 4], "b": [5, 6, 7, 8], "c": [9, 3, 3, 3]})
    attack = ProbabilisticLinkage(
        auxiliary=people, comparisons=dict.fromkeys("abc", EXACT), blocking=[["a"], ["b"]], threshold=0.01
    )
    # the first two are equally likely for the first record; the last has none
    found = attack.run(table)
    assert found.targets.guesses.tolist() == [0, 0, 1, -1]
    assert found.targets.scores[3] == 0
    assert found.targets.claimed.tolist() == [False, False, True, False]


@cases(
    "make, found",
    [
        (lambda: link(blocking=[]), "blocking must be one rule or more"),
        (lambda: link(blocking=[[]]), "blocking must be one rule or more"),
        (lambda: link(blocking=[["z"]]), "blocking must be of a, b, got 'z'"),
        (lambda: link(threshold=1.5), "threshold must be strictly between 0 and 1"),
        (
            lambda: link(comparisons={"a": EXACT, "z": EXACT}),
            "comparisons must be of columns of auxiliary: a, b",
        ),
        (lambda: link(table=pa.table({"a": [1]})), "comparisons must be of columns of release: a"),
        (lambda: link(max_pairs=2), "blocking must leave at most 2 pairs, but it leaves more"),
        (lambda: link(comparisons={"a": ComparisonLevels("edit_distance", (1,))}), "fit the types of their"),
        (lambda: ComparisonLevels("exact", (1,)), "limits must be none for exact"),
        (lambda: ComparisonLevels("within"), "limits must be none for exact"),
        (lambda: ComparisonLevels("within", (3, 1)), "from strict to loose"),
        (lambda: ComparisonLevels("jaro_winkler", (0.8, 0.9)), "from strict to loose"),
        (lambda: ComparisonLevels("soundex", (1,)), "kind must be one of exact"),  # type: ignore[arg-type]
    ],
    ids=[str(place) for place in range(13)],
)
def test_bad_input_is_refused(make: Callable[[], object], found: str) -> None:
    with pytest.raises(ParameterError, match=found):
        make()


def link(**options: Any) -> Any:
    people = pa.table({"a": [1, 1, 2], "b": [1, 2, 3]})
    given = {"comparisons": {"a": EXACT, "b": EXACT}, "blocking": [["a"]]} | options
    table = given.pop("table", people)
    return ProbabilisticLinkage(auxiliary=people, **given).run(table)
