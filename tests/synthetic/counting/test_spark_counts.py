"""Spark puts every value into the cell that it has in memory, and bounds a unit's rows as DuckDB does."""

from __future__ import annotations

from typing import Any

import pytest

import sfumato as sf
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.synthetic import Marginals, TableDomain
from sfumato.synthetic.marginals.table_counts import table_counts
from tests.queries.tables_in_spark import frame
from tests.run_time import run_time
from tests.spark import Driver
from tests.synthetic.counting.cells import cells, rows_of

pytestmark = pytest.mark.spark

if run_time(__name__):
    from tests.synthetic.counting.test_engine_counts import DOMAIN, counted_of, people

_SHARPEST = {"texts", "many texts", "whole numbers", "ages as floats", "uneven bins", "decimals", "moments"}
"""A job takes seconds."""


@pytest.fixture
def session(spark: Driver) -> Any:
    return spark.session()


def test_each_value_is_in_the_cell_that_it_has_in_memory(session: Any) -> None:
    asked = [each for each in cells() if each[0] in _SHARPEST]
    assert len(asked) == len(_SHARPEST)
    tables = {name.replace(" ", "_"): rows_of(column) for name, _, column in asked}
    frames = {name: frame(session, table) for name, table in tables.items()}
    with SparkEngine(SparkSource(session, frames)) as engine:
        for (name, table), (_, attribute, _) in zip(tables.items(), asked, strict=True):
            domain = TableDomain(value=attribute)
            found = counted_of(engine, domain, [(0,)], name).counts((0,)).tolist()
            assert found == table_counts(domain, table).counts((0,)).tolist(), name


def test_a_units_rows_are_bounded_and_a_session_releases_marginals(session: Any) -> None:
    table = people(600)
    source = frame(session, table)
    kept = [row["u"] for row in table.to_pylist() if len(DOMAIN.encode(table.from_pylist([row])))]
    total = sum(min(2, kept.count(unit)) for unit in set(kept))
    with sf.connect(source, privacy_unit="u", epsilon=1e5, delta=0.1, rng=1) as opened:
        released = opened.marginals(
            DOMAIN, Marginals.every(2), epsilon=8000.0, delta=1e-3, max_rows_contributed=2
        )
        assert released.total == pytest.approx(total, abs=3)
