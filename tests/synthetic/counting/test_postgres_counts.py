"""PostgreSQL puts every value into its cell, as in memory, and bounds a unit's rows as DuckDB does."""

from __future__ import annotations

import psycopg
import pytest

import sfumato as sf
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.queries.engines.postgres.source import PostgresSource
from sfumato.synthetic import Marginals, TableDomain
from sfumato.synthetic.marginals.table_counts import table_counts
from tests.postgres import Cluster
from tests.queries.tables_in_postgres import load
from tests.run_time import run_time
from tests.synthetic.counting.cells import cells, rows_of

pytestmark = pytest.mark.postgres

if run_time(__name__):
    from tests.synthetic.counting.test_engine_counts import DOMAIN, EVERY, counted_of, people


@pytest.fixture(scope="module")
def url(postgres: Cluster) -> str:
    return postgres.database()


def test_each_value_is_in_the_cell_that_it_has_in_memory(url: str) -> None:
    tables = {name.replace(" ", "_"): rows_of(column) for name, _, column in cells()}
    with psycopg.connect(url) as connection:
        for name, table in tables.items():
            load(connection, name, table)
    with PostgresEngine(PostgresSource(url, tables=list(tables))) as engine:
        for (name, table), (_, attribute, _) in zip(tables.items(), cells(), strict=True):
            domain = TableDomain(value=attribute)
            expected = table_counts(domain, table).counts((0,)).tolist()
            for together in (False, True):
                found = counted_of(engine, domain, [(0,)], name, together=together).counts((0,)).tolist()
                assert found == expected, name


def test_tables_are_those_of_rows_in_memory_and_a_units_rows_are_bounded(url: str) -> None:
    table = people(600)
    with psycopg.connect(url) as connection:
        load(connection, "people", table)
    with PostgresEngine(PostgresSource(url, tables=["people"])) as engine:
        reference = table_counts(DOMAIN, table)
        for together in (False, True):
            found = counted_of(engine, DOMAIN, EVERY, "people", together=together)
            assert all((found.counts(c) == reference.counts(c)).all() for c in EVERY)
            bounded = counted_of(
                engine,
                DOMAIN,
                [(0, 1), (2, 3)],
                "people",
                unit="u",
                max_rows_contributed=2,
                together=together,
            )
            kept = [row["u"] for row in table.to_pylist() if len(DOMAIN.encode(table.from_pylist([row])))]
            total = sum(min(2, kept.count(unit)) for unit in set(kept))
            assert bounded.counts((0, 1)).sum() == bounded.counts((2,)).sum() == total


def test_a_session_releases_marginals(url: str) -> None:
    table = people(600)
    with psycopg.connect(url) as connection:
        load(connection, "people", table)
    source = PostgresSource(url, tables=["people"])
    with sf.connect(source, privacy_unit=sf.ROW, epsilon=1e4, delta=0.1, rng=1) as session:
        released = session.marginals(DOMAIN, Marginals.every(2), epsilon=4000.0, delta=1e-3)
        assert released.total == pytest.approx(len(DOMAIN.encode(table)), abs=3)
