"""CSV and TSV files, read row by row: nothing about them is found out by looking at the rows.

The first line names the columns, the suffix sets the delimiter, quotes are those of RFC 4180, and all
values are texts.

- A row has one value for each name: NULL for fields that it lacks, none for fields beyond. An empty field is
  NULL, with quotes or without; so is one that is not UTF-8. Lines end in LF or CRLF; a CR alone is a letter
  like others, for Python's writers put it into a field without quotes. An empty line is no row.
- A line that breaks the rules of quotes is a row by itself, of the fields before the first that breaks them;
  so is a line that begins a row of more than 16 MiB.

Guarantee: names, and whether reading fails, do not depend on any row. A row changes no other row, unless it
leaves a quote open and the next quote in the file that is not doubled stands before a delimiter or the end of
a line, within 16 MiB: that is what a field of several lines looks like.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import pyarrow as pa
import pyarrow.csv as pa_csv

from sfumato.errors import SourceError

__all__ = ["CSV_SUFFIXES", "Delimited"]

CSV_SUFFIXES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst")
"""What the names of such files end in."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r?\n")


@final
@dataclass(frozen=True, slots=True)
class Delimited:
    r"""A CSV or TSV file, perhaps compressed, whose rows are read as text.

    Parameters
    ----------
    path : Path
        Its name ends in one of `CSV_SUFFIXES`.
    max_row_bytes : int
        The largest number of bytes of a row that is read as a whole; 16 MiB by default.

    Raises
    ------
    SourceError
        By `names` and `read`, if the first line cannot be read as names.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text('person,age\n1,30\n2\n3,"4",5\n')
    ...     Delimited(path).read().read_all().to_pydict()
    {'person': ['1', '2', '3'], 'age': ['30', None, '4']}
    """

    path: Path
    max_row_bytes: int = 1 << 24

    @property
    def names(self) -> list[str]:
        """The names in the first line; a column without one is ``column0`` and so on, by its position.

        Returns
        -------
        list of str

        Raises
        ------
        SourceError
            If the first line cannot be read as names.
        OSError
            If the file cannot be read.
        """
        return self._head()[0]

    def read(self, names: Collection[str] | None = None) -> pa.RecordBatchReader:
        r"""Return the rows as texts, in the order of the file.

        Parameters
        ----------
        names : collection of str, optional
            The columns that are wanted, all by default.

        Returns
        -------
        pyarrow.RecordBatchReader
            Whose columns are all of type string.

        Raises
        ------
        SourceError
            If the first line cannot be read as names.
        OSError
            If the file cannot be read; also while its rows are taken.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "people.csv"
        ...     _ = path.write_text("person,age,city\n1,30,Rome\n")
        ...     Delimited(path).read(["age"]).read_all().to_pydict()
        {'age': ['30']}
        """
        known, start = self._head()
        indices = [index for index, name in enumerate(known) if names is None or name in names]
        schema = pa.schema([(known[index], pa.string()) for index in indices])
        rules = _Rules.of(self._delimiter, width=len(known), max_row_bytes=self.max_row_bytes)
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema, indices, rules, start))

    @property
    def _delimiter(self) -> bytes:
        return b"\t" if self.path.name.lower().endswith((".tsv", ".tsv.gz")) else b","

    def _open(self) -> pa.NativeFile:
        compression = {".gz": "gzip", ".zst": "zstd"}.get(self.path.suffix.lower())
        return pa.input_stream(str(self.path), compression=compression)

    def _head(self) -> tuple[list[str], int]:
        """Return the names, and the bytes before the first row."""
        with self._open() as stream:
            text = stream.read(self.max_row_bytes)
        start = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
        end = _LINE_END.search(text, start)
        stop = end.start() if end else len(text)
        names = None
        fields, whole = _Rules.of(self._delimiter).fields(text, start, stop)
        if whole and start < stop < self.max_row_bytes and b"\r" not in text[start:stop]:
            with suppress(UnicodeDecodeError):
                names = [_unquoted(field).decode() for field in fields]
        if names is None:
            raise SourceError(
                f"the first line of {self.path.name!r} must be the names of the columns, in UTF-8, with "
                "quotes in pairs, and end in LF or CRLF; write the file again"
            )
        return [name or f"column{index}" for index, name in enumerate(names)], end.end() if end else stop

    def _batches(
        self, schema: pa.Schema, indices: list[int], rules: _Rules, start: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows: Arrow reads blocks of text that hold whole rows only, under made-up names."""
        wanted = [f"c{index}" for index in indices]
        head = self._delimiter.join(f"c{index}".encode() for index in range(rules.width)) + b"\n"
        convert = pa_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.binary()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        )
        with self._open() as stream:
            stream.read(start)
            for rows in rules.blocks(stream):
                text = head + rows
                table = pa_csv.read_csv(
                    pa.BufferReader(text),
                    read_options=pa_csv.ReadOptions(block_size=len(text) + 1),
                    parse_options=pa_csv.ParseOptions(
                        delimiter=self._delimiter.decode(), newlines_in_values=b'"' in text
                    ),
                    convert_options=convert,
                )
                texts = [_texts(table[name]) for name in wanted]
                yield from pa.Table.from_arrays(texts, schema=schema).to_batches()


@dataclass(frozen=True, slots=True)
class _Rules:
    """What fields and rows look like, as patterns; a row as it should be has ``width`` fields."""

    delimiter: bytes
    width: int
    max_row_bytes: int
    field: re.Pattern[bytes]
    row: re.Pattern[bytes]
    usual: re.Pattern[bytes]

    @classmethod
    def of(cls, delimiter: bytes, width: int = 1, max_row_bytes: int = 0) -> _Rules:
        quoted = rb'"[^"]*+(?:""[^"]*+)*+"'
        plain = rb'[^"%s\r\n]*+' % delimiter
        usual = rb'(?:[^"%s\r\n][^%s\r\n]*+|%s|)' % (delimiter, delimiter, quoted)
        letter = rb"[^%s\r\n]|\r(?!\n)" % delimiter
        field = rb'(?:(?!")(?:%s)(?:%s)*+|%s|)' % (letter, letter, quoted)
        rows = [rb"%s(?:%s%s){%d}\r?\n" % (one, delimiter, one, width - 1) for one in (plain, usual)]
        return cls(
            delimiter,
            width,
            max_row_bytes,
            re.compile(field),
            re.compile(rb"(%s(?:%s%s)*+)\r?\n" % (field, delimiter, field)),
            re.compile(rb"(?:%s)*+" % b"|".join(rows)),
        )

    def blocks(self, stream: pa.NativeFile) -> Iterator[bytes]:
        """Yield the rows, each with all its fields; no more than ``max_row_bytes`` bytes are read ahead."""
        text, skipping, more = b"", False, True
        while more:
            read = stream.read(self.max_row_bytes)
            more = bool(read)
            text += read if more else b"\n"
            parts: list[bytes] = []
            at = 0
            while at < len(text) and (skipping or len(text) - at > self.max_row_bytes or not more):
                if skipping:
                    end = _LINE_END.search(text, at)
                    at, skipping = (len(text), True) if end is None else (end.end(), False)
                    continue
                stop = min(at + self.max_row_bytes, len(text))
                after = self._usual_until(text, at, stop)
                if after > at:
                    parts.append(text[at:after])
                    at = after
                else:
                    row, at, skipping = self._mended(text, at, stop)
                    parts.append(row)
            text = text[at:]
            if any(parts):
                yield b"".join(parts)

    def _usual_until(self, text: bytes, at: int, stop: int) -> int:
        found = self.usual.match(text, at, stop)
        return at if found is None else found.end()

    def _mended(self, text: bytes, at: int, stop: int) -> tuple[bytes, int, bool]:
        """Return a row with as many fields as it should have, where it ends, and whether its line goes on."""
        found = self.row.match(text, at, stop)
        end = None if found is not None else _LINE_END.search(text, at, stop)
        if found is not None:
            last, after, goes_on = found.end(1), found.end(), False
        elif end is not None:
            last, after, goes_on = end.start(), end.end(), False
        else:
            last, after, goes_on = stop, stop, True
        if last == at:
            return b"", after, False
        fields, whole = self.fields(text, at, last)
        if goes_on and whole:
            fields = fields[:-1]  # the last one may go on as well
        whole_row = [*map(_without_line_end, fields), *[b""] * self.width][: self.width]
        return (self.delimiter.join(whole_row) or b'""') + b"\n", after, goes_on

    def fields(self, text: bytes, at: int, stop: int) -> tuple[list[bytes], bool]:
        """Return the fields between two positions up to one that breaks the rules; whether none does."""
        found: list[bytes] = []
        while at <= stop:
            match = self.field.match(text, at, stop)
            end = at if match is None else match.end()
            if end < stop and text[end : end + 1] != self.delimiter:
                return found, False
            found.append(text[at:end])
            at = end + 1
        return found, True


def _without_line_end(field: bytes) -> bytes:
    """Return a field in quotes if it holds a CR: here a letter like others, to Arrow the end of a line."""
    return b'"%s"' % field.replace(b'"', b'""') if b"\r" in field and field[:1] != b'"' else field


def _unquoted(field: bytes) -> bytes:
    return field[1:-1].replace(b'""', b'"') if field.startswith(b'"') else field


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return bytes as texts, NULL where they are not UTF-8."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.chunked_array([pa.array(map(_text, column.to_pylist()), pa.string())])


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
