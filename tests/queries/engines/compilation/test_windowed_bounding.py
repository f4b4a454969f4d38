"""Bounding by windows chooses what bounding by cuts chooses: both as one engine runs them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from sfumato.frames.sources import open_source
from sfumato.queries.engines.compilation import job
from sfumato.queries.engines.compilation.bounding import Bounding, Step
from sfumato.queries.engines.compilation.job import GROUPS, compile_job, with_bin_counts
from sfumato.queries.engines.compilation.windowed_bounding import WindowedBounding
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.duckdb.ranks import RANKED_DUCKDB
from sfumato.queries.engines.self_test import run_self_test
from sfumato.queries.engines.spark.bounding_steps import SparkBounding, with_steps
from sfumato.queries.engines.spark.dialect import SPARK
from sfumato.queries.plan.query import AggregationJob
from tests.queries.engines.test_neighbors import _job, _table

_SECRET = bytes(range(32))


def _answer(engine: DuckDBEngine, asked: AggregationJob, way: type[WindowedBounding]) -> pa.Table:
    """Compute a job by one statement, and one more for each measure of counts by bin."""
    made = compile_job(asked, engine._tables, RANKED_DUCKDB)
    bounding = way.of(made, _SECRET)
    steps = [Step(GROUPS, job._groups(made)), *bounding.steps()] if made.public else bounding.steps()
    again = made.unit and "trimmed" in [step.name for step in steps]
    run = engine._connection.sql
    answer = run(with_steps(steps, made.answer(bounding, any_crowded=again))).to_arrow_table()
    leaves = made.leaves(bounding, any_crowded=again).items()
    bins = {index: run(with_steps(steps, select)).to_arrow_table() for index, select in leaves}
    return with_bin_counts(answer.cast(made.schema), bins)


def test_the_same_groups_and_rows_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark sums in is its own; which groups and rows it keeps is asked of DuckDB here."""
    monkeypatch.setattr(SparkBounding, "_measure_total", Bounding._measure_total)
    draw, limited = random.Random(17), 0
    for _ in range(3):
        sources = open_source(
            {"data": _table(draw), "public": pa.table({"name": ["a", "b", "a", None, "zz"]})}
        )
        with DuckDBEngine(sources, threads=1) as engine:
            for asked in [_job(draw, engine.schemas["data"]) for _ in range(4)]:
                if asked.relation.unit is None:
                    continue
                expected = engine.aggregate(asked, _SECRET)
                assert _answer(engine, asked, WindowedBounding).equals(expected), asked
                assert _answer(engine, asked, SparkBounding).equals(expected), asked
                limited += asked.max_groups is not None
    assert limited > 2


def test_one_statement_needs_no_tables() -> None:
    made = run_self_test(SPARK)
    assert [step.name for step in WindowedBounding.of(made, _SECRET).steps()] == [
        *("parts", "crowded", "chosen", "trimmed")
    ]
    names = [step.name for step in SparkBounding.of(made, _SECRET).steps()]
    assert names == ["parts"]  # for bins and values
