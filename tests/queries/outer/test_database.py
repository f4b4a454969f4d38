"""The locked database: what reaches it past the whitelist finds neither files nor settings nor time."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.errors import EngineError, SchemaError
from sfumato.queries.outer.database import check, refuse, run

ANSWER = pa.schema([("n", pa.int64())])


def test_no_file_extension_or_setting_is_reached(tmp_path: Path) -> None:
    secret, out = tmp_path / "secret.csv", tmp_path / "out.csv"
    secret.write_text("a\n1\n", encoding="utf-8")
    for statement in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"COPY answer TO '{out}'",
        f"ATTACH '{tmp_path}/other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SELECT * FROM ANSWERS",
        "SELECT * FROM rows_of_python",
    ):
        rows_of_python = pa.table({"x": pa.array([1])})
        with pytest.raises(SchemaError, match="must suit their answers"):
            check(statement, {"answer": ANSWER})
        assert rows_of_python.num_rows
    assert not out.exists()


def test_what_takes_too_long_is_given_up() -> None:
    rows = pa.table({"n": pa.array(list(range(5000)))})
    sql = "SELECT sum(a.n * b.n % 7 + c.n) AS n FROM answer a, answer b, answer c"
    schema = check(sql, {"answer": ANSWER})
    with pytest.raises(EngineError, match=r"more than 0\.2 seconds"):
        run(sql, {"answer": rows}, schema, seconds=0.2)


def test_sums_are_whole_numbers_of_64_bits_or_an_error() -> None:
    sql = 'SELECT sum(n) AS s, avg(n) AS a, count(*) AS "c c" FROM answer'
    schema = check(sql, {"answer": ANSWER})
    assert schema.types == [pa.int64(), pa.float64(), pa.int64()]
    small, large = (pa.table({"n": pa.array([value] * 2, pa.int64())}) for value in (2**61, 2**63 - 1))
    assert run(sql, {"answer": small}, schema).to_pylist() == [{"s": 2**62, "a": math.ldexp(1, 61), "c c": 2}]
    with pytest.raises(EngineError, match="a number beyond 64 bits"):
        run(sql, {"answer": large}, schema)


def test_columns_of_other_types_are_refused() -> None:
    for item in ("{'a': n}", "[[n]]", "[{'a': [n]}]", "n::BLOB", "INTERVAL 1 DAY", "n::TIME"):
        with pytest.raises(SchemaError, match=r"must be of a type of queries|must suit their answers"):
            check(f"SELECT {item} AS x FROM answer", {"answer": ANSWER})


def test_long_words_of_duckdb_are_cut() -> None:
    for length, shown in ((160, "x" * 160), (161, "x" * 157 + "...")):
        with pytest.raises(SchemaError, match=f"got '{shown.replace('.', chr(92) + '.')}'; nothing"):
            refuse("x" * length + "\nand a second line")
