"""Intervals of sums and ratios of cells: coverage over all noise of a lattice, and given a threshold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from sfumato.numerics.randomness.source import random_source
from sfumato.queries.outer.cell_intervals import cell_ends
from sfumato.queries.outer.noise_forms import ColumnNoise
from sfumato.queries.outer.noisy_cells import CellMeasure
from sfumato.queries.pricing.calibration import NoiseDistribution
from sfumato.queries.release.noise import add_noise
from sfumato.queries.release.record import NoisyMeasure, ReleaseRecord
from tests.queries.release.noise_lattice import lattice
from tests.queries.release.noised_group import priced_query

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def record(options: str) -> ReleaseRecord:
    """The record of a count by group, without rows."""
    priced = priced_query("g, COUNT(*) AS n", options, grouped=True)
    nothing = pa.table({"k0": pa.array([], pa.string()), "m0": pa.array([], pa.int64())})
    return add_noise(priced, nothing, random_source(0), privacy_unit="id")


def measure(noisy: Integers, scale: float) -> CellMeasure:
    """Cells with Laplace noise, of groups that are public."""
    described = NoisyMeasure(NoiseDistribution.LAPLACE, Fraction(scale), 0, 0, 1, 0)
    public = record("epsilon=1, delta=1e-3, max_groups_contributed=1")
    return CellMeasure(public, described, noisy.ravel(), thresholded=False)


def ends(
    noisy: Integers, shown: NDArray[np.bool_], weights: list[list[tuple[float, float]]], cells: CellMeasure
) -> tuple[Floats, Floats]:
    """The ends of each row's ratio: rows of cells, each with its weights above and below."""
    many, wide = noisy.shape
    numbers = np.arange(noisy.size).reshape(noisy.shape)
    sums = [(noisy * shown) @ np.array([each[side] for each in weights[0]]) for side in (0, 1)]
    table = {"a": pa.array(sums[0], pa.float64()), "b": pa.array(sums[1], pa.float64())}
    for place in range(wide):
        lists = [[int(n)] if s else [] for n, s in zip(numbers[:, place], shown[:, place], strict=True)]
        table[f"c{place}"] = pa.array(lists, pa.list_(pa.int64()))
    ratio = ("a", "b") if any(each[1] for each in weights[0]) else None
    noise = ColumnNoise(tuple(weights[0]), tuple(f"c{place}" for place in range(wide)), ratio)
    low, high = cell_ends(noise, "a", pa.table(table), [cells], 0.9)
    assert len(low) == many
    return low.to_numpy(), high.to_numpy()


@pytest.mark.parametrize(
    "weights", [[(1.0, 0.0), (1.0, 0.0)], [(2.0, 0.0), (-1.0, 0.0)], [(1.0, 1.0), (0.0, 1.0)]]
)
def test_coverage_over_all_noise_of_a_lattice(weights: list[tuple[float, float]]) -> None:
    exact, scale = np.array([30, 12]), 1.5
    cells = measure(np.zeros((0, 2), np.int64), scale)
    values, masses = lattice(cells.measure.noise, cells.measure.noise)
    noisy = exact + np.stack(values, axis=1).astype(np.int64)
    shown = np.ones(noisy.shape, dtype=bool)
    low, high = ends(noisy, shown, [weights], measure(noisy, scale))
    above, below = (exact @ np.array([each[side] for each in weights]) for side in (0, 1))
    true = above / below if any(each[1] for each in weights) else above
    inside = (low < true) & (true < high) if below == 0 else (low <= true) & (true <= high)
    assert 0.9 <= masses[inside].sum() <= 0.94


def test_one_cell_in_two_lists_has_its_noise_once() -> None:
    noisy = np.array([[40], [50]])
    cells = measure(noisy, 2)
    lists = pa.array([[0], [1]], pa.list_(pa.int64()))
    table = pa.table({"d": [0.0, 0.0], "e": [80.0, 100.0], "c": lists, "x": lists})
    apart = ColumnNoise(((1.0, 0.0), (-1.0, 0.0)), ("c", "x"))
    low, high = cell_ends(apart, "d", table, [cells], 0.95)
    assert low.to_pylist() == high.to_pylist() == [None, None]  # no noise is left, and no test of it
    low, high = cell_ends(ColumnNoise(((1.0, 0.0), (1.0, 0.0)), ("c", "x")), "e", table, [cells], 0.95)
    half = cells.measure.noise.half_width(0.95)[0]
    width = high.to_numpy() - low.to_numpy()  # what is strictly between the ends goes by steps of two
    assert ((4 * half < width) & (width <= 4 * (half + 1))).all()


def test_a_share_of_many_cells_is_as_wide_as_its_distribution() -> None:
    rng, scale, many = np.random.default_rng(4), 5.0, 4000
    exact = np.array([300] + [20] * 30)
    p = 1 - math.exp(-1 / scale)
    noisy = exact + rng.geometric(p, (many, 31)) - rng.geometric(p, (many, 31))
    weights = [(1.0, 1.0)] + [(0.0, 1.0)] * 30
    low, high = ends(noisy, np.ones(noisy.shape, dtype=bool), [weights], measure(noisy, scale))
    true = 300 / 900
    held = ((low <= true) & (true <= high)).mean()
    assert abs(held - 0.9) < 4 * math.sqrt(0.9 * 0.1 / many) + 0.01
    central = np.diff(np.quantile(noisy[:, 0] / noisy.sum(axis=1), (0.05, 0.95)))[0]
    assert np.median(high - low) <= 1.1 * central


def test_a_sum_of_shown_counts_is_covered_given_that_they_are_shown() -> None:
    found = record("epsilon=1, delta=1e-3, max_groups_contributed=1")
    assert found.threshold is not None
    edge, many = found.threshold.units, 4000
    exact = np.array([edge - 1, edge - 1, edge - 1, edge + 40])
    noise = np.asarray(found.measures[0].noise.sample(many * 4, random_source(3)), np.int64).reshape(many, 4)
    noisy = exact + noise
    shown = noisy > edge
    some = shown.sum(axis=1) >= 3
    noisy, shown = noisy[some], shown[some]
    assert len(noisy) > 60
    true = shown @ exact
    weights = [[(1.0, 0.0)] * 4]

    def covered(*, thresholded: bool) -> float:
        cells = CellMeasure(found, found.measures[0], noisy.ravel(), thresholded)
        low, high = ends(noisy, shown, weights, cells)
        return float(((low < true) & (true < high)).mean())

    assert covered(thresholded=True) >= 0.9
    assert covered(thresholded=False) < 0.5  # noise that only large numbers are shown of is not central
