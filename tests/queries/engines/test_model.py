"""The engine against a brute-force model of bounding in Python, given the same ranks."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from fractions import Fraction
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation import bounding
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.duckdb.ranks import RANKED_DUCKDB
from sfumato.queries.plan.measure import (
    AtLeast,
    BinCounts,
    GridColumn,
    Measure,
    One,
    RowCount,
    RowMean,
    RowSum,
    UnitValue,
    ValueCount,
)
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    Named,
    Scan,
)
from tests.chance import accepts_only, frequencies
from tests.queries.engines.measures import (
    UNITS,
    bin_measure,
    mean,
    products,
    row_count,
    row_sum,
    units_with_value,
    value_count,
)

_SECRET = b"model" * 8
_X = Expression(exp.column("x", quoted=True), ColumnType.FLOAT)
_K = Expression(exp.column("k", quoted=True), ColumnType.TEXT)
_ONE = GridColumn(_X, -4, -40, 800, 100)  # on the grid of the first sum
_TWO = GridColumn(_X, -4, -(2**48), 60, -(2**16))
_MEASURES = (
    UNITS,
    row_count(3),
    value_count(_X, 2),
    units_with_value(_X),
    row_sum(_X, -4, -50, 1000, -40, 800),
    row_sum(_X, -4, 5, 2**40),
    mean(_X, -4, 0, 300, center=150),
    products((_ONE,), -500, 900, offset=3),
    products((_ONE, _ONE), -9000, 10**6, offset=5000),
    products((_ONE, _TWO), -(10**5), 10**5),
    bin_measure(_X, -4, 40, -40, 800),
)


def _grid(x: float | None, column: GridColumn) -> int | None:
    if x is None or math.isnan(x):
        return None
    if math.isinf(x):
        return column.upper if x > 0 else column.lower
    return min(max(round(Fraction(x) / Fraction(2) ** column.exponent), column.lower), column.upper)


def _adds(measure: Measure, rows: list[float | None]) -> Any:
    """What one unit adds to one group, from its rows that stay."""
    if isinstance(measure.value, BinCounts):
        column = measure.value.column
        return Counter(v - column.lower for v in (_grid(x, column) for x in rows) if v is not None)
    value = _value(measure.value, rows)
    return 0 if value is None else min(max(value, measure.lower), measure.upper) - measure.center


def _value(value: UnitValue, rows: list[float | None]) -> int | None:
    """A value over the rows of a unit, as its words say."""
    there = [x for x in rows if x is not None and not math.isnan(x)]
    match value:
        case One():
            return 1
        case RowCount():
            return len(rows)
        case ValueCount():
            return len(there)
        case AtLeast():
            return int((_value(value.value, rows) or 0) >= value.minimum)
        case RowSum():
            return sum(_product(x, value) for x in there) if there else None
        case RowMean():
            mean = Fraction(sum(_grid(x, value.column) or 0 for x in there), len(there) or 1)
            away = math.floor(abs(mean) + Fraction(1, 2))
            return (away if mean >= 0 else -away) if there else None
    raise AssertionError(value)


def _product(x: float, value: RowSum) -> int:
    return math.prod((_grid(x, each) or 0) - each.center for each in value.factors) - value.offset


def _nothing() -> list[Any]:
    """What is added to: the counts by bin come last."""
    return [*[0] * (len(_MEASURES) - 1), Counter()]


def _bins(value: Any) -> Any:
    return Counter({each["leaf"]: each["n"] for each in value}) if isinstance(value, list) else value


class _Ranks:
    """The engine's ranks of given values; the model decides everything else."""

    def __init__(self, engine: DuckDBEngine) -> None:
        self.run = engine._connection.execute

    def group(self, unit: int, key: str | None) -> int:
        sql = bounding._rank(RANKED_DUCKDB, _SECRET, "groups", ["CAST(? AS BIGINT)", "CAST(? AS VARCHAR)"])
        return int(self.run(f"SELECT {sql}", [unit, key]).fetchall()[0][0])

    def row(self, unit: int, key: str | None, values: list[int | None], number: int) -> int:
        places = ["CAST(? AS BIGINT)", "CAST(? AS VARCHAR)", *["CAST(? AS BIGINT)"] * (len(values) + 1)]
        sql = bounding._rank(RANKED_DUCKDB, _SECRET, "rows", places)
        return int(self.run(f"SELECT {sql}", [unit, key, *values, number]).fetchall()[0][0])


