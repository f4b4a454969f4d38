"""Models relative to a base measure with zeros, against all cells: normalizers, marginals, fits, rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.special import xlogy

from sfumato.synthetic.graphical_model.base_measure import BaseMeasure
from sfumato.synthetic.graphical_model.calibration import Calibration
from sfumato.synthetic.graphical_model.dual_fit import conditioned, fit
from sfumato.synthetic.graphical_model.junction_tree import junction_tree
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.graphical_model.model_marginals import ModelMarginals
from sfumato.synthetic.graphical_model.row_sampling import sampled_rows


def spread(table: Any, scope: tuple[int, ...], sizes: tuple[int, ...]) -> Any:
    """A table as one that broadcasts over all columns."""
    return table.reshape([sizes[i] if i in scope else 1 for i in range(len(sizes))])


def random_zeros(rng: Any, sizes: tuple[int, ...]) -> tuple[list[Any], Any]:
    """Up to five combinations of cells, and which cells of the joint table they leave."""
    zeros, possible = [], np.ones(sizes, bool)
    for _ in range(int(rng.integers(1, 6))):
        scope = sorted(rng.choice(len(sizes), int(rng.integers(1, min(4, len(sizes) + 1))), replace=False))
        zero, inside = [], np.ones(sizes, bool)
        for column in map(int, scope):
            cells = np.flatnonzero(rng.random(sizes[column]) < 0.6)
            cells = cells if len(cells) else np.array([0])
            zero.append((column, tuple(map(int, cells))))
            inside &= spread(np.isin(np.arange(sizes[column]), cells), (column,), sizes)
        zeros.append(tuple(zero))
        possible &= ~inside
    return zeros, possible


def random_base(seed: int) -> tuple[tuple[int, ...], list[Any], Any, BaseMeasure, Any]:
    """Sizes, zeros, the cells that they leave, a base measure with finite factors too, and its joint log."""
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(2, 6))
    sizes = tuple(int(size) for size in rng.integers(2, 5, columns))
    zeros, possible = random_zeros(rng, sizes)
    base = BaseMeasure.from_zeros(sizes, zeros)
    pair: tuple[int, ...] = tuple(sorted(rng.choice(columns, 2, replace=False).tolist()))
    finite = rng.normal(0, 2.0, [sizes[i] for i in pair])
    with np.errstate(divide="ignore"):
        joint = np.log(possible) + spread(finite, pair, sizes)
    return sizes, zeros, possible, base.times(BaseMeasure(sizes, {pair: finite})), joint


def random_tables(seed: int, sizes: tuple[int, ...]) -> dict[tuple[int, ...], Any]:
    rng = np.random.default_rng(seed + 1000)
    several = list(combinations(range(len(sizes)), 2))
    picked = rng.choice(len(several), min(len(several), 2), replace=False)
    scopes: list[tuple[int, ...]] = [(i,) for i in range(len(sizes))] + [several[i] for i in sorted(picked)]
    return {scope: rng.normal(0, 2.0, [sizes[i] for i in scope]) for scope in scopes}


def test_normalizer_marginals_and_possible_cells_are_those_of_all_cells() -> None:
    infeasible = 0
    for seed in range(60):
        sizes, _, possible, base, joint = random_base(seed)
        thetas = random_tables(seed, sizes)
        for scope, theta in thetas.items():
            joint = joint + spread(theta, scope, sizes)
        tree = junction_tree(sizes, (*thetas, *base.factors))
        model = Calibration(tree, list(thetas), base.factors)(list(thetas.values()))
        every = [c for k in range(1, len(sizes) + 1) for c in combinations(range(len(sizes)), k)]
        within = [c for c in every if tree.home(c) is not None]
        for columns, found in zip(within, base.possible(tree, within), strict=True):
            rest = tuple(i for i in range(len(sizes)) if i not in columns)
            assert (found == possible.any(axis=rest)).all()
        if not possible.any():
            infeasible += 1
            assert model.log_normalizer == -np.inf
            continue
        weights = np.exp(joint - joint.max())
        expected = joint.max() + np.log(weights.sum())
        assert model.log_normalizer == pytest.approx(expected, rel=1e-12, abs=1e-12)
        marginals = ModelMarginals(model)
        for columns in every:
            rest = tuple(i for i in range(len(sizes)) if i not in columns)
            marginal = marginals(columns)
            np.testing.assert_allclose(marginal, weights.sum(axis=rest) / weights.sum(), atol=1e-12)
            assert (marginal[~possible.any(axis=rest)] == 0).all(), "an impossible cell has no mass at all"
        drawn = np.concatenate(list(sampled_rows(model, 500, np.random.default_rng(seed))))
        assert possible[tuple(drawn.T)].all()
    assert 0 < infeasible < 30


def test_a_fit_has_the_gap_of_both_objectives_and_no_mass_where_the_base_has_none() -> None:
    """Noise of impossible cells, and the order of magnitude of it, change nothing."""
    tried = 0
    for seed in range(8):
        sizes, _, possible, base, joint = random_base(seed)
        if not possible.any():
            continue
        tried += 1
        rng, total = np.random.default_rng(seed), 300.0
        truth = np.where(possible, rng.random(sizes), 0.0)
        truth *= total / truth.sum()
        noisy, other = {}, {}
        for scope in random_tables(seed, sizes):
            rest = tuple(i for i in range(len(sizes)) if i not in scope)
            counts = truth.sum(axis=rest) + rng.normal(0, 2.0, [sizes[i] for i in scope])
            noisy[scope] = NoisyTable(counts, 4.0)
            other[scope] = NoisyTable(np.where(possible.any(axis=rest), counts, -1e6), 4.0)
        fitted = fit(Measurements(sizes, noisy, total, base), tolerance=1e-5, iterations=300)
        same = fit(Measurements(sizes, other, total, base), tolerance=1e-5, iterations=300)
        assert all((fitted.thetas[scope] == same.thetas[scope]).all() for scope in noisy)
        q = ModelMarginals(fitted.model)(tuple(range(len(sizes))))
        assert (q[~possible] == 0).all()
        log_base = joint[possible]
        primal = total * float((xlogy(q[possible], q[possible]) - q[possible] * log_base).sum())
        dual = total * fitted.model.log_normalizer
        for scope, table in noisy.items():
            rest = tuple(i for i in range(len(sizes)) if i not in scope)
            inside = possible.any(axis=rest)
            slack = 4.0 * (0.01 if len(scope) == 1 else 0.02)
            theta = fitted.thetas[scope][inside]
            off = (total * q.sum(axis=rest) - table.counts)[inside]
            primal += float((off**2 / slack).sum() / 2)
            dual += float((slack * theta**2).sum() / 2 - (theta * table.counts[inside]).sum())
            assert (fitted.thetas[scope][~inside] == 0).all()
        assert fitted.duality_gap == pytest.approx(primal + dual, rel=1e-5, abs=1e-6)
        assert fitted.duality_gap < 1e-4
        last = len(sizes) - 1
        part = np.arange(sizes[last]) == 0
        if possible[..., 0].any():
            given = ModelMarginals(conditioned(fitted, {last: part.astype(float)}))(tuple(range(last + 1)))
            np.testing.assert_allclose(given, np.where(part, q, 0) / q[..., 0].sum(), atol=1e-12)
    assert tried > 4


def test_merged_cells_are_those_that_no_factor_tells_apart() -> None:
    """The measure of groups is the sum of the measure over their cells, for every product of groups."""
    merged = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sizes = tuple(int(size) for size in rng.integers(3, 7, 3))
        zeros, possible = random_zeros(rng, sizes)
        base = BaseMeasure.from_zeros(sizes, zeros)
        classes = base.classes()
        merged += sum(len(set(each.tolist())) < len(each) for each in classes)
        grouped = base.grouped(classes)
        weights = np.ones(grouped.sizes)
        for scope, factor in grouped.factors.items():
            weights = weights * np.exp(spread(factor, scope, grouped.sizes))
        exact = np.zeros(grouped.sizes)
        np.add.at(exact, np.ix_(*classes), possible.astype(float))
        np.testing.assert_allclose(weights, exact, rtol=1e-12)
    assert merged > 40
