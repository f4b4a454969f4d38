"""Sources: what is recognised, what is refused, and that nothing is ever written."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import narwhals.stable.v2 as narwhals
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import ParameterError, SchemaError, SourceError
from sfumato.frames.sources import FileKind, FileSource, FrameSource, open_source
from sfumato.queries.engines.duckdb.column_types import with_types
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    Named,
    Scan,
)
from sfumato.queries.plan.typed_expressions import column as column_of
from sfumato.session.units import ROW, require_unit
from tests.cases import cases
from tests.queries.engines.measures import UNITS
from tests.run_time import run_time

if run_time(__name__):
    import pandas as pd
    import polars as pl

    _TABLE = pa.table({"person": [1, 2, 3], "name": ["a", "it's", None], "income": [1.5, None, 2.5]})


def _pandas() -> Any:
    return _TABLE.to_pandas().astype({"name": "string"})


def _count(engine: DuckDBEngine, table: str = "data") -> int:
    job = AggregationJob(Scan(table, engine.schemas[table], None), (), (UNITS,), None, None, None)
    return int(engine.aggregate(job, bytes(16))["m0"][0].as_py())


def _types(engine: DuckDBEngine, table: str = "data") -> dict[str, ColumnType | None]:
    return {column.name: column.type for column in engine.schemas[table].columns}


def _written(kind: str, folder: Path) -> Path:
    path = folder / f"it's [1] {kind}.{kind}" if kind == "csv" else folder / f"it's {kind}.{kind}"
    if kind == "parquet":
        pq.write_table(_TABLE, path)
    elif kind == "csv":
        path.write_text("person,name,income\n1,a,1.5\n2,it's,\n3,,2.5\n")
    else:
        with duckdb.connect(str(path)) as connection:
            connection.register("frame", _TABLE)
            connection.execute('CREATE TABLE "My Table" AS SELECT * FROM frame')
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb"])
def test_files(kind: str, tmp_path: Path) -> None:
    path = _written(kind, tmp_path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    types = {"person": "INT64", "income": "FLOAT64"} if kind == "csv" else None
    with DuckDBEngine(with_types(open_source(path), {}, types)[0]) as engine:
        expected = {"person": ColumnType.INTEGER, "name": ColumnType.TEXT, "income": ColumnType.FLOAT}
        assert _types(engine) == expected
        assert _count(engine) == 3
        assert len(engine.fingerprint(b"key")) == 64
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [p for p in tmp_path.iterdir() if p != path] == []


def test_a_path_may_be_text(tmp_path: Path) -> None:
    path = _written("parquet", tmp_path)
    assert open_source(str(path)) == {"data": FileSource(FileKind.PARQUET, (path,))}


@pytest.mark.parametrize("pattern", ["", "*.parquet"])
def test_a_folder_or_pattern_of_parquet(tmp_path: Path, pattern: str) -> None:
    for part in ("a", "b"):
        pq.write_table(_TABLE, tmp_path / f"{part}.parquet")
    with DuckDBEngine(open_source(tmp_path / pattern)) as engine:
        assert _count(engine) == 6


@cases(
    "frame",
    lambda: [
        _TABLE, _pandas(), pl.from_arrow(_TABLE), _TABLE.to_batches()[0], _TABLE.to_reader(),
        pl.DataFrame(_TABLE).lazy(), narwhals.from_native(_TABLE),
        narwhals.from_native(pl.DataFrame(_TABLE).lazy()),
    ],
    ids=lambda frame: f"{type(frame).__module__.partition('.')[0]}-{type(frame).__name__}",
)  # fmt: skip
def test_frames(frame: Any) -> None:
    with DuckDBEngine(open_source(frame)) as engine:
        assert _types(engine)["name"] is ColumnType.TEXT
        assert _count(engine) == 3


def test_a_relation_of_duckdb_is_computed() -> None:
    with duckdb.connect() as connection:
        assert open_source(connection.sql("SELECT 1 AS person, 'a' AS name")) == {
            "data": FrameSource(pa.table({"person": pa.array([1], pa.int32()), "name": ["a"]}))
        }


def test_a_frame_stays_as_it_is() -> None:
    frame = _pandas()
    before = frame.copy(deep=True)
    with DuckDBEngine(open_source(frame)) as engine:
        _count(engine)
    pd.testing.assert_frame_equal(frame, before)


def test_several_tables_by_name(tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT 1 AS id; CREATE TABLE places AS SELECT 2 AS id, 3 AS x"
        )
    with DuckDBEngine(open_source({"people": path, "PLACES": path, "frame": _TABLE})) as engine:
        assert list(engine.schemas) == ["people", "PLACES", "frame"]
        assert list(_types(engine, "PLACES")) == ["id", "x"]
    with pytest.raises(SourceError, match=r"must hold one table.*pass \{'people': path\}.*people=PATH"):
        DuckDBEngine(open_source(path))


def test_every_type_of_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "types.duckdb"
    kinds = {
        ColumnType.INTEGER: [
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "UTINYINT",
            "USMALLINT",
            "UINTEGER",
            "DECIMAL(18, 0)",
        ],
        ColumnType.FLOAT: ["FLOAT", "DOUBLE", "DECIMAL(9, 2)", "DECIMAL(15, 15)"],
        ColumnType.DECIMAL: [
            "UBIGINT",
            "HUGEINT",
            "UHUGEINT",
            "DECIMAL(19, 0)",
            "DECIMAL(16, 1)",
            "DECIMAL(38, 10)",
        ],
        ColumnType.BOOLEAN: ["BOOLEAN"],
        ColumnType.TEXT: ["VARCHAR", "UUID", "ENUM('a', 'b')"],
        ColumnType.DATE: ["DATE"],
        ColumnType.TIMESTAMP: ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"],
        None: ["BLOB", "INTEGER[]", "STRUCT(a INTEGER)", "INTERVAL", "TIME", "MAP(INTEGER, INTEGER)"],
    }
    flat = [(kind, name) for kind, names in kinds.items() for name in names]
    columns = ", ".join(f"c{at} {name}" for at, (_, name) in enumerate(flat))
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t ({columns}); INSERT INTO t (c0) VALUES (1)")
    with DuckDBEngine(open_source(path)) as engine:
        assert list(_types(engine).values()) == [kind for kind, _ in flat]
        assert _count(engine) == 1


@pytest.mark.parametrize("suffix", ["csv", "CSV", "tsv", "csv.gz", "tsv.gz", "csv.zst"])
def test_a_csv_file_holds_texts_and_its_suffix_tells_the_rest(tmp_path: Path, suffix: str) -> None:
    text = "person,day\n1,2026-01-01\n2,2026-01-02\n"
    if suffix.startswith("tsv"):
        text = text.replace(",", "\t")
    path = tmp_path / f"people.{suffix}"
    compression = {"gz": "gzip", "zst": "zstd"}.get(suffix.rpartition(".")[2])
    with pa.output_stream(str(path), compression=compression) as stream:
        stream.write(text.encode())
    with DuckDBEngine(open_source(path)) as engine:
        assert _types(engine) == {"person": ColumnType.TEXT, "day": ColumnType.TEXT}
        assert _count(engine) == 2


def test_what_a_csv_file_is_taken_for_follows_from_no_row(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"a,b\n1,2\nDUCK,5\n")  # where a DuckDB file says so
    with DuckDBEngine(open_source(path)) as engine:
        assert _types(engine) == {"a": ColumnType.TEXT, "b": ColumnType.TEXT}
        assert _count(engine) == 2


def test_a_public_csv_file_may_have_its_types_found(tmp_path: Path) -> None:
    path = tmp_path / "regions.csv"
    path.write_text("region;code\nnorth;1\nsouth;2\n")
    for types, expected in (
        (None, {"region": ColumnType.TEXT, "code": ColumnType.INTEGER}),
        ({"regions": {"region;code": "STRING"}}, {"region;code": ColumnType.TEXT}),
    ):
        private, public = with_types(open_source(_TABLE), open_source({"regions": path}), types)
        with DuckDBEngine({**private, **public}) as engine:
            assert _types(engine, "regions") == expected


@cases(
    ("dtype", "values"),
    lambda: [
        ("object", ["a", "b"]), ("object", [1, None]), ("object", ["a", 1]), ("object", [b"a", dt.date.min]),
        ("object", []), ("category", pd.Series([1, "a"], dtype=object)), ("Sparse[int]", [0, 1]),
    ],
)  # fmt: skip
@cases("wrapped", [False, True])
def test_a_pandas_column_of_objects_is_refused_whatever_it_holds(
    dtype: str, values: Any, wrapped: bool
) -> None:
    frame: Any = pd.DataFrame({"x": pd.Series(values, dtype=dtype)}).assign(id=1)
    told = re.escape(
        f"got {frame['x'].dtype} for 'x'; convert them, texts by frame.astype({{'x': 'string'}})"
    )
    frame = narwhals.from_native(frame) if wrapped else frame
    with pytest.raises(SourceError, match=f"table 'data' must have types that say what they hold, {told}"):
        open_source(frame)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_polars_column_of_objects_is_refused(wrapped: bool) -> None:
    frame: Any = pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object), "y": [1]})
    with pytest.raises(SourceError, match=r"got Object for 'x'; convert them, texts by pl\.col"):
        open_source(narwhals.from_native(frame) if wrapped else frame)


@pytest.mark.parametrize("category", [False, True])
def test_a_str_that_is_no_text_is_null(category: bool) -> None:
    texts = pd.Series(["\ud800", "b", None], dtype=pd.StringDtype("python"))
    frame = pd.DataFrame({"id": [1, 2, 3], "x": texts.astype("category") if category else texts})
    with DuckDBEngine(open_source(frame)) as engine:
        assert _types(engine) == {"id": ColumnType.INTEGER, "x": ColumnType.TEXT}
        scan = Scan("data", engine.schemas["data"], None)
        key = Named("x", Expression(column_of("x", None).tree, ColumnType.TEXT))
        job = AggregationJob(scan, (key,), (UNITS,), None, None, None)
        assert engine.aggregate(job, bytes(16)).to_pydict() == {"k0": ["b", None], "m0": [1, 2]}


def test_arrow_columns_have_the_type_that_they_say(tmp_path: Path) -> None:
    columns = {
        "null": pa.nulls(2), "none": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])),
        "twice": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "a"])),
        "whole": pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.array([5])),
        "nested": pa.array([{"a": 1}, None]),
    }  # fmt: skip
    with DuckDBEngine(open_source(pa.table(columns))) as engine:
        expected = [None, ColumnType.TEXT, ColumnType.TEXT, ColumnType.INTEGER, None]
        assert _types(engine) == dict(zip(columns, expected, strict=True))
        assert _count(engine) == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.parquet", b""), ("b.parquet", b"PAR1 this is not"),
        ("c.duckdb", b"\0" * 8 + b"DUCK" + b"\1" * 9000),
        ("d.txt", b"a,b\n1,2\n"), ("e.csv", b""), ("f.csv", b"a,b\xff\xfe\xfa\x80\n1,2\n"),
        ("g.csv", b'a,"b\n1,2\n'), ("h.csv", b"\na,b\n1,2\n"), ("i.csv.gz", b"\x1f\x8b damaged"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SourceError, match="must") as caught:
        DuckDBEngine(open_source(path))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    path = _written("parquet", tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match="readable as Parquet"):
        DuckDBEngine(open_source(path))


@cases(
    "source",
    lambda: [
        "no such file.parquet", "no*such.parquet", 5, None, {}, {"": _TABLE}, {3: _TABLE},
        {"a": _TABLE, "A": _TABLE},
        pa.table({}), pd.DataFrame({1: [2]}), pd.DataFrame({"a": [1, "x", b"y"]}),
        pl.LazyFrame({"a": [1]}).select("b"),
        pa.table({"a": [1], "A": [2]}),
    ],
)  # fmt: skip
def test_what_is_no_source_is_refused(source: object) -> None:
    with pytest.raises(SourceError, match="must"):
        open_source(source)


@cases(
    "values",
    lambda: [pa.array([decimal.Decimal("1.5")], pa.decimal256(50, 2)), pa.array(np.array([1.5], np.float16))],
    ids=["decimal256", "halffloat"],
)
@cases("nested", [False, True])
def test_a_type_that_the_engine_does_not_know_is_named(values: pa.Array, nested: bool) -> None:
    column = pa.ListArray.from_arrays(pa.array([0, 1]), values) if nested else values
    with pytest.raises(SourceError, match=r"column 'x' of table 'data' must have a type.*cast it") as caught:
        DuckDBEngine(open_source(pa.table({"id": [1], "x": column})))
    assert str(values.type) in str(caught.value)
    assert caught.value.__context__ is None


@cases("limit", ["-1GB", "0GB", "0.0 MB", "2", "two", "", 5, "1GB; SET threads = 1"])
def test_a_memory_limit_is_a_positive_size(limit: Any) -> None:
    with pytest.raises(ParameterError, match="memory_limit must be a positive size such as '2GB'"):
        DuckDBEngine(open_source(_TABLE), memory_limit=limit)


@cases("limit", ["2GB", "1.5 gib", "512MB", "0.5TB", "80%"])
def test_sizes_are_written_with_any_unit(limit: str) -> None:
    DuckDBEngine(open_source(_TABLE), memory_limit=limit).close()


@pytest.mark.parametrize("limit", ["1KB", "512KB", "1MB"])
def test_a_limit_under_which_no_query_ends_is_refused_before_anything_is_charged(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spilled = tmp_path / "spilled"
    spilled.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spilled))  # others spill side by side
    with pytest.raises(
        ParameterError, match=f"memory_limit must be enough for a query .* got '{limit}'; give"
    ):
        sf.connect(_TABLE, privacy_unit="person", epsilon=1.0, memory_limit=limit, ledger=tmp_path / "ledger")
    assert not (tmp_path / "ledger").exists()
    assert not list(spilled.iterdir())


def test_the_least_limit_that_connects_answers() -> None:
    """Whatever limit DuckDB needs on this machine: above it there is an answer, below it no charge."""
    text = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-9, max_groups_contributed=1)
        name, SUM(income, contribution_bounds_per_group => (0, 9)) AS s FROM data GROUP BY name"""
    answered = 0
    for exponent in range(8, 18):
        try:
            session = sf.connect(
                _TABLE, privacy_unit="person", epsilon=9.0, delta=1e-6, memory_limit=f"{2**exponent}KiB"
            )
        except ParameterError:
            assert answered == 0
        else:
            with session:
                session.sql(text)
            answered += 1
    assert answered


