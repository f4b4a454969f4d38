"""Fuzzing of neighboring pairs: one unit leaves, and no answer moves by more than was declared.

``SFUMATO_FUZZ_EXAMPLES`` sets the number of random tables, five random jobs on each.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation import bounding, job
from sfumato.queries.engines.compilation.bounding import Step
from sfumato.queries.engines.compilation.measure_columns import MeasureColumns, _Indices
from sfumato.queries.engines.duckdb import _bounding
from sfumato.queries.engines.duckdb.dialect import DuckDB
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.measure import (
    BinCounts,
    DistinctCount,
    GridColumn,
    Measure,
    RowCount,
    RowSum,
    UnitValue,
    ValueCount,
)
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    Filter,
    Named,
    Project,
    PublicTable,
    PublicValues,
    Relation,
    Scan,
    Schema,
)
from sfumato.queries.plan.typed_expressions import TypedTree, column
from sfumato.queries.sql.expressions.scalar import read_expression
from tests.queries.engines.measures import (
    UNITS,
    bin_measure,
    distinct_values,
    mean,
    products,
    row_count,
    row_sum,
    units_with_value,
    value_count,
)

_EXAMPLES = int(os.environ.get("SFUMATO_FUZZ_EXAMPLES", "40"))
_FUZZ = settings(
    max_examples=_EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
_KINDS = ["units", "rows", "values", "units with a value", "sum", "mean", "bins", "products", "distinct"]
_OF_PARTS = [kind for kind in _KINDS if kind not in ("bins", "distinct")]
_WITHOUT_BINS = [kind for kind in _KINDS if kind != "bins"]
_KEYS = ["k", "i", "x", "d", "b", "m", "MOD(i, 3)", "SUBSTR(k, 1, 1)", "DATE_TRUNC(d, MONTH)", "x > 0",
         "ROUND(x)", "1 / x", "CASE WHEN x > i THEN k ELSE 'rest' END", "-x", "i * x"]  # fmt: skip
_NUMBERS = ["x", "i", "x * 2", "i + 1", "i * i", "1 / x", "SQRT(x)", "LENGTH(k)", "IF(b, x, NULL)"]
_NUMBERS += ["EXTRACT(YEAR FROM d)"]
_ANY = [*_NUMBERS, "k", "d", "b", "NULLIF(k, 'a')"]
_FILTERS = [
    "x > 0",
    "b",
    "k <> 'a' OR i IS NULL",
    "MOD(i, 2) = 0",
    "NOT (x < 1)",
    "k LIKE '%a%'",
    "1 / i > 0",
]


class _Scope:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def resolve(self, qualifier: str | None, name: str) -> TypedTree:
        found = self.schema.find(name)
        assert found is not None, name
        return column(found.name, found.type)


def _expression(text: str, schema: Schema) -> Expression:
    return read_expression(
        sqlglot.parse_one(f"SELECT {text}", read="bigquery").expressions[0], _Scope(schema), "it"
    )


def _table(draw: random.Random) -> pa.Table:
    """A few skewed units, values of every kind, many rows twice."""
    count = draw.choice([0, 1, 5, 30, 80])
    units = draw.choice([1, 3, 12])
    heavy = draw.random()
    kinds: list[Callable[[int], Any]] = [int, lambda u: f"unit {u}", lambda u: u + 0.5 if u else math.nan]
    unit = draw.choice(kinds)
    rows: list[tuple[Any, ...]] = []
    for _ in range(count):
        if rows and draw.random() < 0.3:
            rows.append(draw.choice(rows))
            continue
        u = 0 if draw.random() < heavy else draw.randrange(units)
        rows.append((
            None if draw.random() < 0.05 else unit(u),
            draw.choice(["a", "b", "ab", "", None]),
            draw.choice([0, 1, 2, 3, -5, 100, 2**63 - 1, -(2**63), None]),
            draw.choice([0.0, -0.0, 0.1, 2.5, -3.7, 99.9, 1e300, math.inf, -math.inf, math.nan, None]),
            draw.choice([dt.date(2024, 1, 31), dt.date(2024, 2, 1), dt.date(1, 1, 1), None]),
            draw.choice([True, False, None]),
            draw.choice([dt.datetime(2024, 1, 1, 5), dt.datetime(9999, 12, 31), None]),
        ))  # fmt: skip
    types = [
        pa.array([unit(1)]).type,
        pa.string(),
        pa.int64(),
        pa.float64(),
        pa.date32(),
        pa.bool_(),
        pa.timestamp("us"),
    ]
    names = ["u", "k", "i", "x", "d", "b", "m"]
    return pa.table({n: pa.array([row[at] for row in rows], types[at]) for at, n in enumerate(names)})


def _relation(draw: random.Random, scan: Scan) -> Relation:
    relation: Relation = scan
    if draw.random() < 0.4:
        relation = Filter(relation, _expression(draw.choice(_FILTERS), relation.schema))
    if draw.random() < 0.4:
        # names stay, contents move: what is called k above is not what is called k below
        texts = {
            "u": "u",
            "k": "CASE WHEN b THEN k ELSE 'no' END",
            "i": "i - 1",
            "x": "x / 3",
            "d": "d",
            "b": "x > 1",
            "m": "m",
        }
        named = tuple(Named(name, _expression(text, relation.schema)) for name, text in texts.items())
        relation = Project(relation, named, None if scan.unit is None else "u")
    if draw.random() < 0.2:
        relation = Filter(relation, _expression(draw.choice(_FILTERS), relation.schema))
    return relation


def _measure(draw: random.Random, schema: Schema, max_rows: int | None) -> Measure:  # noqa: PLR0911
    kind = draw.choice([kind for kind in _KINDS if kind != "bins" or max_rows])
    if kind == "units":
        return UNITS
    if kind == "bins":
        exponent, lower = draw.choice([0, -10, 3]), draw.choice([-5, 0, 60])
        ends = lower, lower + draw.choice([0, 3, 2000])
        return bin_measure(_expression(draw.choice(_NUMBERS), schema), exponent, max_rows or 1, *ends)
    most = draw.choice([1, 2, 7])
    if kind == "rows":
        return row_count(most)
    if kind == "units with a value":
        return units_with_value(_expression(draw.choice(_ANY), schema))
    if kind == "distinct":
        return distinct_values(_expression(draw.choice(_ANY), schema), draw.choice([1, 2, 4]))
    if kind == "values":
        return value_count(_expression(draw.choice(_ANY), schema), most)
    if kind == "products":
        return _products(draw, schema, max_rows)
    lower = draw.choice([-(2**40), -1000, -1, 0, 3])
    upper = lower + draw.choice([0, 1, 5000, 2**40])
    row_lower, row_upper = draw.choice([(None, None), (-100, 100), (0, 2**30), (5, 5)])
    expression = _expression(draw.choice(_NUMBERS), schema)
    exponent = draw.choice([0, 0, -10, -20, 3, 900, -900, -1070, 70])
    if kind == "sum":
        return row_sum(expression, exponent, lower, upper, row_lower, row_upper)
    return mean(expression, exponent, lower, upper, row_lower, row_upper, center=(lower + upper) // 2)


def _products(draw: random.Random, schema: Schema, max_rows: int | None) -> Measure:
    """A sum of values, squares or products; its range is what the rows that a unit may have come to."""
    texts = draw.sample(_NUMBERS, 2)
    paired = [f"IF({other} IS NOT NULL, {one}, NULL)" for one, other in (texts, texts[::-1])]
    factors = tuple(
        GridColumn(_expression(text, schema), draw.choice([0, -4, 2]), -100, 300, draw.choice([-100, 0, 99]))
        for text in paired
    )
    chosen = draw.choice([factors[:1], (factors[0], factors[0]), factors])
    offset = draw.choice([0, 0, 5000, -7])
    low, high = (end * (max_rows or 3) for end in RowSum(chosen, offset).terms)
    return products(chosen, min(0, low), max(0, high), offset)


def _public(draw: random.Random, keys: tuple[Named, ...]) -> PublicValues | PublicTable | None:
    pools: dict[ColumnType, list[object]] = {
        ColumnType.TEXT: ["a", "no", "zz", None],
        ColumnType.INTEGER: [0, 1, -5, None],
        ColumnType.FLOAT: [0.0, -0.0, 2.5, -3.0, None],
        ColumnType.BOOLEAN: [True, False, None],
        ColumnType.DATE: [dt.date(2024, 1, 31), dt.date(2024, 1, 1), None],
        ColumnType.TIMESTAMP: [dt.datetime(2024, 1, 1, 5), None],
    }
    if not keys or draw.random() < 0.6:
        return None
    if len(keys) == 1 and keys[0].expression.type is ColumnType.TEXT and draw.random() < 0.5:
        return PublicTable("public", ("name",))
    count = draw.choice([0, 1, 3, 6])
    return PublicValues(
        tuple(tuple(draw.choice(pools[k.expression.type]) for k in keys) for _ in range(count))
    )


def _job(draw: random.Random, schema: Schema) -> AggregationJob:
    scan = Scan("data", schema, None if draw.random() < 0.15 else "u")
    relation = _relation(draw, scan)
    texts = draw.sample(_KEYS, draw.choice([0, 1, 1, 1, 2]))
    keys = tuple(Named(f"key{at}", _expression(text, relation.schema)) for at, text in enumerate(texts))
    max_rows = draw.choice([None, 1, 2, 5])
    unbounded = draw.random() < 0.2 and bool(keys) and scan.unit is not None
    measures = [_measure(draw, relation.schema, max_rows) for _ in range(draw.choice([1, 2, 4]))]
    most = draw.choice([1, 2, 3, 100]) if keys and scan.unit is not None else None
    public = _public(draw, keys)
    together = (UNITS, *measures)
    if unbounded:
        return _in_all_groups(draw, AggregationJob(relation, keys, together, None, None, public))
    return AggregationJob(relation, keys, together, most, max_rows, public)


_BY_ROWS = (RowCount, ValueCount, BinCounts, DistinctCount)


def _in_all_groups(draw: random.Random, job: AggregationJob) -> AggregationJob:
    """Bound a unit's rows over all groups instead, and what it adds to all of them."""
    most = draw.choice([1, 2, 4, 9])
    measures = tuple(
        replace(
            measure, upper=most if isinstance(measure.value, BinCounts) else min(measure.upper, most), l1=most
        )
        if isinstance(measure.value, _BY_ROWS)
        else measure
        for measure in job.measures
    )
    return replace(job, measures=measures, max_rows_contributed=most)


