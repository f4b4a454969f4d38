"""Distances on the ellipsoid WGS 84, by an optional library."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import MissingExtra
from sfumato.location.metrics.coordinates import as_degrees

__all__ = ["geodesic_distances"]


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def geodesic_distances(latitude: ArrayLike, longitude: ArrayLike) -> NDArray[np.float64]:
    """Return the lengths in metres of the shortest paths on WGS 84 between all pairs of positions.

    Parameters
    ----------
    latitude, longitude : array_like of shape (n,)
        Degrees.

    Returns
    -------
    ndarray of shape (n, n)
        Symmetric.

    Raises
    ------
    ParameterError
        If a coordinate is missing or out of range.
    MissingExtra
        If neither pyproj nor geographiclib is installed.

    References
    ----------
    Karney, Algorithms for geodesics, Journal of Geodesy 87, 2013: what both libraries compute, to nanometres.

    Examples
    --------
    >>> geodesic_distances([0.0], [0.0])
    array([[0.]])
    """
    north, east = as_degrees(latitude, longitude)
    first, second = np.triu_indices(north.size, 1)
    found = np.zeros((north.size, north.size))
    if first.size:
        found[first, second] = _lengths(north[first], east[first], north[second], east[second])
    return found + found.T


def _lengths(
    north: NDArray[Any], east: NDArray[Any], other_north: NDArray[Any], other_east: NDArray[Any]
) -> NDArray[Any]:
    pyproj = _optional("pyproj")
    if pyproj is not None:
        return np.asarray(pyproj.Geod(ellps="WGS84").inv(east, north, other_east, other_north)[2])
    library = _optional("geographiclib.geodesic")
    if library is None:
        raise MissingExtra("geodesic distances need pyproj or geographiclib; pip install 'sfumato[location]'")
    inverse = library.Geodesic.WGS84.Inverse
    rows = zip(north, east, other_north, other_east, strict=True)
    return np.array([inverse(*row, outmask=library.Geodesic.DISTANCE)["s12"] for row in rows])