def test_without_a_folder_for_what_does_not_fit_nothing_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(
        SourceError, match=r"temporary files must be writable.*set TMPDIR to another"
    ) as caught:
        sf.connect(_TABLE, privacy_unit="person", epsilon=1.0)
    assert caught.value.__context__ is None


def test_threads_are_counted_from_one() -> None:
    with pytest.raises(ParameterError, match="threads must be an integer of at least 1, got 0; leave it out"):
        DuckDBEngine(open_source(_TABLE), threads=0)


def test_an_address_of_another_kind_is_named_without_what_it_may_hide() -> None:
    with pytest.raises(SourceError, match="got an address of s3://; fetch the file first") as caught:
        open_source("s3://key:secret@bucket/people.parquet")
    assert "secret" not in str(caught.value)


def test_a_single_column_is_no_frame() -> None:
    # An older pandas gives a column no Arrow stream: then it is no source at all.
    with pytest.raises(SourceError, match=r"a single column to a frame|another frame that narwhals knows"):
        open_source(pd.Series([1, 2]))


def test_what_is_no_source_is_told_what_is() -> None:
    with pytest.raises(
        SourceError, match=r"a source must be a path.*mapping of names to these, got a value of type int"
    ):
        open_source(3)


def test_the_unit_column() -> None:
    with DuckDBEngine(open_source(pa.table({"Person": [1], "blob": [b"x"], "nested": [[1]]}))) as engine:
        schema = engine.schemas["data"]
    assert require_unit(schema, "data", "person") == "Person"
    with pytest.raises(SchemaError, match=r"'Person'.*sfumato\.ROW"):
        require_unit(schema, "data", "user")
    with pytest.raises(SchemaError, match="plain column"):
        require_unit(schema, "data", "nested")
    assert repr(ROW) == "ROW"


