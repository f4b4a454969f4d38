"""Columns of every type that a table can hold, with the edges of each, and what an engine must say of them.

An engine carries a column exactly, or does not carry it at all: what it counts, groups by, distinguishes and
takes for units are the very values that differ, or a query that names the column is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from sfumato.queries.engines.engine import Engine
from sfumato.queries.plan.measure import DistinctCount, Measure, One, ValueCount
from sfumato.queries.plan.query import AggregationJob, Expression, Named, Scan

__all__ = ["violations"]

_SECRET = bytes(range(32))
_MOST = 1_000


def violations(
    engine: Engine, columns: Mapping[str, Sequence[Any]], *, unit: str = "person", merged: Sequence[str] = ()
) -> list[str]:
    """Return what an engine gets wrong of the columns of table ``data``, each row of which has another unit.

    Parameters
    ----------
    engine : Engine
    columns : mapping
        For each column the values of its rows, each value standing for itself: two that an engine must take
        for one are equal here, and None is no value.
    unit : str
        The column in which every row has another value.
    merged : sequence of str
        Columns of which only the number of values is compared, because a unit may not be a text.
    """
    schema = engine.schemas["data"]
    found: list[str] = []
    for name, values in columns.items():
        column = schema.find(name)
        assert column is not None, name
        there = [value for value in values if value is not None]
        # as a unit: as many people as values that differ
        job = AggregationJob(Scan("data", schema, name), (), (Measure(One()),), None, None, None)
        engine.check(job)
        got = engine.aggregate(job, _SECRET)["m0"].to_pylist()
        if got != [len(set(there))]:
            found.append(f"{name}: {got} units of {len(set(there))}")
        if column.type is None or name in merged:
            continue
        value = Expression(exp.column(name, quoted=True), column.type)
        measures = (
            Measure(ValueCount(value), upper=1),
            Measure(DistinctCount(value), upper=_MOST),
        )
        scan = Scan("data", schema, unit)
        job = AggregationJob(scan, (), measures, None, None, None)
        engine.check(job)
        (row,) = engine.aggregate(job, _SECRET).to_pylist()
        if row != {"m0": len(there), "m1": len(set(there))}:
            found.append(f"{name}: {row} of {len(there)} values, {len(set(there))} of which differ")
        job = AggregationJob(scan, (Named("k", value),), (Measure(One()),), 1, None, None)
        engine.check(job)
        groups = sorted(engine.aggregate(job, _SECRET)["m0"].to_pylist())
        if groups != sorted(Counter(values).values()):
            found.append(f"{name}: groups of {groups}, not of {sorted(Counter(values).values())}")
    return found
