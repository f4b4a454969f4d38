"""Homogeneity, similarity, skewness and intersection, on the papers' tables and against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import attacks
from sfumato.anonymity import GeneralizationHierarchy
from sfumato.attacks.syntactic import class_matches
from sfumato.attacks.syntactic.matched_values import matched_values
from sfumato.errors import ParameterError
from tests.cases import cases

AGES = GeneralizationHierarchy.from_rows([(str(n), f"{n // 10}*", "*") for n in range(20, 60)])
ZIPS = GeneralizationHierarchy.from_rows(
    [(z, z[:3] + "**", "*") for z in ("13053", "13068", "14850", "14853")]
)
COVERAGE = {"age": AGES, "zip": ZIPS}

ILL = [
    "heart",
    "heart",
    "virus",
    "virus",
    "cancer",
    "heart",
    "virus",
    "virus",
    "cancer",
    "cancer",
    "cancer",
    "cancer",
]


def table() -> pa.Table:
    """Return a 4-anonymous table of the form of Machanavajjhala and others' example."""
    ages = ["2*"] * 4 + ["4*"] * 4 + ["3*"] * 4
    return pa.table({"zip": ["130**"] * 4 + ["148**"] * 4 + ["130**"] * 4, "age": ages, "ill": ILL})


def targets(ages: list[int], zips: list[str]) -> pa.Table:
    return pa.table({"age": ages, "zip": zips})


def test_a_homogeneous_class_gives_its_people_away() -> None:
    attack = attacks.HomogeneityAttack(
        targets=targets([31, 21, 45, 59], ["13053", "13068", "14853", "14850"]),
        sensitive="ill",
        hierarchies=COVERAGE,
    )
    found = attack.run(table(), truth=["cancer", "heart", "virus", "virus"])
    assert found.attack == "homogeneity"
    assert found.targets.claimed.tolist() == [True, False, False, False]
    assert found.targets.guesses[0] == "cancer"
    assert found.targets.scores.tolist() == [1.0, 0.5, 0.5, 0.0]  # no row may be the last one
    controls = targets([35, 36], ["13068", "13068"]).append_column("ill", pa.array(["cancer", "virus"]))
    against = attack.run(table(), truth=["cancer"] * 4, controls=controls).controls
    assert against is not None
    assert (against.claims, against.hits) == (2, 1)


def test_values_that_differ_but_mean_the_same_are_similar() -> None:
    attack = attacks.HomogeneityAttack(
        targets=targets([25], ["13053"]),
        sensitive="ill",
        hierarchies=COVERAGE,
        groups={"heart": "sick", "virus": "sick"},
    )
    found = attack.run(table(), truth=["virus"])
    assert (found.attack, found.targets.guesses[0], found.targets.hits) == ("similarity", "sick", 1)


def test_skewness_is_the_gain_over_the_whole_table() -> None:
    attack = attacks.SkewnessAttack(
        targets=targets([31, 21], ["13053", "13068"]), sensitive="ill", hierarchies=COVERAGE, gain=2.2
    )
    found = attack.run(table())
    assert found.targets.scores.tolist() == pytest.approx([1 / (5 / 12), 0.5 / (3 / 12)])
    assert found.targets.claimed.tolist() == [True, False]
    assert found.targets.guesses.tolist() == ["cancer", "heart"]


def test_two_releases_leave_one_value() -> None:
    other = pa.table(
        {
            "age": ["*"] * 3 + ["5*"] * 2,
            "zip": ["13053"] * 5,
            "ill": ["gout", "heart", "gout", "virus", "gout"],
        }
    )
    attack = attacks.IntersectionAttack(
        targets=targets([25, 45], ["13053", "14853"]), sensitive="ill", hierarchies=[COVERAGE, {"age": AGES}]
    )
    found = attack.run([table(), other], truth=["heart", "virus"])
    assert found.targets.claimed.tolist() == [True, False]
    assert found.targets.guesses[0] == "heart"
    assert found.targets.hits == 1
    assert found.targets.scores.tolist() == [1.0, 0.0]
    for releases, message in ((table(), "two or more"), ([table()] * 3, "for each of 3")):
        with pytest.raises(ParameterError, match=message):
            attack.run(releases)


