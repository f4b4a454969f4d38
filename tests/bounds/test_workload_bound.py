"""Workloads' lower bounds against mechanisms, other formulas and exact enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato import bounds
from sfumato.bounds.nuclear_norm import _norm_above_one
from sfumato.errors import ParameterError
from sfumato.mechanisms import BinaryTree, SquareRoot, svd_bound
from sfumato.numerics import DiscreteGaussianDistribution

RNG = np.random.default_rng(5)
WORKLOADS = {
    "identity": np.eye(6),
    "prefixes": np.tril(np.ones((16, 16))),
    "total": np.ones((1, 7)),
    "tall": RNG.normal(size=(9, 4)),
    "wide": RNG.normal(size=(3, 8)),
    "repeated": np.vstack([np.eye(4), np.ones((3, 4))]),
    "scaled": 1e200 * np.array([[1.0, 2.0], [3.0, 1.0]]),
}


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_bounds_are_in_order(name: str) -> None:
    workload = WORKLOADS[name]
    svd = bounds.svd_error_bound(workload / workload.max(), mu=1.0)
    mean = bounds.mean_error_bound(workload / workload.max(), mu=1.0)
    most = bounds.maximum_error_bound(workload / workload.max(), mu=1.0)
    plain = math.sqrt(svd_bound(workload / workload.max()) / len(workload))
    assert plain * (1 - 1e-10) <= svd.error <= plain * (1 + 1e-15)
    assert mean.ratio is not None
    assert most.reached is not None
    assert most.ratio is not None
    assert svd.error <= mean.error <= most.reached
    assert 1 <= mean.ratio < 1.001
    assert 1 <= most.ratio < 1.001
    assert svd.ratio is None
    assert "at least" in str(svd)
    assert "is reached" in str(mean)


def test_prefix_sums_in_one_table() -> None:
    """Bound, optimum, square root and tree, for the greatest and the mean error."""
    steps = 64
    prefixes = np.tril(np.ones((steps, steps)))
    mean, most = bounds.mean_error_bound(prefixes, mu=1.0), bounds.maximum_error_bound(prefixes, mu=1.0)
    root, tree = SquareRoot(steps=steps), BinaryTree(steps=steps)
    assert mean.reached is not None
    assert most.reached is not None
    assert mean.error <= mean.reached < root.mean_error() < tree.mean_error()
    assert most.error <= most.reached < root.max_error() < tree.max_error()
    # Matousek, Nikolov, Talwar (2020), section 3: the exact norm of a triangle of ones.
    terms = [1 / math.sin((2 * k - 1) * math.pi / (4 * steps + 2)) for k in range(1, steps + 1)]
    assert bounds.svd_error_bound(prefixes, mu=1.0).error == pytest.approx(sum(terms) / 2 / steps, rel=1e-9)


def test_bounds_follow_mu() -> None:
    one, half = (bounds.mean_error_bound(np.eye(3), mu=mu) for mu in (1.0, 0.5))
    assert half.error == 2 * one.error
    assert one.error == pytest.approx(1, rel=1e-9)
    assert one.mu == 1.0
    free = bounds.svd_error_bound(np.eye(3), mu=1.0, unbiased=True)
    assert free.error == pytest.approx(1 / math.sqrt(math.e - 1), rel=1e-9)
    assert free.error <= 1 / math.sqrt(math.e - 1)
    assert free.mechanisms != one.mechanisms


def test_unbiased_bound_holds_for_exact_discrete_noise_and_is_tight() -> None:
    """Discrete Gaussian noise of parameter s is 1/(2 s^2)-zCDP: no less variance than at mu = 1/s."""
    for sigma in (0.4, 0.7, 1.0, 3.0):
        bound = bounds.svd_error_bound([[1.0]], mu=1 / sigma, unbiased=True)
        assert bound.error <= DiscreteGaussianDistribution(sigma).stddev
    assert bound.error > 0.97 * 3.0


def test_norm_of_known_matrices() -> None:
    hadamard = np.array([[1.0]])
    for _ in range(3):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    for matrix, norm in ((hadamard, math.sqrt(8)), (np.eye(5), 1.0), (np.ones((3, 5)), 1.0)):
        found = bounds.factorization_norm(matrix)
        assert found.bounds.lower <= norm <= found.bounds.upper
        assert found.bounds.upper - found.bounds.lower < 2e-4 * norm
        assert np.allclose(found.left @ found.right, matrix)
        assert np.linalg.norm(found.rows) <= 1 + 1e-12
        assert np.linalg.norm(found.columns) <= 1 + 1e-12


def test_norm_is_that_of_the_rows_and_columns_that_are_used() -> None:
    inner = np.tril(np.ones((4, 4)))
    wide = np.zeros((6, 7))
    wide[np.ix_([0, 2, 3, 5], [1, 2, 4, 6])] = inner
    found, alone = bounds.factorization_norm(wide), bounds.factorization_norm(inner)
    assert found.bounds.lower == alone.bounds.lower
    assert found.bounds.upper == pytest.approx(alone.bounds.upper, rel=1e-12)
    assert np.allclose(found.left @ found.right, wide)
    assert found.rows[1] == found.columns[0] == 0


@pytest.mark.parametrize("orders", [[0], [1], [2], [1, 2], [3]])
def test_marginals_are_the_singular_values_of_their_matrix(orders: list[int]) -> None:
    sizes = (2, 3, 4)
    cells = np.indices(sizes).reshape(3, -1)
    rows = []
    for mask in range(8):
        part = [i for i in range(3) if mask >> i & 1]
        if len(part) in orders:
            key = np.zeros(cells.shape[1], dtype=int)
            for i in part:
                key = key * sizes[i] + cells[i]
            rows.append(np.eye(int(key.max()) + 1)[:, key])
    brute = bounds.svd_error_bound(np.vstack(rows), mu=1.0)
    assert bounds.marginals_error_bound(sizes, orders=orders, mu=1.0).error == pytest.approx(
        brute.error, rel=1e-9
    )


def test_figures_of_adult() -> None:
    adult = [85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2]
    for orders, error in (([1], 3.0468), ([2], 6.3587), ([3], 10.5153), ([1, 2, 3], 10.6650)):
        assert bounds.marginals_error_bound(adult, orders=orders, mu=1.0).error == pytest.approx(
            error, abs=5e-5
        )


def test_vectors_that_are_not_orthonormal_are_paid_for() -> None:
    vectors = np.eye(3) * 1.5
    assert _norm_above_one(vectors) >= 1.5**2 - 1
    # Four floats of a half are a unit vector: nothing is off but for the allowance, 12 units.
    assert _norm_above_one(np.full((4, 1), 0.5)) >= 12 * 2.0**-52


def test_what_is_no_workload_is_refused() -> None:
    for make in (bounds.svd_error_bound, bounds.mean_error_bound, bounds.maximum_error_bound):
        with pytest.raises(ParameterError, match="workload must be a matrix of finite numbers, not all 0"):
            make(np.zeros((3, 3)), mu=1.0)
    with pytest.raises(ParameterError, match="mu must be positive"):
        bounds.svd_error_bound(np.eye(2), mu=0.0)
    assert bounds.factorization_norm(np.ones((512, 1))).bounds.upper == pytest.approx(1)
    with pytest.raises(ParameterError, match="workload must have at most 512 rows and columns"):
        bounds.factorization_norm(np.ones((513, 1)))
    for sizes, orders in (([], [1]), ([2, 3], [3]), ([2, 3], [])):
        with pytest.raises(ParameterError, match="orders must be of some of the columns"):
            bounds.marginals_error_bound(sizes, orders=orders, mu=1.0)
    with pytest.raises(ParameterError, match="orders must make at most 65536 tables"):
        bounds.marginals_error_bound([2] * 30, orders=[10], mu=1.0)


def test_as_many_tables_as_are_asked_for_are_counted() -> None:
    sizes = [2] * 365  # 366 tables of at most one column, and more than 65,536 of at most two
    assert bounds.marginals_error_bound(sizes, orders=[1], mu=1.0).error > 1
    with pytest.raises(ParameterError, match="at most 65536 tables"):
        bounds.marginals_error_bound(sizes, orders=[2], mu=1.0)
