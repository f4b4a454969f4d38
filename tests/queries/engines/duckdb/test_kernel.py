"""The bounding kernel answers as SQL does, from the same rows; what it cannot do is for SQL."""

from __future__ import annotations

import datetime as dt
import functools
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb import _bounding, engine, kernel
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.duckdb.kernel import KernelSettings
from sfumato.queries.engines.duckdb.ranks import kernel_column
from sfumato.queries.plan.measure import Measure
from sfumato.queries.plan.query import AggregationJob, ColumnType, Expression, Named, PublicValues, Scan
from sfumato.queries.plan.typed_expressions import column
from tests.queries.engines.measures import UNITS, bin_measure, distinct_values, mean, row_count, row_sum
from tests.queries.engines.test_neighbors import _job, _table
from tests.run_time import run_time

_SECRET = b"secret of 32 bytes, and no other"
_X = Expression(column("x", ColumnType.FLOAT).tree, ColumnType.FLOAT)
_K = Expression(column("k", ColumnType.TEXT).tree, ColumnType.TEXT)
_I = Expression(column("i", ColumnType.INTEGER).tree, ColumnType.INTEGER)


class _BySql:
    """What an engine answers without its kernel."""

    def __init__(self, engine: DuckDBEngine) -> None:
        self.engine = engine

    def aggregate(self, job: AggregationJob, secret: bytes) -> pa.Table:
        kept, self.engine._kernel = self.engine._kernel, None
        try:
            return self.engine.aggregate(job, secret)
        finally:
            self.engine._kernel = kept


@contextmanager
def _both(tables: Any, **settings: Any) -> Iterator[tuple[DuckDBEngine, _BySql]]:
    with DuckDBEngine(open_source(tables), **settings) as fast:
        yield fast, _BySql(fast)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each job whether the kernel did it."""
    found: list[bool] = []

    def spy(*arguments: Any, **options: Any) -> Any:
        made = kernel.bound_rows(*arguments, **options)
        found.append(made is not None)
        return made

    monkeypatch.setattr(engine, "bound_rows", spy)
    return found


def _scan(of: DuckDBEngine, name: str = "data") -> Scan:
    return Scan(name, of.schemas[name], "u")


def _by(of: DuckDBEngine, keys: str, *measures: Measure, **limits: Any) -> AggregationJob:
    schema = of.schemas["data"]
    named = []
    for name in keys:
        found = schema.find(name)
        assert found is not None
        assert found.type is not None
        named.append(Named(name, Expression(column(name, found.type).tree, found.type)))
    all_limits = {"max_groups": 2 if keys else None, "max_rows": None, "public_groups": None, **limits}
    return AggregationJob(_scan(of), tuple(named), (UNITS, *measures), **all_limits)


@pytest.mark.parametrize("examples", [10, 80])
def test_the_kernel_answers_as_sql_does(examples: int, used: list[bool]) -> None:
    """Units, keys and values of all types, all limits, public groups, one unit with most rows."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**64))
    def fuzz(seed: int) -> None:
        draw = random.Random(seed)
        table = _table(draw)
        public = pa.table({"name": pa.array(["a", "b", "a", None, "zz"])})
        with _both({"data": table, "public": public}, threads=draw.choice([1, 3])) as (fast, plain):
            for _ in range(6):
                job, secret = _job(draw, fast.schemas["data"]), draw.randbytes(32)
                assert fast.aggregate(job, secret).equals(plain.aggregate(job, secret)), job

    fuzz()
    assert sum(used) > 1.2 * examples, "most jobs are for SQL: nothing is compared"


@functools.cache
def _large(rows: int = 60_000, units: int = 900) -> pa.Table:
    rng = np.random.default_rng(5)
    skewed = (units * rng.random(rows) ** 3).astype(np.int64)
    return pa.table(
        {
            "u": pa.array([f"person {i}" for i in skewed]),
            "k": pa.array([None if i == 7 else f"place {i}" for i in rng.integers(0, 400, rows)]),
            "i": rng.integers(-3, 4, rows),
            "x": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(10, 30, rows)),
        }
    )


_LIMITS = [
    {"max_groups": 5},
    {"max_groups": 100, "max_rows": 2},
    {"max_groups": 3, "max_rows": 1},
    {"max_groups": None, "max_rows_contributed": 20},
]


