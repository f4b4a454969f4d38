"""Frames of geopandas itself, and files that it writes: ``-m peers``, where geopandas is installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.location import from_geopandas, read_geojson, read_geoparquet

PLACES = [(13.4, 52.5), (-70.0, -33.5)]


def frame(places: list[tuple[float, ...] | None], crs: Any = 4326) -> Any:
    """Return a frame of points, missing for None."""
    geopandas, geometry = (importlib.import_module(name) for name in ("geopandas", "shapely.geometry"))
    points = [None if place is None else geometry.Point(*place) for place in places]
    return geopandas.GeoDataFrame({"name": ["x"] * len(points)}, geometry=points, crs=crs)


def close(found: Any) -> None:
    """Check that degrees are those of the places."""
    assert np.abs(np.array([found.longitude, found.latitude]).T - np.array(PLACES)).max() < 1e-9


@pytest.mark.peers
def test_frames(tmp_path: Path) -> None:
    plain = frame(list(PLACES))
    for one in (
        plain,
        plain.geometry,
        plain.rename_geometry("where"),
        plain.to_crs(3857),
        plain.to_crs(4269),
    ):
        close(from_geopandas(one))
    close(from_geopandas(frame([(*place, 7.0) for place in PLACES])))
    assert len(from_geopandas(plain.iloc[:0]).latitude) == 0
    for wrong, words in (
        (frame(list(PLACES), None), "have a reference system"),
        (frame(list(PLACES), 'LOCAL_CS["x",UNIT["metre",1]]'), "of places on Earth"),
        (frame([PLACES[0], None]), "a coordinate is missing"),
        (frame([PLACES[0], ()]), "a coordinate is missing"),
        (frame([(1.0, 95.0)]), "a coordinate is missing or out of range"),
        (plain.to_crs(3857).assign(geometry=plain.to_crs(3857).buffer(10.0)), "points only"),
        (plain.drop(columns="geometry"), "have a geometry"),
    ):
        with pytest.raises(ParameterError, match=words):
            from_geopandas(wrong)


@pytest.mark.peers
def test_files(tmp_path: Path) -> None:
    path = tmp_path / "places.parquet"
    for crs in (4326, "OGC:CRS84", 4979):
        for settings in ({}, {"schema_version": "1.0.0"}, {"write_covering_bbox": True, "index": True}):
            frame(list(PLACES), crs).to_parquet(path, **settings)
            close(read_geoparquet(path))
    for wrong, settings, words in (
        (frame(list(PLACES), 3857), {}, "be in WGS 84"),
        (frame(list(PLACES), None), {}, "be in WGS 84"),
        (frame([PLACES[0], None]), {}, "a coordinate is missing"),
        (frame([PLACES[0], ()]), {}, "a coordinate is missing"),
        (frame(list(PLACES)), {"geometry_encoding": "geoarrow"}, "geometry_encoding='WKB'"),
    ):
        wrong.to_parquet(path, **settings)
        with pytest.raises(ParameterError, match=words):
            read_geoparquet(path)
    text = tmp_path / "places.geojson"
    text.write_text(frame(list(PLACES)).to_json(), encoding="utf-8")
    close(read_geojson(text))
    for wrong, words in (
        (frame(list(PLACES)).to_crs(3857), "be in WGS 84"),
        (frame([PLACES[0], None]), "a coordinate is missing"),
    ):
        text.write_text(wrong.to_json(), encoding="utf-8")
        with pytest.raises(ParameterError, match=words):
            read_geojson(text)
