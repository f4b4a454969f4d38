"""The DuckDB engine: its rules for odd data, public groups, and how it is shut off."""

from __future__ import annotations

import datetime as dt
import gc
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from sfumato.errors import EngineError, OptionError, ParameterError, SchemaError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.measure import Measure
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    Named,
    PublicGroups,
    PublicTable,
    PublicValues,
    Scan,
)
from tests.cases import cases
from tests.queries.engines.measures import UNITS, mean, row_count, row_sum, units_with_value, value_count

_SECRET = bytes(range(32))
_ROWS = row_count(10**6)


def _column(name: str, type_: ColumnType) -> Expression:
    return Expression(exp.column(name, quoted=True), type_)


def _job(
    engine: DuckDBEngine,
    key: str | None,
    *measures: Measure,
    unit: str | None = "u",
    public: PublicGroups | None = None,
) -> AggregationJob:
    schema = engine.schemas["data"]
    keys: tuple[Named, ...] = ()
    if key is not None:
        found = schema.find(key)
        assert found is not None
        assert found.type is not None
        keys = (Named(key, _column(key, found.type)),)
    return AggregationJob(Scan("data", schema, unit), keys, measures, 100 if keys else None, None, public)


def _answer(table: Any, key: str | None, *measures: Measure, **options: Any) -> list[tuple[Any, ...]]:
    with DuckDBEngine(open_source(table)) as engine:
        job = _job(engine, key, *measures, **options)
        engine.check(job)
        return [tuple(row.values()) for row in engine.aggregate(job, _SECRET).to_pylist()]


def test_an_empty_table_gives_one_row_without_keys_and_none_with() -> None:
    empty = pa.table(
        {"u": pa.array([], pa.int64()), "k": pa.array([], pa.string()), "x": pa.array([], pa.float64())}
    )
    x = _column("x", ColumnType.FLOAT)
    measures = (
        UNITS,
        _ROWS,
        row_sum(x, -3, 5, 90),
        mean(x, -3, 5, 9, center=7),
    )
    assert _answer(empty, None, *measures) == [(0, 0, 0, 0)]
    assert _answer(empty, None, *measures, unit=None) == [(0, 0, 0, 0)]
    assert _answer(empty, "k", *measures) == []
    assert _answer(empty, "k", *measures, public=PublicValues((("b",), ("a",)))) == [
        ("a", 0, 0, 0, 0),
        ("b", 0, 0, 0, 0),
    ]


@cases(
    ("units", "distinct"),
    lambda: [
        (pa.array([1, 1, 2, None]), 2),
        (pa.array([0.0, -0.0, math.nan, None]), 1),
        (pa.array(["a", "A", "a ", None]), 3),
        (pa.array([2**64 - 1, 2**64 - 2, 5, None], pa.uint64()), 3),
        (pa.array([2**53, 2**53 + 1, 5, None], pa.decimal128(20, 0)), 3),
        (pa.array([1, 10**9, None, 10**9], pa.timestamp("ns")), 2),
        (pa.array(["x", "y", "x", None]).dictionary_encode(), 2),
        (pa.array([dt.date(2024, 1, 1), None, dt.date(2024, 1, 2), None]), 2),
        (pa.array([True, False, True, None]), 2),
    ],
)
def test_units_are_told_apart_as_they_are_stored(units: pa.Array, distinct: int) -> None:
    """NULL and NaN are nobody; no conversion makes two units one."""
    assert _answer(pa.table({"u": units}), None, UNITS)[0][0] == distinct


def test_keys_are_canonical_and_sorted() -> None:
    x = [0.0, -0.0, math.nan, None, math.inf, -math.inf, 1.5]
    answer = _answer(pa.table({"u": range(7), "x": x}), "x", _ROWS)
    assert answer == [(-math.inf, 1), (0.0, 2), (1.5, 1), (math.inf, 1), (None, 2)]
    assert math.copysign(1.0, answer[1][0]) == 1.0
    days = pa.array([2**31 - 1, -(2**31) + 1, 0], pa.int32()).cast(pa.date32())
    assert _answer(pa.table({"u": [1, 2, 3], "d": days}), "d", _ROWS) == [
        (dt.date(1970, 1, 1), 1),
        (None, 2),
    ]
    flags = pa.table({"u": [1, 2, 3], "b": [True, None, False]})
    assert _answer(flags, "b", _ROWS) == [(False, 1), (True, 1), (None, 1)]


def test_infinity_clamps_and_nan_is_no_value() -> None:
    x = _column("x", ColumnType.FLOAT)
    table = pa.table({"u": [1, 2, 3, 4], "x": [math.inf, -math.inf, math.nan, 0.25]})
    rows = row_sum(x, -2, -100, 100, -8, 40)
    part = row_sum(x, -2, -100, 100)
    count = value_count(x, 9)
    assert _answer(table, None, rows, part, count) == [(40 - 8 + 1, 100 - 100 + 1, 3)]