def test_the_fingerprint_follows_content_and_key(tmp_path: Path) -> None:
    def of(source: Any, key: bytes = b"k") -> str:
        with DuckDBEngine(open_source(source)) as engine:
            return engine.fingerprint(key)

    chunked = pa.concat_tables([_TABLE.slice(0, 1), _TABLE.slice(1)])
    coded = _TABLE.set_column(1, "name", _TABLE["name"].dictionary_encode())
    junk = pa.Array.from_buffers(
        pa.float64(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([1.5, 77.0, 2.5]).tobytes())]
    )
    same = [
        _TABLE,
        chunked,
        coded,
        _TABLE.to_batches()[0],
        pl.from_arrow(_TABLE),
        _TABLE.set_column(2, "income", junk),
    ]
    assert len({of(source) for source in same}) == 1
    other = [
        _TABLE, _TABLE.slice(0, 2), _TABLE.rename_columns(["person", "nom", "income"]),
        _TABLE.set_column(0, "person", pa.array([1, 2, 4])),
        _TABLE.set_column(0, "person", pa.array([1, 2, None])),
        _TABLE.set_column(0, "person", pa.array([1.0, 2.0, 3.0])),
        _TABLE.set_column(1, "name", pa.array(["ai", "t's", None])),
        _TABLE.set_column(1, "name", pa.array(["a", "it's", ""])), {"other": _TABLE},
    ]  # fmt: skip
    assert len({of(source) for source in other}) == len(other)
    assert of(_TABLE, b"1") != of(_TABLE, b"2")
    path = _written("parquet", tmp_path)
    moved = tmp_path / "moved.parquet"
    moved.write_bytes(path.read_bytes())
    assert of(path) == of(moved)
    pq.write_table(_TABLE.slice(1), moved)
    assert of(path) != of(moved)


