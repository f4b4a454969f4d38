"""Joins, unions, groups and windows of one unit on Spark: against plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.queries.sql.clauses.public_relations import PUBLIC_CASES
from tests.queries.sql.clauses.test_table_expressions import CASES, SECRET, Data, asked, some_data, tables
from tests.queries.tables_in_spark import frame
from tests.spark import Cluster

pytestmark = pytest.mark.spark

EVERY = CASES | PUBLIC_CASES


@dataclass(frozen=True)
class _Place:
    data: Data
    engine: SparkEngine

    def exact(self, text: str, unit: str | None = "id") -> dict[Any, int]:
        private = {name: Scan(name, self.engine.schemas[name], unit) for name in ("data", "visits")}
        priced = price(read(asked(text), Catalog(private, {"public": self.engine.schemas["public"]})))
        self.engine.check(priced.job)
        rows = self.engine.aggregate(priced.job, SECRET).to_pylist()
        last = f"m{len(priced.job.measures) - 1}"
        return {tuple(value for name, value in row.items() if name[0] == "k"): row[last] for row in rows}


@pytest.fixture(scope="module")
def places(spark_cluster: Cluster) -> Iterator[list[_Place]]:
    session = spark_cluster.session()
    made = []
    for seed in (0, 3):
        data = some_data(seed)
        frames = {name: frame(session, table) for name, table in tables(data).items()}
        made.append(_Place(data, SparkEngine(SparkSource(session, frames))))
    yield made
    for place in made:
        place.engine.close()


@pytest.mark.parametrize("case", EVERY)
def test_every_node_does_what_python_does(case: str, places: list[_Place]) -> None:
    text, expected = EVERY[case]
    for place in places:
        assert place.exact(text) == expected(place.data)


def test_a_row_that_is_a_unit_joins_one_public_row_at_most(places: list[_Place]) -> None:
    text = "w, COUNT(*) AS n FROM data LEFT JOIN public USING (g) GROUP BY w"
    for place in places:
        assert sum(place.exact(text, unit=None).values()) == len(place.data.rows)
