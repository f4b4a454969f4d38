"""Spark computes what DuckDB computes, and moves by no more when one unit leaves."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

from sfumato.errors import EngineError, ParameterError, SchemaError, SourceError, UnsupportedSql
from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.relations import relation_layer
from sfumato.queries.engines.duckdb.dialect import DUCKDB, DuckDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.spark.dialect import SPARK, Spark
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.queries.plan.measure import Measure
from sfumato.queries.plan.query import AggregationJob, Column, ColumnType, Named, Scan
from sfumato.queries.sql.expressions.scalar import read_expression
from sfumato.queries.sql.parser import PrivateSql
from tests.chance import accepts_only, frequencies
from tests.queries.engines.compilation.test_expressions import (
    _READ,
    _READ_EXACTLY,
    _ROUNDED,
    EXPRESSIONS,
    _nasty,
    _Scope,
)
from tests.queries.engines.duckdb.test_engine import _column
from tests.queries.engines.measures import UNITS, mean, row_count, row_sum
from tests.queries.engines.test_neighbors import _answer, _job, _on, _table, _violations
from tests.queries.exact_numbers import Number, check, drawn, select
from tests.queries.one_order import rank_alike
from tests.queries.tables_in_spark import frame
from tests.run_time import run_time
from tests.spark import Cluster, Driver

pytestmark = pytest.mark.spark

_SECRET = bytes(range(32))
if run_time(__name__):
    _PUBLIC = pa.table({"name": pa.array(["a", "b", "a", None, "zz"])})
_ROWS = row_count(10**6)
_HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.caseSensitive": "true",
}
"""Settings under which Spark reads the same SQL in another way."""


@pytest.fixture(params=["classic", "connect"])
def session(request: pytest.FixtureRequest, spark: Driver) -> Any:
    return spark.session() if request.param == "classic" else spark.remote()


@pytest.fixture
def classic(spark: Driver) -> Any:
    return spark.session()


@pytest.fixture(params=[{}, _HOSTILE], ids=["as it comes", "otherwise"])
def settled(request: pytest.FixtureRequest, classic: Any) -> Iterator[Any]:
    """A session with settings of its user's."""
    before = {name: classic.conf.get(name) for name in request.param}
    for name, value in request.param.items():
        classic.conf.set(name, value)
    yield classic
    assert {name: classic.conf.get(name) for name in request.param} == request.param
    for name, value in before.items():
        classic.conf.set(name, value)


def _engine(session: Any, **tables: pa.Table) -> SparkEngine:
    return SparkEngine(SparkSource(session, {name: frame(session, t) for name, t in tables.items()}))


def _one(
    source: Any, session: Any, key: str | None, *measures: Measure, unit: str | None = "u", most: int = 100
) -> list[tuple[Any, ...]]:
    with SparkEngine(SparkSource(session, {"data": source})) as engine:
        schema = engine.schemas["data"]
        keys: tuple[Named, ...] = ()
        if key is not None:
            found = schema.find(key)
            assert found is not None
            assert found.type is not None
            keys = (Named(key, _column(key, found.type)),)
        job = AggregationJob(Scan("data", schema, unit), keys, measures, most if keys else None, None, None)
        engine.check(job)
        return [tuple(row.values()) for row in engine.aggregate(job, _SECRET).to_pylist()]


