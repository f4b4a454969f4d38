"""Every type of DuckDB and of Arrow is carried exactly, or no query can use it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.errors import SchemaError, SourceError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.schema import ColumnType
from tests.queries.every_type import violations


def _whole(least: int, most: int) -> list[str]:
    marks = [least, least + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64]
    kept = {value for value in (*marks, *(-mark for mark in marks), most - 1, most) if least <= value <= most}
    return [str(value) for value in sorted(kept)]


def _bits(bits: int, *, signed: bool = True) -> list[str]:
    return _whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else _whole(0, 2**bits - 1)


_COLUMNS: dict[str, list[str]] = {
    **{type_: _bits(bits) for type_, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32))},
    **{type_: _bits(bits) for type_, bits in (("BIGINT", 64), ("HUGEINT", 128))},
    **{type_: _bits(bits, signed=False) for type_, bits in (("UTINYINT", 8), ("USMALLINT", 16))},
    **{
        type_: _bits(bits, signed=False)
        for type_, bits in (("UINTEGER", 32), ("UBIGINT", 64), ("UHUGEINT", 128))
    },
    "DECIMAL(4,1)": ["-999.9", "-0.1", "0.0", "0.1", "999.9"],
    "DECIMAL(18,0)": ["-999999999999999999", "0", "9007199254740993", "999999999999999999"],
    "DECIMAL(18,3)": ["-999999999999999.999", "9007199254740.993", "9007199254740.992", "0.001"],
    "DECIMAL(38,0)": ["-" + "9" * 38, "9" * 37 + "8", "9" * 38, "18446744073709551616"],
    "DECIMAL(38,38)": ["0." + "9" * 38, "0." + "0" * 37 + "1", "-0." + "9" * 38, "0"],
    "FLOAT": ["-3.4028235e38", "1e-45", "0.1", "1.0", "16777216", "inf", "-inf"],
    "DOUBLE": ["-1.7976931348623157e308", "5e-324", "0.1", "9007199254740992", "inf", "-inf"],
    "BOOLEAN": ["true", "false"],
    "VARCHAR": ["", " ", "a", "A", "ä", "a\u0308", "1", "01", "\U0001f642", "nul\u2400"],
    "UUID": [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "80000000-0000-0000-0000-000000000000",
    ],
    "ENUM('b', 'a', 'B')": ["b", "a", "B"],
    "DATE": ["0001-01-01", "1969-12-31", "1970-01-01", "9999-12-31"],
    "TIMESTAMP": ["0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"],
    "TIMESTAMP_S": ["1969-12-31 23:59:59", "1970-01-01 00:00:00"],
    "TIMESTAMP_MS": ["1969-12-31 23:59:59.999", "1970-01-01 00:00:00"],
    "TIMESTAMP_NS": ["1677-09-22 00:12:43.145224", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00"],
    "TIMESTAMPTZ": ["0001-01-02 00:00:00+00", "1969-12-31 23:59:59.999999+00", "9999-12-30 00:00:00+00"],
}
_ODD: dict[str, list[str]] = {
    "TIME": ["00:00:00", "23:59:59.999999"],
    "TIMETZ": ["00:00:00+00", "23:59:59+01"],
    "INTERVAL": ["1 day", "25 hours"],
    "BIT": ["0", "00", "1"],
    "BLOB": ["a", "b", "\\x00"],
    "INTEGER[]": ["[]", "[1]", "[1, 2]", "[NULL]"],
    "INTEGER[2]": ["[1, 2]", "[2, 1]"],
    "STRUCT(a INTEGER)": ["{'a': 1}", "{'a': 2}"],
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of one table, with a column of each type; its rows are a person each."""
    columns = {**_COLUMNS, **_ODD}
    longest = max(map(len, columns.values())) + 1
    path = tmp_path_factory.mktemp("stored") / "types.duckdb"
    with duckdb.connect(path) as connection:
        items = ", ".join(f"c{at} {type_}" for at, type_ in enumerate(columns))
        connection.execute(f"CREATE TABLE data (person INTEGER, {items})")
        marks = ", ".join(f"CAST(? AS {type_})" for type_ in columns)
        for line in range(2 * longest):  # all values twice
            row = [values[at] if (at := line // 2) < len(values) else None for values in columns.values()]
            connection.execute(f"INSERT INTO data VALUES (?, {marks})", [line, *row])
    return path


def _padded(values: list[Any], longest: int) -> list[Any]:
    return [value for value in (*values, *[None] * (longest - len(values))) for _ in range(2)]


def test_every_type_of_duckdb_is_carried_exactly(stored: Path) -> None:
    columns = {**_COLUMNS, **_ODD}
    longest = max(map(len, columns.values())) + 1
    named = {f"c{at}": _padded(values, longest) for at, values in enumerate(columns.values())}
    with DuckDBEngine(open_source(stored)) as engine:
        types = [column.type for column in engine.schemas["data"].columns[1:]]
        assert [type_ is None for type_ in types] == [type_ in _ODD for type_ in columns]
        assert violations(engine, named) == []


def test_a_column_that_is_not_carried_is_refused_by_name(stored: Path) -> None:
    with sf.connect(stored, privacy_unit="person", epsilon=1.0, delta=1e-6) as session:
        for at, type_ in enumerate(_ODD, len(_COLUMNS)):
            for what in (
                f"COUNT(c{at})",
                f"COUNT(DISTINCT c{at})",
                f"COUNT(DISTINCT person) AS n FROM data GROUP BY c{at}",
            ):
                options = "OPTIONS(epsilon=.1, delta=1e-9, max_groups_contributed=1)"
                text = f"SELECT WITH DIFFERENTIAL_PRIVACY {options} {what}"
                with pytest.raises(SchemaError, match=f"c{at}"):
                    session.sql(text if "FROM" in text else f"{text} AS n FROM data")
            assert session.ledger.entries() == (), type_


def _arrow() -> dict[str, pa.Array]:
    moments = [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_000),
        dt.datetime(1970, 1, 1),
        dt.datetime(2200, 1, 1),
    ]
    texts = ["", "a", "A", "ä", "\U0001f642"]
    whole = {str(type_): pa.array([int(v) for v in _bits(type_.bit_width, signed=signed)], type_)
             for signed, types in ((True, (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
                                   (False, (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())))
             for type_ in types}  # fmt: skip
    narrow = {}
    if hasattr(pa, "decimal32"):  # pyarrow has had it since 18
        narrow["decimal32"] = pa.array([Decimal("9999999.99"), Decimal("-0.01")], pa.decimal32(9, 2))
        narrow["decimal64"] = pa.array([Decimal("9" * 18), Decimal("9007199254740993")], pa.decimal64(18, 0))
    return {
        **whole,
        "float16": pa.array(np.array([65504, -65504, 6e-8, 0.1, 1], np.float16)),
        "float32": pa.array([3.4028234663852886e38, 1e-45, 0.5], pa.float32()),
        **narrow,
        "decimal128": pa.array(
            [Decimal("9" * 38), Decimal("9" * 37 + "8"), Decimal(0)], pa.decimal128(38, 0)
        ),
        "decimal256": pa.array(
            [Decimal("9" * 38), Decimal("9" * 37 + "8"), Decimal(0)], pa.decimal256(38, 0)
        ),
        "string": pa.array(texts),
        "large_string": pa.array(texts, pa.large_string()),
        "string_view": pa.array(texts, pa.string_view()),
        "dictionary": pa.array(texts).dictionary_encode(),
        "bool": pa.array([True, False]),
        "date32": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1)]),
        "date64": pa.array([dt.date(1969, 12, 31), dt.date(1970, 1, 1)], pa.date64()),
        **{f"timestamp_{unit}": pa.array(moments, pa.timestamp(unit)) for unit in ("ms", "us", "ns")},
        "timestamp_s": pa.array(moments[1:], pa.timestamp("s")),
        "timestamp_zone": pa.array(moments, pa.timestamp("us", "Asia/Tokyo")),
        "duration": pa.array([1, 2], pa.duration("ms")),
        "time32": pa.array([dt.time(1), dt.time(2)], pa.time32("s")),
        "time64": pa.array([dt.time(1), dt.time(2)], pa.time64("us")),
        "binary": pa.array([b"a", b"b\0"]),
        "binary_view": pa.array([b"a", b"b\0"], pa.binary_view()),
        "fixed_binary": pa.array([b"ab", b"cd"], pa.binary(2)),
        "list": pa.array([[1], [2, None]]),
        "struct": pa.array([{"a": 1}, {"a": 2}]),
    }


