from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import PlanarLaplace, Projection

EPSILON = math.log(4) / 200


def test_published_quantiles_and_the_default_of_the_paper() -> None:
    report = PlanarLaplace.from_level()
    assert report.epsilon == EPSILON
    assert abs(report.radius(0.95) * report.epsilon - 4.744) < 5e-4
    assert 2.0 < report.mean_error * EPSILON < 2.02
    assert report.guarantee.level(200) == pytest.approx(math.log(4), abs=1e-9)
    assert 0 < report.guarantee.slack < 1e-9


def test_drawn_distances_are_those_of_the_law() -> None:
    report = PlanarLaplace(epsilon=EPSILON)
    drawn = report.release(np.full((100_000, 2), 12.3), rng=4) - 12.3
    distances = np.hypot(*drawn.T)
    # Standard error of the mean: 204 / sqrt(1e5) = .65 m; six of them, and half a step for the rounding.
    assert abs(distances.mean() - report.mean_error) < 6 * 0.65 + 1
    assert abs(np.quantile(distances, 0.95) * EPSILON - 4.77) < 0.06
    assert abs(drawn.mean(axis=0)).max() < 6 * 250 / math.sqrt(1e5)


def test_reports_are_points_of_one_lattice_and_far_positions_are_moved_back() -> None:
    report = PlanarLaplace(epsilon=1.0)
    given = np.array([[1e300, 0.0], [3.7, -9.2], [-1e12, 5e5]])
    steps = report.release(given, rng=1) / report.step
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    assert np.abs(steps).max() < 2**21 + 1000
    assert report.extent == pytest.approx(2**21 * report.step)


def test_a_region_clamps_and_keeps_the_guarantee() -> None:
    report = PlanarLaplace(epsilon=0.01, region=(0.0, -50.0, 100.0, 50.0))
    drawn = report.release(np.zeros((500, 2)), rng=2)
    assert drawn[:, 0].min() == 0
    assert drawn[:, 0].max() == 100
    assert drawn[:, 1].min() == -50
    assert drawn[:, 1].max() == 50
    assert report.guarantee == PlanarLaplace(epsilon=0.01).guarantee


def test_degrees_pay_for_the_projection() -> None:
    disc = Projection(latitude=60, longitude=180, radius=500_000)
    report = PlanarLaplace(epsilon=0.001, projection=disc)
    assert report.plane_epsilon * disc.stretch <= 0.001
    assert report.guarantee.metric == "geodesic"
    latitude, longitude = report.release_degrees(np.full(300, 60.0), np.full(300, 179.99), rng=3)
    assert abs(latitude - 60).max() < 0.3
    assert (longitude > 179).any()
    assert (longitude < -179).any()
    with pytest.raises(ParameterError, match="projection must be given for degrees"):
        PlanarLaplace(epsilon=1.0).release_degrees([0], [0])


def test_bad_parameters_and_positions() -> None:
    for given in (
        {"epsilon": 0},
        {"epsilon": 1e4},
        {"epsilon": 1, "region": (0, 0, 0, 1)},
        {"epsilon": 1, "region": (0, 1)},
    ):
        with pytest.raises(ParameterError):
            PlanarLaplace(**given)
    with pytest.raises(
        ParameterError, match="points must be finite, but a coordinate is missing or infinite"
    ):
        PlanarLaplace(epsilon=1.0).release([[0.0, math.nan]])
    with pytest.raises(ParameterError, match="points must have two columns"):
        PlanarLaplace(epsilon=1.0).release([0.0, 1.0])
    with pytest.raises(ParameterError, match="probability must be"):
        PlanarLaplace(epsilon=1.0).radius(1)