@pytest.mark.parametrize("limits", _LIMITS)
@pytest.mark.parametrize("spilled", [False, True])
def test_many_chunks_in_memory_or_in_a_file(
    limits: dict[str, Any], spilled: bool, used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    if spilled:
        monkeypatch.setattr(kernel, "_ROWS_SHARE", 2**40)
        monkeypatch.setattr(kernel, "_BITS", 2)
    held: list[tuple[int, int, int]] = []
    bound = kernel._bound

    def spy(made: object, threads: int, *, keep: bool) -> None:
        bound(made, threads, keep=keep)
        held.append(_bounding.held(made))

    monkeypatch.setattr(kernel, "_bound", spy)
    with _both(_large(), threads=2) as (fast, plain):
        measures = row_count(7), row_sum(_X, -10, -(2**20), 2**20), mean(_X, -10, -(2**17), 2**17, center=0)
        for keys in ("k", "ki"):
            job = _by(fast, keys, *measures, **limits)
            assert fast.aggregate(job, _SECRET).equals(plain.aggregate(job, _SECRET))
    assert used == [True, True]
    assert all((in_file > 0) is spilled for _, in_file, _ in held)
    assert all(parts == 0 for _, _, parts in held), "parts are retained for nobody"


def test_no_rows_and_no_keys(used: list[bool]) -> None:
    empty = _large(10).slice(0, 0)
    with _both(empty) as (fast, plain):
        for job in (_by(fast, ""), _by(fast, "k"), _by(fast, "", row_count(3), max_rows=2)):
            assert fast.aggregate(job, _SECRET).equals(plain.aggregate(job, _SECRET))
    assert used == [True] * 3


def test_units_and_keys_of_every_type(used: list[bool]) -> None:
    """Each distinguishes exactly its distinct values; what has no form of 64 bits is for SQL."""
    moments = [dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 1, 1, 6), None]
    columns = {
        "int8": (pa.array([1, -1, None], pa.int8()), True),
        "uint64": (pa.array([2**64 - 1, 2**63, None], pa.uint64()), True),
        "float32": (pa.array([0.5, math.nan, -0.0], pa.float32()), True),
        "float64": (pa.array([0.0, -0.0, 1e300]), True),
        "bool": (pa.array([True, False, None]), True),
        "date32": (pa.array([dt.date(2024, 1, 31), dt.date(1, 1, 1), None]), True),
        "time": (pa.array([dt.time(1), dt.time(2), None], pa.time64("us")), True),
        "timestamp": (pa.array(moments, pa.timestamp("us")), True),
        "zoned": (pa.array(moments, pa.timestamp("us", "UTC")), True),
        "binary": (pa.array([b"", b"\0", None]), True),
        "decimal": (pa.array([1, 2, None], pa.decimal128(30, 2)), True),
        "small decimal": (pa.array([1, -2, None], pa.decimal128(4, 2)), True),
        "enumeration": (pa.array(["one", "two", None]).dictionary_encode(), True),
        "interval": (pa.array([(1, 0, 0), (0, 30, 0), None], pa.month_day_nano_interval()), False),
    }
    if hasattr(pa, "uuid"):  # pyarrow has had it since 18
        columns["uuid"] = pa.array([b"u" * 16, b"v" * 16, None], pa.uuid()), True
    for name, (units, done) in columns.items():
        rows = 12
        indices = [i % 3 for i in range(rows)]
        table = pa.table({"u": units.take(pa.array(indices)), "k": [i % 4 for i in range(rows)]})
        with _both(table) as (fast, plain):
            job = _by(fast, "k", row_count(9), max_groups=1)
            assert fast.aggregate(job, _SECRET).equals(plain.aggregate(job, _SECRET)), name
            assert used.pop() is done, name


def test_sums_beyond_64_bits_are_for_sql(used: list[bool]) -> None:
    table = pa.table({"u": ["one"] * 40_000, "k": [1] * 40_000, "x": [math.inf] * 40_000})
    with _both(table) as (fast, plain):
        job = _by(fast, "k", row_sum(_X, -20, -(2**40), 2**40, -(2**48), 2**48))
        assert fast.aggregate(job, _SECRET).equals(plain.aggregate(job, _SECRET))
    assert used == [False]


