"""One column of a file that people fill in: CSV with any separator, or Parquet."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from sfumato import _check
from sfumato.errors import SourceError

__all__ = ["is_blank", "read_column"]

_SEPARATORS: Final = ",;\t|"


def read_column(source: Path, column: str, separator: str | None, *, as_text: bool = False) -> list[Any]:
    """Return a column's cells: of Parquet as they are, of a CSV by what they look like, or as texts.

    Parameters
    ----------
    source : Path
        A Parquet file, or CSV; ``-`` reads CSV from standard input.
    column : str
    separator : str or None
        Of a CSV; None finds the one between which the first line has the column.
    as_text : bool
        Whether the cells of a CSV stay texts.

    Raises
    ------
    SourceError
        If it is no such file, or has no such column.
    """
    if separator is not None and len(separator.encode()) != 1:
        _check.refuse("--separator", "be one character", separator, "write --separator ';'")
    try:
        if source.suffix.lower() in {".parquet", ".pq"}:
            table = pq.read_table(source, columns=[column], use_threads=False).select([column])
        else:
            text = sys.stdin.buffer.read() if str(source) == "-" else source.read_bytes()
            table = pa_csv.read_csv(
                pa.BufferReader(text),
                # One column needs no threads, and Arrow's may outlive a command that ends at once.
                read_options=pa_csv.ReadOptions(use_threads=False),
                parse_options=pa_csv.ParseOptions(delimiter=separator or _separator(text, column)),
                convert_options=pa_csv.ConvertOptions(
                    include_columns=[column],
                    strings_can_be_null=True,
                    column_types={column: pa.string()} if as_text else None,
                ),
            )
    except (OSError, KeyError, pa.ArrowException) as error:
        message = (
            f"source must be a CSV or Parquet file with the column {column!r}, got {str(source)!r}; check it "
            "or name its --separator"
        )
        raise SourceError(message) from error
    cells: list[Any] = table[column].to_pylist()
    return [cell.strip() if isinstance(cell, str) else cell for cell in cells]


def _separator(text: bytes, column: str) -> str:
    """Return the separator between which the first line has the column."""
    first = text.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace")
    for separator in _SEPARATORS:
        names = next(csv.reader([first], delimiter=separator), [])
        if column in (name.strip() for name in names):
            return separator
    return ","


def is_blank(cell: object) -> bool:
    """Whether a cell holds no answer: nothing, white space, or no number where it should be one."""
    return cell is None or cell == "" or cell != cell  # noqa: PLR0124 (NaN)
