"""A trial of what queries need of an engine, made when a source opens: under a query it would cost a charge.

A query makes tables, fills them, and ranks and adds up rows. Who may read the rows may still be barred from
some of that, by the rights of a user, by a setting or by a limit on memory: then every query is charged, and
none is answered. So an engine first computes one job over rows that stand in the text of its statements. Who
connects is stated, and nothing of it depends on the data.
"""

from __future__ import annotations

from typing import Final

from sfumato.queries.engines.compilation.job import CompiledJob, compile_job
from sfumato.queries.engines.dialects.base import Dialect, StoredColumn, StoredTable
from sfumato.queries.plan.measure import BinCounts, DistinctCount, GridColumn, Measure, One, RowSum
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    Named,
    PublicValues,
    Scan,
)
from sfumato.queries.plan.typed_expressions import column

__all__ = ["run_self_test"]

_TABLE: Final = "run_self_test"
_COLUMNS: Final = {
    "unit": ColumnType.INTEGER,
    "key": ColumnType.TEXT,
    "value": ColumnType.FLOAT,
}
_ROWS: Final = ((1, "a", 0.5), (1, "a", 1.5), (1, "b", 2.5), (1, "b", 3.5), (2, "a", 4.5))


def run_self_test(dialect: Dialect) -> CompiledJob:
    """Return a job that takes every step: of a unit too many groups and rows, listed groups, values by bin.

    Examples
    --------
    >>> from sfumato.queries.engines.duckdb.dialect import DUCKDB
    >>> made = run_self_test(DUCKDB)
    >>> [step.name for step in made.bounding(bytes(32)).steps()]
    ['parts', 'cuts', 'crowded', 'chosen', 'trimmed']
    """
    table = _table(dialect)
    key, value = (Expression(column(name, _COLUMNS[name]).tree, _COLUMNS[name]) for name in ("key", "value"))
    halves = GridColumn(value, -1, 0, 16)
    measures = (
        Measure(One()),
        Measure(RowSum((halves,)), -1, 0, 16),
        Measure(BinCounts(halves), -1),
        Measure(DistinctCount(value)),
    )
    groups = PublicValues((("a",), ("b",), (None,)))
    scan = Scan(_TABLE, table.schema, "unit")
    job = AggregationJob(scan, (Named("key", key),), measures, 1, 1, groups)
    return compile_job(job, {_TABLE: table}, dialect)


def _table(dialect: Dialect) -> StoredTable:
    """Return the rows as a table that stands in the text."""
    names = [dialect.identifier(name) for name in _COLUMNS]
    selects = []
    for unit, key, value in _ROWS:
        values = (dialect.integer(unit), dialect.text(key), dialect.real(value))
        selects.append("SELECT " + ", ".join(f"{v} AS {n}" for v, n in zip(values, names, strict=True)))
    columns = tuple(StoredColumn(name, "", type_) for name, type_ in _COLUMNS.items())
    return StoredTable(f"({' UNION ALL '.join(selects)}) AS {_TABLE}", columns)
