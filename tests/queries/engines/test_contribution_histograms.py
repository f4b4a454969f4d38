"""Histograms of what units bring, on the other engines: the cells that DuckDB gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.engine import Engine
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.queries.plan.query import Scan
from sfumato.queries.planner.contribution_histograms import Histogram, histograms_of
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.postgres import Cluster
from tests.queries.tables_in_postgres import load
from tests.queries.tables_in_spark import frame
from tests.spark import Driver

# limits that no unit reaches: which of its rows an engine chooses is its own
_TEXT = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, max_groups_contributed=9, "
    "max_rows_per_group=99) town, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, "
    "SUM(cost, contribution_bounds_per_row => (0, 9)) AS s, "
    "SUM(cost, contribution_bounds_per_group => (0, 9)) AS t FROM data GROUP BY town"
)
_ALL_ROWS = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, max_rows_contributed=99) "
    "town, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM data GROUP BY town"
)


def _visits() -> pa.Table:
    draw = random.Random(8)
    units = [unit for unit in range(60) for _ in range(draw.choice([1, 2, 5, 12]))]
    return pa.table(
        {
            "id": pa.array(units, pa.int64()),
            "town": pa.array([draw.choice(["a", "b", "c", "d", None]) for _ in units], pa.string()),
            "cost": pa.array([draw.choice([None, -3.5, 0.0, 1.25, 70.0]) for _ in units], pa.float64()),
        }
    )


_ASKED = ((_TEXT, None), (_TEXT, {"town": ["a", "c", None]}), (_ALL_ROWS, None))


def _cells(engine: Engine, asked: Sequence[Any] = _ASKED) -> dict[Histogram, list[int]]:
    catalog = Catalog({"data": Scan("data", engine.schemas["data"], "id")})
    found: dict[Histogram, list[int]] = {}
    for text, groups in asked:
        query = read(text, catalog, public_groups=groups)
        for each in histograms_of(query, groups_known=False):
            job = each.job(query)
            engine.check(job)
            found[each] = each.exact(engine.aggregate(job, bytes(range(32)))).tolist()
    return found


def _expected(asked: Sequence[Any] = _ASKED) -> dict[Histogram, list[int]]:
    with DuckDBEngine(open_source(_visits())) as engine:
        return _cells(engine, asked)


@pytest.mark.postgres
def test_cells_on_postgresql(postgres: Cluster) -> None:
    url = postgres.database()
    with psycopg.connect(url) as connection:
        load(connection, "data", _visits())
    engine = PostgresEngine(PostgresSource(url))
    try:
        assert _cells(engine) == _expected()
    finally:
        engine.close()


@pytest.mark.spark
def test_cells_on_spark(spark: Driver) -> None:
    session = spark.session()
    engine = SparkEngine(SparkSource(session, {"data": frame(session, _visits())}))
    counts = _TEXT.partition("SUM(")[0].rstrip(", ") + " FROM data GROUP BY town"
    few = ((counts, {"town": ["a", "c", None]}), (_ALL_ROWS, None))  # a histogram takes Spark some time
    try:
        assert _cells(engine, few) == _expected(few)
    finally:
        engine.close()
