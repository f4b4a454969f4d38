"""Marginals that agree: distributions, the nearest ones, and others put together from them."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from sfumato.errors import ParameterError
from sfumato.local import ConsistentMarginals, Domain
from sfumato.local.frequency.consistency import nearest
from sfumato.local.marginals.consistency import most_even
from sfumato.local.marginals.lattice import Lattice, analysed, functions, synthesised
from sfumato.local.marginals.sampled import SampledMarginals
from tests.local.marginals.population import DOMAINS, KINDS, SIZES, counts, protocols, truth


@pytest.mark.parametrize("categories", [2, 3, 7])
def test_functions_are_orthogonal(categories: int) -> None:
    made = functions(categories)
    assert np.allclose(made @ made.T, categories * np.eye(categories))
    assert (made[0] == 1).all()


def test_coefficients_are_the_same_in_every_table() -> None:
    lattice = Lattice(SIZES, tuple(combinations(range(4), 3)))
    joint = np.random.default_rng(1).dirichlet(np.ones(np.prod(SIZES))).reshape(SIZES)
    found = np.full(lattice.total, np.nan)
    for view in lattice.views:
        table = joint.sum(axis=tuple(at for at in range(4) if at not in view))
        told = analysed(table.reshape(1, -1), lattice.shape(view))
        assert np.allclose(synthesised(told, lattice.shape(view)), table.ravel())
        places = lattice.indices(view)
        known = np.isfinite(found[places])
        assert np.allclose(found[places][known], told[0][known])
        found[places] = told[0]
    assert np.isfinite(found).all()
    assert lattice.total == 1 + sum(
        np.prod([SIZES[at] - 1 for at in one]) for of in (1, 2, 3) for one in combinations(range(4), of)
    )


@pytest.mark.parametrize("which", range(3))
def test_tables_are_distributions_that_agree(which: int) -> None:
    estimate = protocols(1.0)[which].simulate(KINDS, counts(20_000), 1)
    made = estimate.consistent()
    assert isinstance(made, ConsistentMarginals)
    assert made.gap <= 1e-6
    for attributes in [(0,), (0, 1), (1, 3), (0, 3)]:
        table = made.table(*attributes)
        assert table.shape == tuple(SIZES[at] for at in attributes)
        assert (table >= 0).all()
        assert table.sum() == pytest.approx(1.0)
    assert np.allclose(made.table(0, 1).sum(axis=1), made.table(0), atol=1e-5)
    assert np.allclose(made.table(0, 3).sum(axis=1), made.table(0), atol=1e-5)
    raw = np.sum((estimate.table(1, 3) - truth(1, 3)) ** 2)
    assert np.sum((made.table(1, 3) - truth(1, 3)) ** 2) < raw


def test_they_are_the_nearest_ones() -> None:
    domains = [Domain(range(2))] * 3
    protocol = SampledMarginals(epsilon=1.0, domains=domains, views=[(0, 1), (0, 2), (1, 2)])
    estimate = protocol.simulate(np.array([[0, 0, 0], [1, 1, 0]]), np.array([200, 100]), 4)
    assert any((estimate.table(*view) < 0).any() for view in protocol.views)
    made = estimate.consistent(tolerance=1e-9, rounds=20_000)
    lattice, evidence = estimate.evidence.lattice, estimate.evidence
    weights = np.array(list(evidence.precisions(2).values()))
    assert weights.max() > 1.05 * weights.min()

    def tables(coefficients: Any) -> Any:
        whole = np.append(1.0, coefficients)
        return [synthesised(whole[lattice.indices(view)][None], (2, 2))[0] for view in lattice.views]

    def distance(coefficients: Any) -> float:
        return float(
            sum(
                weight
                * np.sum((np.append(1.0, coefficients) - evidence.coefficients)[lattice.indices(view)] ** 2)
                for weight, view in zip(weights / weights.mean(), lattice.views, strict=True)
            )
        )

    limits: Any = {"type": "ineq", "fun": lambda coefficients: np.concatenate(tables(coefficients))}
    best: Any = minimize(
        distance, np.zeros(lattice.total - 1), constraints=[limits], method="SLSQP", options={"ftol": 1e-14}
    )
    assert best.success
    assert np.allclose(made.coefficients[1:], best.x, atol=1e-5)


def test_how_wide_tables_are_made_to_agree_is_asked_for() -> None:
    protocol = SampledMarginals(epsilon=1.0, domains=[Domain(range(2))] * 6, views=[tuple(range(6))])
    kinds = np.array(list(product(range(2), repeat=6)))
    estimate = protocol.simulate(kinds, np.arange(64) ** 2, 1)
    for width in (1, 2, 6, 9):
        made = estimate.consistent(width=width)
        assert set(map(len, made.lattice.views)) == {min(width, 6)}
        assert made.table(*range(5)).sum() == pytest.approx(1.0)
        assert np.allclose(made.table(1), made.table(1, 4).sum(axis=1), atol=1e-5)
    assert set(map(len, estimate.consistent().lattice.views)) == {3}


def test_tables_within_others_are_left_out() -> None:
    protocol = SampledMarginals(epsilon=1.0, domains=DOMAINS, views=[(0, 1, 2, 3), (0, 1), (2,)])
    estimate = protocol.simulate(KINDS, counts(5000))
    assert sorted(estimate.consistent().lattice.views) == list(combinations(range(4), 3))
    both = SampledMarginals(epsilon=1.0, domains=DOMAINS, views=[(0, 1, 2), (3,)])
    assert sorted(both.simulate(KINDS, counts(5000)).consistent().lattice.views) == [(0, 1, 2), (3,)]


def test_the_nearest_distributions_of_rows() -> None:
    rows = np.array([[0.8, 0.5, -0.2], [0.2, 0.3, 0.5], [-5.0, 2.0, 2.0]])
    assert np.allclose(nearest(rows), [[0.65, 0.35, 0.0], [0.2, 0.3, 0.5], [0.0, 0.5, 0.5]])
    assert nearest(np.array([[1e17, -1e17, 0.0, 1e300]])).tolist() == [[0.0, 0.0, 0.0, 1.0]]


def test_a_wider_table_is_the_most_even_one() -> None:
    rng = np.random.default_rng(3)
    one, two, three = (rng.dirichlet(np.ones(4)).reshape(2, 2) for _ in range(3))
    joint = rng.dirichlet(np.ones(8)).reshape(2, 2, 2)
    pairs = [((0, 1), joint.sum(axis=2)), ((0, 2), joint.sum(axis=1)), ((1, 2), joint.sum(axis=0))]
    found = most_even((2, 2, 2), pairs)
    for axes, table in pairs:
        others = tuple(at for at in range(3) if at not in axes)
        assert np.allclose(found.sum(axis=others), table, atol=1e-6)
    # No interaction of all three: the odds ratio is the same in both halves.
    ratios = found[0, 0] * found[1, 1] / (found[0, 1] * found[1, 0])
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-4)
    # Pairs that no distribution has: found is one, and near to all.
    found = most_even((2, 2, 2), [((0, 1), one), ((0, 2), two), ((1, 2), three)])
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()
    # Each pair alike with the next, but the first unlike the last: halfway, by symmetry.
    alike, unlike = np.eye(2) * 0.45 + 0.025, 0.475 - np.eye(2) * 0.45
    found = most_even((2, 2, 2), [((0, 1), alike), ((1, 2), alike), ((0, 2), unlike)])
    own = [found.sum(axis=2), found.sum(axis=0), found.sum(axis=1)[::-1]]
    assert np.allclose(own[0], own[1], atol=1e-4)
    assert np.allclose(own[0], own[2], atol=1e-4)


def test_pairs_that_leave_no_cell_still_make_a_distribution() -> None:
    same = np.eye(2) / 2
    found = most_even((2, 2, 2), [((0, 1), same), ((1, 2), same), ((0, 2), same[::-1])])
    assert found.sum() == pytest.approx(1.0, abs=1e-9)
    # Six cells are as two of the three pairs want it, and the other two as none does.
    wanted = np.full((2, 2, 2), 1 / 6)
    wanted[0, 1, 0] = wanted[1, 0, 1] = 0.0
    assert np.abs(found - wanted).max() < 0.01


def test_tables_that_were_never_asked() -> None:
    protocol = SampledMarginals(epsilon=4.0, domains=DOMAINS, views=[(0, 1), (1, 3), (0, 3)])
    made = protocol.simulate(KINDS, counts(400_000), 2).consistent()
    for method in ("max-entropy", "least-squares"):
        table = made.table(0, 1, 3, method=method)
        assert table.shape == (2, 3, 5)
        assert (table >= 0).all()
        assert table.sum() == pytest.approx(1.0)
    assert np.allclose(made.table(0, 1, 3).sum(axis=2), made.table(0, 1), atol=1e-3)
    # Nobody was asked of attribute 2: it is even, and independent of all.
    assert np.allclose(made.table(1, 2), made.table(1)[:, None] / 2)
    assert np.allclose(made.table(2), 0.5)


def test_parameters_that_break_a_rule() -> None:
    estimate = protocols(1.0)[0].simulate(KINDS, counts(1000))
    for change in ({"tolerance": 0.0}, {"rounds": 0}, {"width": 0}):
        wrong: Any = change
        with pytest.raises(ParameterError):
            estimate.consistent(**wrong)
    made = estimate.consistent(rounds=1)
    assert made.gap > 1e-6
    method: Any = "best"
    with pytest.raises(ParameterError, match="method must"):
        made.table(0, method=method)
    with pytest.raises(ParameterError, match="attributes must"):
        made.table(7)
    with pytest.raises(ParameterError, match="views must"):
        Lattice((2,) * 30, (tuple(range(22)),))