def test_sums_over_units_are_exact_and_end_at_the_reach(used: list[bool]) -> None:
    units = 3000
    table = pa.table({"u": range(units), "k": [1] * units, "i": [2**62] * units})
    with _both(table) as (fast, plain):
        job = _by(fast, "k", row_sum(_I, 0, 0, 2**61), row_sum(_I, 0, 0, 2**50))
        answer = fast.aggregate(job, _SECRET)
        assert answer.equals(plain.aggregate(job, _SECRET))
        assert answer.to_pylist() == [{"k0": 1, "m0": units, "m1": 2**62, "m2": units * 2**50}]
    assert used == [True]


@pytest.mark.parametrize("limits", [{"max_rows": 3}, {"max_groups": 100}, {"max_rows_contributed": 9}])
@pytest.mark.parametrize("keys", ["", "i", "ki"])
def test_rows_are_counted_one_by_one(keys: str, limits: dict[str, Any], used: list[bool]) -> None:
    """Counts by bin and distinct values of floats and texts, with sums beside them and without."""
    limits = {"max_groups": None if not keys or "max_rows_contributed" in limits else 3, **limits}
    limits = limits if keys else {"max_rows": 3}
    with _both(_large(6000, 50), threads=2) as (fast, plain):
        measures = [distinct_values(_X, 2), distinct_values(_K, 3), row_sum(_X, -10, 0, 2**20)]
        if limits.get("max_groups") != 100:
            most = limits.get("max_rows") or limits["max_rows_contributed"]
            measures += [bin_measure(_X, 0, most, 0, 40), bin_measure(_X, -3, most, -5, 2000)]
        for asked in (measures, measures[:1], measures[-1:]):
            job, secret = _by(fast, keys, *asked, **limits), _SECRET + bytes([len(asked)])
            assert fast.aggregate(job, secret).equals(plain.aggregate(job, secret))
    assert used == [True] * 3


def test_counts_of_public_groups_are_in_their_rows(used: list[bool]) -> None:
    groups = PublicValues(tuple((i,) for i in (9, 2, None, -3, 3, 0)))
    with _both(_large(6000, 50)) as (fast, plain):
        measures = bin_measure(_X, 0, 3, 0, 40), distinct_values(_K, 2)
        job = _by(fast, "i", *measures, max_rows=3, public_groups=groups)
        answer = fast.aggregate(job, _SECRET)
        assert answer.equals(plain.aggregate(job, _SECRET))
        assert answer["m1"].to_pylist()[-2:] == [[], []], "there are no rows of 9 and NULL"
    assert used == [True]


