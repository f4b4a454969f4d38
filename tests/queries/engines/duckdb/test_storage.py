"""Sources as tables: what could be mistaken, or would fail under a query, is refused when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import SourceError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog

_OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, max_groups_contributed=1)"


def _exact(engine: DuckDBEngine, select: str, unit: str | None) -> list[tuple[object, ...]]:
    private = {"data": Scan("data", engine.schemas["data"], unit)}
    public = {name: schema for name, schema in engine.schemas.items() if name != "data"}
    job = price(read(f"{_OPTIONS} {select}", Catalog(private, public))).job
    engine.check(job)
    return [tuple(row.values()) for row in engine.aggregate(job, bytes(32)).to_pylist()]


def _duckdb(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def _write(path: Path, names: list[str]) -> Path:
    if path.suffix == ".csv":
        path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n", encoding="utf-8")
    elif path.suffix == ".duckdb":
        columns = ", ".join(f'"{name}" INTEGER' for name in names)
        _duckdb(path, f"CREATE TABLE data ({columns})")
    else:
        pq.write_table(pa.table([pa.array([1])] * len(names), names=names), path)
    return path


_BEYOND_ASCII = [["straße", "strasse"], ["Ä", "ä"]]
_COLLISIONS = {
    "parquet": [*_BEYOND_ASCII, ["A", "a"], ["x_1", "x", "X"]],
    "csv": [*_BEYOND_ASCII, ["A", "a"], ["x_1", "x", "X"]],
    "duckdb": _BEYOND_ASCII,  # DuckDB itself refuses the others
}


@pytest.mark.parametrize(
    ("kind", "names"), [(kind, names) for kind in _COLLISIONS for names in _COLLISIONS[kind]]
)
def test_names_that_differ_in_case_alone_are_refused(tmp_path: Path, kind: str, names: list[str]) -> None:
    with pytest.raises(SourceError, match="differ beyond case"):
        DuckDBEngine(open_source(_write(tmp_path / f"people.{kind}", names)))


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb"])
def test_names_that_look_like_renamed_ones_are_kept(tmp_path: Path, kind: str) -> None:
    names = ["x", "x_1", "x_2", "X_1_y"]
    with DuckDBEngine(open_source(_write(tmp_path / f"people.{kind}", names))) as engine:
        assert [column.name for column in engine.schemas["data"].columns] == names


def test_nested_columns_do_not_count_as_columns(tmp_path: Path) -> None:
    nested = pa.table({"x": [1], "s": [{"x": 1, "y": [{"X": 2}]}], "y": [[1, 2]], "z": [3]})
    pq.write_table(nested, tmp_path / "people.parquet")
    with DuckDBEngine(open_source(tmp_path / "people.parquet")) as engine:
        assert [column.name for column in engine.schemas["data"].columns] == ["x", "s", "y", "z"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_name_with_brackets_means_that_file(tmp_path: Path, kind: str) -> None:
    _write(tmp_path / f"people1.{kind}", ["other"])
    meant = _write(tmp_path / f"people[1].{kind}", ["meant"])
    with DuckDBEngine(open_source(meant)) as engine:
        assert [column.name for column in engine.schemas["data"].columns] == ["meant"]
        value = "1" if kind == "csv" else 1
        assert _exact(engine, "meant, COUNT(*) AS n FROM data GROUP BY meant", None) == [(value, 1)]


@pytest.mark.parametrize(
    "second", [{"id": [3], "x": ["abc"]}, {"id": [3]}, {"id": [3], "y": [1]}, {"x": [1], "id": [3]}]
)
def test_files_of_one_table_have_the_same_columns(tmp_path: Path, second: dict[str, list[object]]) -> None:
    pq.write_table(pa.table({"id": [1, 2], "x": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table(second), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="same columns"):
        DuckDBEngine(open_source(tmp_path))


def test_texts_that_a_collation_calls_equal_stay_different(tmp_path: Path) -> None:
    file = _duckdb(
        tmp_path / "people.duckdb",
        "CREATE TABLE data (id VARCHAR COLLATE nocase, k VARCHAR COLLATE nocase)",
        "INSERT INTO data VALUES ('a', 'Foo'), ('A', 'foo'), ('b', 'FOO'), ('c', 'bar')",
    )
    select = "k, COUNT(*) AS n FROM data GROUP BY k"
    frame = pa.table({"id": [1, 2, 3], "k": ["foo", "Foo", "bar"]})
    with DuckDBEngine(open_source(file)) as engine:
        for unit in ("id", None):
            assert _exact(engine, select, unit) == [("FOO", 1), ("Foo", 1), ("bar", 1), ("foo", 1)]
        assert _exact(engine, "COUNT(*) AS n FROM data WHERE k = 'foo'", "id") == [(1,)]
    listed = "k, COUNT(*) AS n FROM data RIGHT JOIN (SELECT DISTINCT k FROM list) USING (k) GROUP BY k"
    table = _duckdb(tmp_path / "list.duckdb", "CREATE TABLE list (k VARCHAR COLLATE nocase)",
                    "INSERT INTO list VALUES ('FOO'), ('foo'), ('bar')")  # fmt: skip
    with DuckDBEngine({**open_source(frame), **open_source({"list": table})}) as engine:
        options = "group_selection_strategy=PUBLIC_GROUPS, max_groups_contributed=1"
        text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0, {options}) {listed}"
        catalog = Catalog(
            {"data": Scan("data", engine.schemas["data"], None)}, {"list": engine.schemas["list"]}
        )
        answer = engine.aggregate(price(read(text, catalog)).job, bytes(32)).to_pylist()
    assert [tuple(row.values()) for row in answer] == [("FOO", 0), ("bar", 1), ("foo", 1)]


def _not_utf8() -> pa.Array:
    offsets = pa.array([0, 2, 4], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xff\xfeab")])


def _overflowing() -> pa.Array:
    return pa.array([2**62, 5], pa.int64()).view(pa.timestamp("ms", "UTC"))


@pytest.mark.parametrize("made", [_not_utf8, _overflowing], ids=["text", "moment"])
@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_values_that_cannot_be_read_are_refused_at_once(
    tmp_path: Path, kind: str, made: Callable[[], pa.Array]
) -> None:
    table = pa.table({"id": [1, 2], "x": made()})
    pq.write_table(table, tmp_path / "people.parquet")
    with pytest.raises(SourceError) as caught:
        DuckDBEngine(open_source(table if kind == "frame" else tmp_path / "people.parquet"))
    assert caught.value.__context__ is None


_EXTREMES = [0, 1, -1, 1499, 1500, -1500, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, None]


@pytest.mark.parametrize("kind", ["frame", "parquet", "pandas"])
def test_nanoseconds_with_a_zone_are_the_nearest_microseconds_like_those_without(
    tmp_path: Path, kind: str
) -> None:
    nanoseconds = pa.array(_EXTREMES, pa.int64())
    zoned, plain = (nanoseconds.view(pa.timestamp("ns", zone)) for zone in ("Asia/Tokyo", None))
    table = pa.table({"id": range(len(_EXTREMES)), "zoned": zoned, "plain": plain})
    pq.write_table(table, tmp_path / "people.parquet")
    source = {"frame": table, "parquet": tmp_path / "people.parquet", "pandas": table.to_pandas()}[kind]
    with DuckDBEngine(open_source(source)) as engine:
        found = {
            name: _exact(engine, f"{name}, COUNT(*) AS n FROM data GROUP BY {name}", "id")
            for name in ("zoned", "plain")
        }
        assert found["zoned"] == found["plain"]
        assert sum(int(str(row[1])) for row in found["zoned"]) == len(_EXTREMES)
        years = _exact(engine, "EXTRACT(YEAR FROM zoned) AS y, COUNT(*) AS n FROM data GROUP BY 1", "id")
        earliest = set() if kind == "pandas" else {1677}  # to pandas the least number is no moment
        assert {row[0] for row in years} == {1969, 1970, 2262, None} | earliest
        after = _exact(engine, "COUNT(*) AS n FROM data WHERE zoned = '1970-01-01 00:00:00.000002'", "id")
        assert after == [(1,)]
        present = sum(value is not None for value in _EXTREMES) - (kind == "pandas")
        assert _exact(engine, "COUNT(*) AS n FROM data", "zoned") == [(present,)]


def test_a_file_that_was_changed_is_not_asked(tmp_path: Path) -> None:
    path = _write(tmp_path / "people.parquet", ["id"])
    with DuckDBEngine(open_source(path)) as engine:
        assert _exact(engine, "id, COUNT(*) AS n FROM data GROUP BY id", None) == [(1, 1)]
        pq.write_table(pa.table({"id": [1, 2, 3]}), path)
        with pytest.raises(SourceError, match="changed"):
            _exact(engine, "id, COUNT(*) AS n FROM data GROUP BY id", None)
        with pytest.raises(SourceError, match="changed"):
            engine.fingerprint(b"key")
