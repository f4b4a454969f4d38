"""Integers and decimals of every size: carried as they are, or refused by name before anything is charged."""

from __future__ import annotations

import decimal
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import sfumato as sf
from sfumato.errors import SourceError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import ColumnType
from tests.queries.exact_numbers import Number, Rows, check, columns, select
from tests.run_time import run_time

if run_time(__name__):
    import polars as pl

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_DIGITS = [(1, 0), (9, 2), (15, 0), (15, 15), (16, 1), (18, 0), (18, 3), (19, 0), (38, 0), (38, 10), (38, 38)]
_TYPES = {
    **{name: Number.of_bits(bits) for name, bits in _BITS.items()},
    **{f"U{name}": Number.of_bits(bits, signed=False) for name, bits in _BITS.items()},
    **{f"DECIMAL({digits},{scale})": Number.of_digits(digits, scale) for digits, scale in _DIGITS},
}
_CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=10000, delta=1e-9, max_groups_contributed=1) "


def _file(folder: str | Path, rows: dict[str, Rows]) -> Path:
    """Write columns of DuckDB's types, by type, as ``v0``, ``v1``, ... behind the number of the row."""
    texts = {type_: [None if v is None else f"{v:f}" for v in values] for type_, values in rows.items()}
    frame = pa.table([pa.array(column, pa.string()) for column in texts.values()], names=list(texts))
    items = ", ".join(f'CAST("{type_}" AS {type_}) AS v{at}' for at, type_ in enumerate(texts))
    path = Path(folder, "numbers.duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", frame)
        connection.execute(f"CREATE TABLE data AS SELECT row_number() OVER () AS line, {items} FROM frame")
    return path


@settings(max_examples=8)
@given(columns(_TYPES))
def test_every_number_is_carried_and_cast_exactly(rows: dict[str, Rows]) -> None:
    named = {f"v{at}": values for at, values in enumerate(rows.values())}
    with (
        tempfile.TemporaryDirectory() as folder,
        DuckDBEngine(open_source({"data": _file(folder, rows)}), threads=1) as engine,
    ):
        sql, which = select(engine._tables["data"], DUCKDB)
        found = engine._connection.execute(sql).fetchall()
        check(engine._tables["data"], which, list(zip(*found, strict=True))[1:], named)


if run_time(__name__):  # Arrow loads pandas to look at an array
    _HASHES = np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64)
    _PEOPLE = pa.table({"person": range(1000), "v": _HASHES})


def _placed(kind: str, folder: Path) -> Any:
    """Return the hashes as a source of some kind."""
    if kind == "pandas":
        return _PEOPLE.to_pandas()
    if kind == "polars":
        return pl.DataFrame(_PEOPLE)
    if kind == "Arrow":
        return _PEOPLE
    if kind == "dictionary":
        return _PEOPLE.set_column(1, "v", _PEOPLE["v"].dictionary_encode())
    if kind == "decimal":
        return _PEOPLE.set_column(1, "v", _PEOPLE["v"].cast(pa.decimal128(38, 4)))
    path = folder / f"people.{kind}"
    if kind == "parquet":
        pq.write_table(_PEOPLE, path)
    elif kind == "csv":
        _PEOPLE.to_pandas().to_csv(path, index=False)
    else:
        with duckdb.connect(str(path)) as connection:
            connection.register("frame", _PEOPLE)
            connection.execute("CREATE TABLE data AS SELECT person, CAST(v AS UHUGEINT) AS v FROM frame")
    return path


