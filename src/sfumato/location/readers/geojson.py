"""Points in GeoJSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError, SourceError
from sfumato.location.metrics.coordinates import as_degrees
from sfumato.location.readers.positions import Positions

__all__ = ["read_geojson"]

_DEPTH = {"Point": 0, "MultiPoint": 1, "LineString": 1, "MultiLineString": 2}


def _flat(coordinates: Any, depth: int) -> Iterator[Any]:
    if depth == 0:
        yield coordinates
    else:
        for part in coordinates:
            yield from _flat(part, depth - 1)


def _points(value: Any) -> Iterator[Any]:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind is not None and "crs" in value and not _is_wgs84(value["crs"]):
        remedy = "convert it to WGS 84; RFC 7946 knows no other"
        _check.refuse_state("file", "be in WGS 84", "its reference system is another one", remedy)
    if kind == "FeatureCollection":
        for feature in value["features"]:
            yield from _points(feature)
    elif kind == "Feature" and value["geometry"] is None:
        yield math.nan, math.nan  # RFC 7946: an unlocated feature
    elif kind == "Feature":
        yield from _points(value["geometry"])
    elif kind == "GeometryCollection":
        for part in value["geometries"]:
            yield from _points(part)
    elif isinstance(kind, str) and kind in _DEPTH:
        yield from _flat(value["coordinates"], _DEPTH[kind])
    else:
        remedy = "pass Point, LineString and their like, in features or not; drop areas"
        _check.refuse_state("file", "have points and lines only", "it has another geometry", remedy)


def _is_wgs84(system: Any) -> bool:
    """Return whether a ``crs`` of the format's first version, which RFC 7946 has removed, is WGS 84."""
    properties = system.get("properties") if isinstance(system, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    return isinstance(name, str) and name.endswith(("OGC:1.3:CRS84", "OGC::CRS84", "EPSG::4326", "EPSG:4326"))


def _number(value: Any) -> float:
    """Return a coordinate, NaN for what is no number or is too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def read_geojson(file: str | Path) -> Positions:
    """Return the points and the points of lines of a GeoJSON file, which are degrees on WGS 84.

    Parameters
    ----------
    file : str or Path
        Path of the file.

    Returns
    -------
    Positions
        Without times.

    Raises
    ------
    SourceError
        If the file cannot be read, or is no GeoJSON.
    ParameterError
        If it has areas or another reference system, or a coordinate is missing or out of range.

    References
    ----------
    RFC 7946: longitude first, always WGS 84.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "place.geojson"
    ...     _ = path.write_text('{"type": "Point", "coordinates": [13.4, 52.5]}')
    ...     read_geojson(path).latitude
    array([52.5])
    """
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise SourceError("the GeoJSON file cannot be read; check its path and rights") from error
    try:
        points = [(_number(point[0]), _number(point[1])) for point in _points(json.loads(content))]
    except ParameterError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise SourceError("the file is no GeoJSON; pass an object with a type and coordinates") from None
    table = np.array(points, float).reshape(-1, 2)
    latitude, longitude = as_degrees(table[:, 1], table[:, 0])
    return Positions(latitude, longitude, None)
