"""CSV files row by row: well-formed ones as they were written, and no row that changes another."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.errors import SourceError
from sfumato.frames.delimited import Delimited

Rows = list[tuple[str | None, ...]]


def _read(data: bytes, *, name: str = "people.csv", max_row_bytes: int = 1 << 24) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return [tuple(row.values()) for row in Delimited(path, max_row_bytes).read().read_all().to_pylist()]


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b"88", ("88", None, None)),
        (b"88,1", ("88", "1", None)),
        (b"88,1,2,3", ("88", "1", "2")),
        (b'88,1,2,"3\n4",5', ("88", "1", "2")),
        (b'9,"A,50', ("9", None, None)),
        (b'9,A,"', ("9", "A", None)),
        (b'9,"A"B,50', ("9", None, None)),
        (b'"', (None, None, None)),
        (b'5" x,6,"a ""b"""', ('5" x', "6", 'a "b"')),
        (b' "5",\t6 , 7', (' "5"', "\t6 ", " 7")),
        (b'"a\nb","c\r\nd",\x00', ("a\nb", "c\r\nd", "\x00")),
        (b'\xff\xfe,"",A\xc3\x84', (None, None, "AÄ")),
        (b"x\xef\xbb\xbf,y,z", ("x\ufeff", "y", "z")),
        (b"\xef\xbb\xbfx,y,z", ("\ufeffx", "y", "z")),
        (b'\r,A\r,B"\rC', ("\r", "A\r", 'B"\rC')),
        (b"A\rB", ("A\rB", None, None)),
        (b",,", (None, None, None)),
        (b"", None),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_an_odd_line_is_read_by_itself(line: bytes, row: tuple[str | None, ...] | None, end: bytes) -> None:
    before, after, own = ("1", "2", "3"), ("4", "q", "6"), [] if row is None else [row]
    head, first, last = b"a,b,c" + end, b"1,2,3" + end, b'4,"q",6'
    assert _read(head + first + line + end + last + end) == [before, *own, after]
    assert _read(head + line + end + last) == [*own, after]
    assert _read(head + first + line) == [before, *own]


@pytest.mark.parametrize("delimiter", [",", "\t"])
@given(
    rows=st.lists(
        st.lists(
            st.text(max_size=5) | st.sampled_from(['"', '""', '",\n', "\t", "\r9"]), min_size=2, max_size=2
        )
    ),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n"]),
    max_row_bytes=st.integers(60, 100) | st.just(1 << 24),
)
def test_what_a_csv_writer_wrote_is_read_back(
    delimiter: str, rows: list[list[str]], quoting: Any, end: str, max_row_bytes: int
) -> None:
    assume(not any(row[1].endswith("\r") for row in rows))  # before LF, which it then belongs to
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerows([["first", "second"], *rows])
    name = "people.csv" if delimiter == "," else "people.tsv"
    found = _read(file.getvalue().encode(), name=name, max_row_bytes=max_row_bytes)
    assert found == [tuple(value or None for value in row) for row in rows]


WORDS = st.text("abcxyz019 ;'", min_size=1, max_size=6)
SHORT = st.lists(st.sampled_from(b'",\x00\xffa 1;\t\r').map(lambda byte: bytes([byte])), max_size=12).map(
    b"".join
)


def _line(values: Sequence[str], quoted: Sequence[bool]) -> bytes:
    return ",".join(f'"{v}"' if q else v for v, q in zip(values, quoted, strict=True)).encode()


LINES = st.builds(
    _line, st.lists(WORDS, min_size=3, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3)
)


@given(
    before=st.lists(LINES), odd=SHORT, after=st.lists(LINES), max_row_bytes=st.sampled_from([48, 64, 1 << 24])
)
def test_no_line_changes_another(
    before: list[bytes], odd: bytes, after: list[bytes], max_row_bytes: int
) -> None:
    head = b"a,b,c"
    plain = _read(b"\n".join([head, *before, *after]), max_row_bytes=max_row_bytes)
    found = _read(b"\n".join([head, *before, odd, *after]), max_row_bytes=max_row_bytes)
    more = 0 if odd in (b"", b"\r") else 1  # a line that is empty, ended by LF or CRLF
    assert len(found) == len(plain) + more
    assert found[: len(before)] == plain[: len(before)]
    assert found[len(before) + more :] == plain[len(before) :]


@given(data=st.binary(max_size=40) | st.lists(LINES | SHORT).map(b"\n".join))
def test_no_bytes_fail(data: bytes) -> None:
    assert all(len(row) == 3 for row in _read(b"a,b,c\n" + data))
    assert all(len(row) == 1 for row in _read(b"a\n" + data))


@pytest.mark.parametrize("line", [b"9" * 300 + b",5,6", b'9,"' + b"8" * 300, b'9,"' + b'""' * 150 + b'",5'])
def test_a_line_without_end_is_a_row_by_itself(line: bytes) -> None:
    rows = b'1,2,3\n4,"5",6\n'
    for max_row_bytes in (20, 64, 100):
        found = _read(b"a,b,c\n" + rows + line + b"\n" + rows * 20, max_row_bytes=max_row_bytes)
        usual = [("1", "2", "3"), ("4", "5", "6")]
        assert found == [*usual, (None if line[1:2] == b"9" else "9", None, None), *usual * 20]


def test_a_row_as_long_as_allowed_is_whole_wherever_it_stands() -> None:
    long = b'1,"' + b"\n" * 60 + b'",3\n'
    for before in range(40):
        found = _read(b"a,b,c\n" + b"7,8,9\n" * before + long + b"7,8,9\n", max_row_bytes=len(long))
        assert found == [*[("7", "8", "9")] * before, ("1", "\n" * 60, "3"), ("7", "8", "9")]


def test_names_come_from_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b'\xef\xbb\xbf,"a ""b"", c", d \r\n1,2,3\r\n')
    assert Delimited(path).names == ["column0", 'a "b", c', " d "]
    assert Delimited(path).read(["column0", " d ", "none"]).read_all().to_pydict() == {
        "column0": ["1"],
        " d ": ["3"],
    }
    for damaged in (b'a,"b\n1,2\n3,"4"\n', b"a,\xff\n", b"a\r1\r2\r", b"\n1", b'a,"b"c\n'):
        path.write_bytes(damaged)
        with pytest.raises(
            SourceError, match=r"first line of 'people\.csv' must be the names of the columns"
        ):
            Delimited(path).read()
    path.write_bytes(b"a,b")
    assert Delimited(path).read().read_all().to_pydict() == {"a": [], "b": []}


def test_a_first_line_without_an_end_within_the_longest_row_is_refused_and_not_cut() -> None:
    head = b"id,city,salary"
    assert _read(head + b"\n1,a,2", max_row_bytes=len(head) + 1) == [("1", "a", "2")]
    for max_row_bytes in (len(head) - 1, len(head)):
        with pytest.raises(SourceError, match="must be the names of the columns"):
            _read(head + b"_in_thousands\n1,a,2", max_row_bytes=max_row_bytes)
