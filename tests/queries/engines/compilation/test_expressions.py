"""Every function a query may call is total in the engine, and no row touches another row's value."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pytest
import sqlglot

from sfumato.errors import UnsupportedSql
from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.relations import relation_layer
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import ColumnType, Expression, Scan, Schema
from sfumato.queries.plan.typed_expressions import TypedTree, column
from sfumato.queries.sql.expressions.scalar import read_expression
from sfumato.queries.sql.parser import PrivateSql
from tests.cases import cases

_INTEGERS = [0, 1, -1, 7, -(2**63), 2**63 - 1, 2**62, None]
_FLOATS = [0.0, -0.0, 0.5, -1.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, 2.0**63, None]
_TEXTS = ["", " ", "abc", "-12", "1e400", "nan", "inf", "2020-02-30", "2024-02-29 12:00:00+05:30", "infinity",
          "äß\u200b漢", "true", "%", "290000-01-01", "9" * 400, None]  # fmt: skip
_DATES = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29), None]
_TIMES = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None]
_RAW_DATES = [-(2**31) + 1, 2**31 - 1, 0]
_RAW_TIMES = [-(2**63) + 1, 2**63 - 1, 0]

_EXPRESSIONS = """
i + j; i - j; i * j; i / j; -i; MOD(i, j); x + y; x - y; x * y; x / y; -x; MOD(x, y); i / 0; i + x
MOD(i, 0); i = j; i <> j; x < y; x <= y; x > i; x >= 1.5; s = t; d < e; m >= n; b = (i > 0); x = x
i > 0 AND x > 0; i > 0 OR x > 0; NOT b; i IS NULL; x IS NOT NULL; i IN (1, 2, 3); x IN (0.5, 7)
s IN ('abc', ''); i BETWEEN j AND 5; x NOT BETWEEN 0 AND y; d BETWEEN '2000-01-01' AND '2030-01-01'
s LIKE 'a%'; s NOT LIKE '_'; s || t; CONCAT(s, t, s); CASE WHEN i > 0 THEN i ELSE x END
CASE i WHEN 0 THEN 'zero' WHEN 1 THEN 'one' END; IF(b, i, j); COALESCE(i, j, 3); IFNULL(x, i)
NULLIF(i, j); NULLIF(x, 0.5); GREATEST(i, j); LEAST(x, i, 5); LEAST(GREATEST(x, 0), 100); ABS(i); ABS(x)
SIGN(i); SIGN(x); ROUND(x); ROUND(x, 15); ROUND(i, 2); FLOOR(x); CEIL(i); CEIL(x); SQRT(x); SQRT(i); EXP(x)
EXP(i); LN(x); LN(i); LOG10(x); POWER(x, y); POWER(i, j); POWER(x, 0.5); POWER(0, -1); LOWER(s)
UPPER(s); TRIM(s); LENGTH(s); SUBSTR(s, 1); SUBSTR(s, 1000000); SUBSTR(s, 2, 1000000); STARTS_WITH(s, t)
CAST(i AS STRING); CAST(x AS INT64); CAST(i AS FLOAT64); CAST(s AS INT64); CAST(s AS FLOAT64)
SAFE_CAST(s AS BOOL); CAST(s AS DATE); CAST(s AS TIMESTAMP); CAST(d AS TIMESTAMP); CAST(m AS DATE)
CAST(d AS STRING); CAST(m AS STRING); CAST(x AS STRING); CAST(b AS INT64); CAST(i AS BOOL)
CAST(b AS STRING); EXTRACT(YEAR FROM d); EXTRACT(QUARTER FROM d); EXTRACT(DAYOFYEAR FROM d)
EXTRACT(HOUR FROM m); EXTRACT(SECOND FROM m); EXTRACT(YEAR FROM CAST(s AS DATE)); DATE_TRUNC(d, MONTH)
TIMESTAMP_TRUNC(m, HOUR); DATE_TRUNC(CAST(s AS DATE), YEAR); DATE_TRUNC(CAST(s AS DATE), QUARTER) < d
CAST(CAST(CAST(s AS TIMESTAMP) AS DATE) AS STRING); LN(SQRT(x) / (y - y)); POWER(10, 400) * 0
9223372036854775807 + 1; -9223372036854775808 - 1; SQRT(-1); LN(0); 1 / 0; CAST('x' AS INT64)
WIDTH_BUCKET(x, -1, 2.5, 7); WIDTH_BUCKET(i, 0, 100, 10); LEFT(s, 2); RIGHT(s, 2); RIGHT(s, 0)
RIGHT(s, 1000000)
REPLACE(s, 'a', ''); REPLACE(s, '漢', 'x'); ENDS_WITH(s, 'c'); SAFE_DIVIDE(x, y); i IS DISTINCT FROM j
s IS NOT DISTINCT FROM t; x IS DISTINCT FROM i; b IS TRUE; b IS NOT FALSE; DATE(m); DATE(s); LAST_DAY(d)
DATE_ADD(d, INTERVAL 1 DAY); DATE_SUB(d, INTERVAL 1 DAY); DATE_ADD(d, INTERVAL 3652058 DAY)
DATE_ADD(d, INTERVAL 3660000 DAY); DATE_SUB(d, INTERVAL 1 MONTH); DATE_ADD(d, INTERVAL 11 MONTH)
DATE_ADD(d, INTERVAL 2 YEAR); d + INTERVAL 5 WEEK; DATE_ADD(CAST(s AS DATE), INTERVAL 1 QUARTER)
DATE_SUB(d, INTERVAL 9998 YEAR); DATE_ADD(d, INTERVAL 10000 YEAR); DATE_DIFF(d, e, DAY); DATE_DIFF(d, e, YEAR)
DATE_DIFF(d, e, QUARTER); DATE_DIFF(d, e, MONTH); EXTRACT(DAYOFWEEK FROM d); EXTRACT(DAYOFWEEK FROM m)
TIMESTAMP_ADD(m, INTERVAL 1 MICROSECOND); TIMESTAMP_SUB(m, INTERVAL 86400 SECOND); m + INTERVAL 3652059 DAY
m - INTERVAL 1 HOUR; TIMESTAMP_DIFF(m, n, MICROSECOND); TIMESTAMP_DIFF(m, n, DAY); TIMESTAMP_DIFF(n, m, HOUR)
TIMESTAMP_DIFF(CAST(s AS TIMESTAMP), m, MILLISECOND); DATE_ADD(DATE '2024-01-31', INTERVAL 1 MONTH)
DATE_ADD(d, INTERVAL i DAY); DATE_SUB(d, INTERVAL (j - 1) WEEK); d + INTERVAL (EXTRACT(DAY FROM d)) DAY
DATE_ADD(d, INTERVAL (3000000000 + 3000000000) DAY); DATE_ADD(DATE '2024-01-31', INTERVAL (i) DAY)
EXTRACT(WEEK FROM d); EXTRACT(WEEK(TUESDAY) FROM m); EXTRACT(ISOWEEK FROM d); EXTRACT(ISOYEAR FROM m)
DATE_TRUNC(d, WEEK); DATE_TRUNC(d, ISOWEEK); DATE_TRUNC(d, WEEK(FRIDAY)); TIMESTAMP_TRUNC(m, ISOWEEK)
DATE_TRUNC(d, ISOYEAR); TIMESTAMP_TRUNC(m, ISOYEAR); DATE_DIFF(d, e, ISOYEAR)
DATE_DIFF(d, e, WEEK); DATE_DIFF(d, e, ISOWEEK); DATE_DIFF(d, DATE '2020-01-01', WEEK(SATURDAY))
DATE(i, 2, 29); DATE(EXTRACT(YEAR FROM d), i, j); DATE(2024, 2, 29); DATE(2023, 2, 29); DATE(i, j, i)
FORMAT_DATE('%Y-%m-%d %j %Q %G-W%V %U %%', d); FORMAT_DATE('%A %a, %B %b %y', d); FORMAT_DATE('%F', m)
FORMAT_TIMESTAMP('%F %T|%R|%D', m); FORMAT_DATE('week %V', CAST(s AS DATE))
REGEXP_CONTAINS(s, 'b'); REGEXP_CONTAINS(s, '^[^a-z]+$'); REGEXP_CONTAINS(t, r'[+-]?[0-9]{2,}')
REGEXP_CONTAINS(s, '.$')
REGEXP_CONTAINS(s, r'abc|inf|nan'); REGEXP_EXTRACT(s, r'-([0-9]+)'); REGEXP_EXTRACT(t, '[^0-9]+')
REGEXP_EXTRACT(s, r'^([0-9]{4})-(?:[0-9]{2})')
REGEXP_EXTRACT('a' || s, '[a-z](?:[äβ]|b)?'); REGEXP_CONTAINS(s, '漢')
CAST(i AS NUMERIC); CAST(s AS BIGNUMERIC); CAST(CAST(s AS NUMERIC) AS FLOAT64); CAST(i AS UINT64)
CAST(CAST(s AS NUMERIC) AS INT64); CAST(CAST(s || t AS NUMERIC) AS UINT64); CAST(b AS UINT64)
CAST(s AS UINT64); CAST(i AS NUMERIC) = CAST(j AS NUMERIC); NULLIF(CAST(i AS UINT64), CAST(s AS NUMERIC))
COALESCE(CAST(s AS NUMERIC), CAST(i AS UINT64)); IF(b, CAST(s AS NUMERIC), NULL); CAST(NULL AS NUMERIC)
CASE CAST(s AS NUMERIC) WHEN CAST(i AS NUMERIC) THEN 'same' WHEN NUMERIC '-12' THEN 'twelve' END
CAST(CAST('1.50' AS NUMERIC) AS STRING) || s; CAST(x AS INT64) IS DISTINCT FROM i; CAST('-x' AS NUMERIC)
CAST(s AS NUMERIC) IN (NUMERIC '-12', NUMERIC '1.50'); CAST(i AS NUMERIC) NOT IN (NUMERIC '0', NUMERIC '3.0')
CAST(CAST('18446744073709551615.5' AS NUMERIC) AS UINT64); CAST('18446744073709551615' AS UINT64)
REGEXP_CONTAINS(s || '!', r'[\\^$.|?*+()\\[\\]{}!]'); REGEXP_EXTRACT(s, '[^é]+'); REGEXP_CONTAINS(s, r'\\s')
"""
EXPRESSIONS = [text.strip() for line in _EXPRESSIONS.strip().splitlines() for text in line.split(";")]


class _Scope:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        found = self.schema.find(name)
        assert found is not None
        return column(found.name, found.type)


def _nasty() -> pa.Table:
    count = 193  # prime, so the kinds meet in many pairings
    dates = [dt.date(1970, 1, 1), *_DATES]

    def cycled(values: list[object], step: int) -> list[object]:
        return [values[(row * step) % len(values)] for row in range(count)]

    raw_days = pa.array(cycled([*_RAW_DATES], 1), pa.int32()).cast(pa.date32())
    raw_times = pa.array(cycled([*_RAW_TIMES], 1), pa.int64()).cast(pa.timestamp("us"))
    return pa.table({
        "i": pa.array(cycled([*_INTEGERS], 1), pa.int64()), "j": pa.array(cycled([*_INTEGERS], 3)),
        "x": pa.array(cycled([*_FLOATS], 1), pa.float64()), "y": pa.array(cycled([*_FLOATS], 5)),
        "s": pa.array(cycled([*_TEXTS], 1), pa.string()), "t": pa.array(cycled([*_TEXTS], 7), pa.string()),
        "d": pa.array(cycled([*dates], 1), pa.date32()), "e": raw_days,
        "m": pa.array(cycled([*_TIMES], 1), pa.timestamp("us")), "n": raw_times,
        "b": pa.array(cycled([True, False, None], 1), pa.bool_()),
    })  # fmt: skip


_ALONE = range(0, 193, 16)


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    """The rows together, some of them, and a few alone: constants take another path through the engine."""
    table = _nasty()
    tables = {"all": table, "some": table.slice(50, 90), "one": pa.table({"x": [math.nan]})}
    tables |= {f"row{row}": table.slice(row, 1) for row in _ALONE}
    with DuckDBEngine(open_source(tables), threads=1) as opened:
        yield opened


def _values(engine: DuckDBEngine, table: str, text: str) -> list[str]:
    """What the engine computes for each row, as text that tells NULL, NaN and -0.0 apart."""
    schema = engine.schemas[table]
    tree = sqlglot.parse_one(f"SELECT {text}", read=PrivateSql()).expressions[0]
    expression = read_expression(tree, _Scope(schema), "x")
    layer = relation_layer(Scan(table, schema, None), engine._tables, DUCKDB)
    sql = f"SELECT CAST({render(expression, layer.columns, DUCKDB)} AS VARCHAR) FROM ({layer.sql})"
    return [str(row[0]) for row in engine._connection.execute(sql).fetchall()]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_total_and_row_by_row(engine: DuckDBEngine, text: str) -> None:
    together = _values(engine, "all", text)
    assert len(together) == 193
    assert _values(engine, "some", text) == together[50:140]
    for row in _ALONE:
        assert _values(engine, f"row{row}", text) == [together[row]]


@cases(
    ("text", "value"),
    [
        ("1 / 0", "None"), ("9223372036854775807 + 1", "None"), ("LN(0)", "None"), ("SQRT(-1)", "None"),
        ("CAST('x' AS INT64)", "None"), ("MOD(5, 0)", "None"), ("5 / 2", "2.5"), ("CAST(2.5 AS INT64)", "3"),
        ("GREATEST(1, NULL)", "None"), ("LEAST(3, 2, 1.5)", "1.5"), ("LENGTH('äß')", "2"),
        ("TRIM('\ta ')", "a"),
        ("EXTRACT(DAYOFYEAR FROM DATE '2024-03-01')", "61"), ("POWER(2, 10)", "1024.0"),
        ("LOG10(1000)", "3.0"),
        ("CAST('2024-01-01 00:30:00+01:00' AS TIMESTAMP)", "2023-12-31 23:30:00"),
        ("ROUND(2.345, 2)", "2.35"),
        ("DATE_TRUNC(DATE '2024-05-17', QUARTER)", "2024-04-01"), ("CASE 2 WHEN 1 THEN 'a' END", "None"),
        ("NULLIF(3, 3)", "None"), ("'a' || 'b'", "ab"), ("3 BETWEEN 1 AND 5", "true"), ("SIGN(-4)", "-1"),
        ("ABS(-9223372036854775808)", "None"), ("-(-9223372036854775808)", "None"), ("2 * 3 + 1", "7"),
    ],
)  # fmt: skip
def test_value(engine: DuckDBEngine, text: str, value: str) -> None:
    assert _values(engine, "one", text) == [value]


_READ = {
    "INT64": {
        "12": "12", "+12": "12", "-0": "0", "007": "7", "9223372036854775807": "9223372036854775807",
        "9223372036854775808": "None", "1.5": "None", "1e3": "None", " 1": "None", "1_000": "None",
        "0x1f": "None", "0" * 399 + "1": "1", "0" * 400 + "1": "None", "": "None",
        "-": "None", "٣": "None", "1\n": "None",
    },
    "FLOAT64": {
        "1.5": "1.5", "-.5": "-0.5", "5.": "5.0", "1e3": "1000.0", "+1E-2": "0.01", "1e-4000": "0.0",
        "1e400": "None", "nan": "None", "inf": "None", "Infinity": "None", " 1": "None", ".": "None",
        "1e": "None", "1e10000": "None", "0x1p3": "None", "0" * 399 + "7": "7.0", "0" * 400 + "7": "None",
    },
    "BOOL": {"true": "true", "FaLsE": "false", "t": "None", "1": "None", "yes": "None", "true ": "None"},
    "DATE": {
        "2024-02-29": "2024-02-29", "2023-02-29": "None", "0000-01-01": "None", "0001-01-01": "0001-01-01",
        "9999-12-31": "9999-12-31", "10000-01-01": "None", "2024-2-3": "None", "2024-01-01 ": "None",
        "2024/01/01": "None", "2024-13-01": "None", "infinity": "None", "2024-01-01 00:00:00": "2024-01-01",
        "2024-01-02T03:04:05Z": "2024-01-02", "2024-01-01 00:30:00+01:00": "2023-12-31",
        "2024-01-01T23:30:00.5-01:00": "2024-01-02", "2024-01-01T24:00": "None", "2024-01-01T05": "None",
        "0001-01-01 00:00:00+01:00": "None", "9999-12-31 23:30:00-01:00": "None",
    },
    "TIMESTAMP": {
        "2024-01-01": "2024-01-01 00:00:00", "2024-01-01T05:06Z": "2024-01-01 05:06:00",
        "2024-01-01 05:06:07.5": "2024-01-01 05:06:07.5", "2024-01-01 00:30:00+01:00": "2023-12-31 23:30:00",
        "2024-01-01 00:30:00-14:59": "2024-01-01 15:29:00", "2024-01-01 00:30:00+15:00": "None",
        "2024-01-01 24:00:00": "None", "2024-01-01 23:59:60": "None", "2024-01-01 05": "None",
        "2024-01-01 05:06:07.1234567": "None", "2024-01-01 05:06:07 UTC": "None", "now": "None",
        "0001-01-01 00:00:00+01:00": "None", "9999-12-31 23:30:00-01:00": "None", "epoch": "None",
    },
}  # fmt: skip


_MANY = "9" * 38
_READ_EXACTLY = {
    "NUMERIC": {
        **dict.fromkeys(["0", "-0", "+0", "-0.0", ".0", "000", "0.", "+.00", "0" * 400], "0"),
        **dict.fromkeys(["1.5", "+1.5", "01.50", "0001.5000"], "1.5"),
        **dict.fromkeys(["-1", "-1.", "-01", "-1.0", "-001.000"], "-1"),
        **dict.fromkeys([".5", "0.5", "+0.50", "00.5"], "0.5"), "-.05": "-0.05", "-0.001000": "-0.001",
        "100": "100", "1000.10": "1000.1", "9223372036854775807": "9223372036854775807",
        "-9223372036854775808": "-9223372036854775808", "18446744073709551616": "18446744073709551616",
        _MANY: _MANY, f"-{_MANY}": f"-{_MANY}", f"00{_MANY}.{_MANY}00": f"{_MANY}.{_MANY}",
        f"-.{_MANY}": f"-0.{_MANY}", f"{_MANY}9": "None", f"1{'0' * 38}": "None", f"0.{_MANY}9": "None",
        f"1.{'0' * 38}": "1", "." + "0" * 37 + "1": "0." + "0" * 37 + "1", "." + "0" * 38 + "1": "None",
        "0" * 399 + "1": "1", "0" * 400 + "1": "None", "1." + "0" * 398: "1", "1." + "0" * 399: "None",
        **dict.fromkeys(["", " 1", "1 ", "1e5", "1E5", "NaN", "nan", "inf", "Infinity", ".", "-", "+", "+-1"],
                        "None"),
        **dict.fromkeys(["--1", "1-", "1.2.3", "1,5", "1_000", "0x1f", "1\n", "\u0663", "1.5-"], "None"),
        **dict.fromkeys(["1..", "-.", "- 1"], "None"),
    },
    "UINT64": {
        **dict.fromkeys(["0", "+0", "000", "0" * 400], "0"), "7": "7", "+007": "7",
        "18446744073709551615": "18446744073709551615", "0018446744073709551615": "18446744073709551615",
        "18446744073709551614": "18446744073709551614", "9223372036854775808": "9223372036854775808",
        **dict.fromkeys(["18446744073709551616", "-1", "-0", "1.0", "1.", ".5", "", " 1", "1e5"], "None"),
        **dict.fromkeys(["NaN", "9" * 38], "None"),
        **dict.fromkeys(["9" * 39, "9" * 400, "0" * 400 + "1", "+", "++1", "1\n", "\u0663", "0x1"], "None"),
    },
}  # fmt: skip


@cases("target", list(_READ_EXACTLY))
def test_texts_are_read_as_digits(target: str) -> None:
    texts, values = list(_READ_EXACTLY[target]), list(_READ_EXACTLY[target].values())
    with DuckDBEngine(open_source(pa.table({"s": texts})), threads=1) as engine:
        assert _values(engine, "data", f"CAST(s AS {target})") == values
        for text, value in _READ_EXACTLY[target].items():  # constants take another path
            if "\n" not in text and text.isascii():
                assert _values(engine, "data", f"CAST('{text}' AS {target})")[:1] == [value]


_ROUNDED = [
    *(
        "0.5",
        "0.4999999999",
        "-0.4999999999",
        "-0.5",
        "1.5",
        "2.5",
        "-1.5",
        "-0.0000000001",
        f"0.4{_MANY[1:]}",
    ),
    *("18446744073709551615.4", "18446744073709551615.5", "9223372036854775807.5", "9223372036854775808.5"),
    *(f"9223372036854775807.4{_MANY[1:]}", "-9223372036854775808.4", "-9223372036854775808.5"),
    *(_MANY, f"{_MANY}.{_MANY}", f"-{_MANY}.5"),
]


def _rounded(text: str, ends: tuple[int, int]) -> str:
    with localcontext(prec=200):
        whole = int(Decimal(text).to_integral_value(ROUND_HALF_UP))
    return str(whole) if ends[0] <= whole <= ends[1] else "None"


def test_digits_are_rounded_half_away_from_zero() -> None:
    with DuckDBEngine(open_source(pa.table({"s": list(_ROUNDED)})), threads=1) as engine:
        for target, ends in (("INT64", (-(2**63), 2**63 - 1)), ("UINT64", (0, 2**64 - 1))):
            expected = [_rounded(text, ends) for text in _ROUNDED]
            assert _values(engine, "data", f"CAST(CAST(s AS NUMERIC) AS {target})") == expected


@cases("target", list(_READ))
def test_texts_are_read_by_one_strict_rule(target: str) -> None:
    texts, values = list(_READ[target]), list(_READ[target].values())
    with DuckDBEngine(open_source(pa.table({"s": texts})), threads=1) as engine:
        assert _values(engine, "data", f"CAST(s AS {target})") == values


def test_joined_text_has_an_end(engine: DuckDBEngine) -> None:
    sixteen = f"'{'x' * 1024}'" + f" || '{'y' * 1024}'" * 15
    assert _values(engine, "one", f"LENGTH({sixteen})") == [str(1 << 14)]
    assert _values(engine, "one", f"LENGTH({sixteen} || 'z')") == ["None"]
    assert _values(engine, "one", f"LENGTH(CONCAT('z', {sixteen}))") == ["None"]
    assert _values(engine, "one", "('a' || 'b') || ('c' || LOWER('D' || 'E'))") == ["abcde"]


def test_nan_in_the_source_is_null(engine: DuckDBEngine) -> None:
    assert _values(engine, "one", "COALESCE(x, 5)") == ["5.0"]


def test_an_overgrown_expression_is_refused(engine: DuckDBEngine) -> None:
    text = "x"
    for _ in range(20):
        text = f"GREATEST({text}, 0)"
    with pytest.raises(UnsupportedSql, match="less nested"):
        _values(engine, "one", text)


def test_unknown_nodes_are_refused() -> None:
    tree = sqlglot.parse_one("SELECT RAND()", read="bigquery").expressions[0]
    with pytest.raises(UnsupportedSql, match="Rand"):
        render(Expression(tree, ColumnType.FLOAT), {}, DUCKDB)


@cases(
    ("text", "value"),
    [("-(2 + 3)", "-5"), ("-(0)", "0"), ("-(-(9223372036854775807))", "9223372036854775807")],
)
def test_minus_an_integer_is_zero_less_it(engine: DuckDBEngine, text: str, value: str) -> None:
    assert _values(engine, "one", text) == [value]
