import itertools
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import milp

from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.recoding import choice_attack
from sfumato.anonymity.recoding.choice_attack import RecodingChoiceAttack
from sfumato.anonymity.recoding.local_recoding import recode_locally
from sfumato.anonymity.table.microdata import Microdata
from sfumato.errors import ParameterError

LETTERS = GeneralizationHierarchy.from_rows([(c, "a-b" if c < "c" else "c-d", "*") for c in "abcd"])
SEXES = GeneralizationHierarchy.from_rows([("f", "?"), ("m", "?")])


def release(letters: tuple[str, ...], k: int) -> pa.Table:
    data = Microdata(pa.table({"letter": list(letters)}), quasi_identifiers={"letter": LETTERS})
    return recode_locally(data, k, share=0).table


def test_what_is_found_is_what_all_tables_with_this_release_have_in_common() -> None:
    """All 56 tables of five rows: none with the release has a count outside, and one reaches each end."""
    by_release: dict[tuple[str, ...], list[Counter[tuple[str, str]]]] = defaultdict(list)
    tables: dict[tuple[str, ...], pa.Table] = {}
    for letters in itertools.combinations_with_replacement("abcd", 5):
        table = release(letters, k=2)
        labels = table.column("letter").to_pylist()
        key = tuple(sorted(labels))
        tables[key] = table
        by_release[key].append(Counter(zip(labels, letters, strict=True)))
    assert max(map(len, by_release.values())) > 1
    learned = 0
    for key, counts in by_release.items():
        findings = RecodingChoiceAttack(hierarchies={"letter": LETTERS}, k=2).run(tables[key])
        for row in findings.table.to_pylist():
            seen = [count[row["released letter"], row["letter"]] for count in counts]
            assert (row["least"], row["most"]) == (min(seen), max(seen))
        learned += findings.certain > 0
    assert learned > 10


def test_a_suppressed_person_is_recovered_though_k_anonymity_holds() -> None:
    table = release(tuple("aacdb"), k=2)
    assert Counter(table.column("letter").to_pylist()) == {"a": 2, "c-d": 2, "*": 1}
    findings = RecodingChoiceAttack(hierarchies={"letter": LETTERS}, k=2).run(table)
    certain = {(row["released letter"], row["letter"]) for row in findings.table.to_pylist() if row["least"]}
    assert certain == {("a", "a"), ("c-d", "c"), ("c-d", "d"), ("*", "b")}
    assert findings.certain == 3
    assert findings.excluded == pytest.approx(3 / 7)


def test_true_counts_lie_within_what_is_found_for_several_columns() -> None:
    rng = np.random.default_rng(12)
    excluded = []
    for k in (2, 3, 4):
        people = pa.table({"letter": rng.choice(list("abcd"), 12), "sex": rng.choice(["f", "m"], 12)})
        data = Microdata(people, quasi_identifiers={"letter": LETTERS, "sex": SEXES})
        released = recode_locally(data, k, share=0).table
        findings = RecodingChoiceAttack(hierarchies={"letter": LETTERS, "sex": SEXES}, k=k).run(released)
        columns = [*released.select(["letter", "sex"]).columns, *people.columns]
        truth = Counter(zip(*(column.to_pylist() for column in columns), strict=True))
        for row in findings.table.to_pylist():
            true = truth[row["released letter"], row["released sex"], row["letter"], row["sex"]]
            assert row["least"] <= true <= row["most"] <= row["class_rows"]
        excluded.append(findings.excluded)
    assert max(excluded) > 0.2


def test_refusals() -> None:
    twice = GeneralizationHierarchy.from_rows([("a", "a", "*"), ("b", "a2", "*")])
    attack = RecodingChoiceAttack(hierarchies={"letter": LETTERS}, k=2)
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: attack.run(pa.table({"sex": ["f"]})), "hierarchies must be of columns of the release"),
        (
            lambda: attack.run(pa.table({"letter": ["e"]})),
            "release must have labels of the hierarchies, got 'e'",
        ),
        (lambda: attack.run(pa.table({"letter": list("aab")})), "but a class has fewer than k rows"),
        (lambda: attack.run(pa.table({"letter": ["a", "a", "a-b", "a-b"]})), "but no table gives it"),
        (lambda: RecodingChoiceAttack(hierarchies={}, k=1), "k must be an integer of at least 2"),
        (
            lambda: RecodingChoiceAttack(hierarchies={"letter": twice}, k=2).run(pa.table({"letter": ["a"]})),
            "must have each label at one level, got 'a'",
        ),
    ]
    for call, message in refused:
        with pytest.raises(ParameterError, match=message):
            call()


def test_what_is_certain_is_solved_without_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS stops within 1e-4 of the best by default: a row of ten thousand."""
    gaps = []

    def watched(*arguments: Any, **options: Any) -> Any:
        gaps.append(options["options"]["mip_rel_gap"])
        return milp(*arguments, **options)

    monkeypatch.setattr(choice_attack, "milp", watched)
    RecodingChoiceAttack(hierarchies={"letter": LETTERS}, k=2).run(release(tuple("aacdb"), k=2))
    assert set(gaps) == {0.0}
