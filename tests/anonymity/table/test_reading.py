from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.anonymity.table.reading import read_table
from sfumato.errors import SourceError
from tests.run_time import run_time

if run_time(__name__):
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds


def people() -> pa.Table:
    return pa.table({"zip": ["02139", "02142"], "age": [30, 40]})


def test_frames_and_parquet_files_are_the_same_table(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "people.parquet")
    columns = people().to_pydict()
    typed = pd.DataFrame(columns).astype({"zip": "string"})
    for source in (
        people(),
        typed,
        pl.DataFrame(columns),
        pl.LazyFrame(columns),
        ds.dataset(people()),
        tmp_path / "people.parquet",
        str(tmp_path),
        {"people": people()},
    ):
        assert read_table(source).to_pydict() == columns


def test_columns_of_a_csv_file_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    for separator in (",", ";", "\t"):
        path.write_text(f"zip{separator}age\n02139{separator}30\n02142{separator}\n")
        assert read_table(path).to_pydict() == {"zip": ["02139", "02142"], "age": ["30", ""]}


def test_what_is_no_single_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("zip,age\n1\n")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 broken")
    for source, message in (
        ({"a": people(), "b": people()}, "the table must be one"),
        (tmp_path / "a.csv", "'a.csv' that cannot be read"),
        (tmp_path / "b.parquet", "'b.parquet' that cannot be read"),
        (tmp_path / "c.parquet", "must be a file that exists"),
    ):
        with pytest.raises(SourceError, match=message):
            read_table(source)