@pytest.mark.parametrize(
    "kind", ["Arrow", "dictionary", "decimal", "pandas", "polars", "parquet", "csv", "duckdb"]
)
def test_hashes_of_64_bits_stay_what_they_are(kind: str, tmp_path: Path) -> None:
    source = _placed(kind, tmp_path)
    with sf.connect(source, privacy_unit="person", epsilon=1e6, delta=1e-3) as session:
        counts = session.sql(_CLAUSE + "COUNT(v) AS n, COUNT(DISTINCT v) AS d FROM data")
        assert counts.to_arrow().to_pylist() == [{"n": 1000, "d": 1000}]
        grouped = session.sql(
            f"{_CLAUSE} CAST(v AS STRING) AS k, COUNT(*) AS n FROM data GROUP BY k",
            public_groups={"k": [str(value) for value in _HASHES]},
        )
        assert grouped.to_arrow()["n"].to_pylist() == [1] * 1000
    with sf.connect(source, privacy_unit="v", epsilon=1e6, delta=1e-3) as session:
        units = session.sql(
            f"""{_CLAUSE} COUNT(*) AS n, COUNT(DISTINCT v) AS d
            FROM data JOIN (SELECT v, COUNT(person) AS m FROM data GROUP BY v) USING (v)"""
        )
        assert units.to_arrow().to_pylist() == [{"n": 1000, "d": 1000}]


def test_numbers_of_different_types_are_compared_by_their_values() -> None:
    values = [2**64 - 1, 2**64 - 2, 5, None]
    table = pa.table({
        "id": range(4),
        "u": pa.array(values, pa.uint64()),
        "d": pa.array([2**64 - 1, 2**64 - 1, decimal.Decimal("5.0"), None], pa.decimal128(38, 2)),
    })  # fmt: skip
    texts = {
        "u = d": 2,
        "u <> d": 1,
        "u IS NOT DISTINCT FROM d": 3,
        "COALESCE(u, d) IS NULL": 1,
        "u = NULLIF(u, d)": 1,
    }
    with sf.connect(table, privacy_unit="id", epsilon=1e6, delta=1e-3) as session:
        for text, count in texts.items():
            release = session.sql(f"{_CLAUSE} COUNT(*) AS n FROM data WHERE {text}")
            assert release.to_arrow()["n"].to_pylist() == [count], text


_CAST = r"got NUMERIC; write CAST\(`v` AS FLOAT64\) for .* CAST\(`v` AS STRING\) for the digits"
_REFUSED = {
    "COUNT(*) AS n FROM data WHERE v + 1 = 2": rf"operand of \+ .* {_CAST}",
    "COUNT(*) AS n FROM data WHERE LENGTH(v) = 2": f"argument of LENGTH .* {_CAST}",
    "COUNT(*) AS n FROM data WHERE v < w": f"comparison < must have values with an order, {_CAST}",
    "COUNT(*) AS n FROM data WHERE v BETWEEN w AND w": f"BETWEEN must have values with an order, {_CAST}",
    "COUNT(*) AS n FROM data WHERE GREATEST(v, w) = v": f"GREATEST must have values with an order, {_CAST}",
    "COUNT(*) AS n FROM data WHERE v = 5": "INT64 and NUMERIC; use CAST",
    "COUNT(*) AS n FROM data WHERE v IN (5, 6)": "INT64 and NUMERIC; use CAST",
    "COUNT(*) AS n FROM data WHERE CAST(v AS UINT64) = 5": "INT64 and NUMERIC; use CAST",
    "COUNT(*) AS n FROM data WHERE CAST(x / 2 AS NUMERIC) = v": "must be of exact values, got FLOAT64",
    "COUNT(*) AS n FROM data WHERE CAST(x AS NUMERIC) + 1 = v": r"operand of \+ .* got NUMERIC",
    "COUNT(*) AS n FROM data WHERE CAST(x AS UINT64) < v": "comparison < must have values with an order",
    "CAST(x AS UINT64) AS k, COUNT(*) AS n FROM data GROUP BY k": "GROUP BY item must have a type of answers",
    "CAST(COUNT(*) AS NUMERIC) AS n FROM data": "SELECT list must have a type of answers, got NUMERIC",
    "x, COUNT(*) AS n FROM data GROUP BY x ORDER BY CAST(COUNT(*) AS UINT64)": "ORDER BY must have a type of",
    "v, COUNT(*) AS n FROM data GROUP BY v": f"GROUP BY item must have a type of answers, {_CAST}",
    "COUNT(*) AS n FROM (SELECT id, MAX(v) AS m FROM data GROUP BY id)": f"argument of MAX .* {_CAST}",
    "COUNT(*) AS n FROM (SELECT id, RANK() OVER (PARTITION BY id ORDER BY v) AS r FROM data)": _CAST,
}