def _model(
    table: pa.Table, ranks: _Ranks, max_groups: int, max_rows: int | None
) -> dict[str | None, list[Any]]:
    parts: dict[tuple[int, str | None], list[float | None]] = defaultdict(list)
    for row in table.to_pylist():
        if row["u"] is not None:
            parts[row["u"], row["k"]].append(row["x"])
    keys_of: dict[int, list[str | None]] = defaultdict(list)
    for unit, key in parts:
        keys_of[unit].append(key)
    answer: dict[str | None, list[Any]] = {}
    for unit, keys in keys_of.items():
        rank = partial(ranks.group, unit)
        for key in sorted(keys, key=rank)[:max_groups]:
            rows = _stay(unit, key, parts[unit, key], ranks, max_rows)
            added = [_adds(measure, rows) for measure in _MEASURES]
            answer[key] = [a + b for a, b in zip(answer.get(key, _nothing()), added, strict=True)]
    return answer


def _stay(
    unit: int, key: str | None, rows: list[float | None], ranks: _Ranks, max_rows: int | None
) -> list[float | None]:
    if max_rows is None or len(rows) <= max_rows:
        return rows
    seen: Counter[tuple[int | None, ...]] = Counter()
    ranked = []
    for x in rows:
        values = _slot_values(x)
        seen[tuple(values)] += 1
        ranked.append((ranks.row(unit, key, values, seen[tuple(values)]), x))
    return [x for _, x in sorted(ranked, key=lambda pair: pair[0])[:max_rows]]


def _slot_values(x: float | None) -> list[int | None]:
    """The columns that rows are told apart by: the mean's are those of the second sum."""
    columns = [*_MEASURES[4].value.columns, *_MEASURES[5].value.columns, _TWO]
    return [_grid(x, column) for column in columns]


def _random_table(seed: int) -> pa.Table:
    draw = random.Random(seed)
    pool = [0.0, -0.0, 0.03125, 0.09375, 2.5, -7.3, 19.99, 1e300, math.inf, -math.inf, math.nan, None, 1e12]
    rows = [
        (draw.choice([1, 1, 2, 3, 4, None]), draw.choice(["a", "b", "c", "dd", None]), draw.choice(pool))
        for _ in range(90)
    ]
    columns = list(zip(*rows, strict=True))
    return pa.table({
        "u": pa.array(columns[0], pa.int64()), "k": pa.array(columns[1], pa.string()),
        "x": pa.array(columns[2], pa.float64()),
    })  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("max_groups", "max_rows"), [(100, None), (2, None), (100, 2), (1, 1), (3, 4)])
def test_equals_the_model(seed: int, max_groups: int, max_rows: int | None) -> None:
    table = _random_table(seed)
    with DuckDBEngine(open_source(table), threads=2) as engine:
        scan = Scan("data", engine.schemas["data"], "u")
        measures = _MEASURES if max_rows is not None else _MEASURES[:-1]  # bins need a limit on rows
        job = AggregationJob(scan, (Named("k", _K),), measures, max_groups, max_rows, None)
        answer = engine.aggregate(job, _SECRET)
        expected = _model(table, _Ranks(engine), max_groups, max_rows)
    rows = [tuple(row.values()) for row in answer.to_pylist()]
    found = {row[0]: list(map(_bins, row[1:])) for row in rows}
    assert found == {key: numbers[: len(measures)] for key, numbers in expected.items()}
    keys: list[Any] = [row[0] for row in rows]
    assert keys == sorted(k for k in keys if k is not None) + [None] * (None in keys)


