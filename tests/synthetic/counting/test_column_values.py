"""Values that an engine counts: those of rows in memory, and of a unit one row at most."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.nodes import Scan
from sfumato.synthetic import BoughtCategories, BoughtDomain, BoughtEdges
from sfumato.synthetic.counting.column_values import read_values, values_job
from tests.synthetic.counting.cells import DATES, DECIMALS, FLOATS, INTEGERS, MOMENTS, TEXTS, rows_of

EDGES = BoughtEdges(0, 10, bins=4)
DAYS = BoughtEdges(dt.date(2020, 1, 1), dt.date(2021, 1, 1), bins=4)


def columns() -> list[tuple[Any, pa.Array]]:
    return [
        (BoughtCategories(), pa.array([*TEXTS, "a\0b"])),
        (BoughtCategories(), pa.array(INTEGERS)),
        (EDGES, pa.array(INTEGERS)),
        (EDGES, pa.array(FLOATS)),
        (EDGES, pa.array(DECIMALS, pa.decimal128(30, 9))),
        (DAYS, pa.array(DATES)),
        (DAYS, pa.array(MOMENTS, pa.timestamp("us"))),
    ]


def values(engine: DuckDBEngine, table: str, wanted: Any, unit: str | None = None) -> Counter[Any]:
    job = values_job(Scan(table, engine.schemas[table], unit), "value", wanted)
    found = read_values(wanted, engine.aggregate(job, bytes(32)))
    return Counter(found if isinstance(found, dict) else found.tolist())


def test_an_engine_counts_what_rows_in_memory_have() -> None:
    tables = {f"t{number}": rows_of(column) for number, (_, column) in enumerate(columns())}
    with DuckDBEngine(open_source(tables)) as engine:
        for (name, table), (wanted, _) in zip(tables.items(), columns(), strict=True):
            mechanism = BoughtDomain({"value": wanted}, epsilon=1.0, delta=1e-6)
            expected = mechanism.inputs(table)["value"]
            held = Counter(expected if isinstance(expected, dict) else expected.tolist())
            assert values(engine, name, wanted) == held, (wanted, table)
            assert len(held) > 3


@pytest.mark.parametrize("wanted", [BoughtCategories(), EDGES])
def test_a_unit_that_leaves_takes_one_row_with_a_value_out_of_one_value_at_most(wanted: Any) -> None:
    owned = [*combinations([None, 1, 1, 5, -3], 3), (None, None), (7,), ()]
    rest = [("a", 1), ("a", 1), ("b", 5), (None, 9)]
    tables = {
        f"t{number}": pa.table({
            "u": pa.array([unit for unit, _ in rest] + ["new"] * len(own)),
            "value": pa.array([value for _, value in rest] + list(own), pa.int64()),
        })
        for number, own in enumerate(owned)
    }  # fmt: skip
    with DuckDBEngine(open_source(tables)) as engine:
        without = values(engine, f"t{len(owned) - 1}", wanted, "u")
        assert without == Counter({1: 1, 5: 1})
        for name, own in zip(tables, owned, strict=True):
            more = values(engine, name, wanted, "u") - without
            assert sum(more.values()) == any(value is not None for value in own)
            assert set(more) <= set(own)
            assert not without - values(engine, name, wanted, "u")


def test_other_types_and_absent_columns_are_refused() -> None:
    tables = {"texts": pa.table({"value": ["x"]}), "floats": pa.table({"value": [1.5]})}
    with DuckDBEngine(open_source(tables)) as engine:
        for table, wanted, part in (
            ("floats", BoughtCategories(), "column 'value' must be of texts or whole numbers"),
            ("texts", EDGES, "column 'value' must be of numbers"),
            ("floats", DAYS, "column 'value' must be of dates"),
        ):
            with pytest.raises(ParameterError, match=part):
                values(engine, table, wanted)
        with pytest.raises(ParameterError, match="column must be one of the table's"):
            values_job(Scan("texts", engine.schemas["texts"], None), "other", EDGES)
