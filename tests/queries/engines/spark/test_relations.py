"""Joins, unions, groups and windows of one unit on Spark: against plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.queries.engines.compilation.decimal_relations import (
    DECIMAL_CASES,
    Digits,
    some_digits,
    table_of_digits,
)
from tests.queries.sql.clauses.array_relations import ARRAY_CASES, Tagged, some_arrays, table_of
from tests.queries.sql.clauses.public_relations import PUBLIC_CASES
from tests.queries.sql.clauses.test_table_expressions import CASES, SECRET, Data, asked, some_data, tables
from tests.queries.tables_in_spark import frame
from tests.spark import Driver

pytestmark = pytest.mark.spark

EVERY = CASES | PUBLIC_CASES


@dataclass(frozen=True)
class _Place:
    data: Data
    engine: SparkEngine

    def exact(self, text: str, unit: str | None = "id") -> dict[Any, int]:
        return exact(self.engine, {"data", "visits"}, text, unit)


@dataclass(frozen=True)
class _Arrays:
    rows: list[Tagged]
    engine: SparkEngine


def exact(engine: SparkEngine, private: set[str], text: str, unit: str | None = "id") -> dict[Any, int]:
    scans = {name: Scan(name, engine.schemas[name], unit) for name in private}
    public = {name: schema for name, schema in engine.schemas.items() if name not in private}
    priced = price(read(asked(text), Catalog(scans, public)))
    engine.check(priced.job)
    rows = engine.aggregate(priced.job, SECRET).to_pylist()
    last = f"m{len(priced.job.measures) - 1}"
    return {tuple(value for name, value in row.items() if name[0] == "k"): row[last] for row in rows}


@pytest.fixture(scope="module")
def places(spark: Driver) -> Iterator[list[_Place]]:
    session = spark.session()
    made = []
    for seed in (0, 3):
        data = some_data(seed)
        frames = {name: frame(session, table) for name, table in tables(data).items()}
        made.append(_Place(data, SparkEngine(SparkSource(session, frames))))
    yield made
    for place in made:
        place.engine.close()


@pytest.fixture(scope="module")
def arrays(spark: Driver) -> Iterator[list[_Arrays]]:
    session = spark.session()
    made = []
    for seed in (0, 1):
        rows = some_arrays(seed)
        made.append(
            _Arrays(rows, SparkEngine(SparkSource(session, {"data": frame(session, table_of(rows))})))
        )
    yield made
    for place in made:
        place.engine.close()


@pytest.mark.parametrize("case", EVERY)
def test_every_node_does_what_python_does(case: str, places: list[_Place]) -> None:
    """One case in two with one data set, the others with the other: a job takes Spark half a second."""
    text, expected = EVERY[case]
    place = places[list(EVERY).index(case) % len(places)]
    assert place.exact(text) == expected(place.data)


def test_a_row_that_is_a_unit_joins_one_public_row_at_most(places: list[_Place]) -> None:
    text = "w, COUNT(*) AS n FROM data LEFT JOIN public USING (g) GROUP BY w"
    for place in places[:1]:
        assert sum(place.exact(text, unit=None).values()) == len(place.data.rows)


@pytest.mark.parametrize("case", ARRAY_CASES)
def test_arrays_are_taken_apart_as_python_does(case: str, arrays: list[_Arrays]) -> None:
    text, expected = ARRAY_CASES[case]
    place = arrays[list(ARRAY_CASES).index(case) % len(arrays)]
    assert exact(place.engine, {"data"}, text) == expected(place.rows)


@pytest.fixture(scope="module")
def digits(spark: Driver) -> Iterator[list[tuple[list[Digits], SparkEngine]]]:
    session = spark.session()
    made = []
    for seed in (0, 1):
        rows = some_digits(seed)
        source = SparkSource(session, {"data": frame(session, table_of_digits(rows))})
        made.append((rows, SparkEngine(source)))
    yield made
    for _, engine in made:
        engine.close()


@pytest.mark.parametrize("case", DECIMAL_CASES)
def test_computed_digits_are_those_of_python(
    case: str, digits: list[tuple[list[Digits], SparkEngine]]
) -> None:
    text, expected = DECIMAL_CASES[case]
    rows, engine = digits[list(DECIMAL_CASES).index(case) % len(digits)]
    assert exact(engine, {"data"}, text) == expected(rows)


def test_elements_are_in_the_fingerprint(spark: Driver) -> None:
    session = spark.session()
    prints = set()
    each: list[list[str | None] | None] = [["a", "b"], ["a"], ["ab"], ["a", None, "b"], [], None]
    for array in each:
        table = pa.table({"id": [1], "tags": pa.array([array], pa.list_(pa.string()))})
        with SparkEngine(SparkSource(session, {"data": frame(session, table)})) as engine:
            prints.add(engine.fingerprint(bytes(32)))
    assert len(prints) == 6
