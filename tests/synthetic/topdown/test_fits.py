"""The fit of a family against a general solver, and its rounding against all whole tables."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from sfumato.synthetic.topdown import nonnegative_fit
from sfumato.synthetic.topdown.limits.controlled_rounding import rounded, rounded_root
from sfumato.synthetic.topdown.nonnegative_fit import Limits, Observed, fit_children, simplex_threshold
from tests.cases import cases

TOTAL, PAIRS, EACH = np.zeros(4, np.int64), np.array([0, 0, 1, 1]), np.arange(4)


def misfit(observed: list[Observed], table: Any) -> float:
    found = 0.0
    for each in observed:
        sums = np.zeros_like(each.counts)
        np.add.at(sums, each.group_of, table)
        found += each.weight * float(((sums - each.counts) ** 2).sum())
    return found


@cases("dense", [True, False])
@cases("limited", [False, True])
def test_a_fit_is_as_near_as_what_a_general_solver_finds(
    dense: bool, limited: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(nonnegative_fit, "_DENSE", 128 if dense else 0)
    rng = np.random.default_rng(5)
    truth = rng.poisson(2, (4, 3)).astype(float)
    groups = [TOTAL, PAIRS, EACH]
    observed = []
    for group_of, weight in zip(groups, (0.5, 0.2, 0.1), strict=True):
        exact = np.zeros((group_of.max() + 1, 3))
        np.add.at(exact, group_of, truth)
        observed.append(Observed(group_of, exact + np.round(rng.normal(0, 3, exact.shape)), weight))
    sums = truth.sum(axis=1)
    low = np.zeros((2, 3))
    np.add.at(low, PAIRS, truth)
    high = low + np.array([[0], [3]])
    limits = [Limits(PAIRS, low, high)] if limited else []
    fit = fit_children(observed, sums, 3, limits)
    rules: Any = [{"type": "eq", "fun": lambda x: x.reshape(4, 3).sum(axis=1) - sums}]
    if limited:
        pairs = np.kron(np.eye(2), np.ones((1, 2)))
        rules += [{"type": "ineq", "fun": lambda x: (pairs @ x.reshape(4, 3) - low).ravel()}]
        rules += [{"type": "ineq", "fun": lambda x: (high - pairs @ x.reshape(4, 3)).ravel()}]
    solver: Any = minimize
    best = solver(
        lambda x: misfit(observed, x.reshape(4, 3)), truth.ravel(), method="SLSQP", constraints=rules,
        bounds=[(0, None)] * 12,
    )  # fmt: skip
    assert best.success
    assert misfit(observed, fit.table) <= best.fun * 1.001 + 1e-3
    assert fit.table.min() >= 0
    np.testing.assert_allclose(fit.table.sum(axis=1), sums, atol=1e-2 if limited else 1e-8)


def test_thresholds_are_those_of_the_projection_on_the_simplex() -> None:
    rng = np.random.default_rng(2)
    x, sums = rng.normal(0, 5, (50, 9)), rng.uniform(0.1, 40, 50)
    for start in (None, rng.normal(0, 30, 50), np.full(50, 1e5)):  # from any guess, in few steps
        t = simplex_threshold(x, sums, start)
        np.testing.assert_allclose(np.maximum(x - t[:, None], 0).sum(axis=1), sums, rtol=1e-8)


def whole_tables(sums: Any, children: int, most: int) -> Any:
    """All tables of whole numbers with these sums by row."""
    rows = [[r for r in product(range(most + 1), repeat=children) if sum(r) == total] for total in sums]
    return map(np.array, product(*rows))


@cases("seed", range(12))
@cases("kind", ["free", "limited", "far"])
def test_no_whole_table_within_the_rules_is_nearer(seed: int, kind: str) -> None:
    """Among all tables with the sums, whose children's totals are the real ones rounded up or down."""
    rng = np.random.default_rng(seed)
    sums = rng.integers(1, 4, 3)
    table = rng.dirichlet([0.7, 0.7, 0.7], 3) * sums[:, None]
    if kind == "far":  # sums are off by more than round-off
        table = np.maximum(table + rng.normal(0, 0.6, table.shape), 0)
    real = table.sum(axis=0)
    low, high = np.floor(real), np.ceil(real)
    limits = None
    if kind != "free":
        seen = next(iter(whole_tables(sums, 3, 3))).sum(axis=0)
        limits = Limits(
            np.zeros(3, np.int64), np.minimum(seen, low)[None] - 0.0, np.maximum(seen, high)[None]
        )
        limits = Limits(limits.group_of, seen[None] * 1.0, seen[None] * 1.0) if seed % 2 else limits
        low, high = np.maximum(low, limits.lower[0]), np.minimum(high, limits.upper[0])
    found = rounded(table, sums, [limits] if limits else [])
    assert (found.sum(axis=1) == sums).all()
    assert found.min() >= 0
    if limits is not None:
        assert (limits.lower[0] <= found.sum(axis=0)).all()
        assert (limits.upper[0] >= found.sum(axis=0)).all()
    near = [
        z for z in whole_tables(sums, 3, 3)
        if (np.abs(z - table) < 1).all() and (low <= z.sum(axis=0)).all() and (z.sum(axis=0) <= high).all()
    ]  # fmt: skip
    if near:
        assert np.abs(found - table).sum() <= min(np.abs(z - table).sum() for z in near) + 1e-6
    else:
        assert kind != "free"


def test_a_root_is_rounded_to_its_rounded_sum_and_its_limits() -> None:
    table = np.array([0.4, 0.4, 0.4, 2.6])
    assert rounded_root(table).tolist() == [1, 0, 0, 3]
    bounds = (np.array([[4.0], [0.0]]), np.array([[9.0], [1.0]]))
    assert rounded_root(table, [Limits(PAIRS, *bounds)]).tolist() == [2, 2, 0, 1]
    assert rounded_root(np.zeros(3)).tolist() == [0, 0, 0]


def test_a_wrong_rounding_would_be_seen() -> None:
    """The nearest cells alone have children's totals that the rules exclude."""
    table = np.full((3, 2), [0.6, 0.4])
    assert rounded(table, np.ones(3, np.int64)).sum(axis=0).tolist() == [2, 1]
    assert np.rint(table).sum(axis=0).tolist() == [3, 0]
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(np.rint(table), rounded(table, np.ones(3, np.int64)))
