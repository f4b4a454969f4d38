"""The engine: log Z, marginals and rows against all cells of small random models; the fit and its gap."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from scipy.special import xlogy

from sfumato.synthetic.graphical_model.calibration import Calibrated, Calibration
from sfumato.synthetic.graphical_model.dual_fit import fit
from sfumato.synthetic.graphical_model.junction_tree import junction_tree, tree_cells
from sfumato.synthetic.graphical_model.measurements import Measurements, NoisyTable
from sfumato.synthetic.graphical_model.model_marginals import ModelMarginals
from sfumato.synthetic.graphical_model.row_sampling import sampled_rows


def random_model(seed: int, scale: float = 2.0) -> tuple[Any, Any, Calibrated]:
    """Sizes, the joint log-weights of all cells, and the model of the same random tables."""
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(2, 6))
    sizes = tuple(int(size) for size in rng.integers(1, 5, columns))
    several = [c for k in (2, 3) for c in combinations(range(columns), k)]
    picked = rng.choice(len(several), min(len(several), int(rng.integers(1, 6))), replace=False)
    scopes = [(i,) for i in range(columns)] + [several[i] for i in sorted(picked)]
    thetas = [rng.normal(0, scale, [sizes[i] for i in scope]) for scope in scopes]
    joint = np.zeros(sizes)
    for scope, theta in zip(scopes, thetas, strict=True):
        joint = joint + theta.reshape([sizes[i] if i in scope else 1 for i in range(columns)])
    return sizes, joint, Calibration(junction_tree(sizes, scopes), scopes)(thetas)


def brute_force(joint: Any) -> tuple[float, Any]:
    highest = joint.max()
    weights = np.exp(joint - highest)
    return float(highest + np.log(weights.sum())), weights / weights.sum()


def test_normalizer_and_all_marginals_are_those_of_all_cells() -> None:
    for seed in range(60):
        sizes, joint, model = random_model(seed)
        log_normalizer, probabilities = brute_force(joint)
        assert model.log_normalizer == pytest.approx(log_normalizer, rel=1e-12, abs=1e-12)
        marginals = ModelMarginals(model)
        for k in range(len(sizes) + 1):
            every = permutations if k < 3 else combinations
            for columns in every(range(len(sizes)), k):
                rest = tuple(i for i in range(len(sizes)) if i not in columns)
                exact = probabilities.sum(axis=rest)
                exact = np.transpose(exact, np.argsort(np.argsort(columns))) if k else exact
                np.testing.assert_allclose(marginals(columns), exact, atol=1e-12)


def test_weights_beyond_the_range_of_floats_do_no_harm() -> None:
    """Cliques that disagree by a factor of e^3000: in the linear domain all of it is 0."""
    scopes = [(0, 1), (1, 2)]
    one, two = np.array([[0.0, -3000.0], [0.0, -3000.0]]), np.array([[-6000.0, -6000.0], [0.0, 1.0]])
    model = Calibration(junction_tree((2, 2, 2), scopes), scopes)([one, two])
    joint = one[:, :, None] + two[None]
    log_normalizer, probabilities = brute_force(joint)
    assert model.log_normalizer == pytest.approx(log_normalizer, rel=1e-14)
    np.testing.assert_allclose(ModelMarginals(model)((0, 1, 2)), probabilities, atol=1e-12)


def test_impossible_cells_have_no_mass_and_an_impossible_model_says_so() -> None:
    scopes = [(0, 1), (1, 2)]
    calibration = Calibration(junction_tree((2, 3, 2), scopes), scopes)
    never = np.zeros((2, 3))
    never[:, 1] = -np.inf
    model = calibration([never, np.zeros((3, 2))])
    assert ModelMarginals(model)((1,)).tolist() == [0.5, 0.0, 0.5]
    drawn = np.concatenate(list(sampled_rows(model, 999, np.random.default_rng(1))))
    assert set(drawn[:, 1].tolist()) == {0, 2}
    assert calibration([np.full((2, 3), -np.inf), np.zeros((3, 2))]).log_normalizer == -np.inf


def test_a_tree_has_each_scope_and_is_connected_for_each_column() -> None:
    for seed in range(60):
        _, _, model = random_model(seed)
        tree = model.tree
        assert tree.cells == tree_cells(tree.sizes, tree.cliques)
        for column in range(len(tree.sizes)):
            having = [k for k, clique in enumerate(tree.cliques) if column in clique]
            tops = [k for k in having if tree.parents[k] not in having]
            assert len(tops) == 1
            assert all(column in tree.separators[k] for k in having if k not in tops)


def noisy(seed: int, sizes: tuple[int, ...], scopes: Any, total: float, stddev: float = 3.0) -> Measurements:
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(int(np.prod(sizes)), 0.5)).reshape(sizes) * total
    tables = {}
    for scope in scopes:
        exact = joint.sum(axis=tuple(i for i in range(len(sizes)) if i not in scope))
        tables[scope] = NoisyTable(np.round(exact + rng.normal(0, stddev, exact.shape)), stddev**2)
    return Measurements(sizes, tables, total)


SCOPES = [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (0, 2), (2, 3)]


def test_the_duality_gap_is_the_difference_of_both_objectives() -> None:
    """Computed from all cells; and a fit to the end has next to none."""
    sizes, total = (2, 3, 2, 4), 500.0
    measured = noisy(3, sizes, SCOPES, total)
    for tolerance, most in ((0.3, np.inf), (1e-9, 1e-7)):
        fitted = fit(measured, tolerance=tolerance, iterations=500)
        q = ModelMarginals(fitted.model)((0, 1, 2, 3))
        primal = total * float(xlogy(q, q * q.size).sum())
        dual = total * (fitted.model.log_normalizer - np.log(q.size))
        for scope, table in measured.tables.items():
            slack = table.variances * (0.01 if len(scope) == 1 else 0.02)
            rest = tuple(i for i in range(4) if i not in scope)
            theta, off = fitted.thetas[scope], total * q.sum(axis=rest) - table.counts
            primal += float((off**2 / slack).sum() / 2)
            dual += float((slack * theta**2).sum() / 2 - (theta * table.counts).sum())
        assert fitted.duality_gap == pytest.approx(primal + dual, rel=1e-6, abs=1e-7)
        assert 0 <= fitted.duality_gap <= most


def test_a_fit_is_a_function_of_the_released_values() -> None:
    one, two = (fit(noisy(5, (2, 3, 2, 4), SCOPES, 400.0)) for _ in range(2))
    assert one.iterations == two.iterations > 3
    assert all((one.thetas[scope] == two.thetas[scope]).all() for scope in SCOPES)
    assert fit(noisy(5, (2, 3, 2, 4), SCOPES, 400.0), one.thetas).iterations == 0


def test_a_model_follows_the_tables_within_their_noise() -> None:
    measured = noisy(8, (2, 3, 2, 4), [(0, 1), (1, 2), (2, 3)], 2000.0)
    fitted = fit(measured, tolerance=1e-4)
    marginals = ModelMarginals(fitted.model)
    assert fitted.model.tree.cells == 6 + 6 + 8
    for scope, table in measured.tables.items():
        assert np.abs(fitted.total * marginals(scope) - table.counts).max() < 5 * 3
    alone = Measurements((2,), {(0,): NoisyTable(np.array([300.0, 100.0]), 1.0)}, 400.0)
    np.testing.assert_allclose(ModelMarginals(fit(alone).model)((0,)), [0.75, 0.25], atol=1e-4)


def test_counts_of_sampled_rows_are_those_expected() -> None:
    for seed in range(12):
        sizes, joint, model = random_model(seed, 1.0)
        drawn = np.concatenate(list(sampled_rows(model, 20_000, np.random.default_rng(seed))))
        assert drawn.shape == (20_000, len(sizes))
        root = model.tree.cliques[0]
        found = np.zeros([sizes[i] for i in root])
        np.add.at(found, tuple(drawn[:, i] for i in root), 1)
        assert np.abs(found - 20_000 * model.beliefs[0]).max() <= 1 + 1e-9
        _, probabilities = brute_force(joint)
        cells = np.zeros(sizes)
        np.add.at(cells, tuple(drawn.T), 1)
        # independent draws have this deviation at most; 6 of them are exceeded once in 1e9
        assert (np.abs(cells - 20_000 * probabilities) <= 6 * np.sqrt(20_000 * probabilities) + 6).all()
