"""Answers to standard output or a file, in the formats of the command line."""

from __future__ import annotations

import datetime as dt
import json
import math
import sys
from collections.abc import Collection, Mapping
from decimal import Decimal
from enum import Enum
from io import BytesIO, StringIO
from pathlib import Path
from typing import Final, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from sfumato import _check
from sfumato._durable import private_content, write_whole
from sfumato.cli.output.guarding import resolved
from sfumato.cli.output.tables import print_table, release_table, wide_console
from sfumato.cli.process.standard import OutputFailed
from sfumato.errors import SourceError
from sfumato.queries.release.display import plain_rows

__all__ = [
    "Format",
    "check_output",
    "content",
    "finite_or_none",
    "format_of",
    "read_bytes",
    "read_private",
    "read_text",
    "refuse_unwritable",
    "write",
    "write_bytes",
    "write_text",
]


class Format(Enum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


_ENDINGS: Final = {
    ".parquet": Format.PARQUET, ".csv": Format.CSV, ".json": Format.JSON, ".txt": Format.TABLE,
}  # fmt: skip


def format_of(style: Format | None, output: Path | None) -> Format:
    """Return the format that was named, else that of the file's ending, else a table.

    Parameters
    ----------
    style : Format or None
    output : Path or None

    Examples
    --------
    >>> format_of(None, Path("answer.parquet")), format_of(Format.CSV, Path("answer.txt"))
    (<Format.PARQUET: 'parquet'>, <Format.CSV: 'csv'>)
    """
    if style is not None:
        return style
    return Format.TABLE if output is None else _ENDINGS.get(output.suffix.lower(), Format.TABLE)


def check_output(style: Format, output: Path | None, *, name: str = "output") -> None:
    """Refuse, before anything is charged, an answer that could not be written.

    Parameters
    ----------
    style : Format
    output : Path or None
    name : str
        What the output is called.

    Raises
    ------
    ParameterError
        If the file's folder does not exist, the name belongs to no plain file, there is no standard output,
        or Parquet would go to a terminal.
    """
    if output is not None:
        target = resolved(output)
        if target.is_dir() or not target.parent.is_dir():
            _check.refuse(name, "be a file in a folder that exists", str(output), "make the folder first")
        if target.exists() and not target.is_file():
            remedy = "leave --output out for standard output" if name == "output" else "name another file"
            _check.refuse(name, "be a plain file", str(output), remedy)
    elif sys.stdout is None:
        _check.refuse("output", "name a file where standard output is closed", None, "pass --output FILE")
    elif style is Format.PARQUET and sys.stdout.isatty():
        _check.refuse("output", "name a file for Parquet on a terminal", None, "pass --output FILE")


def write(
    answer: pa.Table,
    style: Format,
    output: Path | None,
    *,
    again: str,
    facts: Mapping[str, object] | None = None,
    keys: Collection[str] = (),
) -> None:
    """Write a release to a file, whole or not at all, or to standard output.

    Parameters
    ----------
    answer : pyarrow.Table
    style : Format
    output : Path or None
        None is standard output.
    facts : mapping, optional
        What stands beside the rows in JSON.
    again : str
        What became of the charge, and how to have the answer again, for the error.
    keys : collection of str
        As for `release_table`.

    Raises
    ------
    ParameterError
        If the answer cannot be written.
    """
    try:
        if output is not None:
            # The file behind a link is replaced, not the link.
            write_whole(resolved(output), content(answer, style, facts, keys))
        elif style is Format.TABLE:
            print_table(wide_console(), release_table(answer, keys))
        else:
            sys.stdout.buffer.write(content(answer, style, facts, keys))
            sys.stdout.flush()
    except OutputFailed as error:
        raise OutputFailed(f"{error}; {again}") from None
    except OSError as error:
        if output is None:
            raise
        refuse_unwritable("output", output, error, again)


def write_text(output: Path, text: str, *, name: str = "output", again: str = "choose another file") -> None:
    """Write a text to the file ``output``, or refuse it where the file cannot be written."""
    write_bytes(output, text.encode(), name=name, again=again)


def write_bytes(
    output: Path, made: bytes, *, name: str = "output", again: str = "choose another file"
) -> None:
    """Write bytes to the file ``output``, or refuse it where the file cannot be written."""
    try:
        resolved(output).write_bytes(made)
    except OSError as error:
        refuse_unwritable(name, output, error, again)


def refuse_unwritable(
    option: str, path: Path, error: OSError, remedy: str = "choose another file"
) -> NoReturn:
    """Refuse a path that could not be written; the reason is the system's."""
    why = (error.strerror or "a failure").lower()
    _check.refuse_state(
        option, "be writable", f"writing {str(path)!r} failed: {why}", remedy, error=OutputFailed
    )


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, or refuse what cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"{str(path)!r} must be a file that can be read; check it") from error


def read_private(option: str, path: Path, *, longest: int = 1 << 20) -> bytes:
    """Return the content of a file with a secret, or refuse what others than its owner can read."""
    try:
        found = private_content(path, longest)
    except OSError as error:
        raise SourceError(f"{option} must be a file that can be read, got {str(path)!r}; check it") from error
    if found is None:
        _check.refuse(option, "be a file that its owner alone can read", str(path), "chmod 600 it")
    return found


def read_text(option: str, path: str | Path, remedy: str) -> str:
    """Return the text of a file, or refuse what cannot be read as one."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        _check.refuse(option, "be a readable file", str(path), remedy)


def finite_or_none(value: object) -> object:
    """Return a value as it is written in JSON, which has no infinite numbers and no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def content(
    answer: pa.Table,
    style: Format,
    facts: Mapping[str, object] | None = None,
    keys: Collection[str] = (),
) -> bytes:
    """Return an answer as the bytes of a file: in JSON a list of objects, one for each row by column name.

    With facts, JSON is one object that has them, and the list as its ``rows``. A date or a timestamp is a
    text as SQL writes it, and NaN is null.
    """
    if style is Format.TABLE:
        text = StringIO()
        print_table(wide_console(text), release_table(answer, keys))
        return text.getvalue().encode()
    if style is Format.JSON:
        names = answer.column_names
        rows = [dict(zip(names, map(_plain, row), strict=True)) for row in plain_rows(answer)]
        whole = rows if facts is None else {**facts, "rows": rows}
        return (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()
    sink = BytesIO()
    if style is Format.CSV:
        pa_csv.write_csv(_flat(answer), sink)
    else:
        pq.write_table(answer, sink)
    return sink.getvalue()


def _flat(answer: pa.Table) -> pa.Table:
    """Return a table with arrays as JSON in a text, for CSV knows no arrays."""
    for index, field in enumerate(answer.schema):
        if pa.types.is_list(field.type):
            texts = [
                None if value is None else json.dumps(_plain(value), ensure_ascii=False)
                for value in answer[index].to_pylist()
            ]
            answer = answer.set_column(index, field.name, pa.array(texts, pa.string()))
    return answer


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    value = finite_or_none(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