def _on(relation: Relation, table: str) -> Relation:
    if isinstance(relation, Scan):
        return replace(relation, table=table)
    assert isinstance(relation, (Filter, Project))
    return replace(relation, child=_on(relation.child, table))


def _answer(engine: DuckDBEngine, job: AggregationJob, secret: bytes) -> dict[tuple[Any, ...], list[Any]]:
    table = engine.aggregate(job, secret)
    assert table.column_names == [f"k{i}" for i in range(len(job.keys))] + [
        f"m{i}" for i in range(len(job.measures))
    ]
    rows = [tuple(row.values()) for row in table.to_pylist()]
    answer = {row[: len(job.keys)]: list(map(_bins, row[len(job.keys) :])) for row in rows}
    assert len(answer) == len(rows), "a group occurs twice"
    return answer


def _bins(value: Any) -> Any:
    """Counts by bin as a counter, which has no order and no empty bins."""
    if not isinstance(value, list):
        return value
    bins = Counter({each["leaf"]: each["n"] for each in value})
    assert len(bins) == len(value), "a bin occurs twice"
    return bins


def _moved(one: int | Counter[int], other: int | Counter[int]) -> int:
    """By how much a number differs; counts by bin, all together."""
    if isinstance(one, Counter) and isinstance(other, Counter):
        return sum(abs(one[leaf] - other[leaf]) for leaf in one.keys() | other.keys())
    assert isinstance(one, int)
    assert isinstance(other, int)
    return abs(one - other)