def _within(table: pa.Table, ranks: _Ranks, all_rows: int) -> dict[str | None, list[Any]]:
    """The model where a unit's rows are bounded in all groups together."""
    rows_of: dict[int, list[tuple[str | None, float | None]]] = defaultdict(list)
    for row in table.to_pylist():
        if row["u"] is not None:
            rows_of[row["u"]].append((row["k"], row["x"]))
    answer: dict[str | None, list[Any]] = {}
    for unit, rows in rows_of.items():
        seen: Counter[tuple[Any, ...]] = Counter()
        ranked = []
        for key, x in rows:
            values = _slot_values(x)
            seen[key, *values] += 1
            ranked.append((ranks.row(unit, key, values, seen[key, *values]), key, x))
        most = len(rows) if len(rows) <= all_rows else all_rows
        kept: dict[str | None, list[float | None]] = defaultdict(list)
        for _, key, x in sorted(ranked, key=lambda rank: rank[0])[:most]:
            kept[key].append(x)
        for key, values_of in kept.items():
            added = [_adds(measure, values_of) for measure in _MEASURES]
            answer[key] = [a + b for a, b in zip(answer.get(key, _nothing()), added, strict=True)]
    return answer


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("all_rows", [1, 2, 5, 17, 40])
def test_equals_the_model_where_all_rows_are_bounded(seed: int, all_rows: int) -> None:
    table = _random_table(seed)
    with DuckDBEngine(open_source(table), threads=2) as engine:
        scan = Scan("data", engine.schemas["data"], "u")
        keys = (Named("k", _K),)
        job = AggregationJob(scan, keys, _MEASURES, None, None, None, max_rows_contributed=all_rows)
        answer = engine.aggregate(job, _SECRET)
        expected = _within(table, _Ranks(engine), all_rows)
    assert {
        row["k0"]: [_bins(row[f"m{i}"]) for i in range(len(_MEASURES))] for row in answer.to_pylist()
    } == expected


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_threads_matter(seed: int) -> None:
    table = _random_table(seed)
    order = list(range(table.num_rows))
    random.Random(seed).shuffle(order)
    answers = []
    for rows, threads in ((table, 1), (table.take(order), 2)):
        with DuckDBEngine(open_source(rows), threads=threads) as engine:
            scan = Scan("data", engine.schemas["data"], "u")
            answers.append(
                engine.aggregate(AggregationJob(scan, (Named("k", _K),), _MEASURES, 2, 2, None), _SECRET)
            )
    assert answers[0].equals(answers[1])


def test_every_group_and_row_has_the_same_chance() -> None:
    """Of 4000 units each keeps 1 of 8 groups and 1 of 8 rows."""
    units, keys = 4000, 8
    people = [unit for unit in range(units) for _ in range(keys)]
    labels = [f"key {i}" for i in range(keys)] * units
    x = [float(i) for i in range(keys)] * units
    with DuckDBEngine(open_source(pa.table({"u": people, "k": labels, "x": x}))) as engine:
        scan = Scan("data", engine.schemas["data"], "u")
        job = AggregationJob(scan, (Named("k", _K),), (UNITS,), 1, None, None)
        by_key = engine.aggregate(job, _SECRET)["m0"].to_pylist()
        # clamped to {v, v + 1} a row adds one more than v where its value is above v
        sums = (row_sum(_X, 0, v, v + 1, v, v + 1) for v in range(keys - 1))
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


def test_terms_of_moments_have_the_least_and_the_greatest_of_all_values() -> None:
    for lower, upper, center, offset in itertools.product((-7, -2, 0, 3), (3, 5, 9), (-4, 0, 4, 8), (0, 6)):
        one, other = GridColumn(_X, 0, lower, upper, center), GridColumn(_X, 0, -3, 2, 1)
        mine, others = range(lower - center, upper - center + 1), range(-4, 2)
        values = {
            (one,): [x - offset for x in mine],
            (one, one): [x * x - offset for x in mine],
            (one, other): [x * y - offset for x in mine for y in others],
        }
        for factors, possible in values.items():
            assert RowSum(factors, offset).terms == (min(possible), max(possible))
