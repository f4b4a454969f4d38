"""Checks of positions: degrees on the ellipsoid, and pairs of numbers in a plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check

__all__ = ["as_degrees", "as_points", "as_prior", "distance_matrix"]


def _numbers(name: str, values: ArrayLike, remedy: str) -> NDArray[np.float64]:
    try:
        found: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        _check.refuse_type(name, "be numbers", values, remedy)
    return found


def as_degrees(latitude: ArrayLike, longitude: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return coordinates as float arrays of one shape, or refuse what is missing or out of range.

    Parameters
    ----------
    latitude : array_like
        Degrees, -90 to 90.
    longitude : array_like
        Degrees, -180 to 360; both ways to count are taken.

    Returns
    -------
    tuple of two ndarrays

    Raises
    ------
    ParameterError
        Without saying which position it is.
    """
    remedy = "pass degrees, and drop rows without a position first"
    north = _numbers("latitude", latitude, remedy)
    east = _numbers("longitude", longitude, remedy)
    if north.shape != east.shape:
        _check.refuse_type("longitude", "have the shape of latitude", east, "pass one longitude per latitude")
    for name, values, smallest, largest in (("latitude", north, -90, 90), ("longitude", east, -180, 360)):
        if not bool(((values >= smallest) & (values <= largest)).all()):
            rule, found = (
                f"be degrees from {smallest} to {largest}",
                "a coordinate is missing or out of range",
            )
            _check.refuse_state(name, rule, found, remedy)
    return north, east


def as_points(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return positions in a plane as an array of shape (n, 2), or refuse what is none.

    Parameters
    ----------
    name : str
        Of the parameter.
    values : array_like, shape (n, 2)
        Metres.

    Returns
    -------
    ndarray of shape (n, 2)

    Raises
    ------
    ParameterError
        If they have another shape, or one is missing or infinite.
    """
    remedy = "pass an array of shape (n, 2) of metres in the plane"
    points = _numbers(name, values, remedy)
    if points.ndim != 2 or points.shape[1] != 2:
        _check.refuse_type(name, "have two columns", points, remedy)
    if not bool(np.isfinite(points).all()):
        _check.refuse_state(name, "be finite", "a coordinate is missing or infinite", remedy)
    return points


def as_prior(prior: ArrayLike | None, places: int) -> NDArray[np.float64]:
    """Return probabilities of places, uniform if there are none, or refuse what is no distribution.

    Parameters
    ----------
    prior : array_like or None
        One non-negative number per place; their sum is 1 within 1e-9.
    places : int
        How many there are.

    Returns
    -------
    ndarray of shape (places,)

    Raises
    ------
    ParameterError
        If they are no distribution.
    """
    if prior is None:
        return np.full(places, 1 / places)
    remedy = "divide counts by their sum"
    given = _numbers("prior", prior, remedy)
    if given.shape != (places,):
        _check.refuse_type("prior", f"have one probability for each of {places} places", given, remedy)
    if not bool((given >= 0).all()) or not abs(float(given.sum()) - 1) <= 1e-9:
        _check.refuse_state("prior", "be probabilities whose sum is 1", "these are not", remedy)
    return given


def distance_matrix(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return a square matrix of non-negative numbers, or refuse what is none.

    Parameters
    ----------
    name : str
        Of the parameter.
    values : array_like, shape (n, n)
        Distances or losses; infinity is none.

    Returns
    -------
    ndarray of shape (n, n)

    Raises
    ------
    ParameterError
        If it is not square, or a number is negative, missing or infinite.
    """
    remedy = "pass a square matrix of finite numbers"
    matrix = _numbers(name, values, remedy)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        _check.refuse_type(name, "be a square matrix", matrix, remedy)
    if not bool(((matrix >= 0) & np.isfinite(matrix)).all()):
        _check.refuse_state(name, "be non-negative and finite", "an entry is not", remedy)
    return matrix
