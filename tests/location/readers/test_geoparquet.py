from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.errors import ParameterError, SourceError
from sfumato.location import from_geopandas, read_geoparquet


def _point(x: float, y: float, order: str = "<") -> bytes:
    return struct.pack(f"{order}BIdd", order == "<", 1, x, y)


def _written(folder: Path, values: list[bytes | None], **column: Any) -> Path:
    described = {
        "primary_column": "where",
        "columns": {"where": {"encoding": "WKB", "geometry_types": []} | column},
    }
    table = pa.table({"name": ["x"] * len(values), "where": pa.array(values, pa.binary())})
    path = folder / "places.parquet"
    parquet.write_table(table.replace_schema_metadata({"geo": json.dumps(described)}), path)
    return path


def test_points_in_both_byte_orders(tmp_path: Path) -> None:
    values: list[bytes | None] = [_point(13.4, 52.5), _point(-70.0, -33.5, ">")]
    for crs in (
        {},
        {"crs": {"id": {"authority": "EPSG", "code": 4326}}},
        {"crs": {"id": {"authority": "OGC", "code": "CRS84"}}},
        {"crs": {"id": {"authority": "EPSG", "code": 4979}}},
    ):
        found = read_geoparquet(_written(tmp_path, values, **crs))
        assert found.latitude.tolist() == [52.5, -33.5]
        assert found.longitude.tolist() == [13.4, -70.0]


def test_what_is_refused(tmp_path: Path) -> None:
    good: list[bytes | None] = [_point(1, 2)]
    column: dict[str, Any]
    values: Any
    for values, column, words in (
        ([struct.pack("<BIdd", 1, 2, 0, 0)], {}, "points only"),
        ([b"\x01"], {}, "points only"),
        ([None], {}, "a coordinate is missing"),
        (good, {"encoding": "point"}, "file must be encoded as WKB"),
        (good, {"crs": {"id": {"authority": "EPSG", "code": 3857}}}, "be in WGS 84"),
        (good, {"crs": None}, "be in WGS 84"),
    ):
        with pytest.raises(ParameterError, match=words):
            read_geoparquet(_written(tmp_path, values, **column))
    other = tmp_path / "other.parquet"
    other.write_bytes(b"PAR1")
    with pytest.raises(SourceError, match="cannot be read"):
        read_geoparquet(other)


def test_points_with_height_and_measure(tmp_path: Path) -> None:
    values: list[bytes | None] = [
        struct.pack(f"<BI{count}d", 1, kind, 13.4, 52.5, *[7.0] * (count - 2))
        for kind, count in ((1001, 3), (3001, 4), (0x80000001, 3), (0xC0000001, 4))
    ]
    assert read_geoparquet(_written(tmp_path, values)).longitude.tolist() == [13.4] * 4


def test_values_that_are_no_plain_points_are_refused(tmp_path: Path) -> None:
    # With a reference system in each value, coordinates lie four bytes further on.
    for value in (
        struct.pack("<BIIdd", 1, 0x20000001, 3857, 13.5, 52.5),
        struct.pack("<BIdd", 1, 1001, 13.4, 52.5),
        struct.pack("<BIdd", 1, 0x10000001, 13.4, 52.5),
        struct.pack(">BIdd", 7, 1, 13.4, 52.5),
        b"",
    ):
        with pytest.raises(ParameterError, match="points only"):
            read_geoparquet(_written(tmp_path, [value]))


def test_damaged_files_and_metadata(tmp_path: Path) -> None:
    path = _written(tmp_path, [_point(1, 2)], crs={"id": {"authority": [], "code": 4326}})
    with pytest.raises(ParameterError, match="be in WGS 84"):
        read_geoparquet(path)
    for values, name in ((pa.array([1, 2]), "where"), (pa.array([_point(1, 2)]), "elsewhere")):
        described = {"primary_column": name, "columns": {name: {"encoding": "WKB"}}}
        table = pa.table({"where": values}).replace_schema_metadata({"geo": json.dumps(described)})
        parquet.write_table(table, path)
        with pytest.raises(ParameterError, match="a primary column of bytes"):
            read_geoparquet(path)
    parquet.write_table(table.replace_schema_metadata({"geo": "[" * 100_000}), path)
    with pytest.raises(SourceError, match="no key 'geo'"):
        read_geoparquet(path)
    content = bytearray(_written(tmp_path, [_point(1, 2)]).read_bytes())
    pages = len(content) - 8 - int.from_bytes(content[-8:-4], "little") - 4
    content[4 : 4 + pages] = b"\xff" * pages
    path.write_bytes(content)
    with pytest.raises(SourceError, match="cannot be read"):
        read_geoparquet(path)


def test_a_parquet_file_without_geography(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "plain.parquet")
    with pytest.raises(SourceError, match="no key 'geo'"):
        read_geoparquet(tmp_path / "plain.parquet")


class _Column:
    def __init__(self, values: list[Any]) -> None:
        self.values = np.array(values)

    def to_numpy(self) -> Any:
        return self.values


class _Geometry:
    """What is used of a GeoSeries."""

    def __init__(self, crs: int | None, kind: str = "Point") -> None:
        self.crs = crs
        self.geom_type = np.array([kind])
        self.x, self.y = _Column([13.4]), _Column([52.5])
        self.asked: list[int] = []

    @property
    def geometry(self) -> _Geometry:
        return self

    def to_crs(self, code: int) -> _Geometry:
        self.asked.append(code)
        return self

    def isna(self) -> Any:
        return np.array([False])


def test_frames_are_converted_to_degrees() -> None:
    frame = _Geometry(3857)
    found = from_geopandas(frame)
    assert frame.asked == [4326]
    assert (found.latitude[0], found.longitude[0]) == (52.5, 13.4)
    with pytest.raises(ParameterError, match="have a reference system"):
        from_geopandas(_Geometry(None))
    with pytest.raises(ParameterError, match="points only"):
        from_geopandas(_Geometry(4326, "Polygon"))


class _Unconvertible(_Geometry):
    def to_crs(self, code: int) -> _Geometry:
        raise RuntimeError("Error creating Transformer from CRS.")


def test_a_reference_system_that_is_not_on_earth() -> None:
    with pytest.raises(ParameterError, match="frame must have a reference system of places on Earth"):
        from_geopandas(_Unconvertible(1))
