"""Sums and products of likelihood ratios in cells, against all pairs of values and former intervals."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.numerics.interval import Interval
from sfumato.privacy import Gaussian, Laplace, PrivacyLoss, RandomAllocation
from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.sampling.likelihood_ratios import _Counter
from tests.cases import cases

# Standard deviations of the logarithm; of lists that lie near 1, on one side of it, and far from it.
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
    assert (cells.left <= cells.right).all()
    assert (cells.left[1:] == cells.right[:-1]).all()
    order = np.argsort(value)
    value = value[order]
    for counted, all_of_it in ((cells.mass, mass[order]), (cells.moment, value * mass[order])):
        sums, found = np.append(0.0, np.cumsum(all_of_it)), np.cumsum(counted)
        room = 1e-12 * sums[-1]
        off = cells.location_error
        assert (sums[np.searchsorted(value, cells.right * (1 - off))] <= found + room).all()
        assert (found <= sums[np.searchsorted(value, cells.right * (1 + off), "right")] + room).all()
    assert cells.mass_error < 1e5 * UNIT


@cases("ends", [(0.0, 1.0), (1.0, float("inf")), (2.0, 1.0)])
def test_a_counter_refuses_values_without_a_cell(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        _Counter(*ends, 0.1)


# Proven when cells were found by logarithms: the same or less now.
BEFORE: dict[str, tuple[PrivacyLoss, Interval]] = {
    "many steps": (
        RandomAllocation(Gaussian(1.0), 10_000),
        Interval(0.037236915945267735, 0.03726764803678937),
    ),
    "few steps": (RandomAllocation(Gaussian(5.0), 30), Interval(0.1148177684013855, 0.11485584141817837)),
    "bounded": (RandomAllocation(Laplace(1.0), 50), Interval(0.5249187649572067, 0.5251076016821924)),
}


@cases("name", BEFORE)
def test_intervals_lie_within_the_former_ones(name: str) -> None:
    loss, before = BEFORE[name]
    found = loss.epsilon_interval(1e-5)
    assert before.lower <= found.lower <= found.upper <= before.upper
