"""Columns of files that people fill in."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli.input.columns import is_blank, read_column
from sfumato.errors import SourceError


def test_cells_of_a_csv_are_numbers_or_texts(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("id;age\n1;007\n2; 8 \n3;\n")
    assert read_column(path, "age", None, as_text=True) == ["007", "8", None]
    path.write_text("id,age\n1,7\n2,8\n")
    assert read_column(path, "age", None) == [7, 8]
    assert read_column(path, "age", ",", as_text=True) == ["7", "8"]


def test_cells_of_parquet_are_as_they_are(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [7, None]}), tmp_path / "t.parquet")
    assert read_column(tmp_path / "t.parquet", "age", None, as_text=True) == [7, None]
    with pytest.raises(SourceError, match="with the column 'id'"):
        read_column(tmp_path / "t.parquet", "id", None)


def test_blank_cells_hold_nothing() -> None:
    assert [is_blank(cell) for cell in (None, "", float("nan"), 0, "0", False)] == [True] * 3 + [False] * 3
