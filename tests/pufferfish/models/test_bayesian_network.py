"""d-separation against independence in joint distributions with random tables."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.pufferfish import BayesianNetwork, MarkovChain, MarkovSequence


def network(parents: list[tuple[int, ...]], seed: int = 1) -> BayesianNetwork:
    generator = np.random.default_rng(seed)
    tables = []
    for above in parents:
        keys = itertools.product(range(2), repeat=len(above))
        tables.append(
            {
                key: [Fraction(p := int(generator.integers(1, 99)), 100), Fraction(100 - p, 100)]
                for key in keys
            }
        )
    return BayesianNetwork(parents=parents, tables=tables)


def independent(joint: dict[tuple[Any, ...], Fraction], one: int, other: int, given: tuple[int, ...]) -> bool:
    cells: dict[Any, dict[tuple[Any, Any], Fraction]] = {}
    for dataset, weight in joint.items():
        cell = cells.setdefault(tuple(dataset[node] for node in given), {})
        key = (dataset[one], dataset[other])
        cell[key] = cell.get(key, Fraction(0)) + weight
    return all(c[0, 0] * c[1, 1] == c[0, 1] * c[1, 0] for c in cells.values())


@pytest.mark.parametrize(
    "parents",
    [
        [(), (0,), (1,), (2,), (3,)],
        [(), (), (0, 1), (2,), (2,)],  # a collider with descendants
        [(), (0,), (0,), (1, 2), (3,)],
        [(), (), (1,), (0, 2), (1,)],
    ],
)
def test_separation_is_independence_for_random_tables(parents: list[tuple[int, ...]]) -> None:
    found = network(parents)
    joint = found.datasets()
    assert sum(joint.values()) == 1
    for record in range(5):
        others = [node for node in range(5) if node != record]
        for size in range(4):
            for given in itertools.combinations(others, size):
                separated = found.separated(record, given)
                rest = [node for node in others if node not in given]
                assert separated == {node for node in rest if independent(joint, record, node, given)}


def test_a_chain_is_a_network() -> None:
    step = {(0,): [0.9, 0.1], (1,): [0.4, 0.6]}
    line = BayesianNetwork(parents=[(), (0,), (1,)], tables=[{(): [0.25, 0.75]}, step, step])
    chain = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[0.25, 0.75])
    assert line.datasets() == MarkovSequence(chain=chain, length=3).datasets()
    assert line.describe() == "a Bayesian network of 3 records and 2 links"
    assert hash(line) == hash(network([(), (0,), (1,)]))


def test_what_is_no_network_is_refused() -> None:
    half = {(): [0.5, 0.5]}
    cases: list[tuple[Any, Any, str]] = [
        ([], [], "as many as parents"),
        ([()], [half, half], "as many as parents"),
        ([(), (1,)], [half, half], "come before their child"),
        ([(), (0,)], [half, half], "a distribution for each choice"),
        ([(), (0,)], [half, {(0,): [1.0], (1,): [0.5, 0.5]}], "a distribution for each choice"),
        ([()], [{(): [0.5, 0.6]}], "sum to one"),
    ]
    for parents, tables, message in cases:
        with pytest.raises(ParameterError, match=message):
            BayesianNetwork(parents=parents, tables=tables)
    with pytest.raises(ParameterError, match="at most 262144 datasets"):
        BayesianNetwork(parents=[()] * 19, tables=[half] * 19).datasets()
