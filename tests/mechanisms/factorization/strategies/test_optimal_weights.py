"""The dual of the optimal strategy: few evaluations, a true bound, and structure that changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.mechanisms.factorization.strategies.integer_strategy import Array
from sfumato.mechanisms.factorization.strategies.optimal_weights import OptimalWeights
from tests.cases import cases

CELLS = 60
GENERATOR = np.random.default_rng(1)
DECAYING = np.tril(0.5 ** np.subtract.outer(np.arange(40.0), np.arange(40.0)))
PREFIXES = np.tril(np.ones((CELLS, CELLS)))
HALVES = np.zeros((CELLS, CELLS))
HALVES[:30, :30], HALVES[30:, 30:] = PREFIXES[:30, :30], 100 * np.eye(30)
WORKLOADS: dict[str, tuple[Array, int]] = {
    "prefixes": (PREFIXES, 14),
    "decaying sums": (DECAYING, 14),
    "windows": (PREFIXES - np.tril(PREFIXES, -8), 14),
    "uneven": (GENERATOR.normal(size=(CELLS, CELLS)) * np.exp(GENERATOR.normal(size=CELLS)), 25),
    "unlike halves": (HALVES, 14),
    "fewer queries than cells": (GENERATOR.normal(size=(15, CELLS)), 600),
}


def error(workload: Array, product: Array) -> float:
    return float(np.trace(workload @ np.linalg.pinv(product, hermitian=True) @ workload.T))


@cases("name", WORKLOADS)
def test_bound_and_error_meet(name: str) -> None:
    workload, most = WORKLOADS[name]
    found = OptimalWeights(workload, 1e-4)
    found.solve()
    product = found.product()
    assert np.diagonal(product).max() <= 1 + 1e-12
    assert found.bound * (1 - 1e-9) <= error(workload, product) <= found.bound * (1 + 1e-3)
    assert found.evaluations <= most


def test_no_strategy_is_below_the_bound() -> None:
    workload, _ = WORKLOADS["windows"]
    found = OptimalWeights(workload, 1e-6)
    found.solve()
    generator = np.random.default_rng(2)
    for _ in range(50):
        other = np.linalg.cholesky(found.product()).T + 0.01 * generator.normal(size=(CELLS, CELLS))
        other /= np.linalg.norm(other, axis=0).max()
        assert error(workload, other.T @ other) >= found.bound


@cases("name", ["prefixes", "decaying sums"])
def test_a_tridiagonal_inverse_gives_the_same_roots(name: str) -> None:
    workload, _ = WORKLOADS[name]
    found = OptimalWeights(workload, 1e-4)
    assert found._chain is not None
    root = np.exp(np.linspace(-1.0, 1.0, workload.shape[1]))
    sizes, vectors = found._roots(root)
    found._chain = None
    dense, beside = found._roots(root)
    assert np.sort(sizes) == pytest.approx(np.sort(dense), rel=1e-9)
    np.testing.assert_allclose(
        vectors * sizes @ vectors.T, beside * dense @ beside.T, atol=1e-9 * dense.max()
    )


@cases("change", [(5, 2, 1.0 + 1e-12), (2, 5, 1e-9), (0, 0, 0.0), (7, 0, 0.0), (7, 7, 0.0)])
def test_other_workloads_are_not_taken_for_sums_of_earlier_inputs(change: tuple[int, int, float]) -> None:
    row, column, value = change
    workload = PREFIXES.copy()
    workload[row, column] = value
    assert OptimalWeights(workload, 1e-4)._chain is None
