"""CPLEX LP files: what they may hold, and the line of what they may not."""

from __future__ import annotations

import gzip
import lzma
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.attacks import parse_lp, read_lp
from sfumato.errors import ParameterError
from tests.attacks.bureau import program
from tests.cases import cases

FULL = r"""\* a comment *\
Maximize
 profit: 3 x - 2.5e-1 y +  z + 4 - 1  \ the rest is no text: = <
Subject To
 first: x + y
   - 2 z <= 10
 x - - y >= -3.5
 c3: -1 <= x + 2 y + 1 <= 8
 c4: 3 + x - 2 = 4
 c5: x+y=>-inf
 c6: 5 >= x
Bounds
 -5 <= x <= 5
 y <= 4
 z free
 w >= 2
 -inf <= v <= 3
 3 <= u
 t = 2.5
 s <= -1
Generals
 x
 y
Binaries b
End
nothing after the end is read <=
"""


def test_every_construct_is_read() -> None:
    found = parse_lp(FULL)
    assert found.variables == ("x", "y", "z", "w", "v", "u", "t", "s", "b")
    assert found.maximize
    assert found.objective[:3].tolist() == [3, -0.25, 1]
    assert found.offset == 3
    assert found.rows == ("first", "R2", "c3", "c4", "c5", "c6")
    assert found.matrix.toarray()[:, :3].tolist() == [
        [1, 1, -2],
        [1, 1, 0],
        [1, 2, 0],
        [1, 0, 0],
        [1, 1, 0],
        [1, 0, 0],
    ]
    assert found.row_lower.tolist() == [-math.inf, -3.5, -2, 3, -math.inf, -math.inf]
    assert found.row_upper.tolist() == [10, math.inf, 7, 3, math.inf, 5]
    assert found.lower.tolist() == [-5, 0, -math.inf, 2, -math.inf, 3, 2.5, -math.inf, 0]
    assert found.upper.tolist() == [5, 4, math.inf, math.inf, 3, math.inf, 2.5, -1, 1]
    assert found.integer.tolist() == [True, True, *[False] * 6, True]


def test_terms_of_one_variable_are_added() -> None:
    found = parse_lp("min x + x\nst\n x + y + x - y = 4\nend")
    assert found.objective.tolist() == [2, 0]
    assert found.matrix.toarray().tolist() == [[2, 0]]


def test_sums_of_known_names_are_read_as_any_others() -> None:
    fast = parse_lp("min x + y + z\nst\n a: x + y + z = 3\n b: z + x + z <= 2\nend")
    assert fast.matrix.toarray().tolist() == [[1, 1, 1], [1, 0, 2]]


@cases("compress", [gzip.compress, lzma.compress, bytes], ids=["gzip", "xz", "plain"])
def test_compressed_files_are_read(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    file = tmp_path / "program.lp"
    file.write_bytes(compress(b"min x\nst\n x >= 2\nend\n"))
    assert read_lp(file).solve().values == {"x": 2}


@cases(
    "text, line, found",
    [
        ("", 1, "begin with Minimize"),
        ("\nx + y\nmin x\nst\nend", 2, "begin with Minimize"),
        ("min x\nst\n x + 2 3 y <= 4\nend", 3, r"\+ or - between"),
        ("min x\nst\n x + y\n\nend", 5, "have <=, >= or ="),
        ("min x\nst\n x y <= 3\nend", 3, r"\+ or - between"),
        ("min x\nst\n x >= y\nend", 3, "a number after"),
        ("min x\nst\n x + <= 4\nend", 3, "a number or a name after a sign"),
        ("min x\nst\n 3 <= 4\nend", 3, "a variable in every constraint"),
        ("min x\nst\n\n\n x * y <= 4\nend", 5, "a linear program"),
        ("min [ x ^ 2 ] / 2\nst\n x >= 1\nend", 1, "a linear program"),
        ("min x\nst\n x >= 1\nbounds\n x 4\nend", 5, "have <=, >= or ="),
        ("min x\nst\n x >= 1\nbounds\n 4 <= \nend", 6, "a variable in every bound"),
        ("min x\nst\n x >= 1\nbounds\n 4 <= 5\nend", 5, "a variable in every bound"),
        ("min x\nst\n x >= 1\ngenerals\n x\n 5\nend", 6, "names only"),
        ("min x\nst\n x >= 1\nsos1\n s: x:1\nend", 4, "a linear program with integers"),
        ("min x\nst\n x >= \nend", 4, "a number after"),
        ("min x\nst\n 5: x >= 3\nend", 3, "a name before a colon"),
    ],
)
def test_what_is_malformed_is_refused_with_its_line(text: str, line: int, found: str) -> None:
    with pytest.raises(ParameterError, match=f"^LP file must .*{found}.*, but line {line} has"):
        parse_lp(text)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "program.lp.gz"
    file.write_bytes(gzip.compress(b"min x\nst\n x >= 2\nend\n" * 100)[:-20])
    with pytest.raises(ParameterError, match="whole and undamaged"):
        read_lp(file)
    file.write_bytes(b"min x\nst\n \xff >= 2\nend\n")
    with pytest.raises(ParameterError, match="text in UTF-8, but line 3"):
        read_lp(file)


def test_the_smallest_program_of_the_bureau_is_read_whole() -> None:
    found = program("29183980000")
    assert (len(found.variables), len(found.rows)) == (641, 226)
    assert found.integer.sum() == 640
    assert found.upper[found.variables.index("__dummy")] == 0
    assert all(re.match(r"_C_P", name) for name in found.rows)
