"""Consistency is least squares, variances are those of its weights, against dense matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from sfumato.local import (
    Domain,
    HaarHistogram,
    HadamardResponse,
    HierarchicalHistogram,
    OneBitHadamard,
    OptimalLocalHashing,
    OptimizedUnaryEncoding,
    ProjectiveGeometryResponse,
    RandomizedResponse,
    SubsetSelection,
)
from sfumato.local.baselines import SummationHistogram
from sfumato.local.device.domains.tree import Shape
from sfumato.local.ranges.consistency import from_coefficients, from_nodes, isotonic
from tests.cases import cases

Matrix = NDArray[np.float64]


def nodes_of(shape: Shape) -> list[Matrix]:
    """For each level below the root, which leaves are in which nodes."""
    places = np.arange(shape.size)
    return [
        (places // shape.span(level) == np.arange(shape.nodes(level))[:, None]).astype(float)
        for level in range(1, shape.levels + 1)
    ]


def linear(solve: Any, sizes: Sequence[int], leaves: int) -> tuple[list[Matrix], Matrix]:
    """The weights of all levels' estimates in the leaves, and the constant part."""
    constant = solve([np.zeros(size) for size in sizes])
    weights = []
    for at, size in enumerate(sizes):
        columns = []
        for node in range(size):
            given = [np.zeros(one) for one in sizes]
            given[at][node] = 1.0
            columns.append(solve(given) - constant)
        weights.append(np.array(columns).T)
    assert weights[0].shape[0] == leaves
    return weights, constant


@pytest.mark.parametrize(("branching", "levels"), [(2, 3), (3, 2), (4, 2), (5, 1)])
def test_generalised_least_squares_with_everything_that_is_common(branching: int, levels: int) -> None:
    shape = Shape(branching**levels, branching)
    generator = np.random.default_rng(3)
    truth = generator.dirichlet(np.ones(shape.size))
    matrices, variances = nodes_of(shape), generator.uniform(0.5, 3.0, levels)
    estimates = [matrix @ truth + generator.normal(size=len(matrix)) for matrix in matrices]
    whole, told = np.concatenate(matrices), np.concatenate(estimates)
    # Each level: alike variances, something all nodes have in common, and the indicators' own covariance.
    blocks = [
        variance * np.eye(len(matrix)) + 0.3 * variance
        for matrix, variance in zip(matrices, variances, strict=True)
    ]
    covariance = np.zeros((len(told), len(told)))
    at = 0
    for block in blocks:
        covariance[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    covariance += whole @ (np.diag(truth) - np.outer(truth, truth)) @ whole.T
    # Leaves as a point with sum 1 and what keeps the sum.
    start = np.full(shape.size, 1 / shape.size)
    basis = np.linalg.svd(np.ones((1, shape.size)))[2][1:].T
    inverse = np.linalg.inv(covariance)
    design = whole @ basis
    found = np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ (told - whole @ start))
    below, alphas = variances[-1], [1.0]
    for variance in variances[-2::-1]:
        alphas.insert(0, branching * below / (variance + branching * below))
        below = variance * alphas[0]
    np.testing.assert_allclose(from_nodes(shape, estimates, alphas), start + basis @ found, atol=1e-10)


@cases("size", [2, 3, 7, 8, 9, 20])
@cases("branching", [2, 3, 5, 30])
def test_true_levels_give_the_true_leaves(size: int, branching: int) -> None:
    shape, truth = Shape(size, branching), np.random.default_rng(size).dirichlet(np.ones(size))
    alphas = (*np.linspace(0.2, 0.8, shape.levels - 1), 1.0)
    exact = [matrix @ truth for matrix in nodes_of(shape)]
    np.testing.assert_allclose(from_nodes(shape, exact, alphas), truth, atol=1e-12)
    if branching == 2:
        at = [np.zeros(1), *nodes_of(shape)]
        differences = []
        for level in range(shape.levels):
            halves = np.append(at[level + 1] @ truth, 0.0)[: 2 * shape.nodes(level)].reshape(-1, 2)
            differences.append(halves[:, 0] - halves[:, 1])
        np.testing.assert_allclose(from_coefficients(shape, differences), truth, atol=1e-12)


def test_isotonic_is_the_nearest_that_never_falls() -> None:
    generator = np.random.default_rng(5)
    for size in (1, 2, 10, 200):
        values = np.cumsum(generator.normal(0.1, 1.0, size))
        np.testing.assert_allclose(isotonic(values), isotonic_regression(values).x, atol=1e-9)


