"""Bounds that are found, on the other engines: the counts, and the answers, that DuckDB gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.engine import Engine
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.pricing.quantile_bins import bin_counts
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.postgres import Cluster
from tests.queries.tables_in_postgres import load
from tests.queries.tables_in_spark import frame
from tests.spark import Driver

_SECRET = bytes(range(32))
_REALS = [
    *(0.0, -0.0, 5e-324, 2.0**-65, 2.0**-64, -(2.0**-64), 0.75, 1.0, -1.5, 3.0, 2.0**41, -(2.0**43)),
    *(2.0**95, -(2.0**95), 1e308, -1e308, math.inf, -math.inf, math.nan, None, 1e-12, -7e-19),
]
_WHOLE = [0, 1, -1, 2, 3, -4, 5, 2**31, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63), None]


def _odd() -> pa.Table:
    """Return two rows for each unit, of one group: of each number, twice."""
    many = len(_REALS) * len(_WHOLE)
    units = [unit for unit in range(many) for _ in range(2)]
    return pa.table(
        {
            "id": pa.array(units, pa.int64()),
            "g": pa.array(["ab"[unit % 2] for unit in units]),
            "x": pa.array([_REALS[unit % len(_REALS)] for unit in units], pa.float64()),
            "i": pa.array([_WHOLE[unit // len(_REALS)] for unit in units], pa.int64()),
        }
    )


_CALLS = ["AVG(x)", "AVG(i)", "SUM(x)", "SUM(i)", "COVAR_POP(x, i)", "SUM(x * 3.0)", "MEDIAN(i - 1)"]


_LIMITS = ["", ", max_rows_per_group=1", ", max_rows_per_group=3"]


def _counted(
    engine: Engine, calls: Sequence[str] = _CALLS, limits: Sequence[str] = _LIMITS
) -> dict[str, list[dict[int, int]]]:
    found: dict[str, list[dict[int, int]]] = {}
    for call in calls:
        for limit in limits:
            text = (
                f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=1"
                f"{limit}) g, {call} AS a FROM data GROUP BY g"
            )
            priced = price(read(text, Catalog({"data": Scan("data", engine.schemas["data"], "id")})))
            for each in priced.searches:
                job = each.search.job(priced.query)
                engine.check(job)
                counts = bin_counts(engine.aggregate(job, _SECRET)["m0"])
                pairs = zip(counts.leaves.tolist(), counts.counts.tolist(), strict=True)
                found.setdefault(call + limit, []).append(dict(sorted(pairs)))
    return found


def _expected(calls: Sequence[str] = _CALLS, limits: Sequence[str] = _LIMITS) -> Any:
    with DuckDBEngine(open_source(_odd())) as engine:
        return _counted(engine, calls, limits)


_ASK = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=4, delta=1e-8, max_groups_contributed=1)
g, SUM(x) AS s, AVG(x) AS a, MEDIAN(x) AS m, SUM(i) AS t, VAR_POP(i) AS v, CORR(x, i) AS c, COUNT(*) AS n
FROM data GROUP BY g"""


def _people() -> pa.Table:
    """Return two rows for each unit, which are alike: to choose one of them is no choice."""
    units = [unit for unit in range(3000) for _ in range(2)]
    return pa.table(
        {
            "id": pa.array(units, pa.int64()),
            "g": pa.array(["ab"[unit % 2] for unit in units]),
            "x": pa.array([float(unit % 50) + 20 for unit in units], pa.float64()),
            "i": pa.array([unit % 7 - 3 for unit in units], pa.int64()),
        }
    )


def _answers(source: Any, ask: str = _ASK) -> tuple[pa.Table, Any]:
    with sf.connect(source, privacy_unit="id", epsilon=9, delta=1e-6, rng=4) as session:
        release = session.sql(ask)
        assert all(bounds.found for bounds in release.found_bounds)
        return release.to_arrow(intervals=True), release.found_bounds


@pytest.mark.postgres
def test_postgres_counts_and_answers_as_duckdb_does(postgres: Cluster) -> None:
    url = postgres.database()
    with psycopg.connect(url) as connection:
        load(connection, "data", _odd())
    engine = PostgresEngine(PostgresSource(url))
    try:
        assert _counted(engine) == _expected()
    finally:
        engine.close()
    with psycopg.connect(url) as connection:
        load(connection, "data", _people())
    assert _answers(url) == _answers(_people())


@pytest.mark.spark
def test_spark_counts_as_duckdb_does(spark: Driver) -> None:
    session = spark.session()
    engine = SparkEngine(SparkSource(session, {"data": frame(session, _odd())}))
    few = ["SUM(i)", "SUM(x)"], [""]  # a query of two steps each; whole numbers and floats are all there is
    try:
        assert _counted(engine, *few) == _expected(*few)
    finally:
        engine.close()


@pytest.mark.spark
def test_spark_answers_as_duckdb_does(spark: Driver) -> None:
    ask = _ASK.replace("MEDIAN(x) AS m, SUM(i) AS t, VAR_POP(i) AS v, CORR(x, i) AS c, ", "")
    assert _answers(frame(spark.session(), _people()), ask) == _answers(_people(), ask)
