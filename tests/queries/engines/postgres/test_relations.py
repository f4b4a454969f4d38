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
from tests.queries.engines.compilation.decimal_relations import (
    DECIMAL_CASES,
    Digits,
    some_digits,
    table_of_digits,
)
from tests.queries.sql.clauses.array_relations import ARRAY_CASES, Tagged, some_arrays, table_of
from tests.queries.sql.clauses.public_relations import PUBLIC_CASES
from tests.queries.sql.clauses.test_table_expressions import (
    CASES,
    SECRET,
    Data,
    asked,
    rows_by,
    some_data,
    tables,
)
from tests.queries.tables_in_postgres import load

pytestmark = pytest.mark.postgres

EVERY = CASES | PUBLIC_CASES


@dataclass(frozen=True)
class _Place:
    data: Data
    engine: PostgresEngine

    def exact(self, text: str, unit: str | None = "id") -> dict[Any, int]:
        return exact(self.engine, {"data", "visits"}, text, unit)


@dataclass(frozen=True)
class _Arrays:
    rows: list[Tagged]
    engine: PostgresEngine


def exact(engine: PostgresEngine, private: set[str], text: str, unit: str | None = "id") -> dict[Any, int]:
    scans = {name: Scan(name, engine.schemas[name], unit) for name in private}
    public = {name: schema for name, schema in engine.schemas.items() if name not in private}
    priced = price(read(asked(text), Catalog(scans, public)))
    engine.check(priced.job)
    rows = engine.aggregate(priced.job, SECRET).to_pylist()
    last = f"m{len(priced.job.measures) - 1}"
    return {tuple(value for name, value in row.items() if name[0] == "k"): row[last] for row in rows}


@pytest.fixture(scope="module")
def places(postgres: Cluster) -> Iterator[list[_Place]]:
    made = []
    for seed in (0, 3):
        data, url = some_data(seed), postgres.database()
        with psycopg.connect(url) as connection:
            for name, table in tables(data).items():
                load(connection, name, table)
        made.append(_Place(data, PostgresEngine(PostgresSource(url))))
    yield made
    for place in made:
        place.engine.close()


@pytest.fixture(scope="module")
def arrays(postgres: Cluster) -> Iterator[list[_Arrays]]:
    made = []
    for seed in (0, 1):
        rows, url = some_arrays(seed), postgres.database()
        with psycopg.connect(url) as connection:
            load(connection, "data", table_of(rows))
        made.append(_Arrays(rows, PostgresEngine(PostgresSource(url))))
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
    place = places[0]
    assert sum(place.exact(text).values()) == len({row.id for row in place.data.rows} - {None})


@pytest.mark.parametrize("case", ARRAY_CASES)
def test_arrays_are_taken_apart_as_python_does(case: str, arrays: list[_Arrays]) -> None:
    text, expected = ARRAY_CASES[case]
    for place in arrays:
        assert exact(place.engine, {"data"}, text) == expected(place.rows)


@pytest.fixture(scope="module")
def digits(postgres: Cluster) -> Iterator[list[tuple[list[Digits], PostgresEngine]]]:
    made = []
    for seed in (0, 1):
        rows, url = some_digits(seed), postgres.database()
        with psycopg.connect(url) as connection:
            load(connection, "data", table_of_digits(rows))
        made.append((rows, PostgresEngine(PostgresSource(url))))
    yield made
    for _, engine in made:
        engine.close()


@pytest.mark.parametrize("case", DECIMAL_CASES)
def test_computed_digits_are_those_of_python(
    case: str, digits: list[tuple[list[Digits], PostgresEngine]]
) -> None:
    text, expected = DECIMAL_CASES[case]
    for rows, engine in digits:
        assert exact(engine, {"data"}, text) == expected(rows)


def test_an_array_of_several_dimensions_is_its_elements(postgres: Cluster) -> None:
    url = postgres.database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE data (id bigint, n int[])")
        connection.execute("INSERT INTO data VALUES (1, '{{1,2},{2,NULL}}'), (2, '{}'), (3, NULL)")
    with PostgresEngine(PostgresSource(url)) as engine:
        found = exact(engine, {"data"}, rows_by("(SELECT id, m AS k FROM data, UNNEST(n) AS m)"))
    assert found == {(1,): 1, (2,): 2, (None,): 1}