def test_what_would_round_or_reorder_digits_is_refused_before_the_charge() -> None:
    column = pa.array([1, 2], pa.uint64())
    table = pa.table({"id": [1, 2], "v": column, "w": column, "x": [1, 2]})
    with sf.connect(table, privacy_unit="id", epsilon=1e6, delta=1e-3) as session:
        for text, told in _REFUSED.items():
            with pytest.raises(sf.errors.QueryError, match=told):
                session.sql(_CLAUSE + text)
        assert session.ledger.spent().epsilon == 0
        total = "SUM(CAST(v AS INT64), contribution_bounds_per_group => (0, 4)) AS n FROM data"
        assert session.sql(_CLAUSE + total).to_arrow()["n"].to_pylist() == [3]
        shown = "CAST(CAST(COUNT(*) AS NUMERIC) AS STRING) AS n FROM data WHERE CAST(x AS UINT64) = v"
        assert session.sql(_CLAUSE + shown).to_arrow()["n"].to_pylist() == ["2"]


def test_marks_are_compared_by_their_digits_whatever_their_types() -> None:
    """The phone 2**63 connects users 1 and 2 across tables, the phone 7 users 3 and 4."""
    phones = [2**63, 7]
    first = pa.table({"user": [1, 3], "phone": pa.array(phones, pa.uint64())})
    second = pa.table({"user": [2, 4], "phone": pa.array(phones, pa.decimal128(38, 3))})
    with sf.connect(
        {"a": first, "b": second}, privacy_unit=("user", "phone"), epsilon=1e6, delta=1e-3
    ) as session:
        joined = session.sql(
            f"{_CLAUSE} COUNT(DISTINCT privacy_unit) AS n FROM a JOIN b USING (privacy_unit)"
        )
        assert joined.to_arrow()["n"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("parquet", r"column 'v' of table 'data' .* got decimals of 50 digits; write it as text"),
        ("frame", r"column 'v' of table 'data' .* got decimal256\(50, 2\); cast it"),
        ("polars", r"column 'v' of table 'data' .* got Int128; cast it, such as to pl[.]String"),
    ],
)
def test_a_column_that_nothing_here_can_hold_is_refused_by_name(kind: str, told: str, tmp_path: Path) -> None:
    table = pa.table(
        {"id": [1], "s": [{"v": 1}], "v": pa.array([decimal.Decimal("1.5")], pa.decimal256(50, 2))}
    )
    pq.write_table(table, tmp_path / "people.parquet")
    sources: dict[str, Any] = {"parquet": tmp_path / "people.parquet", "frame": table}
    if kind == "polars":
        if not hasattr(pl, "Int128"):
            pytest.skip("this Polars has no integers of 128 bits")
        sources["polars"] = pl.DataFrame({"id": [1], "v": pl.Series([2**100], dtype=pl.Int128)})
    with pytest.raises(SourceError, match=told):
        sf.connect(sources[kind], privacy_unit="id", epsilon=1.0)


def test_whole_decimals_of_few_digits_are_integers() -> None:
    table = pa.table({"id": [1, 2], "v": pa.array([10**18 - 1, -(10**18) + 1], pa.decimal128(18, 0))})
    with DuckDBEngine(open_source(table)) as engine:
        found = engine.schemas["data"].find("v")
    assert found is not None
    assert found.type is ColumnType.INTEGER
