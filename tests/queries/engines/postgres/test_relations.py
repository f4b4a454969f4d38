"""Joins, unions, groups and windows of one unit in PostgreSQL: against plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.postgres import Cluster
from tests.queries.sql.clauses.public_relations import PUBLIC_CASES
from tests.queries.sql.clauses.test_table_expressions import CASES, SECRET, Data, asked, some_data, tables
from tests.queries.tables_in_postgres import load

pytestmark = pytest.mark.postgres

EVERY = CASES | PUBLIC_CASES


@dataclass(frozen=True)
class _Place:
    data: Data
    engine: PostgresEngine

    def exact(self, text: str) -> dict[Any, int]:
        private = {name: Scan(name, self.engine.schemas[name], "id") for name in ("data", "visits")}
        priced = price(read(asked(text), Catalog(private, {"public": self.engine.schemas["public"]})))
        self.engine.check(priced.job)
        rows = self.engine.aggregate(priced.job, SECRET).to_pylist()
        last = f"m{len(priced.job.measures) - 1}"
        return {tuple(value for name, value in row.items() if name[0] == "k"): row[last] for row in rows}


@pytest.fixture(scope="module")
def places(postgres: Cluster) -> Iterator[list[_Place]]:
    made = []
    for seed in range(5):
        data, url = some_data(seed), postgres.database()
        with psycopg.connect(url) as connection:
            for name, table in tables(data).items():
                load(connection, name, table)
        made.append(_Place(data, PostgresEngine(PostgresSource(url))))
    yield made
    for place in made:
        place.engine.close()


@pytest.mark.parametrize("case", EVERY)
def test_every_node_does_what_python_does(case: str, places: list[_Place]) -> None:
    text, expected = EVERY[case]
    for seed, place in enumerate(places):
        assert place.exact(text) == expected(place.data), seed


@pytest.mark.parametrize("call", ["MIN", "MAX"])
@pytest.mark.parametrize("value", ["g", "DATE '2024-01-31'", "TIMESTAMP '2024-01-31 00:00:00'"])
def test_extremes_of_every_type(call: str, value: str, places: list[_Place]) -> None:
    inside = f"SELECT id, CAST({call}({value}) AS STRING) AS k FROM data GROUP BY id"
    text = f"k, COUNT(*) AS n FROM ({inside}) GROUP BY k"
    for place in places:
        assert sum(place.exact(text).values()) == len({row.id for row in place.data.rows} - {None})
