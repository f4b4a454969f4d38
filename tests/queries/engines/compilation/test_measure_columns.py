"""Sums of a unit's rows: exact whatever the order and size, also where they are limited to 64 bits."""

from __future__ import annotations

import random

import pyarrow as pa
from sqlglot import exp

from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation.measure_columns import MeasureColumns
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.measure import AtLeast, GridColumn, Measure, RowMean, RowSum
from sfumato.queries.plan.query import AggregationJob, ColumnType, Expression, Named, Scan

_X = Expression(exp.column("x", quoted=True), ColumnType.INTEGER)
_K = Expression(exp.column("k", quoted=True), ColumnType.INTEGER)
_END = 2**62
_WHOLE = GridColumn(_X, 0, -_END, _END)
_SUM, _NARROW = Measure(RowSum((_WHOLE,)), 0, -_END, _END), Measure(RowSum((_WHOLE,)), 0, -9, 1000)
_MEAN = Measure(RowMean(_WHOLE), 0, -(2**24), 2**24)
_OFTEN = Measure(AtLeast(RowSum((_WHOLE,)), 5))
_LARGE = Measure(RowMean(_WHOLE), 0, -_END, _END)
_SHIFTED = Measure(RowSum((GridColumn(_X, 0, -_END // 2, _END // 2),), 3), 0, -_END, _END)


def _expected(measure: Measure, rows: list[int]) -> int:
    value, count = measure.value, len(rows)
    (column,) = value.columns
    total = sum(min(max(x, column.lower), column.upper) for x in rows)
    if isinstance(value, AtLeast):
        return int(total >= value.minimum)
    if isinstance(value, RowMean):
        whole = (2 * abs(total) + count) // (2 * count)
        total = whole if total >= 0 else -whole
    elif isinstance(value, RowSum):
        total -= value.offset * count
    return min(max(total, measure.lower), measure.upper)


def test_sums_are_exact_whatever_is_added_on_the_way() -> None:
    for measures in ((_SUM, _NARROW, _MEAN, _OFTEN), (_LARGE, _SHIFTED, _MEAN, _SUM)):
        _check(measures)


def _check(measures: tuple[Measure, ...]) -> None:
    """Each unit is alone in a group; its values leave 64 bits on the way and come back, or do not."""
    draw = random.Random(17)
    parts = [[_END] * 3, [-_END] * 5, [_END] * 4 + [-_END] * 4 + [5], [-_END, 7, _END], [_END, -_END, -1]]
    parts += [
        [draw.choice((_END, -_END, _END - 1, 9, -2)) for _ in range(draw.randint(1, 9))] for _ in range(60)
    ]
    rows = [(number, value) for number, part in enumerate(parts) for value in part]
    draw.shuffle(rows)
    table = pa.table({"k": [k for k, _ in rows], "x": [x for _, x in rows]})
    with DuckDBEngine(open_source(table)) as engine:
        job = AggregationJob(
            Scan("data", engine.schemas["data"], "k"), (Named("key", _K),), measures, 1, None, None
        )
        engine.check(job)
        answer = engine.aggregate(job, bytes(32)).to_pydict()
    for index, measure in enumerate(measures):
        assert answer[f"m{index}"] == [_expected(measure, part) for part in parts]


def test_a_sum_stands_in_64_bits_where_nothing_can_tell() -> None:
    def sums(*measures: Measure, rows: int | None = None) -> list[str]:
        return [name for name in MeasureColumns(measures, rows, DUCKDB).part_names if name[0] in "sl"]

    assert sums(_SUM, _NARROW, _MEAN, _OFTEN) == ["l0"]
    assert sums(_SUM, _LARGE) == ["s0"]  # a mean beyond 2**24
    assert sums(_SHIFTED) == ["s0"]  # what is subtracted may bring a large sum back
    assert sums(_MEAN, rows=1) == ["l0"]
    small = Measure(RowSum((GridColumn(_X, 0, 0, 9),)), 0, 0, 90)
    assert sums(small, rows=10) == ["s0"]  # it cannot be large
