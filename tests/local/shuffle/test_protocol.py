"""Frequency oracles under a shuffler: all multisets of few clients' bytes, and the bound of the clones."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from sfumato import local
from sfumato.local import Domain
from sfumato.local.frequency.local_hashing import HashingOracle
from sfumato.privacy import Neighboring, PureDP, Shuffled
from tests.cases import cases

KINDS: list[Any] = [
    local.RandomizedResponse,
    local.SymmetricUnaryEncoding,
    local.OptimizedUnaryEncoding,
    local.SubsetSelection,
    local.OneBitHadamard,
    local.HadamardResponse,
    local.ProjectiveGeometryResponse,
    local.baselines.BinaryLocalHashing,
    local.OptimalLocalHashing,
]
SEEDS = (3, 8)
"""Seeds of hashes: a device that draws one of these evenly has the same shared law, over fewer reports."""


def law_of(oracle: Any) -> Callable[[int], dict[bytes, float]]:
    """The law of one client's bytes, by the true value."""

    def law(value: int) -> dict[bytes, float]:
        if not isinstance(oracle, HashingOracle):
            return {key: float(mass) for key, mass in oracle.device.probabilities(value).items()}
        found: Counter[bytes] = Counter()
        for seed in SEEDS:
            for key, mass in oracle.device.probabilities(value, seed).items():
                found[key] += float(mass) / len(SEEDS)  # type: ignore[assignment]
        return dict(found)

    return law


def mixed(laws: list[dict[bytes, float]]) -> Counter[tuple[bytes, ...]]:
    """The law of the multiset of reports."""
    whole: Counter[tuple[bytes, ...]] = Counter({(): 1.0})
    for law in laws:
        after: Counter[tuple[bytes, ...]] = Counter()
        for (seen, mass), (key, chance) in itertools.product(whole.items(), law.items()):
            after[tuple(sorted((*seen, key)))] += mass * chance  # type: ignore[assignment]
        whole = after
    return whole


@cases("kind", KINDS, ids=lambda kind: str(kind.__name__))
@cases(("epsilon", "clients", "categories"), [(1.0, 3, 3), (2.5, 2, 4), (0.5, 4, 2)])
def test_all_that_is_seen_lies_below_and_clones_above(
    kind: Any, epsilon: float, clients: int, categories: int
) -> None:
    oracle = kind(epsilon=epsilon, domain=Domain(range(categories)))
    law = law_of(oracle)
    if len(law(0)) > 24:
        clients = 2
    laws = [law(value) for value in range(categories)]
    loss = Shuffled(oracle.privacy_loss, clients=clients)
    clones = Shuffled(PureDP(epsilon, neighboring=Neighboring.REPLACE_ONE), clients=clients)
    others = [(rest,) * (clients - 1) for rest in range(categories)]
    others.append(tuple(range(clients - 1)))
    for share in (0.0, 0.1, 0.3, 0.6, 0.9):
        assert loss.delta(share * epsilon) <= clones.delta(share * epsilon) * (1 + 1e-9)
    for rest in others:
        same = mixed([laws[value % categories] for value in rest])
        for one, other in ((0, 1), (1, 0)):
            first, second = (mixed_with(same, laws[value]) for value in (one, other))
            for share in (0.0, 0.1, 0.3, 0.6, 0.9):
                factor = math.exp(share * epsilon)
                true = sum(max(0.0, mass - factor * second[seen]) for seen, mass in first.items())
                assert true <= loss.delta(share * epsilon) * (1 + 1e-9) + 1e-14


def mixed_with(same: Counter[tuple[bytes, ...]], law: dict[bytes, float]) -> Counter[tuple[bytes, ...]]:
    """The law of the multiset with one report more."""
    whole: Counter[tuple[bytes, ...]] = Counter()
    for (seen, mass), (key, chance) in itertools.product(same.items(), law.items()):
        whole[tuple(sorted((*seen, key)))] += mass * chance  # type: ignore[assignment]
    return whole


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_large_batches_are_never_above_the_clones(kind: Any) -> None:
    for epsilon in (0.5, 2.0):
        loss = kind(epsilon=epsilon, domain=Domain(range(100))).privacy_loss
        clones = PureDP(epsilon, neighboring=Neighboring.REPLACE_ONE)
        for clients in (30, 10_000):
            assert Shuffled(loss, clients).epsilon(1e-6) <= Shuffled(clones, clients).epsilon(1e-6) * (
                1 + 1e-6
            )
