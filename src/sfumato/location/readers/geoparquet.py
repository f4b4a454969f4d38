"""Points in GeoParquet files and in frames of geopandas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import ArrowException, parquet, types

from sfumato import _check
from sfumato.errors import SourceError
from sfumato.location.metrics.coordinates import as_degrees
from sfumato.location.readers.positions import Positions

__all__ = ["from_geopandas", "read_geoparquet"]

# Types of points, also with height and measure, by ISO and as an older form flags them, with their lengths.
# The flag of a reference system in each value, which shifts the coordinates, is not among them.
_POINTS = {1: 21, 1001: 29, 2001: 29, 3001: 37, 0x80000001: 29, 0x40000001: 29, 0xC0000001: 37}
# In the plane, and with heights.
_WGS84 = (["OGC", "CRS84"], ["EPSG", 4326], ["OGC", "CRS84h"], ["EPSG", 4979])


def _wkb_points(values: list[bytes | None]) -> NDArray[np.float64]:
    """Return the points of well-known binary, NaN where one is missing."""
    points = np.full((len(values), 2), np.nan)
    for row, value in enumerate(values):
        if value is None:
            continue
        order = {b"\x00": ">", b"\x01": "<"}.get(value[:1], "")
        kind = int(np.frombuffer(value, f"{order}u4", 1, 1)[0]) if order and len(value) >= _POINTS[1] else 0
        if _POINTS.get(kind) != len(value):
            _check.refuse_state("file", "have points only", "it has another geometry", "pass points")
        points[row] = np.frombuffer(value, f"{order}f8", 2, 5)
    return points


def read_geoparquet(file: str | Path) -> Positions:
    """Return the points of a GeoParquet file whose coordinates are degrees on WGS 84.

    Parameters
    ----------
    file : str or Path
        Path of the file; its primary column is encoded as well-known binary.

    Returns
    -------
    Positions
        Without times.

    Raises
    ------
    SourceError
        If the file cannot be read, or is no GeoParquet.
    ParameterError
        If it has another geometry or reference system, or a coordinate is missing or out of range.

    References
    ----------
    OGC GeoParquet 1.1: a file without ``crs`` is in OGC:CRS84.

    Examples
    --------
    >>> read_geoparquet("nowhere.parquet")
    Traceback (most recent call last):
    sfumato.errors.SourceError: the GeoParquet file cannot be read; check its path and rights
    """
    try:
        table = parquet.ParquetFile(file)
    except (OSError, ArrowException):
        raise SourceError("the GeoParquet file cannot be read; check its path and rights") from None
    with table:
        try:
            described = json.loads((table.schema_arrow.metadata or {})[b"geo"])
            name = described["primary_column"]
            column = described["columns"][name]
            encoding, system = column["encoding"], column.get("crs", "OGC:CRS84")
        except (KeyError, TypeError, ValueError, RecursionError):
            raise SourceError("the file is no GeoParquet; its metadata has no key 'geo'") from None
        if encoding != "WKB":
            remedy = "write it by geopandas' to_parquet with geometry_encoding='WKB'"
            _check.refuse("file", "be encoded as WKB", encoding, remedy)
        if not _is_wgs84(system):
            remedy = "write it with to_crs(4326)"
            _check.refuse_state("file", "be in WGS 84", "its reference system is another one", remedy)
        points = _wkb_points(_values(table, name))
    latitude, longitude = as_degrees(points[:, 1], points[:, 0])
    return Positions(latitude, longitude, None)


def _values(table: parquet.ParquetFile, name: Any) -> list[bytes | None]:
    remedy = "write it by geopandas' to_parquet"
    kind = table.schema_arrow.field(name).type if name in table.schema_arrow.names else None
    if kind is None or not (types.is_binary(kind) or types.is_large_binary(kind)):
        _check.refuse_state("file", "have a primary column of bytes", "it has not", remedy)
    try:
        found: list[bytes | None] = table.read([name]).column(0).to_pylist()
    except (OSError, ArrowException):
        raise SourceError("the GeoParquet file cannot be read; its pages are damaged") from None
    return found


def _is_wgs84(system: Any) -> bool:
    if isinstance(system, str):
        return system in {"OGC:CRS84", "EPSG:4326"}
    found = system.get("id") if isinstance(system, dict) else None
    return isinstance(found, dict) and [found.get("authority"), found.get("code")] in _WGS84


def from_geopandas(frame: Any) -> Positions:
    """Return the points of a GeoDataFrame or GeoSeries, in degrees on WGS 84.

    Parameters
    ----------
    frame : geopandas.GeoDataFrame or geopandas.GeoSeries
        Points, with a reference system; another one is converted by geopandas.

    Returns
    -------
    Positions
        Without times.

    Raises
    ------
    ParameterError
        If it has no geometry, no reference system or one that cannot be converted, other geometries than
        points, or a coordinate that is missing or out of range.

    Examples
    --------
    >>> from_geopandas([1, 2])
    Traceback (most recent call last):
    sfumato.errors.ParameterError: frame must have a geometry, got a value of type list; pass a
    GeoDataFrame...
    """
    geometry = getattr(frame, "geometry", None)
    if geometry is None or not hasattr(geometry, "to_crs"):
        _check.refuse_type("frame", "have a geometry", frame, "pass a GeoDataFrame of points")
    if geometry.crs is None:
        _check.refuse_state("frame", "have a reference system", "its crs is None", "call set_crs(4326)")
    try:
        degrees = geometry.to_crs(4326)
    except (RuntimeError, ValueError):  # pyproj's errors are of the former kind
        rule = "have a reference system of places on Earth"
        _check.refuse_state("frame", rule, "its crs cannot be converted", "pass degrees on WGS 84")
    kinds = degrees.geom_type
    if not bool((kinds[~degrees.isna()] == "Point").all()):
        _check.refuse_state("frame", "have points only", "it has another geometry", "pass points")
    latitude, longitude = as_degrees(degrees.y.to_numpy(), degrees.x.to_numpy())
    return Positions(latitude, longitude, None)