def _violations(
    job: AggregationJob, whole: Mapping[tuple[Any, ...], list[Any]], less: Mapping[tuple[Any, ...], list[Any]]
) -> list[str]:
    """What differs by more than one unit may make it differ."""
    nothing: list[Any] = [Counter() if isinstance(m.value, BinCounts) else 0 for m in job.measures]
    found, changed = [], 0
    together = [0] * len(job.measures)
    if job.public_groups is not None and list(whole) != list(less):
        found.append("public groups differ")
    for key in whole.keys() | less.keys():
        moves = [_moved(a, b) for a, b in zip(whole.get(key, nothing), less.get(key, nothing), strict=True)]
        changed += any(moves) or (key in whole) != (key in less)
        together = [one + abs(move) for one, move in zip(together, moves, strict=True)]
        for move, measure in zip(moves, job.measures, strict=True):
            if move > measure.sensitivity:
                found.append(
                    f"{type(measure.value).__name__} moved by {move}, declared {measure.sensitivity}"
                )
    groups = job.max_groups or job.max_rows_contributed or 1
    if changed > groups:
        found.append(f"{changed} groups changed, declared {groups}")
    for moved, measure in zip(together, job.measures, strict=True):
        if measure.l1 is not None and moved > measure.l1:
            found.append(f"{type(measure.value).__name__} moved all groups by {moved}, declared {measure.l1}")
    return found