def test_integers_are_exact_on_every_grid() -> None:
    reach, values = 2**61, [2**63 - 1, -(2**63), 2**53 + 1, -1, 0]
    table = pa.table({"u": range(5), "k": range(5), "i": pa.array(values, pa.int64())})
    with DuckDBEngine(open_source(table)) as engine:
        for exponent in (0, 1, 5, 63, 64, 90, -1, -40, -90):
            measure = row_sum(_column("i", ColumnType.INTEGER), exponent, -reach, reach)
            totals = engine.aggregate(_job(engine, "k", measure), _SECRET)["m0"].to_pylist()
            up, down = 2 ** max(-exponent, 0), 2 ** max(exponent, 0)
            exact = [(value * up * 2 + down) // (2 * down) for value in values]
            assert totals == [min(max(total, -reach), reach) for total in exact], exponent


def test_sums_are_exact_beyond_what_floats_hold() -> None:
    values = [2**60 + 1, 2**60 + 3, -(2**61) - 5, 7]
    measure = row_sum(_column("i", ColumnType.INTEGER), 0, -(2**62), 2**62)
    assert _answer(pa.table({"u": [1, 1, 1, 1], "i": values}), None, measure) == [(sum(values),)]
    many = pa.table({"u": list(range(6)), "i": [2**62] * 6})
    assert _answer(many, None, measure) == [(2**62,)]


@pytest.mark.parametrize(("half", "extra"), [(16, 0), (16, 60_000), (2000, 0)])
def test_sums_of_few_rows_are_exact_to_the_last_bit(half: int, extra: int) -> None:
    """Up to 2**53 in all they are added as floats, beyond as integers; with too many rows, again from few."""
    high, low = 2**48 - 1, -(2**48 - 2)
    table = pa.table({
        "u": [1] * (2 * half) + [2] * extra, "k": ["a"] * (2 * half) + ["b"] * extra,
        "x": [high] * half + [low] * half + [high] * extra,
    })  # fmt: skip
    measure = row_sum(_column("x", ColumnType.INTEGER), exponent=0, lower=-(2**44), upper=2**44)
    with DuckDBEngine(open_source(table)) as engine:
        job = replace(_job(engine, "k", measure), max_rows=2 * half)
        answer = engine.aggregate(job, _SECRET).to_pylist()
    assert answer == [{"k0": "a", "m0": half}, *([{"k0": "b", "m0": 2**44}] if extra else [])]


def test_public_groups_are_all_there_and_no_other() -> None:
    table = pa.table({"u": [1, 1, 2, 3], "k": ["a", "zz", None, "b"], "d": [dt.date(2024, 1, 1)] * 4})
    listed = PublicValues((("c",), ("a",), (None,), ("a",)))
    assert _answer(table, "k", UNITS, public=listed) == [("a", 1), ("c", 0), (None, 1)]
    assert _answer(table, "k", UNITS, public=PublicValues(())) == []
    keys = pa.table({"name": ["c", "a", "c", None], "number": [1, 2, 3, 4]})
    with DuckDBEngine(open_source({"data": table, "keys": keys})) as engine:
        job = _job(engine, "k", UNITS, public=PublicTable("keys", ("NAME",)))
        assert engine.aggregate(job, _SECRET).to_pydict() == {"k0": ["a", "c", None], "m0": [1, 0, 1]}
        for wrong in (
            PublicTable("keys", ("number",)),
            PublicTable("keys", ("x",)),
            PublicTable("no", ("name",)),
        ):
            with pytest.raises(SchemaError, match="public"):
                engine.check(replace(job, public_groups=wrong))


def test_other_groups_use_up_no_limit() -> None:
    """Rows outside of the public groups are dropped before bounding."""
    table = pa.table({"u": [1] * 50, "k": [f"key {i}" for i in range(50)]})
    with DuckDBEngine(open_source(table)) as engine:
        job = replace(_job(engine, "k", UNITS, public=PublicValues((("key 7",),))), max_groups=1)
        assert engine.aggregate(job, _SECRET).to_pydict() == {"k0": ["key 7"], "m0": [1]}


@pytest.mark.parametrize("value", [1, 1.5, True, b"a", dt.date(2024, 1, 1)])
def test_listed_values_of_another_type_are_refused(value: object) -> None:
    with DuckDBEngine(open_source(pa.table({"u": [1], "k": ["a"]}))) as engine:
        with pytest.raises(OptionError, match="public groups must hold STRING"):
            engine.check(_job(engine, "k", UNITS, public=PublicValues(((value,),))))
        with pytest.raises(OptionError, match="1 values each"):
            engine.check(_job(engine, "k", UNITS, public=PublicValues((("a", "b"),))))


@pytest.mark.parametrize(
    "change",
    [
        lambda job: replace(job, max_groups=None),
        lambda job: replace(job, max_groups=0),
        lambda job: replace(job, max_rows=0),
        lambda job: replace(job, measures=(replace(_ROWS, upper=2**63),)),
        lambda job: replace(job, measures=(replace(_ROWS, lower=5, upper=1),)),
        lambda job: replace(job, measures=(mean(job.keys[0].expression, 0, 0, 1),)),
        lambda job: replace(job, measures=(row_sum(job.keys[0].expression, 0, 0, 1),)),
        lambda job: replace(job, keys=(), public_groups=PublicValues(())),
    ],
)
def test_jobs_that_cannot_be_bounded_are_refused(change: Callable[[AggregationJob], AggregationJob]) -> None:
    with DuckDBEngine(open_source(pa.table({"u": [1], "k": ["a"]}))) as engine:
        job = change(_job(engine, "k", UNITS))
        with pytest.raises(ParameterError, match="must"):
            engine.check(job)
        with pytest.raises(ParameterError, match="must"):
            engine.aggregate(job, _SECRET)


def test_a_short_secret_is_refused() -> None:
    with (
        DuckDBEngine(open_source(pa.table({"u": [1]}))) as engine,
        pytest.raises(ParameterError, match="16 bytes"),
    ):
        engine.aggregate(_job(engine, None, UNITS), b"short")


def test_rows_as_units_know_no_limits() -> None:
    table = pa.table({"u": [1, 1, 1, None], "k": ["a", "a", "b", "b"], "x": [1.0, 2.0, None, 4.0]})
    x = _column("x", ColumnType.FLOAT)
    measures = (UNITS, _ROWS, mean(x, 0, 0, 3), units_with_value(x))
    with DuckDBEngine(open_source(table)) as engine:
        job = replace(_job(engine, "k", *measures, unit=None), max_groups=None, max_rows=1)
        rows = [tuple(row.values()) for row in engine.aggregate(job, _SECRET).to_pylist()]
    assert rows == [("a", 2, 2, 3, 2), ("b", 2, 2, 3, 1)]


def test_the_database_is_shut_off(tmp_path: Path) -> None:
    other, source = tmp_path / "other.csv", tmp_path / "mine.parquet"
    other.write_text("a\n1\n")
    pq.write_table(pa.table({"u": [1]}), source)
    with DuckDBEngine(open_source(source)) as engine:
        for sql in (
            f"SELECT * FROM read_csv('{other}')",
            f"COPY t0 TO '{tmp_path / 'out.csv'}'", f"ATTACH '{tmp_path / 'x.db'}'",
            "SET enable_external_access = true", "SET memory_limit = '1GB'", "INSTALL httpfs", "LOAD spatial",
        ):  # fmt: skip
            with pytest.raises(duckdb.Error):
                engine._connection.execute(sql)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.parquet", "other.csv"]


def test_a_failure_says_nothing_about_the_data(tmp_path: Path) -> None:
    source = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"u": list(range(5000)), "k": [f"password {i}" for i in range(5000)]}), source)
    with DuckDBEngine(open_source(source)) as engine:
        job = _job(engine, "k", UNITS)
        first = engine.aggregate(job, _SECRET)
        content = bytearray(source.read_bytes())
        content[2000:9000] = bytes(7000)
        source.write_bytes(content)
        with pytest.raises(EngineError) as caught:
            engine.aggregate(job, _SECRET)
        assert "password" not in str(caught.value)
        assert str(source) not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    assert first.num_rows == 5000


