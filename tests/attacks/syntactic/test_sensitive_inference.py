"""Each syntactic notion has a table that fulfils it and gives sensitive values away all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.attacks import SensitiveInference
from sfumato.errors import ParameterError
from tests.cases import cases

AGES = [(n, f"{n // 10}x", "*") for n in range(10, 50)]
TOWNS = [("a", "ab", "*"), ("b", "ab", "*"), ("c", "cd", "*"), ("d", "cd", "*")]


def attack(people: pa.Table, **options: Any) -> SensitiveInference:
    return SensitiveInference(
        auxiliary=people,
        on=("age", "town"),
        sensitive="ill",
        hierarchies={"age": AGES, "town": TOWNS},
        **options,
    )


def table(rows: list[tuple[str, str, str]]) -> pa.Table:
    return pa.table(dict(zip(("age", "town", "ill"), map(list, zip(*rows, strict=True)), strict=True)))


def test_homogeneity_breaks_k_anonymity() -> None:
    # three rows in every class: 3-anonymous
    released = table(
        [("1x", "ab", "flu")] * 3 + [("2x", "ab", "flu"), ("2x", "ab", "cold"), ("2x", "ab", "flu")]
    )
    people = pa.table({"age": [11, 19, 25], "town": ["a", "b", "a"]})
    found = attack(people).run(released, truth=["flu", "flu", "cold"])
    assert found.targets.claimed.tolist() == [True, True, False]
    assert found.targets.hits == 2
    assert found.targets.scores.tolist() == pytest.approx([1, 1, 2 / 3])


def test_skewness_and_similarity_break_l_diversity() -> None:
    rare = [("1x", "ab", value) for value in ("hiv", "hiv", "flu")]
    common = [("2x", "*", value) for value in ("flu", "cold", "flu") * 20]
    released = table(rare + common)
    people = pa.table({"age": [12, 23], "town": ["a", "d"]})
    # every class has two values; one has a rare one twenty times as often as the table
    found = attack(people, share=0.5, gain=10).run(released, truth=["hiv", "flu"])
    assert found.targets.claimed.tolist() == [True, False]
    assert found.targets.hits == 1
    stomach = table([("1x", "ab", value) for value in ("ulcer", "gastritis", "cancer of the stomach")])
    kinds = dict.fromkeys(("ulcer", "gastritis", "cancer of the stomach"), "stomach")
    found = attack(people.slice(0, 1), groups=kinds).run(stomach, truth=["ulcer"])
    assert (found.targets.guesses.tolist(), found.targets.hits) == (["stomach"], 1)
    assert attack(people.slice(0, 1)).run(stomach).targets.claims == 0


def test_two_releases_are_intersected() -> None:
    first = table([("1x", "ab", "flu"), ("1x", "ab", "hiv")])
    second = table([("*", "a", "hiv"), ("*", "a", "cold"), ("*", "b", "flu"), ("*", "b", "cold")])
    people = pa.table({"age": [12], "town": ["a"]})
    assert attack(people).run(first).targets.claims == attack(people).run(second).targets.claims == 0
    both = attack(people).run([first, second], truth=["hiv"])
    assert (both.targets.claims, both.targets.hits) == (1, 1)
    assert both.notes == ("2 releases were intersected",)


def test_shares_are_those_of_the_rows_that_may_be_a_persons() -> None:
    rng = np.random.default_rng(9)
    ages, towns = {str(age[0]): tuple(map(str, age)) for age in AGES}, {town[0]: town for town in TOWNS}
    rows = []
    for _ in range(150):
        age, town = ages[str(rng.integers(10, 50))], towns["abcd"[rng.integers(4)]]
        rows.append((age[rng.integers(1, 3)], town[rng.integers(3)], "xyz"[rng.integers(3)]))
    people = pa.table(
        {"age": rng.integers(10, 50, 40), "town": ["abcd"[code] for code in rng.integers(0, 4, 40)]}
    )
    found = attack(people, share=0.6).run(table(rows))
    for place, person in enumerate(people.to_pylist()):
        mine = Counter(
            ill
            for age, town, ill in rows
            if age in ages[str(person["age"])] and town in towns[person["town"]]
        )
        ((_, most),) = mine.most_common(1)
        assert found.targets.scores[place] == pytest.approx(most / mine.total())
        assert mine[found.targets.guesses[place]] == most
        base = sum(ill == found.targets.guesses[place] for _, _, ill in rows) / len(rows)
        assert found.targets.claimed[place] == (most / mine.total() >= max(0.6, base))


def test_controls_bring_their_own_values() -> None:
    released = table([("1x", "ab", "flu")] * 3)
    people = pa.table({"age": [11], "town": ["a"]})
    controls = table([("12", "a", "flu"), ("13", "b", "cold"), ("30", "c", "flu")])
    found = attack(people).run(released, truth=["flu"], controls=controls)
    assert found.controls is not None
    assert (found.controls.people, found.controls.claims, found.controls.hits) == (3, 2, 1)


@cases(
    "make, found",
    [
        (lambda: attack(one_person(), share=2), "share must be from 0 to 1"),
        (lambda: attack(one_person(), gain=-1), "gain must be non-negative"),
        (lambda: attack(pa.table({"age": [1]})), "on must be columns of auxiliary: age, got 'town'"),
        (lambda: attack(one_person()).run([]), "release must be a table, or several"),
        (
            lambda: attack(one_person()).run(one_person()),
            "on must be columns of release: age, town, got 'ill'",
        ),
        (
            lambda: attack(one_person()).run(table([("1x", "a", "x")]), truth=[]),
            "truth must be a value for each",
        ),
        (
            lambda: SensitiveInference(auxiliary=one_person(), on=("age",), sensitive="age"),
            "sensitive must be no quasi-identifier",
        ),
    ],
    ids=[str(place) for place in range(7)],
)
def test_bad_input_is_refused(make: Callable[[], object], found: str) -> None:
    with pytest.raises(ParameterError, match=found):
        make()


def one_person() -> pa.Table:
    return pa.table({"age": [11], "town": ["a"]})