def test_several_releases_count_by_the_product_of_their_shares() -> None:
    releases = [pa.table({"age": [30] * len(ill), "ill": list(ill)}) for ill in ("aabc", "abbbb")]
    attack = attacks.IntersectionAttack(targets=pa.table({"age": [30]}), sensitive="ill")
    found = attack.run(releases)
    assert found.targets.guesses.tolist() == ["b"]
    assert found.targets.scores.tolist() == pytest.approx([2 / 3])  # a: 1/2 x 1/5, b: 1/4 x 4/5
    assert found.targets.claimed.tolist() == [False]


@cases("few", [256, 0])
def test_matches_are_those_of_a_loop(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_matches, "_FEW", few)
    rng = np.random.default_rng(1)
    rows = 200
    ages, zips = rng.integers(20, 60, rows), rng.integers(0, 4, rows)
    level = rng.integers(0, 3, (2, rows))

    def label(hierarchy: GeneralizationHierarchy, codes: Any, levels: Any) -> list[Any]:
        return [
            hierarchy.labels[at][hierarchy.levels[at][code]] for code, at in zip(codes, levels, strict=True)
        ]

    released = pa.table(
        {
            "age": label(AGES, ages - 20, level[0]),
            "zip": label(ZIPS, zips, level[1]),
            "ill": rng.integers(0, 5, rows),
        }
    )
    people = targets(rng.integers(20, 60, 50).tolist(), [ZIPS.values[n] for n in rng.integers(0, 4, 50)])
    found = matched_values(released, people, "ill", COVERAGE)
    for person, counts in zip(people.to_pylist(), found.counts.toarray(), strict=True):
        expected = dict.fromkeys(found.values, 0)
        for row in released.to_pylist():
            fits_age = row["age"] in ("*", f"{person['age'] // 10}*", str(person["age"]))
            if row["age"] == row["zip"] == "*":
                continue
            fits_zip = row["zip"] in ("*", person["zip"][:3] + "**", person["zip"])
            expected[row["ill"]] += fits_age and fits_zip
        assert counts.tolist() == list(expected.values())


def test_without_a_hierarchy_labels_are_values_or_suppressed() -> None:
    first = pa.table({"n": ["1", "*", "2"], "ill": ["a", "b", "a"]})
    found = matched_values(first, pa.table({"n": [1, 3]}), "ill", {})
    # a row that is suppressed as a whole is for who fits no other
    assert found.counts.toarray().tolist() == [[1, 0], [0, 1]]
    for released, people, counts in (
        ({"n": ["1", "1"], "ill": ["a", "*"]}, [1], [[1, 0]]),
        ({"n": ["1", "*"], "ill": ["a", None]}, [1, 2], [[1, 0], [0, 0]]),
    ):
        found = matched_values(pa.table(released), pa.table({"n": people}), "ill", {})
        assert found.counts.toarray().tolist() == counts


def test_bad_input_is_refused() -> None:
    people = targets([25], ["13053"])
    homogeneity = attacks.HomogeneityAttack
    plain = homogeneity(targets=people, sensitive="ill")
    wrong: Any = {"age": 3}
    refused: list[tuple[Any, str]] = [
        (
            lambda: homogeneity(targets=people, sensitive="ill", hierarchies=wrong),
            "have a hierarchy, its rows",
        ),
        (lambda: homogeneity(targets=people, sensitive="ill", least_share=1.5), "least_share"),
        (lambda: homogeneity(targets=people, sensitive="gout").run(table()), "has once"),
        (
            lambda: plain.run(table(), truth=["a", "b"]),
            "have 1 values",
        ),
        (lambda: plain.run(table(), controls=people), "has once"),
        (lambda: attacks.SkewnessAttack(targets=people, sensitive="ill", gain=1), "above 1"),
        (lambda: homogeneity(targets=people.slice(0, 0), sensitive="ill"), "have rows"),
    ]
    for call, message in refused:
        with pytest.raises(ParameterError, match=message):
            call()
