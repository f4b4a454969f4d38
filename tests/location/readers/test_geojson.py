from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.location import read_geojson


def _written(folder: Path, value: Any) -> Path:
    path = folder / "places.geojson"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_points_of_every_kind(tmp_path: Path) -> None:
    line = {"type": "LineString", "coordinates": [[3, 4, 100], [5, 6]]}
    found = read_geojson(
        _written(
            tmp_path,
            {
                "type": "FeatureCollection",
                "features": [
                    {
                        "type": "Feature",
                        "geometry": {"type": "Point", "coordinates": [1, 2]},
                        "properties": {},
                    },
                    {"type": "Feature", "geometry": {"type": "GeometryCollection", "geometries": [line]}},
                    {"type": "MultiLineString", "coordinates": [[[7, 8]], [[9, 10]]]},
                ],
            },
        )
    )
    assert found.longitude.tolist() == [1, 3, 5, 7, 9]
    assert found.latitude.tolist() == [2, 4, 6, 8, 10]
    assert found.time is None


def test_what_is_refused(tmp_path: Path) -> None:
    value: Any
    for value in ({"type": "Polygon", "coordinates": []}, {"type": "Feature", "geometry": 4}, 3):
        with pytest.raises(ParameterError, match="file must have points and lines only"):
            read_geojson(_written(tmp_path, value))
    for point in ([181 + 180, 0], [0, 91], [0, None], [0, "north"]):
        with pytest.raises(ParameterError, match="itude must be"):
            read_geojson(_written(tmp_path, {"type": "Point", "coordinates": point}))
    for value in (
        {"type": "Point"},
        {"type": "Point", "coordinates": [1]},
        {"type": "MultiPoint", "coordinates": 3},
    ):
        with pytest.raises(SourceError, match="no GeoJSON"):
            read_geojson(_written(tmp_path, value))
    with pytest.raises(SourceError, match="cannot be read"):
        read_geojson(tmp_path / "none.geojson")


def test_coordinates_are_numbers(tmp_path: Path) -> None:
    for coordinates in ("52", [True, 7], ["1", "2"], [[1, 2], [3, 4]], [10**400, 1]):
        with pytest.raises(ParameterError, match="a coordinate is missing or out of range"):
            read_geojson(_written(tmp_path, {"type": "Point", "coordinates": coordinates}))
    path = tmp_path / "long.geojson"
    path.write_text('{"type": "Point", "coordinates": [1' + "0" * 5000 + ", 1]}", encoding="utf-8")
    with pytest.raises(SourceError, match="no GeoJSON"):
        read_geojson(path)


def test_another_reference_system_is_refused(tmp_path: Path) -> None:
    def named(name: Any) -> dict[str, Any]:
        feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [10, 20]}}
        system = {"type": "name", "properties": {"name": name}}
        return {"type": "FeatureCollection", "crs": system, "features": [feature]}

    for name in ("urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326", "urn:ogc:def:crs:EPSG::4326"):
        assert read_geojson(_written(tmp_path, named(name))).latitude.tolist() == [20]
    for value in (named("urn:ogc:def:crs:EPSG::3857"), named(None), named("")):
        with pytest.raises(ParameterError, match="file must be in WGS 84"):
            read_geojson(_written(tmp_path, value))
    for system in (None, "EPSG:3857", {"properties": 3}):
        with pytest.raises(ParameterError, match="file must be in WGS 84"):
            read_geojson(_written(tmp_path, named("") | {"crs": system}))


def test_a_feature_without_a_place_is_a_missing_coordinate(tmp_path: Path) -> None:
    placed = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {}}
    missing: dict[str, Any] = {"type": "Feature", "geometry": None, "properties": {}}
    path = _written(tmp_path, {"type": "FeatureCollection", "features": [placed, missing]})
    with pytest.raises(ParameterError, match="a coordinate is missing"):
        read_geojson(path)
