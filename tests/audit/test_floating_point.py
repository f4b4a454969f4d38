"""Impossible outputs: floats betray their answers, grids do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit, audit_precision
from sfumato.errors import ParameterError
from sfumato.mechanisms import Gaussian, Laplace, Mean, Staircase, TruncatedLaplace

SURE = 1 - 1e-12
G = np.random.default_rng(1)

LEAKY: dict[str, Callable[[Any, int], Any]] = {
    "Laplace": lambda data, size: data + G.laplace(size=size),
    "Gaussian": lambda data, size: data + G.normal(size=size) * 4,
    "in a vector": lambda data, size: np.column_stack([G.laplace(size=size), data + G.laplace(size=size)]),
    "a grid that the answer shifts": lambda data, size: data / 3 + np.rint(G.laplace(size=size) * 64) / 64,
    "in a ragged list": lambda data, size: [[None, data + G.laplace()][: 1 + k % 2] for k in range(size)],
    "of another length": lambda data, size: G.laplace(size=(size, 2 if data else 3)),
    "single precision": lambda data, size: np.float32(data) + G.laplace(size=size).astype(np.float32),
}


@pytest.mark.parametrize("leaky", LEAKY.values(), ids=LEAKY)
def test_outputs_of_one_input_only_are_found(leaky: Callable[[Any, int], Any]) -> None:
    found = audit_precision(
        leaky, epsilon=1.0, delta=1e-5, pairs=[(0.0, 1.0)], trials=40_000, confidence=SURE
    )
    assert found.violated
    assert found.impossible > 100
    assert "impossible" in str(found)
    swapped = audit_precision(
        leaky, epsilon=1.0, delta=1e-5, pairs=[(1.0, 0.0)], trials=40_000, confidence=SURE
    )
    assert swapped.violated


def test_the_audit_of_values_does_not_see_them() -> None:
    found = audit(LEAKY["Laplace"], epsilon=1.0, pairs=[(0.0, 1.0)], trials=100_000, confidence=SURE)
    assert not found.violated


@pytest.mark.parametrize(
    "sound",
    [
        lambda data, size: np.rint((data + G.laplace(size=size)) * 1024) / 1024,
        lambda data, size: (data + G.integers(-5, 6, size)).astype(np.float64),
        lambda data, size: np.where(G.random(size) < 0.5, np.inf, 0.0),
    ],
)
def test_what_is_rounded_afterwards_is_not_accused(sound: Callable[[Any, int], Any]) -> None:
    found = audit_precision(sound, epsilon=1.0, delta=0.2, pairs=[(0, 1)], trials=40_000, confidence=SURE)
    assert not found.violated
    assert found.impossible == 0


def test_a_rare_class_is_not_impossible() -> None:
    """Even where the claim is met exactly: one output is 20 times as likely on one input."""

    def tell(data: int, size: int) -> Any:
        return np.where(G.random(size) < (0.2 if data else 0.01), 0.1, 1.0)

    found = audit_precision(tell, epsilon=float(np.log(20)), pairs=[(0, 1)], trials=20_000, confidence=SURE)
    assert found.impossible == 0


def test_a_class_that_comes_up_after_all_is_not_impossible() -> None:
    """Never on the second input in the runs that learn, three times in those that test."""
    odd = iter((1000, 0, 1000, 3))

    def tell(_: int, size: int) -> Any:
        return np.where(np.arange(size) < next(odd), 0.1, 1.0)

    found = audit_precision(tell, epsilon=1.0, pairs=[(0, 1)], trials=4000)
    assert found.violated
    assert found.impossible == 0


OURS = {
    "Laplace": Laplace.calibrated(sensitivity=1.0, epsilon=1.0),
    "Laplace on integers": Laplace.calibrated(sensitivity=1, epsilon=1.0),
    "Laplace of an odd sensitivity": Laplace.calibrated(sensitivity=0.3, epsilon=1.0),
    "Gaussian": Gaussian.calibrated(sensitivity=1.0, epsilon=1.0, delta=1e-5),
    "staircase": Staircase(sensitivity=1.0, epsilon=1.0),
    "truncated Laplace": TruncatedLaplace.calibrated(sensitivity=1.0, epsilon=1.0, delta=1e-5),
    "a mean": Laplace.for_query(Mean(bounds=(0.0, 1.0)), epsilon=1.0),
}


@pytest.mark.parametrize("mechanism", OURS.values(), ids=OURS)
def test_three_million_draws_of_ours_hold_nothing_impossible(mechanism: Any) -> None:
    found = audit_precision(
        mechanism, epsilon=1.0, delta=1e-5, trials=3_000_000, confidence=SURE, rng=20261121
    )
    assert found.impossible == 0
    assert found.epsilon_lower == 0.0


def test_bad_input() -> None:
    refused: list[Callable[[], Any]] = [
        lambda: audit_precision(LEAKY["Laplace"], epsilon=-1.0, pairs=[(0, 1)]),
        lambda: audit_precision(LEAKY["Laplace"], epsilon=1.0),
        lambda: audit_precision(LEAKY["Laplace"], epsilon=1.0, pairs=[(0, 1)], trials=10),
        lambda: audit_precision(lambda data: "a", epsilon=1.0, pairs=[(0, 1)], trials=2000),
    ]
    for bad in refused:
        with pytest.raises(ParameterError, match=" must "):
            bad()