@cases(
    "oracle",
    [
        RandomizedResponse,
        OptimizedUnaryEncoding,
        OptimalLocalHashing,
        SubsetSelection,
        OneBitHadamard,
        SummationHistogram,
        ProjectiveGeometryResponse,
        HadamardResponse,
    ],
)
@cases(("size", "branching"), [(2, 2), (9, 3), (11, 2), (13, 4), (30, 5), (12, 12)])
@cases("epsilon", [0.7, 3.0])
def test_variances_are_those_of_the_weights(oracle: Any, size: int, branching: int, epsilon: float) -> None:
    protocol = HierarchicalHistogram(
        epsilon=epsilon, domain=Domain(range(size)), branching=branching, oracle=oracle
    )
    shape, truth = protocol.device.shape, np.random.default_rng(1).dirichlet(np.full(size, 0.7))
    asked = [400 + 100 * level for level in range(shape.levels)]
    spread = protocol.error_model(asked)
    weights, _ = linear(
        lambda given: from_nodes(shape, given, spread.alphas), [len(x) for x in nodes_of(shape)], size
    )
    parts = []
    for level, matrix in zip(protocol.levels, nodes_of(shape), strict=True):
        shares = matrix @ truth
        fixed = level.error_model.covariance(shares, np.arange(len(shares)))
        parts.append(fixed + np.diag(shares) - np.outer(shares, shares))
    check_all_ranges(spread, weights, parts, asked, truth)


@cases(
    ("oracle", "size"),
    [
        *product((None, RandomizedResponse), (2, 3, 8, 11, 17)),
        (OptimizedUnaryEncoding, 3),
        (OptimizedUnaryEncoding, 7),
    ],
)
@cases("epsilon", [0.7, 3.0])
def test_variances_of_coefficients(oracle: Any, size: int, epsilon: float) -> None:
    protocol = HaarHistogram(epsilon=epsilon, domain=Domain(range(size)), oracle=oracle)
    shape, truth = protocol.device.shape, np.random.default_rng(1).dirichlet(np.full(size, 0.7))
    asked = [400 + 100 * level for level in range(shape.levels)]
    nodes = [shape.nodes(level) for level in range(shape.levels)]
    weights, _ = linear(lambda given: from_coefficients(shape, given), nodes, size)
    parts = []
    places = np.arange(size)
    for at, level in enumerate(protocol.levels):
        shares = np.bincount(protocol.device.answers(places, at), truth, 2 * nodes[at])
        # All reports there are, one by one: what each adds to the differences, and how likely it is.
        device = level.device
        laws = [device.probabilities(code) for code in range(2 * nodes[at])]  # type: ignore[attr-defined]
        total = sum(
            share * np.array([float(x) for x in law.values()])
            for share, law in zip(shares, laws, strict=True)
        )
        rows = np.array([np.frombuffer(report, np.uint8) for report in laws[0]])
        told = np.array([level.differences(level.tally(row[None]), 1) for row in rows])
        mean = total @ told
        parts.append(told.T @ (total[:, None] * told) - np.outer(mean, mean))
        np.testing.assert_allclose(mean, shares[0::2] - shares[1::2], atol=1e-9)
    check_all_ranges(protocol.error_model(asked), weights, parts, asked, truth)


def check_all_ranges(
    spread: Any, weights: list[Matrix], parts: list[Matrix], asked: list[int], truth: Matrix
) -> None:
    """Each range's variance is the quadratic form of its weights, level by level, less that of its truth."""
    first, last = np.triu_indices(len(truth))
    cumulative = np.concatenate([[0.0], np.cumsum(truth)])
    found = spread.variance(first, last, cumulative)
    for at, (start, stop) in enumerate(zip(first, last, strict=True)):
        share = truth[start : stop + 1].sum()
        expected = -share * (1 - share) / sum(asked)
        for weight, part, count in zip(weights, parts, asked, strict=True):
            own = weight[start : stop + 1].sum(axis=0)
            expected += own @ part @ own / count
        assert found[at] == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_a_level_that_nobody_was_asked_of() -> None:
    protocol = HierarchicalHistogram(
        epsilon=1.0, domain=Domain(range(8)), branching=2, oracle=RandomizedResponse
    )
    even = np.arange(9) / 8
    whole, half = (np.array([0]), np.array([7])), (np.array([0]), np.array([3]))
    leaf = np.array([1]), np.array([1])
    without_leaves = protocol.error_model([10, 10, 0])
    assert without_leaves.variance(*whole, even)[0] == 0
    assert np.isfinite(without_leaves.variance(*half, even)[0])
    assert np.isinf(without_leaves.variance(*leaf, even)[0])
    assert np.isfinite(protocol.error_model([10, 0, 10]).variance(*leaf, even)[0])
    assert np.isinf(protocol.error_model([0, 0, 0]).variance(*half, even)[0])
    assert np.isfinite(protocol.error_model([10, 0, 0]).variance(*half, even)[0])
    totals = protocol.aggregator().totals
    totals[-3:] = [1, 0, 0]
    totals[:2] = [1, 0]
    told = protocol.estimate(totals, 1)
    assert told.raw.sum() == pytest.approx(1)
    assert np.allclose(told.raw[:4], told.raw[0])
    assert told.interval().lower.tolist() == [0.0] * 8
