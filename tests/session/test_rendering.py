"""Queries as text for other databases: golden files, their syntax, and what they compute where they can run.

``SFUMATO_GOLDEN=write pytest tests/session/test_rendering.py`` writes the files anew: read them, then commit.
"""

from __future__ import annotations

import datetime as dt
import decimal
import os
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from sfumato.errors import ParameterError, SchemaError, UnsupportedSql
from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.relations import relation_layer
from sfumato.queries.engines.dialects.base import Dialect, StoredColumn, StoredTable
from sfumato.queries.engines.dialects.bigquery import BIGQUERY, BigQuery
from sfumato.queries.engines.dialects.snowflake import SNOWFLAKE, Snowflake
from sfumato.queries.engines.duckdb.dialect import DUCKDB, DuckDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import ColumnType, Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from sfumato.queries.sql.expressions.scalar import read_expression
from sfumato.queries.sql.parser import PrivateSql
from sfumato.session.rendering import DIALECTS, render_sql
from sfumato.session.units import ROW
from tests.cases import cases
from tests.queries.engines.compilation.test_expressions import EXPRESSIONS, _nasty, _Scope
from tests.queries.exact_numbers import Number, check, drawn, select
from tests.queries.one_order import rank_alike, rank_by_sql

_GOLDEN = Path(__file__).parent / "golden"
_SECRET = bytes(range(32))
_CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, {}) "
_TYPES = {
    "bigquery": ["INT64", "STRING", "FLOAT64", "INT64", "DATE", "TIMESTAMP", "BOOL", "STRING"],
    "snowflake": [
        "NUMBER(38,0)",
        "VARCHAR",
        "FLOAT",
        "NUMBER(18,0)",
        "DATE",
        "TIMESTAMP_NTZ",
        "BOOLEAN",
        "TEXT",
    ],
    "postgres": ["int8", "text", "float8", "int4", "date", "timestamp", "bool", "varchar"],
    "duckdb": ["BIGINT", "VARCHAR", "DOUBLE", "BIGINT", "DATE", "TIMESTAMP", "BOOLEAN", "VARCHAR"],
}
_NASTY = {
    **dict.fromkeys("ij", ColumnType.INTEGER),
    **dict.fromkeys("xy", ColumnType.FLOAT),
    **dict.fromkeys("st", ColumnType.TEXT),
    **dict.fromkeys("de", ColumnType.DATE),
    **dict.fromkeys("mn", ColumnType.TIMESTAMP),
    "b": ColumnType.BOOLEAN,
}
_NAMES = ["person", "state", "income", "age", "day", "seen", "well", "note"]
CASES = {
    "count": ("max_groups_contributed=2", "state, COUNT(*) AS n FROM people GROUP BY state"),
    "sums": (
        "max_groups_contributed=1, max_rows_per_group=2",
        """ROUND(income) AS k, SUM(income, contribution_bounds_per_row => (0, 100)) AS s,
        AVG(age, contribution_bounds_per_group => (0, 100)) AS a FROM people WHERE age >= 18 GROUP BY k""",
    ),
    "total": (
        "max_rows_per_group=3",
        "VAR_POP(income, contribution_bounds_per_row => (0, 64)) AS v, COUNT(*) AS n FROM people",
    ),
    "public": (
        "max_groups_contributed=1, group_selection_strategy=PUBLIC_GROUPS",
        """state, COUNT(*) AS n FROM people RIGHT JOIN UNNEST(['CA', 'N"Y\\'']) AS k ON state = k
        GROUP BY state""",
    ),
    "moments": (
        "max_groups_contributed=1",
        """DATE_TRUNC(day, MONTH) AS k, COUNT(*) AS n FROM people
        WHERE CAST(note AS DATE) < day AND EXTRACT(HOUR FROM seen) > 8 AND well GROUP BY k""",
    ),
}  # fmt: skip


def _columns(dialect: str) -> dict[str, dict[str, str]]:
    return {"people": dict(zip(_NAMES, _TYPES[dialect], strict=True))}


def _render(dialect: str, case: str) -> tuple[str, ...]:
    options, select = CASES[case]
    return render_sql(
        _CLAUSE.format(options) + select,
        dialect,
        tables=_columns(dialect),
        privacy_unit="person",
        places={"people": "shop.raw.people"} if dialect in ("bigquery", "snowflake") else None,
        secret=_SECRET,
    )


