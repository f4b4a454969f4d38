"""COUNT(DISTINCT x): against a brute force over rows, bounded by the values that a unit may bring."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import OptionError, UnsupportedSql
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.measures.counts import CountDistinct
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.cases import cases
from tests.queries.canonical_sql import canonical_text
from tests.queries.people import CATALOG


def _table(seed: int) -> pa.Table:
    draw = random.Random(seed)
    rows = [
        (
            draw.choice([1, 1, 2, 3, 4, 5]),
            draw.choice(["a", "b", None]),
            draw.choice(["red", "blue", "", "green", "Red", None]),
            draw.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), None, 2.0]),
        )
        for _ in range(70)
    ]
    units, groups, texts, reals = (list(column) for column in zip(*rows, strict=True))
    return pa.table({"id": units, "g": groups, "c": texts, "x": pa.array(reals, pa.float64())})


def _exact(table: pa.Table, columns: str, options: str) -> tuple[PricedQuery, list[dict[str, Any]]]:
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) g, {columns} FROM data GROUP BY g"
    with DuckDBEngine(open_source(table), threads=2) as engine:
        catalog = Catalog({"data": Scan("data", engine.schemas["data"], "id")})
        priced = price(read(text, catalog))
        return priced, engine.aggregate(priced.job, bytes(32)).to_pylist()


def _canonical(value: Any) -> Any:
    if isinstance(value, float):
        return None if value != value else value + 0.0  # noqa: PLR0124 - NaN
    return value


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("column", ["c", "x"])
def test_without_bounds_in_the_way_all_distinct_values_count(seed: int, column: str) -> None:
    table = _table(seed)
    priced, answer = _exact(
        table,
        f"APPROX_COUNT_DISTINCT({column}, max_contributions_per_group => 50)",
        "epsilon=1, delta=1e-6, max_groups_contributed=3",
    )
    expected = defaultdict(set)
    for row in table.to_pylist():
        expected[row["g"]].add(_canonical(row[column]))
    index = [type(request) for request in priced.requests].index(CountDistinct)
    assert {row["k0"]: row[f"m{index}"] for row in answer} == {
        g: len(v - {None}) for g, v in expected.items()
    }


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize(
    "options", ["max_groups_contributed=2", "max_groups_contributed=3, max_rows_per_group=3"]
)
def test_a_unit_brings_so_many_values_at_most(most: int, options: str) -> None:
    """One unit alone in its groups: what it brings is what there is."""
    table = pa.table({"id": [1] * 24, "g": ["a", "b", "c"] * 8, "c": [f"value {i}" for i in range(24)]})
    _, answer = _exact(
        table,
        f"APPROX_COUNT_DISTINCT(c, max_contributions_per_group => {most})",
        f"epsilon=1, delta=1e-6, {options}",
    )
    assert [row["m1"] for row in answer] == [most] * len(answer)
    assert len(answer) == (2 if options.endswith("=2") else 3)


def test_in_all_groups_together_a_unit_brings_no_more_values_than_rows() -> None:
    table = pa.table({"id": [1] * 24, "g": ["a", "b", "c"] * 8, "c": [f"value {i}" for i in range(24)]})
    priced, answer = _exact(table, "COUNT(DISTINCT c)", "epsilon=1, delta=1e-6, max_rows_contributed=6")
    assert sum(row["m1"] for row in answer) == 6
    assert priced.measures[1].l1 == 6


def test_values_that_several_units_bring_count_once() -> None:
    table = pa.table({"id": list(range(40)), "g": ["a"] * 40, "c": ["same", "other"] * 20})
    _, answer = _exact(table, "COUNT(DISTINCT c)", "epsilon=1, delta=1e-6, max_groups_contributed=1")
    assert [row["m1"] for row in answer] == [2]


@pytest.mark.parametrize(
    ("columns", "options", "most"),
    [
        ("COUNT(DISTINCT c)", "max_groups_contributed=1", 5),
        ("COUNT(DISTINCT c)", "max_groups_contributed=1, max_rows_per_group=3", 3),
        ("APPROX_COUNT_DISTINCT(c)", "max_groups_contributed=1", 5),
        ("APPROX_COUNT_DISTINCT(c, max_contributions_per_group => 7)", "max_groups_contributed=1", 7),
        (
            "APPROX_COUNT_DISTINCT(c, contribution_bounding_strategy => 'sampling')",
            "max_groups_contributed=1, max_rows_per_group=2",
            2,
        ),
    ],
)
def test_the_most_values_of_a_unit(columns: str, options: str, most: int) -> None:
    priced, _ = _exact(_table(0), columns, f"epsilon=1, delta=1e-6, {options}")
    assert priced.measures[1].sensitivity == most
    assert f"{most}" in canonical_text(priced.query)


def test_the_answer_has_an_interval_and_is_said_in_words() -> None:
    table = pa.table({"id": list(range(3000)), "c": [f"v{i % 700}" for i in range(3000)]})
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) "
        "COUNT(DISTINCT c), COUNT(DISTINCT id), APPROX_COUNT_DISTINCT(id) AS units FROM data"
    )
    with sf.connect(table, privacy_unit="id", epsilon=2, rng=4) as session:
        release = session.sql(text)
    answer = release.to_arrow(intervals=True, level=0.99).to_pylist()[0]
    assert answer["count_distinct_c_lower"] <= 700 <= answer["count_distinct_c_upper"]
    assert answer["count_units"] == answer["units"]
    assert "one unit brings at most 5 of them to a group" in release.explain()


def test_without_rows_there_are_no_values() -> None:
    table = pa.table(
        {"id": pa.array([], pa.int64()), "g": pa.array([], pa.string()), "c": pa.array([], pa.string())}
    )
    assert _exact(table, "COUNT(DISTINCT c)", "epsilon=1, delta=1e-6, max_groups_contributed=1")[1] == []
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(DISTINCT c) AS n FROM data"
    with sf.connect(table, privacy_unit="id", epsilon=2, rng=4) as session:
        assert len(session.sql(text).to_arrow()) == 1


DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=2) "


@cases(
    ("call", "kind", "phrase"),
    [
        (
            "APPROX_COUNT_DISTINCT(state, contribution_bounding_strategy => 'MATCHING')",
            OptionError,
            "got 'MATCHING'",
        ),
        (
            "APPROX_COUNT_DISTINCT(state, contribution_bounding_strategy => 'GREEDY')",
            OptionError,
            "'AUTO' or 'SAMP",
        ),
        (
            "APPROX_COUNT_DISTINCT(state, contribution_bounding_strategy => 3)",
            OptionError,
            "must be a string",
        ),
        (
            "APPROX_COUNT_DISTINCT(state, max_contributions_per_group => 0)",
            OptionError,
            "a whole number from 1",
        ),
        (
            "APPROX_COUNT_DISTINCT(state, max_contributions_per_group => 1.5)",
            OptionError,
            "a whole number from 1",
        ),
        (
            "APPROX_COUNT_DISTINCT(state, contribution_bounds_per_group => (0, 3))",
            OptionError,
            "write APPROX_COUNT_DISTINCT(x, max_contributions_per_group",
        ),
        (
            "APPROX_COUNT_DISTINCT(person_id, max_contributions_per_group => 2)",
            OptionError,
            "takes no bounds",
        ),
        ("APPROX_COUNT_DISTINCT(DISTINCT state)", UnsupportedSql, "leave DISTINCT out"),
        ("COUNT(DISTINCT state, sex)", UnsupportedSql, "must name one value, got 2"),
    ],
)
def test_each_mistake_has_its_error(call: str, kind: type[Exception], phrase: str) -> None:
    with pytest.raises(kind) as caught:
        read(f"{DP}{call} FROM data", CATALOG)
    assert phrase in str(caught.value)


def test_the_error_to_expect_is_known_beforehand() -> None:
    table = pa.table({"id": list(range(300)), "c": [f"v{i % 70}" for i in range(300)]})
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta=0) COUNT(DISTINCT c) AS d FROM data"
    with sf.connect(table, privacy_unit="id", epsilon=2, rng=4) as session:
        plan = session.plan([text], epsilon=1.0)
        assert "d: not known" not in str(plan)