_ARROW_REFUSED = {"float16", "decimal256"}
_ARROW_UNUSABLE = {"duration", "time32", "time64", "binary", "binary_view", "fixed_binary", "list", "struct"}


def test_every_type_of_arrow_is_carried_exactly() -> None:
    columns = _arrow()
    longest = max(map(len, columns.values())) + 1
    named: dict[str, list[str | None]] = {}
    arrays: dict[str, pa.Array] = {"person": pa.array(range(2 * longest))}
    for name, array in columns.items():
        if name in _ARROW_REFUSED:
            with pytest.raises(SourceError, match="'v'"):
                DuckDBEngine(open_source({"data": pa.table({"v": array})}))
            continue
        values = _padded(array.to_pylist(), longest)
        named[name] = [None if value is None else str(value) for value in values]
        arrays[name] = pa.array(values, array.type)
    arrays["run_end_encoded"] = pc.run_end_encode(arrays["string"])
    named["run_end_encoded"] = named["string"]
    with DuckDBEngine(open_source({"data": pa.table(arrays)})) as engine:
        unusable = {column.name for column in engine.schemas["data"].columns if column.type is None}
        assert unusable == _ARROW_UNUSABLE
        assert violations(engine, named) == []


def test_a_nanosecond_is_rounded_as_every_timestamp_is() -> None:
    """The one type that is not carried digit by digit: a TIMESTAMP has microseconds."""
    table = pa.table({"person": [1, 2, 3], "v": pa.array([1_000, 1_001, 2_000], pa.timestamp("ns"))})
    with DuckDBEngine(open_source({"data": table})) as engine:
        column = engine.schemas["data"].find("v")
        assert column is not None
        assert column.type is ColumnType.TIMESTAMP
        assert violations(engine, {"v": [0, 1, 2]}) == [
            "v: {'m0': 3, 'm1': 2} of 3 values, 3 of which differ",
            "v: groups of [1, 2], not of [1, 1, 1]",
        ]
