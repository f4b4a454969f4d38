"""Datasets, lazy frames, and tables of Delta and Iceberg: scanned where they lie, and as they are."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import MissingExtra, ParameterError, SourceError
from sfumato.frames import arrow
from sfumato.frames.datasets import DatasetSource
from sfumato.frames.sources import FrameSource, open_source
from tests.run_time import run_time

if run_time(__name__):
    import polars as pl
    import pyarrow.dataset as ds

    ROWS = pa.table(
        {"person": list(range(300)), "day": ["a", "b", "b"] * 100, "cost": [1.0, 2.0, None] * 100}
    )

SELECT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=1e-5, max_groups_contributed=9) "
KEY = bytes(32)

lakehouse = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("deltalake", "pyiceberg")),
    reason="needs deltalake and pyiceberg",
)


def counts(source: Any, key: str = "day") -> dict[Any, int]:
    with sf.connect(source, privacy_unit="person", epsilon=1000, delta=1e-4, rng=1, threads=1) as session:
        release = session.sql(f"{SELECT}{key} AS k, COUNT(*) AS n FROM data GROUP BY k")
        return {row["k"]: round(row["n"], -1) for row in release.to_arrow().to_pylist()}


def fingerprint(source: Any) -> str:
    with sf.connect(source, privacy_unit="person", epsilon=1, rng=1, threads=1) as session:
        return session.engine.fingerprint(KEY)


def test_a_dataset_is_scanned_where_it_lies(tmp_path: Path) -> None:
    ds.write_dataset(ROWS, tmp_path, format="parquet", partitioning=["day"], partitioning_flavor="hive")
    dataset = ds.dataset(tmp_path, partitioning="hive")
    (source,) = open_source(dataset).values()
    assert isinstance(source, DatasetSource)
    assert len(source.files) == 2
    assert counts(dataset) == {"a": 100, "b": 200}
    assert counts(dataset.filter(ds.field("person") < 150)) == {"a": 50, "b": 100}
    assert counts(ds.dataset([ds.dataset(ROWS), ds.dataset(ROWS.slice(0, 150))]), "cost") == {
        1.0: 100, 2.0: 100, None: 100
    }  # fmt: skip
    with sf.connect(dataset, privacy_unit="person", epsilon=1000, delta=1e-4, rng=1) as session:
        pq.write_table(ROWS.select(["person", "cost"]), source.files[0])
        with pytest.raises(SourceError, match="changed"):
            session.sql(f"{SELECT}COUNT(*) AS n FROM data")


def test_the_fingerprint_is_that_of_the_rows_in_whatever_batches() -> None:
    flags, lists = [True, None, False], [[1], [], None]
    texts = pa.table({"person": [1, 2, 3], "day": ["a", None, ""], "flag": flags, "l": lists})
    whole = fingerprint(ds.dataset(texts))
    for sizes in ((1, 2), (2, 1), (1, 1, 1)):
        parts, start = [], 0
        for size in sizes:
            parts += texts.slice(start, size).to_batches()
            start += size
        assert fingerprint(ds.dataset(parts)) == whole
    encoded = texts.set_column(1, "day", texts["day"].dictionary_encode())
    assert fingerprint(ds.dataset(encoded)) == whole
    for other in (
        texts.set_column(1, "day", pa.array(["a", "", None])),
        texts.set_column(1, "day", pa.array(["", None, "a"])),
        texts.set_column(2, "flag", pa.array([True, False, None])),
        texts.set_column(3, "l", pa.array([[1], None, []])),
        texts.rename_columns(["person", "date", "flag", "l"]),
        texts.slice(0, 2),
    ):
        assert fingerprint(ds.dataset(other)) != whole


def test_a_lazy_frame_of_polars_needs_no_other_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_native", lambda _: pytest.fail("narwhals was asked"))
    lazy = pl.DataFrame(ROWS).lazy().filter(pl.col("person") < 150)
    assert counts(lazy) == {"a": 50, "b": 100}
    with pytest.raises(SourceError, match="one type in each column"):
        open_source(pl.DataFrame({"a": [1]}).lazy().select(pl.col("b")))


def test_wrong_datasets_are_refused(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    for source, words in (
        (ds.dataset(pa.table({})), "at least one column"),
        (ds.dataset(pa.table({"a": [1], "A": [2]})), "differ beyond case"),
        (ds.dataset(pa.table({"person": [1], "x": pa.array([1], pa.decimal256(50))})), "decimal256"),
        (ds.dataset(pa.table({"person": [1], "x": broken})), "valid data|readable as"),
    ):
        with pytest.raises(SourceError, match=words):
            sf.connect(source, privacy_unit="person", epsilon=1, rng=1)
    with pytest.raises(ParameterError, match="columns have types of their own"):
        sf.connect(ds.dataset(ROWS), privacy_unit="person", epsilon=1, rng=1, types={"cost": "INT64"})
    pq.write_table(ROWS, tmp_path / "a.parquet")
    dataset = ds.dataset(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(SourceError, match=r"readable|valid data"):
        sf.connect(dataset, privacy_unit="person", epsilon=1, rng=1)


def test_without_deltalake_a_delta_folder_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_delta_log").mkdir()
    pq.write_table(ROWS, tmp_path / "deleted.parquet")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(MissingExtra, match=r"sfumato\[lakehouse\]"):
        open_source(tmp_path)
    with pytest.raises(SourceError, match="whole folder of a Delta table"):
        open_source(tmp_path / "*.parquet")


@lakehouse
def test_a_delta_table_has_the_rows_of_its_version(tmp_path: Path) -> None:
    deltalake = importlib.import_module("deltalake")
    folder = tmp_path / "table"
    deltalake.write_deltalake(folder, ROWS, partition_by=["day"])
    table = deltalake.DeltaTable(folder)
    assert counts(table) == counts(folder) == counts(str(folder)) == {"a": 100, "b": 200}
    (source,) = open_source(table).values()
    assert isinstance(source, DatasetSource)
    assert len(source.files) == 2
    before = fingerprint(folder)
    assert fingerprint(table) == before
    deltalake.DeltaTable(folder).delete("person < 150")
    assert counts(folder) == {"a": 50, "b": 100}
    assert counts(table) == {"a": 100, "b": 200}  # the version that it has loaded
    assert fingerprint(folder) != before
    (folder / "_delta_log" / "00000000000000000000.json").write_text("{")
    (folder / "_delta_log" / "00000000000000000001.json").write_text("{")
    with pytest.raises(SourceError, match="Delta table that deltalake can open"):
        open_source(folder)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    """A catalog of Iceberg tables, whose connections are closed after the test."""
    sql = importlib.import_module("pyiceberg.catalog.sql")
    with sql.SqlCatalog(
        "c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}"
    ) as opened:
        yield opened


@lakehouse
def test_an_iceberg_table_has_the_rows_of_its_snapshot(catalog: Any, tmp_path: Path) -> None:
    catalog.create_namespace("n")
    table = catalog.create_table("n.rows", schema=ROWS.schema)
    table.append(ROWS)
    table.append(ROWS.slice(0, 30))
    (source,) = open_source(table).values()
    assert isinstance(source, DatasetSource)
    assert len(source.files) == 2
    assert counts(table) == {"a": 100, "b": 200}
    before = fingerprint(table)
    with table.update_schema() as update:
        update.rename_column("day", "weekday")
    renamed = catalog.load_table("n.rows")
    (source,) = open_source(renamed).values()
    assert isinstance(source, FrameSource)  # by name, the files have no such column
    assert counts(renamed, "weekday") == {"a": 100, "b": 200}
    assert fingerprint(renamed) != before
    renamed.delete("person < 150")
    assert counts(renamed, "weekday") == {"a": 50, "b": 100}
    for path in Path(tmp_path).rglob("*.parquet"):
        path.unlink()
    with pytest.raises(SourceError, match="Iceberg table that pyiceberg can read"):
        open_source(renamed)