def test_too_many_counts_are_for_sql(used: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_COUNTED_SHARE", 2**40)
    with _both(_large(2000, 50)) as (fast, plain):
        for job in (
            _by(fast, "k", bin_measure(_X, 0, 3, 0, 40), max_rows=3),
            _by(fast, "k", distinct_values(_X, 2)),
        ):
            assert fast.aggregate(job, _SECRET).equals(plain.aggregate(job, _SECRET))
    assert used == [False, False]


def test_counts_that_were_asked_are_remembered(used: list[bool]) -> None:
    with DuckDBEngine(open_source(_large(2_000)), cache=2) as fast:
        bins, distinct = bin_measure(_X, 0, 3, 0, 40), distinct_values(_K, 2)
        first = fast.aggregate(_by(fast, "i", bins, max_rows=3), _SECRET)
        assert fast.aggregate(_by(fast, "i", bins, max_rows=3), b"o" * 32).equals(first)
        assert used == [True], "the second must not bound again"
        other = fast.aggregate(_by(fast, "i", distinct, max_rows=3), _SECRET)
        assert used == [True] * 2
        with DuckDBEngine(open_source(_large(2_000)), kernel=False) as plain:
            assert other.equals(plain.aggregate(_by(plain, "i", distinct, max_rows=3), _SECRET))
            assert first.equals(plain.aggregate(_by(plain, "i", bins, max_rows=3), _SECRET))


def test_parts_that_are_retained_answer_other_measures(used: list[bool]) -> None:
    with DuckDBEngine(open_source(_large(20_000)), cache=2) as fast:
        wide = _by(fast, "k", row_sum(_X, -10, 0, 2**20), mean(_X, -10, 0, 2**17, center=5), max_rows=3)
        fast.aggregate(wide, _SECRET)
        narrow = _by(fast, "k", row_count(2), row_sum(_X, -10, 0, 2**14), max_rows=3)
        answer = fast.aggregate(narrow, b"o" * 32)
        assert used == [True], "the second must not bound again"
        with DuckDBEngine(open_source(_large(20_000)), kernel=False) as plain:
            assert answer.equals(plain.aggregate(narrow, _SECRET))


def test_parts_that_are_too_large_are_not_retained(used: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_RETAINED_SHARE", 2**40)
    with DuckDBEngine(open_source(_large(2_000)), cache=2) as fast:
        job, other = _by(fast, "k"), _by(fast, "k", row_count(2))
        first = fast.aggregate(job, _SECRET)
        fast.aggregate(other, b"o" * 32)
        assert fast.aggregate(job, _SECRET).equals(first)
        assert used == [True] * 3
        ((left,),) = fast._connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE temporary"
        ).fetchall()
        assert left == 0


def _kernel(texts: tuple[bool, ...] = (False, False), values: int = 1, **changes: Any) -> object:
    given = {"secret": bytes(48), "bits": 2, "budget": 1 << 20, "file": -1, **changes}
    texts += (False,) * values if texts else ()
    return _bounding.kernel(given["secret"], texts, values, given["bits"], given["budget"], given["file"])


if run_time(__name__):
    _INTEGERS = kernel_column(pa.array([1, 2, 3]))
    _TEXTS = kernel_column(pa.array(["a", "b", "c"]))


def test_the_door_refuses_what_could_leave_its_memory() -> None:
    for change in (
        {"secret": bytes(47)},
        {"bits": 17},
        {"bits": -1},
        {"values": 65},
        {"values": -1},
        {"texts": ()},
    ):
        with pytest.raises(ValueError, match="secret must have 48 bytes"):
            _kernel(**change)
    made = _kernel()
    good = (_INTEGERS, _INTEGERS, _INTEGERS)
    with pytest.raises(ValueError, match="hold their rows"):
        _bounding.add(made, 4, good)
    with pytest.raises(ValueError, match="hold their rows"):
        _bounding.add(made, 3, ((None, None, np.arange(3, dtype=np.int64), 1, 0), *good[1:]))
    with pytest.raises(ValueError, match="hold their rows"):
        _bounding.add(made, 3, ((b"", None, np.arange(3, dtype=np.int64), 0, 0), *good[1:]))
    offsets = np.array([0, 2, 1, 3], np.int32)
    with pytest.raises(ValueError, match="hold their rows"):
        _bounding.add(_kernel((True, False)), 3, ((None, offsets, b"abc", 0, 0), *good[1:]))
    with pytest.raises(ValueError, match="hold their rows"):
        _bounding.add(
            _kernel((True, False)), 3, ((None, np.arange(4, dtype=np.int32), b"ab", 0, 0), *good[1:])
        )
    for columns in (good[:2], (*good, _INTEGERS), (_TEXTS, *good[1:])):
        with pytest.raises(ValueError, match="as the kernel was made for"):
            _bounding.add(made, 3, columns)
    with pytest.raises(ValueError, match="count"):
        _bounding.add(made, -1, good)
    with pytest.raises(ValueError, match="given after the kernel is sealed"):
        _bounding.measure(made, ())
    for limits in (
        (0, -1, -1, False),
        (-1, -1, -1, True),
        (2, -1, 3, True),
        (-1, -1, 3, False),
        (-2, -1, -1, False),
    ):
        with pytest.raises(ValueError, match="limits"):
            _bounding.seal(made, limits, (), (), ())
    for columns_of in (((1,), (), ()), ((), (-1,), ()), ((), (), (0, 0, 1, 0)), ((), (), (0, 0, 0))):
        with pytest.raises(ValueError, match="columns of values"):
            _bounding.seal(made, (2, -1, -1, False), *columns_of)
    _bounding.add(made, 3, good)
    with pytest.raises(ValueError, match="must have its rows and measures"):
        _bounding.bound(made, 0, 1, False)
    _bounding.seal(made, (2, -1, -1, False), (0,), (0,), ())
    with pytest.raises(ValueError, match="before it is sealed"):
        _bounding.add(made, 3, good)
    for spec in (
        (9, 0, 0, 0, 0, 0, 0, 1, 0),
        (3, 3, 1, 0, 0, 0, 0, 1, 0),
        (4, 2, 0, 0, 0, 0, 0, 1, 0),
        (0,) * 8,
    ):
        with pytest.raises(ValueError, match="nine numbers"):
            _bounding.measure(made, (spec,))
    for counts in (((1, 0, bytes(16)),), ((0, -1, bytes(16)),), ((0, 1, bytes(15)),)):
        fresh = _kernel()
        with pytest.raises(ValueError, match="given once after the kernel is sealed"):
            _bounding.count_rows(fresh, counts, 1 << 20)
        _bounding.seal(fresh, (2, -1, -1, False), (), (), ())
        with pytest.raises(ValueError, match="a column that there is"):
            _bounding.count_rows(fresh, counts, 1 << 20)
    with pytest.raises(ValueError, match="that of a count"):
        _bounding.counted(made, 0)
    texts = _bounding.kernel(bytes(48), (False, False, True), 1, 2, 1 << 20, -1)
    with pytest.raises(ValueError, match="as the kernel was made for"):
        _bounding.add(texts, 3, good)
    with pytest.raises(ValueError, match="columns of values"):
        _bounding.seal(texts, (2, -1, -1, False), (0,), (0,), ())
    with pytest.raises(ValueError, match="index"):
        _bounding.key(made, 1)
    with pytest.raises(ValueError, match="16 bytes"):
        _bounding.ranks(bytes(15), 3, (_INTEGERS,), np.empty(3, np.int64))
    with pytest.raises(ValueError, match="room for the ranks"):
        _bounding.ranks(bytes(16), 3, (_INTEGERS,), np.empty(2, np.int64))


def test_a_row_with_the_mark_of_a_missing_value_is_refused() -> None:
    made = _kernel()
    marked = kernel_column(pa.array([1, -(2**63), 3]))
    with pytest.raises(OverflowError):
        _bounding.add(made, 3, (_INTEGERS, _INTEGERS, marked))


def test_a_file_that_cannot_be_written_is_an_error() -> None:
    made = _kernel(budget=0, file=0x7FFF, bits=0)
    many = kernel_column(pa.array(np.arange(50_000)))
    with pytest.raises(OSError, match="file of rows"):
        _bounding.add(made, 50_000, (many, many, many))


def test_settings_are_those_of_the_database() -> None:
    with DuckDBEngine(open_source(_large(10)), memory_limit="1GiB", threads=3) as made:
        assert made._kernel is not None
        assert made._kernel == KernelSettings(2**30, 3, made._kernel.spill)
    with DuckDBEngine(open_source(_large(10)), kernel=False) as made:
        assert made._kernel is None


def test_a_failure_while_rows_are_read_leaves_the_rest_to_sql(
    used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_BATCH", 2048)
    with _both(_large(20_000), threads=1) as (fast, plain):
        calls: list[int] = []

        def fail(*_: Any) -> None:
            calls.append(1)
            if len(calls) == 2:
                raise MemoryError

        with monkeypatch.context() as broken:
            broken.setattr(_bounding, "add", fail)
            answer = fast.aggregate(_by(fast, "k"), _SECRET)
        assert answer.equals(plain.aggregate(_by(fast, "k"), _SECRET))
        assert fast.aggregate(_by(fast, "k"), _SECRET).equals(answer)
    assert used == [False, True]


def test_a_job_of_more_columns_than_the_kernel_holds_is_done_by_sql(used: list[bool]) -> None:
    """Such a query was charged, and then always failed."""
    table = pa.table({"u": [1, 2, 2], **{f"c{i}": [i, 1, 2] for i in range(66)}})
    columns = [Expression(column(f"c{i}", ColumnType.INTEGER).tree, ColumnType.INTEGER) for i in range(66)]
    with DuckDBEngine(open_source(table)) as fast:
        scan = _scan(fast)
        for many in (64, 65):
            measures = tuple(row_sum(each, 0, 0, 100) for each in columns[:many])
            answer = fast.aggregate(AggregationJob(scan, (), measures, None, None, None), _SECRET)
            assert [answer[f"m{i}"][0].as_py() for i in range(many)] == [i + 3 for i in range(many)]
        for many in (62, 63):
            keys = tuple(Named(f"k{i}", each) for i, each in enumerate(columns[:many]))
            answer = fast.aggregate(AggregationJob(scan, keys, (row_count(9),), 9, None, None), _SECRET)
            assert answer["m0"].to_pylist() == [1] * 3
    assert used == [True, False, True, False]
