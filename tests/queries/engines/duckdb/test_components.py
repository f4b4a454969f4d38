"""Units of several columns: the connected components of their values, and what may be claimed of them."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

import sfumato as sf
from sfumato.errors import LedgerMismatch, ParameterError, SchemaError
from sfumato.frames.sources import open_source
from sfumato.ledger import Renewal
from sfumato.queries.engines.duckdb.components import connected
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    Named,
    Scan,
)
from tests.cases import cases
from tests.queries.engines.measures import UNITS, row_count, row_sum
from tests.run_time import run_time

_SECRET = bytes(range(32))
_MONTHLY = Renewal(every="month", column="day")
_MARKS = ("user", "device", "card")
_TYPES = (pa.int64(), pa.string(), pa.date32())
if run_time(__name__):
    _SHARED = pa.table({
        "user": [1, 1, 2, 3, None, None, 4],
        "device": ["a", "b", "b", "c", "c", None, None],
        "place": ["x", "x", "y", "x", "y", "x", "y"],
    })  # fmt: skip
_COUNT = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=50, delta=1e-4, max_groups_contributed=1)
    COUNT(*, contribution_bounds_per_group => (0, 1)) AS n FROM data"""

Row = tuple[Any, ...]


def _parts(rows: Sequence[Row], marks: int) -> list[frozenset[tuple[int, Any]]]:
    """The components, merged one row at a time: each a set of marks with their places."""
    parts: list[frozenset[tuple[int, Any]]] = []
    for row in rows:
        own = frozenset((place, row[place]) for place in range(marks) if row[place] is not None)
        touched = [part for part in parts if part & own]
        parts = [part for part in parts if not part & own]
        if own:
            parts.append(own.union(*touched))
    return parts


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=40))
    )
)
def test_each_node_finds_the_least_that_it_is_connected_with(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    count, edges = graph
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    least = list(range(count))
    for _ in range(count):
        for one, other in edges:
            least[one] = least[other] = min(least[one], least[other])
    assert connected(ends[:, 0], ends[:, 1], count).tolist() == least


def test_long_chains_are_followed_to_their_end() -> None:
    names = np.random.default_rng(5).permutation(200_000)
    assert not connected(names[:-1], names[1:], len(names)).any()


def _rows(draw: random.Random, many: int) -> list[Row]:
    count = draw.choice([0, 3, 12, 25])

    def some(value: object) -> object:
        return None if draw.random() < 0.25 else value

    return [
        (
            some(draw.randrange(many)), some(f"d{draw.randrange(many)}"),
            some(dt.date(2024, 1, 1 + draw.randrange(many))),
            draw.choice(["x", "y", "z", None]), draw.choice([0, 1, 5, -3, None]),
        )
        for _ in range(count)
    ]  # fmt: skip


def _table(rows: Sequence[Row], marks: int) -> pa.Table:
    columns = [*zip(_MARKS[:marks], _TYPES, range(marks), strict=False), ("k", pa.string(), 3)]
    columns.append(("v", pa.int64(), 4))
    return pa.table({name: pa.array([row[at] for row in rows], type_) for name, type_, at in columns})


def _engine(tables: Sequence[Sequence[Row]], marks: int) -> DuckDBEngine:
    sources = {f"t{i}": _table(rows, marks) for i, rows in enumerate(tables)}
    engine = DuckDBEngine(open_source(sources))
    engine.unite(dict.fromkeys(sources, _MARKS[:marks]))
    return engine


def _answer(engine: DuckDBEngine, job: AggregationJob) -> dict[Any, tuple[int, ...]]:
    rows = engine.aggregate(job, _SECRET).to_pylist()
    return {row["k0"]: (row["m0"], row["m1"], row["m2"]) for row in rows}


@pytest.mark.parametrize("seed", range(40))
def test_a_component_that_leaves_changes_no_other_and_no_answer_by_more_than_was_declared(seed: int) -> None:
    draw = random.Random(seed)
    marks, many = draw.choice([2, 3]), draw.choice([2, 6, 14])
    tables = [_rows(draw, many) for _ in range(draw.choice([1, 2]))]
    parts = _parts([row for rows in tables for row in rows], marks)
    gone = draw.choice(parts) if parts else frozenset()
    less = [[row for row in rows if gone.isdisjoint(enumerate(row[:marks]))] for rows in tables]
    most, rows_each = draw.choice([1, 2]), draw.choice([1, 3])
    value = Expression(exp.column("v", quoted=True), ColumnType.INTEGER)
    measures = (
        UNITS,
        row_count(rows_each),
        row_sum(value, 0, -4, 6),
    )
    with _engine(tables, marks) as whole, _engine(less, marks) as rest:
        for place, rows in enumerate(less):
            names = [_named(engine, f"t{place}", marks) for engine in (whole, rest)]
            assert {row: names[0][row[:marks]] for row in rows} == {
                row: names[1][row[:marks]] for row in rows
            }
            schema = whole.schemas[f"t{place}"]
            key = Named("k", Expression(exp.column("k", quoted=True), ColumnType.TEXT))
            scan = Scan(f"t{place}", schema, "privacy_unit")
            job = AggregationJob(scan, (key,), measures, most, rows_each, None)
            one, other = _answer(whole, job), _answer(rest, job)
            moves = {
                k: [abs(a - b) for a, b in zip(one.get(k, (0,) * 3), other.get(k, (0,) * 3), strict=True)]
                for k in one.keys() | other.keys()
            }
            assert sum(any(move) for move in moves.values()) <= most
            assert all(
                m <= s.sensitivity for move in moves.values() for m, s in zip(move, measures, strict=True)
            )
        named = {name for t in range(len(tables)) for name in _named(whole, f"t{t}", marks).values()}
        assert len(named - {None}) == len(parts)


def _named(engine: DuckDBEngine, table: str, marks: int) -> dict[Row, str | None]:
    """The unit of each combination of marks; a row without any has none."""
    view = engine._tables[table].name
    columns = ", ".join(f'"{mark}"' for mark in _MARKS[:marks])
    rows = engine._connection.execute(f"SELECT DISTINCT {columns}, privacy_unit FROM {view}").fetchall()
    names = {row[:-1]: row[-1] for row in rows}
    assert len(names) == len(rows), "a row is of two units"
    assert all((name is None) == all(mark is None for mark in marks_) for marks_, name in names.items())
    return names


def test_the_component_is_named_in_session_release_and_ledger(tmp_path: Path) -> None:
    told = 'connected component of "user" and "device"'
    book = tmp_path / "book.db"
    options: dict[str, Any] = {"epsilon": 100.0, "delta": 1e-3, "ledger": book}
    with sf.connect(_SHARED, privacy_unit=("USER", "device"), **options) as session:
        assert session.privacy_unit == told
        release = session.sql(_COUNT)
        assert release.privacy_unit == told
        assert told in session.explain(_COUNT)
        assert release.to_arrow().to_pylist() == [{"n": 3}]  # at epsilon 50 noise is 0 but for one in 10**20
    with sf.connect(_SHARED, privacy_unit=("user", "device"), **options) as session:
        assert session.privacy_unit == told
    for other in ("user", ("device", "user")):
        with pytest.raises(LedgerMismatch):
            sf.connect(_SHARED, privacy_unit=other, **options)


def test_tables_of_one_unit_are_joined_on_it() -> None:
    with sf.connect(
        {"a": _SHARED, "b": _SHARED.select(["user", "device"])},
        privacy_unit={"a": ("user", "device"), "b": ("user", "device")},
        epsilon=100, delta=1e-3, rng=3,
    ) as session:  # fmt: skip
        release = session.sql(
            """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=50, delta=1e-4, max_groups_contributed=1)
            COUNT(*, contribution_bounds_per_group => (0, 9)) AS n FROM a JOIN b USING (privacy_unit)"""
        )
    assert release.to_arrow().to_pylist() == [{"n": 9 + 4 + 1}]  # 3 by 3, 2 by 2 and 1 by 1 rows


@cases(
    ("change", "error", "told"),
    [
        ({"privacy_unit": ["user", "device"]}, ParameterError, "must be a tuple"),
        ({"privacy_unit": ("user",)}, ParameterError, "two or more different columns"),
        ({"privacy_unit": ("user", "user")}, ParameterError, "two or more different columns"),
        ({"privacy_unit": ("user", 5)}, ParameterError, "two or more different columns"),
        ({"privacy_unit": ("user", "USER")}, ParameterError, "two or more different columns"),
        ({"privacy_unit": ("user", "phone")}, SchemaError, "must be a column of table 'data'"),
        ({"privacy_unit": ("user", "weight")}, SchemaError, "must be integers, texts or dates"),
        ({"new_version": True}, ParameterError, "new_version must be left out where several"),
        ({"renewal": _MONTHLY, "period": "2024-01"}, ParameterError, "renewal"),
    ],
)  # fmt: skip
def test_what_cannot_be_proved_is_refused(change: dict[str, Any], error: type[Exception], told: str) -> None:
    table = _SHARED.append_column("weight", pa.array([0.5] * 7))
    with pytest.raises(error, match=told):
        sf.connect(table, **{"privacy_unit": ("user", "device"), "epsilon": 1.0, **change})


def test_tables_must_agree_on_what_connects_them() -> None:
    other = pa.table({"user": ["1"], "device": ["a"]})
    both = {"a": _SHARED, "b": other}
    with pytest.raises(SchemaError, match="the same types in each table"):
        sf.connect(both, privacy_unit=("user", "device"), epsilon=1.0)
    with pytest.raises(ParameterError, match="in each table if it is in one"):
        sf.connect(both, privacy_unit={"a": ("user", "device"), "b": "user"}, epsilon=1.0)
    with pytest.raises(SchemaError, match="no column 'privacy_unit'"):
        sf.connect(
            _SHARED.append_column("Privacy_Unit", pa.array([1] * 7)),
            privacy_unit=("user", "device"),
            epsilon=1.0,
        )


def test_a_failure_of_the_engine_says_nothing_about_the_data() -> None:
    with DuckDBEngine(open_source(_SHARED)) as engine:
        engine._connection.execute("CREATE TEMP TABLE marks_0 AS SELECT 1 AS taken")
        with pytest.raises(sf.errors.SourceError, match="must fit in memory") as caught:
            engine.unite({"data": ("user", "device")})
        assert not isinstance(caught.value.__context__, duckdb.Error)