def _tables(engine: DuckDBEngine) -> list[tuple[Any, ...]]:
    return engine._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()


def test_nothing_is_left_of_a_run() -> None:
    with DuckDBEngine(open_source(pa.table({"u": [1, 1], "k": ["a", "b"]}))) as engine:
        engine.aggregate(
            replace(_job(engine, "k", _ROWS, public=PublicValues((("a",),))), max_rows=1), _SECRET
        )
        assert _tables(engine) == []


def test_what_does_not_fit_is_spilled_to_a_private_folder_that_goes_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    count = 400_000
    table = pa.table(
        {"u": pa.array(range(count)), "k": pa.array([f"a rather long key number {i}" for i in range(count)])}
    )
    with DuckDBEngine(open_source(table), memory_limit="60MB", threads=2) as engine:
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        answer = engine.aggregate(replace(_job(engine, "k", UNITS), max_rows=1), _SECRET)
        assert answer.num_rows == count
    assert list(tmp_path.iterdir()) == []


def test_a_forgotten_engine_leaves_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine: Engine | None = DuckDBEngine(open_source(pa.table({"u": [1]})))
    assert len(list(tmp_path.iterdir())) == 1
    del engine
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_bad_settings_are_refused() -> None:
    sources = open_source(pa.table({"u": [1]}))
    with pytest.raises(ParameterError, match="memory_limit"):
        DuckDBEngine(sources, memory_limit="much")
    with pytest.raises(ParameterError, match="threads"):
        DuckDBEngine(sources, threads=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_a_forked_child_that_ends_leaves_the_spill_folder_alone(tmp_path: Path) -> None:
    program = """
import os, sys, tempfile, warnings
import pyarrow as pa
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.frames.sources import open_source
warnings.simplefilter("ignore")
engine = DuckDBEngine(open_source(pa.table({"person": [1]})))
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
print(len(os.listdir(tempfile.gettempdir())))
engine.close()
print(len(os.listdir(tempfile.gettempdir())))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == ["1", "0"]
