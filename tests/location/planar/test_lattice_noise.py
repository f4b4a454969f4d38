"""The law of the noise: enumerated against its theorem, and against what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.location.planar import lattice_noise
from sfumato.location.planar.lattice_noise import (
    RATE,
    SLOPE,
    draw,
    largest_slope,
    probabilities,
    round_to_lattice,
)
from sfumato.numerics import random_source


def test_the_stated_slope_is_the_largest_and_hardly_more() -> None:
    assert RATE < largest_slope() <= SLOPE < largest_slope() * 1.0001
    # Beyond the tables there are discrete Laplace variables of scale 24 only.
    assert np.sqrt(2) * np.sinh(1 / 24) < SLOPE


def test_probabilities_add_up_and_are_everywhere() -> None:
    quadrant = probabilities(1500)
    signs = np.where(np.arange(1501) > 0, 2, 1)
    assert abs((quadrant * np.outer(signs, signs)).sum() - 1) < 1e-13
    assert quadrant.min() > 0


def test_the_tables_are_the_planar_laplace_law() -> None:
    quadrant = probabilities(160)
    far = np.sqrt(np.add.outer(np.arange(161.0) ** 2, np.arange(161.0) ** 2) + 1)
    near = far < 150
    ratio = quadrant[near] / np.exp(-RATE * far[near])
    assert abs(ratio / ratio[0] - 1).max() < 1e-4


def _spline(t: NDArray[Any]) -> NDArray[Any]:
    t = np.abs(t)
    return np.where(t <= 0.5, 0.75 - t * t, np.where(t < 1.5, (1.5 - t) ** 2 / 2, 0.0))


def test_all_pairs_of_positions_and_all_reports_keep_the_guarantee() -> None:
    reach = 40
    p = np.pad(probabilities(reach), ((reach, 0), (reach, 0)), mode="reflect")
    rng = np.random.default_rng(5)
    positions = np.concatenate([rng.uniform(-1.5, 1.5, (40, 2)), rng.integers(-2, 3, (12, 2)) / 2])
    logs = []
    for x in positions:
        f = np.zeros((2 * reach - 3, 2 * reach - 3))
        for i in range(-2, 3):
            for j in range(-2, 3):
                weight = float(_spline(np.array(x[0] - i)) * _spline(np.array(x[1] - j)))
                f += weight * p[2 - i : p.shape[0] - 2 - i, 2 - j : p.shape[1] - 2 - j]
        logs.append(np.log(f))
    worst = 0.0
    for i, x in enumerate(positions):
        for j, y in enumerate(positions[:i]):
            distance = float(np.hypot(*(x - y)))
            if distance > 0:
                worst = max(worst, float(np.abs(logs[i] - logs[j]).max()) / distance)
    assert 0.95 * SLOPE < worst <= SLOPE


def test_what_is_drawn_is_the_stated_law() -> None:
    # At half a step: the B-spline gives 1/2 to each neighbour in the first coordinate, 1/8, 3/4, 1/8 in the
    # other.
    reach, count = 12, 1_000_000
    p = np.pad(probabilities(reach + 2), ((reach + 2, 0), (reach + 2, 0)), mode="reflect")
    half = (p[2:-2] + p[1:-3]) / 2
    law = (half[:, 3:-1] + 6 * half[:, 2:-2] + half[:, 1:-3]) / 8
    wrong = p[2:-2, 2:-2]
    positions = np.full(count, 1 << 30), np.zeros(count, np.int64)
    first, second = draw(*positions, random_source(11))
    inside = (np.abs(first) <= reach) & (np.abs(second) <= reach)
    at = (first[inside] + reach) * (2 * reach + 1) + second[inside] + reach
    counts = np.bincount(at, minlength=(2 * reach + 1) ** 2).reshape(2 * reach + 1, -1)
    counts_all = np.append(counts.ravel(), count - inside.sum())

    def whole(table: NDArray[Any]) -> NDArray[Any]:
        return np.append(table.ravel(), 1 - table.sum())

    assert law.shape == wrong.shape
    _accepts(counts_all, whole(law), whole(wrong))


def _accepts(counts: NDArray[Any], right: NDArray[Any], wrong: NDArray[Any]) -> None:
    def distance(law: NDArray[Any]) -> float:
        expected = law * counts.sum()
        return float(((counts - expected) ** 2 / expected).sum())

    freedom = counts.size - 1
    # Laurent and Massart 2000: beyond this with probability below 1e-9, plus 10 % for cells that are not
    # normal.
    limit = freedom + 2 * np.sqrt(freedom * 21) + 2 * 21
    assert distance(right) < 1.1 * limit < distance(wrong)


class _AllOnes:
    simulated = True

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, 2**64 - 1, np.uint64)

    def bytes(self, count: int) -> bytes:
        return b"\xff" * count


def test_the_last_words_of_all_tables_lead_to_discrete_laplace_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def discrete_laplace(scale: int, size: int, source: object) -> NDArray[np.int64]:
        asked.append((scale, size))
        return np.full(size, -700, np.int64)

    monkeypatch.setattr(lattice_noise, "discrete_laplace", discrete_laplace)
    first, second = lattice_noise._further(2, _AllOnes())
    assert asked == [(24, 2), (24, 2)]
    assert first.tolist() == second.tolist() == [700, 700]


def test_far_draws_come_from_the_further_tables() -> None:
    first, second = lattice_noise._further(4000, random_source(3))
    radius = np.hypot(first, second)
    # One in 47,000 comes from the discrete Laplace variables, and may be anywhere.
    assert (radius > 160).mean() > 0.98
    assert (radius < 320).mean() > 0.99


def test_a_position_moves_for_exactly_so_many_uniform_integers() -> None:
    half, top = 1 << 30, (1 << 63) - 1
    for offset in (0, 5, -7, half - 1, 1 - half):
        down, up = (half - offset) ** 2, (half + offset) ** 2
        uniform = np.array([0, down - 1, down, top - up, top - up + 1, top], np.int64)
        assert round_to_lattice(np.full(6, offset), uniform).tolist() == [-1, -1, 0, 0, 1, 1]
