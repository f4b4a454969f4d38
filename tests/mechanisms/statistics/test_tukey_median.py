"""The Tukey median: its depths against half-planes one by one, its exact distribution against its loss."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import TukeyMedian
from sfumato.mechanisms.statistics.tukey_median import tukey_depths
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

BOUNDS = ((0.0, 2.0), (0.0, 2.0))


def depth(points: np.ndarray, at: tuple[int, int]) -> int:
    """The least number of points in a closed half-plane, over so many angles that none is left out."""
    angles = (np.arange(4000) + 0.5) * (math.pi / 2000)
    across = (points - at) @ np.stack([np.cos(angles), np.sin(angles)])
    return int((across >= -1e-9).sum(axis=0).min(initial=len(points)))


@cases("side", [2, 3, 5, 7])
def test_depths_are_those_of_half_planes(side: int) -> None:
    rng = np.random.default_rng(side)
    for mean in (0.2, 1.0, 5.0):
        counts = rng.poisson(mean, (side, side))
        points = np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0)
        found = tukey_depths(counts)
        for at in itertools.product(range(side), range(side)):
            assert found[at] == depth(points, at)


def chances(mechanism: TukeyMedian, data: np.ndarray) -> np.ndarray:
    rate = float(mechanism.epsilon) / (1 if mechanism.neighboring is Neighboring.ADD_REMOVE else 2)
    weights = np.exp(rate * mechanism.depths(data).ravel())
    return np.asarray(weights / weights.sum())


@cases("neighboring", list(Neighboring))
def test_the_loss_covers_the_exact_distribution(neighboring: Any) -> None:
    mechanism = TukeyMedian(bounds=BOUNDS, epsilon=1.5, points=3, neighboring=neighboring)
    claimed, rng, worst, spans = mechanism.privacy_loss.epsilon(0.0), np.random.default_rng(1), 0.0, 0.0
    assert claimed == 1.5
    for _ in range(150):
        data = rng.integers(0, 3, (int(rng.integers(1, 9)), 2)).astype(float)
        other = data.copy()
        other[0] = rng.integers(0, 3, 2)
        if neighboring is Neighboring.ADD_REMOVE:
            other = data[1:]
        elif neighboring is Neighboring.ZERO_OUT:
            other[0] = 0.0
        losses = np.log(chances(mechanism, data) / chances(mechanism, other))
        worst, spans = max(worst, float(np.abs(losses).max())), max(spans, float(np.ptp(losses)))
    assert 0.4 * claimed < worst <= claimed
    # Of bounded range, as the loss says.
    assert 0.9 * claimed < spans <= claimed * (1 + 1e-9)


def test_draws_have_the_distribution() -> None:
    mechanism = TukeyMedian(bounds=BOUNDS, epsilon=1.0, points=3)
    data = np.array([[1.0, 1.0], [1.2, 0.8], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0], [0.0, 0.0]])
    seen = Counter(tuple(point) for point in mechanism.outputs(data, 20_000, 4).tolist())

    def distribution(one: TukeyMedian) -> dict[Any, float]:
        grid = itertools.product((0.0, 1.0, 2.0), repeat=2)
        return dict(zip(grid, chances(one, data).tolist(), strict=True))

    half = TukeyMedian(bounds=BOUNDS, epsilon=0.5, points=3)
    accepts_only(frequencies(seen), distribution(mechanism), half=distribution(half))


def test_records_in_bad_faith_do_not_lead_it_away() -> None:
    rng = np.random.default_rng(3)
    data = np.concatenate([rng.normal(0.5, 0.1, (1000, 2)), np.full((250, 2), 2.0)])
    mechanism = TukeyMedian(bounds=BOUNDS, epsilon=1.0, points=41)
    found = mechanism.outputs(data, 50, 5)
    assert np.abs(found - 0.5).max() < 0.2
    assert data.mean() > 0.75
    depths = mechanism.depths(data)
    at = np.rint(found / 2 * 40).astype(int)
    short = depths.max() - depths[at[:, 0], at[:, 1]]
    assert (short <= mechanism.utility_bound(0.01)).all()


def test_odd_data_is_answered() -> None:
    mechanism = TukeyMedian(bounds=BOUNDS, epsilon=1.0, points=4)
    odd = (np.zeros((0, 2)), np.full((3, 2), np.nan), np.array([[np.inf, -np.inf]]))
    for data in odd:
        assert (mechanism.release(data).value >= 0).all()


@cases(
    ("given", "message"),
    [
        ({"bounds": (0.0, 1.0)}, "bounds must"),
        ({"bounds": (BOUNDS[0],)}, "bounds must be a pair"),
        ({"bounds": (BOUNDS[0], (1.0, 1.0))}, "bounds must"),
        ({"epsilon": 0}, "epsilon must"),
        ({"points": 1}, "points must"),
        ({"points": 65}, "points must be at most 64"),
        ({"neighboring": "add"}, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"bounds": BOUNDS, "epsilon": 1.0}
    with pytest.raises(ParameterError, match=message):
        TukeyMedian(**(usual | given))
    with pytest.raises(ParameterError, match="data must"):
        TukeyMedian(bounds=BOUNDS, epsilon=1.0).release(np.zeros(3))
