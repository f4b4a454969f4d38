from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import PlanarLaplace, PredictiveMechanism, Projection

NOISE = PlanarLaplace(epsilon=0.01)


def _walk(**given: Any) -> PredictiveMechanism:
    parameters: dict[str, Any] = {
        "noise": NOISE,
        "test_epsilon": 0.01,
        "threshold": 2000.0,
        "max_positions": 30,
        "max_draws": 4,
    }
    return PredictiveMechanism(**(parameters | given))


def test_the_budget_of_a_trace_is_fixed_in_advance() -> None:
    walk = _walk()
    assert walk.guarantee.epsilon == pytest.approx(4 * 0.01 + 29 * 0.01)
    assert walk.guarantee.reports == 33
    assert 0 < walk.guarantee.slack < 1e-7
    assert _walk(max_positions=1).guarantee.epsilon == 0.01
    assert _walk(max_positions=2, max_draws=9).guarantee.epsilon == pytest.approx(0.03)


def test_a_device_at_rest_repeats_itself_and_one_far_away_does_not() -> None:
    # The test's noise has a standard deviation of about 140 m, the point's is 245 m.
    still = _walk().release(np.zeros((30, 2)), rng=1)
    assert len(np.unique(still, axis=0)) == 1
    jumps = np.stack([np.arange(30) * 1e4, np.zeros(30)], axis=1)
    reports = _walk(max_draws=30).release(jumps, rng=1)
    assert len(np.unique(reports, axis=0)) == 30
    assert abs(reports - jumps).max() < 4000


def test_after_the_last_draw_nothing_is_looked_at() -> None:
    jumps = np.stack([np.arange(30) * 1e4, np.zeros(30)], axis=1)
    reports = _walk(max_draws=4).release(jumps, rng=1)
    assert len(np.unique(reports, axis=0)) == 4
    assert (reports[4:] == reports[3]).all()


def test_the_noisy_test_has_its_slope() -> None:
    # The law of the noisy distance, in steps: the B-spline and discrete Laplace noise of scale 16.
    axis = np.arange(-300, 301)
    noise = np.exp(-np.abs(axis) / 16)

    def law(position: float) -> Any:
        nearest = round(position)
        t = position - nearest
        down, up = (0.5 - t) ** 2 / 2, (0.5 + t) ** 2 / 2
        return np.log(
            down * np.roll(noise, nearest - 1)
            + (1 - down - up) * np.roll(noise, nearest)
            + up * np.roll(noise, nearest + 1)
        )[50:-50]

    positions = np.linspace(0, 4, 81)
    logs = [law(position) for position in positions]
    worst = max(
        float(np.abs(a - b).max()) / (x - y)
        for i, (a, x) in enumerate(zip(logs, positions, strict=True))
        for b, y in zip(logs[:i], positions[:i], strict=True)
    )
    assert 0.99 * math.sinh(1 / 16) < worst <= math.sinh(1 / 16)


def test_near_is_decided_at_the_threshold() -> None:
    walk = _walk(
        threshold=1000.0, max_positions=2, max_draws=2, test_epsilon=0.1, noise=PlanarLaplace(epsilon=100.0)
    )
    far = [len(np.unique(walk.release(np.array([[0, 0], [d, 0]]), rng=3), axis=0)) for d in (700.0, 1300.0)]
    assert far == [1, 2]


def test_what_is_refused() -> None:
    for given, words in (
        ({"noise": 1}, "noise must be a PlanarLaplace"),
        (
            {"noise": PlanarLaplace(epsilon=1.0, projection=Projection(latitude=0, longitude=0, radius=1))},
            "no projection",
        ),
        ({"test_epsilon": 0}, "test_epsilon must be positive"),
        ({"threshold": math.nan}, "threshold must be a finite"),
        ({"max_positions": 0}, "max_positions must be"),
        ({"max_draws": 0}, "max_draws must be"),
    ):
        with pytest.raises(ParameterError, match=words):
            _walk(**given)
    with pytest.raises(ParameterError, match="at most 30 positions"):
        _walk().release(np.zeros((31, 2)))
