"""The census way as an attack: raw tables give people away, tables with noise do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.attacks import (
    CensusReconstruction,
    ContradictoryTables,
    PersonTypes,
    PublishedCounts,
    PublishedTable,
    compare,
)
from sfumato.errors import ParameterError
from sfumato.privacy import PureDP

TYPES = PersonTypes({"age": range(12), "sex": ("F", "M"), "race": "ABC", "tenure": ("own", "rent")})
BY = [("age", "sex"), ("age", "race"), ("sex", "race", "tenure"), ("age", "tenure"), ("age", "sex", "race")]
SIZE, BLOCKS = 20, 8


def people(rng: np.random.Generator) -> list[tuple[Any, ...]]:
    return [
        (
            int(rng.integers(12)),
            "FM"[rng.integers(2)],
            "ABC"[rng.choice(3, p=[0.7, 0.2, 0.1])],
            ("own", "rent")[rng.integers(2)],
        )
        for _ in range(SIZE)
    ]


def published(persons: list[tuple[Any, ...]]) -> list[PublishedTable]:
    return [PublishedCounts.of(persons, TYPES, name="-".join(by), by=by) for by in BY]


def noisy(tables: list[PublishedTable], epsilon: float, rng: np.random.Generator) -> list[PublishedTable]:
    """Return the tables with geometric noise: a person adds one to a cell of each."""
    scale = len(tables) / epsilon
    found: list[PublishedTable] = [PublishedCounts(name="all", by=(), counts=SIZE)]
    for table in tables:
        assert isinstance(table, PublishedCounts)
        noise = rng.geometric(-np.expm1(-1 / scale), (2, *table.counts.shape))
        counts = table.counts + noise[0] - noise[1]
        found.append(PublishedCounts(name=table.name, by=table.by, counts=counts, noise_scale=scale))
    return found


def test_noise_takes_the_attack_down_to_its_baseline() -> None:
    rng = np.random.default_rng(11)
    truth = {str(block): people(rng) for block in range(BLOCKS)}
    controls = {str(block): people(rng) for block in range(BLOCKS)}
    raw = {block: published(persons) for block, persons in truth.items()}
    private = {block: noisy(tables, 0.5, rng) for block, tables in raw.items()}
    attack = CensusReconstruction(types=TYPES, time_limit=20)
    # five tables, of which a person is in one cell each, at epsilon 0.1
    found = compare(attack, raw=raw, private=private, loss=PureDP(0.5), truth=truth, controls=controls)
    raw_hits, private_hits = found.raw.targets.hits, found.private.targets.hits
    assert raw_hits is not None
    assert private_hits is not None
    assert raw_hits > 0.95 * SIZE * BLOCKS
    baseline = found.private.baseline
    success = found.private.success
    assert baseline is not None
    assert success is not None
    assert success.lower < baseline.upper
    assert private_hits < 0.35 * SIZE * BLOCKS
    assert found.private.numbers["certain persons"] == 0
    assert found.raw.numbers["certain persons"] > 0.9 * SIZE * BLOCKS


def test_only_certain_persons_are_claimed_if_asked() -> None:
    rng = np.random.default_rng(4)
    truth = people(rng)
    tables = published(truth)[:3]
    every = CensusReconstruction(types=TYPES).run(tables, truth=truth)
    certain = CensusReconstruction(types=TYPES, certain_only=True).run(tables, truth=truth)
    assert 0 < certain.targets.claims < every.targets.claims == SIZE
    # whoever is certain is there
    assert certain.targets.hits == certain.targets.claims
    unknown = CensusReconstruction(types=TYPES).run(tables)
    assert unknown.targets.correct is None


def test_a_person_serves_one_guess_only() -> None:
    types = PersonTypes({"sex": ("F", "M")})
    tables = [PublishedCounts(name="sex", by=("sex",), counts=[3, 0])]
    found = CensusReconstruction(types=types).run(tables, truth=[("F",), ("M",)])
    assert found.targets.hits == 1


def test_bad_input_is_refused() -> None:
    attack = CensusReconstruction(types=TYPES)
    with pytest.raises(ContradictoryTables, match="tables of a block must agree"):
        attack.run(
            [
                PublishedCounts(name="all", by=(), counts=3),
                PublishedCounts(name="sex", by=("sex",), counts=[1, 1]),
            ]
        )
    with pytest.raises(ParameterError, match="must be tables or persons as tuples"):
        attack.run(3)
    with pytest.raises(ParameterError, match="tables must count somebody"):
        attack.run([PublishedCounts(name="all", by=(), counts=0)])
    with pytest.raises(ParameterError, match="types must be a PersonTypes"):
        CensusReconstruction(types=3)  # type: ignore[arg-type]
