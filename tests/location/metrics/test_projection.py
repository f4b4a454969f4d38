from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import Projection

_A, _F = 6378137.0, 1 / 298.257223563


def _chords(
    latitude: np.typing.NDArray[np.float64], longitude: np.typing.NDArray[np.float64]
) -> np.typing.NDArray[np.float64]:
    """Chords through the ellipsoid, which are no longer than geodesics."""
    phi, turn = np.radians(latitude), np.radians(longitude)
    e2 = _F * (2 - _F)
    n = _A / np.sqrt(1 - e2 * np.sin(phi) ** 2)
    at = np.stack(
        [n * np.cos(phi) * np.cos(turn), n * np.cos(phi) * np.sin(turn), n * (1 - e2) * np.sin(phi)], axis=1
    )
    found: np.typing.NDArray[np.float64] = np.sqrt(((at[:, None] - at[None]) ** 2).sum(axis=2))
    return found


@pytest.mark.parametrize(
    "centre", [(0.0, 0.0), (90.0, 0.0), (-90.0, 20.0), (48.9, 2.35), (-17.0, 180.0), (60.0, -179.9)]
)
@pytest.mark.sharpest("centre1", "centre4")
def test_no_pair_is_further_apart_than_the_stretch_says(centre: tuple[float, float]) -> None:
    disc = Projection(latitude=centre[0], longitude=centre[1], radius=200_000)
    rng = np.random.default_rng(0)
    radius, turn = 200_000 * np.sqrt(rng.uniform(size=150)), rng.uniform(0, 2 * math.pi, 150)
    points = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    latitude, longitude = disc.to_degrees(points)
    assert abs(latitude).max() <= 90
    assert abs(longitude).max() <= 180
    np.testing.assert_allclose(disc.to_plane(latitude, longitude), points, atol=disc.error / 2)
    plane = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    chords = _chords(latitude, longitude)
    apart = chords > 0
    # A geodesic is at least its chord: what holds for chords holds for it. At 400 km a chord is 1.6e-4
    # shorter.
    assert (plane[apart] <= disc.stretch * chords[apart] * 1.0002).all()
    assert (plane[apart] >= 0.98 * chords[apart]).all()


def test_positions_outside_are_moved_to_the_border() -> None:
    disc = Projection(latitude=10, longitude=20, radius=1000)
    points = disc.to_plane([10, 11, 10.0], [20, 20, 19])
    np.testing.assert_allclose(np.hypot(*points.T), [0, 1000, 1000], atol=1e-6)
    far = disc.to_plane([10.0, 50.0], [25.0, 60.0])
    np.testing.assert_allclose(np.hypot(*far.T), 1000, atol=1e-6)


def test_longitudes_count_both_ways() -> None:
    disc = Projection(latitude=0, longitude=-170, radius=300_000)
    np.testing.assert_allclose(disc.to_plane([1.0], [190.5]), disc.to_plane([1.0], [-169.5]), atol=1e-7)


def test_the_stretch_is_of_twice_the_radius() -> None:
    assert Projection(latitude=0, longitude=0, radius=50_000).stretch - 1 == pytest.approx(
        (100_000 / 6335439) ** 2 / 6, rel=1e-3
    )


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="radius must be at most"):
        Projection(latitude=0, longitude=0, radius=5e6)
    for latitude, longitude in ((91.0, 0.0), (0.0, 361.0), (math.nan, 0.0)):
        with pytest.raises(ParameterError, match="must be"):
            Projection(latitude=latitude, longitude=longitude, radius=1e3)
        with pytest.raises(ParameterError, match="but a coordinate is missing or out of range; pass degrees"):
            Projection(latitude=0, longitude=0, radius=1e3).to_plane([latitude], [longitude])
    with pytest.raises(ParameterError, match="longitude must have the shape"):
        Projection(latitude=0, longitude=0, radius=1e3).to_plane([0.0], [0.0, 1.0])
    with pytest.raises(ParameterError, match="latitude must be numbers"):
        Projection(latitude=0, longitude=0, radius=1e3).to_plane(["north"], [0.0])


def test_a_coordinate_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(ParameterError, match="latitude must be numbers"):
        Projection(latitude=0, longitude=0, radius=1000).to_plane([10**400], [0])
