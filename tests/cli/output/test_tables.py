"""A narrow terminal gets every digit, and no colour where none is wanted."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from sfumato.cli.output.tables import print_table, release_table
from sfumato.cli.output.writing import Format, content

NUMBERS = {"n": [1_234_567, 89], "n_lower": [1_234_000, 80], "n_upper": [1_235_000, 98]}
SUMS = {"total": [123_456_789_012, 4], "total_lower": [1, 2], "total_upper": [987_654_321_098, 5]}


@pytest.mark.parametrize("width", [20, 40, 60, 200])
@pytest.mark.sharpest("20", "40", "60", "200")
def test_no_digit_is_cut(width: int) -> None:
    answer = pa.table({"state of residence, a long name": ["California", "Iowa"], **NUMBERS, **SUMS})
    text = io.StringIO()
    print_table(Console(file=text, width=width), release_table(answer))
    shown = text.getvalue()
    for number in ("1,234,567", "123,456,789,012", "1,234,000 to 1,235,000", "1 to 987,654,321,098"):
        assert number in shown
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert ("total: 4" in shown) == (width < 200)


def test_years_are_names_and_dates_may_lie_beyond_python_s() -> None:
    days = pa.array([2_932_897, 0], pa.int32()).cast(pa.date32())
    answer = pa.table({"year": [2019, None], "day": days, "n": [2019, 7]})
    text = content(answer, Format.TABLE, keys={"year"}).decode()
    assert text.split()[4:7] == ["2019", "10000-01-01", "2,019"]
    rows = json.loads(content(answer, Format.JSON))
    assert [row["day"] for row in rows] == ["10000-01-01", "1970-01-01"]


def test_no_colour_is_obeyed(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="this system has no terminals")
    shown = {}
    for wanted in ({}, {"NO_COLOR": "1"}):
        main, other = pty.openpty()
        command = [sys.executable, "-c", "from sfumato.cli.main import main; main()", "nothing"]
        environment = {**os.environ, "TERM": "xterm-256color", **wanted}
        environment.pop("" if wanted else "NO_COLOR", None)
        with subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=environment) as process:
            process.wait(60)
        os.close(other)
        shown[bool(wanted)] = os.read(main, 65536).decode()
        os.close(main)
    colour = re.compile(r"\x1b\[[0-9;]*3[0-7]m")
    assert colour.search(shown[False])
    assert not colour.search(shown[True])