@cases("case", CASES)
@cases("dialect", ["bigquery", "snowflake"])
def test_the_text_is_the_golden_one(dialect: str, case: str) -> None:
    (text,) = _render(dialect, case)
    file = _GOLDEN / dialect / f"{case}.sql"
    if os.environ.get("SFUMATO_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == file.read_text(encoding="utf-8")


@cases("case", CASES)
@cases("dialect", DIALECTS)
def test_the_text_is_one_select_of_its_dialect(dialect: str, case: str) -> None:
    for text in _render(dialect, case):
        (tree,) = sqlglot.parse(text, read=dialect)
        assert isinstance(tree, exp.Select)
        tables = {table.name for table in tree.find_all(exp.Table)} - {cte.alias for cte in tree.ctes}
        assert tables == {"people"}


@pytest.mark.parametrize("made", [BIGQUERY, SNOWFLAKE])
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_every_expression_has_a_text(made: Dialect, text: str) -> None:
    if text == "MOD(x, y)":
        with pytest.raises(UnsupportedSql, match="INT64"):
            _expression(text, made, _stored(made))
    else:
        assert len(sqlglot.parse(_expression(text, made, _stored(made)), read=made.name)) == 1


def _stored(made: Dialect) -> StoredTable:
    types = dict(zip(ColumnType, _by_type(made.name), strict=True))
    return StoredTable("t0", tuple(StoredColumn(name, types[type_], type_) for name, type_ in _NASTY.items()))


def _expression(text: str, made: Dialect, table: StoredTable) -> str:
    schema = table.schema
    tree = sqlglot.parse_one(f"SELECT {text}", read=PrivateSql()).expressions[0]
    layer = relation_layer(Scan("data", schema, None), {"data": table}, made)
    expression = read_expression(tree, _Scope(schema), "x")
    return f"SELECT {render(expression, layer.columns, made)} FROM ({layer.sql}) AS r"


def _by_type(dialect: str) -> list[str]:
    types = _TYPES[dialect]
    exact = {"bigquery": "BIGNUMERIC", "snowflake": "NUMBER(38,0)"}[dialect]
    return [types[6], types[0], types[2], types[1], types[4], types[5], exact]


def _table() -> pa.Table:
    count = 400
    return pa.table({
        "person": [i % 37 for i in range(count)],
        "state": [["CA", "NY", 'N"Y\'', None][(i * i) % 4] for i in range(count)],
        "income": [[0.0, 12.5, 99.0, 1e9, float("nan"), None, 0.00390625][(i * 3) % 7] for i in range(count)],
        "age": [i % 90 for i in range(count)],
        "day": [dt.date(2024, 1 + i % 12, 1 + i % 28) for i in range(count)],
        "seen": [dt.datetime(2024, 1, 1, i % 24) for i in range(count)],
        "well": [i % 5 > 0 for i in range(count)],
        "note": [["2023-05-06", "x", "2025-01-01"][i % 3] for i in range(count)],
    })  # fmt: skip


def _engine(case: str) -> pa.Table:
    options, select = CASES[case]
    with DuckDBEngine(open_source({"people": _table()}), threads=1) as engine:
        catalog = Catalog({"people": Scan("people", engine.schemas["people"], "person")})
        return engine.aggregate(price(read(_CLAUSE.format(options) + select, catalog)).job, _SECRET)


def _run(text: str) -> list[tuple[Any, ...]]:
    people = _table()
    with duckdb.connect() as connection:
        connection.register("people", people)
        connection.execute("SET TimeZone = 'UTC'")
        for name, body in _MACROS.items():
            connection.execute(f"CREATE MACRO {name}(a, b) AS {body}")
        return connection.execute(text).fetchall()


@pytest.mark.parametrize("case", CASES)
def test_one_statement_computes_what_the_engine_does_in_steps(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank_by_sql(monkeypatch)
    (text,) = _render("duckdb", case)
    expected = [tuple(row.values()) for row in _engine(case).to_pylist()]
    assert _run(text) == expected


@pytest.mark.parametrize("case", ["count", "sums", "total", "public"])
@pytest.mark.parametrize(("dialect", "kind"), [("bigquery", BigQuery), ("snowflake", Snowflake)])
def test_read_by_sqlglot_they_compute_the_same(
    dialect: str, kind: type[BigQuery | Snowflake], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A translation of the text to DuckDB, by another hand, gives the engine's integers."""
    rank_alike(monkeypatch, DuckDB, kind)
    (text,) = _render(dialect, case)
    (translated,) = sqlglot.transpile(
        text.replace("shop", "memory").replace("raw", "main"), read=dialect, write="duckdb"
    )
    expected = [tuple(row.values()) for row in _engine(case).to_pylist()]
    assert _run(translated) == expected


_TRANSLATABLE = """
i - j; -i; MOD(i, j); x + y; x - y; x * y; x / y; -x; i / j; x > i; x = x; s = t; b = (i > 0); s LIKE 'a%'
CASE WHEN i > 0 THEN i ELSE x END; COALESCE(i, j, 3); NULLIF(x, 0.5); GREATEST(i, j); LEAST(x, i, 5)
SIGN(i); SIGN(x); ROUND(x); FLOOR(x); CEIL(i); CEIL(x); SQRT(x); EXP(x); LN(x); LOG10(x); LOWER(s); TRIM(s)
SUBSTR(s, 2, 1000000); STARTS_WITH(s, t); CAST(i AS STRING); CAST(x AS INT64); CAST(i AS FLOAT64)
CAST(s AS INT64); CAST(s AS FLOAT64); CAST(s AS BOOL); CAST(s AS DATE); CAST(m AS DATE); CAST(d AS STRING)
CAST(x AS STRING); CAST(b AS INT64); CAST(i AS BOOL); CAST(b AS STRING); EXTRACT(QUARTER FROM d)
EXTRACT(DAYOFYEAR FROM d); EXTRACT(SECOND FROM m); DATE_TRUNC(d, MONTH); TIMESTAMP_TRUNC(m, HOUR)
DATE_ADD(d, INTERVAL 1 MONTH); DATE_DIFF(d, DATE '2000-01-01', DAY); i IN (1, 2, 3); s || t
CAST(i AS NUMERIC); CAST(s AS NUMERIC); CAST(i AS UINT64); CAST(CAST(s AS NUMERIC) AS INT64)
CAST(s AS UINT64); CAST(CAST(i AS NUMERIC) AS UINT64)
"""
_MACROS = {
    "safe_add": "TRY(a + b)",
    "safe_subtract": "TRY(a - b)",
    "safe_multiply": "TRY(a * b)",
    "ieee_divide": "a / b",
}
"""What sqlglot does not translate."""


@pytest.mark.parametrize("made", [BIGQUERY, SNOWFLAKE])
def test_expressions_read_by_sqlglot_have_the_engines_values(made: Dialect) -> None:
    texts = [text.strip() for line in _TRANSLATABLE.strip().splitlines() for text in line.split(";")]
    with DuckDBEngine(open_source({"data": _nasty()}), threads=1) as engine:
        connection = engine._connection
        for name, body in _MACROS.items():
            connection.execute(f"CREATE MACRO {name}(a, b) AS {body}")
        connection.execute("CREATE MACRO byte_length(a) AS strlen(a)")
        connection.execute("CREATE MACRO try_to_timestamp_tz(a) AS TRY_CAST(a AS TIMESTAMPTZ)")
        connection.execute("CREATE MACRO try_to_timestamp_ntz(a) AS TRY_CAST(a AS TIMESTAMP)")
        for text in texts:
            own = _expression(text, DUCKDB, engine._tables["data"])
            other = sqlglot.transpile(_expression(text, made, _stored(made)), read=made.name, write="duckdb")[
                0
            ]
            values = [
                [_number(row[0]) for row in connection.execute(sql).fetchall()]
                for sql in (own, other.replace("OCTET_LENGTH(", "STRLEN("))
            ]
            assert values[0] == values[1], text


_NUMBERS = {"a": Number.of_digits(38, 0), "b": Number.of_digits(38, 10), "c": Number.of_digits(15, 2)}


@pytest.mark.parametrize(
    ("made", "types"),
    [
        (BIGQUERY, ["BIGNUMERIC", "BIGNUMERIC(38, 10)", "NUMERIC(15, 2)"]),
        (SNOWFLAKE, ["NUMBER", "NUMBER(38,10)", "DECIMAL(15, 2)"]),
    ],
)
def test_numbers_read_by_sqlglot_are_carried_exactly(made: Dialect, types: list[str]) -> None:
    rows = drawn(_NUMBERS, random.Random(3))
    table = StoredTable(
        "data",
        (
            StoredColumn("line", "INT", ColumnType.INTEGER),
            *(
                StoredColumn(name, type_, made.column_type(type_))
                for name, type_ in zip("abc", types, strict=True)
            ),
        ),
    )
    sql, which = select(table, made)
    # sqlglot's decimal in the place of BIGNUMERIC has too few digits before the point
    sql = sql.replace("AS BIGNUMERIC)", "AS INT128)")
    (translated,) = sqlglot.transpile(sql, read=made.name, write="duckdb")
    texts = {
        name: pa.array([None if v is None else f"{v:f}" for v in values]) for name, values in rows.items()
    }
    with duckdb.connect() as connection:
        connection.register("texts", pa.table({"line": range(len(rows["a"])), **texts}))
        connection.execute(
            "CREATE TABLE data AS SELECT line, CAST(a AS DECIMAL(38, 0)) AS a, "
            "CAST(b AS DECIMAL(38, 10)) AS b, CAST(c AS DECIMAL(15, 2)) AS c FROM texts"
        )
        found = connection.execute(translated).fetchall()
    # Snowflake's integers are decimals
    got = [
        [int(value) if isinstance(value, decimal.Decimal) else value for value in column]
        for column in zip(*found, strict=True)
    ]
    check(table, which, got[1:], rows)


def _number(value: Any) -> Any:
    """Return a value without the type that the translation gave it."""
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, dt.date):
        return f"{value.isoformat()}T00:00:00"
    if value is None or isinstance(value, (bool, str)):
        return value
    return "nan" if value != value else float(value)  # noqa: PLR0124


def test_quantiles_have_a_statement_of_their_own() -> None:
    query = _CLAUSE.format("max_rows_per_group=2") + (
        "PERCENTILE_CONT(income, 0.5, contribution_bounds_per_row => (0, 100)) AS m FROM people"
    )
    sums, bins = render_sql(query, "duckdb", tables=_columns("duckdb"), privacy_unit="person", secret=_SECRET)
    assert len(_run(sums)) == 1
    assert 0 < sum(row[1] for row in _run(bins)) <= 2 * 37


def test_rows_as_units_need_no_steps() -> None:
    query = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(*) AS n FROM people"
    (text,) = render_sql(query, "duckdb", tables=_columns("duckdb"), privacy_unit=ROW)
    assert "WITH" not in text
    assert _run(text) == [(400,)]


def test_a_secret_is_drawn_where_none_is_given() -> None:
    options, select = CASES["count"]
    texts = {
        render_sql(
            _CLAUSE.format(options) + select, "bigquery", tables=_columns("bigquery"), privacy_unit="person"
        )
        for _ in range(2)
    }
    assert len(texts) == 2


def test_bad_arguments_are_refused() -> None:
    query = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(*) AS n FROM people"
    with pytest.raises(ParameterError, match="bigquery, snowflake"):
        render_sql(query, "mysql", tables=_columns("bigquery"), privacy_unit="person")
    with pytest.raises(SchemaError, match="privacy_unit"):
        render_sql(query, "bigquery", tables=_columns("bigquery"), privacy_unit="nobody")
    with pytest.raises(SchemaError, match="plain column"):
        render_sql(query, "bigquery", tables={"people": {"person": "ARRAY<INT64>"}}, privacy_unit="person")
    with pytest.raises(SchemaError, match="type of snowflake, got 'INT64' for 'person'"):
        render_sql(query, "snowflake", tables=_columns("bigquery"), privacy_unit="person")
    listed: Any = {"people": ["person"]}
    untyped: Any = {"people": {"person": 5}}
    number: Any = 3
    for wrong in (number, listed, untyped):
        with pytest.raises(ParameterError, match="tables must map tables to columns"):
            render_sql(query, "bigquery", tables=wrong, privacy_unit="person")
    with pytest.raises(ParameterError, match="places must name tables that are given, got 'peple'"):
        render_sql(
            query, "bigquery", tables=_columns("bigquery"), privacy_unit="person", places={"peple": "a.b"}
        )
    assert DUCKDB is DIALECTS["duckdb"]