def _moves(engine: DuckDBEngine, job: AggregationJob, less: str, secret: bytes) -> list[str]:
    """What differs too much between a job's answer and that over another table."""
    engine.check(job)
    without = replace(job, relation=_on(job.relation, less))
    return _violations(job, _answer(engine, job, secret), _answer(engine, without, secret))


_KERNEL = (True, False)
"""Whether the bounding kernel does what it can, or SQL does all; the planted faults are in SQL."""


def _same_unit(value: Any, other: Any) -> bool:
    return value == other or (value is None and other is None) or (value != value and other != other)  # noqa: PLR0124


def _fuzz(seed: int, jobs: int = 4) -> list[str]:
    """Draw a table, take one unit out, and return the violations of random jobs."""
    draw = random.Random(seed)
    table = _table(draw)
    values = table["u"].to_pylist()
    gone = draw.choice(values) if values else None
    at = draw.randrange(len(values)) if values else 0
    without_unit = table.filter(pa.array([not _same_unit(value, gone) for value in values], pa.bool_()))
    without_row = table.filter(pa.array([i != at for i in range(len(values))], pa.bool_()))
    public = pa.table({"name": pa.array(["a", "b", "a", None, "zz"])})
    tables = {"data": table, "without unit": without_unit, "without row": without_row, "public": public}
    kernel = random.Random(seed + 1).choice(_KERNEL)
    found: list[str] = []
    with DuckDBEngine(open_source(tables), threads=draw.choice([1, 2]), kernel=kernel) as engine:
        for less, per_row in [("without unit", False)] * jobs + [("without row", True)]:
            job = _job(draw, engine.schemas["data"])
            while (job.relation.unit is None) is not per_row:
                job = _job(draw, engine.schemas["data"])
            found += _moves(engine, job, less, draw.randbytes(32))
    return found


@pytest.mark.parametrize("examples", [4, _EXAMPLES])
def test_one_unit_moves_no_answer_by_more_than_declared(examples: int) -> None:
    @settings(_FUZZ, max_examples=examples)
    @given(st.integers(0, 2**64))
    def fuzz(seed: int) -> None:
        assert _fuzz(seed) == []

    fuzz()


def _caught(first: int = 0) -> bool:
    """Tell whether a planted fault shows; a rare one shows in few tables, and those before are left out."""
    return any(_fuzz(seed) for seed in range(first, 60))


def test_the_fuzz_catches_a_choice_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice by where rows happen to lie: another unit's absence changes it."""
    monkeypatch.setitem(globals(), "_KERNEL", (False,))
    monkeypatch.setitem(globals(), "_KINDS", _OF_PARTS)  # the others are counted without ``parts``
    keyed = bounding._rank
    monkeypatch.setattr(
        bounding,
        "_rank",
        lambda dialect, secret, purpose, columns: (
            "(row_number() OVER () * 7919 % 31)"
            if purpose == "groups"
            else keyed(dialect, secret, purpose, columns)
        ),
    )
    assert _caught(17)


def test_the_fuzz_catches_a_missing_clamp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "_KERNEL", (False,))
    monkeypatch.setattr(DuckDB, "clamped", lambda self, column, bounds, known=None: column)
    assert _caught()


def test_the_fuzz_catches_one_group_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "_KERNEL", (False,))
    limits = job._limits

    def one_more(job: AggregationJob, *, unit: bool) -> tuple[int | None, int | None, int | None]:
        groups, rows, all_rows = limits(job, unit=unit)
        return None if groups is None else groups + 1, rows, all_rows

    monkeypatch.setattr(job, "_limits", one_more)
    assert _caught()