def test_answers_are_those_of_duckdb(spark: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    _compare(1, 5, spark.remote(), monkeypatch)


def test_answers_of_a_cluster_are_those_of_duckdb(
    spark_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups and units are spread over executors here, whose parts come together."""
    _compare(1, 5, spark_cluster.session(), monkeypatch)


@pytest.mark.parametrize("seed", range(2, 6))
def test_more_answers_are_those_of_duckdb(seed: int, settled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _compare(
        seed + (4 if settled.conf.get("spark.sql.ansi.enabled") == "false" else 0), 5, settled, monkeypatch
    )


def _compare(seed: int, jobs: int, session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rank_alike(monkeypatch, DuckDB, Spark)
    draw = random.Random(seed)
    table = _table(draw)
    sources = open_source({"data": table, "public": _PUBLIC})
    with (
        DuckDBEngine(sources, threads=1) as duckdb,
        _engine(session, data=table, public=_PUBLIC) as spark,
    ):
        assert spark.schema_text == duckdb.schema_text
        for _ in range(jobs):
            job, secret = _job(draw, duckdb.schemas["data"]), draw.randbytes(32)
            spark.check(job)
            assert spark.aggregate(job, secret).equals(duckdb.aggregate(job, secret)), job


def test_all_rows_of_a_unit_are_bounded_together(classic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rank_alike(monkeypatch, DuckDB, Spark)
    draw = random.Random(4)
    rows = 300
    table = pa.table({
        "u": [draw.choice([1, 1, 2, 3, 4, 5]) for _ in range(rows)],
        "k": [draw.choice(["a", "b", None]) for _ in range(rows)],
        "x": [draw.choice([0.5, 2.0, -7.25, None]) for _ in range(rows)],
    })  # fmt: skip
    key, x = Named("k", _column("k", ColumnType.TEXT)), _column("x", ColumnType.FLOAT)
    measures = (row_count(3), row_sum(x, -4, -30, 30, -10, 10))
    with DuckDBEngine(open_source({"data": table})) as duckdb, _engine(classic, data=table) as spark:
        scan = Scan("data", spark.schemas["data"], "u")
        job = AggregationJob(scan, (key,), measures, None, None, None, max_rows_contributed=3)
        answer = spark.aggregate(job, _SECRET)
        assert answer.equals(duckdb.aggregate(job, _SECRET))
        assert sum(answer["m0"].to_pylist()) == 5 * 3


def _fuzz(seed: int, session: Any, jobs: int) -> list[str]:
    """Draw a table, take one unit out, and return the violations of random jobs."""
    draw = random.Random(seed)
    table = _table(draw)
    units = table["u"].to_pylist()
    gone = draw.choice(units) if units else None
    stays = [not (unit == gone or (unit != unit and gone != gone)) for unit in units]  # noqa: PLR0124
    less = table.filter(pa.array(stays, pa.bool_()))
    found = []
    with _engine(session, data=table, less=less, public=_PUBLIC) as engine:
        for _ in range(jobs):
            job = _job(draw, engine.schemas["data"])
            while job.relation.unit is None:
                job = _job(draw, engine.schemas["data"])
            secret = draw.randbytes(32)
            rest = replace(job, relation=_on(job.relation, "less"))
            found += _violations(job, *(_answer(engine, each, secret) for each in (job, rest)))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_one_unit_moves_no_answer_by_more_than_declared(seed: int, classic: Any) -> None:
    assert _fuzz(seed, classic, 3) == []


@pytest.mark.parametrize(
    ("method", "broken"),
    [
        ("rank", lambda self, words, columns: "(row_number() OVER (ORDER BY rand(7)))"),
        ("clamped", lambda self, column, bounds, known=None: f"CAST({column} AS BIGINT)"),
    ],
)
def test_the_fuzz_catches_what_is_broken(
    method: str, broken: Any, classic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spark, method, broken)
    assert any(_fuzz(seed, classic, 4) for seed in range(20))


def _form(value: Any) -> Any:
    """A value that differs wherever values do: NaN is one, and zeros have no sign."""
    return repr(value + 0.0) if isinstance(value, float) else value


def _near(one: Any, other: Any) -> bool:
    """Floats may differ in the last digit: libraries compute exponentials and powers in their own ways."""
    if isinstance(one, float) and isinstance(other, float) and math.isfinite(one):
        return math.isclose(one, other, rel_tol=1e-14, abs_tol=1e-320)
    return bool(_form(one) == _form(other))


def _select(engine: Any, dialect: Any, texts: list[str]) -> str:
    schema = engine.schemas["all"]
    layer = relation_layer(Scan("all", schema, None), engine._tables, dialect)
    items = [f"{layer.columns['row'].sql} AS line"]
    for at, text in enumerate(texts):
        tree = sqlglot.parse_one(f"SELECT {text}", read=PrivateSql()).expressions[0]
        expression = read_expression(tree, _Scope(schema), "x")
        items.append(f"{render(expression, layer.columns, dialect)} AS e{at}")
    return f"SELECT {', '.join(items)} FROM ({layer.sql}) AS r"


def _values(table: pa.Table) -> dict[str, list[Any]]:
    return dict(table.sort_by("line").to_pydict())


@pytest.mark.parametrize(
    ("stored", "settled"),
    [("in a file", {}), ("in a file", _HOSTILE), ("in memory", _HOSTILE)],
    indirect=["settled"],
    ids=["in a file as it comes", "in a file otherwise", "in memory otherwise"],
)
def test_expressions_have_the_values_of_duckdb(stored: str, settled: Any, tmp_path: Path) -> None:
    """Rows in memory are computed while planning, rows of a file by generated code."""
    table = _nasty().append_column("row", pa.array(range(193)))
    texts = [text for text in EXPRESSIONS if text != "CAST(x AS STRING)"]
    source: Any = frame(settled, table)
    if stored == "in a file":
        source.write.parquet(str(tmp_path / "nasty"))
        source = tmp_path / "nasty"
    with (
        DuckDBEngine(open_source({"all": table}), threads=1) as duckdb,
        SparkEngine(SparkSource(settled, {"all": source})) as spark,
    ):
        with pytest.raises(UnsupportedSql, match="INT64"):
            _select(spark, SPARK, ["CAST(x AS STRING)"])
        for start in range(0, len(texts), 55):
            some = texts[start : start + 55]
            here = _values(settled.sql(_select(spark, SPARK, some)).toArrow())
            there = _values(duckdb._connection.sql(_select(duckdb, DUCKDB, some)).to_arrow_table())
            for at, text in enumerate(some):
                for one, other, s in zip(
                    here[f"e{at}"], there[f"e{at}"], table["s"].to_pylist(), strict=True
                ):
                    # Java writes the capital of a sharp s as two letters
                    assert _near(one, other) or (text == "UPPER(s)" and "ß" in s), text


def test_texts_are_read_by_the_rule_of_all_engines(settled: Any) -> None:
    texts = sorted({*_ROUNDED, *(text for each in (_READ | _READ_EXACTLY).values() for text in each)})
    table = pa.table({"s": texts, "row": range(len(texts))})
    casts = [f"SAFE_CAST(s AS {type_})" for type_ in _READ | _READ_EXACTLY]
    casts += [f"SAFE_CAST(SAFE_CAST(s AS NUMERIC) AS {type_})" for type_ in ("INT64", "FLOAT64", "UINT64")]
    with DuckDBEngine(open_source({"all": table})) as duckdb, _engine(settled, all=table) as spark:
        here = _values(settled.sql(_select(spark, SPARK, casts)).toArrow())
        there = _values(duckdb._connection.sql(_select(duckdb, DUCKDB, casts)).to_arrow_table())
    assert here == there
    assert sum(value is not None for name, values in here.items() if name != "line" for value in values) > 20


_AWKWARD = [
    "it's",
    'say "no"',
    "back\\slash",
    "new\nline",
    "${spark.master}",
    "`",
    "%_",
    "é漢",
    "--",
    "/*",
    "",
]


def test_literals_and_names_mean_themselves(settled: Any) -> None:
    names = ["row", "it's", "a b", "${spark.master}", "`tick`", 'quo"te', "Ünï", "back\\slash", "select"]
    columns = {"row": list(range(len(_AWKWARD)))} | dict.fromkeys(names[1:], _AWKWARD)
    table = pa.table(columns)
    with _engine(settled, all=table) as engine:
        assert [column.name for column in engine.schemas["all"].columns] == names
        layer = relation_layer(Scan("all", engine.schemas["all"], None), engine._tables, SPARK)
        items = [f"{layer.columns['row'].sql} AS line"]
        for at, value in enumerate(_AWKWARD):
            tests = [f"{layer.columns[name.casefold()].sql} = {SPARK.text(value)}" for name in names[1:]]
            items.append(f"{' AND '.join(tests)} AS e{at}")
        found = _values(settled.sql(f"SELECT {', '.join(items)} FROM ({layer.sql}) AS r").toArrow())
    for at in range(len(_AWKWARD)):
        assert found[f"e{at}"] == [line == at for line in range(len(_AWKWARD))], _AWKWARD[at]


@pytest.mark.parametrize(
    ("type_", "values", "distinct"),
    [
        ("BIGINT", ["1", "1", "2", None], 2),
        ("SMALLINT", ["1", "-1", "2", None], 3),
        ("DECIMAL(38, 2)", ["1.00", "1", "1.01", None], 2),
        ("DOUBLE", ["0.0", "-0.0", "NaN", None, "Infinity"], 2),
        ("FLOAT", ["0.0", "-0.0", "NaN", None, "1.5"], 2),
        ("STRING", ["a", "A", "a ", "é", None], 4),
        ("STRING COLLATE UTF8_LCASE", ["a", "A", "b", None], 3),
        ("STRING COLLATE UNICODE_CI_AI", ["e", "é", "E", None], 3),
        ("DATE", ["2024-01-01", "2024-01-01", "+20240-01-01", "-0044-03-15"], 3),
        ("TIMESTAMP_LTZ", ["2024-01-01 00:00:00+01:00", "2023-12-31 23:00:00Z", None], 1),
        ("TIMESTAMP_NTZ", ["2024-01-01 00:00:00", "2024-01-01 00:00:00", None], 1),
        ("BOOLEAN", ["true", "false", "true", None], 2),
    ],
)
def test_units_are_told_apart_as_they_are_stored(
    type_: str, values: list[Any], distinct: int, classic: Any
) -> None:
    """Each unit keeps one of three groups, so a unit taken for two would count twice."""
    texts = classic.createDataFrame([(v, k) for v in values for k in range(3)], "v STRING, k INT")
    source = texts.selectExpr(f"CAST(v AS {type_}) AS u", "k")
    assert sum(row[1] for row in _one(source, classic, "k", UNITS, most=1)) == distinct


def test_columns_have_standard_types(settled: Any) -> None:
    rows = settled.createDataFrame(
        [
            (1, "12345678901234567890.5", 0.1, "2024-01-01", b"\xffa", "2024-01-01 00:00:00+02:00"),
            (2, "1.5", math.nan, "+10000-01-01", "é".encode(), "+10000-01-01 00:00:00Z"),
            (3, None, -math.inf, "-0001-01-01", b"", "0000-12-31 23:59:59Z"),
            (4, "-0.5", None, "9999-12-31", None, "9999-12-31 23:59:59.999999Z"),
        ],
        "u INT, n STRING, r FLOAT, d STRING, b BINARY, t STRING",
    ).selectExpr(
        "u",
        "CAST(n AS DECIMAL(30, 3)) AS n",
        "r",
        "CAST(d AS DATE) AS d",
        "b",
        "CAST(t AS TIMESTAMP_LTZ) AS t",
    )
    source = rows.selectExpr("u", "n", "r", "d", "CAST(b AS STRING) AS s", "t", "b", "array(u) AS a")
    with SparkEngine(SparkSource(settled, {"data": source})) as engine:
        assert engine.schemas["data"].columns == (
            Column("u", ColumnType.INTEGER), Column("n", ColumnType.DECIMAL), Column("r", ColumnType.FLOAT),
            Column("d", ColumnType.DATE), Column("s", ColumnType.TEXT), Column("t", ColumnType.TIMESTAMP),
            Column("b", None), Column("a", None, element=ColumnType.INTEGER),
        )  # fmt: skip
    digits = [("-0.5", 1), ("1.5", 1), ("12345678901234567890.5", 1), (None, 1)]
    assert _one(source, settled, "n", _ROWS) == digits
    assert _one(source, settled, "r", _ROWS) == [(-math.inf, 1), (0.10000000149011612, 1), (None, 2)]
    assert _one(source, settled, "d", _ROWS) == [
        (dt.date(2024, 1, 1), 1), (dt.date(9999, 12, 31), 1), (None, 2)
    ]  # fmt: skip
    assert _one(source, settled, "s", _ROWS) == [("", 1), ("é", 1), (None, 2)]
    assert _one(source, settled, "t", _ROWS) == [
        (dt.datetime(2023, 12, 31, 22), 1), (dt.datetime(9999, 12, 31, 23, 59, 59, 999999), 1), (None, 2)
    ]  # fmt: skip


_DIGITS = [(1, 0), (9, 2), (15, 0), (15, 15), (16, 1), (18, 0), (18, 3), (19, 0), (38, 0), (38, 10), (38, 38)]
_NUMBERS = {
    **{name: Number.of_bits(bits) for name, bits in (("TINYINT", 8), ("INT", 32), ("BIGINT", 64))},
    **{f"DECIMAL({digits},{scale})": Number.of_digits(digits, scale) for digits, scale in _DIGITS},
}


@pytest.mark.parametrize(
    ("stored", "settled"),
    [("in a file", {}), ("in a file", _HOSTILE), ("in memory", _HOSTILE)],
    indirect=["settled"],
    ids=["in a file as it comes", "in a file otherwise", "in memory otherwise"],
)
def test_every_number_is_carried_and_cast_exactly(stored: str, settled: Any, tmp_path: Path) -> None:
    rows = drawn(_NUMBERS, random.Random(5))
    texts = {type_: [None if v is None else f"{v:f}" for v in values] for type_, values in rows.items()}
    frame_ = settled.createDataFrame(
        pa.table(
            {
                "line": range(len(texts["INT"])),
                **{f"t{at}": pa.array(v) for at, v in enumerate(texts.values())},
            }
        )
    )
    items = [f"CAST(t{at} AS {type_}) AS v{at}" for at, type_ in enumerate(texts)]
    source: Any = frame_.selectExpr("CAST(line AS INT) AS line", *items)
    if stored == "in a file":
        source.write.parquet(str(tmp_path / "numbers"))
        source = tmp_path / "numbers"
    with SparkEngine(SparkSource(settled, {"data": source})) as engine:
        sql, which = select(engine._tables["data"], SPARK)
        found = settled.sql(sql).toArrow()
        got = [found[name].to_pylist() for name in found.column_names[1:]]
        check(
            engine._tables["data"], which, got, {f"v{at}": values for at, values in enumerate(rows.values())}
        )


def test_the_fingerprint_of_decimals_is_that_of_any_settings(classic: Any) -> None:
    """Outside of ANSI mode Spark writes them with an exponent."""
    text = "SELECT CAST('0.0000001' AS DECIMAL(30, 10)) AS a, CAST('1e-9' AS DECIMAL(12, 12)) AS b"
    found = set()
    before = classic.conf.get("spark.sql.ansi.enabled")
    try:
        for mode in ("true", "false"):
            classic.conf.set("spark.sql.ansi.enabled", mode)
            with SparkEngine(SparkSource(classic, {"data": classic.sql(text)})) as engine:
                found.add(engine.fingerprint(b"key"))
    finally:
        classic.conf.set("spark.sql.ansi.enabled", before)
    assert len(found) == 1


def test_sums_are_exact_beyond_what_floats_hold(settled: Any) -> None:
    values = [2**60 + 1, 2**60 + 3, -(2**61) - 5, 7]
    source = frame(settled, pa.table({"u": [1] * 4, "i": values}))
    measure = row_sum(_column("i", ColumnType.INTEGER), 0, -(2**62), 2**62)
    assert _one(source, settled, None, measure) == [(sum(values),)]
    assert _one(source, settled, None, measure, unit=None) == [(sum(values),)]
    large = frame(settled, pa.table({"u": list(range(6)), "i": [2**62] * 6}))
    assert _one(large, settled, None, measure) == [(2**62,)]
    low = frame(settled, pa.table({"u": list(range(6)), "i": [-(2**62)] * 6}))
    assert _one(low, settled, None, measure) == [(-(2**62),)]


def test_sums_that_leave_64_bits_are_never_used(settled: Any) -> None:
    """A unit whose rows overflow, beside the limit on rows that makes sums narrow."""
    table = pa.table({"u": [1] * 6 + [2], "i": [2**62] * 6 + [5]})
    measure = mean(_column("i", ColumnType.INTEGER), 0, 0, 2**40, 0, 2**50)
    with _engine(settled, data=table) as engine:
        job = AggregationJob(Scan("data", engine.schemas["data"], "u"), (), (measure, UNITS), None, 2, None)
        assert engine.aggregate(job, _SECRET).to_pylist() == [{"m0": 2**40 + 5, "m1": 2}]


def test_an_empty_table_gives_one_row_without_keys_and_none_with(classic: Any) -> None:
    source = frame(classic, pa.table({"u": pa.array([], pa.int64()), "k": pa.array([], pa.string())}))
    assert _one(source, classic, None, UNITS, _ROWS) == [(0, 0)]
    assert _one(source, classic, "k", UNITS) == []


def test_every_group_and_row_has_the_same_chance(classic: Any) -> None:
    """Of 2000 units each keeps 1 of 8 groups and 1 of 8 rows."""
    units, keys = 2000, 8
    source = classic.range(units * keys).selectExpr(
        f"id div {keys} AS u", f"concat('key ', id % {keys}) AS k", f"CAST(id % {keys} AS DOUBLE) AS x"
    )
    with SparkEngine(SparkSource(classic, {"data": source})) as engine:
        scan = Scan("data", engine.schemas["data"], "u")
        key = Named("k", _column("k", ColumnType.TEXT))
        job = AggregationJob(scan, (key,), (UNITS,), 1, None, None)
        by_key = engine.aggregate(job, _SECRET)["m0"].to_pylist()
        x = _column("x", ColumnType.FLOAT)
        sums = (row_sum(x, 0, v, v + 1, v, v + 1) for v in range(keys - 1))
        job = AggregationJob(scan, (), (UNITS, *sums), None, 1, None)
        row = engine.aggregate(job, _SECRET).to_pylist()[0]
    above = [row[f"m{v + 1}"] - v * units for v in range(keys - 1)]
    by_row = [a - b for a, b in zip([units, *above], [*above, 0], strict=True)]
    for counts in (by_key, by_row):
        assert sum(counts) == units
        first = {place: 1 / 16 if place else 9 / 16 for place in range(keys)}
        one_less = {place: 1 / 7 if place else 0 for place in range(keys)}
        even = dict.fromkeys(range(keys), 1 / keys)
        found = frequencies(dict(enumerate(counts)))
        accepts_only(found, even, mostly_the_first=first, never_the_first=one_less)


def test_the_fingerprint_is_of_the_rows_in_any_order(classic: Any, tmp_path: Path) -> None:
    rows = [
        (1, "a", 0.5, None),
        (2, None, math.nan, dt.date(2024, 1, 1)),
        (2, "a", -0.0, None),
        (1, "a", 0.5, None),
    ]

    def of(rows: list[tuple[Any, ...]], key: bytes = b"k" * 32, parts: int = 1) -> str:
        source = classic.createDataFrame(rows, "u INT, s STRING, x DOUBLE, d DATE").repartition(parts)
        with SparkEngine(SparkSource(classic, {"data": source})) as engine:
            made: str = engine.fingerprint(key)
            assert len(bytes.fromhex(made)) == 32
            return made

    first = of(rows)
    assert of(rows[::-1], parts=3) == first
    others = [
        of(rows, b"l" * 32), of(rows[:2]), of(rows[1:]), of([*rows, rows[0]]), of([]),
        of([(1, "b", 0.5, None), *rows[1:]]), of([(1, "a", 0.25, None), *rows[1:]]),
        of([(1, None, 0.5, None), *rows[1:]]), of([(1, "a", 0.5, dt.date(1970, 1, 1)), *rows[1:]]),
    ]  # fmt: skip
    assert len({first, *others}) == len(others) + 1
    pq.write_table(pa.table({"a": ["x", "1:y"], "b": ["1:y", "x"]}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"a": ["x", "x"], "b": ["1:y", "1:y"]}), tmp_path / "two.parquet")
    marks = set()
    for name in ("one", "two"):
        with SparkEngine(SparkSource(classic, {"data": tmp_path / f"{name}.parquet"})) as engine:
            marks.add(engine.fingerprint(b"k" * 32))
    assert len(marks) == 2


def _left(session: Any) -> list[str]:
    return [table.name for table in session.catalog.listTables() if table.name.startswith("sfumato")]


def test_a_failure_says_nothing_and_leaves_nothing(
    session: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"u": [1, 2], "k": ["marzipan", "b"]}), path)
    with SparkEngine(SparkSource(session, {"data": path})) as engine:
        scan = Scan("data", engine.schemas["data"], "u")
        key = Named("k", _column("k", ColumnType.TEXT))
        job = AggregationJob(scan, (key,), (UNITS, _ROWS), 1, 1, None)
        pq.write_table(pa.table({"u": ["marzipan", "b"], "k": [1, 2]}), path)
        capfd.readouterr()
        with pytest.raises(EngineError, match="the charge stays") as failure:
            engine.aggregate(job, _SECRET)
        assert "marzipan" not in str(failure.value)
        assert failure.value.__cause__ is None
        assert failure.value.__context__ is None
        with pytest.raises(SourceError, match="connect again"):
            engine.fingerprint(b"k" * 32)
        assert capfd.readouterr() == ("", "")
        assert len(_left(session)) == 1
    assert _left(session) == []


def test_a_session_that_is_lost_is_told_from_a_query_that_is_refused(spark: Driver) -> None:
    session = spark.new_remote()
    engine = _engine(session, data=pa.table({"u": [1, 2]}))
    job = AggregationJob(Scan("data", engine.schemas["data"], "u"), (), (UNITS,), None, None, None)
    engine.check(job)
    session.stop()
    with pytest.raises(SourceError, match="nothing was charged"):
        engine.check(job)
    with pytest.raises(SourceError, match="nothing was charged"):
        engine.fingerprint(b"k" * 32)
    with pytest.raises(EngineError, match="the charge stays"):
        engine.aggregate(job, _SECRET)
    engine.close()


def test_bad_input_is_refused(spark: Driver, session: Any, tmp_path: Path) -> None:
    one = session.range(3).selectExpr("id AS u", "id AS x")
    for source in (
        {"data": "no_such_table"}, {"data": tmp_path / "none.parquet"}, {"data": 3}, {}, {"": one}, {7: one},
        {"data": one.selectExpr("u", "x AS U")}, {"data": one, "DATA": one}, {"data": one.select()},
    ):  # fmt: skip
        with pytest.raises(SourceError):
            SparkSource(session, source)  # type: ignore[arg-type]
    other = spark.remote() if session is spark.session() else spark.session()
    with pytest.raises(SourceError, match="belong to the session"):
        SparkSource(session, {"data": other.range(3)})
    with pytest.raises(ParameterError, match="same session"):
        SparkEngine(SparkSource(session, {"data": one}), SparkSource(other, {"public": other.range(3)}))
    with SparkEngine(SparkSource(session, {"data": one})) as engine:
        scan = Scan("data", engine.schemas["data"], "u")
        with pytest.raises(ParameterError, match="16 bytes"):
            engine.aggregate(AggregationJob(scan, (), (UNITS,), None, None, None), b"short")
        key = Named("x", _column("x", ColumnType.INTEGER))
        with pytest.raises(ParameterError, match="max_groups_contributed"):
            engine.check(AggregationJob(scan, (key,), (UNITS,), None, None, None))
        wrong = Named("x", _column("x", ColumnType.DATE))
        with pytest.raises(SchemaError, match="simplify"):
            engine.check(AggregationJob(scan, (wrong,), (UNITS,), 1, None, None))
    engine.close()
    with pytest.raises(SchemaError, match="simplify"):  # its tables are gone
        engine.check(AggregationJob(scan, (), (UNITS,), None, None, None))