def test_every_arrow_type_has_a_fingerprint() -> None:
    values: dict[str, list[object]] = {
        "bool": [True, None], "date": [dt.date(2024, 1, 1), None], "decimal": [decimal.Decimal("1.5"), None],
        "list": [[1, 2], None], "bytes": [b"x", None], "time": [dt.datetime(2024, 1, 1), None],
    }  # fmt: skip
    for name, column in values.items():
        prints = set()
        for rows in (column, column[::-1]):
            with DuckDBEngine(open_source(pa.table({name: rows}))) as engine:
                prints.add(engine.fingerprint(b"k"))
        assert len(prints) == 2, name


def test_a_file_that_is_gone_has_no_fingerprint(tmp_path: Path) -> None:
    path = _written("parquet", tmp_path)
    with DuckDBEngine(open_source(path)) as engine:
        path.unlink()
        with pytest.raises(SourceError, match="readable"):
            engine.fingerprint(b"k")


def test_the_locale_and_clock_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    table = pa.table({"m": pa.array([moment], pa.timestamp("us", tz="America/New_York"))})
    monkeypatch.setitem(os.environ, "TZ", "Asia/Tokyo")
    time.tzset()
    with DuckDBEngine(open_source(table)) as engine:
        assert _types(engine) == {"m": ColumnType.TIMESTAMP}
    monkeypatch.undo()
    time.tzset()