def test_the_fuzz_catches_bins_of_rows_that_were_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts by bin of all rows, where a unit has more than it may."""
    monkeypatch.setitem(globals(), "_KERNEL", (False,))
    leaves = bounding.Bounding.leaves

    def of_all(self: bounding.Bounding, index: int, *, unit: bool, any_crowded: bool) -> str:
        return leaves(self, index, unit=unit, any_crowded=False)

    monkeypatch.setattr(bounding.Bounding, "leaves", of_all)
    assert _caught(6)


def test_the_fuzz_catches_float_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of floats round, by an amount that depends on everyone: here to eights, as far out."""
    monkeypatch.setitem(globals(), "_KERNEL", (False,))
    monkeypatch.setitem(globals(), "_KINDS", _WITHOUT_BINS)
    totals = bounding.Bounding.totals

    def float_totals(self: bounding.Bounding, **given: Any) -> str:
        sql = totals(self, **given)
        return re.sub(r"sum\((m\d+)\)", r"CAST(CAST(sum(\1) AS FLOAT) / 8 AS BIGINT) * 8", sql)

    monkeypatch.setattr(bounding.Bounding, "totals", float_totals)
    assert _caught()


def test_the_fuzz_catches_bounding_before_the_projection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are chosen by the keys of the table, and then a key is redefined (opendp #2949)."""
    monkeypatch.setitem(globals(), "_KERNEL", (False,))
    rank = bounding._rank
    monkeypatch.setattr(
        bounding,
        "_rank",
        lambda dialect, secret, purpose, columns: rank(
            dialect, secret, purpose, ["u"] if purpose == "groups" else columns
        ),
    )
    cuts = bounding.Bounding.cuts

    def by_unit_only(self: bounding.Bounding) -> Step:
        return Step("cuts", f"SELECT u, NULL::UBIGINT AS cut FROM ({cuts(self).select}) AS r")

    monkeypatch.setattr(bounding.Bounding, "cuts", by_unit_only)
    assert _caught()


def test_the_fuzz_catches_a_row_too_many_in_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "_KERNEL", (False,))
    monkeypatch.setitem(globals(), "_KINDS", _WITHOUT_BINS)  # with bins the engine itself refuses
    limits = job._limits

    def one_more(job: AggregationJob, *, unit: bool) -> tuple[int | None, int | None, int | None]:
        groups, rows, all_rows = limits(job, unit=unit)
        return groups, rows, None if all_rows is None else all_rows + 1

    monkeypatch.setattr(job, "_limits", one_more)
    assert _caught(9)


def test_the_fuzz_catches_products_of_values_that_are_not_clamped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "_KERNEL", (False,))
    place = MeasureColumns._place

    def loose(columns: MeasureColumns, value: UnitValue) -> _Indices:
        if isinstance(value, RowSum):
            wide = tuple(replace(f, lower=10 * f.lower, upper=10 * f.upper) for f in value.factors)
            return place(columns, replace(value, factors=wide))
        return place(columns, value)

    monkeypatch.setattr(MeasureColumns, "_place", loose)
    monkeypatch.setattr(DuckDB, "clamped", lambda self, column, bounds, known=None: column)
    assert _caught()


def test_the_fuzz_catches_distinct_values_of_units_that_may_not_bring_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every distinct value of a unit counts, not only so many."""
    monkeypatch.setitem(globals(), "_KERNEL", (False,))
    monkeypatch.setitem(globals(), "_KINDS", ["distinct"])
    distinct = bounding.Bounding.distinct

    def all_of_them(self: bounding.Bounding, index: int, *, unit: bool, any_crowded: bool) -> str:
        return re.sub(
            r"place <= \d+$", "TRUE", distinct(self, index, unit=unit, any_crowded=any_crowded)
        ).replace(f"place <= {self.slots.measures[index].upper}", "TRUE")

    monkeypatch.setattr(bounding.Bounding, "distinct", all_of_them)
    assert _caught(6)


def test_the_fuzz_catches_a_kernel_that_lets_units_bring_more_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same fault in the bounding kernel: twenty distinct values more than were declared."""
    monkeypatch.setitem(globals(), "_KERNEL", (True,))
    monkeypatch.setitem(globals(), "_KINDS", ["distinct"])
    count_rows = _bounding.count_rows

    def of_more(kernel: object, counts: tuple[tuple[int, int, bytes], ...], room: int) -> None:
        count_rows(kernel, tuple((column, most + 20, key) for column, most, key in counts), room)

    monkeypatch.setattr(_bounding, "count_rows", of_more)
    assert _caught(11)
