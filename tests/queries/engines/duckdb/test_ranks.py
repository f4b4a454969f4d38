"""Ranks are SipHash of the values, the same in SQL and in the kernel, whatever form these come in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sfumato.queries.engines.duckdb import _bounding
from sfumato.queries.engines.duckdb.ranks import RANKED_DUCKDB, add_ranks, is_text, kernel_column


def test_siphash_gives_the_published_values() -> None:
    """The first and the 16th vector of the reference, and the example of the paper's appendix A."""
    key = bytes(range(16))
    assert _bounding.siphash(key, b"") == 0x726FDB47DD0E0E31
    assert _bounding.siphash(key, bytes(range(15))) == 0xA129CA6149BE45E5
    assert _bounding.siphash(key, bytes(range(8))) == 0x93F5F5799A932462


def test_ranks_depend_on_values_and_on_which_are_missing() -> None:
    def ranks(*columns: pa.Array) -> list[int]:
        out = np.empty(len(columns[0]), np.int64)
        _bounding.ranks(bytes(16), len(out), tuple(map(kernel_column, columns)), out)
        return list(out)

    numbers, texts = pa.array([0, None, 0, 1]), pa.array(["", "", None, "a"])
    found = ranks(numbers, texts)
    assert len(set(found)) == 4
    assert min(found) >= 0
    assert ranks(numbers.slice(1), texts.slice(1)) == found[1:]
    assert ranks(numbers.cast(pa.int16()), texts.cast(pa.large_string())) == found
    # a value in the next column is another row
    assert ranks(pa.array([1, 2]), pa.array([2, 1]))[0] != ranks(pa.array([2, 1]), pa.array([1, 2]))[0]


def test_sql_ranks_by_the_same_function() -> None:
    columns = [
        "7",
        "CAST(7 AS UTINYINT)",
        "7.0::DOUBLE",
        "'seven'",
        "NULL::BIGINT",
        "DATE '2024-01-31'",
        "TRUE",
    ]
    expected = [
        pa.array([7]), pa.array([7]), pa.array([7.0]), pa.array(["seven"]), pa.array([None], pa.int64()),
        pa.array([dt.date(2024, 1, 31)]), pa.array([True]),
    ]  # fmt: skip
    out = np.empty(1, np.int64)
    _bounding.ranks(
        (5).to_bytes(8, "little") + (6).to_bytes(8, "little"), 1, tuple(map(kernel_column, expected)), out
    )
    with duckdb.connect() as connection:
        add_ranks(connection)
        rank = RANKED_DUCKDB.rank((5, 6), columns)
        assert connection.sql(f"SELECT {rank}").fetchall() == [(int(out[0]),)]
        many = connection.sql(
            f"SELECT count(DISTINCT {RANKED_DUCKDB.rank((5, 6), ['i'])}) FROM range(5000) t(i)"
        )
        assert many.fetchall() == [(5000,)]
        none = connection.sql(f"SELECT {RANKED_DUCKDB.rank((5, 6), ['i'])} FROM range(0) t(i)")
        assert none.fetchall() == []


@pytest.mark.parametrize(
    "value", ["1.5::DECIMAL(30, 2)", "uuid()", "[1, 2]", "{'a': 1}", "INTERVAL 1 DAY", "'x'::BLOB"]
)
def test_units_of_any_type_have_a_rank(value: str) -> None:
    with duckdb.connect() as connection:
        add_ranks(connection)
        rank = RANKED_DUCKDB.rank((5, 6), [value])
        ((found,),) = connection.sql(f"SELECT {rank} >= 0").fetchall()
        assert found is True


def test_what_the_kernel_takes() -> None:
    enumeration = pa.dictionary(pa.int8(), pa.string())
    for type_ in (pa.string(), pa.large_string(), pa.binary(), pa.decimal128(30, 2), enumeration):
        assert is_text(type_) is True
    for type_ in (pa.uint64(), pa.bool_(), pa.date32(), pa.time64("us"), pa.duration("us"), pa.float32()):
        assert is_text(type_) is False
    numbers = pa.dictionary(pa.int8(), pa.int64())
    for type_ in (numbers, pa.float16(), pa.list_(pa.int64()), pa.month_day_nano_interval()):
        assert is_text(type_) is None
    for value in (Decimal("1.50"), [1]):  # as bytes; by its text
        assert kernel_column(pa.array([value]))[1] is not None
