"""Answers to standard output or a file, in the formats of the command line."""

from __future__ import annotations

import json
import math
import sys
from enum import Enum
from io import BytesIO, StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from sfumato import _check
from sfumato.cli.tables import release_table, wide_console

__all__ = ["Format", "check_output", "write"]


class Format(Enum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def check_output(style: Format, output: Path | None) -> None:
    """Refuse, before anything is charged, an answer that could not be written.

    Raises
    ------
    ParameterError
        If the file's folder does not exist, or Parquet would go to a terminal.
    """
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        _check.refuse("output", "be a file in a folder that exists", str(output), "make the folder first")
    if style is Format.PARQUET and output is None and sys.stdout.isatty():
        _check.refuse("output", "name a file for Parquet on a terminal", None, "pass --output FILE")


def write(answer: pa.Table, style: Format, output: Path | None) -> None:
    """Write a release to a file or to standard output.

    Raises
    ------
    ParameterError
        If the file cannot be written.
    """
    if style is Format.TABLE and output is None:
        wide_console().print(release_table(answer))
        return
    content = _content(answer, style)
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        _check.refuse("output", "be writable", str(output), error.strerror or "choose another file")


def _content(answer: pa.Table, style: Format) -> bytes:
    if style is Format.TABLE:
        text = StringIO()
        wide_console(text).print(release_table(answer))
        return text.getvalue().encode()
    if style is Format.JSON:
        rows = [{name: _finite(value) for name, value in row.items()} for row in answer.to_pylist()]
        return (json.dumps(rows, indent=2, default=str, ensure_ascii=False) + "\n").encode()
    sink = BytesIO()
    if style is Format.CSV:
        pa_csv.write_csv(answer, sink)
    else:
        pq.write_table(answer, sink)
    return sink.getvalue()


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
