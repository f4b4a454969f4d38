"""Lists of files, and folders whose names give columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import ParameterError, SourceError
from sfumato.frames.sources import FileKind, FileSource, open_source
from sfumato.queries.plan.query import ColumnType
from tests.run_time import run_time

if run_time(__name__):
    ROWS = pa.table({"person": list(range(200)), "cost": [2.0] * 200})

SELECT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=1e-5, max_groups_contributed=9) "


def sales(folder: Path) -> Path:
    """Write the sales of two years, of months one and two, one of them with no name."""
    for year in ("2025", "2026"):
        for month in ("1", "it's [a]%20b", "__HIVE_DEFAULT_PARTITION__"):
            part = folder / "sales" / f"year={year}" / f"month={month}"
            part.mkdir(parents=True)
            pq.write_table(ROWS, part / "part-0.parquet")
    (folder / "sales" / "_temporary").mkdir()
    (folder / "sales" / "_temporary" / "left.parquet").write_bytes(b"no Parquet file")
    return folder / "sales"


def counts(source: Any, key: str, **given: Any) -> dict[Any, int]:
    with sf.connect(
        source, privacy_unit="person", epsilon=1000, delta=1e-4, rng=1, threads=1, **given
    ) as session:
        release = session.sql(f"{SELECT}{key} AS k, COUNT(*) AS n FROM data GROUP BY k")
        return {row["k"]: round(row["n"], -1) for row in release.to_arrow().to_pylist()}


def test_the_names_of_folders_are_columns(tmp_path: Path) -> None:
    folder = sales(tmp_path)
    (source,) = open_source(folder).values()
    assert isinstance(source, FileSource)
    assert (len(source.paths), source.partitions) == (6, ("year", "month"))
    assert counts(folder, "year") == {"2025": 200, "2026": 200}
    assert counts(folder, "month") == {"1": 200, "it's [a] b": 200, None: 200}
    assert counts(folder, "year + 1", types={"YEAR": "INT64"}) == {2026: 200, 2027: 200}
    assert counts(folder, "month", types={"month": "INT64"}) == {1: 200, None: 200}
    with sf.connect(folder, privacy_unit="person", epsilon=1, rng=1) as session:
        columns = {each.name: each.type for each in session.engine.schemas["data"].columns}
        with pytest.raises(sf.errors.SchemaError, match="types="):
            session.explain(SELECT.replace("1000", "1") + "year, SUM(year) AS s FROM data GROUP BY year")
    assert columns == {
        "person": ColumnType.INTEGER,
        "cost": ColumnType.FLOAT,
        "year": ColumnType.TEXT,
        "month": ColumnType.TEXT,
    }


def test_a_list_of_files_is_one_table(tmp_path: Path) -> None:
    folder = sales(tmp_path)
    files = sorted(folder.glob("year=*/month=1/*.parquet"))
    assert counts(files, "cost") == {2.0: 200}
    assert counts(tuple(map(str, files)), "person > 99") == {False: 100, True: 100}
    assert counts({"data": files}, "cost") == {2.0: 200}
    texts = []
    for part, rows in (("a", range(100)), ("b", range(100, 300))):
        path = tmp_path / f"{part}.csv"
        path.write_text("person,town\n" + "".join(f"{row},{part}\n" for row in rows))
        texts.append(path)
    assert counts(texts, "town", types={"person": "INT64"}) == {"a": 100, "b": 200}
    (source,) = open_source(texts).values()
    assert source == FileSource(FileKind.CSV, tuple(texts))


def test_the_fingerprint_follows_the_names_of_folders(tmp_path: Path) -> None:
    folder = sales(tmp_path)
    found = []
    for old, new in (("2026", "2027"), ("2027", "2026"), ("2026", "2028")):
        with sf.connect(folder, privacy_unit="person", epsilon=1, rng=1) as session:
            found.append(session.engine.fingerprint(b"k" * 32))
        (folder / f"year={old}").rename(folder / f"year={new}")
    assert found[0] == found[2] != found[1]
    with sf.connect(folder, privacy_unit="person", epsilon=1000, delta=1e-4, rng=1) as session:
        path = next(folder.rglob("part-0.parquet"))
        pq.write_table(pa.table({"person": [1], "cost": [1.0]}), path)
        with pytest.raises(SourceError, match="changed"):
            session.sql(f"{SELECT}COUNT(*) AS n FROM data")


def test_wrong_lists_and_folders_are_refused(tmp_path: Path) -> None:
    folder = sales(tmp_path)
    file = next(folder.rglob("part-0.parquet"))
    text, other = tmp_path / "a.csv", tmp_path / "b.csv"
    text.write_text("person,town\n1,a\n")
    other.write_text("town,person\na,1\n")
    for source, words in (
        ([], "list of paths"),
        ([1, 2], "list of paths"),
        ([pa.table({"a": [1]})], "list of paths"),
        ([file, file], "must differ"),
        ([file, text], "all of one kind"),
        ([file, tmp_path / "none.parquet"], "file that exists"),
        ([text, other], "same names in their first lines"),
    ):
        with pytest.raises(SourceError, match=words):
            sf.connect(source, privacy_unit="person", epsilon=1, rng=1)
    with pytest.raises(ParameterError, match="columns have types of their own"):
        sf.connect(folder, privacy_unit="person", epsilon=1, rng=1, types={"cost": "INT64"})
    for name in ("year=2028/week=3", "year=2028/month=1/day=2", "2029/month=3"):
        added = folder / name
        added.mkdir(parents=True)
        (added / "a.parquet").write_bytes(file.read_bytes())
        with pytest.raises(SourceError, match="column=value"):
            open_source(folder)
        (added / "a.parquet").unlink()
