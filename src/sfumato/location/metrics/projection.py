"""One fixed projection of a region to a plane, whose distortion is part of the price.

The projection is azimuthal and equidistant, around a centre that is public and chosen before any position is
seen; a plane at the true position would itself show the position. It holds at the poles and across the
antimeridian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.location.metrics.coordinates import as_degrees, as_points

__all__ = ["Projection"]

_SPHERE = 6335439.0
"""At most the smallest radius of curvature of WGS 84, a (1 - e^2) = 6335439.327 m."""
_RADIUS_LIMIT = 4_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A disc on the ellipsoid WGS 84 as a disc in the plane, by the azimuthal equidistant projection.

    Parameters
    ----------
    latitude, longitude : float
        Centre, in degrees; public.
    radius : float
        Of the region that is protected, in metres, at most 4,000 km. Positions outside are moved to its
        border.

    Raises
    ------
    ParameterError
        If a number is out of range.

    Notes
    -----
    Guarantee: for positions x and y of the disc, ``|plane(x) - plane(y)| <= stretch d(x, y)``, d the
    geodesic distance. Degrees are taken for those of a sphere of radius 6,335,439 m, which is no longer
    than any radius of curvature of the ellipsoid, so that no curve gets longer. A shortest path between two
    points of the disc stays within twice the radius of the centre. There the azimuthal projection stretches
    by c / sin c at most, at angle c. A mechanism with epsilon / stretch in the plane has epsilon for
    geodesic distances within the disc.

    Examples
    --------
    >>> paris = Projection(latitude=48.8566, longitude=2.3522, radius=50_000)
    >>> paris.stretch < 1.00005
    True
    >>> fiji = Projection(latitude=-17, longitude=180, radius=100_000)
    >>> east, west = fiji.to_plane([-17, -17], [179.9, -179.9])
    >>> bool(abs(east - west)[0] < 22_000)
    True
    """

    latitude: float
    longitude: float
    radius: float

    def __post_init__(self) -> None:
        as_degrees(
            [_check.finite("latitude", self.latitude, "pass degrees")],
            [_check.finite("longitude", self.longitude, "pass degrees")],
        )
        if _check.positive("radius", self.radius, "pass metres") > _RADIUS_LIMIT:
            rule, remedy = "be at most 4,000,000 m", "use a metric on places, such as PlaceMetric.geodesic"
            _check.refuse("radius", rule, self.radius, remedy)

    @property
    def stretch(self) -> float:
        """Largest factor by which a geodesic distance within the region grows in the plane, rounded up."""
        angle = 2 * self.radius / _SPHERE
        return angle / math.sin(angle) * (1 + 1e-12)

    @property
    def error(self) -> float:
        """What rounding in floating point moves a point by, at most, in metres."""
        return 1e-7

    def to_plane(self, latitude: ArrayLike, longitude: ArrayLike) -> NDArray[np.float64]:
        """Return positions in the plane, in metres; those outside of the region on its border.

        Parameters
        ----------
        latitude, longitude : array_like of shape (n,)
            Degrees.

        Returns
        -------
        ndarray of shape (n, 2)
            East and north of the centre.

        Raises
        ------
        ParameterError
            If a coordinate is missing or out of range.
        """
        north, east = as_degrees(latitude, longitude)
        phi, centre = np.radians(north), math.radians(self.latitude)
        # A difference of degrees is exact where positions are near, also across the antimeridian.
        turn = np.radians(np.remainder(east - self.longitude + 180, 360) - 180)
        half, middle = np.sin(turn / 2) ** 2, np.sin(phi - centre)
        x = np.cos(phi) * np.sin(turn)
        # cos(c) sin(phi) - sin(c) cos(phi) cos(turn), without a difference of near numbers.
        y = middle + 2 * math.sin(centre) * np.cos(phi) * half
        cosine = np.cos(phi - centre) - 2 * math.cos(centre) * np.cos(phi) * half
        sine = np.hypot(x, y)
        angle = np.arctan2(sine, cosine)
        limit = self.radius / _SPHERE
        scale = np.minimum(angle, limit) / np.where(sine > 0, sine, 1) * _SPHERE
        # Opposite the centre every direction is as good as another.
        return np.stack([np.where(sine > 0, x * scale, 0.0), np.where(sine > 0, y * scale, 0.0)], axis=-1)

    def to_degrees(self, points: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return points of the plane as latitudes and longitudes.

        Parameters
        ----------
        points : array_like of shape (n, 2)
            Metres east and north of the centre; also beyond the region.

        Returns
        -------
        tuple of two ndarrays
            Degrees; longitudes from -180 to 180.

        Raises
        ------
        ParameterError
            If a point is missing or has another shape.
        """
        x, y = as_points("points", points).T / _SPHERE
        angle = np.hypot(x, y)
        centre = math.radians(self.latitude)
        ratio = np.sinc(angle / math.pi)
        sine = np.cos(angle) * math.sin(centre) + y * ratio * math.cos(centre)
        away = np.cos(angle) * math.cos(centre) - y * ratio * math.sin(centre)
        turn = np.arctan2(x * ratio, away)
        latitude = np.degrees(np.arctan2(sine, np.hypot(x * ratio, away)))
        return latitude, np.remainder(np.degrees(turn) + self.longitude + 180, 360) - 180
