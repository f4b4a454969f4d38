"""Minimality and downcoding, against the list of all tables."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from sfumato import attacks
from sfumato.anonymity import GeneralizationHierarchy
from sfumato.errors import ParameterError

JOBS = GeneralizationHierarchy.from_rows(
    [("nurse", "health", "*"), ("doctor", "health", "*"), ("cook", "food", "*")]
)


def diverse(table: pa.Table) -> pa.Table:
    """Generalise jobs by as many levels as it takes that at most half of each class is ill."""
    ill = table.column("ill").to_pylist()
    for level in range(3):
        jobs = [label(job, level) for job in table.column("job").to_pylist()]
        shares = [
            sum(i == "yes" for j, i in zip(jobs, ill, strict=True) if j == job) / jobs.count(job)
            for job in set(jobs)
        ]
        if max(shares) <= 0.5:
            break
    return pa.table({"job": jobs, "ill": ill})


def label(job: str, level: int) -> Any:
    return JOBS.labels[level][JOBS.levels[level][JOBS.values.index(job)]]


PEOPLE = ["nurse"] * 2 + ["doctor"] * 4 + ["cook"] * 2


def people() -> pa.Table:
    return pa.table({"job": PEOPLE})


def test_minimality_keeps_the_tables_that_the_algorithm_turns_into_the_release() -> None:
    secret = ["yes", "yes", "no", "no", "no", "no", "yes", "no"]
    release = diverse(people().append_column("ill", pa.array(secret)))
    assert set(release.column("job").to_pylist()) == {"health", "food"}
    attack = attacks.MinimalityAttack(
        anonymize=diverse, people=people(), sensitive="ill", hierarchies={"job": JOBS}, least_share=0.9
    )
    found = attack.run(release, truth=secret)
    published = sorted(map(str, release.to_pylist()))
    worlds = []
    for world in product(("yes", "no"), repeat=8):
        made = diverse(people().append_column("ill", pa.array(world)))
        if sorted(map(str, made.to_pylist())) == published:
            worlds.append(world)
    assert found.numbers["tables that fit the algorithm too"] == len(worlds)
    assert found.numbers["tables that fit the labels"] == 15 * 2
    shares = [
        max(values.count("yes"), values.count("no")) / len(worlds) for values in zip(*worlds, strict=True)
    ]
    assert found.targets.scores.tolist() == pytest.approx(shares)
    assert found.targets.claims > found.numbers["claims from the labels alone"] == 0
    # Only two ill nurses make their class too ill: it is certain of both.
    assert found.targets.guesses[:2].tolist() == ["yes", "yes"]
    assert found.targets.scores[:2].tolist() == [1.0, 1.0]


def test_minimality_refuses_what_it_cannot_enumerate() -> None:
    release = diverse(people().append_column("ill", pa.array(["yes"] * 2 + ["no"] * 6)))
    options: dict[str, Any] = {"people": people(), "sensitive": "ill", "hierarchies": {"job": JOBS}}
    attack = attacks.MinimalityAttack(anonymize=lambda table: table, **options)
    with pytest.raises(ParameterError, match="for none"):
        attack.run(release)
    with pytest.raises(ParameterError, match="15 tables fit"):
        attacks.MinimalityAttack(anonymize=diverse, most_worlds=10, **options).run(release)
    with pytest.raises(ParameterError, match="fit one class each"):
        attacks.MinimalityAttack(anonymize=diverse, **{**options, "people": people().slice(1)}).run(release)
    with pytest.raises(ParameterError, match="be left out"):
        attacks.MinimalityAttack(anonymize=diverse, **options).run(release, controls=people())
    with pytest.raises(ParameterError, match="be callable"):
        attacks.MinimalityAttack(anonymize=1, **options)  # type: ignore[arg-type]


def anonymous(table: pa.Table) -> pa.Table:
    """Generalise all jobs by as many levels as it takes that each label stands twice."""
    for level in range(3):
        jobs = [label(job, level) for job in table.column("job").to_pylist()]
        if min(map(jobs.count, jobs)) >= 2:
            break
    return pa.table({"job": jobs})


def test_downcoding_finds_values_that_only_minimality_explains() -> None:
    jobs = ["nurse", "nurse", "nurse", "doctor", "cook", "cook"]
    release = anonymous(pa.table({"job": jobs}))
    attack = attacks.DowncodingAttack(anonymize=anonymous, hierarchies={"job": JOBS}, least_share=0.5)
    truth = [(job,) for job in jobs]
    found = attack.run(release, truth=truth)
    worlds = [
        world
        for world in product(("nurse", "doctor"), repeat=4)
        if anonymous(pa.table({"job": [*world, "cook", "cook"]})).equals(release)
    ]
    assert len(worlds) == 8  # one nurse or one doctor: two of each, or four of one, would stand as they are
    assert found.numbers["tables that fit the labels"] == 16
    assert found.numbers["tables that fit the algorithm too"] == 8
    assert found.targets.guesses[-1] == ("cook",)
    assert found.targets.scores.tolist() == [0.5] * 4 + [1.0] * 2
    sure = attacks.DowncodingAttack(anonymize=anonymous, hierarchies={"job": JOBS}).run(release, truth=truth)
    assert (sure.targets.claims, sure.targets.hits, sure.numbers["claims from the labels alone"]) == (2, 2, 2)


def test_downcoding_refuses_bad_input() -> None:
    release = anonymous(pa.table({"job": ["nurse"] * 2}))
    with pytest.raises(ParameterError, match="one column at least"):
        attacks.DowncodingAttack(anonymize=anonymous, hierarchies={})
    attack = attacks.DowncodingAttack(anonymize=anonymous, hierarchies={"job": JOBS})
    with pytest.raises(ParameterError, match="each label of column"):
        attack.run(pa.table({"job": ["pilot"]}))
    with pytest.raises(ParameterError, match="return each column"):
        attacks.DowncodingAttack(
            anonymize=lambda table: table.rename_columns(["work"]), hierarchies={"job": JOBS}
        ).run(release)
    with pytest.raises(ParameterError, match="have 2 values"):
        attack.run(release, truth=[("nurse",)])
