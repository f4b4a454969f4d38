"""The suite passes every mechanism of ours: at its own price, none is refuted.

A new mechanism is one line in ``CATALOGUE``: its name, the mechanism, and pairs where the audit does not know
its type. Every audit may raise a false alarm with a chance of at most 1e-12, the whole file of at most 1e-10;
seeds are fixed, so that a test passes always or never.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sfumato import Neighboring
from sfumato.audit import InputPair, array_pairs, audit
from sfumato.mechanisms import (
    BoundedSum,
    Count,
    Gaussian,
    Grid,
    Histogram,
    Laplace,
    LinearWorkload,
    Mean,
    Mechanism,
)

SURE = 1 - 1e-12
SEED = 20261121
REPLACE = Neighboring.REPLACE_ONE


@dataclass(frozen=True)
class Entry:
    """A mechanism, its pairs unless the audit knows them, at what delta its price is read, how near it is."""

    mechanism: Mechanism
    pairs: list[InputPair] | None = None
    delta: float = 0.0
    trials: int = 200_000
    reaches: float = 0.0  # the part of its epsilon that the audit must reach, so that it is no idle test


def laplace(**given: Any) -> Entry:
    return Entry(Laplace.calibrated(epsilon=1.0, **given), reaches=0.9)


def gaussian(delta: float = 1e-2, **given: Any) -> Entry:
    return Entry(Gaussian.calibrated(epsilon=1.0, delta=delta, **given), delta=delta, reaches=0.7)


def measured(query: Any, *, neighboring: Neighboring = Neighboring.ADD_REMOVE, reaches: float = 0.8) -> Entry:
    return Entry(Laplace.for_query(query, epsilon=1.0, neighboring=neighboring), reaches=reaches)


CATALOGUE: dict[str, Entry] = {
    "Laplace on integers": laplace(sensitivity=1),
    "Laplace of sensitivity 5": laplace(sensitivity=5),
    "Laplace on reals": laplace(sensitivity=1.0),
    "Laplace on a coarse grid": laplace(sensitivity=1.0, grid=Grid(exponent=-1)),
    "Laplace on a vector": Entry(Laplace.calibrated(sensitivity=1.0, l0=3, epsilon=1.0), reaches=0.7),
    "Laplace in L1": Entry(Laplace.calibrated(l1=2.0, l0=3, epsilon=1.0), reaches=0.7),
    "Laplace in L1 on integers": Entry(Laplace.calibrated(l1=4, epsilon=1.0), reaches=0.7),
    "Gaussian on integers": gaussian(sensitivity=1),
    "Gaussian on reals": gaussian(sensitivity=1.0),
    "Gaussian at a small delta": Entry(
        Gaussian.calibrated(sensitivity=1.0, epsilon=1.0, delta=1e-6), delta=1e-6, reaches=0.2
    ),
    "Gaussian on a vector": gaussian(sensitivity=1.0, l0=3),
    "Gaussian in L2": gaussian(l2=1.0, l0=3),
    "narrow Gaussian": Entry(Gaussian(sensitivity=1, stddev=0.5), delta=1e-3, reaches=0.3),
    "count": measured(Count()),
    "sum": measured(BoundedSum(bounds=(-3, 10))),
    "sum of reals, one replaced": measured(BoundedSum(bounds=(-3.0, 10.0)), neighboring=REPLACE),
    "mean": measured(Mean(bounds=(0.0, 1.0))),
    "mean of public size": measured(Mean(bounds=(0.0, 1.0), n=4), neighboring=REPLACE),
    "histogram": measured(Histogram(categories=("a", "b", "c"))),
    "histogram, one replaced": measured(Histogram(categories=("a", "b", "c")), neighboring=REPLACE),
    "histogram of intervals": measured(Histogram(edges=(0.0, 1.0, 2.0))),
    "workload": measured(LinearWorkload(matrix=np.tril(np.ones((3, 3)))), reaches=0.6),
    "workload, one replaced": measured(
        LinearWorkload(matrix=np.tril(np.ones((3, 3)))), neighboring=REPLACE, reaches=0.5
    ),
    "count on made-up arrays": Entry(
        Laplace.for_query(Count(), epsilon=1.0), pairs=array_pairs(bounds=(0, 1)), reaches=0.8
    ),
    "histogram with Gaussian noise": Entry(
        Gaussian.for_query(Histogram(categories=("a", "b")), epsilon=1.0, delta=1e-2, neighboring=REPLACE),
        delta=1e-2,
        reaches=0.5,
    ),
}


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=CATALOGUE)
def test_no_mechanism_of_ours_is_refuted(entry: Entry) -> None:
    claimed = entry.mechanism.privacy_loss.epsilon(entry.delta)
    found = audit(
        entry.mechanism,
        epsilon=claimed,
        delta=entry.delta,
        pairs=entry.pairs,
        trials=entry.trials,
        confidence=SURE,
        rng=SEED,
    )
    assert not found.violated, found
    assert found.epsilon_lower >= entry.reaches * claimed, found
