"""Sums and products of likelihood ratios in cells, against all pairs of values and former intervals."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.numerics.interval import Interval
from sfumato.privacy import Gaussian, Laplace, PrivacyLoss, PureDP, RandomAllocation
from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.sampling.likelihood_ratios import _Counter
from tests.cases import cases

# Standard deviations and means of the logarithm: of lists near 1, on one side of it, and far from it.
LISTS = {
    "near": (0.003, 0.0),
    "wide": (0.4, 0.0),
    "very wide": (9.0, 0.0),
    "above": (0.05, 3.0),
    "below": (0.05, -3.0),
    "close": (1e-9, 0.0),
}


@cases("product", [False, True])
@cases("same", [False, True])
@cases("name", LISTS)
def test_each_pair_is_counted_in_its_cell(name: str, same: bool, product: bool) -> None:
    deviation, place = LISTS[name]
    rng = np.random.default_rng(7)
    lists = [np.exp(np.sort(rng.normal(place, deviation, size))) for size in (150, 130)]
    masses = [rng.dirichlet(np.ones(len(values))) for values in lists]
    (a, b), (p, q) = ((lists[0],) * 2, (masses[0],) * 2) if same else (lists, masses)
    a, b = (a, b) if product else (0.5 * a, 0.5 * b)
    value = (np.multiply if product else np.add).outer(a, b).ravel()
    mass = np.multiply.outer(p, q).ravel()
    counter = _Counter(float(value.min()), float(value.max()), deviation)
    counter.pairs((a, p), (b, q), product=product, same=same)
    cells = counter.cells()
    assert (cells.left[0], cells.right[-1]) == (value.min(), value.max())
    assert (cells.left[1:] == cells.right[:-1]).all()
    cell = np.clip(np.searchsorted(cells.left, value, "right") - 1, 0, len(cells.left) - 1)
    for counted, all_of_it in ((cells.mass, mass), (cells.moment, value * mass)):
        expected = np.bincount(cell, all_of_it, len(cells.left))
        np.testing.assert_allclose(counted, expected, rtol=cells.mass_error, atol=0)
    assert cells.mass_error < 3e4 * UNIT


def test_values_with_their_masses_are_counted_as_they_are() -> None:
    values, mass = np.array([0.25, 0.5, 1.0, 1.0, 3.0]), np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    counter = _Counter(0.25, 3.0, 0.5)
    counter.add(values, mass)
    cells = counter.cells()
    found = cells.of(cells.mass > 0)
    assert found.mass.tolist() == [0.1, 0.2, 0.6, 0.1]
    assert (found.moment / found.mass).tolist() == pytest.approx([0.25, 0.5, 1.0, 3.0], rel=1e-15)


@cases("ends", [(0.0, 1.0), (1.0, float("inf")), (2.0, 1.0)])
def test_a_counter_refuses_values_without_a_cell(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        _Counter(*ends, 0.1)


# Proven when cells were found by logarithms, in NumPy: the same now, and nothing larger.
BEFORE: dict[str, tuple[PrivacyLoss, Interval]] = {
    "few steps": (RandomAllocation(Gaussian(5.0), 30), Interval(0.1148177684013855, 0.11485584141817837)),
    "bounded": (RandomAllocation(Laplace(1.0), 50), Interval(0.5249187649572067, 0.5251076016821924)),
    "pure": (RandomAllocation(PureDP(1.0), 40), Interval(0.7165335498851992, 0.7165335500967599)),
}


@cases("name", BEFORE)
def test_upper_ends_are_no_larger_than_the_former_ones(name: str) -> None:
    loss, before = BEFORE[name]
    found = loss.epsilon_interval(1e-5)
    assert before.lower * (1 - 1e-4) <= found.lower <= found.upper <= before.upper * (1 + 1e-12)
